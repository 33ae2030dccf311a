/* The law of cutting, one operator at a time: a node whose operands lost random groups of units
 * gives what the same node gives when these units are filled as its links promise, without them.
 *
 * Every input plays a part: a constant (the masker writes 0, and the operator's kept slots are left
 * alone), or an activation whose cut units hold a known number, another one on every axis, or
 * garbage (unknown). Units are tied by union-find over what links() says; walls, silent axes and
 * sums without a zero freeze. Then the K that zero() promises is looked up in the masked result. It
 * runs over the examples of the whole table and the lines below, with several seeds. */
#include "exec/plan.h"
#include "graph/resize.h"
#include "tests/links_t.h"

#define SLOTS 16
#define RANK  8
#define SEEDS 40

static uint64_t state;

static unsigned pick(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

static float any_number(float lo, float hi)
{
    return lo + (hi - lo) * (float)pick(10001) / 10000;
}

enum part { FIXED, CONSTANT, KNOWN, GARBAGE };

/* An operand: its elements as double, whatever its type. */
struct operand {
    enum part part;
    int rank;
    int64_t dim[RANK], n;
    double *at;
};

struct law {
    const char *op, *line;
    int opset, n_out;
    struct op_run r;
    struct accel_links l;
    bool taken[64];
    struct operand in[SLOTS];
    float k[SLOTS][RANK];
    float *row[SLOTS];
    int *parent, n_units, base[SLOTS][RANK];
    bool *frozen, *cut;
    struct accel_cut cuts[SLOTS][RANK];
    const struct accel_cut *cut_row[SLOTS];
    double scale; /* of output 0 */
    const int64_t *ints[SLOTS];
    int64_t n_ints[SLOTS];
};

static int find(struct law *w, int u)
{
    while (w->parent[u] != u)
        u = w->parent[u] = w->parent[w->parent[u]];
    return u;
}

static int slots(const struct law *w)
{
    return w->r.n->n_in + w->r.n->n_out;
}

/* ------------------------------------------------------------------ operands */

static bool is_float(const struct accel_value *v)
{
    return accel_dtype_is_float(v->dtype);
}

static bool is_kept(const struct law *w, int slot)
{
    return w->r.n->op->keep >> slot & 1;
}

/* Elements of a stored constant, or random ones. Kept operands divide: they stay away from 0. */
static void fill_operand(struct law *w, int slot)
{
    struct accel_value *v = w->r.n->in[slot];
    struct operand *o = &w->in[slot];
    *o = (struct operand){.part = FIXED, .rank = v->shape.rank, .n = 1};
    for (int i = 0; i < o->rank; i++)
        o->n *= o->dim[i] = v->shape.dim[i].n;
    o->at = calloc((size_t)o->n + 1, sizeof *o->at);
    if (v->tensor) {
        void *raw = malloc(v->tensor->size + 8);
        ck_ok(accel_tensor_read(v->tensor, 0, v->tensor->n, raw));
        accel_dtype_to_f64(v->tensor->dtype, raw, 0, (size_t)o->n, o->at);
        free(raw);
        return;
    }
    bool positive = is_kept(w, slot) || strcmp(w->op, "Log") == 0 || strcmp(w->op, "Sqrt") == 0;
    for (int64_t i = 0; i < o->n; i++)
        o->at[i] = is_float(v) ? (double)any_number(positive ? 0.5f : -1, 1) : pick(2);
    if (is_float(v))
        o->part = is_kept(w, slot) && pick(4) ? CONSTANT : CONSTANT + (enum part)pick(3);
    else if (strcmp(w->op, "DequantizeLinear") == 0)
        o->part = CONSTANT;
}

/* The operand's elements in the type of its value; *size bytes. */
static void *stored(const struct operand *o, enum accel_dtype dtype, uint64_t *size)
{
    ck_assert(accel_dtype_size(dtype, (uint64_t)o->n, size));
    void *raw = calloc((size_t)*size + 8, 1);
    accel_dtype_from_f64(dtype, o->at, (size_t)o->n, raw, 0);
    return raw;
}

static void set_tensor(struct accel_model *m, struct accel_value *v, const struct operand *o)
{
    struct accel_tensor *t = ACCEL_NEW(&m->arena, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(&m->arena, int64_t, o->rank + 1);
    enum accel_dtype dtype = v->tensor ? v->tensor->dtype : v->declared_dtype;
    uint64_t size;
    void *raw = stored(o, dtype, &size), *data = accel_arena_new(&m->arena, size + 1, 1);
    memcpy(data, raw, size);
    memcpy(dim, o->dim, (size_t)o->rank * sizeof *dim);
    free(raw);
    *t = (struct accel_tensor){.name = v->name,
                               .dtype = dtype,
                               .rank = o->rank,
                               .dim = dim,
                               .n = (uint64_t)o->n,
                               .size = size,
                               .data = data};
    v->tensor = t;
}

/* ------------------------------------------------------------------ what is said */

static void number_units(struct law *w)
{
    int n = 0;
    for (int s = 0; s < slots(w); s++)
        for (int a = 0; a < accel_slot_rank(w->r.n, s); a++) {
            w->base[s][a] = n;
            n += (int)accel_slot_size(w->r.n, s, a);
        }
    w->n_units = n;
    w->parent = calloc((size_t)n + 1, sizeof *w->parent);
    w->frozen = calloc((size_t)n + 1, sizeof *w->frozen);
    w->cut = calloc((size_t)n + 1, sizeof *w->cut);
    for (int u = 0; u < n; u++)
        w->parent[u] = u;
}

static int position(const struct law *w, const struct accel_side *s, int64_t row, int64_t i)
{
    int64_t at =
        s->list ? s->list[row] : s->off + i / s->rep * s->stride + row * s->rep + i % s->rep;
    return w->base[s->slot][s->axis] + (int)at;
}

static void join_tie(struct law *w, const struct accel_tie *t)
{
    for (int64_t row = 0; row < t->n; row++) {
        int first = position(w, &t->side[0], row, 0);
        for (int k = 0; k < t->n_sides; k++) {
            const struct accel_side *s = &t->side[k];
            for (int64_t i = 0; i < (s->list ? 1 : s->outer * s->rep); i++)
                w->parent[find(w, position(w, s, row, i))] = find(w, first);
        }
    }
}

static void freeze(struct law *w, int slot, int axis, int64_t first, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        w->frozen[find(w, w->base[slot][axis] + (int)(first + i))] = true;
}

/* Takes candidates in random order, one for each axis that a side covers in factors. */
static void choose(struct law *w)
{
    const struct accel_links *l = &w->l;
    bool used[SLOTS][RANK] = {{false}};
    size_t from = l->n_candidate ? pick((unsigned)l->n_candidate) : 0;
    for (size_t c = 0; c < l->n_candidate; c++) {
        size_t i = (c + from) % l->n_candidate;
        const struct accel_candidate *d = &l->candidate[i];
        bool good = d->n_ties > 0 && pick(8);
        for (int pass = 0; pass < 2; pass++)
            for (int t = 0; good && t < d->n_ties; t++)
                for (int k = 0; k < d->tie[t].n_sides; k++) {
                    const struct accel_side *s = &d->tie[t].side[k];
                    bool factor = d->tie[t].n != accel_slot_size(w->r.n, s->slot, s->axis);
                    if (pass == 0 && factor && used[s->slot][s->axis])
                        good = false;
                    if (pass == 1 && factor)
                        used[s->slot][s->axis] = true;
                }
        w->taken[i] = good;
    }
}

/* K of all operands; sums without a zero and numbers that are not finite become walls. */
static void spread_zeros(struct law *w)
{
    static const float numbers[] = {0, 0, 0, 0.5f, -1, 2};
    const struct accel_node *n = w->r.n;
    for (int s = 0; s < slots(w); s++) {
        w->row[s] = accel_slot_value(n, s) ? w->k[s] : NULL;
        for (int a = 0; a < RANK; a++) {
            enum part part = s < n->n_in ? w->in[s].part : GARBAGE;
            bool zero = part == CONSTANT && !is_kept(w, s) && s < n->n_in && is_float(n->in[s]);
            w->k[s][a] = zero ? 0 : part == KNOWN ? numbers[pick(6)] : NAN;
        }
    }
    for (size_t i = 0; i < w->l.n_need; i++) {
        const struct accel_need *d = &w->l.need[i];
        bool zero = false;
        for (int k = 0; k < d->n; k++)
            zero = zero || w->k[d->at[k].slot][d->at[k].axis] == 0;
        if (!zero)
            accel_links_wall(&w->l, d->at[0].slot, d->at[0].axis, "sum of non-zeros");
    }
    struct accel_zero z = {&w->l, w->row};
    if (n->op->zero)
        n->op->zero(n, &z);
    ck_assert_int_eq(w->l.err, ACCEL_OK);
}

static void freeze_all(struct law *w)
{
    for (size_t i = 0; i < w->l.n_tie; i++)
        join_tie(w, &w->l.tie[i]);
    for (size_t i = 0; i < w->l.n_wall; i++)
        freeze(w, w->l.wall[i].slot, w->l.wall[i].axis, w->l.wall[i].first, w->l.wall[i].n);
    for (int s = 0; s < slots(w); s++)
        for (int a = 0; a < accel_slot_rank(w->r.n, s); a++)
            if (!accel_links_mentions(&w->l, s, a) || accel_slot_size(w->r.n, s, a) == 1 ||
                w->r.n->op->sizes >> s & 1)
                freeze(w, s, a, 0, accel_slot_size(w->r.n, s, a));
}

/* ------------------------------------------------------------------ choosing what goes */

static int64_t kept_of(const struct law *w, int slot, int axis, int without)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < accel_slot_size(w->r.n, slot, axis); i++) {
        int root = find((struct law *)(uintptr_t)w, w->base[slot][axis] + (int)i);
        kept += !w->cut[root] && root != without;
    }
    return kept;
}

/* Cutting leaves one index on every axis. */
static bool may_go(const struct law *w, int root)
{
    for (int s = 0; s < slots(w); s++)
        for (int a = 0; a < accel_slot_rank(w->r.n, s); a++)
            if (accel_slot_size(w->r.n, s, a) > 0 && kept_of(w, s, a, root) < 1)
                return false;
    return true;
}

static int choose_cuts(struct law *w)
{
    int n = 0;
    unsigned share = 1 + pick(3);
    for (int u = 0; u < w->n_units; u++)
        if (find(w, u) == u && !w->frozen[u] && pick(4) < share && may_go(w, u)) {
            w->cut[u] = true;
            n++;
        }
    for (int u = 0; u < w->n_units; u++)
        w->cut[u] = w->cut[find(w, u)];
    for (int s = 0; s < slots(w); s++) {
        w->cut_row[s] = accel_slot_value(w->r.n, s) ? w->cuts[s] : NULL;
        for (int a = 0; a < accel_slot_rank(w->r.n, s); a++) {
            int64_t was = accel_slot_size(w->r.n, s, a), now = 0;
            int64_t *kept = calloc((size_t)was + 1, sizeof *kept);
            for (int64_t i = 0; i < was; i++)
                if (!w->cut[w->base[s][a] + (int)i])
                    kept[now++] = i;
            w->cuts[s][a] = (struct accel_cut){was, now, now == was ? NULL : kept};
            if (now == was)
                free(kept);
        }
    }
    return n;
}

/* ------------------------------------------------------------------ masked and cut operands */

/* Zero point of a node that is called this, 0 for others. */
static double zero_point(const struct law *w, const char *op, int64_t i)
{
    const struct operand *o = &w->in[2];
    bool is_it = strcmp(w->op, op) == 0 && w->r.n->n_in > 2;
    return is_it ? o->at[o->n == 1 ? 0 : i] : 0;
}

/* Index of element e of an operand along an axis. */
static int64_t along(const struct operand *o, int64_t e, int axis)
{
    for (int d = o->rank - 1; d > axis; d--)
        e /= o->dim[d];
    return e % o->dim[axis];
}

static void mask(struct law *w, int slot)
{
    struct operand *o = &w->in[slot];
    if (o->part == FIXED || (o->part == CONSTANT && is_kept(w, slot)))
        return;
    for (int a = 0; a < o->rank; a++)
        for (int64_t e = 0; e < o->n; e++) {
            if (!w->cut[w->base[slot][a] + (int)along(o, e, a)])
                continue;
            o->at[e] = o->part == CONSTANT
                           ? zero_point(w, "DequantizeLinear", o->rank > 1 ? along(o, e, 1) : 0)
                       : o->part == KNOWN ? (double)w->k[slot][a]
                                          : (double)any_number(0.5f, 3);
        }
}

/* The elements that are left. */
static struct operand slice(const struct law *w, int slot, const struct operand *o)
{
    struct operand c = {.part = o->part, .rank = o->rank, .n = 0};
    c.at = calloc((size_t)o->n + 1, sizeof *c.at);
    for (int a = 0; a < o->rank; a++)
        c.dim[a] = w->cuts[slot][a].now;
    for (int64_t e = 0; e < o->n; e++) {
        bool gone = false;
        for (int a = 0; a < o->rank; a++)
            gone = gone || w->cut[w->base[slot][a] + (int)along(o, e, a)];
        if (!gone)
            c.at[c.n++] = o->at[e];
    }
    return c;
}

/* ------------------------------------------------------------------ the cut node */

static enum accel_err new_ints(struct accel_resize *r, int slot, const int64_t *want, int64_t n,
                               int64_t open)
{
    struct law *w = r->ctx;
    int64_t *copy = calloc((size_t)n + 1, sizeof *copy);
    (void)open;
    for (int64_t i = 0; i < n; i++)
        copy[i] = want[i] == ACCEL_SIZE_VARIES ? (int64_t)w->in[slot].at[i] : want[i];
    w->ints[slot] = copy;
    w->n_ints[slot] = n;
    return ACCEL_OK;
}

static enum accel_err new_scale(struct accel_resize *r, int slot, double factor)
{
    struct law *w = r->ctx;
    ck_assert_int_eq(slot, 0);
    w->scale *= factor;
    return ACCEL_OK;
}

/* An input that the node did not have (sizes of Split). */
static void add_input(struct op_run *c, int slot)
{
    struct accel_value **in = ACCEL_NEW(&c->m->arena, struct accel_value *, slot + 1);
    struct accel_value *v;
    for (int i = 0; i < c->n->n_in; i++)
        in[i] = c->n->in[i];
    ck_ok(accel_value_new(&v, c->m->graph, "added"));
    v->declared_dtype = ACCEL_I64;
    v->is_tensor = true;
    in[slot] = v;
    c->n->in = in;
    c->n->n_in = c->n->n_in > slot + 1 ? c->n->n_in : slot + 1;
}

static void give(struct op_run *c, int slot, const struct operand *o, bool constant)
{
    struct accel_value *v = c->n->in[slot];
    if (constant) {
        set_tensor(c->m, v, o);
        return;
    }
    for (int a = 0; a < o->rank; a++)
        v->declared.dim[a] = accel_dim_of(o->dim[a]);
}

/* A node of the same line, repaired, with the cut operands. */
static struct op_run cut_node(struct law *w, struct operand *in)
{
    struct op_run c = op_begin_outs(w->op, w->opset, w->line, w->n_out);
    int n_in = w->r.n->n_in;
    for (int s = 0; s < n_in; s++)
        if (c.n->in[s] && w->in[s].part == CONSTANT)
            give(&c, s, &w->in[s], true);
    ck_ok(accel_model_infer(c.m));
    struct accel_resize r = {c.n, w->cut_row, false, new_ints, new_scale, w};
    w->scale = 1;
    if (c.n->op->resize)
        ck_ok(c.n->op->resize(c.n, &r));
    for (int s = 0; s < n_in; s++) {
        if (!c.n->in[s])
            continue;
        in[s] = slice(w, s, &w->in[s]);
        give(&c, s, &in[s], c.n->in[s]->tensor != NULL);
    }
    for (int s = 0; s < SLOTS; s++) {
        if (!w->ints[s])
            continue;
        if (s >= n_in || !c.n->in[s])
            add_input(&c, s);
        struct operand o = {.part = FIXED, .rank = 1, .dim = {w->n_ints[s]}, .n = w->n_ints[s]};
        if (s < n_in && w->in[s].rank == 0 && w->in[s].n == 1)
            o.rank = 0;
        o.at = calloc((size_t)o.n + 1, sizeof *o.at);
        for (int64_t i = 0; i < o.n; i++)
            o.at[i] = (double)w->ints[s][i];
        give(&c, s, &o, true);
        free(o.at);
    }
    if (c.n->op->parse)
        ck_ok(c.n->op->parse(c.n, w->opset));
    c.err = accel_model_infer(c.m);
    return c;
}

/* ------------------------------------------------------------------ running */

/* Runs the node; out[] gets its outputs as doubles. False: there is no kernel for it. */
static bool run(struct op_run *r, const struct operand *in, struct operand *out)
{
    struct accel_graph *g = r->m->graph;
    struct accel_plan *p;
    g->input = ACCEL_NEW(&r->m->arena, struct accel_value *, g->n_value);
    g->output = ACCEL_NEW(&r->m->arena, struct accel_value *, g->n_value);
    g->n_input = g->n_output = 0;
    const struct operand *feed[SLOTS];
    for (int s = 0; s < r->n->n_in; s++)
        if (r->n->in[s] && !r->n->in[s]->tensor) {
            feed[g->n_input] = &in[s];
            g->input[g->n_input++] = r->n->in[s];
        }
    for (int o = 0; o < r->n->n_out; o++)
        if (r->n->out[o]->is_output)
            g->output[g->n_output++] = r->n->out[o];
    r->n->label = "node";
    enum accel_err err = accel_plan_new(&p, r->m, &(struct accel_plan_options){0});
    if (err == ACCEL_ENOSUP)
        return false;
    ck_ok(err);
    void *raw[SLOTS];
    for (size_t i = 0; i < g->n_input; i++) {
        uint64_t size;
        raw[i] = stored(feed[i], g->input[i]->dtype, &size);
        ck_ok(accel_plan_set_input(p, (int)i,
                                   &(struct accel_array){g->input[i]->dtype, feed[i]->rank,
                                                         feed[i]->dim, feed[i]->n, raw[i]}));
    }
    err = accel_plan_run(p);
    for (size_t i = 0; i < g->n_input; i++)
        free(raw[i]);
    if (err == ACCEL_ENOSUP) { /* a type that this operator has no kernel for */
        accel_plan_free(p);
        return false;
    }
    ck_ok(err);
    for (size_t o = 0; o < g->n_output; o++) {
        const struct accel_array *a = accel_plan_output(p, (int)o);
        out[o] = (struct operand){.rank = a->rank, .n = a->n};
        memcpy(out[o].dim, a->dim, (size_t)a->rank * sizeof *a->dim);
        out[o].at = calloc((size_t)a->n + 1, sizeof *out[o].at);
        accel_dtype_to_f64(a->dtype, a->data, 0, (size_t)a->n, out[o].at);
    }
    accel_plan_free(p);
    return true;
}

static bool close_to(double a, double b)
{
    return (isnan(a) && isnan(b)) || a == b || fabs(a - b) <= 1e-4 * (1 + fabs(b));
}

/* Cut units of an output hold what zero() said, wherever the other axes are kept. */
static void check_numbers(const struct law *w, int slot, const struct operand *y)
{
    for (int a = 0; a < y->rank; a++)
        for (int64_t e = 0; !isnan(w->k[slot][a]) && e < y->n; e++) {
            bool here = w->cut[w->base[slot][a] + (int)along(y, e, a)], other = false;
            for (int b = 0; b < y->rank; b++)
                other = other || (b != a && w->cut[w->base[slot][b] + (int)along(y, e, b)]);
            double want = (double)w->k[slot][a] +
                          zero_point(w, "QuantizeLinear", y->rank > 1 ? along(y, e, 1) : 0);
            if (here && !other)
                ck_assert_msg(close_to(y->at[e], want),
                              "%s %s: axis %d of output %d holds %g, not %g", w->op, w->line, a,
                              slot - w->r.n->n_in, y->at[e], want);
        }
}

static void compare(const struct law *w, int slot, const struct operand *masked,
                    const struct operand *cut, double scale)
{
    struct operand want = slice(w, slot, masked);
    ck_assert_int_eq(cut->rank, want.rank);
    for (int a = 0; a < cut->rank; a++)
        ck_assert_msg(cut->dim[a] == want.dim[a], "%s %s: axis %d of output %d is %lld, not %lld",
                      w->op, w->line, a, slot - w->r.n->n_in, (long long)cut->dim[a],
                      (long long)want.dim[a]);
    for (int64_t e = 0; e < want.n; e++)
        ck_assert_msg(close_to(cut->at[e] * scale, want.at[e]),
                      "%s %s: element %lld of output %d is %g cut and %g masked", w->op, w->line,
                      (long long)e, slot - w->r.n->n_in, cut->at[e] * scale, want.at[e]);
    free(want.at);
}

/* ------------------------------------------------------------------ one line, one seed */

static void free_law(struct law *w, struct operand *in)
{
    for (int s = 0; s < SLOTS; s++) {
        for (int a = 0; a < RANK; a++)
            free((void *)(uintptr_t)w->cuts[s][a].kept);
        free(w->in[s].at);
        free(in[s].at);
        free((void *)(uintptr_t)w->ints[s]);
    }
    free(w->parent);
    free(w->frozen);
    free(w->cut);
    accel_links_clear(&w->l);
    op_end(&w->r);
}

static void speak(struct law *w)
{
    const struct accel_node *n = w->r.n;
    for (int s = 0; s < n->n_in; s++)
        if (n->in[s]) {
            fill_operand(w, s);
            if (w->in[s].part == CONSTANT)
                set_tensor(w->r.m, n->in[s], &w->in[s]);
        }
    ck_ok(accel_model_infer(w->r.m));
    ck_ok(accel_links_ask(&w->l, n, NULL));
    choose(w);
    ck_ok(accel_links_ask(&w->l, n, w->taken));
}

/* Groups that were cut; -1: the operator has no kernel, only shapes were compared. */
static int law_holds(const char *op, int opset, const char *line, int n_out, int seen_outs)
{
    struct law w = {.op = op, .line = line, .opset = opset, .n_out = n_out};
    struct operand masked[8] = {{0}}, sliced[8] = {{0}}, in[SLOTS] = {{0}};
    w.r = op_begin_outs(op, opset, line, n_out);
    ck_assert_msg(w.r.err == ACCEL_OK, "%s %s: %s", op, line, accel_errmsg());
    for (int o = 0; o < n_out && o < seen_outs; o++)
        w.r.n->out[o]->is_output = true;
    speak(&w);
    number_units(&w);
    spread_zeros(&w);
    freeze_all(&w);
    int n = choose_cuts(&w);
    struct op_run c = cut_node(&w, in);
    ck_assert_msg(c.err == ACCEL_OK, "%s %s, cut: %s", op, line, accel_errmsg());
    for (int o = 0; o < n_out && o < seen_outs; o++)
        c.n->out[o]->is_output = true;
    for (int s = 0; s < w.r.n->n_in; s++)
        if (w.r.n->in[s]) {
            mask(&w, s);
            if (w.in[s].part == CONSTANT)
                set_tensor(w.r.m, w.r.n->in[s], &w.in[s]);
        }
    if (n && run(&w.r, w.in, masked) && run(&c, in, sliced))
        for (int o = 0; o < n_out && o < seen_outs; o++) {
            check_numbers(&w, w.r.n->n_in + o, &masked[o]);
            compare(&w, w.r.n->n_in + o, &masked[o], &sliced[o], o == 0 ? w.scale : 1);
        }
    for (int o = 0; o < 8; o++) {
        free(masked[o].at);
        free(sliced[o].at);
    }
    op_end(&c);
    free_law(&w, in);
    return n;
}

static int law_over(const char *op, int opset, const char *line, int n_out, int seen_outs)
{
    int cuts = 0;
    for (unsigned seed = 0; seed < SEEDS; seed++) {
        state = 77 + seed * 1000003u;
        (void)pick(2);
        cuts += law_holds(op, opset, line, n_out, seen_outs);
    }
    return cuts;
}

START_TEST(cutting_equals_zeroing_over_the_whole_table)
{
    int with_links = 0;
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *op = accel_op_table[i];
        bool ms = strcmp(op->domain, "com.microsoft") == 0, states = strstr(op->name, "LSTM") ||
                                                                     strcmp(op->name, "GRU") == 0 ||
                                                                     strcmp(op->name, "RNN") == 0;
        char name[100];
        int cuts = 0;
        /* Shape and Size answer differently by their nature; one needs integers to be a node */
        if (!op->links || strcmp(op->name, "Shape") == 0 || strcmp(op->name, "Size") == 0 ||
            op->max_in == 0 || op->max_out > 8 || strcmp(op->name, "DequantizeLinear") == 0 ||
            (op->flags & ACCEL_OP_BODIES))
            continue;
        if (!op->forward)
            continue; /* check_law.py runs those in onnxruntime */
        snprintf(name, sizeof name, "%s%s", ms ? "ms:" : "", op->name);
        for (const char *const *e = op->examples; e && *e; e++)
            cuts += law_over(name, 20, *e, op->max_out, states ? op->max_out : 1);
        with_links++;
        if (getenv("LINKS_VERBOSE"))
            fprintf(stderr, "%s: %d\n", name, cuts);
        ck_assert_msg(cuts > 0, "%s is never cut", name);
    }
    ck_assert_int_ge(with_links, 110);
}
END_TEST

START_TEST(cutting_equals_zeroing_in_other_forms)
{
    static const struct {
        const char *op;
        int opset;
        const char *line;
        int n_out;
    } rows[] = {
        {"Split", 11, "2x6x3 | axis=1 split=1,3,2", 3},
        {"Split", 13, "2x6x3 | axis=1", 2},
        {"Split", 13, "2x6x3 [4,2] | axis=1", 2},
        {"Split", 18, "2x7x3 | axis=-2 num_outputs=2", 2},
        {"Slice", 9, "5x6 | starts=1,0 ends=4,9", 1},
        {"Slice", 13, "6x8 [-4,1] [-1,2147483647] [1,0]", 1},
        {"Slice", 13, "4x6 [0] [6] [1] [3]", 1},
        {"Slice", 13, "4x6 [1] [-1] [1] [2]", 1},
        {"Slice", 13, "4x6 [5] [-99] [1] [-1]", 1},
        {"Pad", 10, "2x3x4 | pads=0,1,0,0,2,0", 1},
        {"Pad", 13, "2x3x4 [1,2] - [1]", 1},
        {"Pad", 18, "2x3x4 [1,2] f[0] [1]", 1},
        {"Pad", 18, "2x3x4 [0,1,1,0] f[2] [-2,2]", 1},
        {"Pad", 13, "2x3x4 [0,0,1,0,0,1] | mode=reflect", 1},
        {"ReduceMean", 13, "2x5x4 | axes=1 keepdims=0", 1},
        {"ReduceMean", 18, "2x5x4 [1,2]", 1},
        {"ReduceMean", 18, "3x5x4", 1},
        {"ReduceSum", 13, "2x5x4 [-1] | keepdims=0", 1},
        {"ReduceSum", 13, "2x5x4 | noop_with_empty_axes=1", 1},
        {"ReduceL2", 18, "2x5x4 [1]", 1},
        {"ReduceMax", 18, "2x5x4 [2]", 1},
        {"Softmax", 11, "2x3x4x2 | axis=2", 1},
        {"Reshape", 4, "2x12 | shape=2,3,4", 1},
        {"Reshape", 13, "2x6x4x5 [0,-1,5]", 1},
        {"Reshape", 13, "2x6x20 [2,6,4,5]", 1},
        {"Reshape", 13, "8x6 [2,4,3,2]", 1},
        {"Reshape", 13, "2x3x4 [0,0,-1,1]", 1},
        {"Flatten", 13, "2x3x2x2", 1},
        {"Squeeze", 11, "3x1x4", 1},
        {"Squeeze", 11, "3x1x4 | axes=1", 1},
        {"Unsqueeze", 11, "3x4 | axes=0,2", 1},
        {"Gather", 13, "6x4 [5,1,1,-2]", 1},
        {"Gather", 13, "6x4 i64:3x2", 1},
        {"Gather", 13, "3x6 scalar[-2] | axis=-1", 1},
        {"Expand", 13, "3x1x2 [4,1,5,1]", 1},
        {"Tile", 13, "2x3x4 [1,1,2]", 1},
        {"GroupNormalization", 21, "2x6x3 6 6 | num_groups=3", 1},
        {"LayerNormalization", 17, "2x3x4x5 4x5 4x5 | axis=2", 1},
        {"LpNormalization", 13, "3x5 | axis=0 p=1", 1},
        {"Conv", 13, "2x8x4 8x2x3 8 | group=4 pads=1,1", 1},
        {"Conv", 13, "1x6x4x4 9x2x1x1 9 | group=3", 1},
        {"ConvTranspose", 13, "1x6x3x3 6x4x2x2 12 | group=3 strides=2,2", 1},
        {"ConvTranspose", 13, "1x4x3x3 4x1x2x2 4 | group=4", 1},
        {"ConvTranspose", 13, "1x4x3x3 4x6x3x3 6 | strides=2,2 output_shape=1,6,7,7", 1},
        {"Gemm", 13, "4x3 5x3 4x5 | transB=1 beta=0.5", 1},
        {"Gemm", 13, "4x3 3x5 f1x1[0.25]", 1},
        {"MatMul", 13, "2x3x4x5 2x3x5x4", 1},
        {"MatMul", 13, "1x3x4x5 2x1x5x4", 1},
        {"MatMul", 13, "5 2x5x4", 1},
        {"Einsum", 13, "2x3x4 4x3x5 | equation=bhd,dhe->beh", 1},
        {"Div", 13, "3x4 4", 1},
        {"Div", 13, "3x4 f[2]", 1},
        {"Pow", 13, "3x4 f[2]", 1},
        {"Pow", 13, "3x4 f[-1]", 1},
        {"Pow", 13, "3x4 [2]", 1},
        {"Add", 13, "3x1x4 f1x5x1[2,2,2,2,2]", 1},
        {"Mul", 6, "3x4 4 | broadcast=1", 1},
        {"Add", 6, "2x3x4 3 | broadcast=1 axis=1", 1},
        {"PRelu", 6, "2x3x4 3", 1},
        {"Clip", 6, "3x4 | min=0.25 max=2", 1},
        {"Clip", 13, "3x4 f[0.5]", 1},
        {"Where", 13, "bool:3x4 3x4 f[0.5]", 1},
        {"DequantizeLinear", 13, "i8:3x4 f[0.1] i8:1", 1},
        {"DequantizeLinear", 13, "i8:3x4x2 4 i8:4 | axis=1", 1},
        {"DequantizeLinear", 13, "i8:3x4x2 scalar", 1},
        {"ms:DequantizeLinear", 1, "i8:3x4x2 4 i8:4 | axis=1", 1},
        {"QuantizeLinear", 13, "3x4 f[0.1] i8:1", 1},
        {"Concat", 13, "2x3x2 2x4x2 2x1x2 | axis=-2", 1},
        {"Resize", 13, "2x3x4x4 - f[1,1,2,2]", 1},
        {"Resize", 18, "2x3x4x4 - - [8,8] | axes=2,3", 1},
        {"Upsample", 9, "2x3x4x4 f[1,1,2,2]", 1},
        {"DepthToSpace", 13, "1x12x2x2 | blocksize=2 mode=CRD", 1},
        {"SpaceToDepth", 13, "2x3x4x4 | blocksize=2", 1},
        {"And", 13, "bool:3x4 bool:4", 1},
        {"Not", 13, "bool:3x4", 1},
        {"BitwiseXor", 18, "i32:3x4 i32:3x1", 1},
        {"BitShift", 13, "u8:3x4 u8:4 | direction=LEFT", 1},
        {"Less", 13, "3x4 4", 1},
        {"Cast", 13, "3x4 | to=11", 1},
        {"Cast", 13, "i32:3x4 | to=1", 1},
        {"CumSum", 14, "3x4x2 scalar[1]", 1},
        {"ArgMax", 13, "3x4x2 | axis=1 keepdims=0", 1},
        {"LSTM", 14, "2x3x4 1x12x4 1x12x3 1x24 - 1x3x3 1x3x3 | hidden_size=3 input_forget=1", 3},
        {"LSTM", 14, "3x2x4 1x12x4 1x12x3 1x24 - 3x1x3 3x1x3 | layout=1", 3},
        {"GRU", 14, "2x3x4 2x9x4 2x9x3 2x18 | hidden_size=3 direction=bidirectional", 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        (void)law_over(rows[i].op, rows[i].opset, rows[i].line, rows[i].n_out, rows[i].n_out);
    ck_assert_int_gt(law_over("Reshape", 13, "8x6 [2,4,3,2]", 1, 1), 20);
    ck_assert_int_gt(law_over("ReduceMean", 18, "3x5x4 [1]", 1, 1), 20);
    ck_assert_int_gt(law_over("Split", 13, "2x6x3 | axis=1", 2, 2), 20);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("links_law");
    TCase *t = tcase_create("links_law");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, cutting_equals_zeroing_over_the_whole_table);
    tcase_add_test(t, cutting_equals_zeroing_in_other_forms);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
