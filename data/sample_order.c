/* sample_order.c - which samples, in which order.
 *
 * A limit keeps the share of each class: the samples are shuffled by the seed and sorted by class,
 * each class gets its quota (largest remainders), and the first ones of it are taken. Without
 * `shuffle` the sample keeps the order of the files, so that two commands see the same batches. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "data/data_int.h"

struct place {
    int64_t label, rank, sample; /* rank: after shuffling */
};

struct group {
    size_t first, n; /* in the sorted places */
    int64_t quota;
    uint64_t remainder; /* of its share */
    size_t index;
};

static void shuffle(int64_t *v, int64_t n, struct accel_rng *r)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t k = (int64_t)(accel_rng_uniform(r) * (double)(i + 1));
        int64_t t = v[i];
        v[i] = v[k];
        v[k] = t;
    }
}

static int by_label(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    int c = (x->label > y->label) - (x->label < y->label);
    return c ? c : (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_remainder(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    int c = (x->remainder < y->remainder) - (x->remainder > y->remainder);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Groups of equal labels with their quotas: n of n_all, each by its share. */
static size_t share_out(struct group *g, const struct place *p, size_t n_all, int64_t n)
{
    size_t n_group = 0;
    int64_t given = 0;
    for (size_t i = 0; i < n_all; i++) {
        if (i == 0 || p[i].label != p[i - 1].label) {
            g[n_group] = (struct group){.first = i, .index = n_group};
            n_group++;
        }
        g[n_group - 1].n++;
    }
    for (size_t k = 0; k < n_group; k++) { /* n <= 10^9, and labels are in memory: no overflow */
        uint64_t part = (uint64_t)n * g[k].n;
        g[k].quota = (int64_t)(part / n_all);
        g[k].remainder = part % n_all;
        given += g[k].quota;
    }
    qsort(g, n_group, sizeof *g, by_remainder);
    for (size_t k = 0; given < n; k++, given++)
        g[k].quota++;
    return n_group;
}

static enum accel_err take_sample(struct accel_dataset *d, int64_t n, struct accel_rng *r)
{
    size_t n_all = (size_t)d->n_all;
    enum accel_err err = ACCEL_OK;
    struct place *p = accel_calloc(n_all, sizeof *p);
    struct group *g = accel_calloc(n_all, sizeof *g);
    int64_t *rank = accel_calloc(n_all, sizeof *rank);
    d->order = accel_calloc((size_t)n, sizeof *d->order);
    if (!p || !g || !rank || !d->order) {
        err = accel_fail_nomem();
        goto done;
    }
    for (size_t i = 0; i < n_all; i++)
        rank[i] = (int64_t)i;
    shuffle(rank, d->n_all, r);
    for (size_t i = 0; i < n_all; i++) {
        bool has_class = d->label_kind == ACCEL_LABEL_CLASS;
        p[i] = (struct place){has_class ? ((int64_t *)d->label)[i] : 0, rank[i], (int64_t)i};
    }
    qsort(p, n_all, sizeof *p, by_label);
    size_t n_group = share_out(g, p, n_all, n);
    for (size_t k = 0, to = 0; k < n_group; k++)
        for (int64_t i = 0; i < g[k].quota; i++)
            d->order[to++] = p[g[k].first + (size_t)i].sample;
    qsort(d->order, (size_t)n, sizeof *d->order, by_number);
done:
    accel_free(p);
    accel_free(g);
    accel_free(rank);
    return err;
}

enum accel_err accel_dataset_order(struct accel_dataset *d)
{
    const struct accel_data_spec *s = d->spec;
    struct accel_rng r = accel_rng_init(s->seed);
    d->n = s->limit && s->limit < d->n_all ? s->limit : d->n_all;
    if (d->n < d->n_all)
        ACCEL_TRY(take_sample(d, d->n, &r));
    if (s->shuffle != 1)
        return ACCEL_OK;
    if (!d->order) {
        d->order = accel_calloc((size_t)d->n, sizeof *d->order);
        if (!d->order)
            return accel_fail_nomem();
        for (int64_t i = 0; i < d->n; i++)
            d->order[i] = i;
    }
    shuffle(d->order, d->n, &r);
    return ACCEL_OK;
}
