/* gemm.h - products of float matrices by BLAS, opened when first wanted. */
#ifndef ACCEL_OPS_GEMM_H
#define ACCEL_OPS_GEMM_H

#include <stdbool.h>
#include <stdint.h>

/* Opens libblas (Debian: OpenBLAS where it is installed) once; false when there is none. Its
 * threads become as many as base/threads.h says. */
bool accel_gemm_open(void);

/* True when the library counts that far. */
static inline bool accel_gemm_fits(int64_t n)
{
    return n >= 1 && n <= INT32_MAX;
}

/* A row-major product. */
struct accel_gemm {
    bool trans_a, trans_b;
    int64_t M, N, K;
    float alpha, beta;
    int64_t lda, ldb, ldc; /* elements from row to row, as stored */
};

/* C [M N] = alpha op(A) [M K] op(B) [K N] + beta C. Call accel_gemm_open() before; all numbers
 * fit. */
void accel_gemm_run(const struct accel_gemm *g, const float *a, const float *b, float *c);

#endif
