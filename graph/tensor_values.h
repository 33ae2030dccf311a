/* tensor_values.h - all elements of a tensor as numbers, and new ones in their place. */
#ifndef ACCEL_GRAPH_TENSOR_VALUES_H
#define ACCEL_GRAPH_TENSOR_VALUES_H

#include "graph/tensor.h"

/* Reads the tensor as it will be written, its edit applied: [t->n], free with accel_free(). An edit
 * that counts what it changes has counted then. REAL types only (ENOSUP). */
enum accel_err accel_tensor_values(double **out, const struct accel_tensor *t) ACCEL_CHECKED;

/* Gives the tensor new elements, rounded to its type, by an edit that replaces the one that is
 * there (freed). Type and dims stay. value [t->n] */
enum accel_err accel_tensor_set_values(struct accel_tensor *t, const double *value) ACCEL_CHECKED;

/* accel_tensor_set_values() was the last to change it. */
bool accel_tensor_has_values(const struct accel_tensor *t);

#endif
