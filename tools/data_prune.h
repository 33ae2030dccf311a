/* data_prune.h - single weights that go by what passes through the network: wanda, sparsegpt. */
#ifndef ACCEL_TOOLS_DATA_PRUNE_H
#define ACCEL_TOOLS_DATA_PRUNE_H

#include "prune/prune.h"
#include "tools/activation_score.h"

/* Zeroes the weights of all rows that wait for data (row->by_data) and fills in the rows; those
 * that cannot be done are kept, with a reason. WANDA: by the sums that `s` holds; SPARSEGPT (s
 * NULL): layer after layer, each from the activations of the model as pruned so far, one pass over
 * the data `spec` per layer that waits for another one. */
enum accel_err accel_data_prune(struct accel_prune_plan *p, struct accel_job *job, const char *path,
                                struct accel_model *m, const char *spec,
                                const struct accel_prune_config *c,
                                const struct accel_activation_score *s) ACCEL_CHECKED;

#endif
