/* curve.h - sensitivity: what accuracy a coupled set costs when a share of it goes. accel-prune
 * --sensitivity measures and writes it; "ratios_from" reads it back. */
#ifndef ACCEL_PRUNE_CURVE_H
#define ACCEL_PRUNE_CURVE_H

#include "prune/channel.h"

struct accel_curve {
    const char *weight; /* a weight whose output channels are those of the set */
    int n;
    double *ratio, *drop; /* [n] share of the set's channels, ascending; accuracy lost */
};

struct accel_curves {
    struct accel_curve *at;
    int n;
    struct accel_config_file *file;
    struct accel_arena arena;
};

/* Reads a sensitivity file. Errors: EARG with the position. */
enum accel_err accel_curves_read(struct accel_curves **out, const char *path) ACCEL_CHECKED;
void accel_curves_free(struct accel_curves *c);

/* Each set loses `share` of what costs at most `drop` by itself, within its bounds; a set without a
 * curve loses nothing. */
enum accel_err accel_channels_by_curves(struct accel_channels *c, const struct accel_curves *curves,
                                        double drop, double share) ACCEL_CHECKED;

/* The largest drop that any curve shows. */
double accel_curves_worst(const struct accel_curves *curves);

#endif
