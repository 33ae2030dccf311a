/* repair_int.h - between the parts of the repair. */
#ifndef ACCEL_TOOLS_REPAIR_INT_H
#define ACCEL_TOOLS_REPAIR_INT_H

#include "base/linalg.h"
#include "tools/repair_layer.h"
#include "tools/twin.h"

enum { ACCEL_REPAIR_BATCH = 64 };

/* Every fifth sample is held back. */
bool accel_repair_is_held(int64_t sample);

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
