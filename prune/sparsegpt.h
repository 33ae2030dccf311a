/* sparsegpt.h - zeroing weights so that the rest makes up for them.
 *
 * Source: Frantar and Alistarh, "SparseGPT: Massive Language Models Can Be Accurately Pruned in
 * One-Shot", ICML 2023, arXiv:2301.00774. */
#ifndef ACCEL_PRUNE_SPARSEGPT_H
#define ACCEL_PRUNE_SPARSEGPT_H

#include "prune/wanda.h"

/**
 * Goes through the inputs from first to last. Where an entry w of an output goes, all later entries
 * of that output move by  - w / C[i,i] * C[i, later],  C being the upper Cholesky factor of the
 * inverse of H = X^T X + damping. The entries that go are those of the least w^2 / C[i,i]^2, by
 * blocks of 128 inputs over all outputs, or by groups of m.
 *
 * @param[in,out] w  [n_out, n_in]
 * @param h     [n_in, n_in]  X^T X, lower triangle; used up
 * @return ENOSUP when H is not positive definite in spite of the damping, EDEVICE without LAPACK
 * @cost n_in^3 + n_out * n_in^2 multiply-adds
 */
enum accel_err accel_sparsegpt_prune(double *w, size_t n_out, size_t n_in, double *h,
                                     const struct accel_amount *amount) ACCEL_CHECKED;

#endif
