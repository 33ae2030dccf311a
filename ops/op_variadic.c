/* Max, Min, Sum and Mean of any number of inputs, element by element, with broadcasting (before
 * opset 8 the inputs had equal shapes, which broadcasting contains). */
#include <limits.h>
#include <math.h>

#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct variadic {
    real (*f)(real a, real b);
    int64_t (*fi)(int64_t a, int64_t b);
    bool mean;
};

static enum accel_err infer(struct accel_node *n)
{
    struct accel_shape y;
    enum accel_dtype dtype = ACCEL_UNDEFINED;
    for (int i = 0; i < n->n_in && dtype == ACCEL_UNDEFINED; i++)
        dtype = accel_operand_dtype(n, i);
    ACCEL_TRY(accel_operands_broadcast(&y, n, 0, n->n_in));
    accel_result_set(n, 0, dtype, y);
    return ACCEL_OK;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct variadic *f = c->node->op->family;
    struct accel_array *y = &c->y[0];
    int n_in = c->node->n_in;
    bool whole = accel_op_is_int(y);
    if (whole && !f->fi)
        return accel_fail(ACCEL_ENOSUP, "%s has no integer form", c->node->op_type);
    for (int k = 0; k < n_in; k++) {
        const struct accel_array *x = &c->x[k];
        if (!x->data || accel_op_is_int(x) != whole)
            return accel_fail(ACCEL_ENOSUP, "inputs of different types");
        for (int64_t i = 0; i < y->n; i++) {
            int64_t at = accel_op_meet(x, y, y->rank - x->rank, i);
            if (whole) {
                int64_t v = ((const int64_t *)x->data)[at], *r = (int64_t *)y->data + i;
                *r = k == 0 ? v : accel_int_wrap(f->fi(*r, v), y->dtype);
            } else {
                real v = ((const real *)x->data)[at], *r = (real *)y->data + i;
                *r = k == 0 ? v : f->f(*r, v);
            }
        }
    }
    if (f->mean)
        for (int64_t i = 0; i < y->n; i++)
            ((real *)y->data)[i] /= (real)n_in;
    return ACCEL_OK;
}

static real max_r(real a, real b)
{
    return isnan(a) || a > b ? a : b;
}
static int64_t max_i(int64_t a, int64_t b)
{
    return a > b ? a : b;
}
static real min_r(real a, real b)
{
    return isnan(a) || a < b ? a : b;
}
static int64_t min_i(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static real sum_r(real a, real b)
{
    return a + b;
}

static const struct accel_attr_rule old_attrs[] = {{"consumed_inputs", ACCEL_ATTR_INTS, 0}, {0}};
static const char *const lists[] = {"2x3x4", "2x3x4 2x3x4 2x3x4", "2x3x4 3x1", NULL};

#define ROW(onnx, flag, ...)                                                                       \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = 1, .min_in = 1, .max_in = INT_MAX, .min_out = 1,    \
        .max_out = 1, .flags = ACCEL_OP_VARIADIC | (flag), .attrs = old_attrs, .infer = infer,     \
        .links = accel_link_broadcast, .zero = accel_zero_broadcast, .forward = forward,           \
        .family = &(const struct variadic){__VA_ARGS__}, .examples = lists                         \
    }

const struct accel_op accel_op_max = ROW("Max", ACCEL_OP_COMPARES, max_r, max_i, false);
const struct accel_op accel_op_min = ROW("Min", ACCEL_OP_COMPARES, min_r, min_i, false);
const struct accel_op accel_op_sum = ROW("Sum", 0, sum_r, accel_int_add, false);
const struct accel_op accel_op_mean = ROW("Mean", 0, sum_r, NULL, true);
