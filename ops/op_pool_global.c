/* Pools whose output size is given or fixed: the global ones [N C D…] -> [N C 1…], MaxUnpool, and
 * the two pools over regions of interest. */
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

/* ------------------------------------------------------------------ regions of interest */

struct roi_params {
    int64_t height, width;
};

static enum accel_err roi_parsed(struct accel_node *n, int64_t height, int64_t width)
{
    struct roi_params *p = ACCEL_NEW(&n->graph->model->arena, struct roi_params, 1);
    if (!p)
        return accel_fail_nomem();
    if (height < 1 || width < 1)
        return accel_fail(ACCEL_EMODEL, "the output size is %lld x %lld", (long long)height,
                          (long long)width);
    *p = (struct roi_params){height, width};
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err roi_pool_parse(struct accel_node *n, int opset)
{
    const int64_t *size;
    size_t count;
    (void)opset;
    ACCEL_TRY(accel_attr_ints(&size, &count, n, "pooled_shape"));
    if (count != 2)
        return accel_fail(ACCEL_EMODEL, "attribute 'pooled_shape' has %zu entries instead of 2",
                          count);
    return roi_parsed(n, size[0], size[1]);
}

static enum accel_err roi_align_parse(struct accel_node *n, int opset)
{
    int64_t height, width;
    (void)opset;
    ACCEL_TRY(accel_attr_int(&height, n, "output_height", 1));
    ACCEL_TRY(accel_attr_int(&width, n, "output_width", 1));
    return roi_parsed(n, height, width);
}

/* [R C height width] for R regions, axis 0 of input 1. */
static enum accel_err roi_infer(struct accel_node *n)
{
    const struct roi_params *p = n->params;
    ACCEL_TRY(accel_operand_check_rank(n, 0, 4));
    ACCEL_TRY(accel_operand_check_rank(n, 1, 2));
    struct accel_dim y[4] = {accel_operand_dim(n, 1, 0), accel_operand_dim(n, 0, 1),
                             accel_dim_of(p->height), accel_dim_of(p->width)};
    return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 4, y);
}

static const struct accel_attr_rule no_attrs[] = {{0}};
static const struct accel_attr_rule lp_attrs[] = {{"p", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule q_attrs[] = {{"channels_last", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule unpool_attrs[] = {
    {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"pads", ACCEL_ATTR_INTS, 0},
    {"strides", ACCEL_ATTR_INTS, 0},
    {0}};
static const struct accel_attr_rule roi_pool_attrs[] = {
    {"pooled_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED}, {"spatial_scale", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule roi_align_attrs[] = {
    {"coordinate_transformation_mode", ACCEL_ATTR_STRING, 0},
    {"mode", ACCEL_ATTR_STRING, 0},
    {"output_height", ACCEL_ATTR_INT, 0},
    {"output_width", ACCEL_ATTR_INT, 0},
    {"sampling_ratio", ACCEL_ATTR_INT, 0},
    {"spatial_scale", ACCEL_ATTR_FLOAT, 0},
    {0}};

static const char *const global_examples[] = {"2x3x4x4", "1x2x5", NULL};
static const char *const q_examples[] = {"u8:2x3x4x4 scalar u8:scalar scalar u8:scalar", NULL};
static const char *const unpool_examples[] = {"1x1x2x2 1x1x2x2 | kernel_shape=2,2 strides=2,2",
                                              NULL};
static const char *const roi_pool_examples[] = {"1x3x8x8 2x5 | pooled_shape=2,2", NULL};
static const char *const roi_align_examples[] = {"1x3x8x8 2x4 2 | output_height=2 output_width=3",
                                                 NULL};

static const enum global_kind is_average = GLOBAL_AVERAGE, is_max = GLOBAL_MAX, is_lp = GLOBAL_LP;

#define FIELDS(onnx, dom, opset, n_in, most, flag, rules, read, shapes, eg, fwd, what)             \
    .name = (onnx), .domain = (dom), .since = (opset), .min_in = (n_in), .max_in = (most),         \
    .min_out = 1, .max_out = 1, .flags = (flag), .attrs = (rules), .parse = (read),                \
    .infer = (shapes), .examples = (eg), .forward = (fwd), .family = (what)
#define ROW(...)                                                                                   \
    {                                                                                              \
        FIELDS(__VA_ARGS__)                                                                        \
    }
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
const struct accel_op accel_op_maxunpool =
    ROW("MaxUnpool", "", 9, 2, 3, 0, unpool_attrs, unpool_parse, unpool_infer, unpool_examples,
        NULL, NULL);
const struct accel_op accel_op_maxroipool =
    ROW("MaxRoiPool", "", 1, 2, 2, ACCEL_OP_COMPARES, roi_pool_attrs, roi_pool_parse, roi_infer,
        roi_pool_examples, NULL, NULL);
const struct accel_op accel_op_roialign =
    ROW("RoiAlign", "", 10, 3, 3, 0, roi_align_attrs, roi_align_parse, roi_infer,
        roi_align_examples, NULL, NULL);
