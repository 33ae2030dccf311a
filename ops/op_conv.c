/* Convolutions: X [N C D…], W [M C/group k…], B [M]  ->  Y [N M O…], with O by ops/window.h.
 *
 * Members differ in where their operands stand and in the type of the output; DeformConv has two
 * more inputs that must fit the output. Channels are axis 1, or the last one for com.microsoft's
 * channels_last. */
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/conv.h"
#include "ops/fused.h"
#include "ops/integer_links.h"
#include "ops/operand.h"
#include "ops/real.h"
#include "ops/window.h"

struct conv_params {
    struct accel_window w;
    bool channels_last;
    int64_t offset_group; /* DeformConv */
};

struct conv {
    int w, b;             /* slots of weight and bias; b -1: none */
    enum accel_dtype out; /* UNDEFINED: that of slot `like` */
    int like;
    bool deform;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    int64_t last;
    struct conv_params *p = ACCEL_NEW(&n->graph->model->arena, struct conv_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_window_read(&p->w, n));
    ACCEL_TRY(accel_attr_int(&last, n, "channels_last", 0));
    ACCEL_TRY(accel_attr_int(&p->offset_group, n, "offset_group", 1));
    if (p->offset_group < 1)
        return accel_fail(ACCEL_EMODEL, "attribute 'offset_group' is %lld",
                          (long long)p->offset_group);
    p->channels_last = last != 0;
    n->params = p;
    return ACCEL_OK;
}

enum accel_err accel_conv_rank(int *out, const struct accel_node *n, int w_slot,
                               const struct accel_window *w)
{
    int x_rank = accel_operand_rank(n, 0), w_rank = accel_operand_rank(n, w_slot);
    int rank = x_rank >= 0 ? x_rank : w_rank;
    if (x_rank >= 0 && w_rank >= 0 && x_rank != w_rank)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, weight '%.200s' has rank %d", x_rank,
                          n->in[w_slot]->name, w_rank);
    if (rank < 0 && w->kernel && w->n_kernel < 1024)
        rank = (int)w->n_kernel + 2;
    if (rank >= 0 && rank < 3)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a convolution needs 3 or more", rank);
    ACCEL_TRY(accel_window_check(w, rank < 0 ? -1 : rank - 2));
    *out = rank;
    return ACCEL_OK;
}

enum accel_err accel_conv_kernel(struct accel_dim *out, const struct accel_node *n, int w_slot,
                                 const struct accel_window *w, int axis)
{
    struct accel_dim k = accel_operand_dim(n, w_slot, axis + 2);
    struct accel_dim said = w->kernel ? accel_dim_of(w->kernel[axis]) : accel_dim_unknown();
    if (!accel_dim_join(out, said, k))
        return accel_fail(ACCEL_ESHAPE,
                          "kernel_shape says %lld, axis %d of weight '%.200s' is %lld",
                          (long long)said.n, axis + 2, n->in[w_slot]->name, (long long)k.n);
    return ACCEL_OK;
}

/* Input channels against weight and group. */
static enum accel_err check_channels(const struct accel_node *n, int w_slot, struct accel_dim c,
                                     int64_t group)
{
    struct accel_dim m = accel_operand_dim(n, w_slot, 0), per = accel_operand_dim(n, w_slot, 1);
    int64_t want = accel_macs_mul(per.n, group);
    if (accel_dim_known(per) && accel_dim_known(c) && c.n != want)
        return accel_fail(ACCEL_ESHAPE,
                          "input has %lld channels, weight '%.200s' expects %lld (group %lld)",
                          (long long)c.n, n->in[w_slot]->name, (long long)want, (long long)group);
    if (accel_dim_known(m) && m.n % group != 0)
        return accel_fail(ACCEL_ESHAPE, "weight '%.200s' has %lld output channels in %lld groups",
                          n->in[w_slot]->name, (long long)m.n, (long long)group);
    return ACCEL_OK;
}

/* DeformConv: offset [N, offset_group * prod(k) * axes, O…]. */
static enum accel_err check_offset(const struct accel_node *n, int64_t taps, int axes)
{
    const struct conv_params *p = n->params;
    struct accel_dim have = accel_operand_dim(n, 2, 1);
    int64_t want = accel_macs_mul(accel_macs_mul(taps, axes), p->offset_group);
    if (accel_dim_known(have) && taps >= 0 && have.n != want)
        return accel_fail(ACCEL_ESHAPE, "offset '%.200s' has %lld channels, the kernel needs %lld",
                          n->in[2]->name, (long long)have.n, (long long)want);
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct conv *f = n->op->family;
    const struct conv_params *p = n->params;
    enum accel_dtype dtype = f->out != ACCEL_UNDEFINED ? f->out : accel_operand_dtype(n, f->like);
    struct accel_shape y;
    int rank = -1;
    int64_t taps = 1;
    ACCEL_TRY(accel_conv_rank(&rank, n, f->w, &p->w));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    if (rank >= 0) {
        int channel = p->channels_last ? rank - 1 : 1, first = p->channels_last ? 1 : 2;
        struct accel_dim m = accel_operand_dim(n, f->w, 0);
        ACCEL_TRY(check_channels(n, f->w, accel_operand_dim(n, 0, channel), p->w.group));
        if (f->b >= 0)
            ACCEL_TRY(accel_operand_check_vector(n, f->b, m, "bias"));
        y.dim[0] = accel_operand_dim(n, 0, 0);
        y.dim[channel] = m;
        for (int i = 0; i < rank - 2; i++) {
            struct accel_dim k;
            ACCEL_TRY(accel_conv_kernel(&k, n, f->w, &p->w, i));
            taps = accel_macs_mul(taps, k.n);
            ACCEL_TRY(accel_window_size(&y.dim[first + i], accel_operand_symbols(n), &p->w, i,
                                        accel_operand_dim(n, 0, first + i), k));
        }
        if (f->deform)
            ACCEL_TRY(check_offset(n, taps, rank - 2));
    }
    accel_result_set(n, 0, dtype, y);
    return ACCEL_OK;
}

int64_t accel_conv_taps(const struct accel_node *n, int w_slot)
{
    int rank = accel_operand_rank(n, w_slot);
    int64_t taps = rank >= 2 ? accel_operand_dim(n, w_slot, 1).n : -1;
    for (int i = 2; i < rank; i++)
        taps = accel_macs_mul(taps, accel_operand_dim(n, w_slot, i).n);
    return taps;
}

/* N * M * prod(O) * C/group * prod(k) */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    const struct conv *f = n->op->family;
    c->macs = accel_macs_mul(accel_result_count(n, 0), accel_conv_taps(n, f->w));
}

static int weights(const struct accel_node *n, struct accel_weight w[4])
{
    static const char *const types[] = {"Conv1d", "Conv2d", "Conv3d"};
    const struct conv *f = n->op->family;
    int rank = accel_operand_rank(n, f->w);
    if (rank < 3)
        return 0;
    w[0] = (struct accel_weight){f->w,  rank, 0, 1, -1, rank <= 5 ? types[rank - 3] : "Conv",
                                 false, f->b, 0, 0};
    if (f->w == ACCEL_Q_W) {
        w[0].scale_slot = ACCEL_Q_W_SCALE;
        w[0].zero_slot = ACCEL_Q_W_ZERO;
    }
    return 1;
}

/* ------------------------------------------------------------------ links */

static void q_conv_links(const struct accel_node *n, struct accel_links *l)
{
    if (!((const struct conv_params *)n->params)->channels_last)
        accel_q_conv_links(l, ((const struct conv_params *)n->params)->w.group);
}

static void q_conv_zero(const struct accel_node *n, struct accel_zero *z)
{
    (void)n;
    accel_q_conv_zero(z);
}

static enum accel_err q_conv_resize(struct accel_node *n, struct accel_resize *r)
{
    int64_t group = ((const struct conv_params *)n->params)->w.group;
    return group > 1 ? accel_resize_attr_int(r, "group", accel_resize_now(r, ACCEL_Q_X, 1))
                     : ACCEL_OK;
}

static void conv_links(const struct accel_node *n, struct accel_links *l)
{
    accel_conv_links(l, ((const struct conv_params *)n->params)->w.group, false);
}

static void conv_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_conv_zero(z, ((const struct conv_params *)n->params)->w.group, false);
}

static enum accel_err conv_resize(struct accel_node *n, struct accel_resize *r)
{
    return accel_conv_resize(r, ((const struct conv_params *)n->params)->w.group, 0);
}

/* ------------------------------------------------------------------ kernel */

/* One tap over one plane: y += w * x, in reals, or in integers with x's zero point taken off. */
struct tap {
    void *y;
    const void *x;
    real w;
    int64_t whole, zero; /* integer weight, zero point */
    bool ints;
};

static void add_row(const struct tap *p, int64_t to, int64_t from, int64_t n, int64_t step)
{
    if (p->ints) {
        int64_t *y = (int64_t *)p->y + to;
        const int64_t *x = (const int64_t *)p->x + from;
        for (int64_t i = 0; i < n; i++)
            y[i] += p->whole * (x[i * step] - p->zero);
        return;
    }
    real *y = (real *)p->y + to;
    const real *x = (const real *)p->x + from;
    for (int64_t i = 0; i < n; i++)
        y[i] += p->w * x[i * step];
}

/* Rows of y meet rows of x a stride apart. */
static void add_tap(const struct tap *p, const struct accel_window_axis a[3], const int64_t t[3])
{
    int64_t lo[3], hi[3];
    for (int i = 0; i < 3; i++)
        accel_window_range(&lo[i], &hi[i], &a[i], t[i]);
    int64_t off = t[2] * a[2].dilation - a[2].begin;
    for (int64_t d = lo[0]; d < hi[0]; d++)
        for (int64_t h = lo[1]; h < hi[1]; h++) {
            int64_t in_d = d * a[0].stride + t[0] * a[0].dilation - a[0].begin;
            int64_t in_h = h * a[1].stride + t[1] * a[1].dilation - a[1].begin;
            add_row(p, (d * a[1].out + h) * a[2].out + lo[2],
                    (in_d * a[1].in + in_h) * a[2].in + off + lo[2] * a[2].stride, hi[2] - lo[2],
                    a[2].stride);
        }
}

/* One output channel: every tap of every input channel of its group. w: the channel's first weight.
 */
static void add_channel(struct tap *p, const struct accel_array *x, int64_t first,
                        const struct accel_array *w, int64_t at, int64_t w_zero, int64_t channels,
                        const struct accel_window_axis a[3])
{
    int64_t in_size = a[0].in * a[1].in * a[2].in, t[3];
    for (int64_t c = first; c < first + channels; c++) {
        p->x = p->ints ? (const void *)((const int64_t *)x->data + c * in_size)
                       : (const void *)((const real *)x->data + c * in_size);
        for (t[0] = 0; t[0] < a[0].k; t[0]++)
            for (t[1] = 0; t[1] < a[1].k; t[1]++)
                for (t[2] = 0; t[2] < a[2].k; t[2]++, at++) {
                    if (p->ints)
                        p->whole = ((const int64_t *)w->data)[at] - w_zero;
                    else
                        p->w = ((const real *)w->data)[at];
                    add_tap(p, a, t);
                }
    }
}

/* Element k of an operand with one element or one per output channel; `otherwise` when it is left
 * out. */
static double of_channel(const struct accel_call *c, int slot, int64_t k, double otherwise)
{
    const struct accel_array *v = slot < c->node->n_in && c->x[slot].data ? &c->x[slot] : NULL;
    if (!v || v->n == 0)
        return otherwise;
    k = v->n == 1 ? 0 : k % v->n;
    return accel_op_is_int(v) ? (double)((const int64_t *)v->data)[k]
                              : (double)((const real *)v->data)[k];
}

/* Sums to the quantised output: round(sum * xs * ws / ys) + yz, saturated. */
static void requantise(const struct accel_call *c, int64_t *y, int64_t n, int64_t m)
{
    bool sign = c->y[0].dtype == ACCEL_I8;
    real scale = (real)((real)(of_channel(c, 1, 0, 1) * of_channel(c, 4, m, 1)) /
                        (real)of_channel(c, 6, 0, 1));
    for (int64_t i = 0; i < n; i++) {
        double v = rint((double)((real)y[i] * scale)) + of_channel(c, 7, 0, 0);
        y[i] = (int64_t)fmin(fmax(v, sign ? -128 : 0), sign ? 127 : 255);
    }
}

/* What all output channels share. */
struct job {
    const struct accel_call *call;
    struct tap tap; /* without y, x and the weight */
    struct accel_window_axis axis[3];
    int64_t out_size, taps; /* elements of a channel of Y, weights of one */
};

static void run_channels(void *ctx, int64_t from, int64_t to)
{
    const struct job *j = ctx;
    const struct accel_call *c = j->call;
    const struct conv *f = c->node->op->family;
    const struct conv_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *w = &c->x[f->w], *y = &c->y[0];
    int64_t M = y->dim[1], per = w->dim[1], of_group = M / p->w.group;
    bool quantised = f->w == 3;
    struct tap tap = j->tap;
    for (int64_t i = from; i < to; i++) {
        int64_t m = i % M, first = i / M * x->dim[1] + m / of_group * per;
        double bias = f->b >= 0 ? of_channel(c, f->b, m, 0) : 0;
        tap.y = tap.ints ? (void *)((int64_t *)y->data + i * j->out_size)
                         : (void *)((real *)y->data + i * j->out_size);
        for (int64_t k = 0; k < j->out_size; k++)
            if (tap.ints)
                ((int64_t *)tap.y)[k] = (int64_t)bias;
            else
                ((real *)tap.y)[k] = (real)bias;
        int64_t zero = tap.ints ? (int64_t)of_channel(c, quantised ? 5 : 3, m, 0) : 0;
        add_channel(&tap, x, first, w, m * j->taps, zero, per, j->axis);
        if (quantised)
            requantise(c, tap.y, j->out_size, m);
    }
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct conv *f = c->node->op->family;
    const struct conv_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *w = &c->x[f->w], *y = &c->y[0];
    struct job j = {.call = c, .tap = {.ints = accel_op_is_int(y)}};
    if (p->channels_last || accel_op_is_int(x) != j.tap.ints || accel_op_is_int(w) != j.tap.ints)
        return accel_fail(ACCEL_ENOSUP, "this form of %s", c->node->op_type);
    ACCEL_TRY(accel_window_axes(j.axis, &p->w, x, y, w->dim + 2, false));
    j.out_size = j.axis[0].out * j.axis[1].out * j.axis[2].out;
    j.taps = w->dim[1] * j.axis[0].k * j.axis[1].k * j.axis[2].k;
    j.tap.zero = j.tap.ints ? (int64_t)of_channel(c, 2, 0, 0) : 0;
    accel_threads_run(run_channels, &j, y->dim[0] * y->dim[1], accel_macs_mul(j.out_size, j.taps));
    return ACCEL_OK;
}

/* act(X * W + B + Z) */
static enum accel_err fused_forward(const struct accel_call *c)
{
    const struct accel_array *z = c->node->n_in > 3 && c->x[3].data ? &c->x[3] : NULL;
    struct accel_fused f;
    ACCEL_TRY(accel_fused_read(&f, c->node));
    if (z && (accel_op_is_int(z) || z->n != c->y[0].n))
        return accel_fail(ACCEL_ESHAPE, "'%.200s' does not fit the output", c->node->in[3]->name);
    ACCEL_TRY(forward(c));
    if (accel_op_is_int(&c->y[0]))
        return accel_fail(ACCEL_ENOSUP, "FusedConv of integers");
    for (int64_t i = 0; i < c->y[0].n; i++) {
        real *y = (real *)c->y[0].data + i;
        *y = (real)f.f((double)*y + (z ? (double)((const real *)z->data)[i] : 0), f.a, f.b);
    }
    return ACCEL_OK;
}

static enum accel_err deform_forward(const struct accel_call *c)
{
    const struct conv_params *p = c->node->params;
    return accel_deform_forward(c, &p->w, p->offset_group);
}

#define WINDOW_ATTRS                                                                               \
    {"auto_pad", ACCEL_ATTR_STRING, 0}, {"dilations", ACCEL_ATTR_INTS, 0},                         \
        {"group", ACCEL_ATTR_INT, 0}, {"kernel_shape", ACCEL_ATTR_INTS, 0},                        \
        {"pads", ACCEL_ATTR_INTS, 0},                                                              \
    {                                                                                              \
        "strides", ACCEL_ATTR_INTS, 0                                                              \
    }

static const struct accel_attr_rule conv_attrs[] = {WINDOW_ATTRS, {0}};
static const struct accel_attr_rule fused_attrs[] = {WINDOW_ATTRS,
                                                     {"activation", ACCEL_ATTR_STRING, 0},
                                                     {"activation_params", ACCEL_ATTR_FLOATS, 0},
                                                     {0}};
static const struct accel_attr_rule ms_q_attrs[] = {
    WINDOW_ATTRS, {"channels_last", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule deform_attrs[] = {{"dilations", ACCEL_ATTR_INTS, 0},
                                                      {"group", ACCEL_ATTR_INT, 0},
                                                      {"kernel_shape", ACCEL_ATTR_INTS, 0},
                                                      {"offset_group", ACCEL_ATTR_INT, 0},
                                                      {"pads", ACCEL_ATTR_INTS, 0},
                                                      {"strides", ACCEL_ATTR_INTS, 0},
                                                      {0}};

static const char *const conv_examples[] = {"2x3x8x8 4x3x3x3 4 | pads=1,1,1,1",
                                            "2x3x8 4x3x3",
                                            "1x4x9x9 8x2x3x3 8 | group=2 strides=2,2",
                                            "1x2x7x7 4x2x3x3 | auto_pad=SAME_UPPER strides=2,2",
                                            "1x2x9x9 2x2x3x3 | dilations=2,2",
                                            "1x1x4x4x4 2x1x2x2x2",
                                            "2x8x5x5 4x4x1x1 4 | group=2",
                                            "2x6x4x4 12x1x3x3 12 | group=6",
                                            "2x12x3x3 8x3x1x1 | group=4",
                                            NULL};
static const char *const integer_examples[] = {"2x3x8x8 4x3x3x3", NULL};
static const char *const q_examples[] = {
    "2x3x8x8 scalar scalar 4x3x3x3 4 4 scalar scalar 4 | pads=1,1,1,1", NULL};
static const char *const deform_examples[] = {
    "1x2x5x5 3x2x2x2 1x8x4x4",
    "2x4x5x5 4x2x3x3 2x36x5x5 4 2x18x5x5 | group=2 offset_group=2 pads=1,1,1,1", NULL};

#define FIELDS(onnx, dom, opset, least, most, rules, eg, fwd, ...)                                 \
    .name = (onnx), .domain = (dom), .since = (opset), .min_in = (least), .max_in = (most),        \
    .min_out = 1, .max_out = 1, .attrs = (rules), .parse = parse, .infer = infer, .cost = cost,    \
    .weights = weights, .forward = (fwd), .family = &(const struct conv){__VA_ARGS__},             \
    .examples = (eg)
#define ROW(...)                                                                                   \
    {                                                                                              \
        FIELDS(__VA_ARGS__)                                                                        \
    }

const struct accel_op accel_op_conv = {
    FIELDS("Conv", "", 1, 2, 3, conv_attrs, conv_examples, forward, .w = 1, .b = 2),
    .links = conv_links,
    .zero = conv_zero,
    .resize = conv_resize,
};
const struct accel_op accel_op_convinteger =
    ROW("ConvInteger", "", 10, 2, 4, conv_attrs, integer_examples, forward, .w = 1, .b = -1,
        .out = ACCEL_I32);
const struct accel_op accel_op_qlinearconv = {
    FIELDS("QLinearConv", "", 10, 8, 9, conv_attrs, q_examples, forward, .w = 3, .b = 8, .like = 7),
    .links = q_conv_links,
    .zero = q_conv_zero,
    .resize = q_conv_resize,
    .keep = ACCEL_Q_KEEP,
};
const struct accel_op accel_op_ms_qlinearconv = {
    FIELDS("QLinearConv", "com.microsoft", 1, 8, 9, ms_q_attrs, q_examples, forward, .w = 3, .b = 8,
           .like = 7),
    .links = q_conv_links,
    .zero = q_conv_zero,
    .resize = q_conv_resize,
    .keep = ACCEL_Q_KEEP,
};
const struct accel_op accel_op_ms_fusedconv =
    ROW("FusedConv", "com.microsoft", 1, 2, 4, fused_attrs, conv_examples, fused_forward, .w = 1,
        .b = 2);
const struct accel_op accel_op_deformconv = {
    FIELDS("DeformConv", "", 19, 3, 5, deform_attrs, deform_examples, deform_forward, .w = 1,
           .b = 3, .deform = true),
    .scratch = accel_deform_scratch,
};
