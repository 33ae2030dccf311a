/* new_draft.h - building a network layer by layer, named as PyTorch's exporter
 * names things.
 *
 * Each function appends to the running value draft->at. `module` is the path of
 * the layer in the PyTorch module tree ("stage1.0.conv1"): weights become
 * MODULE.weight, nodes /stage1/stage1.0/conv1/Conv. "" is the network itself.
 */
#ifndef ACCEL_TOOLS_NEW_DRAFT_H
#define ACCEL_TOOLS_NEW_DRAFT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "graph/graph.h"

/* How the weight of a layer with this many inputs per output is drawn. */
enum accel_draft_init {
    ACCEL_INIT_TORCH,   /* uniform in ±1/sqrt(fan in), biases alike: what PyTorch's layers do */
    ACCEL_INIT_KAIMING, /* normal of variance 2 / fan in, biases 0. Source: He et al., "Delving
                           Deep into Rectifiers", ICCV 2015 */
    ACCEL_INIT_NORMAL,  /* normal of standard deviation draft->sd, biases 0 */
};

/* What a tensor is filled with. */
struct accel_fill {
    double value; /* everywhere, or: */
    double bound; /* > 0: uniform in ±bound, or: */
    double sd;    /* > 0: normal of this standard deviation, cut at ±6 of them */
};

/* In place of a size: the symbolic dimension "T", a sequence's length. */
#define ACCEL_DRAFT_T (-1)

struct accel_draft {
    struct accel_model *m;
    struct accel_rng rng;
    enum accel_dtype dtype; /* of weights and activations: F32 or F64 */
    bool bias;              /* Conv and Gemm get one (Conv before a batch norm never does) */
    int64_t features;       /* --features; 0: not given */
    enum accel_draft_init init;
    double sd;              /* of ACCEL_INIT_NORMAL */
    struct accel_value *at; /* what the next layer reads */
    const char *output;     /* name of the next layer's output; NULL: by the node's name */
};

/* A module's path, printed; lives as long as the model. NULL when memory ran out: the layer that is
 * given it says so. */
const char *accel_draft_name(struct accel_draft *draft, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Declares the graph input [N, dim[0], …] and makes it the running value. */
enum accel_err accel_draft_input(struct accel_draft *draft, const char *name, int rank,
                                 const int64_t *dim) ACCEL_CHECKED;

/* Makes the running value the graph output [N, dim]. */
enum accel_err accel_draft_finish(struct accel_draft *draft, int64_t dim) ACCEL_CHECKED;

/* The same for a network that reads int64 tokens [N, T]. */
enum accel_err accel_draft_tokens(struct accel_draft *draft, const char *name) ACCEL_CHECKED;

/* Makes the running value the graph output [N, dim[0], …]. */
enum accel_err accel_draft_end(struct accel_draft *draft, int rank,
                               const int64_t *dim) ACCEL_CHECKED;

/* A square convolution with padding size/2 (rounded down). */
struct accel_draft_conv {
    int64_t in, out, size, stride;
    bool bias;
    int64_t group; /* 0: 1 */
};
enum accel_err accel_draft_conv(struct accel_draft *draft, const char *module,
                                struct accel_draft_conv c) ACCEL_CHECKED;

/* 2x2 transposed convolution of stride 2: twice the height and width. */
enum accel_err accel_draft_up(struct accel_draft *draft, const char *module, int64_t in,
                              int64_t out) ACCEL_CHECKED;

/* Batch normalisation in inference form, as new: scale 1, shift 0, mean 0,
 * variance 1. */
enum accel_err accel_draft_norm(struct accel_draft *draft, const char *module,
                                int64_t channels) ACCEL_CHECKED;

/* A fully connected layer: Gemm with the weight [out, in] transposed. */
enum accel_err accel_draft_gemm(struct accel_draft *draft, const char *module, int64_t in,
                                int64_t out) ACCEL_CHECKED;

/* The same on any rank: MatMul with the weight [in, out], then Add. */
enum accel_err accel_draft_dense(struct accel_draft *draft, const char *module, int64_t in,
                                 int64_t out) ACCEL_CHECKED;

/* MaxPool or AveragePool with a square window. */
enum accel_err accel_draft_pool(struct accel_draft *draft, const char *module, const char *op_type,
                                int64_t size, int64_t stride, int64_t pad) ACCEL_CHECKED;

/* 2x2, stride 2. */
enum accel_err accel_draft_max_pool(struct accel_draft *draft) ACCEL_CHECKED;

/* An operator without attributes that reads the running value, and `other`
 * unless NULL. */
enum accel_err accel_draft_plain(struct accel_draft *draft, const char *module, const char *op_type,
                                 struct accel_value *other) ACCEL_CHECKED;

enum accel_err accel_draft_flatten(struct accel_draft *draft) ACCEL_CHECKED;

/* Reshape to [-1, columns]. */
enum accel_err accel_draft_reshape(struct accel_draft *draft, int64_t columns) ACCEL_CHECKED;

/* Reshape to dim[0..n), 0 and -1 as ONNX means them. */
enum accel_err accel_draft_shape(struct accel_draft *draft, const char *module, int n,
                                 const int64_t *dim) ACCEL_CHECKED;

/* Any node that reads in[0..n_in) and whose first output becomes the running value. */
enum accel_err accel_draft_node(struct accel_node **out, struct accel_draft *draft,
                                const char *module, const char *op_type,
                                struct accel_value *const *in, int n_in) ACCEL_CHECKED;

/* Constants to be a node's input. A weight is named MODULE.what; *data is the zeroed payload.
 * n ints are of rank 1, or a scalar when n is 0. */
enum accel_err accel_draft_weight(struct accel_value **out, struct accel_draft *draft,
                                  const char *module, const char *what, int rank,
                                  const int64_t *dim, struct accel_fill fill) ACCEL_CHECKED;
enum accel_err accel_draft_constant(struct accel_value **out, void **data,
                                    struct accel_draft *draft, const char *name,
                                    enum accel_dtype dtype, int rank,
                                    const int64_t *dim) ACCEL_CHECKED;
enum accel_err accel_draft_ints(struct accel_value **out, struct accel_draft *draft,
                                const char *module, int n, const int64_t *v) ACCEL_CHECKED;
enum accel_err accel_draft_float(struct accel_value **out, struct accel_draft *draft,
                                 const char *module, double v) ACCEL_CHECKED;

/* The larger networks (new_images.c, new_sequences.c). */
enum accel_err accel_draft_resnet18(struct accel_draft *draft) ACCEL_CHECKED;
enum accel_err accel_draft_resnet50(struct accel_draft *draft) ACCEL_CHECKED;
enum accel_err accel_draft_mobilenet_v2(struct accel_draft *draft) ACCEL_CHECKED;
enum accel_err accel_draft_densenet121(struct accel_draft *draft) ACCEL_CHECKED;
enum accel_err accel_draft_unet(struct accel_draft *draft) ACCEL_CHECKED;
enum accel_err accel_draft_encoder(struct accel_draft *draft) ACCEL_CHECKED;
enum accel_err accel_draft_gpt(struct accel_draft *draft) ACCEL_CHECKED;

/* A network that accel-new knows. */
struct accel_network {
    const char *name, *summary;
    enum accel_err (*build)(struct accel_draft *) ACCEL_CHECKED;
};
extern const struct accel_network accel_network_table[]; /* ended by a NULL name */

/* The network with fresh weights. draft: dtype, bias, features and rng are set
 * by the caller; m is the result, freed on failure. */
enum accel_err accel_network_build(struct accel_draft *draft, const struct accel_network *w,
                                   uint64_t seed) ACCEL_CHECKED;

#endif
