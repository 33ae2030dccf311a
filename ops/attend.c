/* attend.c - attention, one row of scores at a time: products, softcap, bias, softmax, values. Sums
 * are taken in double. Heads of one sample do not depend on each other, so threads share them. */
#include "ops/attend.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "ops/operand.h"

struct accel_heads accel_heads_of(real *at, bool folded, int64_t heads, int64_t steps, int64_t size)
{
    if (folded)
        return (struct accel_heads){at, steps * heads * size, size, heads * size};
    return (struct accel_heads){at, heads * steps * size, steps * size, size};
}

size_t accel_attend_scratch(int64_t batch, int64_t heads, int64_t total)
{
    int64_t n = accel_macs_mul(accel_macs_mul(accel_macs_mul(batch, heads), total), sizeof(double));
    return n < 0 ? SIZE_MAX : (size_t)n;
}

static const real *key_at(const struct accel_attend *a, const struct accel_heads *past,
                          const struct accel_heads *fresh, int64_t b, int64_t h, int64_t t)
{
    h /= a->heads / a->kv_heads;
    return t < a->past ? accel_heads_at(past, b, h, t) : accel_heads_at(fresh, b, h, t - a->past);
}

static double score(const struct accel_attend *a, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const real *q = accel_heads_at(&a->q, b, h, s), *k = key_at(a, &a->past_k, &a->k, b, h, t);
    double sum = 0;
    for (int64_t i = 0; i < a->size; i++)
        sum += (double)q[i] * (double)k[i];
    return sum * a->scale;
}

/* The numbers of a row become their softmax; a row of nothing becomes 0. */
static void softmax(double *row, int64_t n, double sink)
{
    double most = sink, sum = 0;
    for (int64_t t = 0; t < n; t++)
        most = row[t] > most || isnan(row[t]) ? row[t] : most;
    if (most == -INFINITY) {
        for (int64_t t = 0; t < n; t++)
            row[t] = 0;
        return;
    }
    for (int64_t t = 0; t < n; t++) {
        row[t] = exp(row[t] - most);
        sum += row[t];
    }
    sum += sink > -INFINITY ? exp(sink - most) : 0;
    for (int64_t t = 0; t < n; t++)
        row[t] /= sum;
}

static void keep_scores(const struct accel_attend *a, int stage, const double *row, int64_t b,
                        int64_t h, int64_t s)
{
    int64_t total = a->past + a->fresh;
    real *to = a->scores + ((b * a->heads + h) * a->steps + s) * total;
    for (int64_t t = 0; a->scores && a->stage == stage && t < total; t++)
        to[t] = (real)row[t];
}

static void attend_row(const struct accel_attend *a, double *row, int64_t b, int64_t h, int64_t s)
{
    int64_t total = a->past + a->fresh;
    real *y = accel_heads_at(&a->y, b, h, s);
    for (int64_t t = 0; t < total; t++)
        row[t] = score(a, b, h, s, t);
    keep_scores(a, 0, row, b, h, s);
    for (int64_t t = 0; a->softcap > 0 && t < total; t++)
        row[t] = a->softcap * tanh(row[t] / a->softcap);
    keep_scores(a, 1, row, b, h, s);
    for (int64_t t = 0; t < total; t++)
        row[t] += a->bias(a->ctx, b, h, s, t);
    keep_scores(a, 2, row, b, h, s);
    softmax(row, total, a->sink);
    keep_scores(a, 3, row, b, h, s);
    for (int64_t i = 0; i < a->v_size; i++) {
        double sum = 0;
        for (int64_t t = 0; t < total; t++)
            if (row[t] != 0)
                sum += row[t] * (double)key_at(a, &a->past_v, &a->v, b, h, t)[i];
        y[i] = (real)sum;
    }
}

static void run_heads(void *ctx, int64_t from, int64_t to)
{
    const struct accel_attend *a = ctx;
    for (int64_t i = from; i < to; i++)
        for (int64_t s = 0; s < a->steps; s++)
            attend_row(a, a->row + i * (a->past + a->fresh), i / a->heads, i % a->heads, s);
}

void accel_attend(const struct accel_attend *a)
{
    struct accel_attend copy = *a;
    int64_t work =
        accel_macs_mul(accel_macs_mul(a->steps, a->past + a->fresh), a->size + a->v_size);
    accel_threads_run(run_heads, &copy, a->batch * a->heads, work);
}

void accel_attend_present(real *to, const struct accel_attend *a, const struct accel_heads *past,
                          const struct accel_heads *fresh, int64_t size)
{
    for (int64_t i = 0; i < a->batch * a->kv_heads; i++)
        for (int64_t t = 0; t < a->past + a->fresh; t++, to += size) {
            int64_t b = i / a->kv_heads, h = i % a->kv_heads;
            const real *from = t < a->past ? accel_heads_at(past, b, h, t)
                                           : accel_heads_at(fresh, b, h, t - a->past);
            memcpy(to, from, (size_t)size * sizeof *to);
        }
}
