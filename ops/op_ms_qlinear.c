/* Operators on quantised tensors, domain com.microsoft: a value q of scale s and zero point z means
 * (q - z) s. Every kernel computes on what its inputs mean and rounds once, to the nearest even
 * number, saturating. Zero points may be left out: 0. */
#include <limits.h>
#include <math.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/operand.h"
#include "ops/real.h"

static enum accel_err like_input(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

/* ------------------------------------------------------------------ two inputs */

/* QLinearAdd, QLinearMul: inputs 0 and 3 stretch to each other. */
static enum accel_err q_binary_infer(struct accel_node *n)
{
    int a = accel_operand_rank(n, 0), b = accel_operand_rank(n, 3), rank = a > b ? a : b;
    struct accel_shape y;
    if (a < 0 || b < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 0), NULL);
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a), ib = i - (rank - b);
        struct accel_dim u = ia < 0 ? accel_dim_of(1) : accel_operand_dim(n, 0, ia);
        struct accel_dim v = ib < 0 ? accel_dim_of(1) : accel_operand_dim(n, 3, ib);
        if (!accel_dim_stretch(&y.dim[i], u, v))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the inputs is %lld and %lld", i,
                              (long long)u.n, (long long)v.n);
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ QLinearConcat */

struct concat_params {
    int64_t axis;
};

static enum accel_err concat_parse(struct accel_node *n, int opset)
{
    struct concat_params *p = ACCEL_NEW(&n->graph->model->arena, struct concat_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", 0));
    n->params = p;
    return ACCEL_OK;
}

/* Inputs: scale and zero point of Y, then (X, scale, zero point) again and again. */
static enum accel_err concat_infer(struct accel_node *n)
{
    const struct concat_params *p = n->params;
    int rank = accel_operand_rank(n, 2), axis = 0;
    struct accel_shape y;
    if (rank < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 1), NULL);
    ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    int64_t sum = 0;
    for (int i = 2; i < n->n_in; i += 3) {
        ACCEL_TRY(accel_operand_check_rank(n, i, rank));
        sum = accel_macs_add(sum, accel_operand_dim(n, i, axis).n);
        for (int k = 0; k < rank; k++) {
            struct accel_dim d = accel_operand_dim(n, i, k), before = y.dim[k];
            if (k != axis && !accel_dim_join(&y.dim[k], before, d))
                return accel_fail(ACCEL_ESHAPE, "axis %d is %lld in '%.200s', %lld before it", k,
                                  (long long)d.n, n->in[i]->name, (long long)before.n);
        }
    }
    y.dim[axis] = sum < 0 ? accel_dim_unknown() : accel_dim_of(sum);
    accel_result_set(n, 0, accel_operand_dtype(n, 1), y);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ kernels */

/* A quantised operand: elements in slot, scale and zero point behind it. */
struct q_operand {
    const int64_t *q;
    double scale;
    int64_t zero;
};

/* Scale and zero point from their slots. ENOSUP for other types, ESHAPE for more than one. */
static enum accel_err q_numbers(struct q_operand *o, const struct accel_call *c, int slot)
{
    const struct accel_array *s = &c->x[slot], *z = &c->x[slot + 1];
    bool has_zero = slot + 1 < c->node->n_in && z->data;
    if (accel_op_is_int(s) || (has_zero && !accel_op_is_int(z)))
        return accel_fail(ACCEL_ENOSUP, "scale or zero point of another type");
    if (s->n != 1 || (has_zero && z->n != 1))
        return accel_fail(ACCEL_ESHAPE, "scale '%.200s' has %lld elements", c->node->in[slot]->name,
                          (long long)s->n);
    o->scale = (double)*(const real *)s->data;
    o->zero = has_zero ? *(const int64_t *)z->data : 0;
    return ACCEL_OK;
}

static enum accel_err q_operand(struct q_operand *o, const struct accel_call *c, int slot)
{
    if (!accel_op_is_int(&c->x[slot]))
        return accel_fail(ACCEL_ENOSUP, "an input that is not quantised");
    o->q = c->x[slot].data;
    return q_numbers(o, c, slot + 1);
}

static double q_value(const struct q_operand *o, int64_t i)
{
    return (double)(o->q[i] - o->zero) * o->scale;
}

/* Element i of the output becomes the nearest to v. */
static void q_store(const struct accel_call *c, const struct q_operand *y, int64_t i, double v)
{
    bool sign = c->y[0].dtype == ACCEL_I8;
    double q = rint(v / y->scale) + (double)y->zero;
    ((int64_t *)c->y[0].data)[i] =
        isnan(q) ? 0 : (int64_t)fmin(fmax(q, sign ? -128 : 0), sign ? 127 : 255);
}

static enum accel_err q_binary_forward(const struct accel_call *c)
{
    const struct accel_array *y = &c->y[0];
    bool times = c->node->op->family != NULL;
    struct q_operand a, b, to = {0};
    ACCEL_TRY(q_operand(&a, c, 0));
    ACCEL_TRY(q_operand(&b, c, 3));
    ACCEL_TRY(q_numbers(&to, c, 6));
    for (int64_t i = 0; i < y->n; i++) {
        double u = q_value(&a, accel_op_meet(&c->x[0], y, y->rank - c->x[0].rank, i));
        double v = q_value(&b, accel_op_meet(&c->x[3], y, y->rank - c->x[3].rank, i));
        q_store(c, &to, i, times ? u * v : u + v);
    }
    return ACCEL_OK;
}

struct q_unary {
    double (*f)(double x, double alpha);
};

static double q_sigmoid(double x, double alpha)
{
    (void)alpha;
    return 1 / (1 + exp(-x));
}

static double q_leaky(double x, double alpha)
{
    return x >= 0 ? x : alpha * x;
}

static enum accel_err q_unary_forward(const struct accel_call *c)
{
    const struct q_unary *f = c->node->op->family;
    struct q_operand x, to = {0};
    float alpha;
    ACCEL_TRY(accel_attr_float(&alpha, c->node, "alpha", 0.01f));
    ACCEL_TRY(q_operand(&x, c, 0));
    ACCEL_TRY(q_numbers(&to, c, 3));
    for (int64_t i = 0; i < c->y[0].n; i++)
        q_store(c, &to, i, f->f(q_value(&x, i), (double)alpha));
    return ACCEL_OK;
}

/* Over one axis, or below opset 13 over all from it on. */
static enum accel_err q_softmax_forward(const struct accel_call *c)
{
    const struct accel_array *y = &c->y[0];
    struct q_operand x, to = {0};
    int64_t at, opset, size, step = 1;
    int axis = 0;
    ACCEL_TRY(accel_attr_int(&opset, c->node, "opset", 13));
    ACCEL_TRY(accel_attr_int(&at, c->node, "axis", -1));
    ACCEL_TRY(q_operand(&x, c, 0));
    ACCEL_TRY(q_numbers(&to, c, 3));
    ACCEL_TRY(accel_axis_of(&axis, at, y->rank));
    size = y->dim[axis];
    for (int d = axis + 1; d < y->rank; d++)
        if (opset < 13)
            size *= y->dim[d];
        else
            step *= y->dim[d];
    for (int64_t i = 0; i < y->n; i++) {
        if (i / step % size != 0)
            continue;
        double sum = 0;
        int64_t most = x.q[i];
        for (int64_t k = 1; k < size; k++)
            most = x.q[i + k * step] > most ? x.q[i + k * step] : most;
        for (int64_t k = 0; k < size; k++)
            sum += exp((double)(x.q[i + k * step] - most) * x.scale);
        for (int64_t k = 0; k < size; k++)
            q_store(c, &to, i + k * step, exp((double)(x.q[i + k * step] - most) * x.scale) / sum);
    }
    return ACCEL_OK;
}

static enum accel_err q_concat_forward(const struct accel_call *c)
{
    const struct concat_params *p = c->node->params;
    const struct accel_array *y = &c->y[0];
    struct q_operand x, to = {0};
    int64_t before = 0, step = 1;
    int axis = 0;
    ACCEL_TRY(accel_axis_of(&axis, p->axis, y->rank));
    ACCEL_TRY(q_numbers(&to, c, 0));
    for (int d = axis + 1; d < y->rank; d++)
        step *= y->dim[d];
    for (int s = 2; s + 1 < c->node->n_in; s += 3) {
        const struct accel_array *a = &c->x[s];
        ACCEL_TRY(q_operand(&x, c, s));
        int64_t run = a->dim[axis] * step, row = y->dim[axis] * step;
        for (int64_t i = 0; i < a->n; i++)
            q_store(c, &to, i / run * row + before + i % run, q_value(&x, i));
        before += run;
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule no_attrs[] = {{0}};
static const struct accel_attr_rule alpha_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule axis_attrs[] = {{"axis", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {0}};
static const struct accel_attr_rule softmax_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"opset", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {0}};
static const char *const binary_examples[] = {
    "u8:2x3 scalar u8:scalar u8:3 scalar u8:scalar scalar u8:scalar", NULL};
static const char *const unary_examples[] = {"u8:2x3 scalar u8:scalar scalar u8:scalar", NULL};
static const char *const softmax_examples[] = {
    "u8:2x3 scalar u8:scalar scalar u8:scalar | opset=13", NULL};
static const char *const concat_examples[] = {
    "scalar u8:scalar u8:2x3 scalar u8:scalar u8:2x4 scalar u8:scalar | axis=1", NULL};
static const bool yes = true;

/* The zero points of inputs may be left out; zeros of a scale or zero point are none. */
#define ROW(onnx, least, most, rules, shapes, eg, fwd, hole, kept, what)                           \
    {                                                                                              \
        .name = (onnx), .domain = "com.microsoft", .since = 1, .min_in = (least),                  \
        .max_in = (most), .min_out = 1, .max_out = 1, .attrs = (rules), .infer = (shapes),         \
        .forward = (fwd), .holes = (hole), .keep = (kept), .family = (what), .examples = (eg)      \
    }
const struct accel_op accel_op_ms_qlinearadd =
    ROW("QLinearAdd", 7, 8, no_attrs, q_binary_infer, binary_examples, q_binary_forward, 0x24, 0xf6,
        NULL);
const struct accel_op accel_op_ms_qlinearmul =
    ROW("QLinearMul", 7, 8, no_attrs, q_binary_infer, binary_examples, q_binary_forward, 0x24, 0xf6,
        &yes);
const struct accel_op accel_op_ms_qlinearsigmoid =
    ROW("QLinearSigmoid", 4, 5, no_attrs, like_input, unary_examples, q_unary_forward, 4, 0x1e,
        &(const struct q_unary){q_sigmoid});
const struct accel_op accel_op_ms_qlinearleakyrelu =
    ROW("QLinearLeakyRelu", 4, 5, alpha_attrs, like_input, unary_examples, q_unary_forward, 4, 0x1e,
        &(const struct q_unary){q_leaky});
const struct accel_op accel_op_ms_qlinearsoftmax =
    ROW("QLinearSoftmax", 5, 5, softmax_attrs, like_input, softmax_examples, q_softmax_forward, 4,
        0x1e, NULL);
const struct accel_op accel_op_ms_qlinearconcat = {
    .name = "QLinearConcat",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 3,
    .max_in = INT_MAX,
    .min_out = 1,
    .max_out = 1,
    .attrs = axis_attrs,
    .parse = concat_parse,
    .infer = concat_infer,
    .forward = q_concat_forward,
    .examples = concat_examples,
};
