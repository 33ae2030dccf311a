/* repair_int.h - between the parts of the repair. */
#ifndef ACCEL_TOOLS_REPAIR_INT_H
#define ACCEL_TOOLS_REPAIR_INT_H

#include "base/linalg.h"
#include "tools/progress.h"
#include "tools/repair_layer.h"
#include "tools/twin.h"

enum { ACCEL_REPAIR_BATCH = 64 };

/* Every fifth sample is held back. */
bool accel_repair_is_held(int64_t sample);

/* What is done with a layer when its sums are complete; without sums (gram.n_group 0) when they
 * would take too much room. */
typedef enum accel_err (*accel_repair_solve)(void *ctx, struct accel_twin *t,
                                             struct accel_repair_layer *l);

/* Gathers the sums of all layers, depth by depth, and solves each before the next depth. Layers
 * without `was` have no targets. */
enum accel_err accel_repair_each(struct accel_twin *t, struct accel_repair_layers *l, uint64_t seed,
                                 struct accel_progress *progress, accel_repair_solve solve,
                                 void *ctx) ACCEL_CHECKED;

/* Gives a constant of the pruned model, and its plan, new elements. */
enum accel_err accel_repair_set(struct accel_twin *t, struct accel_value *v,
                                const double *value) ACCEL_CHECKED;

/* Least squares for all layers that need it. */
enum accel_err accel_repair_fit(struct accel_twin *t, struct accel_repair *r, struct accel_job *job,
                                const struct accel_repair_options *opt) ACCEL_CHECKED;

/* New statistics for all batch norms whose input changed, from `batches` batches. */
enum accel_err accel_repair_norms(struct accel_twin *t, struct accel_repair *r,
                                  const struct accel_repair_options *opt) ACCEL_CHECKED;

/* Mean squared difference of the models' outputs over the samples that are held back, as a share of
 * the unpruned outputs' mean square. */
enum accel_err accel_repair_measure(double *out, struct accel_twin *t) ACCEL_CHECKED;

#endif
