/* The common half of the edits. The survey is the first pass of a selection anyway (the upper bits
 * of all keys), and from it come, without another look at the data, the zeros, the largest
 * magnitude, NaN and infinity, and the report's histogram. */
#include "prune/mask.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Scales and zero points as doubles, [n] each, in one block. */
static enum accel_err scales_read(struct accel_mask *m, const struct accel_target *t)
{
    uint64_t n = t->scale->n;
    uint64_t size;
    if (!accel_dtype_size(ACCEL_F64, n, &size) || size > SIZE_MAX / 2)
        return accel_fail_nomem();
    m->scale = accel_calloc((size_t)n, 2 * sizeof *m->scale);
    void *stored = accel_calloc((size_t)n, sizeof(double));
    enum accel_err err = ACCEL_OK;
    if (!m->scale || !stored) {
        err = accel_fail_nomem();
        goto done;
    }
    ACCEL_GOTO(err, accel_tensor_read(t->scale, 0, n, stored));
    accel_dtype_to_f64(t->scale->dtype, stored, 0, (size_t)n, m->scale);
    if (t->zero_point) {
        ACCEL_GOTO(err, accel_tensor_read(t->zero_point, 0, n, stored));
        accel_dtype_to_f64(t->zero_point->dtype, stored, 0, (size_t)n, m->scale + n);
    }
    m->key.scale = m->scale;
    m->key.zero = m->scale + n;
    m->key.n_scale = n;
    m->key.inner = 1;
    for (int d = t->scale_axis + 1; n > 1 && d < t->tensor->rank; d++)
        m->key.inner *= (uint64_t)t->tensor->dim[d];
done:
    accel_free(stored);
    return err;
}

enum accel_err accel_mask_new(struct accel_mask **out, size_t size,
                              const struct accel_edit_ops *ops, struct accel_prune_row *row,
                              struct accel_log *log)
{
    const struct accel_target *t = row->target;
    struct accel_mask *m = accel_calloc(1, size);
    if (!m)
        return accel_fail_nomem();
    m->edit.ops = ops;
    m->edit.grain = 1;
    m->row = row;
    m->log = log;
    m->key = accel_key_of(t->tensor->dtype, t->scale != NULL);
    enum accel_err err = t->scale ? scales_read(m, t) : ACCEL_OK;
    if (err)
        accel_mask_free(m);
    else
        *out = m;
    return err;
}

void accel_mask_free(struct accel_mask *m)
{
    accel_spectrum_clear(&m->after);
    accel_free(m->scale);
    accel_free(m);
}

struct accel_source accel_mask_source(const struct accel_tensor *t, const void *whole,
                                      void *scratch, size_t scratch_size)
{
    return (struct accel_source){t, whole, t->n, {scratch, scratch_size, true}};
}

enum accel_err accel_mask_room(struct accel_spectrum **out, struct accel_mask *m,
                               struct accel_spectrum *own)
{
    *out = m->shared ? m->shared : own;
    if ((*out)->bin) {
        accel_spectrum_reset(*out);
        return ACCEL_OK;
    }
    return accel_spectrum_init(*out);
}

struct survey_pass {
    struct accel_spectrum *s;
    const struct accel_key *k;
};

static enum accel_err survey_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct survey_pass *p = ctx;
    accel_spectrum_add(p->s, p->k, elem, first, count);
    return ACCEL_OK;
}

void accel_mask_check(struct accel_mask *m, uint64_t max_key)
{
    struct accel_prune_row *row = m->row;
    uint64_t infinity = accel_key_infinity(&m->key);
    m->surveyed = true;
    if (max_key < infinity)
        return;
    m->left = true;
    row->pruned = false;
    row->threshold = NAN;
    row->reason = max_key > infinity ? "holds NaN" : "holds infinity";
    accel_warn(m->log, "weight '%.200s' %s; left as it is", row->target->name, row->reason);
}

void accel_mask_surveyed(struct accel_mask *m, const struct accel_spectrum *s)
{
    struct accel_prune_row *row = m->row;
    row->zeros_before = s->zeros;
    row->max_abs = accel_spectrum_largest(s, &m->key);
    accel_spectrum_fold(s, &m->key, row->max_abs, row->before, ACCEL_HISTOGRAM_BINS);
    accel_mask_check(m, s->max_key);
}

enum accel_err accel_mask_survey(struct accel_mask *m, struct accel_spectrum *s,
                                 struct accel_source *src)
{
    struct survey_pass p = {s, &m->key};
    accel_spectrum_reset(s);
    ACCEL_TRY(accel_source_pass(src, survey_sink, &p));
    accel_spectrum_end(s);
    accel_mask_surveyed(m, s);
    return ACCEL_OK;
}

/* "After" from "before" when everything below one magnitude went: what the steps above keep is
 * known, and the step of the cut holds the rest. */
static void derive_after(struct accel_prune_row *row)
{
    uint64_t left = row->n - row->zeros_after;
    memset(row->after, 0, sizeof row->after);
    for (int b = ACCEL_HISTOGRAM_BINS; b-- > 0 && left;) {
        row->after[b] = row->before[b] < left && b ? row->before[b] : left;
        if (row->before[b] < left || b == 0)
            left -= row->after[b];
        else
            left = 0;
    }
}

enum accel_err accel_mask_note(struct accel_mask *m, uint64_t first, uint64_t count,
                               const void *elem, uint64_t zeros)
{
    struct accel_prune_row *row = m->row;
    if (!first)
        m->zeros = 0;
    m->zeros += zeros;
    if (m->count_all) {
        if (!m->after.bin)
            ACCEL_TRY(accel_spectrum_init(&m->after));
        else if (!first)
            accel_spectrum_reset(&m->after);
        accel_spectrum_add(&m->after, &m->key, elem, first, count);
    }
    if (first + count < row->n)
        return ACCEL_OK;
    row->zeros_after = m->zeros;
    row->counted = true;
    row->achieved = row->pruned ? (double)m->zeros / (double)row->n : 0;
    if (!m->count_all) {
        derive_after(row);
        return ACCEL_OK;
    }
    accel_spectrum_end(&m->after);
    accel_spectrum_fold(&m->after, &m->key, row->max_abs, row->after, ACCEL_HISTOGRAM_BINS);
    accel_spectrum_clear(&m->after);
    return ACCEL_OK;
}

uint64_t accel_choice_count(uint64_t n, double ratio, bool strict)
{
    double c = floor((double)n * ratio * (strict ? 1 : 1 + 1e-12));
    return !(c > 0) ? 0 : c >= (double)n ? n : (uint64_t)c;
}

struct below_pass {
    const struct accel_key *k;
    uint64_t limit, below;
};

static enum accel_err below_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct below_pass *p = ctx;
    p->below += accel_key_below(p->k, elem, first, count, p->limit);
    return ACCEL_OK;
}

enum accel_err accel_choice_make(struct accel_choice *c, struct accel_source *src,
                                 const struct accel_key *k, struct accel_spectrum *s)
{
    uint64_t count = c->count;
    if (c->rule == ACCEL_RULE_CUT) {
        c->cut.tie_end = c->ties >= c->equal ? UINT64_MAX : 0;
        if (c->ties && c->ties < c->equal)
            ACCEL_TRY(accel_select_tie_end(&c->cut.tie_end, src, k, c->cut.key, c->ties));
        return ACCEL_OK;
    }
    if (c->rule == ACCEL_RULE_THRESHOLD) {
        struct below_pass p = {k, accel_key_at_least(k, c->threshold), 0};
        if (c->low || c->high < src->n)
            ACCEL_TRY(accel_source_pass(src, below_sink, &p));
        count = p.below < c->low ? c->low : p.below > c->high ? c->high : p.below;
        if (count == p.below) {
            c->cut = (struct accel_key_cut){p.limit, 0};
            c->largest = c->threshold;
            return ACCEL_OK;
        }
    }
    ACCEL_TRY(accel_select(&c->cut, src, k, s, count));
    c->largest = !count                        ? NAN
                 : c->cut.key == ACCEL_KEY_ALL ? accel_key_value(k, s->max_key)
                                               : accel_key_value(k, c->cut.key);
    return ACCEL_OK;
}
