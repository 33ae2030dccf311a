/* SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: scores [N C D…], labels [N D…] -> a
 * scalar, or one loss per label. The first one's second output holds the log-probabilities. */
#include <string.h>

#include "graph/attr.h"
#include "ops/operand.h"

struct loss_params {
    bool each; /* one loss per label */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    const char *how;
    struct loss_params *p = ACCEL_NEW(&n->graph->model->arena, struct loss_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_string(&how, n, "reduction", "mean"));
    if (strcmp(how, "none") != 0 && strcmp(how, "mean") != 0 && strcmp(how, "sum") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'reduction' is \"%.50s\"", how);
    p->each = how[0] == 'n';
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct loss_params *p = n->params;
    enum accel_dtype dtype = accel_operand_dtype(n, 0);
    int scores = accel_operand_rank(n, 0), labels = accel_operand_rank(n, 1);
    if (scores >= 0 && scores < 2)
        return accel_fail(ACCEL_ESHAPE, "scores have rank %d, at least 2 is needed", scores);
    if (scores >= 0 && labels >= 0 && labels != scores - 1)
        return accel_fail(ACCEL_ESHAPE, "labels have rank %d, scores rank %d", labels, scores);
    for (int i = 0; scores >= 0 && i < labels; i++) {
        struct accel_dim s = accel_operand_dim(n, 0, i ? i + 1 : 0);
        struct accel_dim l = accel_operand_dim(n, 1, i);
        if (accel_dim_differs(s, l))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the labels is %lld, scores have %lld", i,
                              (long long)l.n, (long long)s.n);
    }
    ACCEL_TRY(accel_operand_check_vector(n, 2, accel_operand_dim(n, 0, 1), "weight"));
    ACCEL_TRY(accel_result_like(n, 1, dtype, accel_operand(n, 0)));
    if (p->each)
        return accel_result_like(n, 0, dtype, accel_operand(n, 1));
    return accel_result_dims(n, 0, dtype, 0, NULL);
}

static const struct accel_attr_rule attrs[] = {
    {"ignore_index", ACCEL_ATTR_INT, 0}, {"reduction", ACCEL_ATTR_STRING, 0}, {0}};
static const char *const examples[] = {"4x3 4", "2x3x5 2x5 3 | reduction=none", NULL};

const struct accel_op accel_op_softmaxcrossentropyloss = {
    .name = "SoftmaxCrossEntropyLoss",
    .domain = "",
    .since = 12,
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 2,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .examples = examples,
};
const struct accel_op accel_op_negativeloglikelihoodloss = {
    .name = "NegativeLogLikelihoodLoss",
    .domain = "",
    .since = 12,
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .examples = examples,
};
