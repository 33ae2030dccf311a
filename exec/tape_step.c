/* tape_step.c - which kernel runs each node, alone or in a chain, and how gradients come together.
 *
 * A chain runs at the place of its last node: all its operands are there by then, and nobody else
 * reads what is inside. Layouts are chosen in rounds: in the first, every value may lie as a device
 * likes; a value that a plain kernel, a view or a head touches must be row-major in the next. The
 * set only grows, so it ends; plain kernels then never convert.
 *
 * Gradients come together in the order of the backward half: the first contribution to a value
 * writes, later ones add. A plain kernel only adds: what it is the first to write is zeroed before.
 * Where the first contribution is gy itself (a view, or a kernel that may write over gy), gradient
 * and gy are one memory: nobody but this step reads gy. */
#include <string.h>

#include "base/alloc.h"
#include "exec/tape_int.h"

void accel_tape_release(struct accel_tape *t)
{
    for (size_t i = 0; t->step && i < t->graph->n_node; i++)
        if (t->step[i].state)
            t->step[i].fast->release(t->step[i].state);
    if (t->step)
        memset(t->step, 0, t->graph->n_node * sizeof *t->step);
    accel_arena_clear(&t->arena);
}

static bool is_done(const struct accel_tape *t, const struct accel_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k])
            return t->cell[n->out[k]->index].is_static || n->out[k]->tensor;
    return true;
}

static bool is_needed(const struct accel_tape *t, const struct accel_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] && t->cell[n->out[k]->index].needed)
            return true;
    return false;
}

/* A view of a value that has memory row-major. */
static bool is_view(const struct accel_node *n)
{
    return n->op && n->op->flags & ACCEL_OP_VIEWS && n->out[0] && n->in[0] &&
           accel_tape_width(n->in[0]->dtype) == accel_tape_width(n->out[0]->dtype);
}

static bool is_candidate(const struct accel_tape *t, const struct accel_node *n)
{
    if (!n->op || n->function || is_view(n) || !n->out[0] || n->n_in > ACCEL_MAX_IO ||
        n->op->flags & (ACCEL_OP_BODIES | ACCEL_OP_RANDOM) || !is_needed(t, n) || is_done(t, n) ||
        n->out[0]->dtype != ACCEL_F32)
        return false;
    for (int k = 1; k < n->n_out; k++)
        if (n->out[k] && t->cell[n->out[k]->index].needed)
            return false;
    for (int k = 0; k < n->n_in; k++)
        for (int j = k + 1; n->in[k] && j < n->n_in; j++)
            if (n->in[k] == n->in[j])
                return false; /* two contributions of one kernel to one gradient */
    return true;
}

/* Readers that run. */
static int n_readers(const struct accel_tape *t, const struct accel_value *v)
{
    int n = 0;
    for (size_t i = 0; i < v->n_use; i++)
        n += v->use[i].node->graph != t->graph ||
             (is_needed(t, v->use[i].node) && !is_done(t, v->use[i].node));
    return n;
}

static struct accel_node *only_reader(const struct accel_tape *t, const struct accel_value *v)
{
    if (t->cell[v->index].is_head || n_readers(t, v) != 1)
        return NULL;
    for (size_t i = 0; i < v->n_use; i++) {
        struct accel_node *n = v->use[i].node;
        if (n->graph == t->graph && is_needed(t, n) && !is_done(t, n))
            return is_candidate(t, n) ? n : NULL;
    }
    return NULL;
}

struct question {
    struct accel_train_ask ask;
    const struct accel_node *chain[ACCEL_MAX_CHAIN];
    const struct accel_value *operand[ACCEL_MAX_IO];
};

static bool add_operand(struct question *q, struct accel_tape *t, const struct accel_node *n, int i)
{
    int k = q->ask.ask.n_operand;
    const struct accel_value *v = n->in[i];
    if (k == ACCEL_MAX_IO)
        return false;
    for (int j = 0; v && j < k; j++)
        if (q->operand[j] == v && t->cell[v->index].wanted)
            return false;
    q->operand[k] = v;
    q->ask.ask.constant[k] = NULL;
    q->ask.ask.in[k] = (struct accel_layout){.kind = ACCEL_ROW_MAJOR};
    q->ask.ask.n_operand++;
    if (!v)
        return true;
    const struct accel_tape_cell *c = &t->cell[v->index];
    uint64_t bit = (uint64_t)1 << k;
    q->ask.ask.in[k] = c->layout;
    if (c->is_static)
        q->ask.ask.constant[k] = c->a.data;
    if (c->wanted && accel_tape_slot_flows(n, i))
        q->ask.want_gx |= bit;
    if (c->parameter >= 0)
        q->ask.weights |= bit;
    if (c->is_statistic && i < 32 && n->op->updates >> i & 1u)
        q->ask.updates |= bit;
    return true;
}

/* The question about the first n nodes of q->chain; false: too many operands. */
static bool set_chain(struct question *q, struct accel_tape *t, int n)
{
    q->ask = (struct accel_train_ask){0};
    for (int c = 0; c < n; c++)
        for (int i = 0; i < q->chain[c]->n_in; i++) {
            if (c > 0 && q->chain[c]->in[i] == q->chain[c - 1]->out[0])
                continue;
            if (!add_operand(q, t, q->chain[c], i))
                return false;
        }
    q->ask.ask.chain = q->chain;
    q->ask.ask.n_chain = n;
    q->ask.ask.operand = q->operand;
    q->ask.ask.bf16 = t->opt.bf16;
    q->ask.ask.row_major = t->cell[q->chain[n - 1]->out[0]->index].plain;
    return true;
}

/* Asks about ever shorter chains until the device takes all of one. */
static enum accel_err negotiate(struct accel_train_offer *o, struct question *q,
                                struct accel_tape *t, const struct accel_fast_train *fast)
{
    int n = 1;
    const struct accel_node *next;
    while (n < ACCEL_MAX_CHAIN && (next = only_reader(t, q->chain[n - 1]->out[0])))
        q->chain[n++] = next;
    *o = (struct accel_train_offer){0};
    while (n > 0) {
        *o = (struct accel_train_offer){0};
        if (!set_chain(q, t, n)) {
            n--;
            continue;
        }
        ACCEL_TRY(fast->offer(o, t->opt.device, &q->ask));
        if (o->takes == n)
            break;
        n = o->takes;
    }
    return ACCEL_OK;
}

static enum accel_err keep(struct accel_tape *t, const struct question *q,
                           const struct accel_train_offer *o, const struct accel_fast_train *fast)
{
    struct accel_tape_step *s = &t->step[q->chain[o->takes - 1]->index];
    int n = q->ask.ask.n_operand;
    s->x = ACCEL_NEW(&t->arena, const struct accel_value *, n + 1);
    const struct accel_node **chain = ACCEL_NEW(&t->arena, const struct accel_node *, o->takes);
    if (!s->x || !chain)
        return accel_fail_nomem();
    memcpy(s->x, q->operand, (size_t)n * sizeof *s->x);
    memcpy(chain, q->chain, (size_t)o->takes * sizeof(struct accel_node *));
    s->n_x = n;
    s->chain = chain;
    s->y = q->chain[o->takes - 1]->out[0];
    s->fast = fast;
    s->offer = *o;
    s->runs = true;
    for (int i = 0; i + 1 < o->takes; i++) {
        t->step[q->chain[i]->index].runs = false;
        t->cell[q->chain[i]->out[0]->index].hidden = true;
    }
    t->cell[s->y->index].layout = o->out;
    return ACCEL_OK;
}

static bool is_inside(const struct accel_tape *t, const struct accel_node *n)
{
    return n->out[0] && (t->cell[n->out[0]->index].hidden || t->step[n->index].fast);
}

static enum accel_err choose_node(struct accel_tape *t, struct question *q, struct accel_node *n)
{
    struct accel_device *d = t->opt.device;
    struct accel_train_offer o = {0};
    t->step[n->index].node = n;
    if (is_inside(t, n))
        return ACCEL_OK;
    const struct accel_fast_train *fast = NULL;
    if (d && d->train && is_candidate(t, n))
        fast = d->train(d, n->op->domain, n->op->name);
    t->step[n->index].runs = is_needed(t, n) && !is_done(t, n);
    if (!fast)
        return ACCEL_OK;
    q->chain[0] = n;
    ACCEL_TRY(negotiate(&o, q, t, fast));
    return o.takes > 0 ? keep(t, q, &o, fast) : ACCEL_OK;
}

/* Values that steps without a fast kernel touch must be row-major; false when all were so. */
static bool spread_plain(struct accel_tape *t)
{
    bool more = false;
    for (size_t i = 0; i < t->graph->n_node; i++) {
        const struct accel_tape_step *s = &t->step[i];
        const struct accel_node *n = t->graph->node[i];
        if (!s->runs || s->fast)
            continue;
        for (int k = 0; k < n->n_in + n->n_out; k++) {
            const struct accel_value *v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
            struct accel_tape_cell *c = v ? &t->cell[v->index] : NULL;
            if (c && !c->plain) {
                more = more || c->layout.kind != ACCEL_ROW_MAJOR;
                c->plain = true;
            }
        }
    }
    return more;
}

static enum accel_err choose_round(struct accel_tape *t, struct question *q)
{
    accel_tape_release(t);
    for (size_t i = 0; i < t->graph->n_value; i++) {
        t->cell[i].layout = (struct accel_layout){.kind = ACCEL_ROW_MAJOR};
        t->cell[i].hidden = false;
    }
    for (size_t i = 0; i < t->graph->n_node; i++) {
        struct accel_node *n = t->graph->node[i];
        enum accel_err err = choose_node(t, q, n);
        if (err)
            return accel_fail_in(err, "node '%.200s' (%.100s)", n->label, n->op_type);
    }
    return ACCEL_OK;
}

static enum accel_err prepare(struct accel_tape *t, struct question *q, struct accel_tape_step *s)
{
    memcpy(q->chain, s->chain, (size_t)s->offer.takes * sizeof(struct accel_node *));
    if (!set_chain(q, t, s->offer.takes))
        return accel_fail(ACCEL_EDEVICE, "the chain changed");
    return s->fast->prepare(&s->state, t->opt.device, &q->ask, &s->offer);
}

enum accel_err accel_tape_choose(struct accel_tape *t)
{
    struct question *q = accel_calloc(1, sizeof *q);
    enum accel_err err = q ? ACCEL_OK : accel_fail_nomem();
    for (size_t i = 0; i < t->graph->n_value; i++)
        t->cell[i].plain = t->cell[i].is_head;
    do {
        if (!err)
            err = choose_round(t, q);
    } while (!err && spread_plain(t));
    for (size_t i = 0; !err && i < t->graph->n_node; i++)
        if (t->step[i].fast)
            err = prepare(t, q, &t->step[i]);
    accel_free(q);
    return err;
}

/* ---------------------------------------------------------------- gradients come together */

static struct accel_tape_cell *root(struct accel_tape_cell *c)
{
    while (c->grad_of)
        c = c->grad_of;
    return c;
}

/* True when the step is the first to write the operand's gradient. */
static bool give(struct accel_tape_cell *c)
{
    return c->n_given++ == 0;
}

static bool may_share(const struct accel_tape_cell *x, const struct accel_tape_cell *y)
{
    return x->parameter < 0 && !x->is_head && x->a.n == y->a.n &&
           accel_tape_width(x->a.dtype) == accel_tape_width(y->a.dtype);
}

static void join_fast(struct accel_tape *t, struct accel_tape_step *s)
{
    struct accel_tape_cell *y = &t->cell[s->y->index];
    bool shared = false;
    struct question q;
    memcpy(q.chain, s->chain, (size_t)s->offer.takes * sizeof(struct accel_node *));
    (void)set_chain(&q, t, s->offer.takes);
    for (int i = 0; i < s->n_x; i++) {
        if (!(q.ask.want_gx >> i & 1u))
            continue;
        struct accel_tape_cell *x = &t->cell[s->x[i]->index];
        s->back = true;
        bool first = give(x);
        if (!first)
            s->back_run.add |= (uint64_t)1 << i;
        else if (x->parameter >= 0)
            s->weights_first |= (uint64_t)1 << i;
        if (first && !shared && s->offer.in_place >> i & 1u && may_share(x, y)) {
            x->grad_of = y;
            shared = true;
        }
    }
}

static void join_view(struct accel_tape *t, struct accel_tape_step *s)
{
    const struct accel_node *n = s->node;
    struct accel_tape_cell *x = &t->cell[n->in[0]->index], *y = &t->cell[n->out[0]->index];
    if (!x->wanted || !y->wanted || !accel_tape_slot_flows(n, 0))
        return;
    s->back = true;
    s->first[0] = give(x);
    s->aliased = s->first[0] && may_share(x, y);
    if (s->aliased)
        x->grad_of = y;
}

static void join_plain(struct accel_tape *t, struct accel_tape_step *s)
{
    const struct accel_node *n = s->node;
    bool wanted = false;
    for (int k = 0; k < n->n_out; k++)
        wanted = wanted || (n->out[k] && t->cell[n->out[k]->index].wanted);
    for (int i = 0; wanted && i < n->n_in; i++)
        if (accel_tape_slot_flows(n, i) && t->cell[n->in[i]->index].wanted) {
            s->back = true;
            s->first[i] = give(&t->cell[n->in[i]->index]);
        }
}

static enum accel_err start_plain(struct accel_tape *t, struct accel_tape_step *s)
{
    const struct accel_node *n = s->node;
    s->op = n->op;
    s->first = ACCEL_NEW(&t->arena, bool, n->n_in + 1);
    s->array = ACCEL_NEW(&t->arena, struct accel_array, 2 * (n->n_in + n->n_out) + 1);
    if (!s->first || !s->array)
        return accel_fail_nomem();
    if (!n->op || n->function || n->op->flags & ACCEL_OP_BODIES || !n->op->forward)
        return accel_fail_in(accel_fail(ACCEL_ENOSUP, "%s cannot be part of a training step",
                                        n->function               ? "a call of a function"
                                        : n->op && n->op->forward ? "a graph in an attribute"
                                                                  : "an operator without kernel"),
                             "node '%.200s' (%.100s)", n->label, n->op_type);
    s->is_view = is_view(n);
    return ACCEL_OK;
}

enum accel_err accel_tape_join(struct accel_tape *t)
{
    for (size_t i = 0; i < t->graph->n_value; i++) {
        t->cell[i].n_given = t->cell[i].is_head && t->cell[i].wanted;
        t->cell[i].grad_of = NULL;
    }
    for (size_t i = t->graph->n_node; i-- > 0;) {
        struct accel_tape_step *s = &t->step[i];
        if (!s->runs)
            continue;
        if (!s->fast)
            ACCEL_TRY(start_plain(t, s));
        if (s->fast)
            join_fast(t, s);
        else if (s->is_view)
            join_view(t, s);
        else
            join_plain(t, s);
    }
    for (size_t i = 0; i < t->graph->n_value; i++)
        t->cell[i].grad_of = t->cell[i].grad_of ? root(&t->cell[i]) : NULL;
    return ACCEL_OK;
}
