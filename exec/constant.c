/* constant.c - the contents of constants: read once, or, where fast kernels have copies in forms of
 * their own, only while these are made.
 *
 * Without a device all constants are read when the plan is made. With one they are read node by
 * node as kernels are chosen, and one whose uses are all packed is freed at once: weights are
 * hardly ever in memory twice. Another choice reads them again. Constants that only folded nodes
 * read (fold.c) go as well. */
#include <string.h>

#include "base/alloc.h"
#include "exec/plan_int.h"

/* Takes stored elements to where `ctx` says. */
struct landing {
    unsigned char *at;
    enum accel_dtype dtype;
};

static enum accel_err land(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    const struct landing *l = ctx;
    uint64_t before, size;
    if (!accel_dtype_size(l->dtype, first, &before) || !accel_dtype_size(l->dtype, count, &size))
        return accel_fail(ACCEL_ENOSUP, "its elements have no size");
    memcpy(l->at + before, elem, size);
    return ACCEL_OK;
}

/* A constant that was edited is used as it would be written. */
static enum accel_err load_edited(void *to, const struct accel_tensor *t)
{
    struct accel_buffer b;
    struct landing l = {to, t->dtype};
    ACCEL_TRY(accel_buffer_init(&b, 0));
    enum accel_err err = accel_tensor_stream(t, &b, land, &l);
    accel_buffer_clear(&b);
    return err;
}

/* The contents of a constant, stored elements, in a cell of its own. */
static enum accel_err load(struct accel_plan *p, struct accel_cell *c, const struct accel_tensor *t)
{
    if (c->a.data)
        return ACCEL_OK;
    ACCEL_TRY(accel_cell_resize(c, t->dtype, t->rank, t->dim));
    enum accel_err err =
        t->edit ? load_edited(c->a.data, t) : accel_tensor_read(t, 0, t->n, c->a.data);
    if (err) {
        c->a.data = NULL;
        return err;
    }
    if (p->opt.device && !p->nan_constant)
        p->nan_constant = accel_array_has_nan(&c->a);
    return ACCEL_OK;
}

static enum accel_err load_value(struct accel_plan *p, struct accel_frame *f,
                                 const struct accel_value *v)
{
    if (!v->tensor || v->tensor->dtype == ACCEL_STRING)
        return ACCEL_OK;
    enum accel_err err = load(p, &f->cell[v->index], v->tensor);
    return err ? accel_fail_in(err, "initializer '%.200s'", v->name) : ACCEL_OK;
}

enum accel_err accel_constant_load(struct accel_plan *p, const struct accel_value *v)
{
    return load_value(p, p->main, v);
}

static bool is_packed(const struct accel_plan *p, const struct accel_value *v)
{
    const struct accel_cell *c = &p->main->cell[v->index];
    return v->n_use && !v->is_output && c->n_packed + c->n_folded == v->n_use &&
           !(c->folded && accel_plan_shows(p, v));
}

static void unload(struct accel_cell *c)
{
    accel_free(c->own);
    c->own = NULL;
    c->own_size = 0;
    c->a.data = NULL;
}

void accel_constant_pack(struct accel_plan *p, const struct accel_value *v)
{
    struct accel_cell *c = &p->main->cell[v->index];
    c->n_packed++;
    if (is_packed(p, v))
        unload(c);
}

void accel_constants_trim(struct accel_plan *p)
{
    for (size_t i = 0; i < p->main->graph->n_value; i++) {
        const struct accel_value *v = p->main->graph->value[i];
        struct accel_cell *c = &p->main->cell[i];
        if ((v->tensor || c->folded) && c->own && is_packed(p, v))
            unload(c);
    }
}

void accel_constants_unpack(struct accel_plan *p)
{
    for (size_t i = 0; i < p->main->graph->n_value; i++)
        p->main->cell[i].n_packed = 0;
}

enum accel_err accel_frame_load(struct accel_plan *p, struct accel_frame *f)
{
    for (size_t i = 0; i < f->graph->n_value; i++)
        if (f != p->main || !is_packed(p, f->graph->value[i]))
            ACCEL_TRY(load_value(p, f, f->graph->value[i]));
    return ACCEL_OK;
}
