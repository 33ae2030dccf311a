/* From targets to edits. Each selected constant gets the edit of its pattern and granularity; what
 * is ranked alone reads nothing here and decides while it is written. Members of a global group are
 * ranked here, in streaming passes.
 *
 * A constant from which nothing goes gets no edit, so that the writer copies it as it is. */
#include "prune/prune.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prune/mask.h"
#include "prune/structured.h"

/* A selected constant whose amount is settled with others. */
struct grouped {
    const char *group;
    int row;
    struct accel_mask *mask;
    struct accel_choice *choice;
    double ratio;
    bool blocks;
};

struct build {
    struct accel_prune_plan *plan;
    const struct accel_prune_config *config;
    struct accel_log *log;
    struct grouped *grouped;
    size_t n_grouped, grouped_cap;
};

static enum accel_err keep(struct build *b, struct accel_prune_row *row, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The constant stays as it is; the reason is kept with the targets. */
static enum accel_err keep(struct build *b, struct accel_prune_row *row, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    int len = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    size_t n = len < 0 ? 0 : (size_t)len < sizeof text ? (size_t)len : sizeof text - 1;
    row->pruned = false;
    row->reason = accel_arena_strndup(&b->plan->targets->arena, text, n);
    return row->reason ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err keep_untraced(struct build *b, struct accel_prune_row *row, const char *axis)
{
    const struct accel_target *t = row->target;
    return keep(b, row, "its %s axis cannot be traced%s%.200s", axis,
                t->axis_note ? " through " : "", t->axis_note ? t->axis_note : "");
}

static int out_axis(const struct build *b, const struct accel_target *t)
{
    return b->config->strict_nni ? 0 : t->weight.out_axis;
}

static int in_axis(const struct build *b, const struct accel_target *t)
{
    return b->config->strict_nni && t->tensor->rank > 1 ? 1 : t->weight.in_axis;
}

/* Sizes of a block along each dim, [rank] from the arena; *out NULL when the row was kept. */
static enum accel_err block_sizes(const int64_t **out, struct build *b, struct accel_prune_row *row,
                                  const struct accel_setting *s)
{
    const struct accel_target *t = row->target;
    const struct accel_tensor *w = t->tensor;
    int64_t *size = ACCEL_NEW(&b->plan->targets->arena, int64_t, w->rank ? w->rank : 1);
    *out = NULL;
    if (!size)
        return accel_fail_nomem();
    if (s->granularity == ACCEL_GRAIN_BLOCK) {
        if (s->n_block > w->rank)
            return accel_fail(ACCEL_EARG, "granularity has %d numbers, '%.200s' has %d dims",
                              s->n_block, t->name, w->rank);
        for (int d = 0; d < w->rank; d++) {
            int i = d - (w->rank - s->n_block);
            size[d] = i < 0 ? 1 : s->block[i] < 0 ? w->dim[d] : s->block[i];
        }
    } else {
        bool by_out = s->granularity == ACCEL_GRAIN_OUT_CHANNEL;
        int axis = by_out ? out_axis(b, t) : in_axis(b, t);
        if (axis < 0 || axis >= w->rank)
            return keep_untraced(b, row, by_out ? "output" : "input");
        for (int d = 0; d < w->rank; d++)
            size[d] = d == axis ? 1 : w->dim[d];
    }
    *out = size;
    return ACCEL_OK;
}

static bool all_ones(const int64_t *size, int rank)
{
    for (int d = 0; d < rank; d++)
        if (size[d] != 1)
            return false;
    return true;
}

/* Turns ratio, threshold and bounds into a choice over n entries; false: nothing can go. */
static bool choice_set(struct accel_choice *c, const struct build *b, const struct accel_setting *s,
                       uint64_t n)
{
    bool strict = b->config->strict_nni;
    c->low = accel_choice_count(n, s->min_ratio, strict);
    c->high = accel_choice_count(n, s->max_ratio, strict);
    c->largest = NAN;
    if (!isnan(s->sparse_threshold)) {
        c->rule = ACCEL_RULE_THRESHOLD;
        c->threshold = s->sparse_threshold;
        return c->threshold > 0 || c->low;
    }
    double ratio = isnan(s->sparse_ratio) ? 0 : s->sparse_ratio;
    if (ratio < s->min_ratio)
        ratio = s->min_ratio;
    if (ratio > s->max_ratio)
        ratio = s->max_ratio;
    c->rule = ACCEL_RULE_COUNT;
    c->count = accel_choice_count(n, ratio, strict);
    return c->count > 0;
}

static enum accel_err group_add(struct build *b, struct accel_prune_row *row,
                                struct accel_mask *mask, struct accel_choice *choice, bool blocks)
{
    const struct accel_setting *s = row->target->setting;
    if (!ACCEL_GROW(b->grouped, b->grouped_cap, b->n_grouped + 1)) {
        mask->edit.ops->free(&mask->edit);
        return accel_fail_nomem();
    }
    b->grouped[b->n_grouped++] = (struct grouped){
        s->global_group, (int)(row - b->plan->row), mask, choice, s->sparse_ratio, blocks};
    return ACCEL_OK;
}

static enum accel_err select_ranked(struct build *b, struct accel_prune_row *row)
{
    const struct accel_target *t = row->target;
    const struct accel_setting *s = t->setting;
    struct accel_mask *mask = NULL;
    struct accel_choice *choice = NULL;
    const int64_t *size = NULL;
    uint64_t n = t->tensor->n;
    bool together = s->global_group && isnan(s->sparse_threshold);
    if (s->granularity == ACCEL_GRAIN_PER_CHANNEL) {
        int axis = out_axis(b, t);
        if (together)
            return accel_fail(ACCEL_EARG,
                              "granularity \"per_channel\" ranks each channel of '%.200s' by "
                              "itself and cannot be part of global group '%.100s'",
                              t->name, s->global_group);
        if (axis < 0 || axis >= t->tensor->rank)
            return keep_untraced(b, row, "output");
        ACCEL_TRY(accel_channel_new(&mask, &choice, row, axis, b->log));
        n /= (uint64_t)t->tensor->dim[axis];
    } else if (s->granularity != ACCEL_GRAIN_ELEMENT) {
        ACCEL_TRY(block_sizes(&size, b, row, s));
        if (!size)
            return ACCEL_OK;
        if (!all_ones(size, t->tensor->rank)) {
            ACCEL_TRY(accel_block_new(&mask, &choice, row, size, b->log));
            n = accel_block_count(mask);
        }
    }
    bool blocks = mask && size;
    if (!mask)
        ACCEL_TRY(accel_level_new(&mask, &choice, row, b->log));
    mask->shared = b->plan->work;
    bool some = choice_set(choice, b, s, n);
    if (together)
        return group_add(b, row, mask, choice, blocks);
    if (some)
        accel_tensor_set_edit(t->tensor, &mask->edit);
    else
        mask->edit.ops->free(&mask->edit);
    return ACCEL_OK;
}

/* An input axis that n:m can go along; *axis is -1 when the row was kept. */
static enum accel_err nm_axis(int *axis, struct build *b, struct accel_prune_row *row)
{
    const struct accel_target *t = row->target;
    int a = t->weight.in_axis;
    *axis = -1;
    if (a < 0 || a >= t->tensor->rank)
        return keep_untraced(b, row, "input");
    if (t->tensor->dim[a] <= b->config->n)
        return keep(b, row, "too few inputs: %lld, and %lld of %lld may stay",
                    (long long)t->tensor->dim[a], (long long)b->config->n, (long long)b->config->m);
    *axis = a;
    return ACCEL_OK;
}

static enum accel_err select_nm(struct build *b, struct accel_prune_row *row)
{
    const struct accel_target *t = row->target;
    struct accel_mask *mask;
    int axis;
    ACCEL_TRY(nm_axis(&axis, b, row));
    if (axis < 0)
        return ACCEL_OK;
    ACCEL_TRY(accel_nm_new(&mask, row, axis, b->config->n, b->config->m, b->log));
    mask->shared = b->plan->work;
    row->requested = 1 - (double)b->config->n / (double)b->config->m;
    accel_tensor_set_edit(t->tensor, &mask->edit);
    return ACCEL_OK;
}

/* The caller of this room knows the activations. */
static enum accel_err select_by_data(struct build *b, struct accel_prune_row *row)
{
    const struct accel_target *t = row->target;
    const struct accel_setting *s = t->setting;
    if (t->scale)
        return keep(b, row, "holds scaled integers");
    if (t->n_reader > 1)
        return keep(b, row, "has %d readers", t->n_reader);
    int axis = 0;
    if (b->config->pattern == ACCEL_PATTERN_NM)
        ACCEL_TRY(nm_axis(&axis, b, row));
    if (axis < 0)
        return ACCEL_OK;
    if (b->config->pattern == ACCEL_PATTERN_NM)
        row->requested = 1 - (double)b->config->n / (double)b->config->m;
    else
        row->requested = fmin(fmax(s->sparse_ratio, s->min_ratio), s->max_ratio);
    row->by_data = true;
    return ACCEL_OK;
}

static enum accel_err select_align(struct build *b, struct accel_prune_row *row)
{
    const struct accel_target *t = row->target, *w = t->weight_of_bias;
    struct accel_mask *mask;
    if (!w)
        return keep(b, row, "its weight is not a constant");
    int axis = out_axis(b, w);
    if (axis < 0 || axis >= w->tensor->rank)
        return keep(b, row, "the output axis of '%.200s' cannot be traced", w->name);
    if ((uint64_t)w->tensor->dim[axis] != t->tensor->n)
        return keep(b, row, "has %llu entries, '%.200s' has %lld output channels",
                    (unsigned long long)t->tensor->n, w->name, (long long)w->tensor->dim[axis]);
    ACCEL_TRY(accel_align_new(&mask, row, w, axis, b->log));
    mask->shared = b->plan->work;
    accel_tensor_set_edit(t->tensor, &mask->edit);
    return ACCEL_OK;
}

/* Puts the place in the config in front of an error about it. */
static enum accel_err placed(const struct accel_target *t, enum accel_err err)
{
    char text[1024];
    if (err != ACCEL_EARG || !t->sub->at)
        return err;
    const struct accel_config *at = accel_config_find(t->sub->at, "granularity");
    snprintf(text, sizeof text, "%s", accel_errmsg());
    return accel_config_fail(at ? at : t->sub->at, false, "%s", text);
}

static enum accel_err row_select(struct build *b, struct accel_prune_row *row)
{
    const struct accel_target *t = row->target;
    const struct accel_tensor *w = t->tensor;
    if (!t->sub || !t->setting || !t->setting->on)
        return ACCEL_OK;
    row->pruned = true;
    row->requested = t->setting->sparse_ratio;
    if (!w->n)
        return keep(b, row, "has no elements");
    if (!t->scale && !accel_dtype_is_float(w->dtype))
        return keep(b, row, "holds %s", accel_dtype_find((int)w->dtype)->name);
    if (t->block_scales)
        return keep(b, row, "quantized with a scale per block");
    if (t->scale) {
        bool one = t->scale->n == 1, fits = t->scale_axis >= 0 && t->scale_axis < w->rank;
        if (accel_dtype_find((int)w->dtype)->cls == ACCEL_CLASS_OTHER ||
            (!one && (!fits || (uint64_t)w->dim[t->scale_axis] != t->scale->n)) ||
            (t->zero_point && t->zero_point->n != t->scale->n))
            return keep(b, row, "its scales are neither one nor one per channel");
    }
    if (t->setting->align)
        return select_align(b, row);
    if (b->config->by_data && t->kind == ACCEL_TARGET_WEIGHT)
        return select_by_data(b, row);
    if (b->config->pattern == ACCEL_PATTERN_NM)
        return select_nm(b, row);
    return placed(t, select_ranked(b, row));
}

/* --------------------------------------------------------------------------------- global groups
 */

static int by_group(const void *x, const void *y)
{
    const struct grouped *a = x, *b = y;
    int c = strcmp(a->group, b->group);
    return c ? c : a->row - b->row;
}

/* True when one kind of the elements' own keys serves all members. */
static bool keys_alike(const struct grouped *g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (g[i].blocks || g[i].mask->key.scale || g[i].mask->key.dtype != g[0].mask->key.dtype)
            return false;
    return true;
}

static enum accel_err member_init(struct accel_member *m, const struct build *b, struct grouped *g,
                                  bool alike, struct accel_buffer *room)
{
    const struct accel_tensor *t = b->plan->row[g->row].target->tensor;
    m->mask = g->mask;
    m->choice = g->choice;
    m->ratio = isnan(g->ratio) ? 0 : g->ratio;
    m->src = accel_mask_source(t, NULL, room->data, room->size);
    if (g->blocks) {
        ACCEL_TRY(accel_block_measure(g->mask, &m->src));
        accel_block_member(g->mask, m);
        return ACCEL_OK;
    }
    m->weight = 1;
    m->key = g->mask->key;
    m->key.wide = m->key.wide || !alike;
    m->key.bits = m->key.wide ? 63 : m->key.bits;
    return ACCEL_OK;
}

static enum accel_err group_rank(struct build *b, struct grouped *g, size_t n,
                                 struct accel_buffer *room)
{
    enum accel_err err = ACCEL_OK;
    bool alike = keys_alike(g, n);
    struct accel_member *member = accel_calloc(n, sizeof *member);
    if (!member)
        return accel_fail_nomem();
    for (size_t i = 0; i < n; i++)
        ACCEL_GOTO(err, member_init(&member[i], b, &g[i], alike, room));
    ACCEL_GOTO(err, accel_global_rank(member, n, b->config->strict_nni));
    for (size_t i = 0; i < n; i++) {
        struct accel_tensor *t = b->plan->row[g[i].row].target->tensor;
        if (g[i].blocks)
            accel_block_drop(g[i].mask);
        if (g[i].mask->left || !g[i].choice->count)
            continue; /* nothing goes: freed with the rest */
        accel_tensor_set_edit(t, &g[i].mask->edit);
        g[i].mask = NULL;
    }
done:
    accel_free(member);
    return err;
}

static enum accel_err groups_rank(struct build *b)
{
    enum accel_err err = ACCEL_OK;
    struct accel_buffer room;
    if (!b->n_grouped)
        return ACCEL_OK;
    qsort(b->grouped, b->n_grouped, sizeof *b->grouped, by_group);
    ACCEL_TRY(accel_buffer_init(&room, 0));
    for (size_t i = 0; i < b->n_grouped;) {
        size_t end = i + 1;
        while (end < b->n_grouped && !strcmp(b->grouped[end].group, b->grouped[i].group))
            end++;
        ACCEL_GOTO(err, group_rank(b, b->grouped + i, end - i, &room));
        i = end;
    }
done:
    accel_buffer_clear(&room);
    return err;
}

enum accel_err accel_prune_plan_new(struct accel_prune_plan **out, struct accel_model *m,
                                    struct accel_targets *targets,
                                    const struct accel_prune_config *c,
                                    const struct accel_channel_statistics *by,
                                    struct accel_log *log)
{
    enum accel_err err;
    struct build b = {.config = c, .log = log};
    struct accel_prune_plan *p = b.plan = accel_calloc(1, sizeof *p);
    if (!p) {
        accel_targets_free(targets);
        return accel_fail_nomem();
    }
    p->log = log;
    p->targets = targets;
    p->n_row = targets->n;
    p->row = accel_calloc((size_t)p->n_row, sizeof *p->row);
    p->work = accel_calloc(1, sizeof *p->work);
    if (!p->row || !p->work) {
        err = accel_fail_nomem();
        goto done;
    }
    for (int i = 0; i < p->n_row; i++) {
        const struct accel_target *t = &targets->at[i];
        p->row[i] = (struct accel_prune_row){.target = t,
                                             .reason = t->reason,
                                             .requested = NAN,
                                             .n = t->tensor->n,
                                             .dim = t->tensor->dim,
                                             .threshold = NAN};
    }
    if (c->pattern == ACCEL_PATTERN_CHANNEL) {
        err = accel_structured_choose(p, m, c, by);
        goto done;
    }
    for (int i = 0; i < p->n_row; i++)
        ACCEL_GOTO(err, row_select(&b, &p->row[i]));
    err = groups_rank(&b);
done:
    for (size_t i = 0; i < b.n_grouped; i++)
        if (b.grouped[i].mask)
            b.grouped[i].mask->edit.ops->free(&b.grouped[i].mask->edit);
    accel_free(b.grouped);
    if (err)
        accel_prune_plan_free(p);
    else
        *out = p;
    return err;
}

enum accel_err accel_prune_choose(struct accel_prune_plan **out, struct accel_model *m,
                                  const struct accel_prune_config *c,
                                  const struct accel_channel_statistics *by, struct accel_log *log)
{
    struct accel_targets *targets;
    ACCEL_TRY(accel_targets_build(&targets, m, c, log));
    return accel_prune_plan_new(out, m, targets, c, by, log);
}

enum accel_err accel_prune_build(struct accel_prune_plan **out, struct accel_model *m,
                                 const struct accel_prune_config *c, struct accel_log *log)
{
    struct accel_prune_plan *p;
    ACCEL_TRY(accel_prune_choose(&p, m, c, NULL, log));
    enum accel_err err = p->channels ? accel_prune_cut(p, m) : ACCEL_OK;
    if (err)
        accel_prune_plan_free(p);
    else
        *out = p;
    return err;
}

void accel_prune_plan_free(struct accel_prune_plan *p)
{
    if (!p)
        return;
    accel_channels_free(p->channels);
    accel_curves_free(p->curves);
    accel_cut_plan_free(p->cut);
    accel_groups_free(p->groups);
    accel_targets_free(p->targets);
    if (p->work)
        accel_spectrum_clear(p->work);
    accel_free(p->work);
    accel_free(p->row);
    accel_free(p);
}
