/* Pools over regions of interest: X [N C H W] and R regions -> Y [R C height width].
 *
 * MaxRoiPool rounds a region and its bins to whole pixels, RoiAlign looks between them: each bin is
 * the mean, or the largest, of a grid of samples. Sources: the ONNX pages; Girshick, "Fast R-CNN",
 * 2015; He et al., "Mask R-CNN", 2017. */
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

#define MAX_GRID 65536 /* samples along one side of a bin */

struct roi_params {
    int64_t height, width, ratio; /* samples along a side of a bin; 0: one per pixel */
    bool half, max;               /* pixel centres lie at .5; the largest sample */
    float scale;                  /* of coordinates */
};

static enum accel_err roi_parsed(struct accel_node *n, int64_t height, int64_t width)
{
    struct roi_params *p = ACCEL_NEW(&n->graph->model->arena, struct roi_params, 1);
    if (!p)
        return accel_fail_nomem();
    if (height < 1 || width < 1)
        return accel_fail(ACCEL_EMODEL, "the output size is %lld x %lld", (long long)height,
                          (long long)width);
    *p = (struct roi_params){.height = height, .width = width};
    n->params = p;
    return accel_attr_float(&p->scale, n, "spatial_scale", 1);
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
    const char *mode, *corner;
    ACCEL_TRY(accel_attr_int(&height, n, "output_height", 1));
    ACCEL_TRY(accel_attr_int(&width, n, "output_width", 1));
    ACCEL_TRY(roi_parsed(n, height, width));
    struct roi_params *p = n->params;
    ACCEL_TRY(accel_attr_int(&p->ratio, n, "sampling_ratio", 0));
    ACCEL_TRY(accel_attr_string(&mode, n, "mode", "avg"));
    ACCEL_TRY(accel_attr_string(&corner, n, "coordinate_transformation_mode",
                                opset < 16 ? "output_half_pixel" : "half_pixel"));
    p->max = strcmp(mode, "max") == 0;
    p->half = strcmp(corner, "half_pixel") == 0;
    if (p->ratio < 0 || p->ratio > MAX_GRID)
        return accel_fail(ACCEL_EMODEL, "attribute 'sampling_ratio' is %lld", (long long)p->ratio);
    if (!p->max && strcmp(mode, "avg") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'mode' is '%.100s'", mode);
    if (!p->half && strcmp(corner, "output_half_pixel") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'coordinate_transformation_mode' is '%.100s'",
                          corner);
    return ACCEL_OK;
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

/* Channels are looked at one by one. */
static void roi_links(const struct accel_node *n, struct accel_links *l)
{
    accel_links_pair(l, 0, 1, accel_link_out(n, 0), 1);
}

static void roi_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_copy0(z, 0, 1, accel_link_out(n, 0), 1);
}

/* ------------------------------------------------------------------ kernels */

static enum accel_err image_of(const real **out, const struct accel_array *x, double batch,
                               int64_t roi)
{
    if (!(batch >= 0 && batch < (double)x->dim[0]))
        return accel_fail(ACCEL_ESHAPE, "region %lld lies in image %g of %lld", (long long)roi,
                          batch, (long long)x->dim[0]);
    *out = (const real *)x->data + (int64_t)batch * x->dim[1] * x->dim[2] * x->dim[3];
    return ACCEL_OK;
}

/* Pixels [*lo, *hi) of bin `at`. */
static void bin_range(int64_t *lo, int64_t *hi, double start, double size, int64_t at,
                      int64_t pixels)
{
    double from = floor((double)at * size) + start, to = ceil((double)(at + 1) * size) + start;
    *lo = (int64_t)fmin(fmax(from, 0), (double)pixels);
    *hi = (int64_t)fmin(fmax(to, 0), (double)pixels);
}

/* Regions [R 5]: image, x1, y1, x2, y2, corners included. A bin without pixels is 0. */
static enum accel_err roi_pool_forward(const struct accel_call *c)
{
    const struct roi_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *r = &c->x[1], *y = &c->y[0];
    int64_t H = x->dim[2], W = x->dim[3], lo[2], hi[2];
    const real *image;
    if (accel_op_is_int(x) || accel_op_is_int(r))
        return accel_fail(ACCEL_ENOSUP, "regions of integers");
    if (r->dim[1] != 5)
        return accel_fail(ACCEL_ESHAPE, "regions of %lld numbers, not 5", (long long)r->dim[1]);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t w = i % p->width, h = i / p->width % p->height;
        int64_t ch = i / p->width / p->height % y->dim[1], n = i / p->width / p->height / y->dim[1];
        const real *roi = (const real *)r->data + n * 5;
        double at[4], most = -INFINITY;
        ACCEL_TRY(image_of(&image, x, (double)roi[0], n));
        for (int k = 0; k < 4; k++)
            at[k] = round((double)roi[1 + k] * (double)p->scale);
        bin_range(&lo[0], &hi[0], at[1], fmax(at[3] - at[1] + 1, 1) / (double)p->height, h, H);
        bin_range(&lo[1], &hi[1], at[0], fmax(at[2] - at[0] + 1, 1) / (double)p->width, w, W);
        for (int64_t a = lo[0]; a < hi[0]; a++)
            for (int64_t b = lo[1]; b < hi[1]; b++)
                most = fmax(most, (double)image[(ch * H + a) * W + b]);
        ((real *)y->data)[i] = (real)(hi[0] > lo[0] && hi[1] > lo[1] ? most : 0);
    }
    return ACCEL_OK;
}

/* Two neighbours along an axis and the weight of the upper one; false: outside of the image. */
static bool between(int64_t at[2], double *part, double v, int64_t size)
{
    if (!(v >= -1 && v <= (double)size))
        return false;
    v = fmax(v, 0);
    at[0] = (int64_t)v;
    at[1] = at[0] + 1;
    if (at[0] >= size - 1) {
        at[0] = at[1] = size - 1;
        v = (double)at[0];
    }
    *part = v - (double)at[0];
    return true;
}

/* A bin in the plane: start and size along y and x, samples along both. */
struct bin {
    double start[2], size[2];
    int64_t grid[2];
};

static double bin_value(const real *plane, int64_t H, int64_t W, const struct bin *b, bool max)
{
    double sum = 0, most = -INFINITY, fy, fx;
    int64_t ay[2], ax[2];
    for (int64_t j = 0; j < b->grid[0]; j++)
        for (int64_t i = 0; i < b->grid[1]; i++) {
            double v = b->start[0] + ((double)j + 0.5) * b->size[0] / (double)b->grid[0];
            double u = b->start[1] + ((double)i + 0.5) * b->size[1] / (double)b->grid[1];
            if (!between(ay, &fy, v, H) || !between(ax, &fx, u, W)) {
                most = fmax(most, 0);
                continue;
            }
            double a = (1 - fy) * (1 - fx) * (double)plane[ay[0] * W + ax[0]];
            double d = (1 - fy) * fx * (double)plane[ay[0] * W + ax[1]];
            double e = fy * (1 - fx) * (double)plane[ay[1] * W + ax[0]];
            double f = fy * fx * (double)plane[ay[1] * W + ax[1]];
            sum += a + d + e + f;
            most = fmax(most, fmax(fmax(a, d), fmax(e, f)));
        }
    int64_t count = b->grid[0] * b->grid[1];
    return max ? (count ? most : 0) : sum / (double)(count ? count : 1);
}

/* Start, size and samples of bin `at` of `n` along an axis from `lo` to `hi`. */
static enum accel_err bin_along(struct bin *b, int axis, const struct roi_params *p, double lo,
                                double hi, int64_t at, int64_t n)
{
    double offset = p->half ? 0.5 : 0, start = lo * (double)p->scale - offset;
    double size = (hi * (double)p->scale - offset - start);
    if (!p->half)
        size = fmax(size, 1);
    b->size[axis] = size / (double)n;
    b->start[axis] = start + (double)at * b->size[axis];
    double grid = p->ratio ? (double)p->ratio : ceil(b->size[axis]);
    if (!(grid <= MAX_GRID) || !isfinite(start))
        return accel_fail(ACCEL_ESHAPE, "a region from %g to %g", lo, hi);
    b->grid[axis] = grid > 0 ? (int64_t)grid : 0;
    return ACCEL_OK;
}

/* Regions [R 4]: x1, y1, x2, y2, and the image of each [R]. */
static enum accel_err roi_align_forward(const struct accel_call *c)
{
    const struct roi_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *r = &c->x[1], *which = &c->x[2], *y = &c->y[0];
    int64_t H = x->dim[2], W = x->dim[3], bins = p->height * p->width, C = x->dim[1];
    const real *image;
    struct bin b;
    if (accel_op_is_int(x) || accel_op_is_int(r) || !accel_op_is_int(which))
        return accel_fail(ACCEL_ENOSUP, "regions of integers");
    if (r->dim[1] != 4 || which->n != r->dim[0])
        return accel_fail(ACCEL_ESHAPE, "%lld regions of %lld numbers in %lld images",
                          (long long)r->dim[0], (long long)r->dim[1], (long long)which->n);
    if (y->n && H * W < 1)
        return accel_fail(ACCEL_ESHAPE, "an image of no pixels");
    for (int64_t i = 0; i < y->dim[0] * bins && y->n; i++) {
        int64_t n = i / bins, h = i % bins / p->width, w = i % p->width;
        const real *roi = (const real *)r->data + n * 4;
        ACCEL_TRY(image_of(&image, x, (double)((const int64_t *)which->data)[n], n));
        ACCEL_TRY(bin_along(&b, 0, p, (double)roi[1], (double)roi[3], h, p->height));
        ACCEL_TRY(bin_along(&b, 1, p, (double)roi[0], (double)roi[2], w, p->width));
        for (int64_t ch = 0; ch < C; ch++)
            ((real *)y->data)[(n * C + ch) * bins + i % bins] =
                (real)bin_value(image + ch * H * W, H, W, &b, p->max);
    }
    return ACCEL_OK;
}

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

static const char *const roi_pool_examples[] = {"1x3x8x8 f2x5[0,0,0,3,5,0,1,2,7,7] | "
                                                "pooled_shape=2,2",
                                                NULL};
static const char *const roi_align_examples[] = {
    "2x3x8x8 f2x4[0,0,3,5,1,2,7,7] 2[1,0] | output_height=2 output_width=3",
    "1x2x8x8 f1x4[1,1,9,8] 1[0] | output_height=3 output_width=2 mode=max sampling_ratio=2", NULL};

#define ROW(onnx, opset, n_in, flag, rules, read, eg, fwd)                                         \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = (opset), .min_in = (n_in), .max_in = (n_in),        \
        .min_out = 1, .max_out = 1, .flags = (flag), .attrs = (rules), .parse = (read),            \
        .infer = roi_infer, .links = roi_links, .zero = roi_zero, .forward = (fwd),                \
        .examples = (eg)                                                                           \
    }
const struct accel_op accel_op_maxroipool =
    ROW("MaxRoiPool", 1, 2, ACCEL_OP_COMPARES, roi_pool_attrs, roi_pool_parse, roi_pool_examples,
        roi_pool_forward);
const struct accel_op accel_op_roialign = ROW(
    "RoiAlign", 10, 3, 0, roi_align_attrs, roi_align_parse, roi_align_examples, roi_align_forward);
