/* link_run.h - what all nodes of a model say about cutting, as ties and walls over axes; the choice
 * among what they offer. Between groups.c and link_run.c, link_choice.c. */
#ifndef ACCEL_PRUNE_LINK_RUN_H
#define ACCEL_PRUNE_LINK_RUN_H

#include "prune/groups.h"

struct accel_tied {
    uint32_t node;
    int64_t n;
    int n_sides;
    const struct accel_side *side;
};

struct accel_unit_wall {
    uint32_t axis;
    int64_t first, n;
    int wall;
};

/* What a node offers. */
struct accel_offer {
    uint32_t node;
    int index; /* among the node's offers */
    struct accel_candidate what;
};

struct accel_link_run {
    struct accel_groups *g;
    struct accel_links l;
    struct accel_tied *tie;
    size_t n_tie, tie_cap;
    int *axis_wall; /* [n_axis] wall of the whole axis, or -1 */
    struct accel_unit_wall *unit_wall;
    size_t n_unit_wall, unit_wall_cap;
    float *k; /* [n_axis] what fills a cut unit; NAN: unknown */
    struct accel_offer *offer;
    size_t n_offer, offer_cap;
    size_t *offer_at; /* [n_node + 1] first offer of each node, once they are all known */
    bool *taken;      /* [n_offer]; NULL: not chosen yet */
    bool *product;    /* [n_axis] summed over by a product of two activations */
};

/* Asks all nodes. With r->taken set, offers are answered; else they are collected. Ties and walls
 * of an earlier ask are forgotten. */
enum accel_err accel_link_run_ask(struct accel_link_run *r) ACCEL_CHECKED;
void accel_link_run_clear(struct accel_link_run *r);

/* Chooses among the offers: sets r->taken. `frozen(axis)`: nothing of it can be cut. */
enum accel_err accel_link_run_choose(struct accel_link_run *r, bool dims_first,
                                     bool (*frozen)(const struct accel_groups *,
                                                    uint32_t axis)) ACCEL_CHECKED;

/* The axis of a side, and whether the side covers it one to one. */
uint32_t accel_tied_axis(const struct accel_groups *g, uint32_t node, const struct accel_side *s);
bool accel_side_is_whole(const struct accel_groups *g, uint32_t axis, int64_t n,
                         const struct accel_side *s);

/* Position of row c, i-th of outer * rep. */
static inline int64_t accel_side_at(const struct accel_side *s, int64_t c, int64_t i)
{
    return s->list ? s->list[c] : s->off + i / s->rep * s->stride + c * s->rep + i % s->rep;
}
static inline int64_t accel_side_width(const struct accel_side *s)
{
    return s->list ? 1 : s->outer * s->rep;
}

/* Disjoint sets of numbers: parent[i] <= i. */
uint32_t accel_set_find(uint32_t *parent, uint32_t i);
void accel_set_join(uint32_t *parent, uint32_t a, uint32_t b);

#endif
