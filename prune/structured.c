/* Groups, choice, cut; then every row says what happened to it and why. A row's reason is its own
 * fate on the output side first (selected, or why it keeps its channels), and what coupling took
 * from it otherwise. */
#include "prune/structured.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prune/search.h"

struct telling {
    struct accel_prune_plan *p;
    const struct accel_model *m;
    const struct accel_cut_tensor **cut; /* [n_cut] by tensor */
    size_t n_cut;
};

static const char *text(struct telling *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* In the targets' arena; NULL when memory is short. */
static const char *text(struct telling *t, const char *fmt, ...)
{
    char buf[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, sizeof buf, fmt, ap);
    va_end(ap);
    return accel_arena_strndup(&t->p->targets->arena, buf,
                               n < 0                 ? 0
                               : n < (int)sizeof buf ? (size_t)n
                                                     : sizeof buf - 1);
}

/* ------------------------------------------------------------------ why */

static const char *wall_text(struct telling *t, const struct accel_group_wall *w)
{
    if (!w)
        return "nothing here can be cut";
    if (!w->node)
        return w->why;
    return text(t, "blocked by %.200s (%.100s)%s%s", w->node->label, w->node->op_type,
                *w->why ? ": " : "", w->why);
}

static const struct accel_channel_member *member_of(const struct accel_channels *c,
                                                    const struct accel_target *target)
{
    for (int lo = 0, hi = c->n_member; lo < hi;) { /* members come in the order of targets */
        int mid = lo + (hi - lo) / 2;
        if (c->member[mid].target == target)
            return &c->member[mid];
        if (c->member[mid].target < target)
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* Why a selected weight keeps all its channels. */
static const char *kept_reason(struct telling *t, const struct accel_channel_member *m)
{
    const struct accel_channels *c = t->p->channels;
    const struct accel_group_wall *wall = NULL, *first = NULL;
    for (int64_t u = 0; u < m->n; u++) {
        int32_t g = accel_groups_at(c->g, m->axis, u, &wall);
        first = first ? first : wall;
        if (g < 0 || c->set_of[g] < 0)
            continue;
        const struct accel_channel_set *s = &c->set[c->set_of[g]];
        if (s->kept_for >= 0) {
            const struct accel_channel_member *k = &c->member[s->kept_for];
            return k->target->excluded
                       ? text(t, "coupled with %.200s, which is excluded", k->target->node->label)
                       : text(t, "coupled with '%.200s', which holds NaN or infinity",
                              k->target->name);
        }
        return text(t, "too few channels: %d in its set", s->n);
    }
    return wall_text(t, first);
}

/* The selected weight with which a group goes; other than `not`. */
static const struct accel_node *cause(const struct accel_channels *c, int32_t group,
                                      const struct accel_node * not )
{
    const struct accel_channel_set *s =
        group < 0 || c->set_of[group] < 0 ? NULL : &c->set[c->set_of[group]];
    for (int i = 0; s && i < s->n_member; i++)
        if (c->member[s->member[i]].target->node != not )
            return c->member[s->member[i]].target->node;
    return NULL;
}

/* The first cut unit of a row's axes but `except`: who asked for it. */
static const struct accel_node *coupled_with(const struct telling *t,
                                             const struct accel_cut_tensor *c, int except,
                                             const struct accel_node *own)
{
    const struct accel_groups *g = t->p->groups;
    uint32_t first = (uint32_t)(c->axis - t->p->cut->axis);
    for (int a = 0; a < c->before.rank; a++) {
        const struct accel_cut *cut = &c->axis[a];
        if (a == except || !cut->kept)
            continue;
        int64_t unit = 0;
        while (unit < cut->now && cut->kept[unit] == unit)
            unit++;
        const struct accel_node *n =
            cause(t->p->channels, accel_groups_at(g, first + (uint32_t)a, unit, NULL), own);
        if (n)
            return n;
    }
    return NULL;
}

/* ------------------------------------------------------------------ rows */

static enum accel_err tell(struct telling *t, struct accel_prune_row *row,
                           const struct accel_cut_tensor *cut)
{
    const struct accel_target *target = row->target;
    const struct accel_channel_member *m = member_of(t->p->channels, target);
    bool selected = target->sub && target->setting && target->setting->on;
    int out = selected ? target->weight.out_axis : -1;
    const char *own = row->reason;
    if (selected)
        row->requested = target->setting->sparse_ratio;
    if (selected && !m)
        own = target->axis_note
                  ? text(t, "its output axis cannot be traced through %.300s", target->axis_note)
                  : "it lies in a body, or its channels cannot be followed";
    else if (selected && m->selected && m->cut)
        own = "selected";
    else if (selected && m->selected)
        own = kept_reason(t, m);
    else if (selected)
        own = "holds NaN or infinity";
    row->pruned = cut != NULL;
    row->reason = own;
    row->cut = cut ? cut->axis : NULL;
    if (!own)
        return accel_fail_nomem();
    if (!cut)
        return ACCEL_OK;
    bool by_itself = selected && m && m->cut;
    uint64_t left = 1;
    for (int a = 0; a < cut->before.rank; a++)
        left *= (uint64_t)cut->axis[a].now;
    row->achieved = by_itself ? (double)m->cut / (double)m->n
                              : 1 - (double)left / (double)(row->n ? row->n : 1);
    if (by_itself)
        return ACCEL_OK;
    const struct accel_node *with = coupled_with(t, cut, out, selected ? target->node : NULL);
    const char *why = with ? text(t, "coupled with %.200s", with->label) : "coupled with itself";
    bool plain = !selected;
    row->reason = !why ? NULL : plain ? why : text(t, "%s; %s", why, own);
    return row->reason ? ACCEL_OK : accel_fail_nomem();
}

static int by_tensor(const void *x, const void *y)
{
    const struct accel_tensor *a = (*(const struct accel_cut_tensor *const *)x)->tensor,
                              *b = (*(const struct accel_cut_tensor *const *)y)->tensor;
    return (a > b) - (a < b);
}

/* Where a tensor stands in t->cut; NULL: it did not change. */
static const struct accel_cut_tensor **cut_of(const struct telling *t,
                                              const struct accel_tensor *tensor)
{
    const struct accel_cut_tensor key = {.tensor = (struct accel_tensor *)(uintptr_t)tensor};
    const struct accel_cut_tensor *at = &key;
    return t->n_cut ? bsearch(&at, t->cut, t->n_cut, sizeof(*t->cut), by_tensor) : NULL;
}

/* Rows for what changed and has none: biases, norms, constants of all kinds. */
static enum accel_err add_rows(struct telling *t)
{
    struct accel_prune_plan *p = t->p;
    struct accel_arena *arena = &p->targets->arena;
    bool *has = accel_calloc(t->n_cut, sizeof *has);
    struct accel_prune_row *row = accel_realloc(p->row, (size_t)p->n_row + t->n_cut, sizeof *row);
    if (row)
        p->row = row;
    if (!has || !row) {
        accel_free(has);
        return accel_fail_nomem();
    }
    for (int i = 0; i < p->n_row; i++) {
        const struct accel_cut_tensor **c = cut_of(t, row[i].target->tensor);
        if (c)
            has[c - t->cut] = true;
    }
    enum accel_err err = ACCEL_OK;
    for (size_t i = 0; !err && i < t->n_cut; i++) {
        const struct accel_cut_tensor *c = t->cut[i];
        struct accel_target *target = has[i] ? NULL : ACCEL_NEW(arena, struct accel_target, 1);
        if (has[i] || !c->value->n_use)
            continue;
        if (!target) {
            err = accel_fail_nomem();
            break;
        }
        *target = (struct accel_target){.tensor = c->tensor, .name = c->tensor->name};
        target->kind = ACCEL_TARGET_OTHER;
        target->node = c->value->use[0].node;
        target->weight = (struct accel_weight){.slot = c->value->use[0].slot,
                                               .rank = c->before.rank,
                                               .out_axis = -1,
                                               .in_axis = -1,
                                               .in_axis2 = -1,
                                               .type = "",
                                               .bias_slot = -1};
        target->scale_axis = -1;
        target->reason = "not selected";
        row[p->n_row++] = (struct accel_prune_row){.target = target,
                                                   .reason = target->reason,
                                                   .requested = NAN,
                                                   .n = c->before.n,
                                                   .dim = c->before.dim,
                                                   .threshold = NAN};
    }
    accel_free(has);
    return err;
}

static enum accel_err tell_all(struct accel_prune_plan *p, const struct accel_model *m)
{
    struct telling t = {.p = p, .m = m, .n_cut = p->cut->n_tensor};
    enum accel_err err = ACCEL_OK;
    t.cut = accel_calloc(t.n_cut, sizeof(*t.cut));
    if (!t.cut)
        return accel_fail_nomem();
    for (size_t i = 0; i < t.n_cut; i++)
        t.cut[i] = &p->cut->tensor[i];
    if (t.n_cut)
        qsort(t.cut, t.n_cut, sizeof(*t.cut), by_tensor);
    err = add_rows(&t);
    for (int i = 0; !err && i < p->n_row; i++) {
        const struct accel_cut_tensor **c = cut_of(&t, p->row[i].target->tensor);
        err = tell(&t, &p->row[i], c ? *c : NULL);
    }
    accel_free(t.cut);
    return err;
}

enum accel_err accel_structured_choose(struct accel_prune_plan *p, struct accel_model *m,
                                       const struct accel_prune_config *c,
                                       const struct accel_channel_statistics *by)
{
    struct accel_left left;
    ACCEL_TRY(accel_groups_build(&p->groups, m, NULL));
    ACCEL_TRY(accel_channels_choose(&p->channels, p->groups, p->targets, c, by, p->log));
    if (!c->target && !c->ratios_from)
        return ACCEL_OK;
    if (c->ratios_from)
        ACCEL_TRY(accel_curves_read(&p->curves, c->ratios_from->text));
    return accel_config_find(c->target, "accuracy_drop")
               ? ACCEL_OK /* measured by the caller: accel_channels_at() */
               : accel_channels_search(&left, p->channels, p->curves, m);
}

enum accel_err accel_prune_cut(struct accel_prune_plan *p, struct accel_model *m)
{
    ACCEL_TRY(accel_cut_plan_new(&p->cut, p->groups, p->channels->gone));
    ACCEL_TRY(p->channels->config->shrink ? accel_cut_slice(p->cut, m) : accel_cut_mask(p->cut, m));
    return tell_all(p, m);
}
