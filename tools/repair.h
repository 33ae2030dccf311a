/* repair.h - recovering what pruning cost, without labels: least squares layer by layer, and new
 * statistics for batch norms.
 *
 * In forward order, each layer whose inputs changed or whose entries were zeroed is refitted: from
 * the activations of the pruned model as repaired so far to the outputs of the unpruned one, on
 * samples of calibration data. Zeros stay zeros.
 *
 * Source: He, Zhang, Sun, "Channel Pruning for Accelerating Very Deep Neural Networks", ICCV 2017
 * (reconstruction of outputs, layer after layer); Luo, Wu, Lin, "ThiNet", ICCV 2017. */
#ifndef ACCEL_TOOLS_REPAIR_H
#define ACCEL_TOOLS_REPAIR_H

#include "base/json.h"
#include "prune/cut.h"
#include "tools/tools.h"

/* What became of one layer, or of one batch norm. */
struct accel_repair_row {
    const char *node, *op_type, *weight; /* names of the model */
    bool kept;                           /* it has new weights or statistics */
    const char *reason;                  /* "least squares", or why not */
    double before, after; /* mean squared error of its outputs on held-back samples, as a share of
                             their mean square; NAN: not measured */
    double lambda;        /* strength of the ridge; NAN: none */
};

struct accel_repair {
    struct accel_repair_row *row; /* [n_row] in the order of nodes */
    size_t n_row, row_cap;
    int64_t samples;
    double before, after; /* of the model's outputs, like a row's */
    struct accel_arena arena;
};

struct accel_repair_options {
    const char *path; /* of the unpruned model */
    const char *data; /* SPEC or object */
    bool least_squares;
    int64_t bn_batches;               /* 0: batch norms stay as they are */
    const struct accel_cut_plan *cut; /* when channels were cut out of the model, else NULL */
    uint64_t seed;
};

/**
 * Repairs `m`, which was cut or has edits on its tensors; its repaired tensors get edits with new
 * elements. Nodes are matched with those of the unpruned model by the names of their outputs.
 *
 * @param[out] r  what was done; clear in any case
 * @cost one run of both models per layer that depends on another one, up to that layer
 * @return ENOSUP when the model cannot be run, EARG and EMODEL for the data, EDEVICE without LAPACK
 */
enum accel_err accel_repair_run(struct accel_repair *r, struct accel_job *job,
                                struct accel_model *m,
                                const struct accel_repair_options *opt) ACCEL_CHECKED;
void accel_repair_clear(struct accel_repair *r);

void accel_repair_json(struct accel_json *j, const struct accel_repair *r);
void accel_repair_text(struct accel_str *out, const struct accel_repair *r, int width, bool color);

#endif
