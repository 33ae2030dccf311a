/* constprop.h - contents of small values that are known before the model runs.
 *
 * A known value holds ACCEL_N_PROBES versions of its elements, one for each trial value of the
 * symbols (graph/shape.h). Operators run their plain forward kernel on every version; an element
 * equal in all is a constant, an element equal to a symbol's trials is that symbol, anything else
 * depends on the symbols in an unknown way. So Shape, Gather, arithmetic, Cast, Concat … need no
 * code for symbols. */
#ifndef ACCEL_GRAPH_CONSTPROP_H
#define ACCEL_GRAPH_CONSTPROP_H

#include "graph/graph.h"
#include "graph/op.h"

#define ACCEL_KNOWN_MAX 4096 /* elements; larger values are not propagated */

struct accel_known {
    int64_t n;
    bool real;                   /* float elements, else int64_t */
    void *probe[ACCEL_N_PROBES]; /* [n] each, int64_t or float */
};

/* The value's contents, read from its constant when small; NULL when not known, and when reading
 * fails, which ends the inference with that error. Cheap when asked again. */
const struct accel_known *accel_known_get(struct accel_value *v);

/* Element i as a plain integer; false when it is no integer or depends on a symbol. */
bool accel_known_constant(int64_t *out, const struct accel_known *k, int64_t i);

/* Element i as a dim: number, symbol (made for what no symbol is equal to yet), or unknown.
 * Integers only. */
enum accel_err accel_known_dim(struct accel_dim *out, struct accel_value *v,
                               const struct accel_known *k, int64_t i) ACCEL_CHECKED;

/* All elements as plain integers in the arena: *out NULL when the value is not known or an element
 * is not a constant. */
enum accel_err accel_known_ints(const int64_t **out, int64_t *n,
                                struct accel_value *v) ACCEL_CHECKED;
enum accel_err accel_known_floats(const float **out, int64_t *n,
                                  struct accel_value *v) ACCEL_CHECKED;

/* Sets v's contents from dims (operators Shape and Size). */
enum accel_err accel_known_set_dims(struct accel_value *v, const struct accel_dim *d,
                                    int64_t n) ACCEL_CHECKED;

/* Runs the node's forward kernel on its known inputs, after infer. Does nothing when an input is
 * not known, an output's shape is not all numbers or too large, or the operator has no kernel. */
enum accel_err accel_known_propagate(struct accel_node *n) ACCEL_CHECKED;

#endif
