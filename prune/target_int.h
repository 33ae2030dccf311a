/* target_int.h - between collecting what nodes hold (target.c) and choosing among it (select.c). */
#ifndef ACCEL_PRUNE_TARGET_INT_H
#define ACCEL_PRUNE_TARGET_INT_H

#include "base/map.h"
#include "prune/target.h"

/* One constant in one part for one operator. A shared weight has several. */
struct accel_holding {
    const struct accel_node *node;
    struct accel_weight weight; /* axes of the stored tensor */
    enum accel_target_kind kind;
    size_t tensor; /* index in model->tensor */
    size_t owner;  /* BIAS: that of its weight, SIZE_MAX when there is none */
    struct accel_tensor *scale, *zero_point;
    int scale_axis;
    bool block_scales; /* scales per block: its entries cannot be ranked */
    const char *axis_note;
    const char *name;   /* the tensor as reported */
    const char *module; /* module path in the weight's name ("layer4.weight"), or "" */
    unsigned mark;      /* select.c's, for the sub-config in hand */
};

struct accel_holdings {
    struct accel_holding *at; /* in the order of nodes */
    size_t n, cap;
};

/* What the config says about a stored tensor. */
struct accel_verdict {
    const struct accel_sub_config *sub; /* the one that applies, or NULL */
    bool excluded;
    unsigned mark; /* select.c's */
};

/* Fills in verdict[model->n_tensor], zeroed by the caller. */
enum accel_err accel_targets_select(struct accel_verdict *verdict, struct accel_holdings *h,
                                    struct accel_model *m, const struct accel_prune_config *c,
                                    struct accel_log *log) ACCEL_CHECKED;

#endif
