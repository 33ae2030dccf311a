/* Operators that look at elements to decide which to take: TopK, ArgMax, ArgMin, NonZero, Compress,
 * Unique, OneHot, ReverseSequence, Trilu, NonMaxSuppression. */
#include "ops/arith.h"
#include "ops/op_util.h"

struct select {
    int64_t axis, keep, k; /* axis is INT64_MIN when the node does not say */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct select *p = accel_op_params(n, sizeof *p);
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", INT64_MIN));
    ACCEL_TRY(accel_attr_int(&p->k, n, "k", -1));
    return accel_attr_int(&p->keep, n, "keepdims", 1);
}

static enum accel_err axis_or(int *out, const struct accel_node *n, int64_t otherwise, int rank)
{
    const struct select *p = n->params;
    return accel_axis_of(out, p->axis == INT64_MIN ? otherwise : p->axis, rank);
}

static enum accel_err topk_infer(struct accel_node *n)
{
    const struct select *p = n->params;
    int rank = accel_operand_rank(n, 0), axis;
    struct accel_value *v = accel_operand(n, 1);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    struct accel_dim count = p->k >= 0 ? accel_dim_of(p->k) : accel_dim_unknown();
    if (k && k->n == 1)
        ACCEL_TRY(accel_known_dim(&count, v, k, 0));
    for (int i = 0; i < n->n_out; i++) {
        ACCEL_TRY(accel_result_like(n, i, i ? ACCEL_I64 : accel_operand_dtype(n, 0),
                                    accel_operand(n, 0)));
        if (rank < 0 || !n->out[i])
            continue;
        ACCEL_TRY(axis_or(&axis, n, -1, rank));
        struct accel_dim *d = &n->out[i]->shape.dim[axis];
        if (accel_dim_known(*d) && count.n > d->n)
            return accel_fail(ACCEL_ESHAPE, "k is %lld, axis %d has %lld", (long long)count.n, axis,
                              (long long)d->n);
        *d = count;
    }
    return ACCEL_OK;
}

static enum accel_err arg_infer(struct accel_node *n)
{
    const struct select *p = n->params;
    int rank = accel_operand_rank(n, 0), axis = 0;
    struct accel_shape out;
    if (rank >= 0)
        ACCEL_TRY(axis_or(&axis, n, 0, rank));
    ACCEL_TRY(accel_shape_new(&out, n, rank < 0 ? -1 : p->keep ? rank : rank - 1));
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = i == axis && p->keep ? accel_dim_of(1)
                                          : accel_operand_dim(n, 0, i + (i >= axis && !p->keep));
    accel_result_set(n, 0, ACCEL_I64, out);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ NonZero */

static int64_t count_nonzero(const struct accel_known *k, int t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < k->n; i++)
        n +=
            k->real ? ((const float *)k->probe[t])[i] != 0 : ((const int64_t *)k->probe[t])[i] != 0;
    return n;
}

static enum accel_err nonzero_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    struct accel_dim d[2] = {accel_dim_unknown(), accel_dim_unknown()};
    if (rank >= 0)
        d[0] = accel_dim_of(rank);
    struct accel_value *v = accel_operand(n, 0);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    int64_t probe[ACCEL_N_PROBES];
    for (int t = 0; k && t < ACCEL_N_PROBES; t++)
        probe[t] = count_nonzero(k, t);
    if (k)
        ACCEL_TRY(accel_dim_of_probes(&d[1], accel_operand_symbols(n), probe));
    return accel_result_dims(n, 0, ACCEL_I64, 2, d);
}

static enum accel_err nonzero_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int64_t found = 0, *out = y->data;
    for (int64_t i = 0; i < x->n; i++) {
        if (accel_op_is_int(x) ? ((const int64_t *)x->data)[i] == 0
                               : !(((const float *)x->data)[i] != 0))
            continue;
        int64_t rest = i;
        if (found == y->dim[1])
            return accel_fail(ACCEL_ESHAPE, "more elements than expected");
        for (int k = x->rank - 1; k >= 0; k--) {
            out[k * y->dim[1] + found] = rest % x->dim[k];
            rest /= x->dim[k];
        }
        found++;
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ Compress, Unique
 */

static enum accel_err compress_infer(struct accel_node *n)
{
    const struct select *p = n->params;
    int rank = accel_operand_rank(n, 0), axis = 0;
    struct accel_dim d = accel_dim_unknown();
    struct accel_list which;
    ACCEL_TRY(accel_list_get(&which, n, NULL, 1));
    if (which.known)
        d = accel_dim_of(0);
    for (int64_t i = 0; which.known && i < which.n; i++)
        d.n += which.at[i] != 0;
    if (p->axis == INT64_MIN)
        return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 1, &d);
    ACCEL_TRY(accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0)));
    if (rank < 0 || !n->out[0])
        return ACCEL_OK;
    ACCEL_TRY(axis_or(&axis, n, 0, rank));
    n->out[0]->shape.dim[axis] = d;
    return ACCEL_OK;
}

static enum accel_err unique_infer(struct accel_node *n)
{
    const struct select *p = n->params;
    struct accel_dim d = accel_dim_unknown();
    int rank = accel_operand_rank(n, 0), axis;
    for (int i = 1; i < n->n_out; i++)
        ACCEL_TRY(accel_result_dims(n, i, ACCEL_I64, 1, &d));
    if (p->axis == INT64_MIN)
        return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 1, &d);
    ACCEL_TRY(accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0)));
    if (rank < 0 || !n->out[0])
        return ACCEL_OK;
    ACCEL_TRY(axis_or(&axis, n, 0, rank));
    n->out[0]->shape.dim[axis] = d;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ OneHot */

static enum accel_err onehot_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0), axis = 0;
    struct accel_value *v = accel_operand(n, 1);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    struct accel_dim depth = accel_dim_unknown();
    struct accel_shape out;
    if (k && !k->real && k->n == 1)
        ACCEL_TRY(accel_known_dim(&depth, v, k, 0));
    else if (k && k->real && k->n == 1 && ((const float *)k->probe[0])[0] >= 0 &&
             ((const float *)k->probe[0])[0] < 1e15f)
        depth = accel_dim_of((int64_t)((const float *)k->probe[0])[0]);
    if (rank >= 0)
        ACCEL_TRY(axis_or(&axis, n, -1, rank + 1));
    ACCEL_TRY(accel_shape_new(&out, n, rank < 0 ? -1 : rank + 1));
    for (int i = 0; i < out.rank; i++)
        out.dim[i] = i == axis ? depth : accel_operand_dim(n, 0, i - (i > axis));
    accel_result_set(n, 0, accel_operand_dtype(n, 2), out);
    return ACCEL_OK;
}

static enum accel_err same_infer(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

static enum accel_err reverse_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    if (rank >= 0 && rank < 2)
        return accel_fail(ACCEL_ESHAPE, "input of rank %d, must have time and batch", rank);
    ACCEL_TRY(accel_operand_check_rank(n, 1, 1));
    return same_infer(n);
}

static enum accel_err trilu_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    if (rank >= 0 && rank < 2)
        return accel_fail(ACCEL_ESHAPE, "input of rank %d, must be matrices", rank);
    return same_infer(n);
}

static enum accel_err nms_infer(struct accel_node *n)
{
    struct accel_dim d[2] = {accel_dim_unknown(), accel_dim_of(3)};
    ACCEL_TRY(accel_operand_check_rank(n, 0, 3));
    ACCEL_TRY(accel_operand_check_rank(n, 1, 3));
    return accel_result_dims(n, 0, ACCEL_I64, 2, d);
}

/* ------------------------------------------------------------------------------ rows */

static const struct accel_attr_rule topk_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                    {"k", ACCEL_ATTR_INT, 0},
                                                    {"largest", ACCEL_ATTR_INT, 0},
                                                    {"sorted", ACCEL_ATTR_INT, 0},
                                                    {0}};
static const struct accel_attr_rule arg_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                   {"keepdims", ACCEL_ATTR_INT, 0},
                                                   {"select_last_index", ACCEL_ATTR_INT, 0},
                                                   {0}};
static const struct accel_attr_rule axis_attrs[] = {{"axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule unique_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"sorted", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule reverse_attrs[] = {
    {"batch_axis", ACCEL_ATTR_INT, 0}, {"time_axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule trilu_attrs[] = {{"upper", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule nms_attrs[] = {{"center_point_box", ACCEL_ATTR_INT, 0}, {0}};

#define ROW(op_name, first, n_min, n_max, o_min, o_max, rules, inf, fwd, eg)                       \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_min), .max_in = (n_max),   \
        .min_out = (o_min), .max_out = (o_max), .attrs = (rules), .parse = parse, .infer = (inf),  \
        .forward = (fwd), .examples = (const char *const[]){(eg), NULL},                           \
    }

const struct accel_op accel_op_topk =
    ROW("TopK", 1, 1, 2, 2, 2, topk_attrs, topk_infer, NULL, "3x8 [2]");
const struct accel_op accel_op_arg_max =
    ROW("ArgMax", 1, 1, 1, 1, 1, arg_attrs, arg_infer, NULL, "3x4 | axis=1");
const struct accel_op accel_op_arg_min =
    ROW("ArgMin", 1, 1, 1, 1, 1, arg_attrs, arg_infer, NULL, "3x4 | axis=1 keepdims=0");
const struct accel_op accel_op_non_zero =
    ROW("NonZero", 9, 1, 1, 1, 1, NULL, nonzero_infer, nonzero_forward, "3x4");
const struct accel_op accel_op_compress =
    ROW("Compress", 9, 2, 2, 1, 1, axis_attrs, compress_infer, NULL, "3x4 bool:3 | axis=0");
const struct accel_op accel_op_unique =
    ROW("Unique", 11, 1, 1, 1, 4, unique_attrs, unique_infer, NULL, "3x4 | axis=0");
const struct accel_op accel_op_one_hot =
    ROW("OneHot", 9, 3, 3, 1, 1, axis_attrs, onehot_infer, NULL, "i64:3 scalar[5] 2");
const struct accel_op accel_op_reverse_sequence =
    ROW("ReverseSequence", 10, 2, 2, 1, 1, reverse_attrs, reverse_infer, NULL, "4x2 i64:2");
const struct accel_op accel_op_trilu =
    ROW("Trilu", 14, 1, 2, 1, 1, trilu_attrs, trilu_infer, NULL, "3x4");
const struct accel_op accel_op_non_max_suppression =
    ROW("NonMaxSuppression", 10, 2, 5, 1, 1, nms_attrs, nms_infer, NULL, "1x6x4 1x2x6");
