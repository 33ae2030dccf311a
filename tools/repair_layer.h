/* repair_layer.h - which layers are refitted, in what order, and what belongs to each. */
#ifndef ACCEL_TOOLS_REPAIR_LAYER_H
#define ACCEL_TOOLS_REPAIR_LAYER_H

#include "ops/unfold.h"
#include "prune/gram.h"
#include "tools/repair.h"

/* Where a change of the layer's constant goes. */
enum accel_bias_home {
    ACCEL_BIAS_NOWHERE, /* it stays as it is */
    ACCEL_BIAS_OWN,     /* its own bias */
    ACCEL_BIAS_ADDED,   /* a constant that is added behind it */
    ACCEL_BIAS_MEAN     /* the mean of the batch norm behind it, with the sign changed */
};

struct accel_repair_layer {
    struct accel_node *node;      /* of the pruned model */
    const struct accel_node *was; /* of the unpruned one; NULL: only inputs are looked at */
    struct accel_unfold u;        /* weight indices are those of the stored tensor */
    struct accel_value *weight;   /* that stores it */
    const int64_t *kept;          /* [n_out] outputs of `was`; NULL: all */
    int64_t n_out;                /* outputs of all groups */
    int depth;                    /* repaired layers before it */
    enum accel_bias_home home;
    struct accel_value *home_value; /* NULL: NOWHERE */
    double *bias;                   /* [n_out] its own bias, zeros without one; arena */
    /* An addition behind the layer (and its batch norm): what the other operand lacks is made good
     * by this layer. target += (skip_old - skip_new) * skip_gain. NULL: none. */
    const struct accel_value *skip_old, *skip_new;
    double *skip_gain; /* [n_out], arena */
    size_t row;        /* in the report */
    struct accel_gram gram;
};

struct accel_repair_layers {
    struct accel_repair_layer *at; /* in the order of nodes */
    size_t n, cap;
    int max_depth;
};

/* Fills the list, and the report's rows with those that cannot be repaired and why. `was`: the
 * unpruned model. */
enum accel_err accel_repair_layers_find(struct accel_repair_layers *l, struct accel_repair *r,
                                        struct accel_model *m, const struct accel_model *was,
                                        const struct accel_cut_plan *cut) ACCEL_CHECKED;
void accel_repair_layers_clear(struct accel_repair_layers *l);

/* Sets l->weight to the constant behind the node's weight (through a plain transposition, which
 * l->u then takes in); else a few words that say why it cannot be changed. */
const char *accel_repair_find_weight(struct accel_repair_layer *l);

/* [graph->n_node] whether what a node makes is not what the unpruned one made, by what it reads;
 * free with accel_free(). */
enum accel_err accel_repair_changes(bool **out, const struct accel_graph *g) ACCEL_CHECKED;

/* A row of the report for a node; *index is its place. */
enum accel_err accel_repair_row_add(size_t *index, struct accel_repair *r,
                                    const struct accel_node *n, const char *weight,
                                    const char *reason) ACCEL_CHECKED;

#endif
