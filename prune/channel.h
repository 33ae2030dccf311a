/* channel.h - choosing which channels go: coupled sets, scores, counts. Meaning of every key:
 * docs/pruning.md, "Channels".
 *
 * A coupled set is the groups that touch the same selected weights along their output channels. A
 * set loses floor(groups * ratio) of its groups, those of the lowest score. */
#ifndef ACCEL_PRUNE_CHANNEL_H
#define ACCEL_PRUNE_CHANNEL_H

#include "prune/groups.h"
#include "prune/prune_config.h"
#include "prune/target.h"

/* A weight that takes part: selected, or with a promise to keep what it has. */
struct accel_channel_member {
    const struct accel_target *target;
    uint32_t axis; /* of its output channels (accel_groups) */
    int64_t n;     /* channels */
    bool selected; /* false: excluded, or its elements cannot be ranked */
    bool inputs;   /* keeps its input side too */
    double *score; /* [n] as measured; NULL when not selected */
    double mean;
    int64_t cut; /* channels it loses */
};

struct accel_channel_set {
    int32_t *group; /* [n] in the order of the first member's channels */
    int32_t n;
    int *member; /* [n_member] selected weights it consists of */
    int n_member;
    double ratio;      /* asked for; NAN: by threshold */
    int32_t low, high; /* groups that go at least and at most */
    int32_t cut;       /* groups that go */
    int kept_for;      /* member whose exclusion keeps the set; -1: none */
};

struct accel_channels {
    const struct accel_groups *g;
    const struct accel_prune_config *config;
    struct accel_channel_member *member;
    int n_member;
    struct accel_channel_set *set;
    int n_set;
    int32_t *set_of; /* [n_group] or -1: no selected weight */
    double *score;   /* [n_group] normalised and reduced; the lowest go first */
    double *raw;     /* [n_group] reduced as measured, for thresholds */
    bool *gone;      /* [n_group] */
    struct accel_arena arena;
};

/* Scores given from outside (activations, gradients): fills score[n] of a member; false: none.
 * NULL: from the weights. */
struct accel_channel_statistics {
    enum accel_err (*score)(void *ctx, const struct accel_target *t, int axis, double *score,
                            int64_t n);
    void *ctx;
};

/* Scores all and decides what goes by the config's ratios. Reads every selected weight once. Warns
 * of weights with NaN or infinity, which keep all they have. */
enum accel_err accel_channels_choose(struct accel_channels **out, const struct accel_groups *g,
                                     const struct accel_targets *t,
                                     const struct accel_prune_config *c,
                                     const struct accel_channel_statistics *by,
                                     struct accel_log *log) ACCEL_CHECKED;
void accel_channels_free(struct accel_channels *c);

/* Decides anew with the same scores: `ratio` of every set's groups by one ranking over all sets,
 * within bounds, for a search. */
enum accel_err accel_channels_rank(struct accel_channels *c, double ratio) ACCEL_CHECKED;

/* Cuts the groups that the sets' `cut` ask for, lowest scores first, as far as round_to and the
 * last index of every axis allow; sets `cut` to what went. */
enum accel_err accel_channels_pick(struct accel_channels *c) ACCEL_CHECKED;

/* The axis of a target's output channels among the groups' axes; false: it has none that can be
 * followed, or lies in a body. */
bool accel_channels_axis(uint32_t *axis, const struct accel_groups *g,
                         const struct accel_target *t);

#endif
