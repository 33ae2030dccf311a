/* groups.h - which channels of a model stand or fall together, and which may go at all.
 *
 * A unit is one index of one axis of one value of the main graph. Operators tie units of their
 * operands (graph/links.h); a group is a class of tied units. It is free when it touches no wall
 * and holds a unit of a floating-point constant (or of integers behind a scale). Cutting free
 * groups and writing zeros in their place give the same function.
 *
 * Axes come before units: axes tied one to one form a class with one array of units, which keeps
 * memory near the number of channels, whatever the number of values. Rules and proofs:
 * docs/pruning.md, "Channels". Cost: near-linear in axes, tied positions and units. */
#ifndef ACCEL_PRUNE_GROUPS_H
#define ACCEL_PRUNE_GROUPS_H

#include "graph/links.h"
#include "graph/provenance.h"

/* Why units stay. */
struct accel_group_wall {
    const struct accel_node *node; /* the operator in the way, or NULL */
    const char *why;               /* a few words */
};

struct accel_axis_class {
    int64_t n;    /* units, of the trial value where the size is a symbol */
    size_t first; /* its first unit; a class that stays as a whole has only this one */
    int wall;     /* why it stays as a whole, index into wall[]; -1: it may be cut */
};

/* `count` units of class `cls` belong to a group. */
struct accel_group_part {
    uint32_t cls, count;
};

struct accel_groups {
    const struct accel_model *m;
    struct accel_provenance *sizes;
    size_t n_value; /* of the main graph when the groups were made; values are only added to it */
    size_t n_axis, n_class, n_unit;
    uint32_t *value_axis;          /* [n_value] id of axis 0 of each value */
    size_t *node_slot;             /* [n_node + 1] where a node's operands begin in operand_axis */
    uint32_t *operand_axis;        /* id of axis 0 of each operand: small vectors have an axis of
                                      their own for every use */
    int64_t *size;                 /* [n_axis] */
    uint32_t *class_of;            /* [n_axis] */
    struct accel_axis_class *cls;  /* [n_class] */
    int32_t *group;                /* [n_unit] the free group, or -1 */
    int32_t *unit_wall;            /* [n_unit] why it stays, index into wall[], or -1 */
    int32_t n_group;               /* free groups, numbered in the order of their first units */
    size_t *part_at;               /* [n_group + 1] */
    struct accel_group_part *part; /* ascending by cls within a group */
    struct accel_group_wall *wall;
    size_t n_wall, wall_cap;
};

struct accel_groups_options {
    bool dims_first; /* of a product of heads and head dimensions, cut the latter */
};

/* The model must have been inferred. `opt` NULL: defaults. */
enum accel_err accel_groups_build(struct accel_groups **out, const struct accel_model *m,
                                  const struct accel_groups_options *opt) ACCEL_CHECKED;
void accel_groups_free(struct accel_groups *g);

/* Axis id of an operand's axis (slots as in graph/links.h) and of a value's (of its first use where
 * uses have their own). */
uint32_t accel_groups_operand(const struct accel_groups *g, const struct accel_node *n, int slot,
                              int axis);
static inline uint32_t accel_groups_value(const struct accel_groups *g, const struct accel_value *v,
                                          int axis)
{
    return g->value_axis[v->index] + (uint32_t)axis;
}

/* The free group of unit i of an axis, -1 when it stays; then *why (if asked for) is the wall or
 * NULL. */
int32_t accel_groups_at(const struct accel_groups *g, uint32_t axis, int64_t i,
                        const struct accel_group_wall **why);

/* Every use of a constant has axes of its own: a vector of floats that only nodes of the main graph
 * read, several times. */
bool accel_groups_is_split(const struct accel_model *m, const struct accel_value *v);

/* How the integers of a constant stand for floats. */
struct accel_scaling {
    const struct accel_tensor *scale, *zero; /* NULL: 1, and 0 */
    int axis;                                /* of the constant; -1: one scale for all */
};

/* False: they do not, as far as its readers tell. */
bool accel_scaling_find(struct accel_scaling *out, const struct accel_value *v);

/* A constant of numbers that weigh: floats, or integers that stand for them. */
bool accel_groups_is_weight(const struct accel_value *v);

/* One that a masker fills with zeros where units are cut. */
bool accel_groups_is_masked(const struct accel_value *v);

#endif
