/* linalg.h - sums of products, Cholesky and ridge least squares in double precision. The only user
 * of BLAS and LAPACK.
 *
 * Matrices are row-major. The library is opened when first wanted; without it every call is
 * EDEVICE. It runs on one thread, so that results do not depend on how many there are. */
#ifndef ACCEL_BASE_LINALG_H
#define ACCEL_BASE_LINALG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Largest side of a matrix here: the library counts with int. */
#define ACCEL_LINALG_MAX 32767

/* EDEVICE when LAPACK cannot be opened. */
enum accel_err accel_linalg_open(void) ACCEL_CHECKED;

/**
 * Adds the products of rows with themselves:  g += X^T X, lower triangle only.
 *
 * @param g     [n, n]
 * @param x     [rows, n]  with `x_step` doubles from row to row
 * @cost rows * n^2 / 2 multiply-adds
 */
enum accel_err accel_linalg_square(double *g, size_t n, const double *x, size_t x_step,
                                   size_t rows) ACCEL_CHECKED;

/**
 * Adds the products of two sets of rows:  c += X^T Y.
 *
 * @param c     [n, m]  with `c_step` doubles from row to row
 * @param x, y  [rows, n] and [rows, m]
 */
enum accel_err accel_linalg_cross(double *c, size_t c_step, size_t n, size_t m, const double *x,
                                  size_t x_step, const double *y, size_t y_step,
                                  size_t rows) ACCEL_CHECKED;

/**
 * c = A B + beta * c  for a symmetric A of which the lower triangle is there.
 *
 * @param a     [n, n]
 * @param b, c  [n, m], not the same memory
 */
enum accel_err accel_linalg_symmetric(double *c, const double *a, const double *b, size_t n,
                                      size_t m, double beta) ACCEL_CHECKED;

/**
 * Factorises in place:  A = L L^T. Lower triangles only; what is above stays.
 *
 * @param[out] definite  false when A is not positive definite (or holds NaN); a is garbage then
 */
enum accel_err accel_linalg_cholesky(bool *definite, double *a, size_t n) ACCEL_CHECKED;

/* Solves L L^T X = B in place, B [n, m]. */
enum accel_err accel_linalg_solve(const double *l, size_t n, double *b, size_t m) ACCEL_CHECKED;

/* Solves L X = B in place, B [n, m]. */
enum accel_err accel_linalg_solve_lower(const double *l, size_t n, double *b,
                                        size_t m) ACCEL_CHECKED;

/**
 * Ridge least squares from sums of products:  (G + diag(ridge)) W = C.
 *
 * Source: Hoerl and Kennard, "Ridge Regression: Biased Estimation for Nonorthogonal Problems",
 * Technometrics 1970.
 *
 * @param[out] definite  false: no solution; c is garbage then
 * @param g      [n, n]  X^T X, lower triangle; becomes the factor
 * @param ridge  [n]     added to the diagonal
 * @param c      [n, m]  X^T Y; becomes W
 * @cost n^3 / 6 + n^2 m multiply-adds
 */
enum accel_err accel_linalg_ridge(bool *definite, double *g, const double *ridge, double *c,
                                  size_t n, size_t m) ACCEL_CHECKED;

#endif
