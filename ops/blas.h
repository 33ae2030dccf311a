/* blas.h - kernels of the device that computes with BLAS. */
#ifndef ACCEL_OPS_BLAS_H
#define ACCEL_OPS_BLAS_H

#include "device/device.h"
#include "ops/gemm.h"

/* What one node becomes. */
struct accel_blas_job {
    enum accel_err (*run)(const struct accel_blas_job *j, const struct accel_run *r);
    size_t workspace;
    struct accel_gemm gemm;
    void *more; /* the kernel's own, freed with the job; or NULL */
};

/* Describe the first node of a question: ENOSUP where the plain kernel is as good. */
typedef enum accel_err (*accel_blas_describe)(struct accel_blas_job *j,
                                              const struct accel_ask *ask);
enum accel_err accel_blas_matmul(struct accel_blas_job *j, const struct accel_ask *ask);
enum accel_err accel_blas_gemm(struct accel_blas_job *j, const struct accel_ask *ask);
enum accel_err accel_blas_conv(struct accel_blas_job *j, const struct accel_ask *ask);

/* Sizes of a float32 value without empty axes; ENOSUP for others, and for more than 12 axes. */
#define ACCEL_BLAS_RANK 12
enum accel_err accel_blas_dims(int *rank, int64_t dim[ACCEL_BLAS_RANK],
                               const struct accel_value *v) ACCEL_CHECKED;

#endif
