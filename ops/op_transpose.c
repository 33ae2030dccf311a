/* Transpose: y[i] = x[perm of i]. The kernel walks the output and keeps the place in the input by
 * dividing the output's index, which needs no room however many axes there are. */
#include "ops/link_util.h"
#include "ops/op_util.h"

struct transpose {
    const int64_t *perm; /* [n_perm], NULL: reversed */
    size_t n_perm;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct transpose *p = accel_op_params(n, sizeof *p);
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    return accel_attr_ints(&p->perm, &p->n_perm, n, "perm");
}

static int source_axis(const struct transpose *p, int rank, int axis)
{
    return p->perm ? (int)p->perm[axis] : rank - 1 - axis;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct transpose *p = n->params;
    int rank = accel_operand_rank(n, 0);
    struct accel_shape out;
    if (rank < 0 && p->perm)
        ACCEL_TRY(accel_shape_new(&out, n, (int)p->n_perm));
    else
        ACCEL_TRY(accel_shape_new(&out, n, rank));
    if (rank >= 0 && p->perm) {
        struct accel_list perm = {true, true, (int64_t)p->n_perm, p->perm};
        bool *mark = accel_op_scratch(n, rank, sizeof *mark);
        if (!mark)
            return ACCEL_ENOMEM;
        if (p->n_perm != (size_t)rank)
            return accel_fail(ACCEL_ESHAPE, "perm has %zu entries for rank %d", p->n_perm, rank);
        for (int i = 0; i < rank; i++)
            if (p->perm[i] < 0)
                return accel_fail(ACCEL_ESHAPE, "perm has the entry %lld", (long long)p->perm[i]);
        ACCEL_TRY(accel_axes_mark(mark, &perm, rank));
    }
    for (int i = 0; i < rank; i++)
        out.dim[i] = accel_operand_dim(n, 0, source_axis(p, rank, i));
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

static int carry(const struct accel_node *n, int axis)
{
    const struct transpose *p = n->params;
    int rank = accel_operand_rank(n, 0);
    if (axis < 0 || axis >= rank || (p->perm && p->n_perm != (size_t)rank))
        return -1;
    return source_axis(p, rank, axis);
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    for (int axis = 0; axis < accel_slot_rank(n, accel_link_out(n, 0)); axis++)
        accel_links_pair(l, 0, carry(n, axis), accel_link_out(n, 0), axis);
}

static void zero(const struct accel_node *n, struct accel_zero *z)
{
    for (int axis = 0; axis < accel_slot_rank(n, accel_link_out(n, 0)); axis++)
        accel_zero_copy(z, 0, carry(n, axis), accel_link_out(n, 0), axis);
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct transpose *p = c->node->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i, at = 0;
        for (int k = y->rank - 1; k >= 0; k--) {
            int64_t step = accel_array_span(x, source_axis(p, x->rank, k) + 1, x->rank);
            at += rest % y->dim[k] * step;
            rest /= y->dim[k];
        }
        accel_array_copy(y, i, x, at, 1);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"perm", ACCEL_ATTR_INTS, 0}, {0}};

const struct accel_op accel_op_transpose = {
    .name = "Transpose",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .links = links,
    .zero = zero,
    .carry = carry,
    .forward = forward,
    .examples = (const char *const[]){"2x3x4", "2x3x4 | perm=1,2,0", NULL},
};
