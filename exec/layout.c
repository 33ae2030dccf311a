/* layout.c - one block for all values of known size.
 *
 * A value lives from the node that makes it to the last node of the main graph that reads it (a
 * body reads through the node that holds it); outputs live to the end. Where it lies is span.c's
 * work.
 *
 * A view (the operator's results are its first input's bytes, as of Reshape) has no place of its
 * own: it lies where its input lies, which then lives as long as its last view. Nothing writes into
 * a value once it is made, so sharing is safe. */
#include "base/alloc.h"
#include "exec/plan_int.h"
#include "exec/span.h"

/* The node of the main graph in which a use happens. */
static size_t main_index(const struct accel_node *n)
{
    while (n->graph->parent)
        n = n->graph->parent_node;
    return (size_t)n->index;
}

static size_t last_use(const struct accel_value *v, const struct accel_cell *c, size_t end)
{
    size_t to = v->producer ? (size_t)v->producer->index : 0;
    to = c->last_read > to ? c->last_read : to;
    if (v->is_output)
        return end;
    for (size_t i = 0; i < v->n_use; i++) {
        size_t at = main_index(v->use[i].node);
        to = at > to ? at : to;
    }
    return to;
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

/* Its results are made in other frames and copied into memory of their own. */
static bool is_run_apart(const struct accel_node *n)
{
    return !n->op || n->function || n->op->flags & ACCEL_OP_BODIES;
}

/* The value in the block, in row-major order, that v is a view of; NULL: none. */
static struct accel_cell *find_view(struct accel_plan *p, const struct accel_value *v,
                                    uint64_t size)
{
    const struct accel_node *n = v->producer;
    uint64_t from;
    if (!(n->op->flags & ACCEL_OP_VIEWS) || v != n->out[0] || !n->in[0] ||
        n->in[0]->graph != p->main->graph)
        return NULL;
    struct accel_cell *c = &p->main->cell[n->in[0]->index];
    if (!c->fixed || c->folded || c->layout.kind != ACCEL_ROW_MAJOR ||
        !accel_dtype_size(c->a.dtype, (uint64_t)c->a.n, &from) || from != size)
        return NULL;
    return c->view_of ? c->view_of : c;
}

static enum accel_err lay_value(struct accel_span *span, size_t *n_span, struct accel_plan *p,
                                const struct accel_value *v)
{
    struct accel_cell *c = &p->main->cell[v->index];
    uint64_t size = 0;
    bool known;
    if (v->tensor || c->folded)
        return ACCEL_OK;
    c->fixed = false;
    c->a.data = NULL;
    c->view_of = NULL;
    ACCEL_TRY(fix_dims(&known, c, v));
    if (!known || c->hidden || is_run_apart(v->producer))
        return ACCEL_OK;
    (void)accel_dtype_size(v->dtype, (uint64_t)c->a.n, &size);
    c->fixed = true;
    size_t to = last_use(v, c, p->main->graph->n_node);
    c->view_of = find_view(p, v, size);
    if (c->view_of) {
        struct accel_span *of = &span[c->view_of->span];
        of->to = to > of->to ? to : of->to;
        return ACCEL_OK;
    }
    if (c->layout.kind == ACCEL_OPAQUE)
        size = c->layout.size;
    if (size > INT64_MAX)
        return accel_fail(ACCEL_ENOMEM, "value '%.200s' is too large", v->name);
    size = (size + ACCEL_SPAN_ALIGN - 1) / ACCEL_SPAN_ALIGN * ACCEL_SPAN_ALIGN;
    c->span = *n_span;
    span[(*n_span)++] = (struct accel_span){
        .size = size + ACCEL_SPAN_ALIGN, .from = c->made_at, .to = to, .owner = c};
    return ACCEL_OK;
}

/* Values in the order of their nodes, so that what is viewed comes before its views. */
static enum accel_err collect(struct accel_span *span, size_t *n_span, struct accel_plan *p)
{
    const struct accel_graph *g = p->main->graph;
    for (size_t i = 0; i < g->n_node; i++)
        for (int k = 0; k < g->node[i]->n_out; k++)
            if (g->node[i]->out[k])
                ACCEL_TRY(lay_value(span, n_span, p, g->node[i]->out[k]));
    return ACCEL_OK;
}

/* Points the cells into the block. */
static void point(struct accel_plan *p, const struct accel_span *span, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct accel_cell *c = span[i].owner;
        c->a.data = p->block + span[i].offset;
    }
    for (size_t i = 0; i < p->main->graph->n_value; i++) {
        struct accel_cell *c = &p->main->cell[i];
        if (c->fixed && c->view_of)
            c->a.data = c->view_of->a.data;
    }
}

enum accel_err accel_plan_lay_out(struct accel_plan *p)
{
    size_t n = 0;
    uint64_t total = 0;
    struct accel_span *span = accel_calloc(p->model->graph->n_value, sizeof *span);
    enum accel_err err = span ? collect(span, &n, p) : accel_fail_nomem();
    if (!err)
        err = accel_spans_place(&total, span, n);
    if (!err && total > p->block_size) {
        accel_free(p->block);
        p->block_size = 0;
        p->block = accel_alloc_pages(total);
        err = p->block ? ACCEL_OK
                       : accel_fail(ACCEL_ENOMEM, "no memory for the model's values, %llu bytes",
                                    (unsigned long long)total);
        p->block_size = err ? 0 : total;
    }
    if (!err)
        point(p, span, n);
    accel_free(span);
    return err;
}
