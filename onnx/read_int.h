/* read_int.h - what the reader's files share. */
#ifndef ACCEL_ONNX_READ_INT_H
#define ACCEL_ONNX_READ_INT_H

#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"
#include "onnx/onnx_int.h"

/* Field numbers of onnx.proto by which the reader tells parts apart. */
enum {
    READ_GRAPH_INITIALIZER = 5,
    READ_GRAPH_INPUT = 11,
    READ_GRAPH_OUTPUT = 12,
    READ_GRAPH_VALUE_INFO = 13,
    READ_SPARSE_VALUES = 1,
    READ_SPARSE_INDICES = 2,
    READ_TENSOR_FLOAT = 4,
    READ_TENSOR_INT32 = 5,
    READ_TENSOR_STRING = 6,
    READ_TENSOR_INT64 = 7,
    READ_TENSOR_RAW = 9,
    READ_TENSOR_DOUBLE = 10,
    READ_TENSOR_UINT64 = 11
};

/* One run of the reader. */
struct accel_read {
    struct accel_model *m;
    struct accel_onnx *x;
    struct accel_onnx_read_options opt;
    uint64_t dense;            /* bytes spent so far on dense forms of sparse tensors */
    struct accel_map function; /* "domain:name:overload" to struct accel_function */

    /* Where protobuf-c unpacks: one message at a time. */
    uint8_t *room;
    size_t used;
    struct accel_arena overflow;
    bool no_memory;
};

/* ---- read_message.c */
/* Unpacks the part's content without child parts. The message lives until the next call. */
enum accel_err accel_read_message(void *msg, struct accel_read *r, const struct accel_part *p,
                                  const ProtobufCMessageDescriptor *d) ACCEL_CHECKED;
void accel_read_message_clear(struct accel_read *r);
/* A copy in the model's arena ("" for NULL). */
enum accel_err accel_read_string(const char **out, struct accel_read *r,
                                 const char *s) ACCEL_CHECKED;

/* ---- read_tensor.c: errors do not name the tensor, the caller does (accel_read_tensor_label). */
/* A TENSOR part; with its name (arena) in t->name. */
enum accel_err accel_read_tensor(struct accel_tensor **out, struct accel_read *r,
                                 struct accel_part *p) ACCEL_CHECKED;
/* Sets dtype, dims, n and size; EMODEL when a dim is negative or the product too large. */
enum accel_err accel_read_dims(struct accel_tensor *t, struct accel_read *r, const int64_t *dim,
                               size_t n, int dtype) ACCEL_CHECKED;

/* ---- read_typed.c: the elements of a tensor's typed data field, which is given by `p`'s payloads.
 * A fixed-width field in one piece stays in the file; else they are decoded to memory. */
enum accel_err accel_read_typed(struct accel_tensor *t, struct accel_read *r,
                                const struct accel_part *p, int field) ACCEL_CHECKED;

/* ---- read_sparse.c: a SPARSE part, in dense form in memory. */
enum accel_err accel_read_sparse(struct accel_tensor **out, struct accel_read *r,
                                 struct accel_part *p) ACCEL_CHECKED;

/* ---- read_attr.c: all attributes of a node that is in its graph, subgraphs included. `msg` is the
 * node's message, whose inline attributes come first; those that are parts of `p` follow. */
enum accel_err accel_read_attrs(struct accel_node *n, struct accel_read *r, const Onnx__Node *msg,
                                struct accel_part *p) ACCEL_CHECKED;
/* Kinds, names and required ones against op->attrs. */
enum accel_err accel_read_check_attrs(const struct accel_node *n) ACCEL_CHECKED;

/* ---- read_constant.c: the tensor of a Constant node; NULL for strings and references. */
enum accel_err accel_read_constant(struct accel_tensor **out, struct accel_read *r,
                                   const struct accel_node *n, struct accel_part *p) ACCEL_CHECKED;

/* ---- read_node.c */
enum accel_err accel_read_node(struct accel_graph *g, struct accel_read *r,
                               struct accel_part *p) ACCEL_CHECKED;

/* ---- read_graph.c */
enum accel_err accel_read_graph(struct accel_graph *g, struct accel_read *r,
                                struct accel_part *p) ACCEL_CHECKED;
/* All NODE parts of p (a graph or a function), in order. */
enum accel_err accel_read_nodes(struct accel_graph *g, struct accel_read *r,
                                struct accel_part *p) ACCEL_CHECKED;
/* The VALUE parts of p in this field that describe values of g. */
enum accel_err accel_read_value_infos(struct accel_graph *g, struct accel_read *r,
                                      struct accel_part *p, int field) ACCEL_CHECKED;

/* ---- read_function.c: local functions, and that none calls itself. */
enum accel_err accel_read_functions(struct accel_read *r) ACCEL_CHECKED;
/* *out NULL when there is none. */
enum accel_err accel_read_find_function(struct accel_function **out, const struct accel_read *r,
                                        const char *domain, const char *name,
                                        const char *overload) ACCEL_CHECKED;
/* The OPSET parts of p. */
enum accel_err accel_read_opsets(struct accel_opset **out, size_t *n, struct accel_read *r,
                                 struct accel_part *p) ACCEL_CHECKED;

/* ---- read_label.c: label and module of every node, once all graphs are there. */
enum accel_err accel_read_labels(struct accel_model *m) ACCEL_CHECKED;

#endif
