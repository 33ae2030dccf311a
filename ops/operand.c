/* How infer functions see operands: dims that may be unknown everywhere, and the few rules by which
 * they meet. Nothing here fails for an unknown: only two numbers can contradict each other. */
#include "ops/operand.h"

#include <string.h>

struct accel_dim accel_operand_dim(const struct accel_node *n, int i, int axis)
{
    const struct accel_value *v = accel_operand(n, i);
    if (!v || v->shape.rank < 0)
        return accel_dim_unknown();
    if (axis < 0)
        axis += v->shape.rank;
    if (axis < 0 || axis >= v->shape.rank)
        return accel_dim_unknown();
    return v->shape.dim[axis];
}

enum accel_err accel_shape_new(struct accel_shape *out, const struct accel_node *n, int rank)
{
    *out = (struct accel_shape){rank < 0 ? -1 : rank, NULL};
    if (rank <= 0)
        return ACCEL_OK;
    out->dim = ACCEL_NEW(&n->graph->model->symbols.inferred, struct accel_dim, rank);
    if (!out->dim)
        return accel_fail_nomem();
    for (int i = 0; i < rank; i++)
        out->dim[i] = accel_dim_unknown();
    return ACCEL_OK;
}

enum accel_err accel_shape_copy(struct accel_shape *out, const struct accel_node *n,
                                const struct accel_shape *from)
{
    ACCEL_TRY(accel_shape_new(out, n, from->rank));
    if (from->rank > 0)
        memcpy(out->dim, from->dim, (size_t)from->rank * sizeof *from->dim);
    return ACCEL_OK;
}

void accel_result_set(struct accel_node *n, int slot, enum accel_dtype dtype,
                      struct accel_shape shape)
{
    if (slot >= n->n_out || !n->out[slot])
        return;
    n->out[slot]->dtype = dtype;
    n->out[slot]->shape = shape;
}

enum accel_err accel_result_like(struct accel_node *n, int slot, enum accel_dtype dtype,
                                 const struct accel_value *like)
{
    struct accel_shape shape = {-1, NULL};
    if (slot >= n->n_out || !n->out[slot])
        return ACCEL_OK;
    if (like)
        ACCEL_TRY(accel_shape_copy(&shape, n, &like->shape));
    accel_result_set(n, slot, dtype, shape);
    return ACCEL_OK;
}

enum accel_err accel_result_dims(struct accel_node *n, int slot, enum accel_dtype dtype, int rank,
                                 const struct accel_dim *dim)
{
    struct accel_shape shape;
    if (slot >= n->n_out || !n->out[slot])
        return ACCEL_OK;
    ACCEL_TRY(accel_shape_copy(&shape, n,
                               &(struct accel_shape){rank, (struct accel_dim *)(uintptr_t)dim}));
    accel_result_set(n, slot, dtype, shape);
    return ACCEL_OK;
}

bool accel_dim_stretch(struct accel_dim *out, struct accel_dim a, struct accel_dim b)
{
    if (a.n == 1)
        *out = b;
    else if (b.n == 1)
        *out = a;
    else if (accel_dim_known(a) && accel_dim_known(b) && a.n != b.n)
        return false;
    else if (accel_dim_known(a) || accel_dim_known(b))
        *out = accel_dim_known(a) ? a : b; /* the other one is that, or 1 */
    else
        *out = accel_dim_same(a, b) ? a : accel_dim_unknown();
    return true;
}

bool accel_dim_join(struct accel_dim *out, struct accel_dim a, struct accel_dim b)
{
    if (accel_dim_differs(a, b))
        return false;
    *out = accel_dim_known(a) || (!accel_dim_known(b) && a.sym >= 0) ? a : b;
    return true;
}

enum accel_err accel_operands_broadcast(struct accel_shape *out, const struct accel_node *n,
                                        int first, int count)
{
    int rank = 0;
    for (int i = first; i < first + count; i++) {
        int r = accel_operand_rank(n, i);
        if (r < 0)
            return accel_shape_new(out, n, -1);
        rank = r > rank ? r : rank;
    }
    ACCEL_TRY(accel_shape_new(out, n, rank));
    for (int k = 0; k < rank; k++)
        out->dim[k] = accel_dim_of(1);
    for (int i = first; i < first + count; i++) {
        const struct accel_shape *s = &n->in[i]->shape;
        for (int k = 0; k < s->rank; k++) {
            struct accel_dim *y = &out->dim[rank - s->rank + k];
            if (!accel_dim_stretch(y, *y, s->dim[k]))
                return accel_fail(
                    ACCEL_ESHAPE, "axis %d is %lld in input '%.200s' and %lld in those before it",
                    rank - s->rank + k, (long long)s->dim[k].n, n->in[i]->name, (long long)y->n);
        }
    }
    return ACCEL_OK;
}

enum accel_err accel_axis_of(int *out, int64_t axis, int rank)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return accel_fail(ACCEL_ESHAPE, "axis %lld of an input of rank %d", (long long)axis, rank);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return ACCEL_OK;
}

enum accel_err accel_operand_check_rank(const struct accel_node *n, int i, int rank)
{
    int r = accel_operand_rank(n, i);
    if (r >= 0 && r != rank)
        return accel_fail(ACCEL_ESHAPE, "input %d has rank %d instead of %d: '%.200s'", i, r, rank,
                          n->in[i]->name);
    return ACCEL_OK;
}

enum accel_err accel_operand_check_vector(const struct accel_node *n, int i, struct accel_dim of,
                                          const char *what)
{
    const struct accel_value *v = accel_operand(n, i);
    if (!v || v->shape.rank != 1)
        return ACCEL_OK;
    if (accel_dim_differs(v->shape.dim[0], of))
        return accel_fail(ACCEL_ESHAPE, "%s '%.200s' has %lld elements for %lld channels", what,
                          v->name, (long long)v->shape.dim[0].n, (long long)of.n);
    return ACCEL_OK;
}

int64_t accel_operand_count(const struct accel_node *n, int i)
{
    const struct accel_value *v = accel_operand(n, i);
    return v ? accel_shape_count(&v->shape) : -1;
}

int64_t accel_result_count(const struct accel_node *n, int slot)
{
    return slot < n->n_out && n->out[slot] ? accel_shape_count(&n->out[slot]->shape) : -1;
}
