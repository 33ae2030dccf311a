/* prune.h - pruning a model: a plan puts lazy edits on its tensors; writing the model carries them
 * out; then the plan knows the numbers. */
#ifndef ACCEL_PRUNE_PRUNE_H
#define ACCEL_PRUNE_PRUNE_H

#include "graph/graph.h"
#include "prune/channel.h"
#include "prune/curve.h"
#include "prune/cut.h"
#include "prune/prune_config.h"
#include "prune/target.h"

#define ACCEL_HISTOGRAM_BINS 64

/* What happened to one constant; complete after the model was written (or dry-written) . */
struct accel_prune_row {
    const struct accel_target *target;
    bool pruned;        /* reported "pruned": selected and handled, even when the ratio is 0 */
    const char *reason; /* never empty */
    double requested;   /* the ratio asked for; NAN: none */
    double achieved;    /* zeros that the mask put or found / elements */
    uint64_t n, zeros_before, zeros_after; /* n: elements before */
    const int64_t *dim;                    /* [rank] before */
    const struct accel_cut *cut;           /* [rank] what channels it lost, or NULL */
    bool counted;                          /* the numbers below and above are filled in */
    bool by_data;     /* selected, and what goes waits for activations: accel_prune_row_fill() */
    bool repaired;    /* it holds new numbers where it was not zeroed */
    double threshold; /* no magnitude above it was removed (for blocks: their mean); NAN: none */
    double max_abs;   /* of the finite elements before */
    uint64_t before[ACCEL_HISTOGRAM_BINS],
        after[ACCEL_HISTOGRAM_BINS]; /* |w| over [0, max_abs] without zeros, for the report;
                                        exact but for values within 1 % of a bin's edge */
};

struct accel_prune_totals {
    /* Elements of all floating-point constants, each stored tensor once; trainable leaves out
     * running mean and variance. */
    uint64_t params_before, params, nonzero_before, nonzero_after, trainable_before, trainable;
};

struct accel_spectrum;
struct accel_prune_plan {
    struct accel_prune_row *row; /* [n_row] in the order of targets */
    int n_row;
    struct accel_targets *targets;
    struct accel_prune_totals totals; /* complete after writing */
    struct accel_log *log;
    struct accel_spectrum *work;     /* room that the edits share while they are prepared */
    struct accel_groups *groups;     /* of channels, or NULL with the three below */
    struct accel_channels *channels; /* what was chosen among them */
    struct accel_curves *curves;     /* of "ratios_from", or NULL */
    struct accel_cut_plan *cut;      /* what was done */
};

/* Selects, and puts edits on the model's tensors. What is ranked alone (ratios, thresholds, n:m) is
 * resolved while the tensor is written, in one read where it fits in the buffer; global groups are
 * resolved here in streaming passes. Memory does not grow with tensors, but for 8 bytes per block
 * of a block granularity. Plan and log must outlive the writing of the model. */
enum accel_err accel_prune_build(struct accel_prune_plan **out, struct accel_model *m,
                                 const struct accel_prune_config *c,
                                 struct accel_log *log) ACCEL_CHECKED;

/* The same in two steps, for pruners that score channels: what goes is chosen (by statistics from
 * outside, or NULL) and can still be changed (plan->channels); accel_prune_cut() carries it out.
 * For other pruners the first step is all. The config must outlive the plan. */
enum accel_err accel_prune_choose(struct accel_prune_plan **out, struct accel_model *m,
                                  const struct accel_prune_config *c,
                                  const struct accel_channel_statistics *by,
                                  struct accel_log *log) ACCEL_CHECKED;
enum accel_err accel_prune_cut(struct accel_prune_plan *p, struct accel_model *m) ACCEL_CHECKED;

/* The same for targets that were chosen already; the plan owns them, on failure too (freed). */
enum accel_err accel_prune_plan_new(struct accel_prune_plan **out, struct accel_model *m,
                                    struct accel_targets *targets,
                                    const struct accel_prune_config *c,
                                    const struct accel_channel_statistics *by,
                                    struct accel_log *log) ACCEL_CHECKED;

/* The numbers of a row whose weight got new elements outside of an edit of this room: [row->n] as
 * they were (NULL: those numbers are there) and as they are. */
void accel_prune_row_fill(struct accel_prune_row *row, const double *before, const double *after);

/* Fills in rows and totals after the model was (dry-)written; reads what has not been read by then.
 */
enum accel_err accel_prune_finish(struct accel_prune_plan *p, struct accel_model *m) ACCEL_CHECKED;
void accel_prune_plan_free(struct accel_prune_plan *p);

#endif
