/* Pools whose output size is given or fixed: the global ones [N C D…] -> [N C 1…], and
 * MaxUnpool. */
#include <math.h>

#include "graph/attr.h"
#include "graph/constprop.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"
#include "ops/window.h"

/* ------------------------------------------------------------------ global */

struct global_params {
    bool channels_last; /* com.microsoft only */
};

static enum accel_err global_parse(struct accel_node *n, int opset)
{
    int64_t last;
    struct global_params *p = ACCEL_NEW(&n->graph->model->arena, struct global_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&last, n, "channels_last", 0));
    p->channels_last = last != 0;
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err global_infer(struct accel_node *n)
{
    const struct global_params *p = n->params;
    int rank = accel_operand_rank(n, 0);
    struct accel_shape y;
    if (rank >= 0 && rank < 2)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a global pool needs 2 or more", rank);
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++)
        y.dim[i] = i == 0 || i == (p->channels_last ? rank - 1 : 1) ? accel_operand_dim(n, 0, i)
                                                                    : accel_dim_of(1);
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

enum global_kind { GLOBAL_AVERAGE, GLOBAL_MAX, GLOBAL_LP };

static enum accel_err global_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    enum global_kind kind = *(const enum global_kind *)c->node->op->family;
    int64_t power, size = y->n ? x->n / y->n : 0;
    ACCEL_TRY(accel_attr_int(&power, c->node, "p", 2));
    for (int64_t i = 0; i < y->n; i++) {
        const real *v = (const real *)x->data + i * size;
        double sum = 0, most = -INFINITY;
        for (int64_t k = 0; k < size; k++) {
            sum += kind == GLOBAL_LP ? pow(fabs((double)v[k]), (double)power) : (double)v[k];
            most = (double)v[k] > most || isnan(v[k]) ? (double)v[k] : most;
        }
        ((real *)y->data)[i] = (real)(kind == GLOBAL_MAX  ? most
                                      : kind == GLOBAL_LP ? pow(sum, 1.0 / (double)power)
                                                          : sum / (double)size);
    }
    return ACCEL_OK;
}

/* Mean of what quantised channels mean (com.microsoft: X, scale, zero point, scale and zero point
 * of Y), rounded to the nearest even number; channels_last: they are the last axis. */
static enum accel_err q_global_forward(const struct accel_call *c)
{
    const struct global_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int64_t of_x, of_y;
    bool last = p->channels_last, sign = y->dtype == ACCEL_I8;
    int64_t C = x->dim[last ? x->rank - 1 : 1], plane = y->n ? x->n / y->n : 0;
    if (!accel_op_is_int(x) || accel_op_is_int(&c->x[1]) || accel_op_is_int(&c->x[3]) ||
        c->x[1].n != 1 || c->x[3].n != 1 || !accel_op_one_int(&of_x, c, 2) ||
        !accel_op_one_int(&of_y, c, 4))
        return accel_fail(ACCEL_ENOSUP, "operands that are not quantised");
    double by = (double)*(const real *)c->x[1].data / (double)*(const real *)c->x[3].data;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t first = last ? i / C * C * plane + i % C : i * plane, sum = 0;
        for (int64_t k = 0; k < plane; k++)
            sum += ((const int64_t *)x->data)[first + k * (last ? C : 1)] - of_x;
        double q = rint((double)sum / (double)plane * by) + (double)of_y;
        ((int64_t *)y->data)[i] =
            isnan(q) ? 0 : (int64_t)fmin(fmax(q, sign ? -128 : 0), sign ? 127 : 255);
    }
    return ACCEL_OK;
}

static void global_links(const struct accel_node *n, struct accel_links *l)
{
    if (accel_slot_rank(n, 0) >= 2)
        accel_link_range(l, 0, accel_link_out(n, 0), 0, 2);
}

/* Mean and largest of equal numbers are that number. */
static void global_zero(const struct accel_node *n, struct accel_zero *z)
{
    bool power = *(const enum global_kind *)n->op->family == GLOBAL_LP;
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, 2, power);
}

/* ------------------------------------------------------------------ MaxUnpool */

static enum accel_err unpool_parse(struct accel_node *n, int opset)
{
    struct accel_window *w = ACCEL_NEW(&n->graph->model->arena, struct accel_window, 1);
    (void)opset;
    if (!w)
        return accel_fail_nomem();
    ACCEL_TRY(accel_window_read(w, n));
    if (!w->kernel)
        return accel_fail(ACCEL_EMODEL, "attribute 'kernel_shape' is missing");
    n->params = w;
    return ACCEL_OK;
}

static enum accel_err unpool_given(struct accel_node *n, int rank)
{
    const int64_t *size;
    int64_t count;
    struct accel_shape y;
    ACCEL_TRY(accel_known_ints(&size, &count, n->in[2]));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    if (size && rank >= 0 && count != rank)
        return accel_fail(ACCEL_ESHAPE, "output_shape has %lld entries for an input of rank %d",
                          (long long)count, rank);
    for (int i = 0; size && i < rank; i++) {
        if (size[i] < 0)
            return accel_fail(ACCEL_ESHAPE, "output_shape holds %lld", (long long)size[i]);
        y.dim[i] = accel_dim_of(size[i]);
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

static enum accel_err unpool_infer(struct accel_node *n)
{
    const struct accel_window *w = n->params;
    int rank = accel_operand_rank(n, 0);
    struct accel_shape y;
    if (rank >= 0 && rank < 3)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a pool needs 3 or more", rank);
    ACCEL_TRY(accel_window_check(w, rank < 0 ? -1 : rank - 2));
    if (accel_operand(n, 2))
        return unpool_given(n, rank);
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++) {
        y.dim[i] = accel_operand_dim(n, 0, i);
        if (i < 2)
            continue;
        /* (in - 1) * stride + kernel - pads */
        int64_t stride = accel_window_stride(w, i - 2), add = w->kernel[i - 2] - stride;
        if (w->pad)
            add -= w->pad[i - 2] + w->pad[w->n_pad / 2 + (size_t)(i - 2)];
        ACCEL_TRY(
            accel_dim_derive(&y.dim[i], accel_operand_symbols(n), y.dim[i], stride, add, 1, 0));
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* Place in Y of the element at `at` of an input of these sizes, in front of whose axes there is
 * more of Y: the sizes are those that the pool was made from, Y may be larger. */
static int64_t placed(int64_t at, const int64_t *size, const struct accel_array *y)
{
    int64_t to = 0, step = 1;
    for (int d = y->rank - 1; d >= 0; d--) {
        int64_t pos = at % size[d];
        if (pos >= y->dim[d])
            return -1;
        to += pos * step;
        step *= y->dim[d];
        at /= size[d];
    }
    return to;
}

static size_t unpool_scratch(const struct accel_call *c)
{
    return (size_t)c->x[0].rank * sizeof(int64_t);
}

/* Y is 0 but where the places say. */
static enum accel_err unpool_forward(const struct accel_call *c)
{
    const struct accel_window *w = c->node->params;
    const struct accel_array *x = &c->x[0], *places = &c->x[1], *y = &c->y[0];
    int64_t *size = c->scratch, total = 1;
    if (accel_op_is_int(x) || !accel_op_is_int(places))
        return accel_fail(ACCEL_ENOSUP, "elements of integers, or places that are none");
    if (places->n != x->n || y->rank != x->rank)
        return accel_fail(ACCEL_ESHAPE, "%lld places for %lld elements", (long long)places->n,
                          (long long)x->n);
    for (int d = 0; d < x->rank; d++) {
        size[d] = x->dim[d];
        if (d >= 2) {
            int64_t stride = accel_window_stride(w, d - 2);
            size[d] = accel_macs_mul(x->dim[d] - 1, stride);
            size[d] = accel_macs_add(size[d], w->kernel[d - 2]);
            if (w->pad)
                size[d] -= w->pad[d - 2] + w->pad[w->n_pad / 2 + (size_t)(d - 2)];
        }
        total = accel_macs_mul(total, size[d]);
    }
    for (int64_t i = 0; i < y->n; i++)
        ((real *)y->data)[i] = 0;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t at = ((const int64_t *)places->data)[i];
        int64_t to = at >= 0 && at < total ? placed(at, size, y) : -1;
        if (to < 0)
            return accel_fail(ACCEL_ESHAPE, "place %lld of %lld", (long long)at, (long long)total);
        ((real *)y->data)[to] = ((const real *)x->data)[i];
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule no_attrs[] = {{0}};
static const struct accel_attr_rule lp_attrs[] = {{"p", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule q_attrs[] = {{"channels_last", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule unpool_attrs[] = {
    {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"pads", ACCEL_ATTR_INTS, 0},
    {"strides", ACCEL_ATTR_INTS, 0},
    {0}};

static const char *const global_examples[] = {"2x3x4x4", "1x2x5", NULL};
static const char *const q_examples[] = {"u8:2x3x4x4 scalar u8:scalar scalar u8:scalar", NULL};
static const char *const unpool_examples[] = {"1x1x2x2 1x1x2x2 | kernel_shape=2,2 strides=2,2",
                                              NULL};

static const enum global_kind is_average = GLOBAL_AVERAGE, is_max = GLOBAL_MAX, is_lp = GLOBAL_LP;

#define FIELDS(onnx, dom, opset, n_in, most, flag, rules, read, shapes, eg, fwd, what)             \
    .name = (onnx), .domain = (dom), .since = (opset), .min_in = (n_in), .max_in = (most),         \
    .min_out = 1, .max_out = 1, .flags = (flag), .attrs = (rules), .parse = (read),                \
    .infer = (shapes), .examples = (eg), .forward = (fwd), .family = (what)
#define GLOBAL(onnx, flag, rules, what)                                                            \
    {                                                                                              \
        FIELDS(onnx, "", 1, 1, 1, flag, rules, global_parse, global_infer, global_examples,        \
               global_forward, what),                                                              \
            .links = global_links, .zero = global_zero                                             \
    }
const struct accel_op accel_op_globalaveragepool =
    GLOBAL("GlobalAveragePool", 0, no_attrs, &is_average);
const struct accel_op accel_op_globalmaxpool =
    GLOBAL("GlobalMaxPool", ACCEL_OP_COMPARES, no_attrs, &is_max);
const struct accel_op accel_op_globallppool = GLOBAL("GlobalLpPool", 0, lp_attrs, &is_lp);
const struct accel_op accel_op_ms_qlinearglobalaveragepool = {
    FIELDS("QLinearGlobalAveragePool", "com.microsoft", 1, 5, 5, 0, q_attrs, global_parse,
           global_infer, q_examples, q_global_forward, NULL),
    .holes = 1u << 2 | 1u << 4, .keep = 0x1e};
const struct accel_op accel_op_maxunpool = {
    FIELDS("MaxUnpool", "", 9, 2, 3, 0, unpool_attrs, unpool_parse, unpool_infer, unpool_examples,
           unpool_forward, NULL),
    .scratch = unpool_scratch,
};
