/* Which of the offered ties are taken.
 *
 * An axis made of several factors (heads times dimensions) can be cut along one only. Offers that
 * must decide alike, those of Q, K, V and of the merge behind them, have sides on axes that are
 * tied to each other, with the same map; so offers are joined into classes by (component of tied
 * axes, map). A class with a side of which nothing can be cut is dropped. The others are taken in
 * this order: not summed away by a product of two activations (so heads, not head dimensions),
 * covering more nodes, preferred by the operator, longer, first. Any choice is exact; a bad one
 * only prunes less. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prune/link_run.h"

/* A side of an offer. */
struct place {
    uint32_t component, axis, offer;
    int64_t n;
    const struct accel_side *side;
    bool whole;
};

/* One class of offers. */
struct kind {
    uint32_t root, first; /* its first offer */
    size_t n_site;
    int64_t n;
    bool inner, dead, preferred;
};

struct choice {
    struct accel_link_run *r;
    uint32_t *component; /* [n_axis] */
    struct place *place;
    size_t n_place;
    uint32_t *join;    /* [n_offer] disjoint sets */
    struct kind *kind; /* [n_offer] those of roots are filled in */
    uint32_t *order;   /* [n_kind] */
    size_t n_kind;
};

static int compare(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int by_map(const void *x, const void *y)
{
    const struct place *a = x, *b = y;
    int c = compare(a->component, b->component);
    c = c ? c : compare(a->n, b->n);
    c = c ? c : compare(a->side->off, b->side->off);
    c = c ? c : compare(a->side->outer, b->side->outer);
    c = c ? c : compare(a->side->stride, b->side->stride);
    c = c ? c : compare(a->side->rep, b->side->rep);
    return c ? c : compare(a->offer, b->offer);
}

static bool same_map(const struct place *a, const struct place *b)
{
    return a->component == b->component && a->n == b->n && a->side->off == b->side->off &&
           a->side->outer == b->side->outer && a->side->stride == b->side->stride &&
           a->side->rep == b->side->rep;
}

/* Components of axes that any tie joins. */
static void find_components(struct choice *c)
{
    const struct accel_link_run *r = c->r;
    for (uint32_t a = 0; a < r->g->n_axis; a++)
        c->component[a] = a;
    for (size_t i = 0; i < r->n_tie; i++) {
        const struct accel_tied *t = &r->tie[i];
        uint32_t first = accel_tied_axis(r->g, t->node, &t->side[0]);
        for (int s = 1; s < t->n_sides; s++)
            accel_set_join(c->component, first, accel_tied_axis(r->g, t->node, &t->side[s]));
    }
}

static enum accel_err list_places(struct choice *c)
{
    const struct accel_link_run *r = c->r;
    size_t n = 0;
    for (size_t i = 0; i < r->n_offer; i++)
        for (int t = 0; t < r->offer[i].what.n_ties; t++)
            n += (size_t)r->offer[i].what.tie[t].n_sides;
    c->place = accel_calloc(n, sizeof *c->place);
    if (!c->place)
        return accel_fail_nomem();
    for (uint32_t i = 0; i < r->n_offer; i++)
        for (int t = 0; t < r->offer[i].what.n_ties; t++) {
            const struct accel_tie *tie = &r->offer[i].what.tie[t];
            for (int s = 0; s < tie->n_sides; s++) {
                uint32_t axis = accel_tied_axis(r->g, r->offer[i].node, &tie->side[s]);
                c->place[c->n_place++] =
                    (struct place){accel_set_find(c->component, axis),
                                   axis,
                                   i,
                                   tie->n,
                                   &tie->side[s],
                                   accel_side_is_whole(r->g, axis, tie->n, &tie->side[s])};
            }
        }
    return ACCEL_OK;
}

static void join_offers(struct choice *c)
{
    for (uint32_t i = 0; i < c->r->n_offer; i++)
        c->join[i] = i;
    qsort(c->place, c->n_place, sizeof *c->place, by_map);
    for (size_t i = 1; i < c->n_place; i++)
        if (same_map(&c->place[i - 1], &c->place[i]))
            accel_set_join(c->join, c->place[i - 1].offer, c->place[i].offer);
}

static void describe(struct choice *c, bool *inner,
                     bool (*frozen)(const struct accel_groups *, uint32_t axis))
{
    const struct accel_link_run *r = c->r;
    for (uint32_t a = 0; a < r->g->n_axis; a++)
        if (r->product[a])
            inner[accel_set_find(c->component, a)] = true;
    uint32_t last_node = UINT32_MAX, last_root = UINT32_MAX;
    for (uint32_t i = 0; i < r->n_offer; i++) {
        uint32_t root = accel_set_find(c->join, i);
        struct kind *k = &c->kind[root];
        const struct accel_candidate *what = &r->offer[i].what;
        if (!k->n_site) {
            k->root = root;
            k->first = i;
            c->order[c->n_kind++] = root;
        }
        k->n_site += r->offer[i].node != last_node || root != last_root;
        last_node = r->offer[i].node;
        last_root = root;
        k->dead = k->dead || what->n_ties == 0;
        k->preferred = k->preferred || what->preferred;
        for (int t = 0; t < what->n_ties; t++)
            k->n = what->tie[t].n > k->n ? what->tie[t].n : k->n;
        k->dead = k->dead || k->n < 2;
    }
    for (size_t i = 0; i < c->n_place; i++) {
        struct kind *k = &c->kind[accel_set_find(c->join, c->place[i].offer)];
        k->dead = k->dead || frozen(r->g, c->place[i].axis);
        k->inner = k->inner || (c->place[i].whole && inner[c->place[i].component]);
    }
}

static int by_rank(const void *x, const void *y, void *ctx)
{
    const struct kind *kind = ctx, *a = &kind[*(const uint32_t *)x],
                      *b = &kind[*(const uint32_t *)y];
    if (a->inner != b->inner)
        return a->inner ? 1 : -1;
    if (a->n_site != b->n_site)
        return a->n_site > b->n_site ? -1 : 1;
    if (a->preferred != b->preferred)
        return a->preferred ? -1 : 1;
    if (a->n != b->n)
        return a->n > b->n ? -1 : 1;
    return compare(a->first, b->first);
}

static int by_offer(const void *x, const void *y)
{
    return compare(((const struct place *)x)->offer, ((const struct place *)y)->offer);
}

/* Takes offer i unless one of its composite axes is taken at this node; `owner` is one more than
 * the node that took an axis last, operands having axes of their own. */
static void take(struct choice *c, uint32_t i, size_t first, uint64_t *used)
{
    struct accel_link_run *r = c->r;
    size_t end = first;
    bool good = true;
    for (; end < c->n_place && c->place[end].offer == i; end++) {
        const struct accel_side *s = c->place[end].side;
        uint64_t slot = r->g->node_slot[r->offer[i].node] + (size_t)s->slot;
        good = good && (c->place[end].whole || !(used[slot] >> (s->axis < 63 ? s->axis : 63) & 1));
    }
    r->taken[i] = good;
    for (size_t k = first; good && k < end; k++) {
        const struct accel_side *s = c->place[k].side;
        uint64_t slot = r->g->node_slot[r->offer[i].node] + (size_t)s->slot;
        if (!c->place[k].whole)
            used[slot] |= (uint64_t)1 << (s->axis < 63 ? s->axis : 63);
    }
}

/* Offers of one class, one after the other; `next` chains them. */
static enum accel_err take_all(struct choice *c)
{
    struct accel_link_run *r = c->r;
    size_t n_slot = r->g->node_slot[r->g->m->graph->n_node];
    uint64_t *used = accel_calloc(n_slot, sizeof *used);
    uint32_t *next = accel_calloc(r->n_offer, sizeof *next),
             *tail = accel_calloc(r->n_offer, sizeof *tail);
    size_t *first = accel_calloc(r->n_offer + 1, sizeof *first);
    enum accel_err err = used && next && tail && first ? ACCEL_OK : accel_fail_nomem();
    if (err)
        goto done;
    qsort(c->place, c->n_place, sizeof *c->place, by_offer);
    for (size_t i = c->n_place; i-- > 0;)
        first[c->place[i].offer] = i;
    for (uint32_t i = 0; i < r->n_offer; i++) {
        uint32_t root = accel_set_find(c->join, i);
        next[i] = UINT32_MAX;
        if (i != c->kind[root].first)
            next[tail[root]] = i;
        tail[root] = i;
    }
    for (size_t k = 0; k < c->n_kind; k++)
        if (!c->kind[c->order[k]].dead)
            for (uint32_t i = c->kind[c->order[k]].first; i != UINT32_MAX; i = next[i])
                take(c, i, first[i], used);
done:
    accel_free(used);
    accel_free(next);
    accel_free(tail);
    accel_free(first);
    return err;
}

enum accel_err accel_link_run_choose(struct accel_link_run *r, bool dims_first,
                                     bool (*frozen)(const struct accel_groups *, uint32_t axis))
{
    struct choice c = {.r = r};
    enum accel_err err = ACCEL_OK;
    bool *inner = accel_calloc(r->g->n_axis, sizeof *inner);
    r->taken = accel_calloc(r->n_offer, sizeof *r->taken);
    c.component = accel_calloc(r->g->n_axis, sizeof *c.component);
    c.join = accel_calloc(r->n_offer, sizeof *c.join);
    c.kind = accel_calloc(r->n_offer, sizeof *c.kind);
    c.order = accel_calloc(r->n_offer, sizeof *c.order);
    if (!inner || !r->taken || !c.component || !c.join || !c.kind || !c.order) {
        err = accel_fail_nomem();
        goto done;
    }
    find_components(&c);
    ACCEL_GOTO(err, list_places(&c));
    join_offers(&c);
    describe(&c, inner, frozen);
    for (size_t i = 0; dims_first && i < c.n_kind; i++)
        c.kind[c.order[i]].inner = !c.kind[c.order[i]].inner;
    qsort_r(c.order, c.n_kind, sizeof *c.order, by_rank, c.kind);
    err = take_all(&c);
done:
    accel_free(inner);
    accel_free(c.component);
    accel_free(c.place);
    accel_free(c.join);
    accel_free(c.kind);
    accel_free(c.order);
    return err;
}
