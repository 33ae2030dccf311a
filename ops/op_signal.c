/* Operators of signal processing, and Det. Sizes come from small inputs that constant propagation
 * knows, or stay unknown until the model runs.
 *
 * Transforms are sums as they are defined, L terms for each bin, in double: the sine and cosine of
 * a term come from those of the term before by one complex product (error below L * 1e-16). */
#include <math.h>

#include "graph/attr.h"
#include "graph/constprop.h"
#include "ops/arith.h"
#include "ops/fourier.h"
#include "ops/operand.h"
#include "ops/real.h"

#define TWO_PI 6.28318530717958647692

/* The one integer of an input as a dim; unknown when the input is left out or longer. */
static enum accel_err scalar_dim(struct accel_dim *out, const struct accel_node *n, int slot)
{
    struct accel_value *v = accel_operand(n, slot);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    *out = accel_dim_unknown();
    return k && k->n == 1 && !k->real ? accel_known_dim(out, v, k, 0) : ACCEL_OK;
}

/* Bins of a transform over `size` points: all, or floor(size / 2) + 1. */
static enum accel_err bins(struct accel_dim *out, const struct accel_node *n, struct accel_dim size,
                           bool half)
{
    *out = size;
    return half ? accel_dim_derive(out, accel_operand_symbols(n), size, 1, 0, 2, 1) : ACCEL_OK;
}

struct signal_params {
    enum accel_dtype out;
    bool half, inverse, axis_is_input, periodic;
    int64_t axis;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct signal_params *p = ACCEL_NEW(&n->graph->model->arena, struct signal_params, 1);
    bool stft = n->op->min_in == 2;
    int64_t out, half, inverse, periodic;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&out, n, "output_datatype", ACCEL_F32));
    ACCEL_TRY(accel_attr_int(&half, n, "onesided", stft));
    ACCEL_TRY(accel_attr_int(&inverse, n, "inverse", 0));
    ACCEL_TRY(accel_attr_int(&periodic, n, "periodic", 1));
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", 1));
    if (out < 0 || !accel_dtype_find((int)(out < 1000 ? out : 1000)))
        return accel_fail(ACCEL_EMODEL, "attribute 'output_datatype' is %lld", (long long)out);
    p->out = (enum accel_dtype)out;
    p->half = half != 0;
    p->inverse = inverse != 0;
    p->periodic = periodic != 0;
    p->axis_is_input = opset >= 20;
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err window_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    struct accel_dim size;
    ACCEL_TRY(scalar_dim(&size, n, 0));
    return accel_result_dims(n, 0, p->out, 1, &size);
}

/* [floor(dft_length / 2) + 1, n_mels] */
static enum accel_err mel_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    struct accel_dim y[2], size;
    ACCEL_TRY(scalar_dim(&y[1], n, 0));
    ACCEL_TRY(scalar_dim(&size, n, 1));
    ACCEL_TRY(bins(&y[0], n, size, true));
    return accel_result_dims(n, 0, p->out, 2, y);
}

/* X [… D … 1 or 2] -> [… bins … 2]; the inverse of half the bins is real: [… D … 1] */
static enum accel_err dft_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    int rank = accel_operand_rank(n, 0), axis = 0;
    int64_t at = p->axis_is_input ? -2 : p->axis;
    struct accel_shape y;
    if (rank < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 0), NULL);
    if (rank < 2)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a transform needs 2 or more", rank);
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    if (p->axis_is_input && accel_operand(n, 2)) {
        const int64_t *v;
        int64_t count;
        ACCEL_TRY(accel_known_ints(&v, &count, n->in[2]));
        if (!v || count != 1) {
            accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
            return ACCEL_OK;
        }
        at = v[0];
    }
    ACCEL_TRY(accel_axis_of(&axis, at, rank));
    for (int i = 0; i < rank; i++)
        y.dim[i] = accel_operand_dim(n, 0, i);
    struct accel_dim size = y.dim[axis];
    if (accel_operand(n, 1))
        ACCEL_TRY(scalar_dim(&size, n, 1));
    bool to_real = p->half && p->inverse; /* half the bins of a real signal: back to that signal */
    y.dim[rank - 1] = accel_dim_of(to_real ? 1 : 2);
    if (to_real && !accel_operand(n, 1))
        ACCEL_TRY(accel_dim_derive(&y.dim[axis], accel_operand_symbols(n), size, 2, -2, 1, 0));
    else
        ACCEL_TRY(bins(&y.dim[axis], n, size, p->half && !to_real));
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* Signal [B L 1 or 2], step, window, frame length -> [B frames bins 2] */
static enum accel_err stft_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    struct accel_dim step, frame = accel_operand_dim(n, 2, 0);
    ACCEL_TRY(scalar_dim(&step, n, 1));
    if (accel_operand(n, 3))
        ACCEL_TRY(scalar_dim(&frame, n, 3));
    struct accel_dim y[4] = {accel_operand_dim(n, 0, 0), accel_dim_unknown(), accel_dim_unknown(),
                             accel_dim_of(2)};
    if (accel_dim_known(step) && step.n == 0)
        return accel_fail(ACCEL_ESHAPE, "the frame step is 0");
    if (accel_dim_known(step) && accel_dim_known(frame))
        ACCEL_TRY(accel_dim_derive(&y[1], accel_operand_symbols(n), accel_operand_dim(n, 0, 1), 1,
                                   -frame.n, step.n, 1));
    ACCEL_TRY(bins(&y[2], n, frame, p->half));
    return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 4, y);
}

/* [… M M] -> […] */
static enum accel_err det_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    struct accel_shape y;
    struct accel_dim rows = accel_operand_dim(n, 0, -2), cols = accel_operand_dim(n, 0, -1);
    if (rank >= 0 && rank < 2)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a determinant needs 2 or more", rank);
    if (accel_dim_differs(rows, cols))
        return accel_fail(ACCEL_ESHAPE, "a matrix of %lld rows and %lld columns", (long long)rows.n,
                          (long long)cols.n);
    ACCEL_TRY(accel_shape_new(&y, n, rank < 0 ? -1 : rank - 2));
    for (int i = 0; i < y.rank; i++)
        y.dim[i] = accel_operand_dim(n, 0, i);
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ kernels */

static void put(const struct accel_array *y, int64_t i, double v)
{
    if (accel_op_is_int(y))
        ((int64_t *)y->data)[i] = fabs(v) < 9e18 ? (int64_t)v : 0;
    else
        ((real *)y->data)[i] = (real)v;
}

/* An input of one number, whatever its type. */
static enum accel_err one_number(double *out, const struct accel_call *c, int slot)
{
    const struct accel_array *a = &c->x[slot];
    if (!a->data || a->n != 1)
        return accel_fail(ACCEL_ESHAPE, "input %d holds %lld numbers instead of one", slot,
                          a->data ? (long long)a->n : 0LL);
    *out = accel_op_is_int(a) ? (double)*(const int64_t *)a->data : (double)*(real *)a->data;
    return ACCEL_OK;
}

/* Weights of cos(0), cos(a), cos(2a); a = 2 pi i / N, N the length, or that less 1 of a window that
 * is symmetric. A window of one element is 1. */
static enum accel_err window_forward(const struct accel_call *c)
{
    const struct signal_params *p = c->node->params;
    const double *w = c->node->op->family;
    const struct accel_array *y = &c->y[0];
    double size;
    ACCEL_TRY(one_number(&size, c, 0));
    double N = p->periodic ? (double)y->n : (double)y->n - 1;
    for (int64_t i = 0; i < y->n; i++) {
        double a = N > 0 ? TWO_PI * (double)i / N : TWO_PI / 2;
        put(y, i, w[0] + w[1] * cos(a) + w[2] * cos(2 * a));
    }
    return ACCEL_OK;
}

/* Triangles that are equally wide on the mel scale: rises from edge i to i + 1, falls to i + 2. */
static enum accel_err mel_forward(const struct accel_call *c)
{
    const struct accel_array *y = &c->y[0];
    double v[5];
    int64_t at[3], bins_ = y->dim[0], mels = y->dim[1];
    for (int i = 0; i < 5; i++)
        ACCEL_TRY(one_number(&v[i], c, i));
    if (!(v[2] > 0) || !(v[3] >= 0) || !(v[4] >= v[3]) || !(v[4] < 1e12))
        return accel_fail(ACCEL_ESHAPE, "sample rate %g, edges %g and %g", v[2], v[3], v[4]);
    double low = 2595 * log10(1 + v[3] / 700), high = 2595 * log10(1 + v[4] / 700);
    double step = (high - low) / (double)(mels + 2);
    for (int64_t i = 0; i < y->n; i++)
        put(y, i, 0);
    for (int64_t m = 0; m < mels; m++) {
        for (int k = 0; k < 3; k++) {
            double hz = 700 * (pow(10, ((double)(m + k) * step + low) / 2595) - 1);
            at[k] = (int64_t)floor((v[1] + 1) * hz / v[2]);
        }
        if (at[2] > bins_)
            return accel_fail(ACCEL_ESHAPE, "an edge falls on bin %lld of %lld", (long long)at[2],
                              (long long)bins_);
        for (int64_t j = at[0]; j <= at[1] && j < bins_; j++)
            put(y, j * mels + m,
                at[1] == at[0] ? 1 : (double)(j - at[0]) / (double)(at[1] - at[0]));
        for (int64_t j = at[1]; j < at[2]; j++)
            put(y, j * mels + m, (double)(at[2] - j) / (double)(at[2] - at[1]));
    }
    return ACCEL_OK;
}

/* One transform of L points; those behind the n that are given are 0. */
struct line {
    const real *x, *window; /* window NULL: ones */
    real *y;
    int64_t n, L, bins;
    int64_t x_step, y_step; /* elements between neighbours */
    bool complex, inverse;
    bool from_half; /* inverse of the first half of a symmetric spectrum: the output is real */
};

static void transform(const struct line *t, double *v)
{
    double scale = t->inverse ? 1 / (double)t->L : 1;
    for (int64_t k = 0; k < t->L; k++) {
        bool mirrored = t->from_half && 2 * k > t->L; /* the conjugate of its mirror image */
        int64_t at = mirrored ? t->L - k : k;
        const real *x = &t->x[at * t->x_step];
        double by = at >= t->n ? 0 : t->window ? (double)t->window[at] : 1;
        v[2 * k] = at < t->n ? (double)x[0] * by : 0;
        v[2 * k + 1] = at < t->n && t->complex ? (double)x[1] * by : 0;
        if (mirrored)
            v[2 * k + 1] = -v[2 * k + 1];
    }
    accel_fourier(v, t->L, t->inverse ? 1 : -1);
    for (int64_t k = 0; k < t->bins; k++) {
        t->y[k * t->y_step] = (real)(v[2 * k] * scale);
        if (!t->from_half)
            t->y[k * t->y_step + 1] = (real)(v[2 * k + 1] * scale);
    }
}

/* Points of the transform: as the second input says, else all. 0: no such number. */
static int64_t points(const struct accel_call *c, int64_t otherwise)
{
    double v;
    if (c->node->n_in < 2 || !c->x[1].data)
        return otherwise;
    return one_number(&v, c, 1) || !(v >= 1 && v < 1e12) ? 0 : (int64_t)v;
}

static enum accel_err dft_axis(int *axis, const struct accel_call *c)
{
    const struct signal_params *p = c->node->params;
    int64_t at = p->axis_is_input ? -2 : p->axis;
    double v;
    if (p->axis_is_input && c->node->n_in > 2 && c->x[2].data) {
        ACCEL_TRY(one_number(&v, c, 2));
        at = fabs(v) < 1e6 ? (int64_t)v : INT64_MAX;
    }
    return accel_axis_of(axis, at, c->x[0].rank);
}

static int64_t dft_points(const struct accel_call *c, int axis)
{
    const struct signal_params *p = c->node->params;
    return points(c, p->half && p->inverse ? c->y[0].dim[axis] : c->x[0].dim[axis]);
}

static size_t dft_scratch(const struct accel_call *c)
{
    int axis;
    return dft_axis(&axis, c) ? 0 : accel_fourier_room(dft_points(c, axis)) * sizeof(double);
}

static size_t stft_scratch(const struct accel_call *c)
{
    double frame = c->node->n_in > 2 && c->x[2].data ? (double)c->x[2].n : 0;
    if (c->node->n_in > 3 && c->x[3].data && one_number(&frame, c, 3))
        return 0;
    return c->x[0].rank < 2 || !(frame >= 1 && frame <= (double)c->x[0].dim[1])
               ? 0
               : accel_fourier_room((int64_t)frame) * sizeof(double);
}

static enum accel_err dft_forward(const struct accel_call *c)
{
    const struct signal_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int64_t parts = x->dim[x->rank - 1];
    int axis;
    if (accel_op_is_int(x) || parts < 1 || parts > 2)
        return accel_fail(ACCEL_ESHAPE, "the last axis of a signal is 1 or 2, not %lld",
                          (long long)parts);
    ACCEL_TRY(dft_axis(&axis, c));
    struct line t = {.n = x->dim[axis],
                     .L = dft_points(c, axis),
                     .bins = y->dim[axis],
                     .complex = parts == 2,
                     .inverse = p->inverse,
                     .from_half = p->half && p->inverse};
    if (t.L < 1 || t.bins > t.L || axis == x->rank - 1)
        return accel_fail(ACCEL_ESHAPE, "a transform of %lld points along axis %d", (long long)t.L,
                          axis);
    int64_t inner = 1, outer = 1, y_parts = t.from_half ? 1 : 2;
    for (int d = 0; d < x->rank - 1; d++)
        *(d < axis ? &outer : &inner) *= d == axis ? 1 : x->dim[d];
    t.x_step = inner * parts;
    t.y_step = inner * y_parts;
    for (int64_t i = 0; i < outer * inner; i++) {
        t.x = (const real *)x->data + (i / inner * t.n * inner + i % inner) * parts;
        t.y = (real *)y->data + (i / inner * t.bins * inner + i % inner) * y_parts;
        transform(&t, c->scratch);
    }
    return ACCEL_OK;
}

static enum accel_err stft_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    const struct accel_array *w = c->node->n_in > 2 && c->x[2].data ? &c->x[2] : NULL;
    double step, frame = w ? (double)w->n : 0;
    int64_t parts = x->rank == 3 ? x->dim[2] : 1, frames = y->dim[1];
    ACCEL_TRY(one_number(&step, c, 1));
    if (c->node->n_in > 3 && c->x[3].data)
        ACCEL_TRY(one_number(&frame, c, 3));
    if (accel_op_is_int(x) || (w && accel_op_is_int(w)) || x->rank < 2 || parts < 1 || parts > 2)
        return accel_fail(ACCEL_ENOSUP, "this form of a signal");
    if (!(step >= 1) || !(frame >= 1) || (w && (double)w->n < frame) || y->dim[0] > x->dim[0] ||
        (frames > 0 && (double)(frames - 1) * step + frame > (double)x->dim[1]) ||
        frame > (double)x->dim[1] || (double)y->dim[2] > frame)
        return accel_fail(ACCEL_ESHAPE, "%lld frames of %g, each %g after the other, of %lld",
                          (long long)frames, frame, step, (long long)x->dim[1]);
    struct line t = {.window = w ? w->data : NULL,
                     .n = (int64_t)frame,
                     .L = (int64_t)frame,
                     .bins = y->dim[2],
                     .x_step = parts,
                     .y_step = 2,
                     .complex = parts == 2};
    for (int64_t i = 0; i < y->dim[0] * frames; i++) {
        int64_t start = i / frames * x->dim[1] + i % frames * (int64_t)step;
        t.x = (const real *)x->data + start * parts;
        t.y = (real *)y->data + i * t.bins * 2;
        transform(&t, c->scratch);
    }
    return ACCEL_OK;
}

static size_t det_scratch(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    size_t m = (size_t)x->dim[x->rank - 1];
    return m * m * sizeof(double);
}

/* Gauss's elimination with the largest pivot of each column; a is overwritten. */
static double determinant(double *a, int64_t m)
{
    double det = 1;
    for (int64_t k = 0; k < m; k++) {
        int64_t best = k;
        for (int64_t i = k + 1; i < m; i++)
            if (fabs(a[i * m + k]) > fabs(a[best * m + k]))
                best = i;
        for (int64_t j = k; best != k && j < m; j++) {
            double t = a[k * m + j];
            a[k * m + j] = a[best * m + j];
            a[best * m + j] = t;
        }
        double pivot = a[k * m + k];
        det *= best != k ? -pivot : pivot;
        if (!(fabs(pivot) > 0))
            return det;
        for (int64_t i = k + 1; i < m; i++) {
            double f = a[i * m + k] / pivot;
            for (int64_t j = k; j < m; j++)
                a[i * m + j] -= f * a[k * m + j];
        }
    }
    return det;
}

static enum accel_err det_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    double *a = c->scratch;
    int64_t m = x->dim[x->rank - 1];
    if (accel_op_is_int(x))
        return accel_fail(ACCEL_ENOSUP, "a determinant of integers");
    for (int64_t i = 0; i < c->y[0].n; i++) {
        for (int64_t k = 0; k < m * m; k++)
            a[k] = (double)((const real *)x->data)[i * m * m + k];
        put(&c->y[0], i, determinant(a, m));
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule window_attrs[] = {
    {"output_datatype", ACCEL_ATTR_INT, 0}, {"periodic", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule mel_attrs[] = {{"output_datatype", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule dft_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                   {"inverse", ACCEL_ATTR_INT, 0},
                                                   {"onesided", ACCEL_ATTR_INT, 0},
                                                   {0}};
static const struct accel_attr_rule stft_attrs[] = {{"onesided", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule no_attrs[] = {{0}};
static const char *const scalar_examples[] = {"scalar[10]", NULL};
static const char *const mel_examples[] = {
    "scalar[4] scalar[16] scalar[8192] scalar[0] scalar[4096]", NULL};
static const char *const dft_examples[] = {"2x8x1", "2x8x2", NULL};
static const char *const stft_examples[] = {"2x32x1 scalar[4] 8", NULL};
static const char *const det_examples[] = {"2x3x3", "3x3", NULL};

static const double blackman[] = {0.42, -0.5, 0.08};
static const double hann[] = {0.5, -0.5, 0};
static const double hamming[] = {25.0 / 46, -21.0 / 46, 0};

#define ROW(onnx, opset, least, most, rules, read, shapes, eg, fwd, ...)                           \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = (opset), .min_in = (least), .max_in = (most),       \
        .min_out = 1, .max_out = 1, .attrs = (rules), .parse = (read), .infer = (shapes),          \
        .examples = (eg), .forward = (fwd), __VA_ARGS__                                            \
    }
const struct accel_op accel_op_blackmanwindow =
    ROW("BlackmanWindow", 17, 1, 1, window_attrs, parse, window_infer, scalar_examples,
        window_forward, .family = blackman);
const struct accel_op accel_op_hannwindow =
    ROW("HannWindow", 17, 1, 1, window_attrs, parse, window_infer, scalar_examples, window_forward,
        .family = hann);
const struct accel_op accel_op_hammingwindow =
    ROW("HammingWindow", 17, 1, 1, window_attrs, parse, window_infer, scalar_examples,
        window_forward, .family = hamming);
const struct accel_op accel_op_melweightmatrix =
    ROW("MelWeightMatrix", 17, 5, 5, mel_attrs, parse, mel_infer, mel_examples, mel_forward,
        .family = NULL);
const struct accel_op accel_op_dft = ROW("DFT", 17, 1, 3, dft_attrs, parse, dft_infer, dft_examples,
                                         dft_forward, .scratch = dft_scratch);
const struct accel_op accel_op_stft = ROW("STFT", 17, 2, 4, stft_attrs, parse, stft_infer,
                                          stft_examples, stft_forward, .scratch = stft_scratch);
const struct accel_op accel_op_det = ROW("Det", 11, 1, 1, no_attrs, NULL, det_infer, det_examples,
                                         det_forward, .scratch = det_scratch);
