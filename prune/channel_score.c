/* Elements come in pieces, in the tensor's order. A piece is cut into rows along which the channel
 * is the same (or, where the axis is the last one, changes with every element). */
#include "prune/channel_score.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "prune/groups.h"
#include "prune/scale_map.h"

struct pass {
    const struct accel_target *t;
    double *sum;
    int64_t n;     /* channels */
    int64_t inner; /* elements behind one index of the axis */
    bool square;
    double *scale, *zero; /* of stored integers, or NULL */
    struct accel_scale_map map, zero_map;
    float *wide; /* FPGM: all elements, channel by channel */
};

enum { STEP = 1024 }; /* elements converted at a time */

enum { LANES = 8 };

/* All of one channel. In lanes, so that additions need not wait for each other. */
static double sum_of(const float *x, uint64_t n, bool square)
{
    double lane[LANES] = {0}, s = 0;
    uint64_t k = 0;
    for (; k + LANES <= n; k += LANES)
        for (int j = 0; j < LANES; j++) {
            double v = (double)x[k + (uint64_t)j];
            lane[j] += square ? v * v : fabs(v);
        }
    for (; k < n; k++)
        s += square ? (double)x[k] * (double)x[k] : fabs((double)x[k]);
    for (int j = 0; j < LANES; j++)
        s += lane[j];
    return s;
}

/* Channels one after the other, an element each. */
static void add_each(double *restrict sum, const float *restrict x, uint64_t n, bool square)
{
    if (square)
        for (uint64_t k = 0; k < n; k++)
            sum[k] += (double)x[k] * (double)x[k];
    else
        for (uint64_t k = 0; k < n; k++)
            sum[k] += fabs((double)x[k]);
}

static void add(struct pass *p, uint64_t at, const float *x, uint64_t n)
{
    uint64_t inner = (uint64_t)p->inner, all = (uint64_t)p->n;
    for (uint64_t i = 0; i < n;) {
        uint64_t channel = (at + i) / inner % all;
        uint64_t left = inner > 1 ? inner - (at + i) % inner : all - channel;
        uint64_t m = left < n - i ? left : n - i;
        if (inner > 1)
            p->sum[channel] += sum_of(x + i, m, p->square);
        else
            add_each(p->sum + channel, x + i, m, p->square);
        i += m;
    }
}

static void scatter(struct pass *p, uint64_t at, const float *x, uint64_t n)
{
    uint64_t inner = (uint64_t)p->inner, all = (uint64_t)p->n;
    uint64_t width = p->t->tensor->n / all;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t e = at + i, outer = e / inner / all;
        p->wide[(e / inner % all) * width + outer * inner + e % inner] = x[i];
    }
}

static void dequantize(const struct pass *p, uint64_t at, float *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        double zero = p->zero ? p->zero[accel_scale_index(&p->zero_map, at + i)] : 0;
        x[i] = (float)(((double)x[i] - zero) * p->scale[accel_scale_index(&p->map, at + i)]);
    }
}

static enum accel_err sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct pass *p = ctx;
    float x[STEP];
    double wide[STEP];
    enum accel_dtype dtype = p->t->tensor->dtype;
    for (uint64_t i = 0; i < count; i += STEP) {
        uint64_t n = count - i < STEP ? count - i : STEP;
        if (dtype == ACCEL_F32) {
            memcpy(x, (const char *)elem + i * sizeof *x, n * sizeof *x);
        } else {
            accel_dtype_to_f64(dtype, elem, (size_t)i, (size_t)n, wide);
            for (uint64_t k = 0; k < n; k++)
                x[k] = (float)wide[k];
        }
        if (p->scale)
            dequantize(p, first + i, x, n);
        add(p, first + i, x, n);
        if (p->wide)
            scatter(p, first + i, x, n);
    }
    return ACCEL_OK;
}

static enum accel_err read_f64(double **out, const struct accel_tensor *t)
{
    void *stored = accel_calloc(t->size + 1, 1);
    enum accel_err err = ACCEL_OK;
    *out = accel_calloc(t->n, sizeof **out);
    if (!stored || !*out)
        err = accel_fail_nomem();
    if (!err)
        err = accel_tensor_read(t, 0, t->n, stored);
    if (!err)
        accel_dtype_to_f64(t->dtype, stored, 0, (size_t)t->n, *out);
    accel_free(stored);
    return err;
}

static enum accel_err read_scales(struct pass *p)
{
    const struct accel_target *t = p->t;
    if (!t->scale)
        return ACCEL_OK;
    ACCEL_TRY(accel_scale_map_init(&p->map, t->tensor, t->scale, t->scale_axis));
    ACCEL_TRY(read_f64(&p->scale, t->scale));
    if (!t->zero_point)
        return ACCEL_OK;
    ACCEL_TRY(accel_scale_map_init(&p->zero_map, t->tensor, t->zero_point, t->scale_axis));
    return read_f64(&p->zero, t->zero_point);
}

/* ------------------------------------------------------------------ scores of all channels */

/* |a - b|^2 = |a|^2 + |b|^2 - 2 a.b, both halves of the table at once. `sum` holds |a|^2 before. */
static enum accel_err distances(struct pass *p, double *score)
{
    uint64_t width = p->t->tensor->n / (uint64_t)p->n;
    for (int64_t a = 0; a < p->n; a++)
        score[a] = 0;
    for (int64_t a = 0; a < p->n; a++)
        for (int64_t b = a + 1; b < p->n; b++) {
            const float *x = p->wide + (uint64_t)a * width, *y = p->wide + (uint64_t)b * width;
            float lane[8] = {0};
            double dot = 0;
            uint64_t i = 0;
            for (; i + 8 <= width; i += 8)
                for (int k = 0; k < 8; k++)
                    lane[k] += (x[i + (uint64_t)k] - y[i + (uint64_t)k]) *
                               (x[i + (uint64_t)k] - y[i + (uint64_t)k]);
            for (int k = 0; k < 8; k++)
                dot += (double)lane[k];
            for (; i < width; i++)
                dot += (double)((x[i] - y[i]) * (x[i] - y[i]));
            score[a] += sqrt(dot);
            score[b] += sqrt(dot);
        }
    return ACCEL_OK;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static enum accel_err lamp(struct pass *p, double *score)
{
    double *sorted = accel_calloc((size_t)p->n, sizeof *sorted), *behind;
    if (!sorted || !(behind = accel_calloc((size_t)p->n + 1, sizeof *behind))) {
        accel_free(sorted);
        return accel_fail_nomem();
    }
    memcpy(sorted, p->sum, (size_t)p->n * sizeof *sorted);
    qsort(sorted, (size_t)p->n, sizeof *sorted, by_value);
    for (int64_t i = p->n - 1; i >= 0; i--)
        behind[i] = behind[i + 1] + sorted[i];
    for (int64_t i = 0; i < p->n; i++) {
        int64_t lo = 0, hi = p->n; /* the first of its value */
        while (lo < hi) {
            int64_t mid = lo + (hi - lo) / 2;
            if (sorted[mid] < p->sum[i])
                lo = mid + 1;
            else
                hi = mid;
        }
        score[i] = behind[lo] > 0 ? p->sum[i] / behind[lo] : 0;
    }
    accel_free(sorted);
    accel_free(behind);
    return ACCEL_OK;
}

static enum accel_err finish(struct pass *p, double *score, enum accel_score kind, uint64_t seed)
{
    struct accel_rng rng = accel_rng_init(seed);
    if (kind == ACCEL_SCORE_FPGM)
        return distances(p, score);
    if (kind == ACCEL_SCORE_LAMP)
        return lamp(p, score);
    for (int64_t i = 0; i < p->n; i++)
        score[i] = kind == ACCEL_SCORE_RANDOM ? accel_rng_uniform(&rng)
                   : p->square                ? sqrt(p->sum[i])
                                              : p->sum[i];
    return ACCEL_OK;
}

enum accel_err accel_channel_score(double *score, bool *finite, const struct accel_target *t,
                                   int axis, enum accel_score kind, uint64_t seed,
                                   struct accel_buffer *room)
{
    struct pass p = {.t = t, .n = t->tensor->dim[axis], .inner = 1};
    enum accel_err err = ACCEL_OK;
    *finite = true;
    if (!t->tensor->n)
        return ACCEL_OK;
    p.square = kind == ACCEL_SCORE_L2 || kind == ACCEL_SCORE_LAMP;
    for (int a = t->tensor->rank - 1; a > axis; a--)
        p.inner *= t->tensor->dim[a];
    p.sum = accel_calloc((size_t)p.n, sizeof *p.sum);
    p.wide = kind == ACCEL_SCORE_FPGM ? accel_calloc(t->tensor->n, sizeof *p.wide) : NULL;
    if (!p.sum || (kind == ACCEL_SCORE_FPGM && !p.wide))
        err = accel_fail_nomem();
    if (!err)
        err = read_scales(&p);
    if (!err)
        err = accel_tensor_scan(t->tensor, room, sink, &p);
    for (int64_t i = 0; !err && i < p.n; i++)
        *finite = *finite && isfinite(p.sum[i]);
    if (!err)
        err = finish(&p, score, kind, seed);
    accel_free(p.sum);
    accel_free(p.wide);
    accel_free(p.scale);
    accel_free(p.zero);
    accel_scale_map_clear(&p.map);
    accel_scale_map_clear(&p.zero_map);
    return err;
}
