/* sparsegpt.c - inputs are first brought into an order in which what is chosen together lies side
 * by side: channel after channel for each tap when m is given, as they are otherwise. Blocks end
 * where such groups end. Inside of a block single inputs update the rest of it; what is behind the
 * block is updated once, by a product. */
#include "prune/sparsegpt.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/linalg.h"

enum { BLOCK = 128 };
#define DAMPING 0.01 /* of the mean of the diagonal, as in the paper */

struct work {
    double *w;     /* [n_out, n_in] in the new order */
    double *c;     /* [n_in, n_in] the factor, upper */
    double *error; /* [BLOCK + group, n_out] with the sign changed */
    size_t n_out, n_in;
    size_t *order; /* [n_in] */
    bool *gone;    /* [n_out, BLOCK + group] */
    double *metric;
    size_t room; /* inputs in a block at most */
    const struct accel_amount *amount;
    double asked; /* entries that should be gone by now */
    size_t had;   /* and those that are */
};

/* Inputs that are chosen together, from `at` on. */
static size_t group_at(const struct work *k, size_t at)
{
    size_t channels = k->n_in / k->amount->taps, m = k->amount->m, c = at % channels;
    return !m ? 1 : channels - c < m ? channels - c : m;
}

static size_t block_at(const struct work *k, size_t from)
{
    size_t to = from;
    while (to < k->n_in && to - from < BLOCK)
        to += group_at(k, to);
    return to;
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double metric(const struct work *k, size_t out, size_t i)
{
    double d = k->w[out * k->n_in + i] / k->c[i * k->n_in + i];
    return d * d;
}

/* Marks the lowest of all entries of a block. */
static void choose_share(struct work *k, size_t from, size_t to)
{
    size_t n = (to - from) * k->n_out, at = 0;
    k->asked += (double)n * k->amount->ratio;
    double due = floor(k->asked * (1 + 1e-12)) - (double)k->had;
    size_t count = due > 0 ? (size_t)due : 0;
    count = count > n ? n : count;
    for (size_t o = 0; o < k->n_out; o++)
        for (size_t i = from; i < to; i++)
            k->metric[at++] = metric(k, o, i);
    qsort(k->metric, n, sizeof *k->metric, by_value);
    double limit = count ? k->metric[count - 1] : -1;
    size_t below = 0;
    while (below < count && k->metric[below] < limit)
        below++;
    size_t ties = count - below;
    for (size_t o = 0; o < k->n_out; o++)
        for (size_t i = from; i < to; i++) {
            double v = metric(k, o, i);
            bool tie = v == limit && ties;
            ties -= tie;
            k->gone[o * k->room + i - from] = v < limit || tie;
        }
    k->had += count;
}

/* Marks all but the n highest of a group, of each output; of equal ones the first go. */
static void choose_group(struct work *k, size_t from, size_t at, size_t n)
{
    for (size_t o = 0; o < k->n_out; o++)
        for (size_t i = at; i < at + n; i++) {
            double v = metric(k, o, i);
            size_t beaten = 0;
            for (size_t j = at; j < at + n; j++) {
                double u = j == i ? 0 : metric(k, o, j);
                beaten += j != i && (u > v || (u == v && j > i));
            }
            k->gone[o * k->room + i - from] = beaten >= k->amount->n;
        }
}

/* One input: what goes moves the rest of the block. */
static void step(struct work *k, size_t from, size_t to, size_t i)
{
    double d = k->c[i * k->n_in + i], *error = k->error + (i - from) * k->n_out;
    for (size_t o = 0; o < k->n_out; o++) {
        double *row = k->w + o * k->n_in;
        error[o] = k->gone[o * k->room + i - from] ? -row[i] / d : 0;
        if (!k->gone[o * k->room + i - from])
            continue;
        for (size_t j = i + 1; j < to; j++)
            row[j] += error[o] * k->c[i * k->n_in + j];
        row[i] = 0;
    }
}

static enum accel_err prune_blocks(struct work *k)
{
    for (size_t from = 0, to; from < k->n_in; from = to) {
        size_t group_end = from;
        to = block_at(k, from);
        if (!k->amount->m)
            choose_share(k, from, to);
        for (size_t i = from; i < to; i++) {
            if (k->amount->m && i == group_end) {
                size_t n = group_at(k, i);
                choose_group(k, from, i, n);
                group_end = i + n;
            }
            step(k, from, to, i);
        }
        ACCEL_TRY(accel_linalg_cross(k->w + to, k->n_in, k->n_out, k->n_in - to, k->error, k->n_out,
                                     k->c + from * k->n_in + to, k->n_in, to - from));
    }
    return ACCEL_OK;
}

/* The factor of the inverse of h, with inputs in the new order, into k->c; inputs that are always
 * zero get weight zero. */
static enum accel_err factorise(bool *definite, struct work *k, const double *h)
{
    size_t n = k->n_in;
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean += h[i * n + i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            size_t a = k->order[n - 1 - i], b = k->order[n - 1 - j];
            k->c[i * n + j] = a > b ? h[a * n + b] : h[b * n + a];
        }
        bool dead = k->c[i * n + i] == 0;
        k->c[i * n + i] += DAMPING * mean + (dead ? 1 : 0);
        for (size_t o = 0; dead && o < k->n_out; o++)
            k->w[o * n + n - 1 - i] = 0;
    }
    /* With J the reversal: J H J = L L^T gives H^-1 = (J L^-1 J)^T (J L^-1 J), whose second factor
     * is upper triangular: the C that is wanted. */
    ACCEL_TRY(accel_linalg_cholesky(definite, k->c, n));
    if (!*definite)
        return ACCEL_OK;
    double *inverse = accel_calloc(n, n * sizeof *inverse);
    if (!inverse)
        return accel_fail_nomem();
    for (size_t i = 0; i < n; i++)
        inverse[i * n + i] = 1;
    enum accel_err err = accel_linalg_solve_lower(k->c, n, inverse, n);
    for (size_t i = 0; i < n; i++) /* C[i, j] = L^-1[n-1-i, n-1-j] */
        for (size_t j = i; j < n; j++)
            k->c[i * n + j] = inverse[(n - 1 - i) * n + n - 1 - j];
    accel_free(inverse);
    return err;
}

static enum accel_err work_init(struct work *k)
{
    size_t taps = k->amount->taps, channels = k->n_in / taps;
    k->room = BLOCK + k->amount->m;
    k->w = accel_calloc(k->n_out, k->n_in * sizeof *k->w);
    k->c = accel_calloc(k->n_in, k->n_in * sizeof *k->c);
    k->error = accel_calloc(k->room, k->n_out * sizeof *k->error);
    k->order = accel_calloc(k->n_in, sizeof *k->order);
    k->gone = accel_calloc(k->n_out, k->room * sizeof *k->gone);
    k->metric = accel_calloc(k->n_out, k->room * sizeof *k->metric);
    if (!k->w || !k->c || !k->error || !k->order || !k->gone || !k->metric)
        return accel_fail_nomem();
    for (size_t i = 0; i < k->n_in; i++)
        k->order[i] = k->amount->m ? i % channels * taps + i / channels : i;
    return ACCEL_OK;
}

enum accel_err accel_sparsegpt_prune(double *w, size_t n_out, size_t n_in, double *h,
                                     const struct accel_amount *amount)
{
    struct work k = {.n_out = n_out, .n_in = n_in, .amount = amount};
    bool definite = true;
    enum accel_err err = work_init(&k);
    for (size_t o = 0; !err && o < n_out; o++)
        for (size_t i = 0; i < n_in; i++)
            k.w[o * n_in + i] = w[o * n_in + k.order[i]];
    if (!err)
        err = factorise(&definite, &k, h);
    if (!err && !definite)
        err = accel_fail(ACCEL_ENOSUP, "its inputs do not vary");
    if (!err)
        err = prune_blocks(&k);
    for (size_t o = 0; !err && o < n_out; o++)
        for (size_t i = 0; i < n_in; i++)
            w[o * n_in + k.order[i]] = k.w[o * n_in + i];
    accel_free(k.w);
    accel_free(k.c);
    accel_free(k.error);
    accel_free(k.order);
    accel_free(k.gone);
    accel_free(k.metric);
    return err;
}
