/* Pools over windows: X [N C D…] -> Y [N C O…]; sizes by ops/window.h. MaxPool's second output
 * holds the places of the largest elements. */
#include <math.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"
#include "ops/window.h"

struct pool_params {
    struct accel_window w;
    bool channels_last;
    bool count_pad;    /* AveragePool: padding counts as elements */
    bool column_major; /* MaxPool: places count the last axis slowest */
    int64_t p;         /* LpPool */
};

/* What becomes of the elements of a window. */
enum pool_kind { POOL_MAX, POOL_AVERAGE, POOL_LP };

/* Opset 1's LpPool had no kernel_shape of its own rules: an absent one is an error for all. */
static enum accel_err parse(struct accel_node *n, int opset)
{
    int64_t last;
    struct pool_params *p = ACCEL_NEW(&n->graph->model->arena, struct pool_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_window_read(&p->w, n));
    ACCEL_TRY(accel_attr_int(&last, n, "channels_last", 0));
    p->channels_last = last != 0;
    ACCEL_TRY(accel_attr_int(&last, n, "count_include_pad", 0));
    p->count_pad = last != 0;
    ACCEL_TRY(accel_attr_int(&last, n, "storage_order", 0));
    p->column_major = last != 0;
    ACCEL_TRY(accel_attr_int(&p->p, n, "p", 2));
    if (!p->w.kernel)
        return accel_fail(ACCEL_EMODEL, "attribute 'kernel_shape' is missing");
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct pool_params *p = n->params;
    int rank = accel_operand_rank(n, 0), first = p->channels_last ? 1 : 2;
    struct accel_shape y, indices;
    if (rank < 0 && p->w.n_kernel < 1024)
        rank = (int)p->w.n_kernel + 2;
    if (rank >= 0 && rank < 3)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a pool needs 3 or more", rank);
    ACCEL_TRY(accel_window_check(&p->w, rank < 0 ? -1 : rank - 2));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++)
        y.dim[i] = accel_operand_dim(n, 0, i);
    for (int i = 0; i < rank - 2; i++)
        ACCEL_TRY(accel_window_size(&y.dim[first + i], accel_operand_symbols(n), &p->w, i,
                                    accel_operand_dim(n, 0, first + i),
                                    accel_dim_of(p->w.kernel[i])));
    ACCEL_TRY(accel_shape_copy(&indices, n, &y));
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    accel_result_set(n, 1, ACCEL_I64, indices);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ kernels */

/* One window over one plane. */
struct window {
    const struct accel_window_axis *a; /* [3] */
    int64_t o[3];                      /* output position */
    double zero;                       /* what an element of 0 is stored as */
};

/* Input position of tap t, or -1 when it lies in the padding. */
static int64_t meet(const struct window *w, const int64_t t[3])
{
    int64_t at = 0;
    for (int i = 0; i < 3; i++) {
        const struct accel_window_axis *a = &w->a[i];
        int64_t pos = w->o[i] * a->stride + t[i] * a->dilation - a->begin;
        if (pos < 0 || pos >= a->in)
            return -1;
        at = at * a->in + pos;
    }
    return at;
}

/* Taps that lie in the input or its padding: a last window of ceil_mode may reach further. */
static int64_t padded_taps(const struct window *w)
{
    int64_t n = 1;
    for (int i = 0; i < 3; i++) {
        const struct accel_window_axis *a = &w->a[i];
        int64_t left = a->in + a->end - (w->o[i] * a->stride - a->begin), k = a->k;
        int64_t fit = left > 0 ? (left - 1) / a->dilation + 1 : 0;
        n *= k < fit ? k : fit;
    }
    return n;
}

/* The first tap of an axis that meets the input, and the end of those that do. */
static void limits(int64_t *lo, int64_t *hi, const struct window *w, int i)
{
    const struct accel_window_axis *a = &w->a[i];
    int64_t start = w->o[i] * a->stride - a->begin;
    *lo = start >= 0 ? 0 : (-start + a->dilation - 1) / a->dilation;
    *hi = a->in - start <= 0 ? 0 : (a->in - start - 1) / a->dilation + 1;
    *hi = *hi < a->k ? *hi : a->k;
}

static double element(const struct accel_array *x, int64_t i, bool ints)
{
    return ints ? (double)((const int64_t *)x->data)[i] : (double)((const real *)x->data)[i];
}

/* What the window gives; *best: place of the largest element in the plane. */
static double pool(const struct window *w, const struct accel_array *x, int64_t first,
                   const struct pool_params *p, enum pool_kind kind, int64_t *best)
{
    int64_t lo[3], hi[3], t[3], n = 0;
    bool ints = accel_op_is_int(x);
    double sum = 0, most = -INFINITY;
    *best = -1;
    for (int i = 0; i < 3; i++)
        limits(&lo[i], &hi[i], w, i);
    for (t[0] = lo[0]; t[0] < hi[0]; t[0]++)
        for (t[1] = lo[1]; t[1] < hi[1]; t[1]++)
            for (t[2] = lo[2]; t[2] < hi[2]; t[2]++) {
                int64_t at = meet(w, t);
                double v = element(x, first + at, ints) - w->zero;
                n++;
                if (kind == POOL_LP)
                    sum += pow(fabs(v), (double)p->p);
                else
                    sum += v;
                if (*best < 0 || v > most || isnan(v)) {
                    most = v;
                    *best = at;
                }
            }
    if (kind == POOL_MAX)
        return most;
    if (kind == POOL_LP)
        return pow(sum, 1.0 / (double)p->p);
    n = p->count_pad ? padded_taps(w) : n;
    return n ? sum / (double)n : 0;
}

/* Row-major place in a plane as column-major. */
static int64_t column_major(int64_t at, const struct accel_window_axis a[3])
{
    int64_t w = at % a[2].in, h = at / a[2].in % a[1].in, d = at / a[2].in / a[1].in;
    return d + a[0].in * (h + a[1].in * w);
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct pool_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    enum pool_kind kind = *(const enum pool_kind *)c->node->op->family;
    struct accel_window_axis a[3];
    ACCEL_TRY(accel_window_axes(a, &p->w, x, y, p->w.kernel, false));
    struct window w = {a, {0}, 0};
    int64_t out = a[0].out * a[1].out * a[2].out, in = a[0].in * a[1].in * a[2].in, best;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t plane = i / out, rest = i % out;
        w.o[0] = rest / a[2].out / a[1].out;
        w.o[1] = rest / a[2].out % a[1].out;
        w.o[2] = rest % a[2].out;
        double v = pool(&w, x, plane * in, p, kind, &best);
        if (accel_op_is_int(y))
            ((int64_t *)y->data)[i] = (int64_t)v;
        else
            ((real *)y->data)[i] = (real)v;
        if (c->node->n_out > 1 && c->y[1].data)
            ((int64_t *)c->y[1].data)[i] = plane * in + (best < 0          ? 0
                                                         : p->column_major ? column_major(best, a)
                                                                           : best);
    }
    return ACCEL_OK;
}

/* AveragePool of what quantised elements mean (X, scale, zero point, scale and zero point of Y),
 * rounded to the nearest even number. */
static enum accel_err q_forward(const struct accel_call *c)
{
    const struct pool_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int64_t of_x, of_y;
    struct accel_window_axis a[3];
    bool sign = y->dtype == ACCEL_I8;
    if (!accel_op_is_int(x) || accel_op_is_int(&c->x[1]) || accel_op_is_int(&c->x[3]) ||
        c->x[1].n != 1 || c->x[3].n != 1 || !accel_op_one_int(&of_x, c, 2) ||
        !accel_op_one_int(&of_y, c, 4))
        return accel_fail(ACCEL_ENOSUP, "operands that are not quantised");
    if (p->channels_last)
        return accel_fail(ACCEL_ENOSUP, "channels_last");
    ACCEL_TRY(accel_window_axes(a, &p->w, x, y, p->w.kernel, false));
    struct window w = {a, {0}, (double)of_x};
    double by = (double)*(const real *)c->x[1].data / (double)*(const real *)c->x[3].data;
    int64_t out = a[0].out * a[1].out * a[2].out, in = a[0].in * a[1].in * a[2].in, best;
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i % out;
        w.o[0] = rest / a[2].out / a[1].out;
        w.o[1] = rest / a[2].out % a[1].out;
        w.o[2] = rest % a[2].out;
        double q = rint(pool(&w, x, i / out * in, p, POOL_AVERAGE, &best) * by);
        q = q + (double)of_y;
        ((int64_t *)y->data)[i] =
            isnan(q) ? 0 : (int64_t)fmin(fmax(q, sign ? -128 : 0), sign ? 127 : 255);
    }
    return ACCEL_OK;
}

/* Places count the elements of the whole input: where they are looked at, nothing is said. */
static void links(const struct accel_node *n, struct accel_links *l)
{
    const struct pool_params *p = n->params;
    if (!p->channels_last && !accel_link_has_out(n, 1) && accel_slot_rank(n, 0) >= 2)
        accel_link_range(l, 0, accel_link_out(n, 0), 0, 2);
}

/* The largest of equal numbers is that number; padding is 0 to the others. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    bool most = *(const enum pool_kind *)n->op->family == POOL_MAX;
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, 2, !most);
}

static const struct accel_attr_rule max_attrs[] = {
    {"auto_pad", ACCEL_ATTR_STRING, 0}, {"ceil_mode", ACCEL_ATTR_INT, 0},
    {"dilations", ACCEL_ATTR_INTS, 0},  {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"pads", ACCEL_ATTR_INTS, 0},       {"storage_order", ACCEL_ATTR_INT, 0},
    {"strides", ACCEL_ATTR_INTS, 0},    {0}};
static const struct accel_attr_rule average_attrs[] = {
    {"auto_pad", ACCEL_ATTR_STRING, 0},
    {"ceil_mode", ACCEL_ATTR_INT, 0},
    {"count_include_pad", ACCEL_ATTR_INT, 0},
    {"dilations", ACCEL_ATTR_INTS, 0},
    {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"pads", ACCEL_ATTR_INTS, 0},
    {"strides", ACCEL_ATTR_INTS, 0},
    {0}};
static const struct accel_attr_rule q_attrs[] = {{"auto_pad", ACCEL_ATTR_STRING, 0},
                                                 {"ceil_mode", ACCEL_ATTR_INT, 0},
                                                 {"count_include_pad", ACCEL_ATTR_INT, 0},
                                                 {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
                                                 {"pads", ACCEL_ATTR_INTS, 0},
                                                 {"strides", ACCEL_ATTR_INTS, 0},
                                                 {"channels_last", ACCEL_ATTR_INT, 0},
                                                 {0}};
static const struct accel_attr_rule lp_attrs[] = {
    {"auto_pad", ACCEL_ATTR_STRING, 0}, {"ceil_mode", ACCEL_ATTR_INT, 0},
    {"dilations", ACCEL_ATTR_INTS, 0},  {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"p", ACCEL_ATTR_INT, 0},           {"pads", ACCEL_ATTR_INTS, 0},
    {"strides", ACCEL_ATTR_INTS, 0},    {0}};
static const char *const examples[] = {
    "2x3x8x8 | kernel_shape=2,2 strides=2,2", "1x2x7 | kernel_shape=3 pads=1,1",
    "1x1x7x7 | kernel_shape=3,3 strides=2,2 ceil_mode=1",
    "1x1x7x7 | kernel_shape=3,3 strides=2,2 auto_pad=SAME_UPPER", NULL};
static const char *const q_examples[] = {
    "u8:2x3x8x8 scalar u8:scalar scalar u8:scalar | kernel_shape=2,2 strides=2,2", NULL};

static const enum pool_kind is_max = POOL_MAX, is_average = POOL_AVERAGE, is_lp = POOL_LP;

#define FIELDS(onnx, dom, least, most, outs, flag, rules, eg, fwd, what)                           \
    .name = (onnx), .domain = (dom), .since = 1, .min_in = (least), .max_in = (most),              \
    .min_out = 1, .max_out = (outs), .flags = (flag), .attrs = (rules), .parse = parse,            \
    .infer = infer, .forward = (fwd), .family = (what), .examples = (eg)
#define ROW(onnx, outs, flag, rules, what)                                                         \
    {                                                                                              \
        FIELDS(onnx, "", 1, 1, outs, flag, rules, examples, forward, what), .links = links,        \
                                                                            .zero = zero           \
    }
const struct accel_op accel_op_maxpool = ROW("MaxPool", 2, ACCEL_OP_COMPARES, max_attrs, &is_max);
const struct accel_op accel_op_averagepool = ROW("AveragePool", 1, 0, average_attrs, &is_average);
const struct accel_op accel_op_lppool = ROW("LpPool", 1, 0, lp_attrs, &is_lp);
const struct accel_op accel_op_ms_qlinearaveragepool = {
    FIELDS("QLinearAveragePool", "com.microsoft", 4, 5, 1, 0, q_attrs, q_examples, q_forward, NULL),
    .holes = 1u << 2,
    .keep = 0x1e,
};
