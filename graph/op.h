/* op.h - what an operator is. ops/ fills these in, one file per family; every other room only reads
 * them through node->op and never names an operator. How to add one: docs/adding-an-operator.md. */
#ifndef ACCEL_GRAPH_OP_H
#define ACCEL_GRAPH_OP_H

#include "graph/graph.h"

/* ------------------------------------------------------------------------------------- attributes
 */

enum { ACCEL_REQUIRED = 1 };

/* What the operator's attributes may be, over all opsets. Unknown attributes and wrong kinds are
 * named errors. */
struct accel_attr_rule {
    const char *name; /* ends the list when NULL */
    enum accel_attr_kind kind;
    unsigned flags; /* ACCEL_REQUIRED */
};

/* ------------------------------------------------------------------------------------- kernels */

/* One operand of a kernel: dense, row-major. */
struct accel_array {
    enum accel_dtype
        dtype; /* stored type of the value; what `data` holds is said by the operator's flags */
    int rank;
    const int64_t *dim; /* [rank] */
    int64_t n;          /* product of dim */
    void *data;         /* real or int64_t elements; stored elements for ACCEL_OP_MOVES */
};

struct accel_call {
    const struct accel_node *node;
    const struct accel_array *x; /* [node->n_in]  data NULL when absent */
    struct accel_array *y;       /* [node->n_out] data NULL when not wanted */
    struct accel_array *gx;      /* backward adds to these; data NULL when not wanted */
    const struct accel_array *gy;
    void *scratch; /* op->scratch() bytes, garbage; op->scratch_back() in backward */
    bool training; /* forward of a training step: statistics of the batch, dropout; op->updates */
    void *saved;   /* op->saved() bytes from forward of a training step to its backward, or NULL */
    uint64_t seed; /* another one in each step and node: what RANDOM operators draw from */
    struct accel_bodies *bodies; /* for operators with graphs in their attributes, else NULL */
};

/* What an operator with bodies may ask of the runner. Arrays that come back are borrowed until the
 * same body runs again. */
struct accel_bodies {
    /* Runs a body with its inputs; *out gets one array per output of the body. */
    enum accel_err (*run)(struct accel_bodies *, struct accel_graph *body,
                          const struct accel_array *const *in, size_t n_in,
                          const struct accel_array **out);
    /* Output `slot` of the node becomes a copy of `from`. */
    enum accel_err (*set)(struct accel_bodies *, int slot, const struct accel_array *from);
    /* Output `slot` grows by one entry of a new first axis. */
    enum accel_err (*append)(struct accel_bodies *, int slot, const struct accel_array *from);
    /* What output `slot` has become so far; NULL when nothing was appended or nobody wants it. */
    enum accel_err (*collected)(struct accel_bodies *, int slot, const struct accel_array **all);
    /* A copy that lives until the node ends, one per `key`; a second one of the same key replaces
     * it. */
    enum accel_err (*keep)(struct accel_bodies *, size_t key, const struct accel_array *from,
                           const struct accel_array **kept);
    /* Counts a turn; EMODEL when the run has taken more than it may. */
    enum accel_err (*turn)(struct accel_bodies *);
};

/* Shapes were checked by infer; no allocation, no change to inputs. */
typedef enum accel_err (*accel_kernel)(const struct accel_call *c);

/* ------------------------------------------------------------------------------------- cost and
 * weights */

struct accel_cost {
    int64_t macs; /* multiply-adds for the shapes as inferred; -1: a shape is unknown */
};

/* The part a constant plays for a node: what a pruner may remove from it. */
struct accel_weight {
    int slot;         /* input of the node */
    int rank;         /* of the weight as this node sees it */
    int out_axis;     /* axis of output channels; -1: none (BatchNormalization: 0) */
    int in_axis;      /* axis along which inputs are summed, for n:m; -1: none */
    int in_axis2;     /* a second one that is not contiguous with it, or -1 */
    const char *type; /* NNI's name: "Conv2d", "Linear", "Embedding", "LSTM", "BatchNorm2d", … */
    bool norm; /* a normalisation's scale: selected by BatchNorm names only, never by "default" of
                  level */
    int bias_slot;             /* input that holds its bias, or -1 */
    int scale_slot, zero_slot; /* inputs with scale and zero point of a weight of integers, along
                                  its output axis or one for all; 0: none */
};

/* ------------------------------------------------------------------------------------- links
 * (structured pruning) */

/* Positions off + o*stride + c*rep + r (o < outer, r < rep) of `axis` of `slot`; or list[c]. Slots
 * count the inputs first, then the outputs. links.md, section 1. */
struct accel_side {
    int slot, axis;
    int64_t off, outer, stride, rep;
    const int64_t *list;
};
struct accel_links;  /* graph/links.h */
struct accel_zero;   /* graph/links.h */
struct accel_resize; /* graph/resize.h */

/* ------------------------------------------------------------------------------------- the
 * operator */

enum {
    /* Elements are only copied, whatever their type: the kernel gets stored elements (operand 0's
     * width for all data operands; index and shape operands come as int64_t). */
    ACCEL_OP_MOVES = 1,
    /* The output jumps where an input passes a constant (Equal, Less, Min, Clip, …): constant
     * propagation must not take three equal trials for a proof. */
    ACCEL_OP_COMPARES = 2,
    /* Random or stateful: never propagated. */
    ACCEL_OP_RANDOM = 4,
    /* Inputs are one list, min_in to max_in of the same kind (Concat, Sum, Max). */
    ACCEL_OP_VARIADIC = 8,
    /* Runs graphs of its attributes through call->bodies; gets and sets stored elements. */
    ACCEL_OP_BODIES = 16,
    /* The output holds sizes of input 0's axes (Shape, Size); input 0's elements are not read. */
    ACCEL_OP_MEASURES = 32,
    /* Output 0 is input 0's elements in the same order, under another shape at most. */
    ACCEL_OP_VIEWS = 64,
    /* No gradient flows through it: it rounds, compares, counts (Floor, Equal, Shape, ArgMax). Its
     * derivative is zero wherever there is one. */
    ACCEL_OP_STEPS = 128,
};

struct accel_op {
    const char *name, *domain;            /* ONNX op_type; "" or "com.microsoft", … */
    int since;                            /* first opset that has it */
    int min_in, max_in, min_out, max_out; /* INT_MAX: any number. Over all opsets */
    unsigned flags;
    const struct accel_attr_rule *attrs; /* NULL: none */

    /* Reads attributes (or inputs, where an opset keeps them there) into node->params, one form for
     * all opsets. NULL: nothing to read. Errors: EMODEL with the attribute and both values. */
    enum accel_err (*parse)(struct accel_node *, int opset);

    /* Sets dtype and shape of every output from those of the inputs. Unknown in, unknown out.
     * ESHAPE when two numbers contradict each other. */
    enum accel_err (*infer)(struct accel_node *);

    /* Which units of the operands stand or fall together; NULL: all axes are walls. What fills a
     * cut unit of an output; NULL: unknown. What a cut leaves to repair; NULL: nothing. links() and
     * zero() need ranks and params, and a failed allocation sticks in the links. */
    void (*links)(const struct accel_node *, struct accel_links *);
    void (*zero)(const struct accel_node *, struct accel_zero *);
    enum accel_err (*resize)(struct accel_node *, struct accel_resize *);

    /* NULL: no multiply-adds (element-wise and the like count none). */
    void (*cost)(const struct accel_node *, struct accel_cost *);

    /* Writes at most 4 weights that this node holds if its inputs are constants; returns how many.
     * NULL: none. Looks at ranks and params, not at constness. */
    int (*weights)(const struct accel_node *, struct accel_weight w[4]);

    /* For operators that only pass a constant on (Identity, Transpose, Reshape, Cast,
     * DequantizeLinear, …) from input 0 to output 0: the axis of the input that output axis `axis`
     * is, or -1. NULL: not such an operator. */
    int (*carry)(const struct accel_node *, int axis);

    /* Plain C: the definition. backward gets the operands that `saves` names (data of the others
     * NULL, their dims are there), gy of every output (data NULL: zero), and adds to the gx whose
     * data are there; gx, gy and operands of real numbers are real also where ACCEL_OP_MOVES, whose
     * index operands come as int64_t as in forward. NULL: an error on the way from a trainable
     * weight to the loss, unless ACCEL_OP_STEPS. */
    accel_kernel forward, backward;
    size_t (*scratch)(const struct accel_call *);      /* bytes that forward needs; NULL: none */
    size_t (*scratch_back)(const struct accel_call *); /* … that backward needs */
    /* Bytes that forward of a training step keeps for backward (statistics, positions); NULL: none.
     * All three see dims only. */
    size_t (*saved)(const struct accel_call *);
    /* Dims of an output whose size only the contents tell (NonZero): writes dim[rank of the
     * output]. NULL: infer knows all sizes once the inputs are known. */
    enum accel_err (*size)(const struct accel_call *, int slot, int64_t *dim);
    unsigned holes; /* input slots below min_in that may be left out: other domains have such; the
                       kernel sees data NULL */
    unsigned keep;  /* input slots the masker must never zero */
    unsigned sizes; /* input slots that hold sizes or positions, which resize() writes anew: a Shape
                       may flow into them and pins nothing */
    unsigned saves; /* what backward reads: inputs from bit 0 (bit 15: the 16th and all behind it),
                       outputs from bit 16 */
    unsigned updates;     /* inputs that forward of a training step writes: running statistics */
    unsigned no_gradient; /* inputs that never get one (indices, sizes, conditions; the others of
                             integer type get none either) */
    unsigned
        data_slots; /* MOVES: inputs that hold data, the others hold indices or sizes; 0: input 0 */
    const void *family;          /* what tells members of one file apart */
    const char *const *examples; /* "2x3x8x8 4x3x3x3 4 | pads=1,1,1,1": inputs | attributes;
                                    NULL-terminated: tests, bench */
};

/* True when the operator is known by name and arity only: no infer, everything behind it is a wall.
 */
static inline bool accel_op_is_wall(const struct accel_op *op)
{
    return !op || !op->infer;
}

#endif
