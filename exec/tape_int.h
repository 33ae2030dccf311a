/* tape_int.h - what the files of the tape share. Time runs from 0 (forward of the first node) over
 * n_node (the loss) to 2 n_node (backward of the first node). */
#ifndef ACCEL_EXEC_TAPE_INT_H
#define ACCEL_EXEC_TAPE_INT_H

#include "exec/tape.h"

/* A value, and its gradient. */
struct accel_tape_cell {
    struct accel_array a; /* as declared; data are float, double or int64_t. NULL: hidden */
    int64_t *dim;         /* a.dim */
    size_t dim_cap;
    struct accel_layout layout; /* of the value and of its gradient */
    void *own;                  /* memory of this cell alone: constants, inputs, statistics */
    void *grad;
    int64_t parameter; /* index in the flat list; -1: none */
    bool is_static;    /* depends on constants and sizes only: made when sizes are settled */
    bool is_statistic;
    bool is_head;
    bool needed; /* a head depends on it */
    bool active; /* depends on a parameter, by steps that have a derivative */
    bool wanted; /* … and a head depends on it by such steps: it has a gradient */
    bool hidden; /* inside of a chain: it has no memory */
    bool plain;  /* somebody needs it in row-major order */
    struct accel_tape_cell *view_of; /* lies where this one lies */
    struct accel_tape_cell *grad_of; /* its gradient lies where that one's lies */
    int n_given;                     /* contributions to the gradient, while steps are joined */
    size_t from, to;                 /* life of the value */
    size_t grad_from, grad_to;
    size_t offset, grad_offset; /* in the block */
};

/* A node, or a chain of them at the place of its last one. */
struct accel_tape_step {
    struct accel_node *node;
    const struct accel_op *op; /* whose kernels run: of float or of double */
    bool runs;                 /* forward: needed, not static, not inside of a chain */
    bool back;                 /* backward */
    bool is_view;              /* nothing to do in forward */
    /* fast */
    const struct accel_fast_train *fast; /* NULL: plain */
    void *state;
    struct accel_train_offer offer;
    struct accel_train_run run;      /* of forward */
    struct accel_train_run back_run; /* of backward */
    const struct accel_value **x;    /* [n_x] operands of the chain */
    int n_x;
    const struct accel_value *y; /* result of the chain */
    const struct accel_node *const *chain;
    uint64_t weights_first; /* operands: parameters to whose gradients it is the first to give */
    /* plain */
    struct accel_call call;
    struct accel_array *array; /* x, y, gx, gy of the call, behind each other */
    bool *first;               /* [n_in] this is the first contribution to the input's gradient */
    size_t saved, saved_offset;
    bool aliased; /* backward of a view has nothing to do either */
};

struct accel_tape {
    struct accel_model *model;
    struct accel_graph *graph;
    struct accel_tape_options opt;
    const struct accel_value **head; /* [opt.n_head] */
    struct accel_tape_cell *cell;    /* [graph->n_value] by value->index */
    struct accel_tape_step *step;    /* [graph->n_node] by node->index */
    struct accel_value **input;      /* [n_input] */
    int n_input;

    struct accel_flat flat;
    struct accel_value **statistic; /* [n_statistic] */
    size_t n_statistic;
    struct accel_arena arena; /* what steps hold; reset when sizes change */
    char *block;
    uint64_t block_size;
    void *room; /* workspace and scratch of the step at work */
    size_t room_size, room_need;
    void **stored; /* [n_parameter + n_statistic] elements that the model's tensors borrow */
    bool settled, adds;
    uint64_t count; /* of forwards */
};

static inline struct accel_tape_cell *accel_tape_cell(struct accel_tape *t,
                                                      const struct accel_value *v)
{
    return v && v->graph == t->graph ? &t->cell[v->index] : NULL;
}

static inline bool accel_tape_is_real(const struct accel_value *v)
{
    return accel_dtype_find((int)v->dtype)->cls == ACCEL_CLASS_REAL;
}

/* The type of the elements in memory: ACCEL_F32, ACCEL_F64 or ACCEL_I64. */
static inline enum accel_dtype accel_tape_wide(enum accel_dtype dtype)
{
    if (dtype == ACCEL_F64)
        return ACCEL_F64;
    return accel_dtype_find((int)dtype)->cls == ACCEL_CLASS_REAL ? ACCEL_F32 : ACCEL_I64;
}

static inline size_t accel_tape_width(enum accel_dtype dtype)
{
    return accel_tape_wide(dtype) == ACCEL_F32 ? 4 : 8;
}

/* Node n's input i takes part in gradients. */
bool accel_tape_slot_flows(const struct accel_node *n, int i);

/* tape_graph.c: what is needed, what is static, where gradients flow, which weights train. */
enum accel_err accel_tape_analyse(struct accel_tape *t) ACCEL_CHECKED;

/* tape_value.c: contents of constants; nodes that depend on constants and sizes only. */
enum accel_err accel_tape_load(struct accel_tape *t, const struct accel_value *v) ACCEL_CHECKED;
enum accel_err accel_tape_set_dims(struct accel_tape_cell *c, enum accel_dtype dtype, int rank,
                                   const int64_t *dim) ACCEL_CHECKED;
enum accel_err accel_tape_settle_values(struct accel_tape *t) ACCEL_CHECKED;
void accel_tape_widen(void *to, enum accel_dtype dtype, const void *from, int64_t n);

/* tape_step.c: fast kernels and chains, then what each step reads and writes. */
enum accel_err accel_tape_choose(struct accel_tape *t) ACCEL_CHECKED;
enum accel_err accel_tape_join(struct accel_tape *t) ACCEL_CHECKED;
void accel_tape_release(struct accel_tape *t);

/* tape_layout.c: lives of values and gradients, one block, the steps' pointers. */
enum accel_err accel_tape_lay_out(struct accel_tape *t) ACCEL_CHECKED;

/* tape_run.c */
enum accel_err accel_tape_run_forward(struct accel_tape *t,
                                      const struct accel_node **bad) ACCEL_CHECKED;
enum accel_err accel_tape_run_backward(struct accel_tape *t) ACCEL_CHECKED;

#endif
