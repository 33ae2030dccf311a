/* frame.c - frames and cells: where the values of a graph are while it runs.
 *
 * Every graph that runs has a frame of its own, made when it first runs and kept, so that the turns
 * of a loop and the calls of a function find their memory again. */
#include <string.h>

#include "base/alloc.h"
#include "exec/plan_int.h"

enum accel_err accel_frame_new(struct accel_frame **out, struct accel_graph *g,
                               struct accel_frame *outer, const struct accel_node *holder)
{
    struct accel_frame *f = accel_calloc(1, sizeof *f);
    *out = NULL;
    if (!f)
        return accel_fail_nomem();
    f->cell = accel_calloc(g->n_value, sizeof *f->cell);
    if (!f->cell) {
        accel_free(f);
        return accel_fail_nomem();
    }
    f->graph = g;
    f->holder = holder;
    if (g->parent)
        f->outer = outer;
    else
        f->call = holder;
    if (outer) {
        f->next = outer->inner;
        outer->inner = f;
    }
    *out = f;
    return ACCEL_OK;
}

void accel_frame_free(struct accel_frame *f)
{
    while (f) {
        struct accel_frame *next = f->next;
        accel_frame_free(f->inner); /* as deep as graphs are nested, which the reader caps */
        for (size_t i = 0; i < f->graph->n_value; i++) {
            accel_free(f->cell[i].own);
            accel_free(f->cell[i].dim);
        }
        accel_free(f->cell);
        accel_free(f);
        f = next;
    }
}

struct accel_cell *accel_frame_cell(struct accel_frame *f, const struct accel_value *v)
{
    while (f && f->graph != v->graph)
        f = f->outer;
    return f ? &f->cell[v->index] : NULL;
}

enum accel_err accel_cell_resize(struct accel_cell *c, enum accel_dtype dtype, int rank,
                                 const int64_t *dim)
{
    uint64_t n = 1, size;
    for (int i = 0; i < rank; i++)
        if (dim[i] < 0 || __builtin_mul_overflow(n, (uint64_t)dim[i], &n))
            return accel_fail(ACCEL_ESHAPE, "a result is too large");
    if (n > INT64_MAX || !accel_dtype_size(dtype, n, &size))
        return accel_fail(ACCEL_ENOSUP, "values of type %s cannot be computed",
                          accel_dtype_find((int)dtype)->name);
    if (!ACCEL_GROW(c->dim, c->dim_cap, (size_t)rank + 1))
        return accel_fail_nomem();
    if (!c->own || c->own_size < size) {
        void *more = accel_alloc_pages(size + 64);
        if (!more)
            return accel_fail(ACCEL_ENOMEM, "no memory for a result of %llu bytes",
                              (unsigned long long)size);
        accel_free(c->own);
        c->own = more;
        c->own_size = size;
    }
    if (rank)
        memmove(c->dim, dim, (size_t)rank * sizeof *dim);
    c->a = (struct accel_array){dtype, rank, c->dim, (int64_t)n, c->own};
    c->fixed = false;
    return ACCEL_OK;
}

enum accel_err accel_cell_borrow(struct accel_cell *c, const struct accel_array *from)
{
    if (!ACCEL_GROW(c->dim, c->dim_cap, (size_t)from->rank + 1))
        return accel_fail_nomem();
    if (from->rank)
        memmove(c->dim, from->dim, (size_t)from->rank * sizeof *c->dim);
    c->a = *from;
    c->a.dim = c->dim;
    c->fixed = false;
    return ACCEL_OK;
}

enum accel_err accel_cell_copy(struct accel_cell *c, const struct accel_array *from)
{
    uint64_t size;
    ACCEL_TRY(accel_cell_resize(c, from->dtype, from->rank, from->dim));
    if (accel_dtype_size(from->dtype, (uint64_t)from->n, &size) && size)
        memmove(c->a.data, from->data, size);
    return ACCEL_OK;
}
