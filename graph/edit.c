/* Edits keep producers, uses and the model's list of tensors true at every step; the order of nodes
 * is mended once, in the end. */
#include "graph/edit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

static bool is_taken(const struct accel_model *m, const char *name)
{
    for (size_t i = 0; i < m->n_all_graph; i++)
        if (accel_map_find(&m->all_graph[i]->by_name, name))
            return true;
    return false;
}

static bool is_number_taken(const struct accel_model *m, char name[256], const char *hint,
                            unsigned i)
{
    snprintf(name, 256, "%.200s_cut%u", hint, i);
    return is_taken(m, name);
}

/* Numbers are taken from 1 on, so the first free one is found by halving: a constant that is copied
 * for each of many readers asks as often. */
enum accel_err accel_edit_value(struct accel_value **out, struct accel_graph *g, const char *hint)
{
    char name[256];
    unsigned taken = 0, free = 1;
    while (is_number_taken(g->model, name, hint, free)) {
        taken = free;
        free *= 2;
    }
    while (free - taken > 1) {
        unsigned mid = taken + (free - taken) / 2;
        if (is_number_taken(g->model, name, hint, mid))
            taken = mid;
        else
            free = mid;
    }
    snprintf(name, sizeof name, "%.200s_cut%u", hint, free);
    return accel_value_new(out, g, name);
}

enum accel_err accel_edit_constant(struct accel_value **out, struct accel_graph *g,
                                   const char *hint, enum accel_dtype dtype, int rank,
                                   const int64_t *dim, const void *elements)
{
    struct accel_arena *a = &g->model->arena;
    struct accel_tensor *t = ACCEL_NEW(a, struct accel_tensor, 1);
    int64_t *copy = ACCEL_NEW(a, int64_t, rank + 1);
    struct accel_dim *shape = ACCEL_NEW(a, struct accel_dim, rank + 1);
    struct accel_value *v;
    if (!t || !copy || !shape)
        return accel_fail_nomem();
    *t = (struct accel_tensor){.dtype = dtype, .rank = rank, .dim = copy, .n = 1, .changed = true};
    for (int i = 0; i < rank; i++) {
        copy[i] = dim[i];
        shape[i] = accel_dim_of(dim[i]);
        t->n *= (uint64_t)dim[i];
    }
    void *data =
        accel_dtype_size(dtype, t->n, &t->size) ? accel_arena_new(a, t->size + 1, 1) : NULL;
    if (!data)
        return accel_fail_nomem();
    memcpy(data, elements, t->size);
    t->data = data;
    ACCEL_TRY(accel_edit_value(&v, g, hint));
    t->name = v->name;
    v->tensor = t;
    v->dtype = dtype;
    v->shape = (struct accel_shape){rank, shape};
    ACCEL_TRY(accel_model_add_tensor(g->model, t));
    *out = v;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ what nobody reads */

static void remove_use(struct accel_value *v, const struct accel_node *n, int slot)
{
    for (size_t i = 0; i < v->n_use; i++)
        if (v->use[i].node == n && v->use[i].slot == slot) {
            memmove(&v->use[i], &v->use[i + 1], (v->n_use - i - 1) * sizeof *v->use);
            v->n_use--;
            return;
        }
}

static void drop_tensor(struct accel_value *v)
{
    accel_tensor_set_edit(v->tensor, NULL);
    v->tensor->dropped = true;
    v->tensor = NULL;
}

static bool is_read(const struct accel_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] && (n->out[i]->n_use || n->out[i]->is_output))
            return true;
    return false;
}

/* Drops v and what only it needed. Each turn takes one value off `list`; depth is no matter. */
static enum accel_err drop_unread(struct accel_value *v)
{
    struct accel_value **list = NULL;
    size_t n = 0, cap = 0;
    if (!ACCEL_GROW(list, cap, 1))
        return accel_fail_nomem();
    list[n++] = v;
    while (n) {
        struct accel_value *at = list[--n];
        struct accel_node *p = at->producer;
        if (at->n_use || at->is_output || at->dropped || (at->is_input && at->tensor))
            continue;
        if (p && is_read(p))
            continue;
        at->dropped = true;
        if (at->tensor)
            drop_tensor(at);
        if (!p || p->dropped)
            continue;
        p->dropped = true;
        for (int i = 0; i < p->n_out; i++)
            if (p->out[i])
                p->out[i]->dropped = true;
        if (!ACCEL_GROW(list, cap, n + (size_t)p->n_in)) {
            accel_free(list);
            return accel_fail_nomem();
        }
        for (int i = 0; i < p->n_in; i++)
            if (p->in[i]) {
                remove_use(p->in[i], p, i);
                list[n++] = p->in[i];
            }
    }
    accel_free(list);
    return ACCEL_OK;
}

enum accel_err accel_edit_input(struct accel_node *n, int slot, struct accel_value *v)
{
    struct accel_value *old = slot < n->n_in ? n->in[slot] : NULL;
    if (slot >= n->n_in) {
        struct accel_value **in =
            ACCEL_NEW(&n->graph->model->arena, struct accel_value *, slot + 1);
        if (!in)
            return accel_fail_nomem();
        memcpy(in, n->in, (size_t)n->n_in * sizeof *in);
        n->in = in;
        n->n_in = slot + 1;
    }
    if (v)
        ACCEL_TRY(accel_value_add_use(v, n, slot));
    n->in[slot] = v;
    n->changed = true;
    if (!old)
        return ACCEL_OK;
    remove_use(old, n, slot);
    return drop_unread(old);
}

enum accel_err accel_edit_output(struct accel_value **fresh, struct accel_value **old,
                                 struct accel_node *n, int slot)
{
    *old = n->out[slot];
    ACCEL_TRY(accel_edit_value(fresh, n->graph, (*old)->name));
    (*fresh)->dtype = (*old)->dtype;
    (*fresh)->shape = (*old)->shape;
    (*fresh)->producer = n;
    (*fresh)->producer_slot = slot;
    (*old)->producer = NULL;
    n->out[slot] = *fresh;
    n->changed = true;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ order */

static int by_place(const void *x, const void *y)
{
    const struct accel_edit_place *a = x, *b = y;
    if (a->before != b->before)
        return a->before < b->before ? -1 : 1;
    return (a->node->index > b->node->index) - (a->node->index < b->node->index);
}

enum accel_err accel_edit_settle(struct accel_graph *g, struct accel_edit_place *at, size_t n)
{
    size_t n_old = g->n_node - n, kept = 0, next = 0;
    struct accel_node **order = accel_calloc(g->n_node, sizeof(*order));
    if (!order)
        return accel_fail_nomem();
    if (n)
        qsort(at, n, sizeof *at, by_place);
    for (size_t i = 0; i <= n_old; i++) {
        for (; next < n && (size_t)at[next].before <= i; next++)
            if (!at[next].node->dropped)
                order[kept++] = at[next].node;
        if (i < n_old && !g->node[i]->dropped)
            order[kept++] = g->node[i];
    }
    struct accel_model *m = g->model;
    size_t n_tensor = 0;
    for (size_t i = 0; i < m->n_tensor; i++)
        if (!m->tensor[i]->dropped)
            m->tensor[n_tensor++] = m->tensor[i];
    m->n_tensor = n_tensor;
    memcpy(g->node, order, kept * sizeof(*order));
    g->n_node = kept;
    for (size_t i = 0; i < kept; i++)
        g->node[i]->index = (int)i;
    accel_free(order);
    return ACCEL_OK;
}
