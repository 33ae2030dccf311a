/* gram.h - fitting a linear layer to what it should give out, from sums over a stream of samples.
 *
 * The layer is y = W^T x + b, or n_group such layers side by side (grouped convolutions; a
 * depthwise one has a group per channel). Of the samples only X^T X, X^T Y and Y^T Y are kept, in
 * double, so that memory does not grow with their number; a constant 1 is the last entry of x. A
 * part of the samples goes into a second set of sums: the squared error there of any W,
 *
 *     tr(W^T G W) - 2 tr(W^T C) + tr(Y^T Y),
 *
 * decides how strong the ridge is and whether the fit is kept at all. */
#ifndef ACCEL_PRUNE_GRAM_H
#define ACCEL_PRUNE_GRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum accel_gram_part { ACCEL_GRAM_FIT, ACCEL_GRAM_HELD, ACCEL_GRAM_PARTS };

struct accel_gram {
    size_t n_group, n_x, n_y;         /* of one group; n_x without the constant */
    double *g[ACCEL_GRAM_PARTS];      /* [n_group][n_x + 1, n_x + 1], lower triangles */
    double *c[ACCEL_GRAM_PARTS];      /* [n_group][n_x + 1, n_y] */
    double *yy[ACCEL_GRAM_PARTS];     /* [n_group][n_y] */
    uint64_t n_row[ACCEL_GRAM_PARTS]; /* samples so far */
    double *room;                     /* a block of samples in double */
};

/* Bytes that the sums need; SIZE_MAX when they overflow or a side exceeds ACCEL_LINALG_MAX. */
size_t accel_gram_size(size_t n_group, size_t n_x, size_t n_y);

/* ENOSUP when a side exceeds ACCEL_LINALG_MAX, EDEVICE without LAPACK. */
enum accel_err accel_gram_init(struct accel_gram *g, size_t n_group, size_t n_x,
                               size_t n_y) ACCEL_CHECKED;
void accel_gram_clear(struct accel_gram *g);

/**
 * Adds samples.
 *
 * @param x, y  [rows, n_group * n_x] and [rows, n_group * n_y]: the groups side by side. y NULL:
 *              only X^T X is wanted
 * @cost rows * n_group * (n_x / 2 + n_y) * n_x multiply-adds
 */
enum accel_err accel_gram_add(struct accel_gram *g, enum accel_gram_part part, const float *x,
                              const float *y, size_t rows) ACCEL_CHECKED;

/* What a fit came to. Errors are mean squares per output on the held-back samples. */
struct accel_gram_fit {
    bool kept;     /* the new weights are better there */
    double lambda; /* of the chosen ridge, as a share of the mean square of an input */
    double before, after;
};

/**
 * Refits W:  min |X W - Y|^2 + lambda d |W - W0|^2,  d the mean of the diagonal of X^T X; the
 * constant's entry is not held back. lambda is the one of a small grid with the least error on the
 * held-back samples; W is then computed from all samples.
 *
 * Outputs with the same set of free entries are solved together.
 *
 * @param[in,out] w  [n_group][n_x + 1, n_y]  W0; the new W when fit->kept, else as it was
 * @param free   [n_group][n_y, n_x + 1]  entries that may change, NULL: all; others stay exactly
 * @return ENOSUP "... multiply-adds" when the solving would take more than ACCEL_GRAM_MACS
 */
enum accel_err accel_gram_solve(struct accel_gram_fit *fit, const struct accel_gram *g, double *w,
                                const bool *free) ACCEL_CHECKED;

#define ACCEL_GRAM_MACS 4e11

/* Sum of squares of W's errors over a part of the samples. */
enum accel_err accel_gram_error(double *out, const struct accel_gram *g, enum accel_gram_part part,
                                const double *w) ACCEL_CHECKED;

#endif
