/* search.h - how much of a model is left when channels go, and the ranking that leaves what a
 * target asks for.
 *
 * With "target" the config names no ratios: all channels are ranked together by their normalised
 * scores, and the share that goes is found by bisection; with a
 * sensitivity file, every set gives what costs it the same. */
#ifndef ACCEL_PRUNE_SEARCH_H
#define ACCEL_PRUNE_SEARCH_H

#include "prune/channel.h"
#include "prune/curve.h"

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
                                     const struct accel_curves *curves,
                                     struct accel_model *m) ACCEL_CHECKED;

/* Chooses by one number from 0 (nothing goes) to 1 (all that may): a share of the ranking, or with
 * `curves` a share of the largest drop they show. */
enum accel_err accel_channels_at(struct accel_channels *c, const struct accel_curves *curves,
                                 double x) ACCEL_CHECKED;

#endif
