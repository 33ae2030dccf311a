/* target.h - which constants a config selects, which it keeps, and why. semantics: docs/pruning.md.
 */
#ifndef ACCEL_PRUNE_TARGET_H
#define ACCEL_PRUNE_TARGET_H

#include "graph/graph.h"
#include "graph/op.h"
#include "prune/prune_config.h"

enum accel_target_kind {
    ACCEL_TARGET_WEIGHT,
    ACCEL_TARGET_BIAS,
    ACCEL_TARGET_NORM,
    ACCEL_TARGET_OTHER
};

/* One stored constant that some node reads, in the order the model stores them (model->tensor).
 * Every floating-point constant of two or more dims that an operator reads has a row; others have
 * one when they are selected or may be changed. */
struct accel_target {
    struct accel_tensor *tensor;
    const char *name; /* as reported: the tensor's name, in subgraphs OUTERNODE/BODY/NAME */
    const struct accel_node *node; /* the operator it is a weight of (through Identity, Transpose,
                                      …); the first reader for others */
    enum accel_target_kind kind;
    struct accel_weight weight; /* axes mapped to the stored tensor; out_axis/in_axis -1 where they
                                   cannot be traced */
    const char *axis_note;      /* why an axis could not be traced ("Reshape '/r'"), or NULL */
    struct accel_tensor *scale,
        *zero_point;   /* stored integers behind DequantizeLinear, else NULL */
    bool block_scales; /* a scale per block: single entries cannot be ranked */
    int scale_axis;    /* axis of per-channel scales on the stored tensor; -1: one scale */
    const struct accel_sub_config *sub; /* the one that applies; NULL when not selected */
    const struct accel_setting *setting;
    struct accel_target *weight_of_bias; /* BIAS: the row of its weight, or NULL */
    bool excluded;                       /* the config says that it keeps all it has */
    const char *reason;               /* "selected", "not selected", "excluded", "blocked by …" */
    const struct accel_node **reader; /* all operators it is a weight of (shared weights) */
    int n_reader;
};

struct accel_targets {
    struct accel_target *at;
    int n;
    struct accel_arena arena;
};

/* Applies the selectors to the model: names, module paths, patterns, types, exclusion, precedence.
 * EARG with the config's position for names and types that match nothing (near names) unless
 * allow_missing (a warning then). Cost: n log n in nodes and names; patterns are tried on each name
 * once. */
enum accel_err accel_targets_build(struct accel_targets **out, struct accel_model *m,
                                   const struct accel_prune_config *c,
                                   struct accel_log *log) ACCEL_CHECKED;
void accel_targets_free(struct accel_targets *t);

/* The axis of a stored tensor of this rank that per-channel scales lie along, n being the node that
 * scales it; -1: one scale. */
int accel_scale_axis(const struct accel_node *n, const struct accel_tensor *scale, int rank);

#endif
