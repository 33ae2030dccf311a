/* layout.c - one block for all values of known size.
 *
 * A value lives from the node that makes it to the last node of the main graph that reads it (a
 * body reads through the node that holds it); outputs live to the end. Values are placed largest
 * first, each at the lowest offset where it meets no placed value that lives at the same time.
 * Placed values are kept in the order of their offsets, so that one walk over those alive finds the
 * gap. */
#include <stdlib.h>

#include "base/alloc.h"
#include "exec/plan_int.h"

#define ALIGN ((uint64_t)64)

struct span {
    struct accel_cell *cell;
    uint64_t size;
    size_t from, to; /* indices of nodes, both included */
};

/* The node of the main graph in which a use happens. */
static size_t main_index(const struct accel_node *n)
{
    while (n->graph->parent)
        n = n->graph->parent_node;
    return (size_t)n->index;
}

static size_t last_use(const struct accel_value *v, size_t end)
{
    size_t to = v->producer ? (size_t)v->producer->index : 0;
    if (v->is_output)
        return end;
    for (size_t i = 0; i < v->n_use; i++) {
        size_t at = main_index(v->use[i].node);
        to = at > to ? at : to;
    }
    return to;
}

static int by_size(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* Sets the cell's dims for these inputs; false when a size stays unknown. */
static enum accel_err fix_dims(bool *known, struct accel_cell *c, const struct accel_value *v)
{
    int rank = v->shape.rank;
    int64_t n = accel_shape_count(&v->shape);
    uint64_t size;
    *known = rank >= 0 && n >= 0 && v->dtype != ACCEL_UNDEFINED && v->is_tensor &&
             accel_dtype_size(v->dtype, (uint64_t)n, &size);
    if (!*known)
        return ACCEL_OK;
    if (!ACCEL_GROW(c->dim, c->dim_cap, (size_t)rank + 1))
        return accel_fail_nomem();
    for (int i = 0; i < rank; i++)
        c->dim[i] = v->shape.dim[i].n;
    c->a = (struct accel_array){v->dtype, rank, c->dim, n, NULL};
    return ACCEL_OK;
}

/* The lowest free offset for s among the placed spans, which are sorted by offset. */
static size_t place(struct span *const *placed, size_t n, struct span *s)
{
    uint64_t at = 0;
    size_t where = 0;
    for (size_t i = 0; i < n; i++) {
        const struct span *o = placed[i];
        if (o->to < s->from || o->from > s->to)
            continue;
        if (o->cell->offset >= at + s->size)
            break;
        uint64_t end = o->cell->offset + o->size;
        at = end > at ? end : at;
    }
    s->cell->offset = at;
    while (where < n && placed[where]->cell->offset <= at)
        where++;
    return where;
}

static enum accel_err collect(struct span *span, size_t *n_span, struct accel_plan *p)
{
    struct accel_graph *g = p->model->graph;
    for (size_t i = 0; i < g->n_value; i++) {
        const struct accel_value *v = g->value[i];
        struct accel_cell *c = &p->main->cell[i];
        bool known;
        if (!v->producer || v->tensor)
            continue;
        c->fixed = false;
        c->a.data = NULL;
        ACCEL_TRY(fix_dims(&known, c, v));
        if (!known || c->hidden)
            continue;
        uint64_t size = 0;
        (void)accel_dtype_size(v->dtype, (uint64_t)c->a.n, &size);
        if (c->layout.kind == ACCEL_OPAQUE)
            size = c->layout.size;
        c->fixed = true;
        span[(*n_span)++] = (struct span){c, (size + ALIGN - 1) / ALIGN * ALIGN + ALIGN, c->made_at,
                                          last_use(v, g->n_node)};
    }
    return ACCEL_OK;
}

enum accel_err accel_plan_lay_out(struct accel_plan *p)
{
    size_t n = 0, count = p->model->graph->n_value;
    struct span *span = accel_calloc(count, sizeof *span);
    struct span **placed = accel_calloc(count, sizeof(struct span *));
    enum accel_err err = span && placed ? collect(span, &n, p) : accel_fail_nomem();
    uint64_t total = 0;
    if (err)
        goto done;
    qsort(span, n, sizeof *span, by_size);
    for (size_t i = 0; i < n; i++) {
        size_t where = place(placed, i, &span[i]);
        for (size_t k = i; k > where; k--)
            placed[k] = placed[k - 1];
        placed[where] = &span[i];
        uint64_t end = span[i].cell->offset + span[i].size;
        total = end > total ? end : total;
    }
    if (total > p->block_size) {
        accel_free(p->block);
        p->block_size = 0;
        p->block = accel_alloc_pages(total);
        if (!p->block) {
            err = accel_fail(ACCEL_ENOMEM, "no memory for the model's values, %llu bytes",
                             (unsigned long long)total);
            goto done;
        }
        p->block_size = total;
    }
    for (size_t i = 0; i < n; i++)
        span[i].cell->a.data = p->block + span[i].cell->offset;
done:
    accel_free(span);
    accel_free(placed);
    return err;
}
