/* Gather, GatherElements, GatherND: elements picked by index. Indices count from the end when
 * negative; one outside of the axis is an error when the kernel meets it. */
#include "ops/link_util.h"
#include "ops/op_util.h"

struct gather {
    int64_t axis, batch_dims;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct gather *p = accel_op_params(n, sizeof *p);
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_int(&p->batch_dims, n, "batch_dims", 0));
    return accel_attr_int(&p->axis, n, "axis", 0);
}

static enum accel_err gather_infer(struct accel_node *n)
{
    const struct gather *p = n->params;
    int r = accel_operand_rank(n, 0), q = accel_operand_rank(n, 1), axis = 0;
    struct accel_shape out;
    if (r >= 0)
        ACCEL_TRY(accel_axis_of(&axis, p->axis, r));
    ACCEL_TRY(accel_shape_new(&out, n, r < 0 || q < 0 ? -1 : r - 1 + q));
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = i < axis       ? accel_operand_dim(n, 0, i)
                     : i < axis + q ? accel_operand_dim(n, 1, i - axis)
                                    : accel_operand_dim(n, 0, i - q + 1);
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

/* Index `at` brought into [0, size). */
static enum accel_err place(int64_t *out, int64_t at, int64_t size)
{
    if (at < -size || at >= size)
        return accel_fail(ACCEL_ESHAPE, "index %lld of an axis of size %lld", (long long)at,
                          (long long)size);
    *out = at < 0 ? at + size : at;
    return ACCEL_OK;
}

static enum accel_err gather_forward(const struct accel_call *c)
{
    const struct gather *p = c->node->params;
    const struct accel_array *x = &c->x[0], *index = &c->x[1], *y = &c->y[0];
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    int64_t outer = accel_array_span(x, 0, axis), inner = accel_array_span(x, axis + 1, x->rank);
    if (y->n == 0)
        return ACCEL_OK;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < index->n; i++) {
            int64_t at;
            ACCEL_TRY(place(&at, ((const int64_t *)index->data)[i], x->dim[axis]));
            accel_array_copy(y, (o * index->n + i) * inner, x, (o * x->dim[axis] + at) * inner,
                             inner);
        }
    return ACCEL_OK;
}

/* A table of vectors, looked up by number. */
static int gather_weights(const struct accel_node *n, struct accel_weight w[4])
{
    const struct gather *p = n->params;
    int rank = accel_operand_rank(n, 0);
    if (rank != 2 || (p->axis != 0 && p->axis != -2))
        return 0;
    w[0] = (struct accel_weight){.slot = 0,
                                 .rank = 2,
                                 .out_axis = 1,
                                 .in_axis = -1,
                                 .in_axis2 = -1,
                                 .type = "Embedding",
                                 .bias_slot = -1};
    return 1;
}

/* The constant indices of a vector or a single one; *at NULL: there are none. */
static enum accel_err constant_indices(const int64_t **at, int64_t *count,
                                       const struct accel_node *n)
{
    int q = accel_slot_rank(n, 1);
    *at = NULL;
    *count = 0;
    return q == 0 || (q == 1 && n->in[1]->tensor) ? accel_known_ints(at, count, n->in[1])
                                                  : ACCEL_OK;
}

/* A vector of constant indices is a list of units; a single one holds its unit. */
static void link_indices(struct accel_links *l, int axis, const int64_t *at, int64_t count)
{
    const struct accel_node *n = l->node;
    int64_t size = accel_operand_dim(n, 0, axis).n;
    if (accel_slot_rank(n, 1) == 0) {
        accel_links_seen(l, 0, axis);
        accel_links_wall_unit(l, 0, axis, at[0] < 0 ? at[0] + size : at[0], "picked by its number");
        return;
    }
    int64_t *list = accel_links_list(l, count);
    for (int64_t i = 0; list && i < count; i++)
        list[i] = at[i] < 0 ? at[i] + size : at[i];
    if (list && count > 0)
        accel_links_tie(l, count, 3,
                        (const struct accel_side[]){accel_side_list(0, axis, list),
                                                    accel_side_whole(1, 0),
                                                    accel_side_whole(accel_link_out(n, 0), axis)});
}

static void gather_links(const struct accel_node *n, struct accel_links *l)
{
    const struct gather *p = n->params;
    int rank = accel_slot_rank(n, 0), q = accel_slot_rank(n, 1), y = accel_link_out(n, 0), axis;
    const int64_t *at;
    int64_t count;
    if (rank < 1 || accel_axis_of(&axis, p->axis, rank))
        return;
    accel_link_range(l, 0, y, 0, axis);
    for (int k = axis + 1; k < rank; k++)
        accel_links_pair(l, 0, k, y, k - 1 + q);
    bool numbers = accel_dim_known(accel_operand_dim(n, 0, axis));
    if (!accel_links_ok(l, constant_indices(&at, &count, n)))
        return;
    if (numbers && at)
        link_indices(l, axis, at, count);
    else if (!n->in[1]->tensor)
        for (int k = 0; k < q; k++)
            accel_links_pair(l, 1, k, y, axis + k);
}

static void gather_zero(const struct accel_node *n, struct accel_zero *z)
{
    const struct gather *p = n->params;
    int rank = accel_slot_rank(n, 0), q = accel_slot_rank(n, 1), y = accel_link_out(n, 0), axis;
    if (rank < 1 || accel_axis_of(&axis, p->axis, rank))
        return;
    accel_zero_range(z, 0, y, 0, axis, false);
    if (q == 1 && n->in[1]->tensor)
        accel_zero_copy(z, 0, axis, y, axis);
    for (int k = axis + 1; k < rank; k++)
        accel_zero_copy(z, 0, k, y, k - 1 + q);
}

/* An index becomes the place of its unit among those that are left. */
static enum accel_err gather_resize(struct accel_node *n, struct accel_resize *r)
{
    const int64_t *at;
    const struct gather *p = n->params;
    int64_t count, size;
    int axis;
    ACCEL_TRY(accel_axis_of(&axis, p->axis, accel_slot_rank(n, 0)));
    ACCEL_TRY(constant_indices(&at, &count, n));
    if (!at || !accel_resize_hit(r, 0, axis))
        return ACCEL_OK;
    size = accel_resize_was(r, 0, axis);
    int64_t now = accel_slot_rank(n, 1) ? accel_resize_now(r, 1, 0) : 1;
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, now);
    if (!want)
        return accel_fail_nomem();
    for (int64_t i = 0; i < now; i++) {
        int64_t old = accel_resize_kept(r, 1, 0, i), index = old < count ? at[old] : 0;
        want[i] = accel_resize_before(r, 0, axis, index < 0 ? index + size : index);
    }
    return accel_resize_ints(r, 1, want, now, ACCEL_SIZE_VARIES);
}

/* ------------------------------------------------------------------------------ GatherElements */

static enum accel_err elements_infer(struct accel_node *n)
{
    const struct gather *p = n->params;
    int r = accel_operand_rank(n, 0), q = accel_operand_rank(n, 1), axis;
    if (r >= 0)
        ACCEL_TRY(accel_axis_of(&axis, p->axis, r));
    if (r >= 0 && q >= 0 && r != q)
        return accel_fail(ACCEL_ESHAPE, "data has rank %d, indices have %d", r, q);
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 1));
}

static enum accel_err elements_forward(const struct accel_call *c)
{
    const struct gather *p = c->node->params;
    const struct accel_array *x = &c->x[0], *index = &c->x[1], *y = &c->y[0];
    int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i, at = 0, span = 1;
        for (int k = y->rank - 1; k >= 0; k--) {
            int64_t here = rest % y->dim[k];
            rest /= y->dim[k];
            if (k == axis)
                here = ((const int64_t *)index->data)[i];
            ACCEL_TRY(place(&here, here, x->dim[k]));
            at += here * span;
            span *= x->dim[k];
        }
        accel_array_copy(y, i, x, at, 1);
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ GatherND */

static enum accel_err nd_infer(struct accel_node *n)
{
    const struct gather *p = n->params;
    int r = accel_operand_rank(n, 0), q = accel_operand_rank(n, 1), b = (int)p->batch_dims;
    struct accel_shape out = {-1, NULL};
    if (p->batch_dims < 0 || (r >= 0 && p->batch_dims >= r) || (q >= 0 && p->batch_dims >= q))
        return accel_fail(ACCEL_ESHAPE,
                          "batch_dims is %lld for data of rank %d, indices of rank %d",
                          (long long)p->batch_dims, r, q);
    int64_t depth = q > 0 ? accel_operand_dim(n, 1, q - 1).n : -1;
    if (depth >= 0 && r >= 0 && depth > r - b)
        return accel_fail(ACCEL_ESHAPE, "indices of %lld numbers for data of rank %d",
                          (long long)depth, r);
    if (r >= 0 && q > 0 && depth >= 0) {
        ACCEL_TRY(accel_shape_new(&out, n, q - 1 + r - b - (int)depth));
        for (int i = 0; i < out.rank; i++)
            out.dim[i] = i < q - 1 ? accel_operand_dim(n, 1, i)
                                   : accel_operand_dim(n, 0, i - (q - 1) + b + (int)depth);
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

static enum accel_err nd_forward(const struct accel_call *c)
{
    const struct gather *p = c->node->params;
    const struct accel_array *x = &c->x[0], *index = &c->x[1], *y = &c->y[0];
    int b = (int)p->batch_dims, depth = (int)index->dim[index->rank - 1];
    int64_t inner = accel_array_span(x, b + depth, x->rank);
    int64_t rows = accel_array_span(index, 0, index->rank - 1);
    int64_t batch = accel_array_span(index, 0, b), per_batch = batch > 0 ? rows / batch : 0;
    if (y->n == 0)
        return ACCEL_OK;
    for (int64_t i = 0; i < rows; i++) {
        int64_t at = i / per_batch;
        for (int k = 0; k < depth; k++) {
            int64_t here;
            ACCEL_TRY(place(&here, ((const int64_t *)index->data)[i * depth + k], x->dim[b + k]));
            at = at * x->dim[b + k] + here;
        }
        accel_array_copy(y, i * inner, x, at * inner, inner);
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ rows */

static const struct accel_attr_rule axis_attrs[] = {{"axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule nd_attrs[] = {{"batch_dims", ACCEL_ATTR_INT, 0}, {0}};

const struct accel_op accel_op_gather = {
    .name = "Gather",
    .domain = "",
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = axis_attrs,
    .parse = parse,
    .infer = gather_infer,
    .links = gather_links,
    .zero = gather_zero,
    .resize = gather_resize,
    .weights = gather_weights,
    .forward = gather_forward,
    .examples = (const char *const[]){"5x4 [0,-1]", "5x4 scalar[3] | axis=1",
                                      "3x6 [4,0,-1,0] | axis=1", NULL},
};

const struct accel_op accel_op_gather_elements = {
    .name = "GatherElements",
    .domain = "",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = axis_attrs,
    .parse = parse,
    .infer = elements_infer,
    .forward = elements_forward,
    .examples = (const char *const[]){"3x4 i64:2x4", NULL},
};

const struct accel_op accel_op_gather_nd = {
    .name = "GatherND",
    .domain = "",
    .since = 11,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = nd_attrs,
    .parse = parse,
    .infer = nd_infer,
    .forward = nd_forward,
    .examples = (const char *const[]){"3x4x5 i64:6x2", NULL},
};
