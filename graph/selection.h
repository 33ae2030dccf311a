/* selection.h - a tensor that is some indices of each axis of what is stored: between tensor.c and
 * selection.c. */
#ifndef ACCEL_GRAPH_SELECTION_H
#define ACCEL_GRAPH_SELECTION_H

#include "graph/tensor.h"

struct accel_selection {
    const int64_t *dim;         /* [rank] as stored */
    const int64_t *const *kept; /* [rank] NULL: all */
    int axis;                   /* the last one that lost indices */
    uint64_t block;             /* bytes behind one index of it */
};

/* Payload bytes [at, at + size) of the tensor as it is now, whole elements. Reads what is stored in
 * ascending order, at most once. */
enum accel_err accel_selection_read(const struct accel_tensor *t, uint64_t at, uint64_t size,
                                    void *to) ACCEL_CHECKED;

#endif
