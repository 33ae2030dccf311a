/* One pass over the nodes. An operator that only moves elements is run on the numbers of its
 * inputs' elements instead of their contents, so that no operator is known by name here: what comes
 * out says where each element came from. Shape itself is run on an array whose sizes are the
 * numbers of its axes. */
#include "graph/provenance.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/constprop.h"
#include "graph/links.h"

/* What one value's elements were read from. */
struct accel_axis_values {
    int64_t n; /* elements; 0: all have `all` */
    const struct accel_axis_set *all;
    const struct accel_axis_set **at; /* [n] */
    bool pinned;                      /* all of them, already */
};

enum { LONGEST_SET = 64 }; /* axes; a longer set is pinned and forgotten */

struct follow {
    struct accel_provenance *p;
    const struct accel_model *m;
    bool *pure;             /* [n_value] made of constants alone */
    struct accel_arena tmp; /* one node's arrays */
};

static struct accel_axis_values *of(const struct follow *f, const struct accel_value *v)
{
    return v && v->graph == f->m->graph ? &f->p->values[v->index] : NULL;
}

static bool has(const struct accel_axis_values *a)
{
    return a && (a->n || a->all);
}

bool accel_provenance_any(const struct accel_provenance *p, const struct accel_value *v)
{
    return v && v->graph == v->graph->model->graph && has(&p->values[v->index]);
}

const struct accel_axis_set *accel_provenance_of(const struct accel_provenance *p,
                                                 const struct accel_value *v, int64_t i)
{
    if (!accel_provenance_any(p, v))
        return NULL;
    const struct accel_axis_values *a = &p->values[v->index];
    return !a->n ? a->all : i >= 0 && i < a->n ? a->at[i] : NULL;
}

/* ------------------------------------------------------------------ sets */

static int ref_order(const struct accel_axis_ref *a, const struct accel_axis_ref *b)
{
    if (a->value != b->value)
        return a->value->index < b->value->index ? -1 : 1;
    return (a->axis > b->axis) - (a->axis < b->axis);
}

static enum accel_err pin(struct follow *f, struct accel_axis_ref axis, const struct accel_node *n)
{
    struct accel_provenance *p = f->p;
    if (!ACCEL_GROW(p->pin, p->pin_cap, p->n_pin + 1))
        return accel_fail_nomem();
    p->pin[p->n_pin++] = (struct accel_pin){axis, n};
    return ACCEL_OK;
}

static enum accel_err pin_set(struct follow *f, const struct accel_axis_set *s,
                              const struct accel_node *n)
{
    for (size_t i = 0; s && i < s->n; i++)
        ACCEL_TRY(pin(f, s->at[i], n));
    return ACCEL_OK;
}

static enum accel_err pin_values(struct follow *f, struct accel_axis_values *a,
                                 const struct accel_node *n)
{
    const struct accel_axis_set *last = NULL;
    if (a->pinned)
        return ACCEL_OK;
    a->pinned = true;
    ACCEL_TRY(pin_set(f, a->all, n));
    for (int64_t i = 0; i < a->n; i++) {
        if (a->at[i] != last)
            ACCEL_TRY(pin_set(f, a->at[i], n));
        last = a->at[i];
    }
    return ACCEL_OK;
}

static bool is_subset(const struct accel_axis_set *s, const struct accel_axis_set *of)
{
    size_t i = 0;
    for (size_t k = 0; i < s->n && k < of->n; k++)
        i += ref_order(&s->at[i], &of->at[k]) == 0;
    return i == s->n;
}

/* *to becomes the union of *to and s. Nothing is allocated when it does not grow: long vectors are
 * joined element by element. */
static enum accel_err join(const struct accel_axis_set **to, struct follow *f,
                           const struct accel_axis_set *s, const struct accel_node *n)
{
    const struct accel_axis_set *a = *to;
    if (!s || s == a || (a && is_subset(s, a)))
        return ACCEL_OK;
    if (!a || is_subset(a, s)) {
        *to = s;
        return ACCEL_OK;
    }
    struct accel_axis_set *u = ACCEL_NEW(&f->p->arena, struct accel_axis_set, 1);
    struct accel_axis_ref *at = ACCEL_NEW(&f->p->arena, struct accel_axis_ref, a->n + s->n);
    if (!u || !at)
        return accel_fail_nomem();
    size_t i = 0, k = 0;
    while (i < a->n || k < s->n) {
        int order = i == a->n ? 1 : k == s->n ? -1 : ref_order(&a->at[i], &s->at[k]);
        at[u->n++] = order <= 0 ? a->at[i] : s->at[k];
        i += order <= 0;
        k += order >= 0;
    }
    u->at = at;
    *to = u;
    if (u->n <= LONGEST_SET)
        return ACCEL_OK;
    *to = NULL;
    return pin_set(f, u, n);
}

static enum accel_err single(const struct accel_axis_set **out, struct follow *f,
                             const struct accel_value *v, int axis)
{
    struct accel_axis_set *s = ACCEL_NEW(&f->p->arena, struct accel_axis_set, 1);
    struct accel_axis_ref *at = ACCEL_NEW(&f->p->arena, struct accel_axis_ref, 1);
    if (!s || !at)
        return accel_fail_nomem();
    *at = (struct accel_axis_ref){v, axis};
    *s = (struct accel_axis_set){1, at};
    *out = s;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ running a kernel on numbers */

/* Dims of a value at the trial that links are asked with; false: unknown, or too many elements. */
static bool probe_dims(struct accel_array *a, struct follow *f, const struct accel_value *v)
{
    int rank = v->shape.rank;
    int64_t *dim = rank < 0 ? NULL : ACCEL_NEW(&f->tmp, int64_t, rank + 1);
    if (!dim)
        return false;
    *a = (struct accel_array){.dtype = ACCEL_I64, .rank = rank, .dim = dim, .n = 1};
    for (int i = 0; i < rank; i++) {
        dim[i] = accel_dim_probe(v->shape.dim[i], &f->m->symbols, ACCEL_LINKS_PROBE);
        if (dim[i] < 0 || __builtin_mul_overflow(a->n, dim[i], &a->n) || a->n > ACCEL_KNOWN_MAX)
            return false;
    }
    a->data = ACCEL_NEW(&f->tmp, int64_t, a->n + 1);
    return a->data != NULL;
}

static enum accel_err call(struct follow *f, struct accel_node *n, struct accel_array *x,
                           struct accel_array *y)
{
    struct accel_call c = {.node = n, .x = x, .y = y};
    size_t size = n->op->scratch ? n->op->scratch(&c) : 0;
    if (size && !(c.scratch = accel_arena_new(&f->tmp, size, 1)))
        return accel_fail_nomem();
    return n->op->forward(&c);
}

/* Sizes of axes: the kernel reads nothing else. Two runs with other numbers tell a size from
 * something computed of several. */
static enum accel_err measure(struct follow *f, struct accel_node *n)
{
    enum { FIRST = 1000003, SECOND = 7000003 };
    const struct accel_value *v = n->in[0];
    struct accel_axis_values *to = of(f, n->out[0]);
    int rank = v ? v->shape.rank : -1;
    if (!to || rank < 1)
        return ACCEL_OK;
    struct accel_array x[2] = {{.rank = rank}, {.rank = rank}}, y[2];
    for (int r = 0; r < 2; r++) {
        int64_t *dim = ACCEL_NEW(&f->tmp, int64_t, rank);
        if (!dim)
            return accel_fail_nomem();
        for (int i = 0; i < rank; i++)
            dim[i] = (r ? SECOND : FIRST) + i;
        x[r].dim = dim;
        if (!probe_dims(&y[r], f, n->out[0]) || call(f, n, &x[r], &y[r]))
            y[r].n = -1;
    }
    if (y[0].n < 1) { /* its own shape is not known: every axis may be in it */
        for (int i = 0; i < rank; i++) {
            const struct accel_axis_set *s;
            ACCEL_TRY(single(&s, f, v, i));
            ACCEL_TRY(join(&to->all, f, s, n));
        }
        return ACCEL_OK;
    }
    to->n = y[0].n;
    to->at = ACCEL_NEW(&f->p->arena, const struct accel_axis_set *, to->n);
    if (!to->at)
        return accel_fail_nomem();
    for (int64_t e = 0; e < to->n; e++) {
        int64_t a = ((int64_t *)y[0].data)[e] - FIRST, b = ((int64_t *)y[1].data)[e] - SECOND;
        for (int i = 0; i < rank; i++) {
            const struct accel_axis_set *s;
            if (a == b && a != i)
                continue;
            ACCEL_TRY(single(&s, f, v, i));
            ACCEL_TRY(join(&to->at[e], f, s, n));
        }
    }
    return ACCEL_OK;
}

static bool is_data(const struct accel_op *op, int slot)
{
    return op->flags & ACCEL_OP_VARIADIC ||
           (slot < 32 && (op->data_slots ? op->data_slots : 1u) >> slot & 1);
}

/* Fills an input of a moving kernel: numbers of its elements, `set` growing by what they stand for;
 * or the contents of an index. */
static bool load(struct follow *f, struct accel_array *a, const struct accel_node *n, int slot,
                 const struct accel_axis_set ***set, size_t *n_set, size_t *cap)
{
    struct accel_value *v = n->in[slot];
    int64_t *to;
    if (!v)
        return true;
    if (!probe_dims(a, f, v))
        return false;
    to = a->data;
    if (!is_data(n->op, slot)) {
        const struct accel_known *k = accel_known_get(v);
        if (!k || k->real || k->n != a->n)
            return false;
        memcpy(to, k->probe[ACCEL_LINKS_PROBE], (size_t)k->n * sizeof *to);
        return true;
    }
    if (!ACCEL_GROW(*set, *cap, *n_set + (size_t)a->n + 1))
        return false;
    for (int64_t i = 0; i < a->n; i++) {
        (*set)[*n_set] = accel_provenance_of(f->p, v, i);
        to[i] = (int64_t)++ * n_set; /* 0 is for what the kernel fills in */
    }
    return true;
}

/* Elements are only moved; false: it cannot be told how. */
static bool move(struct follow *f, struct accel_node *n)
{
    const struct accel_axis_set **set = NULL;
    size_t n_set = 0, cap = 0;
    struct accel_axis_values *to = n->n_out == 1 ? of(f, n->out[0]) : NULL;
    struct accel_array *x = ACCEL_NEW(&f->tmp, struct accel_array, n->n_in + 1), y;
    bool good = to && x && n->op->forward && n->op->flags & ACCEL_OP_MOVES &&
                !(n->op->flags & ACCEL_OP_MEASURES) && probe_dims(&y, f, n->out[0]);
    for (int i = 0; good && i < n->n_in; i++)
        good = load(f, &x[i], n, i, &set, &n_set, &cap);
    good = good && call(f, n, x, &y) == ACCEL_OK;
    if (good && y.n > 0)
        to->at = ACCEL_NEW(&f->p->arena, const struct accel_axis_set *, y.n);
    good = good && (!y.n || to->at);
    for (int64_t i = 0; good && i < y.n; i++) {
        int64_t from = ((int64_t *)y.data)[i];
        to->at[i] = from > 0 && from <= (int64_t)n_set ? set[from - 1] : NULL;
    }
    if (good)
        to->n = y.n;
    accel_free(set);
    return good;
}

/* ------------------------------------------------------------------ nodes */

/* One element in, one element out. */
static bool is_pointwise(const struct accel_node *n)
{
    return n->op->carry && n->n_in == 1 && n->n_out == 1 && n->in[0] && n->out[0] &&
           accel_shape_count(&n->in[0]->shape) == accel_shape_count(&n->out[0]->shape);
}

static enum accel_err compute(struct follow *f, struct accel_node *n)
{
    const struct accel_axis_set *all = NULL;
    for (int s = 0; s < n->n_in; s++) {
        const struct accel_axis_values *a = of(f, n->in[s]);
        if (!has(a))
            continue;
        ACCEL_TRY(join(&all, f, a->all, n));
        for (int64_t i = 0; i < a->n; i++)
            ACCEL_TRY(join(&all, f, a->at[i], n));
    }
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i])
            f->p->values[n->out[i]->index].all = all;
    return ACCEL_OK;
}

/* Whether numbers end here as data: they meet an activation, or nobody can say what becomes of
 * them. */
static bool ends_as_data(const struct follow *f, const struct accel_node *n)
{
    if (!n->op || !n->op->links || n->function || n->op->flags & ACCEL_OP_BODIES)
        return true;
    for (int s = 0; s < n->n_in; s++) {
        const struct accel_value *v = n->in[s];
        bool size = s < 32 && n->op->sizes >> s & 1;
        if (v && !size && !has(of(f, v)) && !(v->graph == f->m->graph && f->pure[v->index]))
            return true;
    }
    return false;
}

/* All numbers go into size inputs. */
static bool ends_as_size(const struct follow *f, const struct accel_node *n)
{
    for (int s = 0; s < n->n_in; s++)
        if (has(of(f, n->in[s])) && !(n->op && s < 32 && n->op->sizes >> s & 1))
            return false;
    return true;
}

static bool is_pure(const struct follow *f, const struct accel_node *n)
{
    bool pure = n->op && !(n->op->flags & (ACCEL_OP_RANDOM | ACCEL_OP_BODIES)) && !n->function;
    for (int s = 0; pure && s < n->n_in; s++)
        pure = !n->in[s] || (n->in[s]->graph == f->m->graph && f->pure[n->in[s]->index]);
    return pure;
}

static enum accel_err visit(struct follow *f, struct accel_node *n)
{
    bool any = false;
    if (is_pure(f, n))
        for (int i = 0; i < n->n_out; i++)
            if (n->out[i])
                f->pure[n->out[i]->index] = true;
    if (n->op && n->op->flags & ACCEL_OP_MEASURES && n->n_in && n->n_out && n->out[0])
        return measure(f, n);
    for (int s = 0; s < n->n_in; s++)
        any = any || has(of(f, n->in[s]));
    if (!any || ends_as_size(f, n))
        return ACCEL_OK;
    if (ends_as_data(f, n)) {
        for (int s = 0; s < n->n_in; s++)
            if (has(of(f, n->in[s])))
                ACCEL_TRY(pin_values(f, of(f, n->in[s]), n));
        return ACCEL_OK;
    }
    if (is_pointwise(n)) {
        *of(f, n->out[0]) = *of(f, n->in[0]);
        return ACCEL_OK;
    }
    return move(f, n) ? ACCEL_OK : compute(f, n);
}

/* Bodies and graph outputs see numbers as data. */
static enum accel_err pin_seen(struct follow *f)
{
    const struct accel_graph *g = f->m->graph;
    for (size_t i = 0; i < g->n_value; i++) {
        const struct accel_value *v = g->value[i];
        if (!has(of(f, v)))
            continue;
        if (v->is_output)
            ACCEL_TRY(pin_values(f, of(f, v), NULL));
        for (size_t u = 0; u < v->n_use; u++)
            if (v->use[u].node->graph != g)
                ACCEL_TRY(pin_values(f, of(f, v), v->use[u].node));
    }
    return ACCEL_OK;
}

enum accel_err accel_provenance_build(struct accel_provenance **out, const struct accel_model *m)
{
    const struct accel_graph *g = m->graph;
    struct follow f = {.m = m, .p = accel_calloc(1, sizeof *f.p)};
    enum accel_err err = ACCEL_OK;
    if (!f.p)
        return accel_fail_nomem();
    f.p->values = accel_calloc(g->n_value, sizeof *f.p->values);
    f.pure = accel_calloc(g->n_value, sizeof *f.pure);
    if (!f.p->values || !f.pure)
        err = accel_fail_nomem();
    for (size_t i = 0; !err && i < g->n_value; i++)
        f.pure[i] = g->value[i]->tensor != NULL;
    for (size_t i = 0; !err && i < g->n_node; i++) {
        struct accel_arena_mark mark = accel_arena_mark(&f.tmp);
        err = visit(&f, g->node[i]);
        accel_arena_rewind(&f.tmp, mark);
    }
    if (!err)
        err = pin_seen(&f);
    accel_arena_clear(&f.tmp);
    accel_free(f.pure);
    if (err)
        accel_provenance_free(f.p);
    else
        *out = f.p;
    return err;
}

void accel_provenance_free(struct accel_provenance *p)
{
    if (!p)
        return;
    accel_free(p->pin);
    accel_free(p->values);
    accel_arena_clear(&p->arena);
    accel_free(p);
}
