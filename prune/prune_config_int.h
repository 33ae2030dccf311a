/* prune_config_int.h - the parser's second half: one entry of config_list. */
#ifndef ACCEL_PRUNE_PRUNE_CONFIG_INT_H
#define ACCEL_PRUNE_PRUNE_CONFIG_INT_H

#include "prune/prune_config.h"

/* Reads c's entry `at` (keys, kinds and ranges already checked) into *sub. Needs c->pattern, sets
 * c->v2. EARG for contradictions, with both keys named. */
enum accel_err accel_sub_config_parse(struct accel_sub_config *sub, struct accel_prune_config *c,
                                      const struct accel_config *at, int index) ACCEL_CHECKED;

#endif
