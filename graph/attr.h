/* attr.h - reading attributes by name, for parse functions. */
#ifndef ACCEL_GRAPH_ATTR_H
#define ACCEL_GRAPH_ATTR_H

#include "graph/graph.h"

/* "an int", "a tensor", … */
const char *accel_attr_kind_name(enum accel_attr_kind kind);

/* The attribute, or NULL. */
const struct accel_attr *accel_attr_find(const struct accel_node *n, const char *name);

/* The attribute's value, or `otherwise` when the node has none. An attribute of another kind is
 * EMODEL with both kinds named. Strings are borrowed. */
enum accel_err accel_attr_int(int64_t *out, const struct accel_node *n, const char *name,
                              int64_t otherwise) ACCEL_CHECKED;
enum accel_err accel_attr_float(float *out, const struct accel_node *n, const char *name,
                                float otherwise) ACCEL_CHECKED;
enum accel_err accel_attr_string(const char **out, const struct accel_node *n, const char *name,
                                 const char *otherwise) ACCEL_CHECKED;
/* *out NULL and *count 0 when absent. */
enum accel_err accel_attr_ints(const int64_t **out, size_t *count, const struct accel_node *n,
                               const char *name) ACCEL_CHECKED;
enum accel_err accel_attr_floats(const float **out, size_t *count, const struct accel_node *n,
                                 const char *name) ACCEL_CHECKED;

/* Adds or replaces, for models built in memory. Names and arrays are copied to the arena. */
enum accel_err accel_attr_set_int(struct accel_node *n, const char *name, int64_t v) ACCEL_CHECKED;
enum accel_err accel_attr_set_float(struct accel_node *n, const char *name, float v) ACCEL_CHECKED;
enum accel_err accel_attr_set_string(struct accel_node *n, const char *name,
                                     const char *v) ACCEL_CHECKED;
enum accel_err accel_attr_set_ints(struct accel_node *n, const char *name, const int64_t *v,
                                   size_t count) ACCEL_CHECKED;

/* Takes an attribute away; nothing when the node has none of this name. */
enum accel_err accel_attr_drop(struct accel_node *n, const char *name) ACCEL_CHECKED;

#endif
