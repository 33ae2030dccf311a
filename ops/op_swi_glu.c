/* SwiGLU: Y = A * sigmoid(alpha * A) * B, the gate A and the values B of the same shape. */
#include <math.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

static enum accel_err infer(struct accel_node *n)
{
    int a = accel_operand_rank(n, 0), b = accel_operand_rank(n, 1);
    if (a >= 0 && b >= 0 && a != b)
        return accel_fail(ACCEL_ESHAPE, "a gate of rank %d, values of rank %d", a, b);
    for (int i = 0; i < a && b >= 0; i++)
        if (accel_dim_differs(accel_operand_dim(n, 0, i), accel_operand_dim(n, 1, i)))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the gate is %lld, of the values %lld", i,
                              (long long)accel_operand_dim(n, 0, i).n,
                              (long long)accel_operand_dim(n, 1, i).n);
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

static enum accel_err forward(const struct accel_call *c)
{
    float alpha;
    ACCEL_TRY(accel_attr_float(&alpha, c->node, "alpha", 1));
    if (accel_op_is_int(&c->x[0]) || accel_op_is_int(&c->x[1]) || c->x[0].n != c->x[1].n)
        return accel_fail(ACCEL_ENOSUP, "SwiGLU of integers, or of %lld and %lld elements",
                          (long long)c->x[0].n, (long long)c->x[1].n);
    for (int64_t i = 0; i < c->y[0].n; i++) {
        double a = (double)((const real *)c->x[0].data)[i];
        double b = (double)((const real *)c->x[1].data)[i];
        ((real *)c->y[0].data)[i] = (real)(a / (1 + exp(-(double)alpha * a)) * b);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0}, {0}};
static const char *const examples[] = {"2x3 2x3", "4x2 4x2 | alpha=2", NULL};

const struct accel_op accel_op_swi_glu = {
    .name = "SwiGLU",
    .domain = "",
    .since = 28,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .attrs = attrs,
    .infer = infer,
    .links = accel_link_broadcast,
    .zero = accel_zero_broadcast,
    .forward = forward,
    .examples = examples,
};
