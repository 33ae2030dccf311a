/* fast.c - which nodes run as fast kernels, alone or in chains, and how their results lie.
 *
 * Chosen once the shapes are settled, node by node in the order of the graph, so that the layouts
 * of a node's operands are known when its device is asked. A chain runs at the place of its first
 * node: what its other nodes read must be there by then. Values inside of a chain have no memory.
 *
 * A result may lie in the device's own blocks when all its readers are nodes of the main graph;
 * readers with plain kernels get it in row-major order, converted into room at their border. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/plan_int.h"

bool accel_array_has_nan(const struct accel_array *a)
{
    bool any = false;
    double piece[256];
    if (accel_dtype_find((int)a->dtype)->cls != ACCEL_CLASS_REAL)
        return false;
    const float *v = a->data;
    for (int64_t i = 0; a->dtype == ACCEL_F32 && i < a->n; i++)
        any |= isnan(v[i]);
    for (int64_t i = 0; a->dtype != ACCEL_F32 && i < a->n; i += 256) {
        size_t n = (size_t)(a->n - i < 256 ? a->n - i : 256);
        accel_dtype_to_f64(a->dtype, a->data, (size_t)i, n, piece);
        for (size_t k = 0; k < n; k++)
            any |= isnan(piece[k]);
    }
    return any;
}

void accel_steps_free(struct accel_plan *p)
{
    for (size_t i = 0; p->step && i < p->n_step; i++) {
        if (p->step[i].state)
            p->step[i].fast->release(p->step[i].state);
        accel_free(p->step[i].x);
    }
    accel_free(p->step);
    p->step = NULL;
    p->n_step = 0;
}

/* A node that a device may be asked about: one result, all sizes numbers. */
static bool is_candidate(const struct accel_node *n)
{
    if (!n->op || n->function || n->n_out < 1 || !n->out[0] || n->out[0]->tensor ||
        n->op->flags & (ACCEL_OP_BODIES | ACCEL_OP_RANDOM) || n->n_in > ACCEL_MAX_IO)
        return false;
    for (int i = 1; i < n->n_out; i++)
        if (n->out[i])
            return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && accel_shape_count(&n->in[i]->shape) < 0)
            return false;
    return accel_shape_count(&n->out[0]->shape) >= 0;
}

/* Somebody reads the value's elements as they lie. */
static bool is_read_plain(const struct accel_plan *p, const struct accel_value *v)
{
    if (v->is_output)
        return true;
    for (size_t i = 0; i < v->n_use; i++) {
        const struct accel_node *n = v->use[i].node;
        if (n->graph != p->main->graph || !n->op || n->function || n->op->flags & ACCEL_OP_BODIES)
            return true;
    }
    return false;
}

/* The one node that reads v, when its other operands are there before node `first` runs. */
static const struct accel_node *next_in_chain(const struct accel_plan *p,
                                              const struct accel_value *v, int first)
{
    if (v->n_use != 1 || is_read_plain(p, v) || accel_plan_shows(p, v))
        return NULL;
    const struct accel_node *n = v->use[0].node;
    if (!is_candidate(n) || (size_t)n->index >= p->n_run)
        return NULL;
    for (int i = 0; i < n->n_in; i++) {
        const struct accel_value *in = n->in[i] != v ? n->in[i] : NULL;
        const struct accel_node *from =
            in && !in->tensor && !p->main->cell[in->index].folded ? in->producer : NULL;
        if (from && from->index >= first)
            return NULL;
    }
    return n;
}

/* What is asked about a chain, with room for its lists. */
struct question {
    struct accel_ask ask;
    const struct accel_node *chain[ACCEL_MAX_CHAIN];
    const struct accel_value *operand[ACCEL_MAX_IO];
};

/* For ask.look: values of the main graph that were made before the chain begins. */
static enum accel_err look(void *ctx, const struct accel_value *v, const void **constant,
                           struct accel_layout *layout)
{
    struct accel_plan *p = ctx;
    bool seen = p->opt.watch && !v->tensor; /* a watcher sees what the nodes read */
    if (seen || v->graph != p->main->graph || accel_shape_count(&v->shape) < 0 ||
        p->main->cell[v->index].hidden)
        return accel_fail(ACCEL_ENOSUP, "'%.200s' is not there", v->name);
    if (v->tensor)
        ACCEL_TRY(accel_constant_load(p, v));
    *constant = v->tensor ? p->main->cell[v->index].a.data : NULL;
    *layout = p->main->cell[v->index].layout;
    return ACCEL_OK;
}

/* The operands of the first n nodes of q->chain; *fits false when there are too many. */
static enum accel_err set_chain(bool *fits, struct question *q, struct accel_plan *p, int n)
{
    int k = 0;
    *fits = false;
    for (int c = 0; c < n; c++)
        for (int i = 0; i < q->chain[c]->n_in; i++) {
            const struct accel_value *v = q->chain[c]->in[i];
            if (c > 0 && v == q->chain[c - 1]->out[0])
                continue;
            if (k == ACCEL_MAX_IO)
                return ACCEL_OK;
            if (v && v->tensor)
                ACCEL_TRY(accel_constant_load(p, v));
            const struct accel_cell *cell = v ? &p->main->cell[v->index] : NULL;
            q->operand[k] = v;
            q->ask.constant[k] = v && (v->tensor || cell->folded) ? cell->a.data : NULL;
            q->ask.in[k++] = cell ? cell->layout : (struct accel_layout){.kind = ACCEL_ROW_MAJOR};
        }
    q->ask.chain = q->chain;
    q->ask.n_chain = n;
    q->ask.operand = q->operand;
    q->ask.n_operand = k;
    q->ask.look = look;
    q->ask.look_ctx = p;
    q->ask.bf16 = p->opt.bf16;
    q->ask.tune = p->opt.tune;
    q->ask.row_major = is_read_plain(p, q->chain[n - 1]->out[0]);
    *fits = true;
    return ACCEL_OK;
}

/* Asks about ever shorter chains until the device takes all of one. */
static enum accel_err negotiate(struct accel_offer *o, struct question *q, struct accel_plan *p,
                                const struct accel_fast *fast)
{
    int n = 1;
    const struct accel_node *next;
    while (n < ACCEL_MAX_CHAIN &&
           (next = next_in_chain(p, q->chain[n - 1]->out[0], q->chain[0]->index)))
        q->chain[n++] = next;
    while (n > 0) {
        bool fits;
        *o = (struct accel_offer){0};
        ACCEL_TRY(set_chain(&fits, q, p, n));
        if (!fits) {
            n--;
            continue;
        }
        ACCEL_TRY(fast->offer(o, p->opt.device, &q->ask));
        if (o->takes == n)
            break;
        n = o->takes;
    }
    return ACCEL_OK;
}

static enum accel_err take(struct accel_plan *p, const struct question *q,
                           const struct accel_offer *o, const struct accel_fast *fast)
{
    struct accel_step *s = &p->step[q->chain[0]->index];
    s->x = accel_calloc((size_t)q->ask.n_operand, sizeof(struct accel_value *));
    if (!s->x)
        return accel_fail_nomem();
    memcpy(s->x, q->operand, (size_t)q->ask.n_operand * sizeof(struct accel_value *));
    s->n_x = q->ask.n_operand;
    for (int i = 0; i < s->n_x; i++) {
        if (o->instead[i]) {
            size_t *last = &p->main->cell[o->instead[i]->index].last_read;
            *last = (size_t)q->chain[0]->index > *last ? (size_t)q->chain[0]->index : *last;
            s->x[i] = o->instead[i];
        }
        if (o->unread[i])
            s->x[i] = NULL;
        p->looks = p->looks || o->instead[i] || o->unread[i];
    }
    s->y = q->chain[o->takes - 1]->out[0];
    ACCEL_TRY(fast->prepare(&s->state, p->opt.device, &q->ask));
    s->fast = fast;
    for (int i = 0; i < q->ask.n_operand; i++)
        if (q->ask.constant[i] && !fast->reads(s->state, i))
            accel_constant_pack(p, q->operand[i]);
    for (int i = 1; i < o->takes; i++) {
        p->step[q->chain[i]->index].inside = true;
        p->main->cell[q->chain[i - 1]->out[0]->index].hidden = true;
    }
    struct accel_cell *y = &p->main->cell[s->y->index];
    y->layout = o->out;
    y->made_at = (size_t)q->chain[0]->index;
    p->workspace_need = o->workspace > p->workspace_need ? o->workspace : p->workspace_need;
    p->n_fast += (size_t)o->takes;
    return ACCEL_OK;
}

static enum accel_err choose_node(struct accel_plan *p, struct question *q,
                                  const struct accel_node *n)
{
    struct accel_device *d = p->opt.device;
    struct accel_offer o;
    const struct accel_fast *fast = is_candidate(n) && !accel_node_is_folded(p, n)
                                        ? d->fast(d, n->op->domain, n->op->name)
                                        : NULL;
    if (!fast || p->step[n->index].inside)
        return ACCEL_OK;
    q->chain[0] = n;
    enum accel_err err = negotiate(&o, q, p, fast);
    if (!err && o.takes > 0)
        err = take(p, q, &o, fast);
    return err ? accel_fail_in(err, "node '%.200s' (%.100s)", n->label, n->op_type) : ACCEL_OK;
}

/* Values that somebody reads who runs: the node at i and its step are given. */
static void mark_reads(struct accel_plan *p, size_t i)
{
    const struct accel_node *n = p->main->graph->node[i];
    const struct accel_step *s = &p->step[i];
    for (int k = 0; k < s->n_x; k++)
        if (s->x[k])
            p->main->cell[s->x[k]->index].is_read = true;
    for (int k = 0; !s->fast && k < n->n_in; k++)
        if (n->in[k])
            p->main->cell[n->in[k]->index].is_read = true;
}

static bool is_needed(const struct accel_plan *p, const struct accel_value *v)
{
    return v->is_output || v->n_use == 0 || is_read_plain(p, v) || p->main->cell[v->index].is_read;
}

/* Steps read around nodes: those that nobody reads any more do not run. Backwards, so that what
 * only such nodes read goes too. */
static void drop_unread(struct accel_plan *p)
{
    const struct accel_graph *g = p->main->graph;
    for (size_t i = g->n_node; i-- > 0;) {
        const struct accel_node *n = g->node[i];
        struct accel_step *s = &p->step[i];
        bool needed = s->fast ? is_needed(p, s->y) : n->n_out == 0;
        for (int k = 0; !s->fast && k < n->n_out; k++)
            needed = needed || (n->out[k] && is_needed(p, n->out[k]));
        if (s->inside)
            continue;
        if (needed) {
            mark_reads(p, i);
            continue;
        }
        s->inside = true;
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k])
                p->main->cell[n->out[k]->index].hidden = true;
        if (s->fast)
            p->main->cell[s->y->index].hidden = true;
    }
}

enum accel_err accel_steps_choose(struct accel_plan *p)
{
    const struct accel_graph *g = p->main->graph;
    accel_steps_free(p);
    accel_constants_unpack(p);
    p->n_fast = 0;
    p->looks = false;
    p->workspace_need = 0;
    for (size_t i = 0; i < g->n_value; i++) {
        struct accel_cell *c = &p->main->cell[i];
        c->layout = (struct accel_layout){.kind = ACCEL_ROW_MAJOR};
        c->hidden = c->is_read = false;
        c->last_read = 0;
        c->made_at = g->value[i]->producer ? (size_t)g->value[i]->producer->index : 0;
    }
    if (!p->opt.device || p->has_nan)
        return accel_frame_load(p, p->main);
    struct question *q = accel_calloc(1, sizeof *q);
    p->step = accel_calloc(g->n_node, sizeof *p->step);
    p->n_step = p->step ? g->n_node : 0;
    enum accel_err err = q && p->step ? ACCEL_OK : accel_fail_nomem();
    for (size_t i = 0; !err && i < p->n_run; i++)
        err = choose_node(p, q, g->node[i]);
    accel_free(q);
    if (!err && p->looks)
        drop_unread(p);
    if (!err)
        err = accel_frame_load(p, p->main);
    if (err || p->workspace_need <= p->workspace_size)
        return err;
    accel_free(p->workspace);
    p->workspace_size = 0;
    p->workspace = accel_alloc_pages(p->workspace_need);
    if (!p->workspace)
        return accel_fail_nomem();
    p->workspace_size = p->workspace_need;
    return ACCEL_OK;
}

enum accel_err accel_step_run(struct accel_plan *p, const struct accel_step *s)
{
    struct accel_run run = {.state = s->state, .workspace = p->workspace};
    for (int i = 0; i < s->n_x; i++)
        run.x[i] = s->x[i] ? p->main->cell[s->x[i]->index].a.data : NULL;
    run.y = p->main->cell[s->y->index].a.data;
    return s->fast->forward(&run);
}

enum accel_err accel_cell_read(struct accel_array *out, struct accel_plan *p,
                               const struct accel_cell *c)
{
    *out = c->a;
    if (c->layout.kind == ACCEL_ROW_MAJOR || !c->a.data)
        return ACCEL_OK;
    ACCEL_TRY(accel_plan_room(&out->data, p, (size_t)c->a.n * sizeof(float)));
    return p->opt.device->to_row_major(p->opt.device, out->data, c->a.data, &c->layout);
}
