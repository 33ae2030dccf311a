/* repair_rows.h - what a repair changed, among the rows of a pruning report. */
#ifndef ACCEL_TOOLS_REPAIR_ROWS_H
#define ACCEL_TOOLS_REPAIR_ROWS_H

#include "prune/prune.h"
#include "tools/repair.h"

/* Marks the rows of weights that were repaired, and counts anew what they hold. To be called after
 * the repair and before the model is written. */
enum accel_err accel_repair_rows_mark(struct accel_prune_plan *p,
                                      const struct accel_repair *r) ACCEL_CHECKED;

/* All rows of the plan, and one more for every other constant that was repaired (biases, means,
 * variances), after the plan was finished. Free *rows with accel_free(); targets and texts are in
 * the repair's arena. */
enum accel_err accel_repair_rows_all(struct accel_prune_row **rows, int *n,
                                     const struct accel_prune_plan *p, const struct accel_model *m,
                                     struct accel_repair *r) ACCEL_CHECKED;

#endif
