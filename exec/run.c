/* run.c - one node after the other.
 *
 * A node's operands are described as the kernel wants them (graph/op.h): as stored where the
 * operator only moves elements or the stored type is the computing one, else converted into room
 * that is kept from node to node. Where the plan does not know an output's size, the node is
 * inferred again with the contents at hand; where only the contents tell, the operator is asked. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/bodies.h"
#include "exec/plan_int.h"
#include "graph/constprop.h"
#include "graph/infer.h"

enum accel_err accel_plan_room(void **out, struct accel_plan *p, size_t size)
{
    if (!ACCEL_GROW(p->room, p->room_cap, p->n_room_used + 1))
        return accel_fail_nomem();
    while (p->n_room <= p->n_room_used)
        p->room[p->n_room++] = (struct accel_room){NULL, 0};
    struct accel_room *r = &p->room[p->n_room_used++];
    if (r->size < size || !r->at) {
        void *more = accel_alloc_pages(size + 64);
        if (!more)
            return accel_fail_nomem();
        accel_free(r->at);
        *r = (struct accel_room){more, size};
    }
    *out = r->at;
    return ACCEL_OK;
}

/* The type that kernels compute with: real (float) or int64_t. OTHER: neither. */
static enum accel_class class_of(enum accel_dtype dtype)
{
    return accel_dtype_find((int)dtype)->cls;
}

static bool is_computed_as_stored(enum accel_dtype dtype)
{
    return dtype == ACCEL_F32 || dtype == ACCEL_I64 || dtype == ACCEL_U64;
}

#define PIECE 512

/* Kernels compute with float: a float64 that does not fit ends the run rather than become infinite.
 */
static enum accel_err widen(void *to, const struct accel_array *a)
{
    double piece[PIECE];
    if (class_of(a->dtype) == ACCEL_CLASS_INT) {
        accel_dtype_to_i64(a->dtype, a->data, 0, (size_t)a->n, to);
        return ACCEL_OK;
    }
    for (int64_t i = 0; i < a->n; i += PIECE) {
        size_t n = (size_t)(a->n - i < PIECE ? a->n - i : PIECE);
        accel_dtype_to_f64(a->dtype, a->data, (size_t)i, n, piece);
        for (size_t k = 0; k < n; k++) {
            float v = ((float *)to)[(size_t)i + k] = (float)piece[k];
            if (isinf(v) && !isinf(piece[k]))
                return accel_fail(ACCEL_ENOSUP,
                                  "%g does not fit float32, which kernels compute with", piece[k]);
        }
    }
    return ACCEL_OK;
}

static void narrow(const struct accel_array *a, const void *from)
{
    double piece[PIECE];
    bool ints = class_of(a->dtype) == ACCEL_CLASS_INT;
    for (int64_t i = 0; i < a->n; i += PIECE) {
        size_t n = (size_t)(a->n - i < PIECE ? a->n - i : PIECE);
        for (size_t k = 0; k < n; k++)
            piece[k] = ints ? (double)((const int64_t *)from)[(size_t)i + k]
                            : (double)((const float *)from)[(size_t)i + k];
        accel_dtype_from_f64(a->dtype, piece, n, a->data, (size_t)i);
    }
}

/* Operators that move data read indices, sizes and conditions as int64_t. */
static bool is_converted(const struct accel_node *n, int slot, enum accel_dtype dtype)
{
    const struct accel_op *op = n->op;
    if (op->flags & ACCEL_OP_BODIES || is_computed_as_stored(dtype))
        return false;
    if (!(op->flags & ACCEL_OP_MOVES))
        return true;
    unsigned data = op->data_slots ? op->data_slots : 1u;
    return !(op->flags & ACCEL_OP_VARIADIC) && !(slot < 32 && data >> slot & 1u);
}

static enum accel_err describe_input(struct accel_array *x, struct accel_plan *p,
                                     struct accel_frame *f, const struct accel_node *n, int slot)
{
    const struct accel_value *v = n->in[slot];
    *x = (struct accel_array){0};
    if (!v)
        return ACCEL_OK;
    const struct accel_cell *c = accel_frame_cell(f, v);
    if (!c || !c->a.data)
        return accel_fail(ACCEL_ENOSUP, "input '%.200s' has no value", v->name);
    ACCEL_TRY(accel_cell_read(x, p, c));
    const struct accel_array stored = *x;
    if (!is_converted(n, slot, c->a.dtype))
        return ACCEL_OK;
    if (class_of(c->a.dtype) == ACCEL_CLASS_OTHER)
        return accel_fail(ACCEL_ENOSUP, "input '%.200s' is %s", v->name,
                          accel_dtype_find((int)c->a.dtype)->name);
    ACCEL_TRY(accel_plan_room(&x->data, p, (size_t)c->a.n * sizeof(int64_t)));
    p->in_float = p->in_float || c->a.dtype == ACCEL_F64;
    return widen(x->data, &stored);
}

/* Tells the node's infer function what its inputs are: sizes, types, and small contents. */
static enum accel_err show_input(struct accel_plan *p, struct accel_value *v,
                                 const struct accel_array *a)
{
    struct accel_known *k;
    void *at;
    struct accel_dim *dim;
    ACCEL_TRY(accel_plan_room(&at, p, (size_t)(a->rank + 1) * sizeof *dim));
    dim = at;
    for (int i = 0; i < a->rank; i++)
        dim[i] = accel_dim_of(a->dim[i]);
    v->shape = (struct accel_shape){a->rank, dim};
    v->dtype = a->dtype;
    v->known = NULL;
    enum accel_class cls = class_of(a->dtype);
    if (a->n > ACCEL_KNOWN_MAX || cls == ACCEL_CLASS_OTHER)
        return ACCEL_OK;
    ACCEL_TRY(accel_plan_room(&at, p, sizeof *k));
    k = at;
    k->n = a->n;
    k->real = cls == ACCEL_CLASS_REAL;
    ACCEL_TRY(accel_plan_room(&at, p, (size_t)a->n * sizeof(int64_t)));
    ACCEL_TRY(widen(at, a));
    for (int i = 0; i < ACCEL_N_PROBES; i++)
        k->probe[i] = at;
    v->known = k;
    return ACCEL_OK;
}

/* Sizes of an output that only contents tell. */
static enum accel_err ask_size(struct accel_cell *c, struct accel_plan *p,
                               const struct accel_call *call, int slot)
{
    const struct accel_node *n = call->node;
    const struct accel_value *v = n->out[slot];
    int64_t *dim;
    void *at;
    if (!n->op->size || v->shape.rank < 0)
        return accel_fail(ACCEL_ENOSUP, "the size of output '%.200s' is not known", v->name);
    ACCEL_TRY(accel_plan_room(&at, p, (size_t)(v->shape.rank + 1) * sizeof *dim));
    dim = at;
    for (int i = 0; i < v->shape.rank; i++)
        dim[i] = v->shape.dim[i].n;
    ACCEL_TRY(n->op->size(call, slot, dim));
    return accel_cell_resize(c, v->dtype, v->shape.rank, dim);
}

/* Infers the node with what is there and gives its outputs memory. */
static enum accel_err size_outputs(struct accel_plan *p, struct accel_frame *f,
                                   const struct accel_call *call)
{
    struct accel_node *n = f->graph->node[call->node->index];
    struct accel_symbols *s = &p->model->symbols;
    struct accel_arena_mark mark = accel_arena_mark(&s->inferred);
    uint64_t known_size = s->known_size;
    enum accel_err err = ACCEL_OK;
    for (int i = 0; !err && i < n->n_in; i++)
        if (n->in[i]) {
            struct accel_array a;
            err = accel_cell_read(&a, p, accel_frame_cell(f, n->in[i]));
            if (!err)
                err = show_input(p, n->in[i], &a);
        }
    if (!err)
        err = n->op->infer(n);
    for (int i = 0; !err && i < n->n_out; i++) {
        struct accel_value *v = n->out[i];
        if (!v)
            continue;
        struct accel_cell *c = &f->cell[v->index];
        int64_t count = accel_shape_count(&v->shape);
        if (count < 0) {
            err = ask_size(c, p, call, i);
            continue;
        }
        void *at;
        ACCEL_GOTO(err, accel_plan_room(&at, p, (size_t)(v->shape.rank + 1) * sizeof(int64_t)));
        for (int d = 0; d < v->shape.rank; d++)
            ((int64_t *)at)[d] = v->shape.dim[d].n;
        err = accel_cell_resize(c, v->dtype, v->shape.rank, at);
    }
done:
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]) {
            n->in[i]->known = NULL;
            n->in[i]->shape.rank = -1; /* its dims were in our room */
        }
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i])
            n->out[i]->shape.rank = -1;
    accel_arena_rewind(&s->inferred, mark);
    s->known_size = known_size;
    return err;
}

static bool all_fixed(const struct accel_frame *f, const struct accel_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] && !f->cell[n->out[i]->index].fixed)
            return false;
    return true;
}

static enum accel_err describe_outputs(struct accel_array *y, struct accel_plan *p,
                                       struct accel_frame *f, const struct accel_node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        y[i] = (struct accel_array){0};
        if (!n->out[i])
            continue;
        y[i] = f->cell[n->out[i]->index].a;
        if (!(n->op->flags & ACCEL_OP_MOVES) && !is_computed_as_stored(y[i].dtype)) {
            if (class_of(y[i].dtype) == ACCEL_CLASS_OTHER)
                return accel_fail(ACCEL_ENOSUP, "output '%.200s' is %s", n->out[i]->name,
                                  accel_dtype_find((int)y[i].dtype)->name);
            ACCEL_TRY(accel_plan_room(&y[i].data, p, (size_t)y[i].n * sizeof(int64_t)));
        }
    }
    return ACCEL_OK;
}

static enum accel_err take_scratch(struct accel_plan *p, struct accel_call *call)
{
    const struct accel_op *op = call->node->op;
    return op->scratch ? accel_plan_room(&call->scratch, p, op->scratch(call)) : ACCEL_OK;
}

/* An input below min_in that the operator can do without. */
static bool may_lack(const struct accel_op *op, int slot)
{
    return op->flags & ACCEL_OP_BODIES || (slot < 32 && op->holes >> slot & 1);
}

static enum accel_err run_kernel(struct accel_plan *p, struct accel_frame *f, struct accel_node *n)
{
    struct accel_array *x, *y;
    void *at;
    ACCEL_TRY(accel_plan_room(&at, p, (size_t)(n->n_in + 1) * sizeof *x));
    x = at;
    ACCEL_TRY(accel_plan_room(&at, p, (size_t)(n->n_out + 1) * sizeof *y));
    y = at;
    for (int i = 0; i < n->n_in; i++) {
        ACCEL_TRY(describe_input(&x[i], p, f, n, i));
        if (!n->in[i] && i < n->op->min_in && !may_lack(n->op, i))
            return accel_fail(ACCEL_ENOSUP, "input %d is left out", i);
    }
    struct accel_call call = {.node = n, .x = x, .y = y};
    if (n->op->flags & ACCEL_OP_BODIES) {
        ACCEL_TRY(take_scratch(p, &call));
        return accel_bodies_run(p, f, &call);
    }
    if (n->op->size)
        ACCEL_TRY(take_scratch(p, &call));
    if (!all_fixed(f, n))
        ACCEL_TRY(size_outputs(p, f, &call));
    ACCEL_TRY(describe_outputs(y, p, f, n));
    if (!n->op->size)
        ACCEL_TRY(take_scratch(p, &call));
    ACCEL_TRY(n->op->forward(&call));
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] && y[i].data != f->cell[n->out[i]->index].a.data)
            narrow(&f->cell[n->out[i]->index].a, y[i].data);
    return ACCEL_OK;
}

/* The frame of a body or a function's body below f, made when it first runs. */
enum accel_err accel_frame_below(struct accel_frame **out, struct accel_plan *p,
                                 struct accel_frame *f, struct accel_graph *g,
                                 const struct accel_node *holder)
{
    for (*out = f->inner; *out; *out = (*out)->next)
        if ((*out)->graph == g && (*out)->holder == holder)
            return ACCEL_OK;
    ACCEL_TRY(accel_frame_new(out, g, f, holder));
    return accel_frame_load(p, *out);
}

/* Arguments are borrowed: nobody writes into a value that was made. Results are, too, since the
 * body's frame is this call's own; but not where one is an argument handed through, which may end
 * before the result does. */
static enum accel_err run_call(struct accel_plan *p, struct accel_frame *f, struct accel_node *n)
{
    struct accel_frame *body;
    ACCEL_TRY(accel_frame_below(&body, p, f, n->function->body, n));
    ACCEL_TRY(accel_infer_enter(n));
    for (size_t i = 0; i < body->graph->n_input && i < (size_t)n->n_in; i++) {
        const struct accel_cell *c = n->in[i] ? accel_frame_cell(f, n->in[i]) : NULL;
        struct accel_cell *to = &body->cell[body->graph->input[i]->index];
        if (!c || !c->a.data)
            continue;
        ACCEL_TRY(accel_cell_borrow(to, &c->a));
        to->lent = true;
    }
    ACCEL_TRY(accel_frame_run(p, body));
    for (size_t i = 0; i < body->graph->n_output && i < (size_t)n->n_out; i++) {
        const struct accel_cell *c = accel_frame_cell(body, body->graph->output[i]);
        if (!n->out[i])
            continue;
        if (!c || !c->a.data)
            return accel_fail(ACCEL_ENOSUP, "output %zu of the function has no value", i);
        struct accel_cell *to = &f->cell[n->out[i]->index];
        ACCEL_TRY(c->lent ? accel_cell_copy(to, &c->a) : accel_cell_borrow(to, &c->a));
    }
    return ACCEL_OK;
}

/* A view lies where its input lies; out of the device's blocks it is one conversion. */
static enum accel_err run_view(bool *done, struct accel_plan *p, const struct accel_node *n)
{
    struct accel_cell *y = &p->main->cell[n->out[0]->index];
    *done = y->fixed && y->view_of;
    if (*done || !y->fixed || !n->in[0] || n->in[0]->graph != p->main->graph)
        return ACCEL_OK;
    const struct accel_cell *x = &p->main->cell[n->in[0]->index];
    if (x->layout.kind != ACCEL_OPAQUE || !x->a.data)
        return ACCEL_OK;
    *done = true;
    return p->opt.device->to_row_major(p->opt.device, y->a.data, x->a.data, &x->layout);
}

static enum accel_err run_node(struct accel_plan *p, struct accel_frame *f, struct accel_node *n)
{
    bool done = false;
    if (n->function)
        return run_call(p, f, n);
    if (!n->op)
        return accel_fail(ACCEL_ENOSUP, "an attribute has no value");
    if (f == p->main && n->op->flags & ACCEL_OP_VIEWS && n->out[0])
        ACCEL_TRY(run_view(&done, p, n));
    return done ? ACCEL_OK : run_kernel(p, f, n);
}

enum accel_err accel_node_run(struct accel_plan *p, struct accel_frame *f, struct accel_node *n)
{
    size_t used = p->n_room_used;
    enum accel_err err = run_node(p, f, n);
    p->n_room_used = used; /* also where it failed: the plan may run again */
    return err ? accel_fail_in(err, "node '%.200s' (%.100s)", n->label, n->op_type) : ACCEL_OK;
}

static enum accel_err show(struct accel_plan *p, const struct accel_value *v)
{
    struct accel_array a;
    if (!v || !accel_plan_shows(p, v))
        return ACCEL_OK;
    ACCEL_TRY(accel_cell_read(&a, p, &p->main->cell[v->index]));
    return p->opt.watch(p->opt.watch_ctx, v, &a);
}

/* Shows the watcher what a node of the main graph made, or the chain that begins with it. */
static enum accel_err show_outputs(struct accel_plan *p, const struct accel_node *n)
{
    const struct accel_step *step = p->step ? &p->step[n->index] : NULL;
    if (step && step->fast)
        return show(p, step->y);
    for (int o = 0; o < n->n_out; o++)
        ACCEL_TRY(show(p, n->out[o]));
    return ACCEL_OK;
}

enum accel_err accel_frame_run(struct accel_plan *p, struct accel_frame *f)
{
    struct accel_graph *g = f->graph;
    const struct accel_step *step = f == p->main ? p->step : NULL;
    size_t n_run = f == p->main ? p->n_run : g->n_node;
    for (size_t i = 0; i < n_run; i++) {
        struct accel_node *n = g->node[i];
        if (n->n_out == 1 && n->out[0] && n->out[0]->tensor)
            continue;
        if (step && step[i].inside)
            continue;
        size_t used = p->n_room_used;
        enum accel_err err = ACCEL_OK;
        if (step && step[i].fast)
            err = accel_step_run(p, &step[i]);
        else if (f != p->main || !accel_node_is_folded(p, n))
            err = run_node(p, f, n);
        p->n_room_used = used; /* also where it failed: the plan may run again */
        if (err)
            return accel_fail_in(err, "node '%.200s' (%.100s)", n->label, n->op_type);
        if (f == p->main)
            ACCEL_TRY(show_outputs(p, n));
        p->n_room_used = used;
    }
    return ACCEL_OK;
}
