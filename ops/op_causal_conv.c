/* CausalConvWithState: a depthwise convolution X [B C L], W [C 1 k], bias [C] that looks back only;
 * before X stand the k - 1 columns of the state [B C k-1], or zeros. It gives the last k - 1
 * columns that it saw as the next state. Source: ONNX operator page CausalConvWithState. */
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/operand.h"
#include "ops/real.h"

static enum accel_err parse(struct accel_node *n, int opset)
{
    const char *how;
    (void)opset; /* the attribute is the same in all */
    ACCEL_TRY(accel_attr_string(&how, n, "activation", "none"));
    if (strcmp(how, "none") != 0 && strcmp(how, "silu") != 0 && strcmp(how, "swish") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'activation' is '%.100s'", how);
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    struct accel_dim c = accel_operand_dim(n, 0, 1), w = accel_operand_dim(n, 1, 0);
    struct accel_dim k = accel_operand_dim(n, 1, 2), back = accel_dim_unknown();
    ACCEL_TRY(accel_operand_check_rank(n, 0, 3));
    ACCEL_TRY(accel_operand_check_rank(n, 1, 3));
    ACCEL_TRY(accel_operand_check_rank(n, 3, 3));
    ACCEL_TRY(accel_operand_check_vector(n, 2, c, "bias"));
    if (accel_dim_differs(c, w))
        return accel_fail(ACCEL_ESHAPE, "input has %lld channels, weight '%.200s' has %lld",
                          (long long)c.n, n->in[1]->name, (long long)w.n);
    if (accel_dim_differs(accel_operand_dim(n, 1, 1), accel_dim_of(1)))
        return accel_fail(ACCEL_ESHAPE, "axis 1 of the weight is %lld instead of 1",
                          (long long)accel_operand_dim(n, 1, 1).n);
    if (accel_dim_known(k)) {
        back = accel_dim_of(k.n > 0 ? k.n - 1 : 0);
        if (k.n < 1 || (accel_operand(n, 3) && accel_dim_differs(accel_operand_dim(n, 3, 2), back)))
            return accel_fail(ACCEL_ESHAPE, "a kernel of %lld, a state of %lld", (long long)k.n,
                              (long long)accel_operand_dim(n, 3, 2).n);
    }
    struct accel_dim state[3] = {accel_operand_dim(n, 0, 0), c, back};
    ACCEL_TRY(accel_result_dims(n, 1, accel_operand_dtype(n, 0), 3, state));
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

/* elements of Y times k */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    c->macs = accel_macs_mul(accel_result_count(n, 0), accel_operand_dim(n, 1, 2).n);
}

static int weights(const struct accel_node *n, struct accel_weight w[4])
{
    (void)n;
    w[0] = (struct accel_weight){1, 3, 0, 1, -1, "Conv1d", false, 2, -1, -1};
    return 1;
}

static const struct accel_array *given(const struct accel_call *c, int slot)
{
    return slot < c->node->n_in && c->x[slot].data ? &c->x[slot] : NULL;
}

/* Column `at` of a row of the state followed by X. */
static double column(const real *state, const real *x, int64_t back, int64_t at)
{
    return at >= back ? (double)x[at - back] : state ? (double)state[at] : 0;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *w = &c->x[1], *b = given(c, 2), *past = given(c, 3);
    int64_t C = x->dim[1], L = x->dim[2], k = w->dim[2], back = k - 1;
    const char *how;
    ACCEL_TRY(accel_attr_string(&how, c->node, "activation", "none"));
    if (accel_op_is_int(x) || accel_op_is_int(w) || (b && accel_op_is_int(b)) ||
        (past && accel_op_is_int(past)))
        return accel_fail(ACCEL_ENOSUP, "a convolution of integers");
    if (past && (past->dim[0] != x->dim[0] || past->dim[1] != C))
        return accel_fail(ACCEL_ESHAPE, "a state of %lldx%lld for %lldx%lld",
                          (long long)past->dim[0], (long long)past->dim[1], (long long)x->dim[0],
                          (long long)C);
    bool gate = *how != 'n';
    for (int64_t row = 0; row < x->dim[0] * C; row++) {
        const real *state = past ? (const real *)past->data + row * back : NULL;
        const real *in = (const real *)x->data + row * L;
        const real *tap = (const real *)w->data + row % C * k;
        for (int64_t i = 0; i < L; i++) {
            double sum = b ? (double)((const real *)b->data)[row % C] : 0;
            for (int64_t t = 0; t < k; t++)
                sum += (double)tap[t] * column(state, in, back, i + t);
            ((real *)c->y[0].data)[row * L + i] = (real)(gate ? sum / (1 + exp(-sum)) : sum);
        }
        for (int64_t i = 0; i < back && c->node->n_out > 1 && c->y[1].data; i++)
            ((real *)c->y[1].data)[row * back + i] = (real)column(state, in, back, L + i);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"activation", ACCEL_ATTR_STRING, 0}, {0}};
static const char *const examples[] = {"2x3x5 3x1x4 3 2x3x3", "1x2x4 2x1x2 | activation=silu",
                                       NULL};

const struct accel_op accel_op_causal_conv_with_state = {
    .name = "CausalConvWithState",
    .domain = "",
    .since = 27,
    .min_in = 2,
    .max_in = 4,
    .min_out = 2,
    .max_out = 2,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .cost = cost,
    .weights = weights,
    .forward = forward,
    .examples = examples,
};
