/* structured.h - pruning whole channels: from targets to a model that was cut or masked, and the
 * rows that tell of it. Between prune.c and structured.c. */
#ifndef ACCEL_PRUNE_STRUCTURED_H
#define ACCEL_PRUNE_STRUCTURED_H

#include "prune/prune.h"

/* Scores channels and chooses among them; the model is not changed. */
enum accel_err accel_structured_choose(struct accel_prune_plan *p, struct accel_model *m,
                                       const struct accel_prune_config *c,
                                       const struct accel_channel_statistics *by) ACCEL_CHECKED;

#endif
