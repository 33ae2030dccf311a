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

struct accel_draft {
    struct accel_model *m;
    struct accel_rng rng;
    enum accel_dtype dtype; /* of weights and activations: F32 or F64 */
    bool bias;              /* Conv and Gemm get one (Conv before a batch norm never does) */
    int64_t features;       /* --features; 0: not given */
    struct accel_value *at; /* what the next layer reads */
    const char *output;     /* name of the next layer's output; NULL: by the node's name */
};

/* Declares the graph input [N, dim[0], …] and makes it the running value. */
enum accel_err accel_draft_input(struct accel_draft *draft, const char *name, int rank,
                                 const int64_t *dim) ACCEL_CHECKED;

/* Makes the running value the graph output [N, dim]. */
enum accel_err accel_draft_finish(struct accel_draft *draft, int64_t dim) ACCEL_CHECKED;

/* A square convolution with padding size/2 (rounded down), group 1. */
struct accel_draft_conv {
    int64_t in, out, size, stride;
    bool bias;
};
enum accel_err accel_draft_conv(struct accel_draft *draft, const char *module,
                                struct accel_draft_conv c) ACCEL_CHECKED;

/* Batch normalisation in inference form, as new: scale 1, shift 0, mean 0,
 * variance 1. */
enum accel_err accel_draft_norm(struct accel_draft *draft, const char *module,
                                int64_t channels) ACCEL_CHECKED;

/* A fully connected layer: Gemm with the weight [out, in] transposed. */
enum accel_err accel_draft_gemm(struct accel_draft *draft, const char *module, int64_t in,
                                int64_t out) ACCEL_CHECKED;

/* 2x2, stride 2. */
enum accel_err accel_draft_max_pool(struct accel_draft *draft) ACCEL_CHECKED;

/* An operator without attributes that reads the running value, and `other`
 * unless NULL. */
enum accel_err accel_draft_plain(struct accel_draft *draft, const char *module, const char *op_type,
                                 struct accel_value *other) ACCEL_CHECKED;

enum accel_err accel_draft_flatten(struct accel_draft *draft) ACCEL_CHECKED;

/* Reshape to [-1, columns]. */
enum accel_err accel_draft_reshape(struct accel_draft *draft, int64_t columns) ACCEL_CHECKED;

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
