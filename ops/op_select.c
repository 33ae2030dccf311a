/* Operators that look at elements to decide which to take: TopK, ArgMax, ArgMin, NonZero, Compress,
 * OneHot, ReverseSequence, Trilu. */
#include <stdlib.h>

#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/op_util.h"
#include "ops/real.h"

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

/* ------------------------------------------------------------------------------ Compress */

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

/* ------------------------------------------------------------------------------ links */

static void arg_links(const struct accel_node *n, struct accel_links *l)
{
    const struct select *p = n->params;
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0), axis;
    if (rank < 1 || axis_or(&axis, n, 0, rank))
        return;
    for (int k = 0; k < rank; k++)
        if (k != axis)
            accel_links_pair(l, 0, k, y, k - (k > axis && !p->keep));
    if (p->keep)
        accel_links_seen(l, y, axis);
}

/* All axes but those of the matrices. */
static void trilu_links(const struct accel_node *n, struct accel_links *l)
{
    accel_link_range(l, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0) - 2);
}

static void trilu_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0) - 2, true);
}

/* ------------------------------------------------------------------------------ kernels */

static double element(const struct accel_array *x, int64_t i)
{
    return accel_op_is_int(x) ? (double)((const int64_t *)x->data)[i]
                              : (double)((const real *)x->data)[i];
}

static void put(const struct accel_array *y, int64_t i, const struct accel_array *x, int64_t from)
{
    if (accel_op_is_int(x))
        ((int64_t *)y->data)[i] = ((const int64_t *)x->data)[from];
    else
        ((real *)y->data)[i] = ((const real *)x->data)[from];
}

static enum accel_err arg_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    bool least = c->node->op->family != NULL;
    int64_t last;
    int axis;
    ACCEL_TRY(axis_or(&axis, c->node, 0, x->rank));
    ACCEL_TRY(accel_attr_int(&last, c->node, "select_last_index", 0));
    int64_t step = accel_array_span(x, axis + 1, x->rank), size = x->dim[axis];
    for (int64_t i = 0; size && i < x->n / size; i++) {
        int64_t first = i / step * step * size + i % step, best = 0;
        for (int64_t k = 1; k < size; k++) {
            double v = element(x, first + k * step), b = element(x, first + best * step);
            if (least ? v < b : v > b)
                best = k;
            else if (last && !(v < b) && !(v > b))
                best = k;
        }
        ((int64_t *)c->y[0].data)[i] = best;
    }
    return ACCEL_OK;
}

/* A line of elements that are ranked. */
struct line {
    const struct accel_array *x;
    int64_t first, step;
    bool largest;
};

/* The better element first, equal ones by their place. */
static int by_rank(const void *a, const void *b, void *ctx)
{
    const struct line *l = ctx;
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    double x = element(l->x, l->first + i * l->step), y = element(l->x, l->first + k * l->step);
    if (x < y || x > y)
        return (x > y) == l->largest ? -1 : 1;
    return i < k ? -1 : i > k;
}

static size_t topk_scratch(const struct accel_call *c)
{
    return (size_t)c->x[0].n * sizeof(int64_t);
}

static enum accel_err topk_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int64_t largest, *rank = c->scratch;
    int axis;
    ACCEL_TRY(axis_or(&axis, c->node, -1, x->rank));
    ACCEL_TRY(accel_attr_int(&largest, c->node, "largest", 1));
    int64_t step = accel_array_span(x, axis + 1, x->rank), size = x->dim[axis], k = y->dim[axis];
    if (k > size)
        return accel_fail(ACCEL_ESHAPE, "k is %lld, axis %d has %lld", (long long)k, axis,
                          (long long)size);
    for (int64_t i = 0; size && i < x->n / size; i++) {
        struct line l = {x, i / step * step * size + i % step, step, largest != 0};
        int64_t to = i / step * step * k + i % step;
        for (int64_t e = 0; e < size; e++)
            rank[e] = e;
        qsort_r(rank, (size_t)size, sizeof *rank, by_rank, &l);
        for (int64_t e = 0; e < k; e++) {
            put(y, to + e * step, x, l.first + rank[e] * step);
            if (c->node->n_out > 1 && c->y[1].data)
                ((int64_t *)c->y[1].data)[to + e * step] = rank[e];
        }
    }
    return ACCEL_OK;
}

static int64_t truths(const struct accel_array *a, int64_t most)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->n && i < most; i++)
        n += ((const int64_t *)a->data)[i] != 0;
    return n;
}

static enum accel_err nonzero_size(const struct accel_call *c, int slot, int64_t *dim)
{
    (void)slot;
    dim[1] = 0;
    for (int64_t i = 0; i < c->x[0].n; i++)
        dim[1] += element(&c->x[0], i) != 0;
    return ACCEL_OK;
}

static enum accel_err compress_axis(int *axis, int64_t *size, const struct accel_call *c)
{
    const struct select *p = c->node->params;
    *axis = 0;
    if (p->axis != INT64_MIN)
        ACCEL_TRY(axis_or(axis, c->node, 0, c->x[0].rank));
    *size = p->axis == INT64_MIN ? c->x[0].n : c->x[0].dim[*axis];
    return ACCEL_OK;
}

static enum accel_err compress_size(const struct accel_call *c, int slot, int64_t *dim)
{
    int axis;
    int64_t size;
    (void)slot;
    ACCEL_TRY(compress_axis(&axis, &size, c));
    dim[axis] = truths(&c->x[1], size);
    return ACCEL_OK;
}

static enum accel_err compress_forward(const struct accel_call *c)
{
    const struct select *p = c->node->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int axis;
    int64_t size, at = 0;
    ACCEL_TRY(compress_axis(&axis, &size, c));
    int64_t step = p->axis == INT64_MIN ? 1 : accel_array_span(x, axis + 1, x->rank);
    for (int64_t i = 0; size && i < x->n / step; i++) {
        int64_t k = i % size;
        if (k < c->x[1].n && ((const int64_t *)c->x[1].data)[k] != 0 && (at + 1) * step <= y->n)
            for (int64_t e = 0; e < step; e++)
                put(y, at * step + e, x, i * step + e);
        at += k < c->x[1].n && ((const int64_t *)c->x[1].data)[k] != 0;
    }
    return ACCEL_OK;
}

static enum accel_err onehot_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int axis;
    ACCEL_TRY(axis_or(&axis, c->node, -1, y->rank));
    int64_t step = accel_array_span(y, axis + 1, y->rank), depth = y->dim[axis];
    for (int64_t i = 0; i < y->n; i++) {
        int64_t k = i / step % depth, from = i / (step * depth) * step + i % step;
        double want = element(x, from);
        want = want < 0 ? want + (double)depth : want;
        put(y, i, &c->x[2], want >= (double)k && want < (double)k + 1);
    }
    return ACCEL_OK;
}

static enum accel_err trilu_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    int64_t upper, k = c->node->n_in > 1 && c->x[1].data ? *(const int64_t *)c->x[1].data : 0;
    int64_t cols = x->dim[x->rank - 1], rows = x->dim[x->rank - 2];
    ACCEL_TRY(accel_attr_int(&upper, c->node, "upper", 1));
    k = k > cols ? cols : k < -rows ? -rows : k;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t off = i % cols - i / cols % rows;
        bool keep = upper ? off >= k : off <= k;
        if (keep)
            put(y, i, x, i);
        else if (accel_op_is_int(y))
            ((int64_t *)y->data)[i] = 0;
        else
            ((real *)y->data)[i] = 0;
    }
    return ACCEL_OK;
}

static enum accel_err reverse_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *len = &c->x[1];
    int64_t batch, time;
    ACCEL_TRY(accel_attr_int(&batch, c->node, "batch_axis", 1));
    ACCEL_TRY(accel_attr_int(&time, c->node, "time_axis", 0));
    if (batch < 0 || batch > 1 || time < 0 || time > 1 || batch == time)
        return accel_fail(ACCEL_EMODEL, "batch_axis %lld, time_axis %lld", (long long)batch,
                          (long long)time);
    int64_t step = accel_array_span(x, 2, x->rank);
    for (int64_t i = 0; i < x->n; i++) {
        int64_t at[2] = {i / step / x->dim[1], i / step % x->dim[1]};
        int64_t n = at[batch] < len->n ? ((const int64_t *)len->data)[at[batch]] : 0;
        if (n < 0 || n > x->dim[time])
            return accel_fail(ACCEL_ESHAPE, "a sequence has %lld steps of %lld", (long long)n,
                              (long long)x->dim[time]);
        if (at[time] < n)
            at[time] = n - 1 - at[time];
        put(&c->y[0], i, x, (at[0] * x->dim[1] + at[1]) * step + i % step);
    }
    return ACCEL_OK;
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
static const struct accel_attr_rule reverse_attrs[] = {
    {"batch_axis", ACCEL_ATTR_INT, 0}, {"time_axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule trilu_attrs[] = {{"upper", ACCEL_ATTR_INT, 0}, {0}};

static const bool least = true;

#define ROW(op_name, first, n_min, n_max, o_min, o_max, flag, rules, inf, eg, ...)                 \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_min), .max_in = (n_max),   \
        .min_out = (o_min), .max_out = (o_max), .flags = (flag), .attrs = (rules), .parse = parse, \
        .infer = (inf), .examples = (const char *const[]){(eg), NULL}, __VA_ARGS__                 \
    }

const struct accel_op accel_op_topk =
    ROW("TopK", 1, 1, 2, 2, 2, ACCEL_OP_COMPARES, topk_attrs, topk_infer, "3x8 [2]",
        .forward = topk_forward, .scratch = topk_scratch);
const struct accel_op accel_op_arg_max =
    ROW("ArgMax", 1, 1, 1, 1, 1, ACCEL_OP_COMPARES, arg_attrs, arg_infer, "3x4 | axis=1",
        .links = arg_links, .forward = arg_forward);
const struct accel_op accel_op_arg_min =
    ROW("ArgMin", 1, 1, 1, 1, 1, ACCEL_OP_COMPARES, arg_attrs, arg_infer, "3x4 | axis=1 keepdims=0",
        .links = arg_links, .forward = arg_forward, .family = &least);
const struct accel_op accel_op_non_zero =
    ROW("NonZero", 9, 1, 1, 1, 1, 0, NULL, nonzero_infer, "3x4", .forward = nonzero_forward,
        .size = nonzero_size);
const struct accel_op accel_op_compress =
    ROW("Compress", 9, 2, 2, 1, 1, 0, axis_attrs, compress_infer, "3x4 bool:3 | axis=0",
        .forward = compress_forward, .size = compress_size);
const struct accel_op accel_op_one_hot = ROW("OneHot", 9, 3, 3, 1, 1, 0, axis_attrs, onehot_infer,
                                             "i64:3 scalar[5] 2", .forward = onehot_forward);
const struct accel_op accel_op_reverse_sequence =
    ROW("ReverseSequence", 10, 2, 2, 1, 1, 0, reverse_attrs, reverse_infer, "4x2 i64:2",
        .forward = reverse_forward);
const struct accel_op accel_op_trilu =
    ROW("Trilu", 14, 1, 2, 1, 1, 0, trilu_attrs, trilu_infer, "2x3x4", .links = trilu_links,
        .zero = trilu_zero, .forward = trilu_forward);
