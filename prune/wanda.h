/* wanda.h - single weights by their size times that of their input.
 *
 * Source: Sun, Liu, Bair, Kolter, "A Simple and Effective Pruning Approach for Large Language
 * Models", ICLR 2024, arXiv:2306.11695. */
#ifndef ACCEL_PRUNE_WANDA_H
#define ACCEL_PRUNE_WANDA_H

#include <stddef.h>

#include "base/err.h"

/* How much goes from a matrix of weights. */
struct accel_amount {
    double ratio; /* share of the entries, when m is 0 */
    size_t n, m;  /* else: at most n of every m that follow each other along the channels stay */
    size_t taps;  /* the inputs are [channels, taps] */
};

/**
 * Zeroes the entries of the lowest |w| * norm: of each output by itself, as the paper does; of
 * equal ones the first.
 *
 * @param[in,out] w  [n_out, n_in]
 * @param norm  [n_in] size of each input
 * @cost n_in log(n_in) per output
 */
enum accel_err accel_wanda_prune(double *w, size_t n_out, size_t n_in, const double *norm,
                                 const struct accel_amount *amount) ACCEL_CHECKED;

#endif
