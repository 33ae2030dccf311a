/* coupled.h - the account of a structured pruning run: what each coupled set consists of, and which
 * operators kept how much from being cut. */
#ifndef ACCEL_PRUNE_COUPLED_H
#define ACCEL_PRUNE_COUPLED_H

#include "prune/prune.h"

/* One axis of a constant in a set. */
struct accel_coupled_axis {
    const char *name;
    int axis;
    int64_t n, cut; /* indices of it in this set, and those that went */
};

struct accel_coupled_set {
    int32_t n, cut;       /* groups, and those that went */
    double requested;     /* NAN: by threshold or target */
    const char *kept_for; /* name of the weight whose exclusion keeps it, or NULL */
    struct accel_coupled_axis *axis;
    size_t n_axis, axis_cap;
};

/* An operator in the way: elements of constants that lie along axes which it keeps whole. */
struct accel_coupled_wall {
    const struct accel_node *node; /* NULL: the graph's own borders */
    const char *why;
    double elements;
};

struct accel_coupled {
    struct accel_coupled_set *set; /* [n_set] */
    int n_set;
    struct accel_coupled_wall *wall; /* [n_wall] the largest first */
    size_t n_wall, wall_cap;
    int32_t n_group; /* free groups of the model, selected or not */
};

/* Linear in the units of all constants. */
enum accel_err accel_coupled_build(struct accel_coupled **out,
                                   const struct accel_prune_plan *p) ACCEL_CHECKED;
void accel_coupled_free(struct accel_coupled *c);

#endif
