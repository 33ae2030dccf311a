/* Small tensors: sorting a few keys is cheaper than clearing and adding up tables of 32,768
 * counters, and models hold thousands of such tensors. The answers are the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prune/mask.h"

static int by_size(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return a < b ? -1 : a > b;
}

/* How many of n sorted keys are below `limit`. */
static uint64_t rank_of(const uint64_t *key, uint64_t n, uint64_t limit)
{
    uint64_t low = 0, high = n;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (key[mid] < limit)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

enum accel_err accel_small_sort(uint64_t **out, const struct accel_key *k, const void *elem,
                                uint64_t n)
{
    uint64_t *key = accel_calloc((size_t)n, sizeof *key);
    if (!key)
        return accel_fail_nomem();
    accel_key_load(k, elem, 0, 0, (size_t)n, key);
    if (n)
        qsort(key, (size_t)n, sizeof *key, by_size);
    *out = key;
    return ACCEL_OK;
}

uint64_t accel_small_survey(struct accel_prune_row *row, const struct accel_key *k,
                            const uint64_t *key)
{
    uint64_t n = row->n, finite = rank_of(key, n, accel_key_infinity(k));
    row->zeros_before = rank_of(key, n, 1);
    row->max_abs = finite ? accel_key_value(k, key[finite - 1]) : 0;
    memset(row->before, 0, sizeof row->before);
    for (uint64_t i = row->zeros_before; i < n && row->max_abs > 0; i++) {
        double at = accel_key_value(k, key[i]) / row->max_abs * ACCEL_HISTOGRAM_BINS;
        if (at >= 0)
            row->before[at < ACCEL_HISTOGRAM_BINS ? (int)at : ACCEL_HISTOGRAM_BINS - 1]++;
    }
    return n ? key[n - 1] : 0;
}

/* The `count` smallest go. */
static enum accel_err cut_count(struct accel_choice *c, struct accel_source *src,
                                const struct accel_key *k, const uint64_t *key, uint64_t count)
{
    c->largest = count ? accel_key_value(k, key[count - 1]) : NAN;
    c->cut = (struct accel_key_cut){count ? ACCEL_KEY_ALL : 0, 0};
    if (!count || count >= src->n)
        return ACCEL_OK;
    uint64_t last = key[count - 1], below = rank_of(key, src->n, last);
    c->cut = (struct accel_key_cut){last, UINT64_MAX};
    if (rank_of(key, src->n, last + 1) > count)
        return accel_select_tie_end(&c->cut.tie_end, src, k, last, count - below);
    return ACCEL_OK;
}

enum accel_err accel_small_choose(struct accel_choice *c, struct accel_source *src,
                                  const struct accel_key *k, const uint64_t *key)
{
    if (c->rule == ACCEL_RULE_COUNT)
        return cut_count(c, src, k, key, c->count);
    uint64_t limit = accel_key_at_least(k, c->threshold), below = rank_of(key, src->n, limit);
    uint64_t count = below < c->low ? c->low : below > c->high ? c->high : below;
    if (count != below)
        return cut_count(c, src, k, key, count);
    c->cut = (struct accel_key_cut){limit, 0};
    c->largest = c->threshold;
    return ACCEL_OK;
}
