/* Mod, Pow and BitShift: two inputs as in op_binary.c, but Pow mixes float and integer operands,
 * and the others have an attribute that chooses what is computed. */
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/binary.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

static enum accel_err infer(struct accel_node *n)
{
    return accel_binary_infer(n, accel_operand_dtype(n, 0));
}

/* ------------------------------------------------------------------ Mod */

static enum accel_err mod_parse(struct accel_node *n, int opset)
{
    ACCEL_TRY(accel_binary_parse(n, opset));
    struct accel_binary_params *p = n->params;
    return accel_attr_int(&p->mode, n, "fmod", 0);
}

static enum accel_err mod_forward(const struct accel_call *c)
{
    const struct accel_binary_params *p = c->node->params;
    const struct accel_array *a = &c->x[0], *b = &c->x[1];
    struct accel_array *y = &c->y[0];
    if (accel_op_is_int(a) != accel_op_is_int(b))
        return accel_fail(ACCEL_ENOSUP, "inputs of different types");
    bool whole = accel_op_is_int(a);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t ia = accel_op_meet(a, y, y->rank - a->rank, i);
        int64_t ib = accel_op_meet(b, y, y->rank - b->rank, i);
        if (!whole) {
            double u = (double)((const real *)a->data)[ia], v = (double)((const real *)b->data)[ib];
            double r = fmod(u, v);
            /* without fmod the result has the sign of the divisor */
            if (!p->mode && r != 0 && (r < 0) != (v < 0))
                r += v;
            ((real *)y->data)[i] = (real)r;
            continue;
        }
        int64_t u = ((const int64_t *)a->data)[ia], v = ((const int64_t *)b->data)[ib];
        if (v == 0)
            return accel_fail(ACCEL_ENOSUP, "integer division by zero");
        int64_t r = v == -1 ? 0 : u % v;
        if (!p->mode && r != 0 && (r < 0) != (v < 0))
            r += v;
        ((int64_t *)y->data)[i] = r;
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ Pow */

/* a to the power b modulo 2^64; negative powers are fractions, cut to 0 but for 1 and -1. */
static int64_t power_i(int64_t a, int64_t b)
{
    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
    int64_t r = 1;
    for (; b; b >>= 1) {
        if (b & 1)
            r = accel_int_mul(r, a);
        a = accel_int_mul(a, a);
    }
    return r;
}

static double element(const struct accel_array *a, int64_t i)
{
    return accel_op_is_int(a) ? (double)((const int64_t *)a->data)[i]
                              : (double)((const real *)a->data)[i];
}

static enum accel_err pow_forward(const struct accel_call *c)
{
    const struct accel_array *a = &c->x[0], *b = &c->x[1];
    struct accel_array *y = &c->y[0];
    int a_at, b_at;
    ACCEL_TRY(accel_binary_at(&a_at, &b_at, c));
    bool whole = accel_op_is_int(a) && accel_op_is_int(b);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t ia = accel_op_meet(a, y, a_at, i), ib = accel_op_meet(b, y, b_at, i);
        if (whole) {
            int64_t u = ((const int64_t *)a->data)[ia], v = ((const int64_t *)b->data)[ib];
            ((int64_t *)y->data)[i] = accel_int_wrap(power_i(u, v), y->dtype);
            continue;
        }
        double r = pow(element(a, ia), element(b, ib));
        if (!accel_op_is_int(y)) {
            ((real *)y->data)[i] = (real)r;
            continue;
        }
        if (!(r > -9.2e18 && r < 9.2e18))
            return accel_fail(ACCEL_ENOSUP, "the power %g is no integer", r);
        ((int64_t *)y->data)[i] = accel_int_wrap((int64_t)r, y->dtype);
    }
    return ACCEL_OK;
}

/* 0 to an unknown power may be infinite: a wall, as accel_zero_set() has it. */
static void pow_zero(const struct accel_node *n, struct accel_zero *z)
{
    for (int axis = 0; axis < accel_slot_rank(n, accel_link_out(n, 0)); axis++) {
        float x = accel_zero_stretched(z, 0, axis), power = accel_zero_stretched(z, 1, axis);
        if (x == 0 && isnan(power))
            accel_zero_set(z, accel_link_out(n, 0), axis, INFINITY);
        else if (!isnan(x) && !isnan(power))
            accel_zero_set(z, accel_link_out(n, 0), axis, powf(x, power));
    }
}

/* ------------------------------------------------------------------ BitShift */

static enum accel_err shift_parse(struct accel_node *n, int opset)
{
    ACCEL_TRY(accel_binary_parse(n, opset));
    struct accel_binary_params *p = n->params;
    const char *to;
    ACCEL_TRY(accel_attr_string(&to, n, "direction", ""));
    if (strcmp(to, "LEFT") != 0 && strcmp(to, "RIGHT") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'direction' is \"%.50s\", not LEFT or RIGHT",
                          to);
    p->mode = to[0] == 'L';
    return ACCEL_OK;
}

/* Signed numbers keep their sign on the way right; a shift by the width or more, or by a negative
 * count, moves everything out. */
static int64_t shift(int64_t a, int64_t by, bool left)
{
    if (by < 0 || by > 63)
        return left || a >= 0 ? 0 : -1;
    return left ? (int64_t)((uint64_t)a << by) : a >> by;
}

static enum accel_err shift_forward(const struct accel_call *c)
{
    const struct accel_binary_params *p = c->node->params;
    const struct accel_array *a = &c->x[0], *b = &c->x[1];
    struct accel_array *y = &c->y[0];
    if (!accel_op_is_int(a) || !accel_op_is_int(b))
        return accel_fail(ACCEL_ENOSUP, "BitShift has no float form");
    for (int64_t i = 0; i < y->n; i++) {
        int64_t u = ((const int64_t *)a->data)[accel_op_meet(a, y, y->rank - a->rank, i)];
        int64_t v = ((const int64_t *)b->data)[accel_op_meet(b, y, y->rank - b->rank, i)];
        ((int64_t *)y->data)[i] = accel_int_wrap(shift(u, v, p->mode != 0), y->dtype);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule mod_attrs[] = {{"fmod", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule pow_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"broadcast", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule shift_attrs[] = {
    {"direction", ACCEL_ATTR_STRING, ACCEL_REQUIRED}, {0}};
static const char *const mod_examples[] = {"2x3x4 2x3x4 | fmod=1", "2x3x4 3x1 | fmod=1", NULL};
static const char *const pow_examples[] = {"2x3x4 2x3x4", "2x3x4 3x1", "2x3 1", NULL};
static const char *const shift_examples[] = {"2x3 2x3 | direction=LEFT", "2x3 1 | direction=RIGHT",
                                             NULL};

const struct accel_op accel_op_mod = {
    .name = "Mod",
    .domain = "",
    .since = 10,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_COMPARES,
    .attrs = mod_attrs,
    .parse = mod_parse,
    .infer = infer,
    .links = accel_link_broadcast,
    .zero = accel_zero_broadcast,
    .forward = mod_forward,
    .keep = 1u << 1,
    .examples = mod_examples,
};

const struct accel_op accel_op_pow = {
    .name = "Pow",
    .domain = "",
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .attrs = pow_attrs,
    .parse = accel_binary_parse,
    .infer = infer,
    .links = accel_binary_links,
    .zero = pow_zero,
    .forward = pow_forward,
    .keep = 1u << 1,
    .examples = pow_examples,
};

const struct accel_op accel_op_bitshift = {
    .name = "BitShift",
    .domain = "",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_COMPARES,
    .attrs = shift_attrs,
    .parse = shift_parse,
    .infer = infer,
    .links = accel_link_broadcast,
    .forward = shift_forward,
    .examples = shift_examples,
};
