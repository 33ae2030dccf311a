/* SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss: scores [N C D…], labels [N D…] -> a
 * scalar, or one loss per label. The first one's second output holds the log-probabilities. */
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/operand.h"
#include "ops/real.h"

struct loss_params {
    bool each; /* one loss per label */
    bool mean;
    bool ignores; /* there is an ignore_index … */
    int64_t ignored;
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
    p->mean = how[0] == 'm';
    p->ignores = accel_attr_find(n, "ignore_index") != NULL;
    ACCEL_TRY(accel_attr_int(&p->ignored, n, "ignore_index", 0));
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

/* log softmax over the classes, `step` apart, into y. */
static void log_softmax(real *y, const real *x, int64_t C, int64_t step)
{
    double most = -INFINITY, sum = 0;
    for (int64_t k = 0; k < C; k++)
        most = fmax(most, (double)x[k * step]);
    for (int64_t k = 0; k < C; k++)
        sum += exp((double)x[k * step] - most);
    for (int64_t k = 0; k < C; k++)
        y[k * step] = (real)((double)x[k * step] - most - log(sum));
}

/* -weight[label] * log p[label]; the mean divides by the weights that counted. */
static enum accel_err losses(const struct accel_call *c, const real *log_p)
{
    const struct loss_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *label = &c->x[1];
    const real *weight = c->node->n_in > 2 ? c->x[2].data : NULL;
    int64_t C = x->dim[1], step = label->n && x->dim[0] ? label->n / x->dim[0] : 1;
    double sum = 0, total = 0;
    for (int64_t i = 0; i < label->n; i++) {
        int64_t k = ((const int64_t *)label->data)[i];
        double loss = 0, w = 0;
        if (!(p->ignores && k == p->ignored)) {
            if (k < 0 || k >= C)
                return accel_fail(ACCEL_ESHAPE, "label %lld of %lld classes", (long long)k,
                                  (long long)C);
            w = weight ? (double)weight[k] : 1;
            loss = -w * (double)log_p[(i / step * C + k) * step + i % step];
        }
        if (p->each)
            ((real *)c->y[0].data)[i] = (real)loss;
        sum += loss;
        total += w;
    }
    if (!p->each)
        *(real *)c->y[0].data = (real)(p->mean ? sum / total : sum);
    return ACCEL_OK;
}

static size_t cross_entropy_scratch(const struct accel_call *c)
{
    return (size_t)c->x[0].n * sizeof(real);
}

static enum accel_err cross_entropy(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    real *log_p = c->node->n_out > 1 && c->y[1].data ? c->y[1].data : c->scratch;
    int64_t C = x->dim[1], step = 1;
    for (int d = 2; d < x->rank; d++)
        step *= x->dim[d];
    for (int64_t i = 0; C && i < x->n / C; i++) {
        int64_t at = i / step * C * step + i % step;
        log_softmax(log_p + at, (const real *)x->data + at, C, step);
    }
    return losses(c, log_p);
}

static enum accel_err likelihood(const struct accel_call *c)
{
    return losses(c, c->x[0].data);
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
    .forward = cross_entropy,
    .scratch = cross_entropy_scratch,
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
    .forward = likelihood,
    .examples = examples,
};
