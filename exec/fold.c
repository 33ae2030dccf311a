/* fold.c - nodes that read constants only run once, when shapes are settled; their results are
 * constants from then on, in memory of their own, which fast kernels may pack. The file keeps its
 * nodes.
 *
 * A result much larger than what it is made from (a mask out of one number) is not kept: in the
 * block its place serves others. */
#include "base/alloc.h"
#include "exec/plan_int.h"

enum { GROWTH = 8, SMALL = 65536 };

static bool is_constant(const struct accel_plan *p, const struct accel_value *v)
{
    return v->graph == p->main->graph &&
           (v->tensor ? v->tensor->dtype != ACCEL_STRING : p->main->cell[v->index].folded);
}

/* Bytes of a value of known size; false: unknown. */
static bool size_of(uint64_t *size, const struct accel_value *v)
{
    int64_t n = accel_shape_count(&v->shape);
    return v->is_tensor && v->dtype != ACCEL_UNDEFINED && n >= 0 &&
           accel_dtype_size(v->dtype, (uint64_t)n, size) && *size <= INT64_MAX;
}

static bool is_foldable(const struct accel_plan *p, const struct accel_node *n)
{
    uint64_t in = 0, out = 0, size;
    bool reads = false, makes = false;
    if (!n->op || n->function || !n->op->forward || n->op->size ||
        n->op->flags & (ACCEL_OP_BODIES | ACCEL_OP_RANDOM))
        return false;
    for (int i = 0; i < n->n_in; i++) {
        const struct accel_value *v = n->in[i];
        if (!v)
            continue;
        if (!is_constant(p, v) || !size_of(&size, v))
            return false;
        reads = true;
        in += size < INT64_MAX / ACCEL_MAX_IO / GROWTH ? size : INT64_MAX / ACCEL_MAX_IO / GROWTH;
    }
    for (int i = 0; i < n->n_out; i++) {
        const struct accel_value *v = n->out[i];
        if (!v)
            continue;
        if (v->tensor || !size_of(&size, v) || __builtin_add_overflow(out, size, &out))
            return false;
        makes = true;
    }
    return reads && makes && n->n_in <= ACCEL_MAX_IO && out <= GROWTH * in + SMALL;
}

static enum accel_err give_memory(struct accel_plan *p, const struct accel_value *v)
{
    struct accel_cell *c = &p->main->cell[v->index];
    int64_t dim[64];
    if (v->shape.rank > 64)
        return accel_fail(ACCEL_ENOSUP, "output '%.200s' has rank %d", v->name, v->shape.rank);
    for (int i = 0; i < v->shape.rank; i++)
        dim[i] = v->shape.dim[i].n;
    ACCEL_TRY(accel_cell_resize(c, v->dtype, v->shape.rank, dim));
    c->folded = c->fixed = true;
    c->view_of = NULL;
    return ACCEL_OK;
}

static enum accel_err run_once(struct accel_plan *p, struct accel_node *n)
{
    bool there = true;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            const struct accel_cell *c = &p->main->cell[n->out[i]->index];
            there = there && c->folded && c->a.data;
        }
    if (there)
        return ACCEL_OK;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i]->tensor)
            ACCEL_TRY(accel_constant_load(p, n->in[i]));
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i])
            ACCEL_TRY(give_memory(p, n->out[i]));
    enum accel_err err = accel_node_run(p, p->main, n);
    for (int i = 0; err && i < n->n_out; i++)
        if (n->out[i])
            p->main->cell[n->out[i]->index].folded = false;
    return err;
}

enum accel_err accel_plan_fold(struct accel_plan *p)
{
    const struct accel_graph *g = p->main->graph;
    for (size_t i = 0; i < g->n_value; i++)
        p->main->cell[i].n_folded = 0;
    for (size_t i = 0; i < p->n_run; i++) {
        struct accel_node *n = g->node[i];
        if (!is_foldable(p, n))
            continue;
        ACCEL_TRY(run_once(p, n));
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k])
                p->main->cell[n->in[k]->index].n_folded++;
    }
    return ACCEL_OK;
}

bool accel_node_is_folded(const struct accel_plan *p, const struct accel_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i])
            return p->main->cell[n->out[i]->index].folded;
    return false;
}

void accel_plan_unfold(struct accel_plan *p)
{
    for (size_t i = 0; i < p->main->graph->n_value; i++)
        if (p->main->cell[i].folded) {
            p->main->cell[i].folded = p->main->cell[i].fixed = false;
            p->main->cell[i].a.data = NULL;
        }
}
