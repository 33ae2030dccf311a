/* dn_job.h - one chain of nodes as one kernel of oneDNN: what a describe function fills in, and
 * what runs. */
#ifndef ACCEL_OPS_ONEDNN_DN_JOB_H
#define ACCEL_OPS_ONEDNN_DN_JOB_H

#include "device/device.h"
#include "graph/op.h"
#include "ops/onednn/dnnl_shim.h"

/* An input of the kernel. `have` is how the operand lies; `want` how the kernel sees it: over the
 * same row-major elements, with its own rank and strides, or any format. */
struct accel_dn_arg {
    int operand;                  /* of the ask; -1: `own` */
    struct accel_dn_format have;  /* … which may be the device's blocks */
    struct accel_dn_format plain; /* row-major elements as the kernel sees them */
    struct accel_dn_format want;  /* given to the library, then what it chose */
    void *own;                    /* contents made by describe, or reordered constants */
    const void *constant;         /* contents of an operand that never changes, while planned */
    bool blocks;                  /* `have` are blocks */
    struct accel_dn_kernel *flat; /* have -> row-major when `plain` is another view, or NULL */
    struct accel_dn_kernel *move; /* to `want`; NULL: lies so already */
    size_t flat_at, move_at;      /* in the workspace */
    bool packed;                  /* `own` lies as `want` */
    bool like_out;                /* a post-op's tensor: must lie as the result does */
};

struct accel_dn_job {
    struct accel_dn *dn;
    const struct accel_ask *ask; /* while it is planned */
    int takes;                   /* what describe covered; at most `limit` */
    int limit;
    struct accel_dn_spec spec;
    struct accel_dn_arg *arg; /* [n_arg] spec.n_in of them are in use */
    int n_arg;
    struct accel_dn_format out;
    int rank; /* of `out` as the post-ops see it */
    int64_t dim[ACCEL_DN_MAX_RANK];
    bool viewed; /* `out` is another view of the result: row-major only */
    struct accel_dn_kernel *kernel;
    size_t workspace, scratch_at; /* scratch: the last part of it */
    int nth;                      /* for the spec: another of the library's kernels */
    bool winograd, is_ready;
    bool bf16;     /* products read bfloat16 */
    bool integers; /* describe knows operands that are no floats */
    bool int8;     /* products of dequantised operands read integers */
    const struct accel_value *instead[ACCEL_MAX_IO]; /* as in the offer */
    bool unread[ACCEL_MAX_IO];
    float *scale; /* [spec.n_scale] own */
};

/* Fills spec, arguments and out from ask->chain[0]; ENOSUP: not a form that this kernel knows. */
typedef enum accel_err (*accel_dn_describe)(struct accel_dn_job *j);

/* ---- for describe functions. ENOSUP all through when something does not fit. */

/* Sizes of a value, a scalar as [1]; ENOSUP unless it is float32 with up to 12 axes and elements.
 */
enum accel_err accel_dn_dims(int *rank, int64_t dim[ACCEL_DN_MAX_RANK],
                             const struct accel_value *v) ACCEL_CHECKED;

/* Adds operand `i` as the next input, seen with its own sizes: in the format it has, or any when
 * `any`. */
enum accel_err accel_dn_add(struct accel_dn_job *j, int i, bool any) ACCEL_CHECKED;
/* … seen with other sizes and strides (NULL: row-major) over its elements in row-major order. */
enum accel_err accel_dn_add_view(struct accel_dn_job *j, int i, int rank, const int64_t *dim,
                                 const int64_t *stride, bool any) ACCEL_CHECKED;
/* … contents of our own, row-major; the job takes them over, also on failure. */
enum accel_err accel_dn_add_own(struct accel_dn_job *j, void *own, enum accel_dn_type type,
                                int rank, const int64_t *dim) ACCEL_CHECKED;
/* How the elements of a value are stored; ENOSUP: in a way the library does not know. */
enum accel_err accel_dn_type_of(enum accel_dn_type *type,
                                const struct accel_value *v) ACCEL_CHECKED;
/* Sizes of a value of such a type, as accel_dn_dims(). */
enum accel_err accel_dn_sizes(int *rank, int64_t dim[ACCEL_DN_MAX_RANK],
                              const struct accel_value *v) ACCEL_CHECKED;
/* The first two inputs are converted to bfloat16 where that is asked for. */
void accel_dn_narrow(struct accel_dn_job *j);
/* The result, of the sizes of node `at` of the chain's output; or seen as `dim` (row-major). */
enum accel_err accel_dn_set_out(struct accel_dn_job *j, const struct accel_value *v,
                                bool any) ACCEL_CHECKED;
enum accel_err accel_dn_set_out_view(struct accel_dn_job *j, int rank,
                                     const int64_t *dim) ACCEL_CHECKED;

/* The contents of constant operand i as n floats; ENOSUP when it is none or of another length. */
enum accel_err accel_dn_constant(const float **out, const struct accel_dn_job *j, int i,
                                 int64_t n) ACCEL_CHECKED;

/* The first operand that belongs to node `at` of the chain beyond those of the nodes before. */
int accel_dn_first_operand(const struct accel_dn_job *j, int at);

/* chain.c: the nodes behind the first as post-ops, as many as fit within `limit`; sets takes. The
 * kernel's own inputs are complete. */
enum accel_err accel_dn_chain(struct accel_dn_job *j, int from) ACCEL_CHECKED;
/* The element-wise function of a node with one data input, as one or two post-ops; false: none. */
bool accel_dn_function(struct accel_dn_post post[2], int *n_post, const struct accel_dn_job *j,
                       int at);

/* ---- describe functions, one file per family */
enum accel_err accel_dn_conv(struct accel_dn_job *j);
enum accel_err accel_dn_conv_integer(struct accel_dn_job *j); /* QLinearConv, ConvInteger */
enum accel_err accel_dn_matmul_integer(struct accel_dn_job *j);
enum accel_err accel_dn_quantize(struct accel_dn_job *j); /* and DequantizeLinear */
/* For the describe functions of Conv, MatMul and Gemm: the same of operands that DequantizeLinear
 * made, up to a QuantizeLinear behind them. */
enum accel_err accel_dn_conv_of_dequantized(struct accel_dn_job *j);
enum accel_err accel_dn_product_of_dequantized(struct accel_dn_job *j);
/* fast_conv.c: window and view of the weights of a convolution, whatever type they have. */
struct accel_dn_conv_shape {
    int w_rank;                                              /* with an axis for groups */
    int64_t w[ACCEL_DN_MAX_RANK], w_step[ACCEL_DN_MAX_RANK]; /* sizes and strides */
    int64_t M, per;                                          /* output channels, weights of one */
};
enum accel_err accel_dn_conv_window(struct accel_dn_conv_shape *s, struct accel_dn_job *j,
                                    const struct accel_value *x,
                                    const struct accel_value *w) ACCEL_CHECKED;
enum accel_err accel_dn_conv_transpose(struct accel_dn_job *j);
enum accel_err accel_dn_matmul(struct accel_dn_job *j);
enum accel_err accel_dn_gemm(struct accel_dn_job *j);
enum accel_err accel_dn_pool(struct accel_dn_job *j);
enum accel_err accel_dn_global_pool(struct accel_dn_job *j);
enum accel_err accel_dn_unary(struct accel_dn_job *j);
enum accel_err accel_dn_binary(struct accel_dn_job *j);
enum accel_err accel_dn_batch_norm(struct accel_dn_job *j);
enum accel_err accel_dn_layer_norm(struct accel_dn_job *j);
enum accel_err accel_dn_softmax(struct accel_dn_job *j);
enum accel_err accel_dn_reduce(struct accel_dn_job *j);
enum accel_err accel_dn_concat(struct accel_dn_job *j);
enum accel_err accel_dn_transpose(struct accel_dn_job *j);

/* ---- the life of a job. */
enum accel_err accel_dn_job_new(struct accel_dn_job **out, struct accel_dn *dn,
                                const struct accel_ask *ask) ACCEL_CHECKED;
void accel_dn_job_free(struct accel_dn_job *j);
/* Describes with as many nodes as the library has one kernel for; takes 0: none. */
enum accel_err accel_dn_job_plan(struct accel_dn_job *j, accel_dn_describe describe) ACCEL_CHECKED;
/* Generates code, reorders constants; the ask is not needed afterwards. */
enum accel_err accel_dn_job_ready(struct accel_dn_job *j) ACCEL_CHECKED;
/* tune.c: for a job that was planned: tries other kernels that cover the same nodes, puts the
 * fastest one in its place. */
enum accel_err accel_dn_job_tune(struct accel_dn_job **job,
                                 accel_dn_describe describe) ACCEL_CHECKED;
/* False: the operand was a constant that is packed, or that is in the kernel's numbers. */
bool accel_dn_job_reads(const struct accel_dn_job *j, int operand);
enum accel_err accel_dn_job_run(struct accel_dn_job *j, const struct accel_run *run) ACCEL_CHECKED;

/* tune.c: EDEVICE when a product of bfloat16 takes longer here than one of float32. */
enum accel_err accel_dn_check_bf16(struct accel_dn *dn) ACCEL_CHECKED;

#endif
