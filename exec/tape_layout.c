/* tape_layout.c - lives of values, gradients and what kernels keep; one block for all of them; then
 * the steps' pointers, which hold until sizes change. */
#include "base/alloc.h"
#include "exec/span.h"
#include "exec/tape_int.h"

static size_t back_time(const struct accel_tape *t, const struct accel_tape_step *s)
{
    return 2 * t->graph->n_node - (size_t)s->node->index;
}

static struct accel_tape_cell *place_of(struct accel_tape_cell *c)
{
    return c->view_of ? c->view_of : c;
}

static void read_at(struct accel_tape_cell *c, size_t time)
{
    struct accel_tape_cell *p = place_of(c);
    p->to = time > p->to ? time : p->to;
}

static void make_at(struct accel_tape_cell *c, size_t time)
{
    c->from = time;
    read_at(c, time);
}

static bool saves_input(const struct accel_op *op, int i)
{
    return op->saves >> (i < 15 ? i : 15) & 1u;
}

static bool saves_output(const struct accel_op *op, int i)
{
    return i < 16 && op->saves >> (16 + i) & 1u;
}

/* Output k has memory although nobody may read it. */
static bool is_made(const struct accel_tape *t, const struct accel_tape_step *s, int k)
{
    const struct accel_value *v = s->node->out[k];
    if (!v)
        return false;
    return k < s->node->op->min_out || t->cell[v->index].needed ||
           (s->back && saves_output(s->node->op, k));
}

static void live_fast(struct accel_tape *t, struct accel_tape_step *s)
{
    size_t now = (size_t)s->node->index, back = back_time(t, s);
    struct accel_tape_cell *y = &t->cell[s->y->index];
    make_at(y, now);
    for (int i = 0; i < s->n_x; i++) {
        if (!s->x[i])
            continue;
        read_at(&t->cell[s->x[i]->index], now);
        if (s->back && s->offer.backward_reads >> i & 1u)
            read_at(&t->cell[s->x[i]->index], back);
    }
    if (s->back && s->offer.backward_reads & ACCEL_RESULT_BIT)
        read_at(y, back);
    s->saved = s->offer.saved;
}

static void live_plain(struct accel_tape *t, struct accel_tape_step *s)
{
    const struct accel_node *n = s->node;
    size_t now = (size_t)n->index, back = back_time(t, s);
    if (s->is_view) {
        struct accel_tape_cell *y = &t->cell[n->out[0]->index];
        y->view_of = place_of(&t->cell[n->in[0]->index]);
        read_at(y, now);
        return;
    }
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i]) {
            read_at(&t->cell[n->in[i]->index], now);
            if (s->back && saves_input(n->op, i))
                read_at(&t->cell[n->in[i]->index], back);
        }
    for (int k = 0; k < n->n_out; k++)
        if (is_made(t, s, k)) {
            make_at(&t->cell[n->out[k]->index], now);
            if (s->back && saves_output(n->op, k))
                read_at(&t->cell[n->out[k]->index], back);
        }
}

/* A gradient is there from its first contribution to its producer's backward half. */
static void live_gradient(struct accel_tape *t, struct accel_tape_cell *c, size_t time)
{
    struct accel_tape_cell *g = c->grad_of ? c->grad_of : c;
    (void)t;
    if (g->grad_to == 0 || time < g->grad_from)
        g->grad_from = time;
    g->grad_to = time > g->grad_to ? time : g->grad_to;
}

static void live_gradients(struct accel_tape *t, struct accel_tape_step *s)
{
    size_t back = back_time(t, s);
    const struct accel_node *n = s->node;
    int n_x = s->fast ? s->n_x : n->n_in;
    if (!s->back)
        return;
    for (int i = 0; i < n_x; i++) {
        const struct accel_value *v = s->fast ? s->x[i] : n->in[i];
        if (v && t->cell[v->index].wanted && t->cell[v->index].parameter < 0)
            live_gradient(t, &t->cell[v->index], back);
    }
    for (int k = 0; k < (s->fast ? 1 : n->n_out); k++) {
        const struct accel_value *v = s->fast ? s->y : n->out[k];
        if (v && t->cell[v->index].wanted)
            live_gradient(t, &t->cell[v->index], back);
    }
}

/* What the call of a plain step looks like to its operator: sizes, no data. */
static void describe(struct accel_tape *t, struct accel_tape_step *s)
{
    const struct accel_node *n = s->node;
    struct accel_array *x = s->array, *y = x + n->n_in, *gx = y + n->n_out, *gy = gx + n->n_in;
    bool moves = n->op->flags & ACCEL_OP_MOVES;
    for (int i = 0; i < n->n_in + n->n_out; i++) {
        const struct accel_value *v = i < n->n_in ? n->in[i] : n->out[i - n->n_in];
        struct accel_array a = v ? t->cell[v->index].a : (struct accel_array){0};
        if (v && moves)
            a.dtype = accel_tape_wide(a.dtype);
        x[i] = gx[i] = a;
        gx[i].data = NULL;
        if (i < n->n_in && v)
            gx[i].dtype = accel_tape_wide(a.dtype);
    }
    s->call = (struct accel_call){.node = n, .x = x, .y = y, .gx = gx, .gy = gy};
    s->call.training = !(t->opt.frozen_norms && n->op->updates);
}

static void need_room(struct accel_tape *t, size_t size)
{
    t->room_need = size > t->room_need ? size : t->room_need;
}

static void measure(struct accel_tape *t, struct accel_tape_step *s)
{
    if (s->fast) {
        need_room(t, s->offer.workspace);
        return;
    }
    describe(t, s);
    const struct accel_op *op = s->node->op;
    if (s->is_view)
        return;
    if (op->scratch)
        need_room(t, op->scratch(&s->call));
    if (s->back && op->scratch_back)
        need_room(t, op->scratch_back(&s->call));
    if (op->saved)
        s->saved = op->saved(&s->call);
}

static void find_lives(struct accel_tape *t)
{
    size_t end = 2 * t->graph->n_node + 1;
    for (size_t i = 0; i < t->graph->n_value; i++) {
        struct accel_tape_cell *c = &t->cell[i];
        c->view_of = NULL;
        c->from = c->to = c->grad_from = c->grad_to = 0;
    }
    for (size_t i = 0; i < t->graph->n_node; i++) {
        struct accel_tape_step *s = &t->step[i];
        if (!s->runs)
            continue;
        if (s->fast)
            live_fast(t, s);
        else
            live_plain(t, s);
        measure(t, s);
        live_gradients(t, s);
    }
    for (int i = 0; i < t->opt.n_head; i++) {
        struct accel_tape_cell *c = &t->cell[t->head[i]->index];
        read_at(c, end);
        live_gradient(t, c, t->graph->n_node);
    }
}

static enum accel_err add_span(struct accel_span *span, size_t *n, uint64_t size, size_t from,
                               size_t to, void *owner)
{
    if (size > INT64_MAX)
        return accel_fail(ACCEL_ENOMEM, "a value is too large");
    size = (size + ACCEL_SPAN_ALIGN - 1) / ACCEL_SPAN_ALIGN * ACCEL_SPAN_ALIGN + ACCEL_SPAN_ALIGN;
    span[(*n)++] = (struct accel_span){.size = size, .from = from, .to = to, .owner = owner};
    return ACCEL_OK;
}

static uint64_t size_of(const struct accel_tape_cell *c)
{
    return c->layout.kind == ACCEL_OPAQUE ? c->layout.size
                                          : (uint64_t)c->a.n * accel_tape_width(c->a.dtype);
}

static bool is_in_block(const struct accel_tape_cell *c, const struct accel_value *v)
{
    return !v->tensor && v->producer && !c->is_static && !c->hidden && !c->view_of && c->to > 0;
}

/* A head's gradient is there for the caller, also where no gradient flows. */
static bool has_gradient(const struct accel_tape_cell *c)
{
    return c->parameter < 0 && !c->hidden && !c->grad_of && c->grad_to > 0;
}

static enum accel_err collect(struct accel_span *span, size_t *n, struct accel_tape *t)
{
    for (size_t i = 0; i < t->graph->n_value; i++) {
        struct accel_tape_cell *c = &t->cell[i];
        if (is_in_block(c, t->graph->value[i]))
            ACCEL_TRY(add_span(span, n, size_of(c), c->from, c->to, &c->offset));
        if (has_gradient(c))
            ACCEL_TRY(add_span(span, n, size_of(c), c->grad_from, c->grad_to, &c->grad_offset));
    }
    for (size_t i = 0; i < t->graph->n_node; i++) {
        struct accel_tape_step *s = &t->step[i];
        if (s->runs && s->saved)
            ACCEL_TRY(
                add_span(span, n, s->saved, i, s->back ? back_time(t, s) : i, &s->saved_offset));
    }
    return ACCEL_OK;
}

static enum accel_err allocate(struct accel_tape *t, uint64_t size)
{
    if (size > t->block_size) {
        accel_free(t->block);
        t->block_size = 0;
        t->block = accel_alloc_pages(size);
        if (!t->block)
            return accel_fail(ACCEL_ENOMEM, "no memory for a training step, %llu bytes",
                              (unsigned long long)size);
        t->block_size = size;
    }
    if (t->room_need <= t->room_size)
        return ACCEL_OK;
    accel_free(t->room);
    t->room_size = 0;
    t->room = accel_alloc_pages(t->room_need);
    if (!t->room)
        return accel_fail_nomem();
    t->room_size = t->room_need;
    return ACCEL_OK;
}

static void point_cells(struct accel_tape *t)
{
    for (size_t i = 0; i < t->graph->n_value; i++) {
        struct accel_tape_cell *c = &t->cell[i];
        if (is_in_block(c, t->graph->value[i]))
            c->a.data = t->block + c->offset;
        if (has_gradient(c))
            c->grad = t->block + c->grad_offset;
    }
    for (size_t i = 0; i < t->graph->n_value; i++) {
        struct accel_tape_cell *c = &t->cell[i];
        if (c->view_of)
            c->a.data = c->view_of->a.data;
        if (c->grad_of && !c->hidden)
            c->grad = c->grad_of->grad;
    }
}

static void point_fast(struct accel_tape *t, struct accel_tape_step *s)
{
    void *saved = s->saved ? t->block + s->saved_offset : NULL;
    s->run = (struct accel_train_run){.state = s->state, .saved = saved, .workspace = t->room};
    uint64_t add = s->back_run.add;
    s->run.y = t->cell[s->y->index].a.data;
    s->back_run = s->run;
    s->back_run.add = add;
    s->back_run.gy = t->cell[s->y->index].grad;
    for (int i = 0; i < s->n_x; i++) {
        if (!s->x[i])
            continue;
        const struct accel_tape_cell *c = &t->cell[s->x[i]->index];
        s->run.x[i] = s->back_run.x[i] = c->a.data;
        if (s->back && c->wanted)
            s->back_run.gx[i] = c->grad;
    }
}

static void point_plain(struct accel_tape *t, struct accel_tape_step *s)
{
    const struct accel_node *n = s->node;
    struct accel_array *x = s->array, *y = x + n->n_in, *gx = y + n->n_out, *gy = gx + n->n_in;
    for (int i = 0; i < n->n_in; i++) {
        const struct accel_tape_cell *c = n->in[i] ? &t->cell[n->in[i]->index] : NULL;
        x[i].data = c ? c->a.data : NULL;
        gx[i].data = s->back && c && c->wanted && accel_tape_slot_flows(n, i) ? c->grad : NULL;
    }
    for (int k = 0; k < n->n_out; k++) {
        const struct accel_tape_cell *c = n->out[k] ? &t->cell[n->out[k]->index] : NULL;
        y[k].data = c && (s->is_view || is_made(t, s, k)) ? c->a.data : NULL;
        gy[k].data = s->back && c && c->wanted ? c->grad : NULL;
    }
    s->call.saved = s->saved ? t->block + s->saved_offset : NULL;
    s->call.scratch = t->room;
}

enum accel_err accel_tape_lay_out(struct accel_tape *t)
{
    size_t n = 0;
    uint64_t total = 0;
    t->room_need = 64;
    find_lives(t);
    struct accel_span *span = accel_calloc(2 * t->graph->n_value + t->graph->n_node, sizeof *span);
    enum accel_err err = span ? collect(span, &n, t) : accel_fail_nomem();
    if (!err)
        err = accel_spans_place(&total, span, n);
    for (size_t i = 0; !err && i < n; i++)
        *(size_t *)span[i].owner = (size_t)span[i].offset;
    accel_free(span);
    if (!err)
        err = allocate(t, total);
    if (err)
        return err;
    point_cells(t);
    for (size_t i = 0; i < t->graph->n_node; i++)
        if (t->step[i].runs) {
            if (t->step[i].fast)
                point_fast(t, &t->step[i]);
            else
                point_plain(t, &t->step[i]);
        }
    return ACCEL_OK;
}
