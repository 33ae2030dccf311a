/* cut_node.h - repairs around nodes when channels are cut: sizes written anew, means corrected,
 * constants copied. Between cut.c and cut_node.c. */
#ifndef ACCEL_PRUNE_CUT_NODE_H
#define ACCEL_PRUNE_CUT_NODE_H

#include "graph/edit.h"
#include "prune/cut.h"

struct accel_cut_nodes {
    struct accel_cut_plan *c;
    struct accel_model *m;
    struct accel_edit_place *place; /* nodes that were made */
    size_t n_place, place_cap;
};

/* Calls the repairs of every node that has a cut axis, or reads a size of one. */
enum accel_err accel_cut_nodes_repair(struct accel_cut_nodes *n) ACCEL_CHECKED;

/* Puts new nodes in their places and parses changed ones anew. */
enum accel_err accel_cut_nodes_settle(struct accel_cut_nodes *n) ACCEL_CHECKED;
void accel_cut_nodes_clear(struct accel_cut_nodes *n);

/* A constant with the same elements. */
enum accel_err accel_cut_copy(struct accel_value **out, struct accel_model *m,
                              const struct accel_value *v) ACCEL_CHECKED;

#endif
