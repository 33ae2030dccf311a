/* write_int.h - what the writer's files share. */
#ifndef ACCEL_ONNX_WRITE_INT_H
#define ACCEL_ONNX_WRITE_INT_H

#include "base/str.h"
#include "onnx/onnx.h"
#include "onnx/onnx_int.h"

/* Field numbers of onnx.proto that the writer sets itself. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_PRODUCER_VERSION = 3,
    MODEL_GRAPH = 7,
    MODEL_OPSET_IMPORT = 8,
    MODEL_METADATA_PROPS = 14,

    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_SPARSE_INITIALIZER = 15,

    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOMAIN = 7,

    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TYPE = 20,
    ATTR_REF_NAME = 21,

    TENSOR_DIMS = 1,
    TENSOR_DATA_TYPE = 2,
    TENSOR_FLOAT_DATA = 4,
    TENSOR_INT32_DATA = 5,
    TENSOR_STRING_DATA = 6,
    TENSOR_INT64_DATA = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW_DATA = 9,
    TENSOR_DOUBLE_DATA = 10,
    TENSOR_UINT64_DATA = 11,
    TENSOR_EXTERNAL_DATA = 13,
    TENSOR_DATA_LOCATION = 14,

    SPARSE_VALUES = 1,
    SPARSE_INDICES = 2,
    SPARSE_DIMS = 3,

    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
};

/* The fields of a tensor that hold its elements or say where they are. */
#define TENSOR_DATA_FIELDS                                                                         \
    (1u << TENSOR_FLOAT_DATA | 1u << TENSOR_INT32_DATA | 1u << TENSOR_STRING_DATA |                \
     1u << TENSOR_INT64_DATA | 1u << TENSOR_RAW_DATA | 1u << TENSOR_DOUBLE_DATA |                  \
     1u << TENSOR_UINT64_DATA | 1u << TENSOR_EXTERNAL_DATA | 1u << TENSOR_DATA_LOCATION)

/* One run of the writer. */
struct accel_write {
    struct accel_model *m;
    struct accel_onnx *x;
    const struct accel_onnx_write_options *opt;
    const char *path; /* OUT */
    bool dry;
    struct accel_arena arena;   /* parts added and bytes replaced by this run */
    struct accel_buffer buffer; /* for streaming tensors */
    struct accel_out *out;      /* where bytes go; NULL: they are counted */
    uint64_t n_out;             /* bytes gone */
    uint64_t copied;            /* position in the origin file up to which all is dealt with */
    uint64_t done, total;       /* payload bytes, for progress */
    size_t n_edited;            /* edited tensors that have a place in the output */

    bool external;              /* tensors go to a data file */
    struct accel_part **placed; /* [n_placed] those that do, in order; heap */
    size_t n_placed, placed_cap;
    uint64_t data_size;
    struct accel_out *data_out;
    const char *location;       /* the data file's name */
    bool data_is_there;         /* a file of this name and content exists already */
    const char *data_committed; /* path of ours when it is in place, else NULL */
    bool in_place;              /* OUT is the file that was read */
    struct accel_old_data *old; /* [n_old] existing data files that OUT may own; heap */
    size_t n_old, old_cap;
};

/* ---- write_bytes.c: the wire format. Builders stick at `failed`; check once. */
void accel_put_varint(struct accel_str *s, uint64_t v);
void accel_put_tag(struct accel_str *s, int field, int wire_type);
void accel_put_int(struct accel_str *s, int field, int64_t v);
void accel_put_float(struct accel_str *s, int field, float v);
void accel_put_bytes(struct accel_str *s, int field, const void *bytes, size_t n);
void accel_put_string(struct accel_str *s, int field, const char *text);
size_t accel_varint_size(uint64_t v);
/* Encodes at `to` (room for 10 bytes); returns the bytes used. */
size_t accel_varint_encode(uint8_t *to, uint64_t v);

/* One field of a message in memory. */
struct accel_field {
    int number, wire_type;
    const uint8_t *start, *body, *end; /* tag, content, end of the content */
};
/* Reads the field at *at and moves *at behind it; false at the end or where the bytes are no field.
 */
bool accel_field_next(struct accel_field *f, const uint8_t **at, const uint8_t *end);

/* Appends all fields of a message but those whose number is in `drop` (bit n: field n). */
void accel_put_others(struct accel_str *s, const uint8_t *bytes, size_t n, uint32_t drop);

/* ---- write_tree.c: changes to the tree, and its sizes */
/* A part behind the last one in `parent`, in the run's arena; NULL when memory is short. */
struct accel_part *accel_part_add(struct accel_write *w, struct accel_part *parent,
                                  enum accel_part_kind kind, int field);
/* The next part of the tree in file order, the root being the first; NULL behind the last. */
struct accel_part *accel_part_next(const struct accel_part *p);
/* Makes `s` (taken over and cleared) the content of p, in the run's arena. */
enum accel_err accel_part_set(struct accel_write *w, struct accel_part *p,
                              struct accel_str *s) ACCEL_CHECKED;
/* Undoes all changes of a run. */
void accel_tree_reset(struct accel_onnx *x);
/* Computes new_size and `dirty` of every part; the size of the whole model. */
uint64_t accel_tree_measure(struct accel_write *w);
/* Sends the model, changes applied, to w->out. */
enum accel_err accel_tree_emit(struct accel_write *w) ACCEL_CHECKED;
enum accel_err accel_emit_bytes(struct accel_write *w, const void *bytes, uint64_t n) ACCEL_CHECKED;

/* ---- write_graph.c: nodes, initializers and declarations that an edit changed, added or dropped
 */
enum accel_err accel_graph_plan(struct accel_write *w) ACCEL_CHECKED;

/* ---- write_payload.c: elements into payload fields */
/* Content size of a PAYLOAD part's stream; where it depends on the values the tensor is streamed
 * once. Sets new_size. */
enum accel_err accel_payload_measure(struct accel_write *w,
                                     struct accel_part *payload) ACCEL_CHECKED;
enum accel_err accel_payload_emit(struct accel_write *w,
                                  const struct accel_part *payload) ACCEL_CHECKED;
/* Elements of t (after its edit) whose bits are not all zero. */
enum accel_err accel_nonzero_count(uint64_t *out, struct accel_write *w,
                                   const struct accel_tensor *t) ACCEL_CHECKED;

/* ---- write_tensor.c, write_sparse.c: what becomes of each tensor's message */
enum accel_err accel_tensors_plan(struct accel_write *w) ACCEL_CHECKED;
/* The content of a part without payloads, as it is by now; free with accel_free. */
enum accel_err accel_part_load(uint8_t **out, size_t *n, struct accel_write *w,
                               const struct accel_part *p) ACCEL_CHECKED;
/* All fields of that content but those in `drop`, appended to s. */
enum accel_err accel_part_others(struct accel_str *s, struct accel_write *w,
                                 const struct accel_part *p, uint32_t drop) ACCEL_CHECKED;
/* A raw_data field behind the rest of `parent`, streamed from t. */
enum accel_err accel_payload_add(struct accel_write *w, struct accel_part *parent,
                                 struct accel_tensor *t, enum accel_part_form form) ACCEL_CHECKED;
/* A sparse tensor that was edited: values and indices anew. */
enum accel_err accel_sparse_rewrite(struct accel_write *w, struct accel_part *p) ACCEL_CHECKED;
/* An initializer as sparse_initializer, when that is smaller; *done tells. */
enum accel_err accel_sparse_convert(bool *done, struct accel_write *w,
                                    struct accel_part *p) ACCEL_CHECKED;

/* ---- write_external.c: the data file */
/* Finds the data files that the model at OUT owns. */
enum accel_err accel_old_data_find(struct accel_write *w) ACCEL_CHECKED;
/* Points the placed tensors' messages at w->location. */
enum accel_err accel_external_point(struct accel_write *w) ACCEL_CHECKED;
/* Streams the placed tensors into a temporary data file and settles its name. */
enum accel_err accel_external_write(struct accel_write *w) ACCEL_CHECKED;
/* Puts the data file in place, before the model. */
enum accel_err accel_external_commit(struct accel_write *w) ACCEL_CHECKED;
/* Takes it back after the model could not be put in place. */
void accel_external_undo(struct accel_write *w);
/* Removes data files that only the replaced model used, after the model is in place. */
void accel_old_data_remove(struct accel_write *w);
void accel_external_clear(struct accel_write *w);

/* "FOLDER/" of OUT with `name` behind it, in the run's arena; NULL when memory is short. */
char *accel_path_beside(struct accel_write *w, const char *name);

/* ---- write_build.c: models and nodes from the C graph */
/* The tree of a model built in memory: every part added, nothing in a file. */
enum accel_err accel_tree_build(struct accel_write *w) ACCEL_CHECKED;
/* A NodeProto from the C node; what the C graph does not show comes from `origin` (its message as
 * in the file, or NULL). Attributes with tensors or graphs inside are left to the part tree. */
void accel_put_node(struct accel_str *s, const struct accel_node *n, const uint8_t *origin,
                    size_t n_origin);
/* A ValueInfoProto from the value's dtype and shape. */
void accel_put_value(struct accel_str *s, const struct accel_value *v);
/* A tensor or a node that has no part yet, as a new part behind the last one of `parent`. */
enum accel_err accel_build_tensor(struct accel_write *w, struct accel_part *parent, int field,
                                  struct accel_tensor *t, const char *name) ACCEL_CHECKED;
enum accel_err accel_build_value(struct accel_write *w, struct accel_part *graph, int field,
                                 const struct accel_value *v) ACCEL_CHECKED;
enum accel_err accel_build_node(struct accel_part **out, struct accel_write *w,
                                struct accel_part *graph, const struct accel_node *n) ACCEL_CHECKED;

#endif
