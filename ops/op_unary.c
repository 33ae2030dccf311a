/* Element-wise operators of one input without parameters: y[i] = f(x[i]).
 *
 * The members differ by one function on `real` and one on int64_t. An operator that ONNX defines
 * for floats only has no integer function; its kernel then answers ENOSUP for integers, which
 * constant propagation takes as "not known". Those with attributes are in op_activation.c. */
#include <math.h>

#include "base/threads.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct unary {
    real (*f)(real x);
    int64_t (*fi)(int64_t x);
    enum accel_dtype out; /* UNDEFINED: that of the input */
};

#define FLOAT_COST 8 /* operations of a function, roughly */

static enum accel_err infer(struct accel_node *n)
{
    const struct unary *u = n->op->family;
    return accel_result_like(n, 0, u->out != ACCEL_UNDEFINED ? u->out : accel_operand_dtype(n, 0),
                             accel_operand(n, 0));
}

/* Elements from … to - 1 of a float operand. */
static void run_floats(void *ctx, int64_t from, int64_t to)
{
    const struct accel_call *c = ctx;
    const struct unary *u = c->node->op->family;
    const real *in = c->x[0].data;
    if (u->out == ACCEL_BOOL) {
        int64_t *out = c->y[0].data;
        for (int64_t i = from; i < to; i++)
            out[i] = u->f(in[i]) != 0;
        return;
    }
    real *out = c->y[0].data;
    for (int64_t i = from; i < to; i++)
        out[i] = u->f(in[i]);
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct unary *u = c->node->op->family;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    if (accel_op_is_int(x)) {
        if (!u->fi)
            return accel_fail(ACCEL_ENOSUP, "%s has no integer form", c->node->op_type);
        const int64_t *in = x->data;
        int64_t *out = y->data;
        for (int64_t i = 0; i < x->n; i++)
            out[i] = accel_int_wrap(u->fi(in[i]), y->dtype);
        return ACCEL_OK;
    }
    if (!u->f)
        return accel_fail(ACCEL_ENOSUP, "%s has no float form", c->node->op_type);
    struct accel_call call = *c;
    accel_threads_run(run_floats, &call, x->n, FLOAT_COST);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ functions on int64_t; negation
 * goes through uint64_t, where the smallest number is its own negative instead of undefined. */

static int64_t neg_i(int64_t x)
{
    return (int64_t)(0 - (uint64_t)x);
}
static int64_t abs_i(int64_t x)
{
    return x < 0 ? neg_i(x) : x;
}
static int64_t sign_i(int64_t x)
{
    return (x > 0) - (x < 0);
}
static int64_t not_i(int64_t x)
{
    return x == 0;
}
static int64_t bitnot_i(int64_t x)
{
    return ~x;
}

/* ------------------------------------------------------------------ functions on real */

static real neg(real x)
{
    return -x;
}
static real absolute(real x)
{
    return (real)fabs((double)x);
}
static real sign(real x)
{
    return isnan(x) ? x : (real)((x > 0) - (x < 0));
}
static real floor_r(real x)
{
    return (real)floor((double)x);
}
static real ceil_r(real x)
{
    return (real)ceil((double)x);
}
static real round_even(real x)
{
    return (real)nearbyint((double)x);
}
static real sqrt_r(real x)
{
    return (real)sqrt((double)x);
}
static real exp_r(real x)
{
    return (real)exp((double)x);
}
static real log_r(real x)
{
    return (real)log((double)x);
}
static real reciprocal(real x)
{
    return 1 / x;
}
static real erf_r(real x)
{
    return (real)erf((double)x);
}
static real sin_r(real x)
{
    return (real)sin((double)x);
}
static real cos_r(real x)
{
    return (real)cos((double)x);
}
static real tan_r(real x)
{
    return (real)tan((double)x);
}
static real asin_r(real x)
{
    return (real)asin((double)x);
}
static real acos_r(real x)
{
    return (real)acos((double)x);
}
static real atan_r(real x)
{
    return (real)atan((double)x);
}
static real sinh_r(real x)
{
    return (real)sinh((double)x);
}
static real cosh_r(real x)
{
    return (real)cosh((double)x);
}
static real tanh_r(real x)
{
    return (real)tanh((double)x);
}
static real asinh_r(real x)
{
    return (real)asinh((double)x);
}
static real acosh_r(real x)
{
    return (real)acosh((double)x);
}
static real atanh_r(real x)
{
    return (real)atanh((double)x);
}
static real softplus(real x)
{
    /* log(1 + e^x) without overflow for large x */
    double v = (double)x;
    return (real)(v > 0 ? v + log1p(exp(-v)) : log1p(exp(v)));
}
static real softsign(real x)
{
    return x / (1 + absolute(x));
}
static real hard_swish(real x)
{
    double gate = (double)x / 6 + 0.5;
    return (real)((double)x * (gate < 0 ? 0 : gate > 1 ? 1 : gate));
}
static real mish(real x)
{
    return (real)((double)x * tanh((double)softplus(x)));
}
static real is_nan(real x)
{
    return isnan(x) ? 1 : 0;
}

/* ------------------------------------------------------------------ rows */

static const struct accel_attr_rule no_attrs[] = {{0}};
/* Opset 1 let a node write over its inputs. */
static const struct accel_attr_rule old_attrs[] = {{"consumed_inputs", ACCEL_ATTR_INTS, 0}, {0}};
static const char *const any_values[] = {"2x3x4", "5", NULL};

#define ROW(onnx, opset, rules, flag, ...)                                                         \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = (opset), .min_in = 1, .max_in = 1, .min_out = 1,    \
        .max_out = 1, .flags = (flag), .attrs = (rules), .infer = infer,                           \
        .links = accel_link_unary, .zero = accel_zero_unary, .forward = forward,                   \
        .family = &(const struct unary){__VA_ARGS__}, .examples = any_values                       \
    }

const struct accel_op accel_op_abs = ROW("Abs", 1, old_attrs, 0, absolute, abs_i, 0);
const struct accel_op accel_op_neg = ROW("Neg", 1, old_attrs, 0, neg, neg_i, 0);
const struct accel_op accel_op_sign = ROW("Sign", 9, no_attrs, ACCEL_OP_COMPARES, sign, sign_i, 0);
const struct accel_op accel_op_floor = ROW("Floor", 1, old_attrs, ACCEL_OP_COMPARES, floor_r, 0, 0);
const struct accel_op accel_op_ceil = ROW("Ceil", 1, old_attrs, ACCEL_OP_COMPARES, ceil_r, 0, 0);
const struct accel_op accel_op_round =
    ROW("Round", 11, no_attrs, ACCEL_OP_COMPARES, round_even, 0, 0);
const struct accel_op accel_op_sqrt = ROW("Sqrt", 1, old_attrs, 0, sqrt_r, 0, 0);
const struct accel_op accel_op_exp = ROW("Exp", 1, old_attrs, 0, exp_r, 0, 0);
const struct accel_op accel_op_log = ROW("Log", 1, old_attrs, 0, log_r, 0, 0);
const struct accel_op accel_op_reciprocal = ROW("Reciprocal", 1, old_attrs, 0, reciprocal, 0, 0);
const struct accel_op accel_op_erf = ROW("Erf", 9, no_attrs, 0, erf_r, 0, 0);
const struct accel_op accel_op_sin = ROW("Sin", 7, no_attrs, 0, sin_r, 0, 0);
const struct accel_op accel_op_cos = ROW("Cos", 7, no_attrs, 0, cos_r, 0, 0);
const struct accel_op accel_op_tan = ROW("Tan", 7, no_attrs, 0, tan_r, 0, 0);
const struct accel_op accel_op_asin = ROW("Asin", 7, no_attrs, 0, asin_r, 0, 0);
const struct accel_op accel_op_acos = ROW("Acos", 7, no_attrs, 0, acos_r, 0, 0);
const struct accel_op accel_op_atan = ROW("Atan", 7, no_attrs, 0, atan_r, 0, 0);
const struct accel_op accel_op_sinh = ROW("Sinh", 9, no_attrs, 0, sinh_r, 0, 0);
const struct accel_op accel_op_cosh = ROW("Cosh", 9, no_attrs, 0, cosh_r, 0, 0);
const struct accel_op accel_op_tanh = ROW("Tanh", 1, old_attrs, 0, tanh_r, 0, 0);
const struct accel_op accel_op_asinh = ROW("Asinh", 9, no_attrs, 0, asinh_r, 0, 0);
const struct accel_op accel_op_acosh = ROW("Acosh", 9, no_attrs, 0, acosh_r, 0, 0);
const struct accel_op accel_op_atanh = ROW("Atanh", 9, no_attrs, 0, atanh_r, 0, 0);
const struct accel_op accel_op_softplus = ROW("Softplus", 1, no_attrs, 0, softplus, 0, 0);
const struct accel_op accel_op_softsign = ROW("Softsign", 1, no_attrs, 0, softsign, 0, 0);
const struct accel_op accel_op_hardswish =
    ROW("HardSwish", 14, no_attrs, ACCEL_OP_COMPARES, hard_swish, 0, 0);
const struct accel_op accel_op_mish = ROW("Mish", 18, no_attrs, 0, mish, 0, 0);
const struct accel_op accel_op_isnan =
    ROW("IsNaN", 9, no_attrs, ACCEL_OP_COMPARES, is_nan, 0, ACCEL_BOOL);
const struct accel_op accel_op_not =
    ROW("Not", 1, no_attrs, ACCEL_OP_COMPARES, 0, not_i, ACCEL_BOOL);
const struct accel_op accel_op_bitwisenot = ROW("BitwiseNot", 18, no_attrs, 0, 0, bitnot_i, 0);
