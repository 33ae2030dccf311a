/* summary.h - the numbers of a model, per node and in total: what accel-inspect shows. */
#ifndef ACCEL_API_SUMMARY_H
#define ACCEL_API_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"

struct accel_node_summary {
    const struct accel_node *node;
    uint64_t params;  /* elements of the floating-point constants that it is the first to read */
    uint64_t nonzero; /* of them */
    uint64_t size;    /* bytes of all constants that it is the first to read, as stored dense */
    bool unread;      /* a constant's data are not there (or were not asked for): nonzero says
                         nothing */
    int64_t macs;     /* for one sample; -1: a shape is unknown */
};

struct accel_summary {
    struct accel_node_summary *row; /* [n_row] nodes in order, bodies behind the node that holds
                                       them, functions last. accel_free() */
    size_t n_row, cap;
    uint64_t params, nonzero; /* of all floating-point constants, each stored tensor once, read by a
                                 node or not */
    uint64_t trainable;       /* params without running means and variances */
    uint64_t n_unread;        /* tensors whose data are not there */
    int64_t macs;             /* of one sample; -1: a shape is unknown */
};

/* Sums up a model whose shapes were inferred. count_zeros: reads every floating-point constant
 * once, as stored (edits ignored), in one buffer. Cost: the bytes of the constants, n log n in
 * nodes and tensors. Errors: EIO, EMODEL (a file that became shorter), ENOMEM. */
enum accel_err accel_summary_build(struct accel_summary *out, struct accel_model *m,
                                   bool count_zeros) ACCEL_CHECKED;
void accel_summary_clear(struct accel_summary *s);

#endif
