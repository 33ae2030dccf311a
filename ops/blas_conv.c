/* blas_conv.c - Conv as a product: what the windows meet is laid out as columns, one per output
 * position, and the weights are multiplied with them. A tile of the positions at a time, so that
 * the columns stay in the cache; a convolution of 1 x 1 without steps and padding needs none.
 * Convolutions with few weights per channel (depthwise) are no products worth the layout: they stay
 * plain. */
#include <string.h>

#include "base/alloc.h"
#include "graph/op.h"
#include "ops/blas.h"
#include "ops/window.h"

#define TILE_FLOATS 131072 /* of columns at a time */

struct conv {
    struct accel_window_axis axis[3];
    int64_t n, group, c, m;      /* samples; groups; input and output channels of one */
    int64_t taps, in, out, tile; /* positions of a channel of x and y; positions per tile */
    bool bare;                   /* x itself is the columns */
    bool has_bias;
};

/* Elements p … p + n of a row of columns: what tap t of channel x meets at these positions. */
static void fill(float *to, const float *x, const struct conv *v, int64_t t, int64_t p, int64_t n)
{
    const struct accel_window_axis *d = &v->axis[0], *h = &v->axis[1], *w = &v->axis[2];
    int64_t kw = t % w->k, kh = t / w->k % h->k, kd = t / w->k / h->k, lo, hi;
    accel_window_range(&lo, &hi, w, kw);
    while (n > 0) {
        int64_t ow = p % w->out, oh = p / w->out % h->out, od = p / w->out / h->out;
        int64_t here = w->out - ow < n ? w->out - ow : n;
        int64_t id = od * d->stride - d->begin + kd * d->dilation;
        int64_t ih = oh * h->stride - h->begin + kh * h->dilation;
        int64_t from = lo > ow ? lo : ow, end = hi < ow + here ? hi : ow + here;
        memset(to, 0, (size_t)here * sizeof *to);
        if (id >= 0 && id < d->in && ih >= 0 && ih < h->in && from < end) {
            const float *row = x + (id * h->in + ih) * w->in;
            int64_t at = from * w->stride - w->begin + kw * w->dilation;
            for (int64_t o = from; o < end; o++, at += w->stride)
                to[o - ow] = row[at];
        }
        to += here;
        p += here;
        n -= here;
    }
}

static void add_bias(float *y, const float *bias, int64_t m, int64_t n)
{
    for (int64_t i = 0; i < m; i++)
        for (int64_t k = 0; k < n; k++)
            y[i * n + k] = bias[i];
}

/* One group of one sample. */
static void run_group(const struct accel_blas_job *j, const float *x, const float *w, float *y,
                      float *columns)
{
    const struct conv *v = j->more;
    struct accel_gemm g = j->gemm;
    for (int64_t p = 0; p < v->out; p += v->tile) {
        int64_t n = v->out - p < v->tile ? v->out - p : v->tile;
        for (int64_t k = 0; !v->bare && k < v->c * v->taps; k++)
            fill(columns + k * n, x + k / v->taps * v->in, v, k % v->taps, p, n);
        g.N = n;
        g.ldb = v->bare ? v->out : n;
        accel_gemm_run(&g, w, v->bare ? x + p : columns, y + p);
    }
}

static enum accel_err run(const struct accel_blas_job *j, const struct accel_run *r)
{
    const struct conv *v = j->more;
    for (int64_t i = 0; i < v->n * v->group; i++) {
        int64_t group = i % v->group;
        const float *w = (const float *)r->x[1] + group * v->m * v->c * v->taps;
        float *y = (float *)r->y + i * v->m * v->out;
        if (v->has_bias)
            add_bias(y, (const float *)r->x[2] + group * v->m, v->m, v->out);
        run_group(j, (const float *)r->x[0] + i * v->c * v->in, w, y, r->workspace);
    }
    return ACCEL_OK;
}

/* Columns are x itself. */
static bool is_bare(const struct conv *v)
{
    bool bare = v->taps == 1;
    for (int i = 0; i < 3; i++)
        bare = bare && v->axis[i].stride == 1 && v->axis[i].begin == 0 &&
               v->axis[i].in == v->axis[i].out;
    return bare;
}

enum accel_err accel_blas_conv(struct accel_blas_job *j, const struct accel_ask *ask)
{
    const struct accel_node *n = ask->chain[0];
    int64_t x[ACCEL_BLAS_RANK], w[ACCEL_BLAS_RANK], y[ACCEL_BLAS_RANK];
    struct accel_window window;
    int rank, rank_w, rank_y;
    ACCEL_TRY(accel_blas_dims(&rank, x, ask->operand[0]));
    ACCEL_TRY(accel_blas_dims(&rank_w, w, ask->operand[1]));
    ACCEL_TRY(accel_blas_dims(&rank_y, y, n->out[0]));
    if (rank < 3 || rank > 5 || rank_w != rank || rank_y != rank)
        return accel_fail(ACCEL_ENOSUP, "a convolution of rank %d", rank);
    ACCEL_TRY(accel_window_read(&window, n));
    struct conv *v = accel_calloc(1, sizeof *v);
    if (!v)
        return accel_fail_nomem();
    j->more = v;
    j->run = run;
    ACCEL_TRY(accel_window_axes(v->axis, &window, &(struct accel_array){.rank = rank, .dim = x},
                                &(struct accel_array){.rank = rank, .dim = y}, w + 2, false));
    v->n = x[0];
    v->group = window.group;
    v->c = w[1];
    v->m = w[0] / v->group;
    v->taps = v->in = v->out = 1;
    for (int i = 0; i < 3; i++) {
        v->taps *= v->axis[i].k;
        v->in *= v->axis[i].in;
        v->out *= v->axis[i].out;
    }
    v->has_bias = n->n_in > 2 && n->in[2];
    int64_t K = v->c * v->taps;
    if (v->m < 4 || K < 4 || !accel_gemm_fits(K) || !accel_gemm_fits(v->out))
        return accel_fail(ACCEL_ENOSUP, "few weights per channel");
    v->bare = is_bare(v);
    v->tile = v->bare ? v->out : TILE_FLOATS / K;
    v->tile = v->tile < 64 ? 64 : v->tile;
    v->tile = v->tile > v->out ? v->out : v->tile;
    j->workspace = v->bare ? 0 : (size_t)(K * v->tile) * sizeof(float);
    j->gemm = (struct accel_gemm){
        .M = v->m, .K = K, .alpha = 1, .beta = v->has_bias ? 1 : 0, .lda = K, .ldc = v->out};
    return ACCEL_OK;
}
