/* onnx_int.h - what reader and writer of this room share: the file as a tree of parts.
 *
 * The scan finds the messages that the C graph or an edit may care about (graphs, nodes, attributes
 * with tensors or graphs inside, tensors, value infos, functions, metadata) and the payloads in
 * them. Everything between two parts is copied from the file as it is; so is a part that is clean.
 * That is why nothing is lost, unknown fields and order included. */
#ifndef ACCEL_ONNX_ONNX_INT_H
#define ACCEL_ONNX_ONNX_INT_H

#include "base/file.h"
#include "graph/graph.h"

enum accel_part_kind {
    ACCEL_PART_MODEL,
    ACCEL_PART_OPSET,
    ACCEL_PART_META,
    ACCEL_PART_FUNCTION,
    ACCEL_PART_GRAPH,
    ACCEL_PART_NODE,
    ACCEL_PART_ATTR,
    ACCEL_PART_TENSOR,
    ACCEL_PART_SPARSE,
    ACCEL_PART_VALUE,
    ACCEL_PART_PAYLOAD, /* a raw_data or typed-data field of a tensor, or a run of them; never empty
                         */
    ACCEL_PART_OTHER    /* only copied: training_info, long fields that nobody reads */
};

/* How a PAYLOAD is made from its tensor. */
enum accel_part_form {
    ACCEL_FORM_STORED,  /* the stored elements */
    ACCEL_FORM_VARINT,  /* one varint per element (int32_data, int64_data, uint64_data) */
    ACCEL_FORM_NONZERO, /* the elements that are not zero */
    ACCEL_FORM_INDEX    /* their indices, int64 */
};

/* A field of the file: tag and length at [start, body), content at [body, end). The model: start =
 * body = 0. */
struct accel_part {
    enum accel_part_kind kind;
    int field; /* number in the parent message */
    uint64_t start, body, end;
    struct accel_part *parent, *child, *last, *next; /* children by ascending offset */
    bool run; /* PAYLOAD: several fields of one number behind each other, tags included: body =
                 start */
    uint64_t n_field; /* PAYLOAD: fields in the run */
    bool in_file;     /* false: added; start = body = end is where in the file it is inserted */

    /* Changes, made by the writer's preparation. */
    bool removed;
    bool keeps_children; /* with `replaced`: parts inside that are in the file stay */
    bool replaced; /* content (between tag/length and end) is `bytes`, or for PAYLOAD the stream of
                      `tensor` */
    const uint8_t *bytes;
    uint64_t n_bytes;
    struct accel_tensor *tensor; /* TENSOR, SPARSE, and ATTR of a Constant's value_float(s): the C
                                    tensor read from it; PAYLOAD replaced by its stream */
    struct accel_value *value;   /* VALUE: of inputs, outputs, value_info */
    struct accel_node *node;
    struct accel_graph *graph;
    enum accel_part_form form; /* the writer's own, like the next two */
    bool dirty;                /* it or something in it changes */
    uint64_t new_size;         /* content size after changes */
};

/* model->origin. */
struct accel_onnx {
    struct accel_file *file; /* the model file; NULL for a model built in memory */
    struct accel_part *root;
    struct accel_arena arena;      /* parts and replacement bytes */
    struct accel_data_file **data; /* external data files, opened once each */
    size_t n_data, data_cap;
    bool had_external;
    size_t n_part;
    struct accel_window *window; /* for reading `file` in small pieces; made by the scan */
};

struct accel_data_file {
    const char *location; /* as in the file, checked */
    struct accel_file *file;
};

/* wire.c: builds the tree (x->file is open). Proves that every length lies inside its parent, that
 * known fields have the wire type and known messages the form that onnx.proto gives them, that no
 * message is nested deeper than 100 (the model is 1) and no name holds a NUL; EMODEL with offset
 * otherwise. Payloads are skipped, never read. Linear. */
enum accel_err accel_wire_scan(struct accel_onnx *x) ACCEL_CHECKED;

/* Bytes of the model file through the window. */
enum accel_err accel_wire_read(struct accel_onnx *x, uint64_t offset, uint64_t size,
                               void *to) ACCEL_CHECKED;

/* The content of a part without its own PAYLOAD and OTHER children as one buffer, for protobuf-c;
 * free with accel_free. `skip_children`: leave out all child parts. */
enum accel_err accel_part_read(uint8_t **out, size_t *size, const struct accel_onnx *x,
                               const struct accel_part *p, bool skip_children) ACCEL_CHECKED;

/* Frees a reader's accel_onnx: model->free_origin. */
void accel_onnx_free(void *x);

/* external.c: checks the location (relative, below the model's folder, no "..", no symlinks, link
 * count 1), opens it once. EMODEL. */
enum accel_err accel_external_open(struct accel_file **out, struct accel_model *m,
                                   struct accel_onnx *x, const char *location,
                                   bool allow_linked) ACCEL_CHECKED;

#endif
