/* plan_int.h - what planner and runner of this room share. */
#ifndef ACCEL_EXEC_PLAN_INT_H
#define ACCEL_EXEC_PLAN_INT_H

#include "exec/plan.h"

/* Where a value is while the model runs. */
struct accel_cell {
    struct accel_array a; /* data NULL: not made yet */
    int64_t *dim;         /* a.dim, on the heap */
    size_t dim_cap;
    void *own; /* memory of this cell alone, kept from run to run */
    bool lent; /* a.data belongs to the caller of this function */
    size_t own_size;
    bool fixed; /* its place is in the block, its dims hold for all runs with these inputs */
    struct accel_cell *view_of; /* lies where this one in the block does */
    size_t span;                /* while places are looked for */
    bool folded;                /* made once from constants; a constant now, in `own` */
    size_t n_folded;            /* constants: uses by nodes that ran once */
    size_t n_packed;            /* constants: uses whose kernels have copies of their own */
    struct accel_layout layout;
    bool is_read;     /* by a node or step that runs */
    size_t last_read; /* by a step that is no reader in the file: index of its node */
    bool hidden;      /* inside of a chain: nobody reads it */
    size_t made_at;   /* index of the node at whose place it is computed */
};

/* A node of the main graph as a fast kernel, with the nodes behind it that it covers. */
struct accel_step {
    const struct accel_fast *fast; /* NULL: the plain kernel */
    void *state;
    const struct accel_value **x; /* [n_x] */
    int n_x;
    const struct accel_value *y;
    bool inside; /* a step before covers it */
};

/* The values of one graph: the main one, a body, or a function's. Bodies keep theirs between turns.
 */
struct accel_frame {
    struct accel_graph *graph;
    const struct accel_node *call;   /* the function call, or NULL */
    struct accel_cell *cell;         /* [graph->n_value] by value->index */
    struct accel_frame *outer;       /* of the graph around it; NULL: main graph, function */
    struct accel_frame *inner;       /* first frame below this one … */
    struct accel_frame *next;        /* … and its sibling */
    const struct accel_node *holder; /* the node of `outer` that it belongs to */
};

/* Room for one converted operand, kept from node to node. */
struct accel_room {
    void *at;
    size_t size;
};

struct accel_plan {
    struct accel_model *model;
    struct accel_plan_options opt;
    struct accel_frame *main;
    struct accel_value **input; /* [n_input] */
    int n_input;
    bool *given;  /* [n_input] */
    bool settled; /* shapes and block fit the inputs */
    char *block;
    uint64_t block_size;
    struct accel_room *room; /* [n_room] what nodes at work need; nested ones stack theirs */
    size_t n_room, n_room_used, room_cap;
    int64_t steps;
    size_t n_run;            /* nodes of the main graph that run: the first ones */
    struct accel_step *step; /* [n_step] by node->index; NULL: no device */
    size_t n_step, n_fast;
    bool looks; /* steps read other values than their nodes do */
    void *workspace;
    size_t workspace_size, workspace_need;
    bool has_nan, nan_constant; /* an input or a constant holds one: plain kernels only */
    bool in_float;              /* float64 values went through kernels that compute in float */
};

enum accel_err accel_frame_new(struct accel_frame **out, struct accel_graph *g,
                               struct accel_frame *outer,
                               const struct accel_node *holder) ACCEL_CHECKED;
void accel_frame_free(struct accel_frame *f);

/* The cell of a value, looked up through the frames outwards. */
struct accel_cell *accel_frame_cell(struct accel_frame *f, const struct accel_value *v);

/* Dims and memory for a cell outside of the block. */
enum accel_err accel_cell_resize(struct accel_cell *c, enum accel_dtype dtype, int rank,
                                 const int64_t *dim) ACCEL_CHECKED;
enum accel_err accel_cell_copy(struct accel_cell *c, const struct accel_array *from) ACCEL_CHECKED;
/* The cell shows elements that lie elsewhere; they must stay there until it is set anew. */
enum accel_err accel_cell_borrow(struct accel_cell *c,
                                 const struct accel_array *from) ACCEL_CHECKED;

/* constant.c: reads the constants of a frame. */
enum accel_err accel_frame_load(struct accel_plan *p, struct accel_frame *f) ACCEL_CHECKED;
/* constant.c: reads a constant of the main graph, where it is not there. */
enum accel_err accel_constant_load(struct accel_plan *p, const struct accel_value *v) ACCEL_CHECKED;
/* constant.c: one more use of it is a kernel with a copy of its own; the last one frees it. */
void accel_constant_pack(struct accel_plan *p, const struct accel_value *v);
/* constant.c: no use is packed any longer. */
void accel_constants_unpack(struct accel_plan *p);
/* constant.c: frees those that nobody reads any more. */
void accel_constants_trim(struct accel_plan *p);

/* fold.c: runs the nodes that read constants only, those that did not run yet. */
enum accel_err accel_plan_fold(struct accel_plan *p) ACCEL_CHECKED;
bool accel_node_is_folded(const struct accel_plan *p, const struct accel_node *n);
/* fold.c: constants changed: all are to run again. */
void accel_plan_unfold(struct accel_plan *p);

/* fast.c: true when an element is NaN. */
bool accel_array_has_nan(const struct accel_array *a);

/* fast.c: asks the device about every node, once shapes are settled and before the layout. */
enum accel_err accel_steps_choose(struct accel_plan *p) ACCEL_CHECKED;
void accel_steps_free(struct accel_plan *p);
enum accel_err accel_step_run(struct accel_plan *p, const struct accel_step *s) ACCEL_CHECKED;
/* The cell's array in row-major order, in room of the node at work where it lies otherwise. */
enum accel_err accel_cell_read(struct accel_array *out, struct accel_plan *p,
                               const struct accel_cell *c) ACCEL_CHECKED;

/* run.c: room of `size` bytes until the node at work ends. */
enum accel_err accel_plan_room(void **out, struct accel_plan *p, size_t size) ACCEL_CHECKED;

/* Whether the watcher is to see v. */
static inline bool accel_plan_shows(const struct accel_plan *p, const struct accel_value *v)
{
    return p->opt.watch && (!p->opt.wants || p->opt.wants(p->opt.watch_ctx, v));
}

/* layout.c: gives the main graph's values of known size their places in the block. */
enum accel_err accel_plan_lay_out(struct accel_plan *p) ACCEL_CHECKED;

/* run.c: the frame of a graph that `holder` runs, made when it first runs. */
enum accel_err accel_frame_below(struct accel_frame **out, struct accel_plan *p,
                                 struct accel_frame *f, struct accel_graph *g,
                                 const struct accel_node *holder) ACCEL_CHECKED;

/* run.c: one node by its plain kernel. */
enum accel_err accel_node_run(struct accel_plan *p, struct accel_frame *f,
                              struct accel_node *n) ACCEL_CHECKED;

/* run.c: all nodes of a frame in order. */
enum accel_err accel_frame_run(struct accel_plan *p, struct accel_frame *f) ACCEL_CHECKED;

#endif
