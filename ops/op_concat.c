/* Concat and Split: blocks along one axis. With the axis fixed, an array is `outer` blocks of
 * (size on the axis) * inner elements, and both kernels copy whole blocks. */
#include <limits.h>
#include <math.h>

#include "ops/link_util.h"
#include "ops/op_util.h"

/* ------------------------------------------------------------------------------ Concat */

struct concat {
    int64_t axis;
};

static enum accel_err concat_parse(struct accel_node *n, int opset)
{
    struct concat *p = accel_op_params(n, sizeof *p);
    if (!p)
        return ACCEL_ENOMEM;
    if (opset >= 4 && !accel_attr_find(n, "axis"))
        return accel_fail(ACCEL_EMODEL, "attribute 'axis' is missing");
    return accel_attr_int(&p->axis, n, "axis", 1);
}

/* Joins input i, the first with a known rank having been put into `out`. */
static enum accel_err concat_join(struct accel_shape *out, struct accel_node *n, int i, int axis)
{
    const struct accel_shape *x = &n->in[i]->shape;
    if (x->rank != out->rank)
        return accel_fail(ACCEL_ESHAPE, "input %d has rank %d, the first has %d", i, x->rank,
                          out->rank);
    for (int k = 0; k < x->rank; k++) {
        struct accel_dim *d = &out->dim[k];
        if (k == axis)
            ACCEL_TRY(accel_dim_add(d, accel_operand_symbols(n), *d, x->dim[k]));
        else if (!accel_dim_join(d, *d, x->dim[k]))
            return accel_fail(ACCEL_ESHAPE, "axis %d is %lld in input %d and %lld before", k,
                              (long long)x->dim[k].n, i, (long long)d->n);
    }
    return ACCEL_OK;
}

static enum accel_err concat_infer(struct accel_node *n)
{
    const struct concat *p = n->params;
    struct accel_shape out = {-1, NULL};
    enum accel_dtype dtype = ACCEL_UNDEFINED;
    int axis = 0;
    bool whole = true;
    for (int i = 0; i < n->n_in; i++) {
        const struct accel_value *x = n->in[i];
        if (x && dtype == ACCEL_UNDEFINED)
            dtype = x->dtype;
        if (!x || x->shape.rank < 0) {
            whole = false;
        } else if (out.rank < 0) {
            ACCEL_TRY(accel_axis_of(&axis, p->axis, x->shape.rank));
            ACCEL_TRY(accel_shape_copy(&out, n, &x->shape));
        } else {
            ACCEL_TRY(concat_join(&out, n, i, axis));
        }
    }
    if (out.rank > 0 && !whole)
        out.dim[axis] = accel_dim_unknown();
    accel_result_set(n, 0, dtype, out);
    return ACCEL_OK;
}

static enum accel_err concat_forward(const struct accel_call *c)
{
    const struct concat *p = c->node->params;
    const struct accel_array *y = &c->y[0];
    int axis = (int)(p->axis < 0 ? p->axis + y->rank : p->axis);
    int64_t outer = accel_array_span(y, 0, axis), block = accel_array_span(y, axis, y->rank);
    int64_t at = 0;
    if (y->n == 0)
        return ACCEL_OK;
    for (int i = 0; i < c->node->n_in; i++) {
        const struct accel_array *x = &c->x[i];
        int64_t part = accel_array_span(x, axis, x->rank);
        for (int64_t o = 0; o < outer; o++)
            accel_array_copy(y, o * block + at, x, o * part, part);
        at += part;
    }
    return ACCEL_OK;
}

/* Blocks of the output's axis belong to the inputs one after the other; every other axis is that of
 * all of them. */
static void concat_links(const struct accel_node *n, struct accel_links *l)
{
    const struct concat *p = n->params;
    int y = accel_link_out(n, 0), rank = accel_slot_rank(n, y), axis;
    struct accel_axis *at = ACCEL_NEW(&l->arena, struct accel_axis, n->n_in + 1);
    int64_t off = 0;
    if (!at) {
        l->err = accel_fail_nomem();
        return;
    }
    if (rank < 0 || accel_axis_of(&axis, p->axis, rank))
        return;
    for (int k = 0; k < rank; k++) {
        for (int i = 0; i < n->n_in; i++)
            at[i] = (struct accel_axis){i, k};
        at[n->n_in] = (struct accel_axis){y, k};
        if (k != axis)
            accel_links_axes(l, n->n_in + 1, at);
    }
    for (int i = 0; i < n->n_in; i++)
        if (!accel_dim_known(accel_operand_dim(n, i, axis)))
            return;
    for (int i = 0; i < n->n_in; i++) {
        int64_t size = accel_slot_size(n, i, axis);
        if (size > 0)
            accel_links_tie(l, size, 2,
                            (const struct accel_side[]){accel_side_whole(i, axis),
                                                        accel_side_of(y, axis, off, 1, 0, 1)});
        off += size > 0 ? size : 0;
    }
}

/* A number only where all inputs agree. */
static void concat_zero(const struct accel_node *n, struct accel_zero *z)
{
    int y = accel_link_out(n, 0);
    for (int k = 0; k < accel_slot_rank(n, y); k++) {
        float first = accel_zero_get(z, 0, k);
        bool same = !isnan(first);
        for (int i = 1; same && i < n->n_in; i++) {
            float other = accel_zero_get(z, i, k);
            same = !(other < first || other > first || isnan(other));
        }
        if (same)
            accel_zero_set(z, y, k, first);
    }
}

/* ------------------------------------------------------------------------------ Split */

struct split {
    int64_t axis;
    bool uneven; /* opset >= 18: the last part may be smaller */
};

static enum accel_err split_parse(struct accel_node *n, int opset)
{
    struct split *p = accel_op_params(n, sizeof *p);
    int64_t parts;
    if (!p)
        return ACCEL_ENOMEM;
    p->uneven = opset >= 18;
    ACCEL_TRY(accel_attr_int(&parts, n, "num_outputs", n->n_out));
    if (parts != n->n_out)
        return accel_fail(ACCEL_EMODEL, "num_outputs is %lld, the node has %d outputs",
                          (long long)parts, n->n_out);
    return accel_attr_int(&p->axis, n, "axis", 0);
}

/* Size of part i of n_parts when no sizes are given. */
static enum accel_err split_even(struct accel_dim *out, struct accel_node *n, struct accel_dim d,
                                 int i)
{
    const struct split *p = n->params;
    struct accel_symbols *s = accel_operand_symbols(n);
    int64_t probe[ACCEL_N_PROBES], parts = n->n_out;
    if (accel_dim_known(d) && !p->uneven && d.n % parts)
        return accel_fail(ACCEL_ESHAPE, "size %lld does not split into %lld equal parts",
                          (long long)d.n, (long long)parts);
    if (!accel_dim_known(d) && !p->uneven)
        return accel_dim_derive(out, s, d, 1, 0, parts, 0);
    for (int t = 0; t < ACCEL_N_PROBES; t++) {
        int64_t size = accel_dim_probe(d, s, t), part = size / parts + (size % parts != 0);
        int64_t left = part > 0 && i > size / part ? 0 : size - part * i;
        probe[t] = size < 0 ? -1 : left < part ? left : part;
    }
    return accel_dim_of_probes(out, s, probe);
}

static enum accel_err split_check(const struct accel_list *sizes, struct accel_dim d, int n_out)
{
    int64_t sum = 0;
    if (sizes->n >= 0 && sizes->n != n_out)
        return accel_fail(ACCEL_ESHAPE, "%lld sizes for %d outputs", (long long)sizes->n, n_out);
    for (int64_t i = 0; sizes->known && i < sizes->n; i++)
        if (sizes->at[i] < 0 || __builtin_add_overflow(sum, sizes->at[i], &sum))
            return accel_fail(ACCEL_ESHAPE, "part %lld has the size %lld", (long long)i,
                              (long long)sizes->at[i]);
    if (sizes->known && accel_dim_known(d) && sum != d.n)
        return accel_fail(ACCEL_ESHAPE, "the sizes add up to %lld, the axis has %lld",
                          (long long)sum, (long long)d.n);
    return ACCEL_OK;
}

static enum accel_err split_infer(struct accel_node *n)
{
    const struct split *p = n->params;
    struct accel_value *x = accel_operand(n, 0), *v = accel_operand(n, 1);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    struct accel_list sizes;
    int axis = 0, rank = accel_operand_rank(n, 0);
    ACCEL_TRY(accel_list_get(&sizes, n, "split", 1));
    if (rank >= 0)
        ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    struct accel_dim whole = accel_operand_dim(n, 0, axis);
    ACCEL_TRY(split_check(&sizes, whole, n->n_out));
    for (int i = 0; i < n->n_out; i++) {
        ACCEL_TRY(accel_result_like(n, i, accel_operand_dtype(n, 0), x));
        if (rank < 0 || !n->out[i])
            continue;
        struct accel_dim *d = &n->out[i]->shape.dim[axis];
        if (sizes.known)
            *d = accel_dim_of(sizes.at[i]);
        else if (k)
            ACCEL_TRY(accel_known_dim(d, v, k, i));
        else if (sizes.given)
            *d = accel_dim_unknown();
        else
            ACCEL_TRY(split_even(d, n, whole, i));
    }
    return ACCEL_OK;
}

static enum accel_err split_forward(const struct accel_call *c)
{
    const struct split *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    int64_t outer = accel_array_span(x, 0, axis), block = accel_array_span(x, axis, x->rank);
    int64_t at = 0;
    for (int i = 0; i < c->node->n_out; i++) {
        const struct accel_array *y = &c->y[i];
        if (!y->dim)
            return accel_fail(ACCEL_ENOSUP, "Split with an output left out");
        int64_t part = accel_array_span(y, axis, y->rank);
        for (int64_t o = 0; x->n > 0 && y->data && o < outer; o++)
            accel_array_copy(y, o * part, x, o * block + at, part);
        at += part;
    }
    return ACCEL_OK;
}

static void split_links(const struct accel_node *n, struct accel_links *l)
{
    const struct split *p = n->params;
    int rank = accel_slot_rank(n, 0), axis;
    int64_t off = 0;
    if (rank < 0 || accel_axis_of(&axis, p->axis, rank))
        return;
    for (int i = 0; i < n->n_out; i++) {
        accel_link_range(l, 0, accel_link_out(n, i), 0, axis);
        accel_link_range(l, 0, accel_link_out(n, i), axis + 1, rank);
        if (!n->out[i] || !accel_dim_known(n->out[i]->shape.dim[axis]))
            off = -1; /* where the others begin is not known */
    }
    for (int i = 0; off >= 0 && i < n->n_out; i++) {
        int64_t size = n->out[i]->shape.dim[axis].n;
        if (size > 0)
            accel_links_tie(
                l, size, 2,
                (const struct accel_side[]){accel_side_of(0, axis, off, 1, 0, 1),
                                            accel_side_whole(accel_link_out(n, i), axis)});
        off += size;
    }
}

static void split_zero(const struct accel_node *n, struct accel_zero *z)
{
    for (int i = 0; i < n->n_out; i++)
        accel_zero_range(z, 0, accel_link_out(n, i), 0, accel_slot_rank(n, 0), false);
}

/* The parts may be unequal now: their sizes are written out. */
static enum accel_err split_resize(struct accel_node *n, struct accel_resize *r)
{
    const struct split *p = n->params;
    int rank = accel_slot_rank(n, 0), axis;
    if (rank < 0)
        return ACCEL_OK;
    ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, n->n_out);
    if (!want)
        return accel_fail_nomem();
    for (int i = 0; i < n->n_out; i++) {
        bool number = n->out[i] && accel_dim_known(n->out[i]->shape.dim[axis]);
        want[i] = number ? accel_resize_now(r, accel_link_out(n, i), axis) : ACCEL_SIZE_VARIES;
    }
    bool hit = accel_resize_hit(r, 0, axis);
    if (hit)
        ACCEL_TRY(accel_resize_attr_drop(r, "num_outputs"));
    if (hit && !accel_operand(n, 1) && n->graph->opset < 13)
        return accel_resize_attr_ints(r, "split", want, (size_t)n->n_out);
    if (hit || accel_operand(n, 1))
        return accel_resize_ints(r, 1, want, n->n_out, ACCEL_SIZE_VARIES);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ rows */

static const struct accel_attr_rule concat_attrs[] = {{"axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule split_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                     {"split", ACCEL_ATTR_INTS, 0},
                                                     {"num_outputs", ACCEL_ATTR_INT, 0},
                                                     {0}};

const struct accel_op accel_op_concat = {
    .name = "Concat",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = INT_MAX,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES | ACCEL_OP_VARIADIC,
    .attrs = concat_attrs,
    .parse = concat_parse,
    .infer = concat_infer,
    .links = concat_links,
    .zero = concat_zero,
    .forward = concat_forward,
    .examples = (const char *const[]){"2x3 2x4 2x1 | axis=1", "2x3 1x3 | axis=-2", NULL},
};

const struct accel_op accel_op_split = {
    .name = "Split",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 2,
    .min_out = 1,
    .max_out = INT_MAX,
    .flags = ACCEL_OP_MOVES,
    .attrs = split_attrs,
    .parse = split_parse,
    .infer = split_infer,
    .links = split_links,
    .zero = split_zero,
    .resize = split_resize,
    .sizes = 1u << 1,
    .forward = split_forward,
    .examples = (const char *const[]){"2x6 | axis=1", "2x6 [6] | axis=1", NULL},
};
