/* matmul.h - what the matrix products of op_matmul.c share with the kernels of matmul_forms.c. */
#ifndef ACCEL_OPS_MATMUL_H
#define ACCEL_OPS_MATMUL_H

#include "graph/op.h"

struct accel_matmul {
    int a, b, bias;       /* slots; bias -1: none */
    enum accel_dtype out; /* UNDEFINED: that of slot `like` */
    int like;
};

struct accel_matmul_params {
    bool trans_a, trans_b;             /* the last two axes are swapped */
    bool trans_batch_a, trans_batch_b; /* M (or K) is stored before the batch axes */
    float alpha;
};

/* Stored axis of logical axis i of an operand of this rank. */
int accel_matmul_axis(int rank, int i, bool trans, bool trans_batch);

/* com.microsoft: alpha * op(A) op(B); integer products that end as floats. */
enum accel_err accel_matmul_fused(const struct accel_call *c);
enum accel_err accel_matmul_to_float(const struct accel_call *c);
enum accel_err accel_matmul_dynamic(const struct accel_call *c);
size_t accel_matmul_dynamic_scratch(const struct accel_call *c);

#endif
