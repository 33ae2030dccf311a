/* prune_config.h - a pruning config, checked and in one form for both NNI dialects (v3 and v2). The
 * meaning of every key: docs/pruning.md. */
#ifndef ACCEL_PRUNE_PRUNE_CONFIG_H
#define ACCEL_PRUNE_PRUNE_CONFIG_H

#include "base/config.h"
#include "base/log.h"

enum accel_score {
    ACCEL_SCORE_MAGNITUDE,
    ACCEL_SCORE_L1,
    ACCEL_SCORE_L2,
    ACCEL_SCORE_FPGM,
    ACCEL_SCORE_BN_SCALE,
    ACCEL_SCORE_LAMP,
    ACCEL_SCORE_RANDOM,
    ACCEL_SCORE_TAYLOR,
    ACCEL_SCORE_APOZ,
    ACCEL_SCORE_MEAN_ACTIVATION,
    ACCEL_SCORE_WANDA,
    ACCEL_SCORE_MOVEMENT,
    ACCEL_SCORE_SPARSEGPT
};
enum accel_pattern {
    ACCEL_PATTERN_ELEMENT,
    ACCEL_PATTERN_BLOCK,
    ACCEL_PATTERN_NM,
    ACCEL_PATTERN_CHANNEL
};

/* How the scores of the members of a coupled set become one. */
enum accel_reduction { ACCEL_REDUCE_MEAN, ACCEL_REDUCE_SUM, ACCEL_REDUCE_MAX, ACCEL_REDUCE_FIRST };

enum accel_granularity {
    ACCEL_GRAIN_ELEMENT,     /* "default" of level */
    ACCEL_GRAIN_OUT_CHANNEL, /* one block per index of the output axis */
    ACCEL_GRAIN_IN_CHANNEL,
    ACCEL_GRAIN_PER_CHANNEL, /* as NNI: each output channel ranked by itself, elements within it */
    ACCEL_GRAIN_BLOCK        /* block[] over the last dims, -1: the whole dim */
};

/* A list of names or patterns, with where each stands in the config. */
struct accel_name_list {
    const struct accel_config **item; /* STRING entries */
    int n;
};

/* How much to remove from one kind of tensor ("weight" or "bias") of a sub-config's targets. */
struct accel_setting {
    bool on;                     /* named by target_names (default: weight only) */
    double sparse_ratio;         /* 0..1; NAN: not given */
    double sparse_threshold;     /* >= 0; NAN: not given */
    double min_ratio, max_ratio; /* 0 and 1 by default */
    const char *global_group; /* NULL: ranked alone. v2 total_sparsity gives each sub-config a group
                                 of its own */
    enum accel_granularity granularity;
    const int64_t *block;
    int n_block;
    bool align;    /* bias: follows the weight's mask ("align": {"target_name": "weight", …}) */
    bool mul_mask; /* apply_method "mul" or "movement"-free default; others are refused */
};

struct accel_sub_config {
    const struct accel_config *at;
    int index;
    bool exclude; /* v2 "exclude": true: removes matches from the sub-configs before it */
    struct accel_name_list op_types, op_names, op_names_re, op_partial_names;
    struct accel_name_list exclude_op_types, exclude_op_names, exclude_op_names_re;
    struct accel_setting weight, bias;
};

struct accel_prune_config {
    const struct accel_config_file *file; /* borrowed: outlives this */
    const char *pruner;                   /* preset name as reported: "level", "nm", … */
    enum accel_score score;
    enum accel_pattern pattern;
    bool v2; /* an older key was used: the last sub-config wins */
    struct accel_sub_config *sub;
    int n_sub;
    enum accel_reduction reduction;
    uint64_t seed; /* of score "random"; 0 unless the caller sets it */
    bool shrink, exclude_inputs, allow_missing, strict_nni;
    bool by_data;     /* the score needs activations */
    int64_t round_to; /* >= 1; 0: "auto" */
    int64_t n, m;     /* n:m, 1 <= n < m <= 4096 */
    const char *data; /* calibration SPEC or NULL */
    const struct accel_config *schedule, *fine_tune, *target, *repair, *bn_reestimate, *ratios_from,
        *regularize; /* later features: parsed, checked for shape, NULL when absent */
    struct accel_arena arena;
};

/* Checks the whole tree: unknown and duplicate keys with position and near names, kinds, ranges,
 * contradictions, missing parts ("pruner 'taylor' needs …"). What is valid but waits for a part of
 * the tool that is not there is EARG with "needs …". `pruner`: --pruner, or NULL. All errors EARG.
 */
enum accel_err accel_prune_config_parse(struct accel_prune_config **out,
                                        const struct accel_config_file *f,
                                        const char *pruner) ACCEL_CHECKED;
void accel_prune_config_free(struct accel_prune_config *c);

#endif
