/* dnnl_shim.h - oneDNN behind a few functions of our own: formats, and kernels made from a spec.
 *
 * dnnl_shim.c is the only file that knows <dnnl.h>. The library (15 MB and its OpenCL loader) is
 * opened when the first device is, so that programs that run no model do not pay for it. */
#ifndef ACCEL_OPS_ONEDNN_DNNL_SHIM_H
#define ACCEL_OPS_ONEDNN_DNNL_SHIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ACCEL_DN_MAX_RANK 12
#define ACCEL_DN_MAX_IN   40
#define ACCEL_DN_MAX_POST 8

struct accel_dn; /* engine and stream */

/* Sizes, type and place of every element of a tensor; an opaque copy of the library's struct. */
struct accel_dn_format {
    _Alignas(16) unsigned char at[704];
};

/* What elements are stored as. */
enum accel_dn_type { ACCEL_DN_F32, ACCEL_DN_BF16, ACCEL_DN_S32, ACCEL_DN_S8, ACCEL_DN_U8 };

/* What becomes of the elements. */
enum accel_dn_algo {
    ACCEL_DN_RELU, /* alpha: slope below 0 */
    ACCEL_DN_CLIP, /* alpha … beta */
    ACCEL_DN_LOGISTIC,
    ACCEL_DN_TANH,
    ACCEL_DN_ELU, /* alpha */
    ACCEL_DN_GELU_ERF,
    ACCEL_DN_GELU_TANH,
    ACCEL_DN_HARDSWISH,
    ACCEL_DN_SWISH, /* x * logistic(alpha x) */
    ACCEL_DN_MISH,
    ACCEL_DN_SOFT_RELU, /* log(1 + e^x) */
    ACCEL_DN_LOG,
    ACCEL_DN_SQRT,
    ACCEL_DN_ABS,
    ACCEL_DN_LINEAR, /* alpha x + beta */
    ACCEL_DN_ADD,
    ACCEL_DN_SUB,
    ACCEL_DN_MUL,
    ACCEL_DN_DIV,
    ACCEL_DN_MAX,
    ACCEL_DN_MIN,
    ACCEL_DN_POOL_MAX,
    ACCEL_DN_POOL_AVERAGE, /* of the elements that are there */
    ACCEL_DN_POOL_AVERAGE_PADDED,
    ACCEL_DN_REDUCE_SUM,
    ACCEL_DN_REDUCE_MEAN,
    ACCEL_DN_SOFTMAX,
    ACCEL_DN_LOG_SOFTMAX,
    ACCEL_DN_N_ALGOS
};

enum accel_dn_kind {
    ACCEL_DN_CONV,   /* X, W [G] M C/G k…, maybe bias [M] */
    ACCEL_DN_DECONV, /* the same, W [G] M/G C/G k… */
    ACCEL_DN_MATMUL, /* A, B, maybe bias */
    ACCEL_DN_POOL,
    ACCEL_DN_ELTWISE,
    ACCEL_DN_BINARY, /* the second input may stretch */
    ACCEL_DN_REDUCE,
    ACCEL_DN_SOFTMAXES,  /* along `axis` */
    ACCEL_DN_LAYER_NORM, /* X, scale, shift along the last axis; alpha: epsilon */
    ACCEL_DN_CONCAT,     /* along `axis` */
    ACCEL_DN_REORDER,
};

/* A step on the result before it is stored; binary ones read an input. */
struct accel_dn_post {
    enum accel_dn_algo algo;
    float alpha, beta;
    int in; /* index in spec->in, or -1 */
};

/* One kernel. The inputs of the post-ops follow the kernel's own. Formats made by
 * accel_dn_format_any() are chosen by the library. */
struct accel_dn_spec {
    enum accel_dn_kind kind;
    enum accel_dn_algo algo;
    float alpha, beta;
    int axis;
    int n_axes; /* windows */
    int64_t taps[ACCEL_DN_MAX_RANK], stride[ACCEL_DN_MAX_RANK], dilation[ACCEL_DN_MAX_RANK];
    int64_t begin[ACCEL_DN_MAX_RANK], end[ACCEL_DN_MAX_RANK]; /* padding */
    const struct accel_dn_format *in[ACCEL_DN_MAX_IN], *out;
    int n_in, n_own; /* of them the kernel's own */
    struct accel_dn_post post[ACCEL_DN_MAX_POST];
    int n_post;
    /* Integers: result = (sum of (in0 - zero_in) * in1 + in2) * scale + zero_out. */
    const float *scale; /* [n_scale] for all, or one along axis scale_axis of the result; NULL: 1 */
    int64_t n_scale;
    int scale_axis;
    int32_t zero_in, zero_out;
    int zero_at;   /* index in `in` of a zero point that is an input, int32 [1]; 0: none */
    int nth;       /* the library's implementations from this one on, best first */
    bool winograd; /* CONV: by Winograd's algorithm, which rounds more coarsely */
};

/* *out NULL, and no error, when the library is not there. */
enum accel_err accel_dn_open(struct accel_dn **out) ACCEL_CHECKED;
void accel_dn_close(struct accel_dn *dn);
const char *accel_dn_version(void); /* "2.6.3"; once one is open */

/* The processor adds up products of bytes exactly (AVX512_VNNI). Without it the library's kernels
 * saturate in between, and some are wrong. Once one is open. */
bool accel_dn_multiplies_bytes(void);

/* Of float32. Row-major; with these strides (elements); as the library likes. ENOSUP: the rank. */
enum accel_err accel_dn_format_plain(struct accel_dn_format *f, int rank,
                                     const int64_t *dim) ACCEL_CHECKED;
enum accel_err accel_dn_format_strided(struct accel_dn_format *f, int rank, const int64_t *dim,
                                       const int64_t *stride) ACCEL_CHECKED;
enum accel_err accel_dn_format_any(struct accel_dn_format *f, int rank,
                                   const int64_t *dim) ACCEL_CHECKED;
/* As the library likes, elements of the type that `of` has. */
enum accel_err accel_dn_format_any_like(struct accel_dn_format *f, int rank, const int64_t *dim,
                                        const struct accel_dn_format *of) ACCEL_CHECKED;
/* The same format for elements of another type. */
void accel_dn_format_retype(struct accel_dn_format *f, enum accel_dn_type type);
bool accel_dn_format_equal(const struct accel_dn_format *a, const struct accel_dn_format *b);
size_t accel_dn_format_size(const struct accel_dn_format *f);
/* The row-major format of the same sizes and type. */
enum accel_err accel_dn_format_row_major(struct accel_dn_format *f,
                                         const struct accel_dn_format *of) ACCEL_CHECKED;

struct accel_dn_kernel;

/* Picks an implementation; no code is generated yet. ENOSUP: the library has none. */
enum accel_err accel_dn_kernel_new(struct accel_dn_kernel **out, struct accel_dn *dn,
                                   const struct accel_dn_spec *spec) ACCEL_CHECKED;
void accel_dn_kernel_free(struct accel_dn_kernel *k);
bool accel_dn_kernel_is_plain(const struct accel_dn_kernel *k); /* the library's own reference */
const struct accel_dn_format *accel_dn_kernel_in(const struct accel_dn_kernel *k, int i);
const struct accel_dn_format *accel_dn_kernel_out(const struct accel_dn_kernel *k);
size_t accel_dn_kernel_workspace(const struct accel_dn_kernel *k);

/* Generates the code: some milliseconds, less when the library has it from before. */
enum accel_err accel_dn_kernel_ready(struct accel_dn_kernel *k) ACCEL_CHECKED;
enum accel_err accel_dn_kernel_run(struct accel_dn_kernel *k, const void *const *in, void *out,
                                   void *workspace) ACCEL_CHECKED;

#endif
