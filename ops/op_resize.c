/* Resize, Upsample, DepthToSpace, SpaceToDepth: images in another size.
 *
 * A scale that is a whole number keeps symbols (2*H); other scales of a symbolic size go through
 * its trial values, like every size that is computed. */
#include <math.h>

#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/op_util.h"
#include "ops/real.h"

struct resize {
    int scales, sizes; /* input slots, -1: none */
    bool crop;         /* coordinate mode tf_crop_and_resize: region of interest scales too */
    bool keep;         /* aspect ratio: sizes are bounds */
};

static enum accel_err resize_parse(struct accel_node *n, int opset)
{
    struct resize *p = accel_op_params(n, sizeof *p);
    const char *mode, *keep;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_string(&mode, n, "coordinate_transformation_mode", "half_pixel"));
    ACCEL_TRY(accel_attr_string(&keep, n, "keep_aspect_ratio_policy", "stretch"));
    bool old = opset < 11 || strcmp(n->op->name, "Upsample") == 0;
    p->scales = n->n_in > 1 ? old ? 1 : 2 : -1;
    p->sizes = old ? -1 : 3;
    p->crop = strcmp(mode, "tf_crop_and_resize") == 0;
    p->keep = strcmp(keep, "stretch") != 0;
    return ACCEL_OK;
}

/* floor(d * scale) */
static enum accel_err scaled(struct accel_dim *d, struct accel_symbols *s, float scale)
{
    const struct accel_dim in = *d;
    int64_t probe[ACCEL_N_PROBES];
    if (!(scale > 0) || scale > 1e9f)
        return accel_fail(ACCEL_ESHAPE, "a scale is %g", (double)scale);
    if (scale == floorf(scale))
        return accel_dim_derive(d, s, in, (int64_t)scale, 0, 1, 0);
    *d = accel_dim_unknown();
    for (int t = 0; t < ACCEL_N_PROBES; t++) {
        int64_t size = accel_dim_probe(in, s, t);
        double v = floor((double)size * (double)scale);
        probe[t] = size < 0 || v > 9e15 ? -1 : (int64_t)v;
    }
    return accel_dim_of_probes(d, s, probe);
}

/* Scales as a constant list: *out NULL when there are none, or they are not known. */
static enum accel_err scales_get(const float **out, int64_t *n_scales, const struct accel_node *n)
{
    const struct resize *p = n->params;
    struct accel_value *v = accel_operand(n, p->scales);
    size_t count = 0;
    *out = NULL;
    *n_scales = 0;
    if (v)
        return accel_known_floats(out, n_scales, v);
    if (p->scales < 0)
        ACCEL_TRY(accel_attr_floats(out, &count, n, "scales"));
    *n_scales = (int64_t)count;
    return ACCEL_OK;
}

static enum accel_err resize_axes(struct accel_dim *d, struct accel_node *n, int rank)
{
    const struct resize *p = n->params;
    struct accel_symbols *s = accel_operand_symbols(n);
    const float *scales;
    int64_t n_scales;
    struct accel_shape sizes = {-1, NULL};
    struct accel_list axes;
    ACCEL_TRY(scales_get(&scales, &n_scales, n));
    ACCEL_TRY(accel_list_get(&axes, n, "axes", -1));
    if (accel_operand(n, p->sizes))
        ACCEL_TRY(accel_shape_from_input(&sizes, n, p->sizes));
    int64_t count = axes.given ? axes.n : rank;
    if (sizes.rank < 0 && scales && n_scales > 0 && n_scales != count)
        return accel_fail(ACCEL_ESHAPE, "%lld scales for %lld axes", (long long)n_scales,
                          (long long)count);
    if (sizes.rank > 0 && sizes.rank != count)
        return accel_fail(ACCEL_ESHAPE, "%d sizes for %lld axes", sizes.rank, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        int axis = (int)i;
        if (axes.given)
            ACCEL_TRY(accel_axis_of(&axis, axes.at[i], rank));
        if (sizes.rank > 0 && !p->keep)
            d[axis] = sizes.dim[i];
        else if (sizes.rank <= 0 && scales && n_scales > 0 && !p->crop)
            ACCEL_TRY(scaled(&d[axis], s, scales[i]));
        else
            d[axis] = accel_dim_unknown();
    }
    return ACCEL_OK;
}

static enum accel_err resize_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    ACCEL_TRY(accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0)));
    if (rank < 0 || !n->n_out || !n->out[0])
        return ACCEL_OK;
    struct accel_dim *d = n->out[0]->shape.dim;
    const struct accel_attr *h = accel_attr_find(n, "height_scale");
    const struct accel_attr *w = accel_attr_find(n, "width_scale");
    if (!h || !w)
        return resize_axes(d, n, rank);
    if (rank != 4)
        return accel_fail(ACCEL_ESHAPE, "input of rank %d, must be 4", rank);
    ACCEL_TRY(scaled(&d[2], accel_operand_symbols(n), h->f));
    return scaled(&d[3], accel_operand_symbols(n), w->f);
}

/* Batch and channels, as far as they are left as they are. A scale near 1 may keep a size and still
 * move what is read; only 1 itself is sure. */
static void resize_links(const struct accel_node *n, struct accel_links *l)
{
    const struct resize *p = n->params;
    struct accel_list axes;
    const float *scales;
    int64_t n_scales;
    bool moved[2] = {false, false};
    int rank = accel_slot_rank(n, 0);
    if (p->crop || p->keep || !accel_links_ok(l, scales_get(&scales, &n_scales, n)) ||
        !accel_links_ok(l, accel_list_get(&axes, n, "axes", -1)))
        return;
    for (int64_t i = 0; scales && i < n_scales; i++) {
        int axis = (int)i;
        if (axes.given && (i >= axes.n || accel_axis_of(&axis, axes.at[i], rank)))
            return;
        if (axis < 2)
            moved[axis] = scales[i] < 1 || scales[i] > 1;
    }
    for (int axis = 0; axis < 2 && axis < rank; axis++)
        if (!moved[axis] && accel_dim_same(n->in[0]->shape.dim[axis], n->out[0]->shape.dim[axis]))
            accel_links_pair(l, 0, axis, accel_link_out(n, 0), axis);
}

static void resize_zero(const struct accel_node *n, struct accel_zero *z)
{
    int rank = accel_slot_rank(n, 0);
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, rank < 2 ? rank : 2, true);
}

static enum accel_err resize_resize(struct accel_node *n, struct accel_resize *r)
{
    const struct resize *p = n->params;
    struct accel_list axes;
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    if (!accel_operand(n, p->sizes) || rank < 0)
        return ACCEL_OK;
    ACCEL_TRY(accel_list_get(&axes, n, "axes", -1));
    int64_t count = axes.given ? axes.n : rank;
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, count);
    if (!want)
        return accel_fail_nomem();
    for (int64_t i = 0; i < count; i++) {
        int axis = (int)i;
        if (axes.given)
            ACCEL_TRY(accel_axis_of(&axis, axes.at[i], rank));
        bool number = accel_dim_known(n->out[0]->shape.dim[axis]);
        want[i] = number ? accel_resize_now(r, y, axis) : ACCEL_SIZE_VARIES;
    }
    return accel_resize_ints(r, p->sizes, want, count, ACCEL_SIZE_VARIES);
}

/* Every output position of an axis reads up to four input positions with a weight each; the axes'
 * weights multiply. */
#define TAPS     4
#define MAX_AXES 8

struct tap {
    int64_t at;
    double weight; /* 0: not used */
};

/* How one axis is sampled. */
struct axis {
    int64_t in, out;
    double scale, start, end; /* region of interest: 0 and 1 */
};

struct sampling {
    const char *coordinates, *nearest;
    char mode; /* n, l, c */
    double cubic, extrapolation;
    bool exclude;
};

static double coordinate(const struct axis *a, const struct sampling *s, double o)
{
    const char *m = s->coordinates;
    double in = (double)a->in, out = (double)a->out;
    if (strcmp(m, "align_corners") == 0)
        return out == 1 ? 0 : o * (in - 1) / (out - 1);
    if (strcmp(m, "asymmetric") == 0)
        return o / a->scale;
    if (strcmp(m, "tf_half_pixel_for_nn") == 0)
        return (o + 0.5) / a->scale;
    if (strcmp(m, "tf_crop_and_resize") == 0)
        return out > 1 ? a->start * (in - 1) + o * (a->end - a->start) * (in - 1) / (out - 1)
                       : 0.5 * (a->start + a->end) * (in - 1);
    if (strcmp(m, "pytorch_half_pixel") == 0 && out == 1)
        return 0;
    double x = (o + 0.5) / a->scale - 0.5;
    if (strcmp(m, "half_pixel_symmetric") == 0)
        x += in / 2 * (1 - out / (a->scale * in));
    return x;
}

static int64_t clamp(double x, int64_t size)
{
    return x < 0 ? 0 : x >= (double)size ? size - 1 : (int64_t)x;
}

static double round_nearest(double x, const char *how)
{
    if (strcmp(how, "floor") == 0)
        return floor(x);
    if (strcmp(how, "ceil") == 0)
        return ceil(x);
    return strcmp(how, "round_prefer_ceil") == 0 ? floor(x + 0.5) : ceil(x - 0.5);
}

/* Keys' kernel: weight of an element at distance d. */
static double cubic(double d, double a)
{
    d = fabs(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

/* Taps of one output position; false when it lies outside of the region and takes the extrapolation
 * value. */
static bool sample(struct tap t[TAPS], const struct axis *a, const struct sampling *s, int64_t o)
{
    for (int i = 0; i < TAPS; i++)
        t[i] = (struct tap){0, 0};
    if (a->in == a->out && a->scale == 1 && a->start == 0 && a->end == 1) {
        t[0] = (struct tap){o, 1};
        return true;
    }
    double x = coordinate(a, s, (double)o), low = floor(x), sum = 0;
    if (strcmp(s->coordinates, "tf_crop_and_resize") == 0 && (x < 0 || x > (double)a->in - 1))
        return false;
    if (s->mode == 'n') {
        t[0] = (struct tap){clamp(round_nearest(x, s->nearest), a->in), 1};
        return true;
    }
    int first = s->mode == 'l' ? 0 : -1, n = s->mode == 'l' ? 2 : 4;
    for (int i = 0; i < n; i++) {
        double at = low + first + i,
               w = s->mode == 'l' ? 1 - fabs(x - at) : cubic(x - at, s->cubic);
        bool outside = at < 0 || at >= (double)a->in;
        t[i] = (struct tap){clamp(at, a->in), s->exclude && outside ? 0 : w};
        sum += t[i].weight;
    }
    for (int i = 0; s->exclude && sum != 0 && i < n; i++)
        t[i].weight /= sum;
    return true;
}

/* Scale and region of every axis of the input. */
static enum accel_err read_axes(struct axis *a, const struct accel_call *c)
{
    const struct accel_node *n = c->node;
    const struct resize *p = n->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    const struct accel_array *sizes =
        p->sizes >= 0 && p->sizes < n->n_in && c->x[p->sizes].data ? &c->x[p->sizes] : NULL;
    const struct accel_array *scales =
        p->scales > 0 && p->scales < n->n_in && c->x[p->scales].n ? &c->x[p->scales] : NULL;
    const struct accel_array *roi = p->crop && c->x[1].n ? &c->x[1] : NULL;
    const int64_t *axes;
    const float *old;
    size_t n_axes, n_old;
    ACCEL_TRY(accel_attr_ints(&axes, &n_axes, n, "axes"));
    ACCEL_TRY(accel_attr_floats(&old, &n_old, n, "scales"));
    int64_t count = axes ? (int64_t)n_axes : x->rank;
    for (int d = 0; d < x->rank; d++)
        a[d] = (struct axis){x->dim[d], y->dim[d],
                             x->dim[d] ? (double)y->dim[d] / (double)x->dim[d] : 1, 0, 1};
    for (int64_t i = 0; i < count; i++) {
        int axis = (int)i;
        if (axes)
            ACCEL_TRY(accel_axis_of(&axis, axes[i], x->rank));
        if (!sizes && scales && i < scales->n)
            a[axis].scale = (double)((const real *)scales->data)[i];
        else if (!sizes && (size_t)i < n_old)
            a[axis].scale = (double)old[i];
        if (roi && i + count < roi->n) {
            a[axis].start = (double)((const real *)roi->data)[i];
            a[axis].end = (double)((const real *)roi->data)[i + count];
        }
    }
    return ACCEL_OK;
}

static enum accel_err read_sampling(struct sampling *s, const struct accel_call *c)
{
    const struct accel_node *n = c->node;
    const struct resize *p = n->params;
    bool old = p->sizes < 0; /* opset 10 and Upsample */
    const char *mode;
    float a, outside;
    int64_t exclude, antialias;
    ACCEL_TRY(accel_attr_string(&mode, n, "mode", "nearest"));
    ACCEL_TRY(accel_attr_string(&s->coordinates, n, "coordinate_transformation_mode",
                                old ? "asymmetric" : "half_pixel"));
    ACCEL_TRY(
        accel_attr_string(&s->nearest, n, "nearest_mode", old ? "floor" : "round_prefer_floor"));
    ACCEL_TRY(accel_attr_float(&a, n, "cubic_coeff_a", -0.75f));
    ACCEL_TRY(accel_attr_float(&outside, n, "extrapolation_value", 0));
    ACCEL_TRY(accel_attr_int(&exclude, n, "exclude_outside", 0));
    ACCEL_TRY(accel_attr_int(&antialias, n, "antialias", 0));
    s->mode = strcmp(mode, "bilinear") == 0 ? 'l' : mode[0];
    if (s->mode != 'n' && s->mode != 'l' && s->mode != 'c')
        return accel_fail(ACCEL_EMODEL, "attribute 'mode' is \"%.50s\"", mode);
    if (antialias && s->mode != 'n')
        return accel_fail(ACCEL_ENOSUP, "antialias");
    s->cubic = (double)a;
    s->extrapolation = (double)outside;
    s->exclude = exclude != 0;
    return ACCEL_OK;
}

/* The taps of all output positions of all axes, one axis after the other; a row of sums per axis;
 * which positions are inside. */
static size_t resize_scratch(const struct accel_call *c)
{
    size_t n = 0, rank = (size_t)c->x[0].rank;
    for (size_t d = 0; d < rank; d++)
        n += (size_t)c->y[0].dim[d];
    size_t row = rank ? (size_t)c->y[0].dim[rank - 1] : 0;
    return n * (TAPS * sizeof(struct tap) + 1) + rank * row * sizeof(double);
}

/* One output element: the sum over the taps of axes d … rank - 1. */
static double blend(const struct accel_array *x, struct tap *const *t, int d, int64_t at)
{
    if (d == x->rank)
        return accel_op_is_int(x) ? (double)((const int64_t *)x->data)[at]
                                  : (double)((const real *)x->data)[at];
    double sum = 0;
    for (int i = 0; i < TAPS; i++)
        if (t[d][i].weight != 0)
            sum += t[d][i].weight * blend(x, t, d + 1, at * x->dim[d] + t[d][i].at);
    return sum;
}

/* A row of n output elements: blend()'s sums for all columns at a time. `row`: room for a row per
 * axis from d on; the result is in the first. */
static void blend_row(double *row, int64_t n, const struct accel_array *x, struct tap *const *t,
                      int d, int64_t at)
{
    if (d == x->rank - 1) {
        const real *from = (const real *)x->data + at * x->dim[d];
        for (int64_t o = 0; o < n; o++) {
            const struct tap *own = t[d] + o * TAPS;
            double sum = 0;
            for (int i = 0; i < TAPS; i++)
                if (own[i].weight != 0)
                    sum += own[i].weight * (double)from[own[i].at];
            row[o] = sum;
        }
        return;
    }
    if (t[d][0].weight == 1 && t[d][1].weight == 0 && t[d][2].weight == 0 && t[d][3].weight == 0) {
        blend_row(row, n, x, t, d + 1, at * x->dim[d] + t[d][0].at);
        return;
    }
    for (int64_t o = 0; o < n; o++)
        row[o] = 0;
    for (int i = 0; i < TAPS; i++) {
        if (t[d][i].weight == 0)
            continue;
        blend_row(row + n, n, x, t, d + 1, at * x->dim[d] + t[d][i].at);
        for (int64_t o = 0; o < n; o++)
            row[o] += t[d][i].weight * row[n + o];
    }
}

/* Where each axis' taps are, and what lies outside. */
struct tables {
    struct tap *taps[MAX_AXES];
    const char *inside[MAX_AXES];
    double outside;
};

/* Row after row of a tensor of reals. */
static void resize_rows(const struct accel_call *c, const struct tables *s, double *room)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct tap *here[MAX_AXES];
    int last = x->rank - 1;
    int64_t n = y->dim[last];
    here[last] = s->taps[last];
    for (int64_t i = 0; i < y->n; i += n) {
        int64_t rest = i / n;
        bool in = true;
        for (int d = last - 1; d >= 0; d--) {
            int64_t o = rest % y->dim[d];
            rest /= y->dim[d];
            here[d] = s->taps[d] + o * TAPS;
            in = in && s->inside[d][o];
        }
        if (in)
            blend_row(room, n, x, here, 0, 0);
        for (int64_t o = 0; o < n; o++)
            ((real *)y->data)[i + o] = (real)(in && s->inside[last][o] ? room[o] : s->outside);
    }
}

/* Element after element, for integers and scalars. */
static void resize_elements(const struct accel_call *c, const struct tables *s)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct tap *here[MAX_AXES];
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i;
        bool in = true;
        for (int d = x->rank - 1; d >= 0; d--) {
            int64_t o = rest % y->dim[d];
            rest /= y->dim[d];
            here[d] = s->taps[d] + o * TAPS;
            in = in && s->inside[d][o];
        }
        double v = in ? blend(x, here, 0, 0) : s->outside;
        if (accel_op_is_int(y))
            ((int64_t *)y->data)[i] = accel_int_wrap((int64_t)v, y->dtype);
        else
            ((real *)y->data)[i] = (real)v;
    }
}

static enum accel_err resize_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct axis a[MAX_AXES];
    struct sampling s;
    struct tables t;
    struct tap *free_tap = c->scratch;
    size_t total = 0;
    if (x->rank > MAX_AXES)
        return accel_fail(ACCEL_ENOSUP, "rank %d", x->rank);
    ACCEL_TRY(read_axes(a, c));
    ACCEL_TRY(read_sampling(&s, c));
    for (int d = 0; d < x->rank; d++)
        total += (size_t)y->dim[d];
    double *room = (double *)(free_tap + total * TAPS);
    char *inside = (char *)(room + (x->rank ? x->rank * y->dim[x->rank - 1] : 0));
    for (int d = 0; d < x->rank; d++) {
        t.taps[d] = free_tap;
        t.inside[d] = inside;
        for (int64_t o = 0; o < y->dim[d]; o++, free_tap += TAPS)
            *inside++ = sample(free_tap, &a[d], &s, o);
    }
    t.outside = s.extrapolation;
    if (x->rank && y->n && !accel_op_is_int(x) && !accel_op_is_int(y))
        resize_rows(c, &t, room);
    else
        resize_elements(c, &t);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ blocks of pixels
 */

struct blocks {
    int64_t size;
};

static enum accel_err blocks_parse(struct accel_node *n, int opset)
{
    struct blocks *p = accel_op_params(n, sizeof *p);
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_int(&p->size, n, "blocksize", 1));
    if (p->size < 1 || p->size > 32768)
        return accel_fail(ACCEL_EMODEL, "blocksize is %lld", (long long)p->size);
    return ACCEL_OK;
}

static enum accel_err divided(struct accel_dim *out, struct accel_symbols *s, struct accel_dim d,
                              int64_t by)
{
    if (accel_dim_known(d) && d.n % by)
        return accel_fail(ACCEL_ESHAPE, "size %lld is no multiple of %lld", (long long)d.n,
                          (long long)by);
    return accel_dim_derive(out, s, d, 1, 0, by, 0);
}

static enum accel_err blocks_infer(struct accel_node *n)
{
    const struct blocks *p = n->params;
    struct accel_symbols *s = accel_operand_symbols(n);
    bool to_space = n->op->family != NULL;
    ACCEL_TRY(accel_operand_check_rank(n, 0, 4));
    struct accel_dim d[4] = {accel_operand_dim(n, 0, 0)};
    if (to_space)
        ACCEL_TRY(divided(&d[1], s, accel_operand_dim(n, 0, 1), p->size * p->size));
    else
        ACCEL_TRY(
            accel_dim_derive(&d[1], s, accel_operand_dim(n, 0, 1), p->size * p->size, 0, 1, 0));
    for (int i = 2; i < 4; i++)
        if (to_space)
            ACCEL_TRY(accel_dim_derive(&d[i], s, accel_operand_dim(n, 0, i), p->size, 0, 1, 0));
        else
            ACCEL_TRY(divided(&d[i], s, accel_operand_dim(n, 0, i), p->size));
    return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 4, d);
}

/* Depth [N C' b b H W] (DCR) or [N C' b b H W] with the block behind the channel (CRD), seen from
 * the image: pixel (c, h*b + i, w*b + j) is depth channel (i*b + j)*C' + c, or c*b*b + i*b + j. */
static enum accel_err blocks_forward(const struct accel_call *c)
{
    const struct blocks *p = c->node->params;
    bool to_space = c->node->op->family != NULL;
    const struct accel_array *image = to_space ? &c->y[0] : &c->x[0];
    const struct accel_array *depth = to_space ? &c->x[0] : &c->y[0];
    const char *mode;
    ACCEL_TRY(accel_attr_string(&mode, c->node, "mode", "DCR"));
    bool crd = strcmp(mode, "CRD") == 0;
    int64_t C = image->dim[1], H = image->dim[2], W = image->dim[3], b = p->size;
    for (int64_t i = 0; i < image->n; i++) {
        int64_t w = i % W, h = i / W % H, ch = i / W / H % C, n = i / W / H / C;
        int64_t block = h % b * b + w % b, d = crd ? ch * b * b + block : block * C + ch;
        int64_t at = ((n * depth->dim[1] + d) * depth->dim[2] + h / b) * depth->dim[3] + w / b;
        accel_array_copy(&c->y[0], to_space ? i : at, &c->x[0], to_space ? at : i, 1);
    }
    return ACCEL_OK;
}

/* One channel of the image is b * b of the depth: one after the other (CRD), or C apart. */
static void blocks_links(const struct accel_node *n, struct accel_links *l)
{
    const struct blocks *p = n->params;
    bool to_space = n->op->family != NULL;
    int y = accel_link_out(n, 0), image = to_space ? y : 0, depth = to_space ? 0 : y;
    int64_t C = accel_slot_rank(n, image) == 4 ? accel_slot_value(n, image)->shape.dim[1].n : -1;
    int64_t pixels = p->size * p->size;
    const char *mode;
    if (C < 1 || !accel_links_ok(l, accel_attr_string(&mode, n, "mode", "DCR")))
        return;
    bool crd = to_space && strcmp(mode, "CRD") == 0;
    accel_links_pair(l, 0, 0, y, 0);
    accel_links_tie(l, C, 2,
                    (const struct accel_side[]){accel_side_whole(image, 1),
                                                crd ? accel_side_rep(depth, 1, pixels)
                                                    : accel_side_of(depth, 1, 0, pixels, C, 1)});
}

static void blocks_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, 2, false);
}

/* ------------------------------------------------------------------------------ rows */

static const struct accel_attr_rule resize_attrs[] = {
    {"antialias", ACCEL_ATTR_INT, 0},
    {"axes", ACCEL_ATTR_INTS, 0},
    {"coordinate_transformation_mode", ACCEL_ATTR_STRING, 0},
    {"cubic_coeff_a", ACCEL_ATTR_FLOAT, 0},
    {"exclude_outside", ACCEL_ATTR_INT, 0},
    {"extrapolation_value", ACCEL_ATTR_FLOAT, 0},
    {"keep_aspect_ratio_policy", ACCEL_ATTR_STRING, 0},
    {"mode", ACCEL_ATTR_STRING, 0},
    {"nearest_mode", ACCEL_ATTR_STRING, 0},
    {0}};
static const struct accel_attr_rule upsample_attrs[] = {{"mode", ACCEL_ATTR_STRING, 0},
                                                        {"scales", ACCEL_ATTR_FLOATS, 0},
                                                        {"height_scale", ACCEL_ATTR_FLOAT, 0},
                                                        {"width_scale", ACCEL_ATTR_FLOAT, 0},
                                                        {0}};
static const struct accel_attr_rule depth_attrs[] = {
    {"blocksize", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {"mode", ACCEL_ATTR_STRING, 0}, {0}};
static const struct accel_attr_rule space_attrs[] = {
    {"blocksize", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {"mode", ACCEL_ATTR_STRING, 0}, {0}};

#define ROW(op_name, first, n_min, n_max, rules, prs, inf, fam, eg, ...)                           \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_min), .max_in = (n_max),   \
        .min_out = 1, .max_out = 1, .attrs = (rules), .parse = (prs), .infer = (inf),              \
        .family = (fam), .examples = (const char *const[]){(eg), NULL}, __VA_ARGS__                \
    }

const struct accel_op accel_op_resize = ROW(
    "Resize", 10, 1, 4, resize_attrs, resize_parse, resize_infer, NULL, "1x2x4x4 - - [1,2,8,6]",
    .links = resize_links, .zero = resize_zero, .resize = resize_resize, .keep = 1u << 1 | 1u << 2,
    .sizes = 1u << 3, .forward = resize_forward, .scratch = resize_scratch);
const struct accel_op accel_op_upsample =
    ROW("Upsample", 1, 1, 2, upsample_attrs, resize_parse, resize_infer, NULL, "1x2x4x4 f[1,1,2,2]",
        .links = resize_links, .zero = resize_zero, .keep = 1u << 1, .forward = resize_forward,
        .scratch = resize_scratch);
const struct accel_op accel_op_depth_to_space =
    ROW("DepthToSpace", 1, 1, 1, depth_attrs, blocks_parse, blocks_infer, "to space",
        "1x8x2x3 | blocksize=2", .flags = ACCEL_OP_MOVES, .links = blocks_links,
        .zero = blocks_zero, .forward = blocks_forward);
const struct accel_op accel_op_space_to_depth = ROW(
    "SpaceToDepth", 1, 1, 1, space_attrs, blocks_parse, blocks_infer, NULL, "1x2x4x6 | blocksize=2",
    .flags = ACCEL_OP_MOVES, .links = blocks_links, .zero = blocks_zero, .forward = blocks_forward);
