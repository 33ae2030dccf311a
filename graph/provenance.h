/* provenance.h - where the numbers that Shape reads go.
 *
 * A cut changes sizes. A size that only ends in a size input (a Reshape's target) is written anew
 * by the repairs; one that is computed with (1 / sqrt(d)) pins the axis it was read from. So each
 * element of each integer value knows the axes that it was read from, element by element through
 * everything that only moves elements, as the union of all inputs through arithmetic. */
#ifndef ACCEL_GRAPH_PROVENANCE_H
#define ACCEL_GRAPH_PROVENANCE_H

#include "graph/graph.h"

struct accel_axis_ref {
    const struct accel_value *value;
    int axis;
};

/* Axes, each once, ascending by value and axis. */
struct accel_axis_set {
    size_t n;
    const struct accel_axis_ref *at;
};

/* An axis whose size is data. */
struct accel_pin {
    struct accel_axis_ref axis;
    const struct accel_node *node; /* that computes with it; NULL: a graph output */
};

struct accel_provenance {
    struct accel_pin *pin;
    size_t n_pin, pin_cap;
    struct accel_axis_values *values; /* [n_value] by value->index */
    struct accel_arena arena;
};

/* Follows all sizes of the model's main graph, as it was inferred. Linear in nodes and followed
 * elements (at most 4096 per value; longer ones count as computed). */
enum accel_err accel_provenance_build(struct accel_provenance **out,
                                      const struct accel_model *m) ACCEL_CHECKED;
void accel_provenance_free(struct accel_provenance *p);

/* The axes that element i of v was read from; NULL: none. */
const struct accel_axis_set *accel_provenance_of(const struct accel_provenance *p,
                                                 const struct accel_value *v, int64_t i);

/* Some element of v was read from an axis. */
bool accel_provenance_any(const struct accel_provenance *p, const struct accel_value *v);

#endif
