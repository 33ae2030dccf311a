/* wanda.c - the entries of one output, or of one group of m, are sorted by their metric. */
#include "prune/wanda.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"

struct entry {
    double metric;
    size_t at;
};

static int by_metric(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    if (a->metric != b->metric)
        return a->metric < b->metric ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Zeroes the `gone` lowest of n entries. */
static void cut(double *w, struct entry *e, size_t n, size_t gone)
{
    if (gone)
        qsort(e, n, sizeof *e, by_metric);
    for (size_t i = 0; i < gone; i++)
        w[e[i].at] = 0;
}

enum accel_err accel_wanda_prune(double *w, size_t n_out, size_t n_in, const double *norm,
                                 const struct accel_amount *amount)
{
    struct entry *e = accel_calloc(n_in, sizeof *e);
    size_t share = (size_t)floor((double)n_in * amount->ratio * (1 + 1e-12)), taps = amount->taps;
    size_t channels = taps ? n_in / taps : 0;
    if (!e)
        return accel_fail_nomem();
    for (size_t k = 0; k < n_out; k++) {
        double *row = w + k * n_in;
        for (size_t i = 0; !amount->m && i < n_in; i++)
            e[i] = (struct entry){fabs(row[i]) * norm[i], i};
        if (!amount->m)
            cut(row, e, n_in, share);
        for (size_t t = 0; amount->m && t < taps; t++)
            for (size_t c = 0; c < channels; c += amount->m) {
                size_t n = channels - c < amount->m ? channels - c : amount->m;
                for (size_t i = 0; i < n; i++) {
                    size_t at = (c + i) * taps + t;
                    e[i] = (struct entry){fabs(row[at]) * norm[at], at};
                }
                cut(row, e, n, n > amount->n ? n - amount->n : 0);
            }
    }
    accel_free(e);
    return ACCEL_OK;
}
