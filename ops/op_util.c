/* Lists that moved from an attribute to an input over the opsets are read in one place, so that
 * infer functions see one form. */
#include "ops/op_util.h"

void *accel_op_params(struct accel_node *n, size_t size)
{
    n->params = accel_arena_new(&n->graph->model->arena, 1, size);
    if (!n->params)
        (void)accel_fail_nomem();
    return n->params;
}

void *accel_op_scratch(const struct accel_node *n, int64_t count, size_t size)
{
    void *p =
        count < 0 ? NULL : accel_arena_new(&n->graph->model->symbols.inferred, (size_t)count, size);
    if (!p)
        (void)accel_fail_nomem();
    return p;
}

enum accel_err accel_list_get(struct accel_list *out, const struct accel_node *n, const char *attr,
                              int slot)
{
    struct accel_value *v = accel_operand(n, slot);
    *out = (struct accel_list){.n = -1};
    if (v) {
        out->given = true;
        if (v->shape.rank == 1)
            out->n = v->shape.dim[0].n;
        int64_t count;
        ACCEL_TRY(accel_known_ints(&out->at, &count, v));
        out->known = out->at != NULL;
        if (out->known)
            out->n = count;
        return ACCEL_OK;
    }
    size_t count = 0;
    if (attr)
        ACCEL_TRY(accel_attr_ints(&out->at, &count, n, attr));
    const struct accel_attr *a = attr ? accel_attr_find(n, attr) : NULL;
    out->given = out->known = a != NULL;
    out->n = a ? (int64_t)count : -1;
    return ACCEL_OK;
}

void accel_scalar_get(bool *known, int64_t probe[ACCEL_N_PROBES], const struct accel_node *n,
                      int slot)
{
    struct accel_value *v = accel_operand(n, slot);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    *known = k && !k->real && k->n == 1;
    for (int p = 0; *known && p < ACCEL_N_PROBES; p++)
        probe[p] = ((const int64_t *)k->probe[p])[0];
}

enum accel_err accel_axes_mark(bool *mark, const struct accel_list *axes, int rank)
{
    for (int64_t i = 0; i < axes->n; i++) {
        int axis;
        ACCEL_TRY(accel_axis_of(&axis, axes->at[i], rank));
        if (mark[axis])
            return accel_fail(ACCEL_ESHAPE, "axis %d is listed twice", axis);
        mark[axis] = true;
    }
    return ACCEL_OK;
}

enum accel_err accel_shape_from_input(struct accel_shape *out, const struct accel_node *n, int slot)
{
    struct accel_value *v = accel_operand(n, slot);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    *out = (struct accel_shape){-1, NULL};
    if (!v)
        return ACCEL_OK;
    if (v->shape.rank > 1)
        return accel_fail(ACCEL_ESHAPE, "input %d must be a vector, has rank %d", slot,
                          v->shape.rank);
    if (!k || k->real) {
        int64_t rank = v->shape.rank == 1 ? v->shape.dim[0].n : -1;
        return accel_shape_new(out, n, rank > ACCEL_KNOWN_MAX ? -1 : (int)rank);
    }
    ACCEL_TRY(accel_shape_new(out, n, (int)k->n));
    for (int i = 0; i < out->rank; i++)
        ACCEL_TRY(accel_known_dim(&out->dim[i], v, k, i));
    return ACCEL_OK;
}

enum accel_err accel_dim_add(struct accel_dim *out, struct accel_symbols *s, struct accel_dim a,
                             struct accel_dim b)
{
    if (accel_dim_known(b))
        return accel_dim_derive(out, s, a, 1, b.n, 1, 0);
    if (accel_dim_known(a))
        return accel_dim_derive(out, s, b, 1, a.n, 1, 0);
    int64_t probe[ACCEL_N_PROBES];
    *out = accel_dim_unknown();
    if (a.sym < 0 || b.sym < 0)
        return ACCEL_OK;
    for (int p = 0; p < ACCEL_N_PROBES; p++)
        if (__builtin_add_overflow(accel_dim_probe(a, s, p), accel_dim_probe(b, s, p), &probe[p]))
            return ACCEL_OK;
    return accel_dim_of_probes(out, s, probe);
}

enum accel_err accel_kernel_copy(const struct accel_call *c)
{
    if (c->x[0].n != c->y[0].n)
        return accel_fail(ACCEL_ESHAPE, "%lld elements for %lld", (long long)c->x[0].n,
                          (long long)c->y[0].n);
    accel_array_copy(&c->y[0], 0, &c->x[0], 0, c->y[0].n);
    return ACCEL_OK;
}

int accel_carry_by_position(const struct accel_node *n, int axis)
{
    const struct accel_value *x = accel_operand(n, 0), *y = n->n_out ? n->out[0] : NULL;
    if (!x || !y || axis < 0 || axis >= y->shape.rank || accel_shape_count(&x->shape) <= 0 ||
        accel_shape_count(&y->shape) <= 0)
        return -1;
    int64_t before = 1, at = 1;
    for (int i = 0; i < axis; i++)
        before *= y->shape.dim[i].n;
    for (int i = 0; i < x->shape.rank && at <= before; at *= x->shape.dim[i++].n)
        if (at == before && x->shape.dim[i].n == y->shape.dim[axis].n)
            return i;
    return -1;
}
