/* search.h - how much of a model is left when channels go, and the ranking that leaves what a
 * target asks for.
 *
 * With "target" the config names no ratios: all channels are ranked together by their normalised
 * scores, and the share that goes is found by bisection. */
#ifndef ACCEL_PRUNE_SEARCH_H
#define ACCEL_PRUNE_SEARCH_H

#include "prune/channel.h"

/* Shares of the model that are left; 1 where something is unknown. */
struct accel_left {
    double macs, params, bytes;
};

/* What is left with c->gone, without changing the model. Infers it twice (batch 1 and back). */
enum accel_err accel_channels_left(struct accel_left *out, const struct accel_channels *c,
                                   struct accel_model *m) ACCEL_CHECKED;

/* Sets c->gone so that no share is above those of the config's target (which names macs, params or
 * bytes). ETARGET when even the most that may go is not enough: both numbers are in the text. */
enum accel_err accel_channels_search(struct accel_left *reached, struct accel_channels *c,
                                     struct accel_model *m) ACCEL_CHECKED;

#endif
