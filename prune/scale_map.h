/* scale_map.h - which scale or zero point belongs to an element of stored integers: one for all,
 * one per index of an axis, or one per block. */
#ifndef ACCEL_PRUNE_SCALE_MAP_H
#define ACCEL_PRUNE_SCALE_MAP_H

#include "graph/graph.h"

struct accel_scale_map {
    int rank;
    const int64_t *dim; /* of the integers, borrowed */
    int64_t *block;     /* [rank] indices that share a scale */
    uint64_t *stride;   /* [rank] between scales */
    bool one;           /* a single scale */
};

/* `scale`: scales or zero points of t, along `axis` where they are a vector. ENOSUP when dims do
 * not fit. */
enum accel_err accel_scale_map_init(struct accel_scale_map *m, const struct accel_tensor *t,
                                    const struct accel_tensor *scale, int axis) ACCEL_CHECKED;
void accel_scale_map_clear(struct accel_scale_map *m);

/* The index of element `at`'s scale. */
uint64_t accel_scale_index(const struct accel_scale_map *m, uint64_t at);

#endif
