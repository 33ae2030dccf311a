/* The record of what one node says. It knows nothing of graphs of units: it only checks that what
 * is said fits the operands, so that those who read it need not, and that a rule which does not fit
 * (contradicting sizes, a hostile file) ends as walls.
 *
 * Lists are reused from node to node; sides and candidates lie in an arena and outlive the ask,
 * since a pass keeps the ties of all nodes. Speaking cannot fail: a failed allocation sticks and
 * comes out of the ask. */
#include "graph/links.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/constprop.h"

/* ------------------------------------------------------------------------------ operands */

struct accel_value *accel_slot_value(const struct accel_node *n, int slot)
{
    if (slot < 0 || slot >= n->n_in + n->n_out)
        return NULL;
    return slot < n->n_in ? n->in[slot] : n->out[slot - n->n_in];
}

int accel_slot_rank(const struct accel_node *n, int slot)
{
    const struct accel_value *v = accel_slot_value(n, slot);
    return v ? v->shape.rank : -1;
}

static struct accel_dim dim_of(const struct accel_node *n, int slot, int axis)
{
    const struct accel_value *v = accel_slot_value(n, slot);
    return v && axis >= 0 && axis < v->shape.rank ? v->shape.dim[axis] : accel_dim_unknown();
}

int64_t accel_slot_size(const struct accel_node *n, int slot, int axis)
{
    return accel_dim_probe(dim_of(n, slot, axis), &n->graph->model->symbols, ACCEL_LINKS_PROBE);
}

/* ------------------------------------------------------------------------------ the record */

static void nomem(struct accel_links *l)
{
    l->err = accel_fail_nomem();
}

static void say(struct accel_links *l, int slot, int axis)
{
    if (axis >= 0 && axis < accel_slot_rank(l->node, slot))
        l->said[l->base[slot] + (size_t)axis] = true;
}

bool accel_links_mentions(const struct accel_links *l, int slot, int axis)
{
    return axis >= 0 && axis < accel_slot_rank(l->node, slot) &&
           l->said[l->base[slot] + (size_t)axis];
}

/* Rules rely on every operand that is not optional. */
static bool is_complete(const struct accel_node *n)
{
    if (!n->op || !n->op->links || n->n_in < n->op->min_in || n->n_out < n->op->min_out)
        return false;
    for (int i = 0; i < n->op->min_in; i++)
        if (!n->in[i])
            return false;
    for (int i = 0; i < n->op->min_out; i++)
        if (!n->out[i])
            return false;
    return true;
}

/* Starts a new node; *speaks: all operands that are there have a rank. */
static enum accel_err begin(struct accel_links *l, const struct accel_node *node, bool *speaks)
{
    size_t slots = (size_t)node->n_in + (size_t)node->n_out, axes = 0;
    l->node = node;
    l->n_tie = l->n_wall = l->n_need = l->n_candidate = 0;
    l->err = ACCEL_OK;
    *speaks = is_complete(node);
    if (!ACCEL_GROW(l->base, l->base_cap, slots + 1))
        return accel_fail_nomem();
    for (size_t i = 0; i < slots; i++) {
        const struct accel_value *v = accel_slot_value(node, (int)i);
        l->base[i] = axes;
        if (v && v->shape.rank > 0)
            axes += (size_t)v->shape.rank;
        *speaks = *speaks && (!v || v->shape.rank >= 0);
    }
    if (!ACCEL_GROW(l->said, l->said_cap, axes + 1))
        return accel_fail_nomem();
    memset(l->said, 0, axes + 1);
    return ACCEL_OK;
}

enum accel_err accel_links_ask(struct accel_links *l, const struct accel_node *node,
                               const bool *taken)
{
    ACCEL_TRY(begin(l, node, &l->spoke));
    l->taken = taken;
    for (int i = 0; l->spoke && i < node->n_in && i < 32; i++)
        if (node->op->sizes >> i & 1)
            accel_links_seen_all(l, i);
    if (l->spoke)
        node->op->links(node, l);
    return l->err;
}

void accel_links_clear(struct accel_links *l)
{
    accel_free(l->tie);
    accel_free(l->wall);
    accel_free(l->need);
    accel_free(l->candidate);
    accel_free(l->base);
    accel_free(l->said);
    accel_arena_clear(&l->arena);
    *l = (struct accel_links){.n_tie = 0};
}

/* ------------------------------------------------------------------------------ sides */

struct accel_side accel_side_of(int slot, int axis, int64_t off, int64_t outer, int64_t stride,
                                int64_t rep)
{
    return (struct accel_side){slot, axis, off, outer, stride, rep, NULL};
}

struct accel_side accel_side_whole(int slot, int axis)
{
    return accel_side_of(slot, axis, 0, 1, 0, 1);
}

struct accel_side accel_side_rep(int slot, int axis, int64_t rep)
{
    return accel_side_of(slot, axis, 0, 1, 0, rep);
}

struct accel_side accel_side_list(int slot, int axis, const int64_t *list)
{
    return (struct accel_side){slot, axis, 0, 1, 0, 1, list};
}

static bool list_fits(const int64_t *list, int64_t n, int64_t size)
{
    for (int64_t i = 0; i < n; i++)
        if (list[i] < 0 || list[i] >= size)
            return false;
    return true;
}

/* All positions lie on the axis. */
static bool fits(const struct accel_links *l, int64_t n, const struct accel_side *s)
{
    int64_t size = accel_slot_size(l->node, s->slot, s->axis), last, rows;
    if (s->list)
        return list_fits(s->list, n, size);
    if (n < 1 || s->off < 0 || s->outer < 1 || s->stride < 0 || s->rep < 1)
        return false;
    return !__builtin_mul_overflow(s->outer - 1, s->stride, &last) &&
           !__builtin_mul_overflow(n, s->rep, &rows) &&
           !__builtin_add_overflow(last, rows, &last) &&
           !__builtin_add_overflow(last, s->off, &last) && last <= size;
}

/* A copy without the sides that are left out. False: nothing is left, or no memory. */
static bool copy_tie(struct accel_links *l, struct accel_tie *out, int64_t n, int n_sides,
                     const struct accel_side *side)
{
    struct accel_side *copy = ACCEL_NEW(&l->arena, struct accel_side, n_sides);
    *out = (struct accel_tie){n, 0, copy};
    if (!copy) {
        nomem(l);
        return false;
    }
    for (int i = 0; i < n_sides; i++)
        if (accel_slot_value(l->node, side[i].slot))
            copy[out->n_sides++] = side[i];
    return out->n_sides > 0;
}

static bool tie_fits(const struct accel_links *l, const struct accel_tie *t)
{
    for (int i = 0; i < t->n_sides; i++)
        if (!fits(l, t->n, &t->side[i]))
            return false;
    return true;
}

static void add_tie(struct accel_links *l, const struct accel_tie *t)
{
    if (!ACCEL_GROW(l->tie, l->tie_cap, l->n_tie + 1)) {
        nomem(l);
        return;
    }
    l->tie[l->n_tie++] = *t;
    for (int i = 0; i < t->n_sides; i++)
        say(l, t->side[i].slot, t->side[i].axis);
}

void accel_links_tie(struct accel_links *l, int64_t n, int n_sides, const struct accel_side *side)
{
    struct accel_tie t;
    if (!copy_tie(l, &t, n, n_sides, side))
        return;
    bool good = tie_fits(l, &t);
    for (int i = 0; i < t.n_sides; i++) /* where a map lies on a symbol is not known */
        good = good && accel_dim_known(dim_of(l->node, t.side[i].slot, t.side[i].axis));
    if (good) {
        add_tie(l, &t);
        return;
    }
    for (int i = 0; i < t.n_sides; i++)
        accel_links_wall(l, t.side[i].slot, t.side[i].axis, "sizes do not fit");
}

void accel_links_axes(struct accel_links *l, int n, const struct accel_axis *at)
{
    struct accel_side *side = ACCEL_NEW(&l->arena, struct accel_side, n);
    struct accel_tie t = {0, 0, side};
    bool same = true;
    if (!side) {
        nomem(l);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (!accel_slot_value(l->node, at[i].slot))
            continue;
        side[t.n_sides++] = accel_side_whole(at[i].slot, at[i].axis);
        same = same && accel_dim_same(dim_of(l->node, at[i].slot, at[i].axis),
                                      dim_of(l->node, side[0].slot, side[0].axis));
    }
    if (t.n_sides > 0)
        t.n = accel_slot_size(l->node, side[0].slot, side[0].axis);
    if (same && t.n > 0) {
        add_tie(l, &t);
        return;
    }
    for (int i = 0; i < t.n_sides; i++)
        accel_links_wall(l, side[i].slot, side[i].axis, "sizes do not fit");
}

void accel_links_pair(struct accel_links *l, int slot_a, int axis_a, int slot_b, int axis_b)
{
    accel_links_axes(l, 2, (const struct accel_axis[]){{slot_a, axis_a}, {slot_b, axis_b}});
}

/* ------------------------------------------------------------------------------ other words */

void accel_links_seen(struct accel_links *l, int slot, int axis)
{
    say(l, slot, axis);
}

void accel_links_seen_all(struct accel_links *l, int slot)
{
    for (int axis = 0; axis < accel_slot_rank(l->node, slot); axis++)
        say(l, slot, axis);
}

static void add_wall(struct accel_links *l, const struct accel_wall *w)
{
    if (w->axis < 0 || w->axis >= accel_slot_rank(l->node, w->slot))
        return;
    if (!ACCEL_GROW(l->wall, l->wall_cap, l->n_wall + 1)) {
        nomem(l);
        return;
    }
    l->wall[l->n_wall++] = *w;
    say(l, w->slot, w->axis);
}

void accel_links_wall(struct accel_links *l, int slot, int axis, const char *why)
{
    int64_t size = accel_slot_size(l->node, slot, axis);
    add_wall(l, &(struct accel_wall){slot, axis, 0, size > 0 ? size : 0, why});
}

void accel_links_wall_unit(struct accel_links *l, int slot, int axis, int64_t at, const char *why)
{
    if (at >= 0 && at < accel_slot_size(l->node, slot, axis))
        add_wall(l, &(struct accel_wall){slot, axis, at, 1, why});
}

void accel_links_need0(struct accel_links *l, int n, const struct accel_axis *at)
{
    struct accel_axis *copy = ACCEL_NEW(&l->arena, struct accel_axis, n);
    struct accel_need need = {0, copy};
    if (!copy || !ACCEL_GROW(l->need, l->need_cap, l->n_need + 1)) {
        nomem(l);
        return;
    }
    for (int i = 0; i < n; i++)
        if (at[i].axis >= 0 && at[i].axis < accel_slot_rank(l->node, at[i].slot))
            copy[need.n++] = at[i];
    if (need.n > 0)
        l->need[l->n_need++] = need;
}

bool accel_links_offer(struct accel_links *l, int n_ties, const struct accel_tie *tie,
                       bool preferred)
{
    struct accel_tie *copy = ACCEL_NEW(&l->arena, struct accel_tie, n_ties);
    size_t i = l->n_candidate;
    bool good = true;
    if (!copy || !ACCEL_GROW(l->candidate, l->candidate_cap, i + 1)) {
        nomem(l);
        return false;
    }
    for (int k = 0; k < n_ties; k++)
        good = good && copy_tie(l, &copy[k], tie[k].n, tie[k].n_sides, tie[k].side) &&
               tie_fits(l, &copy[k]);
    l->n_candidate++;
    l->candidate[i] = (struct accel_candidate){good ? n_ties : 0, copy, preferred};
    bool taken = good && l->taken && l->taken[i];
    for (int k = 0; good && k < n_ties; k++)
        for (int s = 0; !l->taken && s < copy[k].n_sides; s++)
            say(l, copy[k].side[s].slot, copy[k].side[s].axis);
    for (int k = 0; taken && k < n_ties; k++)
        add_tie(l, &copy[k]);
    return taken;
}

bool accel_links_ok(struct accel_links *l, enum accel_err err)
{
    if (err == ACCEL_ENOMEM || err == ACCEL_EIO)
        l->err = err;
    return err == ACCEL_OK;
}

int64_t *accel_links_list(struct accel_links *l, int64_t n)
{
    int64_t *list = n < 0 ? NULL : ACCEL_NEW(&l->arena, int64_t, n);
    if (!list)
        nomem(l);
    return list;
}

/* ------------------------------------------------------------------------------ zero */

float accel_zero_get(const struct accel_zero *z, int slot, int axis)
{
    const struct accel_node *n = z->links->node;
    return axis >= 0 && axis < accel_slot_rank(n, slot) && z->k[slot] ? z->k[slot][axis] : NAN;
}

void accel_zero_set(struct accel_zero *z, int slot, int axis, float k)
{
    if (axis < 0 || axis >= accel_slot_rank(z->links->node, slot) || !z->k[slot])
        return;
    if (isfinite(k))
        z->k[slot][axis] = k;
    else
        accel_links_wall(z->links, slot, axis, "not finite at zero");
}

void accel_zero_copy(struct accel_zero *z, int from, int from_axis, int to, int to_axis)
{
    float k = accel_zero_get(z, from, from_axis);
    if (!isnan(k))
        accel_zero_set(z, to, to_axis, k);
}

void accel_zero_copy0(struct accel_zero *z, int from, int from_axis, int to, int to_axis)
{
    if (accel_zero_get(z, from, from_axis) == 0)
        accel_zero_set(z, to, to_axis, 0);
}

bool accel_zero_is_constant(const struct accel_zero *z, int slot)
{
    const struct accel_value *v = accel_slot_value(z->links->node, slot);
    return v && v->tensor;
}

/* Only what is stored counts: a number computed from constants may be another one once these are
 * masked. */
float accel_zero_number(const struct accel_zero *z, int slot)
{
    struct accel_value *v = accel_slot_value(z->links->node, slot);
    const float *at;
    const int64_t *whole;
    int64_t n, n_whole;
    if (!v || !v->tensor)
        return NAN;
    if (!accel_links_ok(z->links, accel_known_floats(&at, &n, v)) ||
        !accel_links_ok(z->links, accel_known_ints(&whole, &n_whole, v)))
        return NAN;
    for (int64_t i = 1; at && i < n; i++)
        if (at[i] < at[0] || at[i] > at[0] || isnan(at[i]))
            return NAN;
    if (at && n > 0)
        return at[0];
    return whole && n_whole == 1 ? (float)whole[0] : NAN;
}

bool accel_zero_taken(const struct accel_zero *z, size_t i, bool open)
{
    const struct accel_links *l = z->links;
    if (i >= l->n_candidate || !l->candidate[i].n_ties)
        return false;
    return l->taken ? l->taken[i] : open;
}
