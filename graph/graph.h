/* graph.h - the model in memory: values (named tensors) joined by nodes (operators).
 *
 * The C graph is a typed view on the ONNX file, not a translation: names, opsets and order are the
 * file's. What the view does not show (doc strings, unknown fields, …) stays with the reader behind
 * `origin` and is written back. */
#ifndef ACCEL_GRAPH_GRAPH_H
#define ACCEL_GRAPH_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/log.h"
#include "base/map.h"
#include "graph/dtype.h"
#include "graph/shape.h"
#include "graph/tensor.h"

struct accel_op;
struct accel_known;
struct accel_model;

struct accel_use {
    struct accel_node *node;
    int slot; /* index into node->in */
};

/* A named tensor of one graph. */
struct accel_value {
    const char *name;
    struct accel_graph *graph;   /* the graph that defines it */
    size_t index;                /* in graph->value */
    enum accel_dtype dtype;      /* UNDEFINED when unknown; inference fills it in */
    struct accel_shape shape;    /* what inference found; declared shape before inference */
    bool is_tensor;              /* false: sequence, map, optional, sparse tensor */
    struct accel_node *producer; /* NULL for inputs and initializers */
    int producer_slot;
    struct accel_use *use; /* [n_use] readers in all graphs, subgraphs included */
    size_t n_use, use_cap;
    struct accel_tensor *tensor; /* constants: initializer or Constant node; else NULL */
    bool is_input, is_output;    /* of its graph. An initializer may be an input too (IR 3) */
    struct accel_known *known;   /* small contents found by constant propagation, or NULL */
    enum accel_dtype
        declared_dtype; /* as the file says (input, output, value_info); UNDEFINED when silent */
    struct accel_shape declared; /* rank -1 when silent */
    const int64_t
        *given; /* [declared rank, or given_rank] sizes of a graph input for this run, or NULL */
    int given_rank;
    bool changed; /* what the file declares about it became wrong: it is written anew */
    bool dropped; /* nobody reads it since an edit */
    void *origin;
};

enum accel_attr_kind { /* numbers of AttributeProto.AttributeType */
                       ACCEL_ATTR_FLOAT = 1,
                       ACCEL_ATTR_INT = 2,
                       ACCEL_ATTR_STRING = 3,
                       ACCEL_ATTR_TENSOR = 4,
                       ACCEL_ATTR_GRAPH = 5,
                       ACCEL_ATTR_FLOATS = 6,
                       ACCEL_ATTR_INTS = 7,
                       ACCEL_ATTR_STRINGS = 8,
                       ACCEL_ATTR_TENSORS = 9,
                       ACCEL_ATTR_GRAPHS = 10,
                       ACCEL_ATTR_SPARSE_TENSOR = 11,
                       ACCEL_ATTR_SPARSE_TENSORS = 12,
                       ACCEL_ATTR_TYPE_PROTO = 13,
                       ACCEL_ATTR_TYPE_PROTOS = 14,
};

struct accel_bytes {
    const char *at; /* NUL-terminated behind `len`, may hold NULs */
    size_t len;
};

/* One attribute of a node. The field named by `kind` is set; lists have `n` items. */
struct accel_attr {
    const char *name;
    const char
        *ref; /* ref_attr_name: the value comes from the function call's attribute; or NULL */
    enum accel_attr_kind kind;
    int64_t i;
    float f;
    struct accel_bytes s;
    size_t n;
    const int64_t *ints;
    const float *floats;
    const struct accel_bytes *strings;
    struct accel_tensor **tensors; /* TENSOR: n = 1 */
    struct accel_graph **graphs;   /* GRAPH: n = 1 */
};

struct accel_node {
    const struct accel_op *op;       /* NULL: unknown to us, a wall */
    const struct accel_op *deferred; /* in a function: the operator whose attributes refer to the
                                        call's; op is set while inference knows them */
    const char *name;                /* as in the file, may be "" */
    const char *label; /* what people call it: the name, or OP_INDEX ("MatMul_1") when it has none;
                          in subgraphs OUTERLABEL/BODY/NAME */
    const char *op_type, *domain; /* domain "" for ai.onnx, as in the file otherwise */
    const char *module;           /* module path left by the exporter ("layer3.0.conv1"), or "" */
    struct accel_graph *graph;
    int index;                /* in graph->node */
    struct accel_value **in;  /* [n_in] NULL: optional input left out */
    struct accel_value **out; /* [n_out] NULL: optional output left out */
    int n_in, n_out;
    struct accel_attr *attr; /* [n_attr] */
    size_t n_attr;
    void *params;                          /* op->parse's own struct, arena of the model */
    const struct accel_function *function; /* a local function's call, or NULL */
    bool changed; /* inputs, outputs or attributes are not those of `origin` any more */
    bool dropped; /* nobody reads its outputs since an edit: it is not written */
    void *origin;
};

/* A graph: the main one, a subgraph of an attribute, or a function's body. Names resolve outwards.
 */
struct accel_graph {
    const char *name;
    struct accel_model *model;
    struct accel_graph *parent;     /* NULL for the main graph and functions */
    struct accel_node *parent_node; /* the If/Loop/Scan that holds it */
    const char *parent_attr;        /* "then_branch", … */
    struct accel_value **input, **output;
    size_t n_input, n_output;
    struct accel_node **node; /* in topological order, proven by the reader */
    size_t n_node, node_cap;
    struct accel_value **value; /* all values that this graph defines */
    size_t n_value, value_cap;
    struct accel_map by_name;              /* own values only */
    const struct accel_function *function; /* whose body this is, or NULL */
    int opset;                             /* of domain "" in force for its nodes */
    void *origin;
};

struct accel_opset {
    const char *domain;
    int64_t version;
};

struct accel_function {
    const char *domain, *name, *overload;
    struct accel_graph *body; /* inputs and outputs have no types */
    struct accel_opset *opset;
    size_t n_opset;
};

struct accel_property {
    const char *key, *value;
};

struct accel_model {
    const char *path;         /* as given; "" for one built in memory */
    struct accel_arena arena; /* owns graphs, nodes, values, names, attributes, small payloads */
    struct accel_symbols symbols;
    struct accel_graph *graph;
    struct accel_function **function;
    size_t n_function;
    struct accel_opset *opset;
    size_t n_opset;
    int64_t ir_version;
    const char *producer;        /* "name version", or "" */
    struct accel_property *meta; /* metadata_props as read */
    size_t n_meta;
    struct accel_tensor **tensor; /* every stored constant once: initializers and Constant nodes of
                                     all graphs and functions */
    size_t n_tensor, tensor_cap;
    struct accel_graph **all_graph; /* main graph, subgraphs and function bodies */
    size_t n_all_graph, all_graph_cap;
    struct accel_log log; /* warnings about the file */
    uint64_t size;        /* bytes of the file and its data files */
    void *origin;         /* onnx/'s; freed through free_origin */
    void (*free_origin)(void *);
};

/* An empty model with a main graph; the opset of domain "" is `opset`. */
enum accel_err accel_model_new(struct accel_model **out, int opset) ACCEL_CHECKED;
void accel_model_free(struct accel_model *m);

enum accel_err accel_graph_new(struct accel_graph **out, struct accel_model *m,
                               struct accel_graph *parent) ACCEL_CHECKED;

/* A new value of this name in g; EMODEL when g has one already. The name is copied. */
enum accel_err accel_value_new(struct accel_value **out, struct accel_graph *g,
                               const char *name) ACCEL_CHECKED;

/* The value a name means inside g, looking outwards; NULL when there is none. */
struct accel_value *accel_value_find(const struct accel_graph *g, const char *name);

/* Appends a node (op found by the caller); strings and arrays are copied to the arena, uses are
 * entered. */
enum accel_err accel_node_new(struct accel_node **out, struct accel_graph *g,
                              const struct accel_op *op, const char *op_type, const char *domain,
                              const char *name, struct accel_value *const *in, int n_in,
                              struct accel_value *const *out_values, int n_out) ACCEL_CHECKED;

enum accel_err accel_value_add_use(struct accel_value *v, struct accel_node *node,
                                   int slot) ACCEL_CHECKED;

/* Registers a stored constant with the model. */
enum accel_err accel_model_add_tensor(struct accel_model *m, struct accel_tensor *t) ACCEL_CHECKED;

/* The opset version of a domain in force for g's nodes ("ai.onnx" is ""); 0 when it is not
 * imported. */
int accel_graph_opset(const struct accel_graph *g, const char *domain);

/* Looks a symbol up and binds it to a size for all later inference; EARG with near names when no
 * such symbol. */
enum accel_err accel_model_bind_dim(struct accel_model *m, const char *name,
                                    int64_t n) ACCEL_CHECKED;

/* Sets the shape of a graph input for all later inference (--input-shape). dim[i] -1 leaves that
 * axis. EARG when the input is unknown (near names) or rank or a number contradicts the file. */
enum accel_err accel_model_bind_input(struct accel_model *m, const char *input, int rank,
                                      const int64_t *dim) ACCEL_CHECKED;

#endif
