/* bodies.c - what an operator with bodies (If, Loop, Scan) may ask for: run one, keep a value
 * between turns, set or grow an output. The operator knows what a turn is, the runner where values
 * lie. */
#include "exec/bodies.h"

#include <string.h>

#include "base/alloc.h"

struct bodies {
    struct accel_bodies face;
    struct accel_plan *plan;
    struct accel_frame *frame;
    const struct accel_node *node;
    struct accel_array *out; /* results of the last body */
    size_t out_cap;
    struct accel_cell **kept; /* by key; a cell stays where it is */
    size_t n_kept, kept_cap;
    int64_t *dim;
    size_t dim_cap;
};

static enum accel_err body_run(struct accel_bodies *face, struct accel_graph *g,
                               const struct accel_array *const *in, size_t n_in,
                               const struct accel_array **out)
{
    struct bodies *b = (struct bodies *)face;
    struct accel_frame *f;
    ACCEL_TRY(accel_frame_below(&f, b->plan, b->frame, g, b->node));
    for (size_t i = 0; i < n_in && i < g->n_input; i++)
        if (in[i])
            ACCEL_TRY(accel_cell_copy(&f->cell[g->input[i]->index], in[i]));
    ACCEL_TRY(accel_frame_run(b->plan, f));
    if (!ACCEL_GROW(b->out, b->out_cap, g->n_output + 1))
        return accel_fail_nomem();
    for (size_t i = 0; i < g->n_output; i++) {
        const struct accel_cell *c = accel_frame_cell(f, g->output[i]);
        if (!c || !c->a.data)
            return accel_fail(ACCEL_ENOSUP, "output '%.200s' of a body has no value",
                              g->output[i]->name);
        b->out[i] = c->a;
    }
    *out = b->out;
    return ACCEL_OK;
}

static struct accel_cell *output_cell(struct bodies *b, int slot)
{
    return slot < b->node->n_out && b->node->out[slot] ? &b->frame->cell[b->node->out[slot]->index]
                                                       : NULL;
}

static enum accel_err body_set(struct accel_bodies *face, int slot, const struct accel_array *from)
{
    struct accel_cell *c = output_cell((struct bodies *)face, slot);
    return c ? accel_cell_copy(c, from) : ACCEL_OK;
}

/* Grows by doubling: a loop appends in linear time. */
static enum accel_err body_append(struct accel_bodies *face, int slot,
                                  const struct accel_array *from)
{
    struct bodies *b = (struct bodies *)face;
    struct accel_cell *c = output_cell(b, slot);
    uint64_t step = 0, have = 0;
    if (!c)
        return ACCEL_OK;
    if (!ACCEL_GROW(b->dim, b->dim_cap, (size_t)from->rank + 1))
        return accel_fail_nomem();
    bool first =
        c->a.rank != from->rank + 1 || !c->a.data || c->a.dtype != from->dtype || c->dim[0] == 0;
    b->dim[0] = first ? 1 : c->dim[0] + 1;
    for (int i = 0; i < from->rank; i++) {
        b->dim[i + 1] = from->dim[i];
        if (!first && c->dim[i + 1] != from->dim[i])
            return accel_fail(ACCEL_ESHAPE, "output %d gets entries of size %lld and %lld", slot,
                              (long long)c->dim[i + 1], (long long)from->dim[i]);
    }
    if (!accel_dtype_size(from->dtype, (uint64_t)from->n, &step))
        return accel_fail(ACCEL_ENOSUP, "output %d cannot be collected", slot);
    have = step * (uint64_t)(b->dim[0] - 1);
    if (!c->own || c->own_size < have + step) {
        void *more = accel_alloc_pages(2 * (have + step) + 64);
        if (!more)
            return accel_fail_nomem();
        if (have)
            memcpy(more, c->a.data, have);
        accel_free(c->own);
        c->own = more;
        c->own_size = 2 * (have + step);
    }
    ACCEL_TRY(accel_cell_resize(c, from->dtype, from->rank + 1, b->dim));
    if (step)
        memcpy((char *)c->a.data + have, from->data, step);
    return ACCEL_OK;
}

static enum accel_err body_collected(struct accel_bodies *face, int slot,
                                     const struct accel_array **all)
{
    struct accel_cell *c = output_cell((struct bodies *)face, slot);
    *all = c && c->a.data ? &c->a : NULL;
    return ACCEL_OK;
}

static enum accel_err body_keep(struct accel_bodies *face, size_t key,
                                const struct accel_array *from, const struct accel_array **kept)
{
    struct bodies *b = (struct bodies *)face;
    if (!ACCEL_GROW(b->kept, b->kept_cap, key + 1))
        return accel_fail_nomem();
    for (; b->n_kept <= key; b->n_kept++) {
        b->kept[b->n_kept] = accel_calloc(1, sizeof **b->kept);
        if (!b->kept[b->n_kept])
            return accel_fail_nomem();
    }
    ACCEL_TRY(accel_cell_copy(b->kept[key], from));
    *kept = &b->kept[key]->a;
    return ACCEL_OK;
}

static enum accel_err body_turn(struct accel_bodies *face)
{
    struct accel_plan *p = ((struct bodies *)face)->plan;
    if (++p->steps > p->opt.max_steps)
        return accel_fail(ACCEL_EMODEL, "more than %lld turns", (long long)p->opt.max_steps);
    return ACCEL_OK;
}

enum accel_err accel_bodies_run(struct accel_plan *p, struct accel_frame *f,
                                struct accel_call *call)
{
    struct bodies b = {{body_run, body_set, body_append, body_collected, body_keep, body_turn},
                       p,
                       f,
                       call->node,
                       .out = NULL};
    call->bodies = &b.face;
    for (int i = 0; i < call->node->n_out; i++) /* collected outputs begin empty */
        if (call->node->out[i]) {
            struct accel_cell *c = &f->cell[call->node->out[i]->index];
            c->a.data = NULL;
            c->fixed = false;
        }
    enum accel_err err = call->node->op->forward(call);
    for (size_t i = 0; i < b.n_kept; i++) {
        accel_free(b.kept[i]->own);
        accel_free(b.kept[i]->dim);
        accel_free(b.kept[i]);
    }
    accel_free(b.kept);
    accel_free(b.out);
    accel_free(b.dim);
    return err;
}
