/* tape_value.c - values that are there before a step begins: constants, parameters, statistics, and
 * what nodes make of constants and sizes alone. */
#include <string.h>

#include "base/alloc.h"
#include "exec/tape_int.h"
#include "graph/tensor_values.h"

enum accel_err accel_tape_set_dims(struct accel_tape_cell *c, enum accel_dtype dtype, int rank,
                                   const int64_t *dim)
{
    int64_t n = 1;
    if (!ACCEL_GROW(c->dim, c->dim_cap, (size_t)rank + 1))
        return accel_fail_nomem();
    for (int i = 0; i < rank; i++) {
        c->dim[i] = dim[i];
        if (__builtin_mul_overflow(n, dim[i], &n) || n > INT64_MAX / 8)
            return accel_fail(ACCEL_ENOMEM, "a value is too large");
    }
    c->a = (struct accel_array){dtype, rank, c->dim, n, NULL};
    return ACCEL_OK;
}

#define PIECE 512

void accel_tape_widen(void *to, enum accel_dtype dtype, const void *from, int64_t n)
{
    double piece[PIECE];
    if (dtype == ACCEL_F32 || dtype == ACCEL_F64 || dtype == ACCEL_I64 || dtype == ACCEL_U64) {
        memcpy(to, from, (size_t)n * accel_tape_width(dtype));
        return;
    }
    if (accel_tape_wide(dtype) == ACCEL_I64) {
        accel_dtype_to_i64(dtype, from, 0, (size_t)n, to);
        return;
    }
    for (int64_t i = 0; i < n; i += PIECE) {
        size_t k = (size_t)(n - i < PIECE ? n - i : PIECE);
        accel_dtype_to_f64(dtype, from, (size_t)i, k, piece);
        for (size_t j = 0; j < k; j++)
            ((float *)to)[(size_t)i + j] = (float)piece[j];
    }
}

static enum accel_err own(struct accel_tape_cell *c, enum accel_dtype dtype)
{
    accel_free(c->own);
    c->own = accel_alloc_pages((size_t)c->a.n * accel_tape_width(dtype) + 64);
    if (!c->own)
        return accel_fail_nomem();
    c->a.data = c->own;
    return ACCEL_OK;
}

/* Stored elements with the tensor's edit applied, as float, double or int64_t. */
static enum accel_err read_wide(void *to, const struct accel_tensor *t)
{
    if (accel_tape_wide(t->dtype) == ACCEL_I64) {
        void *stored = accel_calloc(t->size + 1, 1);
        enum accel_err err = stored ? accel_tensor_read(t, 0, t->n, stored) : accel_fail_nomem();
        if (!err)
            accel_tape_widen(to, t->dtype, stored, (int64_t)t->n);
        accel_free(stored);
        return err;
    }
    double *v;
    ACCEL_TRY(accel_tensor_values(&v, t));
    if (t->dtype == ACCEL_F64)
        memcpy(to, v, (size_t)t->n * sizeof *v);
    for (uint64_t i = 0; t->dtype != ACCEL_F64 && i < t->n; i++)
        ((float *)to)[i] = (float)v[i];
    accel_free(v);
    return ACCEL_OK;
}

enum accel_err accel_tape_load(struct accel_tape *t, const struct accel_value *v)
{
    struct accel_tape_cell *c = &t->cell[v->index];
    const struct accel_tensor *from = v->tensor;
    if (accel_dtype_find((int)from->dtype)->cls == ACCEL_CLASS_OTHER)
        return accel_fail(ACCEL_ENOSUP, "initializer '%.200s' is %s", v->name,
                          accel_dtype_find((int)from->dtype)->name);
    ACCEL_TRY(accel_tape_set_dims(c, from->dtype, from->rank, from->dim));
    if (c->parameter >= 0) {
        size_t at = (size_t)t->flat.parameter[c->parameter].at * accel_tape_width(from->dtype);
        c->a.data = (char *)t->flat.weight + at;
        c->grad = (char *)t->flat.grad + at;
    } else {
        ACCEL_TRY(own(c, from->dtype));
    }
    c->is_static = c->parameter < 0 && !c->is_statistic;
    enum accel_err err = read_wide(c->a.data, from);
    return err ? accel_fail_in(err, "initializer '%.200s'", v->name) : ACCEL_OK;
}

/* The cell's dims for these inputs. */
static enum accel_err size_value(struct accel_tape *t, const struct accel_value *v)
{
    struct accel_tape_cell *c = &t->cell[v->index];
    if (v->shape.rank < 0 || v->dtype == ACCEL_UNDEFINED || !v->is_tensor ||
        accel_shape_count(&v->shape) < 0)
        return accel_fail(ACCEL_ENOSUP, "the size of '%.200s' is not known before it is computed",
                          v->name);
    if (accel_dtype_find((int)v->dtype)->cls == ACCEL_CLASS_OTHER)
        return accel_fail(ACCEL_ENOSUP, "'%.200s' is %s", v->name,
                          accel_dtype_find((int)v->dtype)->name);
    int64_t *dim = ACCEL_NEW(&t->arena, int64_t, v->shape.rank + 1);
    if (!dim)
        return accel_fail_nomem();
    for (int i = 0; i < v->shape.rank; i++)
        dim[i] = v->shape.dim[i].n;
    return accel_tape_set_dims(c, v->dtype, v->shape.rank, dim);
}

static bool depends_on_constants(struct accel_tape *t, const struct accel_node *n)
{
    if (!n->op || n->function || !n->op->forward || n->op->size ||
        n->op->flags & (ACCEL_OP_BODIES | ACCEL_OP_RANDOM))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && !t->cell[n->in[i]->index].is_static &&
            !(i == 0 && n->op->flags & ACCEL_OP_MEASURES))
            return false;
    return true;
}

/* As the kernel sees it: operators that only move elements are told the type they lie in. */
static struct accel_array shown(const struct accel_node *n, const struct accel_tape_cell *c)
{
    struct accel_array a = c->a;
    if (n->op->flags & ACCEL_OP_MOVES)
        a.dtype = accel_tape_wide(a.dtype);
    return a;
}

static enum accel_err run_static(struct accel_tape *t, struct accel_node *n)
{
    struct accel_array *x = ACCEL_NEW(&t->arena, struct accel_array, n->n_in + n->n_out + 2);
    if (!x)
        return accel_fail_nomem();
    struct accel_array *y = x + n->n_in + 1;
    for (int i = 0; i < n->n_in; i++)
        x[i] = n->in[i] ? shown(n, &t->cell[n->in[i]->index]) : (struct accel_array){0};
    for (int i = 0; i < n->n_out; i++) {
        y[i] = (struct accel_array){0};
        if (!n->out[i])
            continue;
        struct accel_tape_cell *c = &t->cell[n->out[i]->index];
        ACCEL_TRY(size_value(t, n->out[i]));
        ACCEL_TRY(own(c, c->a.dtype));
        c->is_static = true;
        y[i] = shown(n, c);
    }
    struct accel_call call = {.node = n, .x = x, .y = y};
    size_t need = n->op->scratch ? n->op->scratch(&call) : 0;
    if (need && !(call.scratch = accel_alloc_pages(need)))
        return accel_fail_nomem();
    enum accel_err err = n->op->forward(&call);
    accel_free(call.scratch);
    return err;
}

/* Forgets what was made for other sizes. */
static void forget(struct accel_tape *t)
{
    for (size_t i = 0; i < t->graph->n_value; i++) {
        struct accel_tape_cell *c = &t->cell[i];
        const struct accel_value *v = t->graph->value[i];
        if (v->tensor || !v->producer)
            continue;
        accel_free(c->own);
        c->own = NULL;
        c->is_static = false;
        c->a.data = NULL;
        c->grad = NULL;
    }
}

enum accel_err accel_tape_settle_values(struct accel_tape *t)
{
    forget(t);
    for (size_t i = 0; i < t->graph->n_node; i++) {
        struct accel_node *n = t->graph->node[i];
        enum accel_err err = ACCEL_OK;
        bool needed = false, constant = n->n_out == 1 && n->out[0] && n->out[0]->tensor;
        for (int k = 0; k < n->n_out; k++)
            needed = needed || (n->out[k] && t->cell[n->out[k]->index].needed);
        if (!needed || constant)
            continue;
        if (depends_on_constants(t, n))
            err = run_static(t, n);
        else
            for (int k = 0; !err && k < n->n_out; k++)
                if (n->out[k] && (k < 1 || t->cell[n->out[k]->index].needed ||
                                  accel_shape_count(&n->out[k]->shape) >= 0))
                    err = size_value(t, n->out[k]);
        if (err)
            return accel_fail_in(err, "node '%.200s' (%.100s)", n->label, n->op_type);
    }
    return ACCEL_OK;
}
