/* edit.h - changing a model in memory: other inputs, new constants and nodes, and what is left over
 * goes. The writer carries it out (`changed`, `dropped`; what has no origin is new). */
#ifndef ACCEL_GRAPH_EDIT_H
#define ACCEL_GRAPH_EDIT_H

#include "graph/graph.h"

/* A value of a name that no graph of the model has: HINT_cut1, HINT_cut2, … */
enum accel_err accel_edit_value(struct accel_value **out, struct accel_graph *g,
                                const char *hint) ACCEL_CHECKED;

/* An initializer with these stored elements (little endian), copied to the arena. Its shape is set
 * as inference would. */
enum accel_err accel_edit_constant(struct accel_value **out, struct accel_graph *g,
                                   const char *hint, enum accel_dtype dtype, int rank,
                                   const int64_t *dim, const void *elements) ACCEL_CHECKED;

/* Input `slot` becomes v (NULL: left out); the node gets more inputs when it has not as many. What
 * nobody reads any more is dropped: nodes, and constants that are no graph input. */
enum accel_err accel_edit_input(struct accel_node *n, int slot,
                                struct accel_value *v) ACCEL_CHECKED;

/* Puts a new value in the place of output `slot` and gives its name's value, with all readers, to
 * whoever makes it next: *old has no producer until a node with it as output is made. */
enum accel_err accel_edit_output(struct accel_value **fresh, struct accel_value **old,
                                 struct accel_node *n, int slot) ACCEL_CHECKED;

/* Nodes that were made (accel_node_new() appends) and the index before which each belongs, in the
 * numbering from before they were made. */
struct accel_edit_place {
    struct accel_node *node;
    int before;
};

/* Moves new nodes to their places (those of one place stay in the order they were made in; `at` is
 * sorted), takes dropped ones out, renumbers. Cost: n log n. */
enum accel_err accel_edit_settle(struct accel_graph *g, struct accel_edit_place *at,
                                 size_t n) ACCEL_CHECKED;

#endif
