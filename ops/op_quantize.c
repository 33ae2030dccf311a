/* QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear: the shape of the input, another type.
 * One scale for all, one per position of `axis`, or one per block of `block_size` along it. */
#include <math.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct quantize_params {
    int64_t axis, block;
    enum accel_dtype out; /* UNDEFINED: not said */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct quantize_params *p = ACCEL_NEW(&n->graph->model->arena, struct quantize_params, 1);
    int64_t out;
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", 1));
    ACCEL_TRY(accel_attr_int(&p->block, n, "block_size", 0));
    ACCEL_TRY(accel_attr_int(&out, n, "output_dtype", 0));
    if (p->block < 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'block_size' is %lld", (long long)p->block);
    if (out < 0 || out >= ACCEL_N_DTYPES || !accel_dtype_find((int)out))
        return accel_fail(ACCEL_EMODEL, "attribute 'output_dtype' is %lld", (long long)out);
    p->out = (enum accel_dtype)out;
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err check_scale(const struct accel_node *n)
{
    const struct quantize_params *p = n->params;
    int rank = accel_operand_rank(n, 0), scales = accel_operand_rank(n, 1), axis = 0;
    if (rank < 1 || scales < 1 || (scales == 1 && accel_operand_dim(n, 1, 0).n == 1))
        return ACCEL_OK;
    ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    struct accel_dim x = accel_operand_dim(n, 0, axis);
    if (scales == 1 && !p->block) {
        struct accel_dim s = accel_operand_dim(n, 1, 0);
        if (accel_dim_differs(s, x))
            return accel_fail(ACCEL_ESHAPE, "scale '%.200s' has %lld elements, axis %d is %lld",
                              n->in[1]->name, (long long)s.n, axis, (long long)x.n);
        return ACCEL_OK;
    }
    if (scales != rank)
        return accel_fail(ACCEL_ESHAPE, "scale '%.200s' of rank %d for an input of rank %d",
                          n->in[1]->name, scales, rank);
    for (int i = 0; i < rank; i++) {
        struct accel_dim s = accel_operand_dim(n, 1, i), want = accel_operand_dim(n, 0, i);
        if (i == axis && accel_dim_known(want) && p->block > 0)
            want = accel_dim_of(want.n / p->block + (want.n % p->block != 0));
        if ((i != axis || p->block > 0) && accel_dim_differs(s, want))
            return accel_fail(ACCEL_ESHAPE, "axis %d of scale '%.200s' is %lld instead of %lld", i,
                              n->in[1]->name, (long long)s.n, (long long)want.n);
    }
    return ACCEL_OK;
}

static enum accel_err quantize_infer(struct accel_node *n)
{
    const struct quantize_params *p = n->params;
    enum accel_dtype dtype = p->out;
    if (dtype == ACCEL_UNDEFINED)
        dtype = accel_operand(n, 2) ? accel_operand_dtype(n, 2) : ACCEL_U8;
    ACCEL_TRY(check_scale(n));
    return accel_result_like(n, 0, dtype, accel_operand(n, 0));
}

static enum accel_err dequantize_infer(struct accel_node *n)
{
    const struct quantize_params *p = n->params;
    enum accel_dtype dtype = p->out != ACCEL_UNDEFINED ? p->out : accel_operand_dtype(n, 1);
    ACCEL_TRY(check_scale(n));
    return accel_result_like(n, 0, dtype, accel_operand(n, 0));
}

static int carry(const struct accel_node *n, int axis)
{
    return axis >= 0 && axis < accel_operand_rank(n, 0) ? axis : -1;
}

static enum accel_err dynamic_infer(struct accel_node *n)
{
    ACCEL_TRY(accel_result_like(n, 0, ACCEL_U8, accel_operand(n, 0)));
    ACCEL_TRY(accel_result_dims(n, 1, ACCEL_F32, 0, NULL));
    return accel_result_dims(n, 2, ACCEL_U8, 0, NULL);
}

/* ------------------------------------------------------------------ links */

/* Axis `axis` of X and Y, and scale and zero point where they lie along it. */
static void link_axis(struct accel_links *l, int axis, bool scaled)
{
    const struct accel_node *n = l->node;
    struct accel_axis at[4] = {{0, axis}, {accel_link_out(n, 0), axis}};
    int count = 2;
    for (int i = 1; scaled && i < 3; i++)
        if (accel_operand_rank(n, i) == 1 && accel_operand_dim(n, i, 0).n != 1)
            at[count++] = (struct accel_axis){i, 0};
    accel_links_axes(l, count, at);
}

/* Scales in a grid: along the axis whole blocks stand or fall with their scales, the other axes go
 * index by index. */
static void link_blocks(struct accel_links *l, int rank, int along, int64_t block)
{
    const struct accel_node *n = l->node;
    int64_t size = accel_slot_size(n, 0, along);
    int zero = accel_link_in(n, 2), y = accel_link_out(n, 0);
    if (accel_operand_rank(n, 1) != rank || (zero >= 0 && accel_operand_rank(n, 2) != rank))
        return;
    for (int axis = 0; axis < rank; axis++)
        if (axis != along)
            accel_links_axes(
                l, 4, (const struct accel_axis[]){{0, axis}, {y, axis}, {1, axis}, {zero, axis}});
    if (size > 0 && size % block == 0)
        accel_links_tie(l, size / block, 4,
                        (const struct accel_side[]){
                            accel_side_rep(0, along, block), accel_side_rep(y, along, block),
                            accel_side_whole(1, along), accel_side_whole(zero, along)});
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    const struct quantize_params *p = n->params;
    int rank = accel_slot_rank(n, 0), along = -1;
    if (p->block && rank > 0 && !accel_axis_of(&along, p->axis, rank))
        link_blocks(l, rank, along, p->block);
    if (p->block || accel_operand_rank(n, 1) > 1 || accel_operand_rank(n, 2) > 1)
        return;
    if (rank > 0 && accel_operand_rank(n, 1) == 1 && accel_operand_dim(n, 1, 0).n != 1 &&
        accel_axis_of(&along, p->axis, rank))
        return;
    for (int axis = 0; axis < rank; axis++)
        link_axis(l, axis, axis == along);
    for (int i = 1; i < 3; i++)
        if (accel_operand_dim(n, i, 0).n == 1)
            accel_links_seen(l, i, 0);
}

/* 0 of a quantised value is its zero point; that is what the masker writes into a constant. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    bool stored =
        accel_dtype_is_float(accel_operand_dtype(n, 0)) ? false : accel_zero_is_constant(z, 0);
    for (int axis = 0; axis < accel_slot_rank(n, 0); axis++)
        if (stored)
            accel_zero_set(z, accel_link_out(n, 0), axis, 0);
        else
            accel_zero_copy0(z, 0, axis, accel_link_out(n, 0), axis);
}

/* ------------------------------------------------------------------ kernels */

/* Where element i finds its scale. */
struct scales {
    int64_t n, step, size, block, blocks; /* of the axis: elements behind it, its size */
};

static enum accel_err scales_of(struct scales *s, const struct accel_call *c)
{
    const struct quantize_params *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    int axis = 0;
    *s = (struct scales){c->x[1].n, 1, 1, p->block, 1};
    if (s->n == 1)
        return ACCEL_OK;
    ACCEL_TRY(accel_axis_of(&axis, p->axis, x->rank));
    for (int d = axis + 1; d < x->rank; d++)
        s->step *= x->dim[d];
    s->size = x->dim[axis];
    if (s->block > 0)
        s->blocks = (s->size + s->block - 1) / s->block;
    if (s->n != (s->block > 0 ? x->n / s->size * s->blocks : s->size))
        return accel_fail(ACCEL_ESHAPE, "%lld scales for an axis of %lld", (long long)s->n,
                          (long long)s->size);
    return ACCEL_OK;
}

static int64_t scale_at(const struct scales *s, int64_t i)
{
    if (s->n == 1)
        return 0;
    int64_t k = i / s->step % s->size;
    return s->block > 0 ? (i / s->step / s->size * s->blocks + k / s->block) * s->step + i % s->step
                        : k;
}

/* The zero point of scale k; real where the stored type is a small float. */
static double zero_point(const struct accel_call *c, int64_t k)
{
    const struct accel_array *z = c->node->n_in > 2 && c->x[2].data ? &c->x[2] : NULL;
    if (!z || k >= z->n)
        return 0;
    return accel_op_is_int(z) ? (double)((const int64_t *)z->data)[k]
                              : (double)((const real *)z->data)[k];
}

/* Limits of an integer type. */
static void limits(double *lo, double *hi, enum accel_dtype dtype)
{
    const struct accel_dtype_info *t = accel_dtype_find((int)dtype);
    *lo = t->is_signed ? -ldexp(1, t->bits - 1) : 0;
    *hi = (t->is_signed ? ldexp(1, t->bits - 1) : ldexp(1, t->bits)) - 1;
}

/* round(x / scale) to even, plus the zero point, saturated. */
static enum accel_err quantize_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct scales s;
    double lo, hi;
    ACCEL_TRY(scales_of(&s, c));
    if (!accel_op_is_int(y))
        return accel_fail(ACCEL_ENOSUP, "to %s", accel_dtype_find((int)y->dtype)->name);
    limits(&lo, &hi, y->dtype);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t k = scale_at(&s, i);
        double v = accel_op_is_int(x) ? (double)((const int64_t *)x->data)[i]
                                      : (double)((const real *)x->data)[i];
        real by = ((const real *)c->x[1].data)[k];
        double q = rint((double)(real)(v / (double)by)) + zero_point(c, k);
        ((int64_t *)y->data)[i] = isnan(q) ? 0 : (int64_t)fmin(fmax(q, lo), hi);
    }
    return ACCEL_OK;
}

static enum accel_err dequantize_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    struct scales s;
    ACCEL_TRY(scales_of(&s, c));
    for (int64_t i = 0; i < x->n; i++) {
        int64_t k = scale_at(&s, i);
        double v = accel_op_is_int(x) ? (double)((const int64_t *)x->data)[i]
                                      : (double)((const real *)x->data)[i];
        ((real *)c->y[0].data)[i] =
            (real)((v - zero_point(c, k)) * (double)((const real *)c->x[1].data)[k]);
    }
    return ACCEL_OK;
}

/* Scale and zero point of [min(x, 0), max(x, 0)] on uint8, then the quantised elements. */
static enum accel_err dynamic_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    double lo = 0, hi = 0;
    for (int64_t i = 0; i < x->n; i++) {
        double v = (double)((const real *)x->data)[i];
        lo = v < lo ? v : lo;
        hi = v > hi ? v : hi;
    }
    real scale = (real)((hi - lo) / 255);
    double zero = scale != 0 ? rint(fmin(fmax(-lo / (double)scale, 0), 255)) : 0;
    *(real *)c->y[1].data = scale;
    *(int64_t *)c->y[2].data = (int64_t)zero;
    for (int64_t i = 0; i < x->n; i++) {
        double v = (double)((const real *)x->data)[i];
        double q = scale != 0 ? rint((double)(real)(v / (double)scale)) + zero : 0;
        ((int64_t *)c->y[0].data)[i] = (int64_t)fmin(fmax(q, 0), 255);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule quantize_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0},      {"block_size", ACCEL_ATTR_INT, 0},
    {"saturate", ACCEL_ATTR_INT, 0},  {"output_dtype", ACCEL_ATTR_INT, 0},
    {"precision", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule dequantize_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                          {"block_size", ACCEL_ATTR_INT, 0},
                                                          {"output_dtype", ACCEL_ATTR_INT, 0},
                                                          {0}};
static const struct accel_attr_rule axis_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"block_size", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule no_attrs[] = {{0}};
static const char *const examples[] = {"2x3x4 scalar scalar", "2x3x4 3 3 | axis=1",
                                       "2x8 2x2 2x2 | axis=1 block_size=4", NULL};
static const char *const dynamic_examples[] = {"2x3x4", NULL};

#define ROW(onnx, dom, opset, flag, rules, shapes, passes, fwd)                                    \
    {                                                                                              \
        .name = (onnx), .domain = (dom), .since = (opset), .min_in = 2, .max_in = 3, .min_out = 1, \
        .max_out = 1, .flags = (flag), .attrs = (rules), .parse = parse, .infer = (shapes),        \
        .carry = (passes), .links = links, .zero = zero, .forward = (fwd),                         \
        .keep = 1u << 1 | 1u << 2, .examples = examples                                            \
    }
const struct accel_op accel_op_quantizelinear =
    ROW("QuantizeLinear", "", 10, ACCEL_OP_COMPARES, quantize_attrs, quantize_infer, NULL,
        quantize_forward);
const struct accel_op accel_op_dequantizelinear = ROW(
    "DequantizeLinear", "", 10, 0, dequantize_attrs, dequantize_infer, carry, dequantize_forward);
const struct accel_op accel_op_ms_quantizelinear =
    ROW("QuantizeLinear", "com.microsoft", 1, ACCEL_OP_COMPARES, axis_attrs, quantize_infer, NULL,
        quantize_forward);
const struct accel_op accel_op_ms_dequantizelinear =
    ROW("DequantizeLinear", "com.microsoft", 1, 0, axis_attrs, dequantize_infer, carry,
        dequantize_forward);

const struct accel_op accel_op_dynamicquantizelinear = {
    .name = "DynamicQuantizeLinear",
    .domain = "",
    .since = 11,
    .min_in = 1,
    .max_in = 1,
    .min_out = 3,
    .max_out = 3,
    .flags = ACCEL_OP_COMPARES,
    .attrs = no_attrs,
    .infer = dynamic_infer,
    .forward = dynamic_forward,
    .examples = dynamic_examples,
};
