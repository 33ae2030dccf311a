/* Cast, CastLike: kernels get int64_t or real on either side; what is left to do is to bring the
 * value into the range of the output's type. */
#include <math.h>

#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/op_util.h"
#include "ops/real.h"

struct cast {
    int64_t to;
};

static const struct {
    const char *name;
    enum accel_dtype dtype;
} old_name[] = {{"FLOAT", ACCEL_F32},  {"UINT8", ACCEL_U8},   {"INT8", ACCEL_I8},
                {"UINT16", ACCEL_U16}, {"INT16", ACCEL_I16},  {"INT32", ACCEL_I32},
                {"INT64", ACCEL_I64},  {"BOOL", ACCEL_BOOL},  {"FLOAT16", ACCEL_F16},
                {"DOUBLE", ACCEL_F64}, {"UINT32", ACCEL_U32}, {"UINT64", ACCEL_U64}};

/* Opsets 1 to 5 name the type in words. */
static enum accel_err to_by_name(int64_t *to, const struct accel_node *n)
{
    const char *name;
    ACCEL_TRY(accel_attr_string(&name, n, "to", ""));
    for (size_t i = 0; i < sizeof old_name / sizeof *old_name; i++)
        if (strcmp(name, old_name[i].name) == 0) {
            *to = old_name[i].dtype;
            return ACCEL_OK;
        }
    return accel_fail(ACCEL_EMODEL, "attribute 'to' is '%.100s'", name);
}

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct cast *p = accel_op_params(n, sizeof *p);
    if (!p)
        return ACCEL_ENOMEM;
    const struct accel_attr *a = accel_attr_find(n, "to");
    if (opset < 6 && a && a->kind == ACCEL_ATTR_STRING)
        return to_by_name(&p->to, n);
    ACCEL_TRY(accel_attr_int(&p->to, n, "to", 0));
    if (!a || (!a->ref && (p->to < 1 || p->to >= ACCEL_N_DTYPES)))
        return accel_fail(ACCEL_EMODEL, "attribute 'to' is %lld, which is no type",
                          (long long)p->to);
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct cast *p = n->params;
    return accel_result_like(n, 0, (enum accel_dtype)p->to, accel_operand(n, 0));
}

static enum accel_err like_infer(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 1), accel_operand(n, 0));
}

static int carry(const struct accel_node *n, int axis)
{
    (void)n;
    return axis;
}

/* Only 0 is the same in all types, and only floats have a value at zero. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    if (n->n_out && n->out[0] && accel_dtype_is_float(n->out[0]->dtype))
        accel_zero_range(z, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0), true);
}

static void like_links(const struct accel_node *n, struct accel_links *l)
{
    accel_link_unary(n, l);
    accel_links_seen_all(l, 1);
}

/* Towards zero; what does not fit is the smallest or largest int64_t, NaN the smallest, as x86
 * converts it. */
static int64_t truncated(double v)
{
    if (isnan(v) || v < -9223372036854775808.0)
        return INT64_MIN;
    return v >= 9223372036854775808.0 ? INT64_MAX : (int64_t)v;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    bool from_int = accel_op_is_int(x), to_int = accel_op_is_int(y);
    for (int64_t i = 0; i < y->n; i++) {
        if (from_int && to_int)
            ((int64_t *)y->data)[i] = accel_int_wrap(((const int64_t *)x->data)[i], y->dtype);
        else if (from_int)
            ((real *)y->data)[i] = (real)((const int64_t *)x->data)[i];
        else if (!to_int)
            ((real *)y->data)[i] = ((const real *)x->data)[i];
        else if (y->dtype == ACCEL_BOOL)
            ((int64_t *)y->data)[i] = ((const real *)x->data)[i] != 0;
        else
            ((int64_t *)y->data)[i] =
                accel_int_wrap(truncated((double)((const real *)x->data)[i]), y->dtype);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule cast_attrs[] = {{"to", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                                    {"saturate", ACCEL_ATTR_INT, 0},
                                                    {"round_mode", ACCEL_ATTR_STRING, 0},
                                                    {0}};
static const struct accel_attr_rule like_attrs[] = {
    {"saturate", ACCEL_ATTR_INT, 0}, {"round_mode", ACCEL_ATTR_STRING, 0}, {0}};

const struct accel_op accel_op_cast = {
    .name = "Cast",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .attrs = cast_attrs,
    .parse = parse,
    .infer = infer,
    .links = accel_link_unary,
    .zero = zero,
    .carry = carry,
    .forward = forward,
    .examples = (const char *const[]){"2x3 | to=7", "i64:4 | to=1", NULL},
};

const struct accel_op accel_op_cast_like = {
    .name = "CastLike",
    .domain = "",
    .since = 15,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .attrs = like_attrs,
    .infer = like_infer,
    .links = like_links,
    .zero = zero,
    .forward = forward,
    .examples = (const char *const[]){"2x3 i64:1", NULL},
};
