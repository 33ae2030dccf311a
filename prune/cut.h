/* cut.h - taking channels out of a model, or writing zeros in their place.
 *
 * Both follow one list of groups (prune/groups.h). Slicing deletes their units on all axes of every
 * constant, lets the operators repair what names sizes (graph/resize.h), and corrects what the file
 * declares; masking writes zeros where the deleted units were, but not into what must stay
 * (divisors, variances, scales). The two models are the same function. */
#ifndef ACCEL_PRUNE_CUT_H
#define ACCEL_PRUNE_CUT_H

#include "graph/resize.h"
#include "prune/groups.h"

/* A constant before it was changed, and what is left of each axis. */
struct accel_cut_tensor {
    struct accel_tensor *tensor;
    struct accel_value *value;
    struct accel_tensor before;   /* a copy of its description: its elements can still be read */
    const struct accel_cut *axis; /* [rank] */
};

struct accel_cut_plan {
    const struct accel_groups *g;
    struct accel_cut *axis; /* [g->n_axis] */
    struct accel_cut_tensor *tensor;
    size_t n_tensor, tensor_cap;
    struct accel_arena arena; /* the lists; outlives the model's use */
};

/* What becomes of each axis when the groups with gone[i] are cut. Nothing is changed yet. Every
 * axis must keep a unit (accel_cut_fits()). */
enum accel_err accel_cut_plan_new(struct accel_cut_plan **out, const struct accel_groups *g,
                                  const bool *gone) ACCEL_CHECKED;
void accel_cut_plan_free(struct accel_cut_plan *c);

/* Cuts, infers the model anew. On failure the model is half changed and must not be written. The
 * groups describe the model before. ENOSUP where a computed size cannot be rewritten. */
enum accel_err accel_cut_slice(struct accel_cut_plan *c, struct accel_model *m) ACCEL_CHECKED;

/* Puts edits that write zeros (or zero points) on the constants. */
enum accel_err accel_cut_mask(struct accel_cut_plan *c, struct accel_model *m) ACCEL_CHECKED;

/* An edit that blanks the units that `axis` [rank] lost: with zeros, or the zero point of integers
 * that stand for floats (`scaling`, or NULL). */
enum accel_err accel_blank_new(struct accel_edit **out, const struct accel_tensor *t,
                               const struct accel_cut *axis,
                               const struct accel_scaling *scaling) ACCEL_CHECKED;

#endif
