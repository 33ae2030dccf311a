/* structured.h - pruning whole channels: from targets to a model that was cut or masked, and the
 * rows that tell of it. Between prune.c and structured.c. */
#ifndef ACCEL_PRUNE_STRUCTURED_H
#define ACCEL_PRUNE_STRUCTURED_H

#include "prune/prune.h"

/* Chooses channels and cuts them out of the model, or puts edits on it. Completes the plan's rows;
 * adds rows for other constants that changed. */
enum accel_err accel_structured_build(struct accel_prune_plan *p, struct accel_model *m,
                                      const struct accel_prune_config *c) ACCEL_CHECKED;

#endif
