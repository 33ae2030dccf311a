/* Members first (selected weights and those that must keep what they have), then sets by
 * refinement: groups begin in one set, and each member splits every set into the groups that it
 * touches and those that it does not. Counts are decided per set, or by one ranking over several
 * sets; then each set gives its lowest scores, as far as every axis keeps an index. */
#include "prune/channel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prune/channel_score.h"
#include "prune/mask.h"

/* ------------------------------------------------------------------ members */

bool accel_channels_axis(uint32_t *axis, const struct accel_groups *g, const struct accel_target *t)
{
    const struct accel_node *n = t->node;
    int slot = t->weight.slot;
    if (n->graph != g->m->graph || t->weight.out_axis < 0)
        return false;
    while (n->in[slot] && !n->in[slot]->tensor) { /* up through what only passes a constant on */
        n = n->in[slot]->producer;
        slot = 0;
        if (!n || n->graph != g->m->graph || n->n_in < 1)
            return false;
    }
    if (!n->in[slot] || n->in[slot]->tensor != t->tensor)
        return false;
    *axis = accel_groups_operand(g, n, slot, t->weight.out_axis);
    return true;
}

static bool takes_part(const struct accel_target *t)
{
    bool weight = t->kind == ACCEL_TARGET_WEIGHT || t->kind == ACCEL_TARGET_NORM;
    return weight && (t->excluded || (t->sub && t->setting && t->setting->on));
}

static enum accel_err add_member(struct accel_channels *c, const struct accel_target *t,
                                 const struct accel_channel_statistics *by,
                                 struct accel_buffer *room, struct accel_log *log)
{
    struct accel_channel_member *m = &c->member[c->n_member];
    uint32_t axis;
    bool finite = true;
    if (!accel_channels_axis(&axis, c->g, t))
        return ACCEL_OK;
    *m = (struct accel_channel_member){.target = t, .axis = axis, .n = c->g->size[axis]};
    m->selected = !t->excluded;
    m->inputs = t->excluded && c->config->exclude_inputs;
    c->n_member++;
    if (!m->selected)
        return ACCEL_OK;
    m->score = ACCEL_NEW(&c->arena, double, m->n + 1);
    if (!m->score)
        return accel_fail_nomem();
    if (by)
        ACCEL_TRY(by->score(by->ctx, t, t->weight.out_axis, m->score, m->n));
    else
        ACCEL_TRY(accel_channel_score(m->score, &finite, t, t->weight.out_axis, c->config->score,
                                      c->config->seed + (uint64_t)c->n_member, room));
    for (int64_t i = 0; i < m->n; i++)
        m->mean += m->score[i] / (double)m->n;
    finite = finite && isfinite(m->mean);
    if (finite)
        return ACCEL_OK;
    accel_warn(log,
               by ? "'%.200s': nothing tells of its channels, it stays as it is"
                  : "'%.200s' holds NaN or infinity: it stays as it is",
               t->name);
    m->selected = false;
    m->inputs = true;
    m->score = NULL;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ sets */

static int32_t group_at(const struct accel_channels *c, const struct accel_channel_member *m,
                        int64_t i)
{
    return accel_groups_at(c->g, m->axis, i, NULL);
}

/* Splits every set by the groups that member `i` touches. map[old set] is the set of those. */
static void refine(struct accel_channels *c, int i, int32_t *map, int32_t *stamp, int *n_set)
{
    const struct accel_channel_member *m = &c->member[i];
    int before = *n_set;
    for (int64_t u = 0; u < m->n; u++) {
        int32_t g = group_at(c, m, u);
        if (g < 0 || stamp[g] == i + 1)
            continue;
        stamp[g] = i + 1;
        int32_t old = c->set_of[g];
        if (map[old] < before) {
            map[old] = *n_set;
            map[*n_set] = -1;
            ++*n_set;
        }
        c->set_of[g] = map[old];
    }
}

/* Fills set_of, -1 for groups that no selected weight touches. Sets are numbered in the order of
 * their first groups, those without any group do not count. */
static enum accel_err find_sets(struct accel_channels *c)
{
    size_t n = (size_t)c->g->n_group;
    size_t most = n + (size_t)c->n_member + 2;
    int32_t *map = accel_calloc(2 * most, sizeof *map), *stamp = accel_calloc(n, sizeof *stamp);
    int n_id = 1, n_set = 0;
    enum accel_err err = map && stamp ? ACCEL_OK : accel_fail_nomem();
    if (err)
        goto done;
    map[0] = -1;
    for (int i = 0; i < c->n_member; i++) {
        if (!c->member[i].selected)
            continue;
        if ((size_t)n_id + n >= 2 * most) { /* many ids are empty by now: number them anew */
            int32_t *fresh = accel_calloc((size_t)n_id, sizeof *fresh);
            int next = 1;
            if (!fresh) {
                err = accel_fail_nomem();
                goto done;
            }
            for (size_t g = 0; g < n; g++) {
                int32_t id = c->set_of[g];
                if (id && !fresh[id])
                    fresh[id] = next++;
                c->set_of[g] = id ? fresh[id] : 0;
            }
            accel_free(fresh);
            n_id = next;
            for (int k = 0; k < n_id; k++)
                map[k] = -1;
        }
        refine(c, i, map, stamp, &n_id);
    }
    for (int k = 0; k < n_id; k++)
        map[k] = -1;
    for (size_t g = 0; g < n; g++) {
        int32_t id = c->set_of[g];
        if (id && map[id] < 0)
            map[id] = n_set++;
        c->set_of[g] = id ? map[id] : -1;
    }
    c->n_set = n_set;
done:
    accel_free(map);
    accel_free(stamp);
    return err;
}

/* The groups and members of each set. */
static enum accel_err fill_sets(struct accel_channels *c)
{
    size_t n = (size_t)c->g->n_group;
    bool *seen = accel_calloc(n, sizeof *seen);
    int *last = accel_calloc((size_t)c->n_set, sizeof *last);
    c->set = ACCEL_NEW(&c->arena, struct accel_channel_set, c->n_set + 1);
    int32_t *group = ACCEL_NEW(&c->arena, int32_t, n + 1);
    enum accel_err err = seen && last && c->set && group ? ACCEL_OK : accel_fail_nomem();
    for (size_t g = 0; !err && g < n; g++)
        if (c->set_of[g] >= 0)
            c->set[c->set_of[g]].n++;
    for (int s = 0; !err && s < c->n_set; s++) {
        c->set[s].group = group;
        c->set[s].kept_for = -1;
        group += c->set[s].n;
        c->set[s].n = 0;
    }
    for (int pass = 0; !err && pass < 2; pass++) {
        for (int s = 0; s < c->n_set; s++) {
            last[s] = -1;
            if (pass && !(c->set[s].member = ACCEL_NEW(&c->arena, int, c->set[s].n_member + 1))) {
                err = accel_fail_nomem();
                break;
            }
            c->set[s].n_member = 0;
        }
        for (int i = 0; !err && i < c->n_member; i++)
            for (int64_t u = 0; c->member[i].selected && u < c->member[i].n; u++) {
                int32_t g = group_at(c, &c->member[i], u);
                struct accel_channel_set *s = g < 0 ? NULL : &c->set[c->set_of[g]];
                if (!s)
                    continue;
                if (pass && !seen[g]) {
                    seen[g] = true;
                    s->group[s->n++] = g;
                }
                if (last[c->set_of[g]] == i)
                    continue;
                last[c->set_of[g]] = i;
                if (pass)
                    s->member[s->n_member] = i;
                s->n_member++;
            }
    }
    accel_free(seen);
    accel_free(last);
    return err;
}

/* A promise to keep a channel keeps its whole set. */
static void keep_excluded(struct accel_channels *c)
{
    for (int i = 0; i < c->n_member; i++) {
        const struct accel_channel_member *m = &c->member[i];
        const struct accel_target *t = m->target;
        if (m->selected)
            continue;
        uint32_t first = m->axis - (uint32_t)t->weight.out_axis;
        for (int a = 0; a < t->tensor->rank; a++) {
            if (!m->inputs && a != t->weight.out_axis)
                continue;
            for (int64_t u = 0; u < c->g->size[first + (uint32_t)a]; u++) {
                int32_t g = accel_groups_at(c->g, first + (uint32_t)a, u, NULL);
                if (g >= 0 && c->set_of[g] >= 0 && c->set[c->set_of[g]].kept_for < 0)
                    c->set[c->set_of[g]].kept_for = i;
            }
        }
    }
}

/* ------------------------------------------------------------------ scores */

static double reduce(enum accel_reduction how, double so_far, double x, int count)
{
    if (!count)
        return x;
    switch (how) {
    case ACCEL_REDUCE_MAX:
        return x > so_far ? x : so_far;
    case ACCEL_REDUCE_FIRST:
        return so_far;
    default:
        return so_far + x;
    }
}

/* A member's score of a group is the mean over the channels it has in it. */
static enum accel_err score_groups(struct accel_channels *c)
{
    size_t n = (size_t)c->g->n_group;
    double *part = accel_calloc(n, sizeof *part);
    int32_t *units = accel_calloc(n, sizeof *units);
    int *count = accel_calloc(n, sizeof *count);
    enum accel_reduction how = c->config->reduction;
    enum accel_err err = part && units && count ? ACCEL_OK : accel_fail_nomem();
    for (int i = 0; !err && i < c->n_member; i++) {
        const struct accel_channel_member *m = &c->member[i];
        for (int64_t u = 0; m->selected && u < m->n; u++) {
            int32_t g = group_at(c, m, u);
            if (g < 0)
                continue;
            part[g] += m->score[u];
            units[g]++;
        }
        for (int64_t u = 0; m->selected && u < m->n; u++) {
            int32_t g = group_at(c, m, u);
            if (g < 0 || !units[g])
                continue;
            double x = part[g] / units[g], scaled = m->mean > 0 ? x / m->mean : 0;
            c->raw[g] = reduce(how, c->raw[g], x, count[g]);
            c->score[g] = reduce(how, c->score[g], scaled, count[g]);
            count[g]++;
            part[g] = 0;
            units[g] = 0;
        }
    }
    for (size_t g = 0; !err && g < n; g++)
        if (how == ACCEL_REDUCE_MEAN && count[g]) {
            c->raw[g] /= count[g];
            c->score[g] /= count[g];
        }
    accel_free(part);
    accel_free(units);
    accel_free(count);
    return err;
}

/* ------------------------------------------------------------------ how many */

/* A group and its rank. */
struct ranked {
    double score;
    int32_t group, at;
};

static int by_score(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* "auto": runtimes compute with blocks of 8 or 16 channels, so filling up the last block costs no
 * time. Few channels are not blocked. */
static int64_t lanes_for(int64_t kept)
{
    return kept < 8 ? 1 : kept <= 32 ? 8 : 16;
}

/* Groups that go from n so that what stays is a multiple of `to`, rounding up; one stays, or `to`
 * if there are as many. */
static int32_t rounded(int32_t n, int64_t cut, int64_t to)
{
    int64_t kept = n - cut;
    kept = kept < 1 ? 1 : kept;
    to = to ? to : lanes_for(kept);
    kept = (kept + to - 1) / to * to;
    return kept > n ? 0 : (int32_t)(n - kept);
}

static int32_t below(const struct accel_channels *c, const struct accel_channel_set *s, double t)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++)
        n += c->raw[s->group[i]] < t;
    return n;
}

/* The smallest ratio asked for, the bounds that hold for all members. */
static void ask(struct accel_channels *c, struct accel_channel_set *s)
{
    double ratio = NAN, threshold = NAN, low = 0, high = 1;
    bool strict = c->config->strict_nni;
    for (int i = 0; i < s->n_member; i++) {
        const struct accel_setting *a = c->member[s->member[i]].target->setting;
        ratio = isnan(a->sparse_ratio) || ratio <= a->sparse_ratio ? ratio : a->sparse_ratio;
        threshold = isnan(a->sparse_threshold) || threshold <= a->sparse_threshold
                        ? threshold
                        : a->sparse_threshold;
        low = a->min_ratio > low ? a->min_ratio : low;
        high = a->max_ratio < high ? a->max_ratio : high;
    }
    low = low > high ? high : low;
    s->ratio = ratio;
    s->low = (int32_t)accel_choice_count((uint64_t)s->n, low, strict);
    s->high = (int32_t)accel_choice_count((uint64_t)s->n, high, strict);
    if (s->kept_for >= 0) {
        s->low = s->high = s->cut = 0;
        return;
    }
    int32_t by_ratio =
        isnan(ratio) ? 0 : (int32_t)accel_choice_count((uint64_t)s->n, ratio, strict);
    s->cut = isnan(threshold) ? by_ratio : below(c, s, threshold);
    if (!isnan(threshold) && !isnan(ratio) && by_ratio < s->cut)
        s->cut = by_ratio;
    s->cut = s->cut < s->low ? s->low : s->cut > s->high ? s->high : s->cut;
}

static const char *global_of(const struct accel_channels *c, const struct accel_channel_set *s)
{
    for (int i = 0; i < s->n_member; i++) {
        const char *g = c->member[s->member[i]].target->setting->global_group;
        if (g)
            return g;
    }
    return NULL;
}

/* Elements of the selected weights that go with each group. */
static double *costs(const struct accel_channels *c)
{
    double *cost = accel_calloc((size_t)c->g->n_group, sizeof *cost);
    for (int i = 0; cost && i < c->n_member; i++) {
        const struct accel_channel_member *m = &c->member[i];
        for (int64_t u = 0; m->selected && u < m->n; u++) {
            int32_t g = group_at(c, m, u);
            if (g >= 0)
                cost[g] += (double)m->target->tensor->n / (double)m->n;
        }
    }
    return cost;
}

/* One ranking over the sets that `in` marks: sets their cuts so that at most `amount` elements go.
 *
 * `even`: scores are multiplied by the cube of a group's place in its set (0 to 1), which is the
 * geometric mean of the score and that place, the latter counting three times. By scores alone a
 * small target takes nearly all of a few layers: on four trained networks, repaired by least
 * squares, it cost up to 11 points of accuracy at equal multiply-adds; at the mean of both, or
 * evenly, none. */
static enum accel_err rank_sets(struct accel_channels *c, const bool *in, double amount, bool even)
{
    size_t n = 0;
    double *cost = costs(c);
    struct ranked *list = accel_calloc((size_t)c->g->n_group, sizeof *list);
    enum accel_err err = cost && list ? ACCEL_OK : accel_fail_nomem();
    for (int s = 0; !err && s < c->n_set; s++) {
        if (!in[s])
            continue;
        struct ranked *own = list + n;
        for (int32_t i = 0; i < c->set[s].n; i++)
            own[i] = (struct ranked){c->score[c->set[s].group[i]], c->set[s].group[i], i};
        qsort(own, (size_t)c->set[s].n, sizeof *own, by_score);
        for (int32_t i = 0; i < c->set[s].n; i++) {
            double share = (i + 0.5) / c->set[s].n;
            own[i].score *= even ? share * share * share : 1;
            if (i < c->set[s].low)
                amount -= cost[own[i].group]; /* goes in any case */
            else
                list[n++] = own[i];
        }
        c->set[s].cut = c->set[s].low;
    }
    for (size_t i = 0; !err && i < n; i++)
        list[i].at = list[i].group;
    if (!err)
        qsort(list, n, sizeof *list, by_score);
    for (size_t i = 0; !err && i < n; i++) {
        struct accel_channel_set *s = &c->set[c->set_of[list[i].group]];
        if (s->cut >= s->high)
            continue;
        if (cost[list[i].group] > amount * (1 + 1e-12))
            break;
        amount -= cost[list[i].group];
        s->cut++;
    }
    accel_free(cost);
    accel_free(list);
    return err;
}

/* The sets of one global group are ranked together. */
static enum accel_err rank_globals(struct accel_channels *c)
{
    bool *in = accel_calloc((size_t)c->n_set, sizeof *in),
         *done = accel_calloc((size_t)c->n_set, sizeof *done);
    enum accel_err err = in && done ? ACCEL_OK : accel_fail_nomem();
    for (int s = 0; !err && s < c->n_set; s++) {
        const char *name = done[s] ? NULL : global_of(c, &c->set[s]);
        if (!name)
            continue;
        double ratio = 1, all = 0;
        for (int i = 0; i < c->n_set; i++) {
            const char *other = global_of(c, &c->set[i]);
            in[i] = other && !strcmp(other, name) && c->set[i].kept_for < 0;
            done[i] = done[i] || in[i];
            if (in[i] && c->set[i].ratio < ratio)
                ratio = c->set[i].ratio;
        }
        done[s] = true;
        for (int i = 0; i < c->n_member; i++) {
            const struct accel_channel_member *m = &c->member[i];
            const char *own = m->selected ? m->target->setting->global_group : NULL;
            all += own && !strcmp(own, name) ? (double)m->target->tensor->n : 0;
        }
        err = rank_sets(c, in, ratio * all, false);
    }
    accel_free(in);
    accel_free(done);
    return err;
}

/* ------------------------------------------------------------------ which ones */

/* Cuts a group unless an axis would lose its last index. */
static bool take(struct accel_channels *c, int64_t *left, int32_t group)
{
    const struct accel_groups *g = c->g;
    for (size_t i = g->part_at[group]; i < g->part_at[group + 1]; i++)
        if (left[g->part[i].cls] <= (int64_t)g->part[i].count)
            return false;
    for (size_t i = g->part_at[group]; i < g->part_at[group + 1]; i++)
        left[g->part[i].cls] -= (int64_t)g->part[i].count;
    c->gone[group] = true;
    return true;
}

enum accel_err accel_channels_pick(struct accel_channels *c)
{
    int64_t *left = accel_calloc(c->g->n_class, sizeof *left);
    struct ranked *list = accel_calloc((size_t)c->g->n_group, sizeof *list);
    enum accel_err err = left && list ? ACCEL_OK : accel_fail_nomem();
    for (size_t i = 0; !err && i < c->g->n_class; i++)
        left[i] = c->g->cls[i].n;
    memset(c->gone, 0, (size_t)c->g->n_group * sizeof *c->gone);
    for (int s = 0; !err && s < c->n_set; s++) {
        struct accel_channel_set *set = &c->set[s];
        int32_t want = set->kept_for >= 0 ? 0 : rounded(set->n, set->cut, c->config->round_to);
        for (int32_t i = 0; i < set->n; i++)
            list[i] = (struct ranked){c->score[set->group[i]], set->group[i], i};
        qsort(list, (size_t)set->n, sizeof *list, by_score);
        set->cut = 0;
        for (int32_t i = 0; i < set->n && set->cut < want; i++)
            set->cut += take(c, left, list[i].group);
    }
    for (int i = 0; !err && i < c->n_member; i++) {
        c->member[i].cut = 0;
        for (int64_t u = 0; u < c->member[i].n; u++) {
            int32_t g = group_at(c, &c->member[i], u);
            c->member[i].cut += g >= 0 && c->gone[g];
        }
    }
    accel_free(left);
    accel_free(list);
    return err;
}

enum accel_err accel_channels_rank(struct accel_channels *c, double ratio)
{
    bool *in = accel_calloc((size_t)c->n_set, sizeof *in);
    double all = 0;
    if (!in)
        return accel_fail_nomem();
    for (int s = 0; s < c->n_set; s++) {
        in[s] = c->set[s].kept_for < 0;
        ask(c, &c->set[s]);
    }
    for (int i = 0; i < c->n_member; i++)
        all += c->member[i].selected ? (double)c->member[i].target->tensor->n : 0;
    enum accel_err err = rank_sets(c, in, ratio * all, true);
    accel_free(in);
    return err ? err : accel_channels_pick(c);
}

static enum accel_err choose(struct accel_channels *c, const struct accel_targets *t,
                             const struct accel_channel_statistics *by, struct accel_log *log)
{
    size_t n = (size_t)c->g->n_group;
    struct accel_buffer room;
    c->member = ACCEL_NEW(&c->arena, struct accel_channel_member, t->n + 1);
    c->set_of = ACCEL_NEW(&c->arena, int32_t, n + 1);
    c->score = ACCEL_NEW(&c->arena, double, n + 1);
    c->raw = ACCEL_NEW(&c->arena, double, n + 1);
    c->gone = ACCEL_NEW(&c->arena, bool, n + 1);
    if (!c->member || !c->set_of || !c->score || !c->raw || !c->gone)
        return accel_fail_nomem();
    ACCEL_TRY(accel_buffer_init(&room, 0));
    enum accel_err err = ACCEL_OK;
    for (int i = 0; !err && i < t->n; i++)
        if (takes_part(&t->at[i]))
            err = add_member(c, &t->at[i], by, &room, log);
    accel_buffer_clear(&room);
    ACCEL_TRY(err);
    ACCEL_TRY(find_sets(c));
    ACCEL_TRY(fill_sets(c));
    keep_excluded(c);
    ACCEL_TRY(score_groups(c));
    for (int s = 0; s < c->n_set; s++)
        ask(c, &c->set[s]);
    ACCEL_TRY(rank_globals(c));
    return accel_channels_pick(c);
}

enum accel_err accel_channels_choose(struct accel_channels **out, const struct accel_groups *g,
                                     const struct accel_targets *t,
                                     const struct accel_prune_config *config,
                                     const struct accel_channel_statistics *by,
                                     struct accel_log *log)
{
    struct accel_channels *c = accel_calloc(1, sizeof *c);
    if (!c)
        return accel_fail_nomem();
    c->g = g;
    c->config = config;
    enum accel_err err = choose(c, t, by, log);
    if (err)
        accel_channels_free(c);
    else
        *out = c;
    return err;
}

void accel_channels_free(struct accel_channels *c)
{
    if (!c)
        return;
    accel_arena_clear(&c->arena);
    accel_free(c);
}
