/* links.h - what an operator says about pruning: which units of its operands stand or fall together
 * (links), what fills a cut unit in the masked model (zero), and what must be repaired after a cut
 * (graph/resize.h).
 *
 * A unit is one index of one axis of one value. Slots count the inputs of a node first, then its
 * outputs. An axis that links() does not mention is a wall: a missing rule prunes less, never
 * wrongly. Rules: one row per operator in the operators' files; how to write one:
 * docs/adding-an-operator.md.
 *
 * How a pass uses this, for every node in order:
 *     accel_links_ask(&l, node, NULL)      first without a choice: candidates are left open
 *     l.need: where no side has K = 0, its first side becomes a wall
 *     op->zero(node, &z)                   K of the outputs
 * Then it chooses among the candidates of all nodes and asks those nodes again with `taken`. What a
 * node said stays readable (sides, candidates) until accel_links_clear(), its lists only until the
 * next ask. Sizes that are symbols count as their trial value ACCEL_LINKS_PROBE everywhere, so that
 * no model is inferred anew. */
#ifndef ACCEL_GRAPH_LINKS_H
#define ACCEL_GRAPH_LINKS_H

#include "graph/op.h"

#define ACCEL_LINKS_PROBE 1

struct accel_axis {
    int slot, axis;
};

/* n rows: row c of all sides stands or falls together. One side alone balances its axis. */
struct accel_tie {
    int64_t n;
    int n_sides;
    const struct accel_side *side;
};

/* Units [first, first + n) of an axis that must stay. */
struct accel_wall {
    int slot, axis;
    int64_t first, n;
    const char *why; /* a few words for the report; lives for ever */
};

/* The axes are summed over together: exact only where one of them has K = 0. Two of them and no
 * constant among their values: a product of activations (heads before head dimensions). */
struct accel_need {
    int n;
    const struct accel_axis *at;
};

/* Ties that hold only if this way of cutting is chosen. Of the candidates of a node at most one is
 * taken for each axis that a side does not cover one to one (an axis made of several factors). */
struct accel_candidate {
    int n_ties; /* 0: does not fit the operands, cannot be taken */
    const struct accel_tie *tie;
    bool preferred; /* of two that nothing else decides */
};

struct accel_links {
    const struct accel_node *node;
    bool spoke;        /* its rule was asked: all operands are there and have ranks */
    const bool *taken; /* [n_candidate] the choice; NULL: not made yet */
    struct accel_tie *tie;
    struct accel_wall *wall;
    struct accel_need *need;
    struct accel_candidate *candidate;
    size_t n_tie, n_wall, n_need, n_candidate;
    size_t tie_cap, wall_cap, need_cap, candidate_cap;
    size_t *base; /* [slots] where the axes of a slot begin in `said` */
    bool *said;   /* axes that were mentioned */
    size_t base_cap, said_cap;
    enum accel_err err; /* ENOMEM sticks */
    struct accel_arena arena;
};

/* ------------------------------------------------------------------------------------- asking */

/* Forgets the last node's lists and lets `node` speak. A node without links, or with an operand of
 * unknown rank, says nothing. Axes of its size inputs (op->sizes) count as mentioned. ENOMEM. */
enum accel_err accel_links_ask(struct accel_links *l, const struct accel_node *node,
                               const bool *taken) ACCEL_CHECKED;

/* False: nothing was said about this axis, it is a wall by this node. */
bool accel_links_mentions(const struct accel_links *l, int slot, int axis);

void accel_links_clear(struct accel_links *l); /* l zeroed before the first ask */

/* The value of a slot, NULL when it is left out; its rank, -1 when unknown. */
struct accel_value *accel_slot_value(const struct accel_node *n, int slot);
int accel_slot_rank(const struct accel_node *n, int slot);

/* Units of an axis: its size, or the trial value of its symbol; -1 when there is no such axis. */
int64_t accel_slot_size(const struct accel_node *n, int slot, int axis);

/* ------------------------------------------------------------------------------------- speaking */

/* Positions of a side; the whole axis in order; in blocks of rep. */
struct accel_side accel_side_of(int slot, int axis, int64_t off, int64_t outer, int64_t stride,
                                int64_t rep);
struct accel_side accel_side_whole(int slot, int axis);
struct accel_side accel_side_rep(int slot, int axis, int64_t rep);
struct accel_side accel_side_list(int slot, int axis, const int64_t *list);

/* Ties n rows. Sides of operands that are left out (slot -1 for an optional input) are dropped; if
 * one of the others reaches beyond its axis, all become walls. Sides are copied, a list is borrowed
 * (a constant's contents, or accel_links_list()). */
void accel_links_tie(struct accel_links *l, int64_t n, int n_sides, const struct accel_side *side);

/* Ties whole axes; walls when their sizes are not all the same number or symbol. */
void accel_links_axes(struct accel_links *l, int n, const struct accel_axis *at);
void accel_links_pair(struct accel_links *l, int slot_a, int axis_a, int slot_b, int axis_b);

/* May be cut as far as this node is concerned. */
void accel_links_seen(struct accel_links *l, int slot, int axis);
void accel_links_seen_all(struct accel_links *l, int slot);

/* Must stay: a whole axis (also nothing more than a reason for a silent one), one unit of it. */
void accel_links_wall(struct accel_links *l, int slot, int axis, const char *why);
void accel_links_wall_unit(struct accel_links *l, int slot, int axis, int64_t at, const char *why);

/* Summed over together (operands that are left out are dropped). */
void accel_links_need0(struct accel_links *l, int n, const struct accel_axis *at);

/* Offers ties; true when there is a choice and it fell on them, and then they are tied. Order and
 * number of offers must be the same in every ask. */
bool accel_links_offer(struct accel_links *l, int n_ties, const struct accel_tie *tie,
                       bool preferred);

/* True when a call succeeded; ENOMEM and EIO stick, other failures say that the rule does not
 * apply.
 */
bool accel_links_ok(struct accel_links *l, enum accel_err err);

/* Room for n numbers that lives as long as the links; NULL: no memory (sticks in l->err). */
int64_t *accel_links_list(struct accel_links *l, int64_t n);

/* ------------------------------------------------------------------------------------- zero */

/* K[slot, axis]: the number that every cut unit of this axis is filled with in the masked model, as
 * far as the other axes' units are kept; NAN: finite but unknown. Constants come in with 0, or NAN
 * when the masker leaves them alone (op->keep, integers). */
struct accel_zero {
    struct accel_links *links; /* what this node said: its choice, and where walls go */
    float *const *k;           /* [slots][rank]; NULL for slots left out. Outputs begin as NAN */
};

float accel_zero_get(const struct accel_zero *z, int slot, int axis);

/* Sets K of an output. A number that is not finite makes the axis a wall. */
void accel_zero_set(struct accel_zero *z, int slot, int axis, float k);

/* K of the output axis = that of the input axis; only if it is 0. */
void accel_zero_copy(struct accel_zero *z, int from, int from_axis, int to, int to_axis);
void accel_zero_copy0(struct accel_zero *z, int from, int from_axis, int to, int to_axis);

/* The one number that a small constant consists of; NAN when there is no such number. */
float accel_zero_number(const struct accel_zero *z, int slot);
bool accel_zero_is_constant(const struct accel_zero *z, int slot);

/* Whether the node's candidate i was taken; `open` while there is no choice. */
bool accel_zero_taken(const struct accel_zero *z, size_t i, bool open);

#endif
