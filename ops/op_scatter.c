/* ScatterElements (Scatter in opset 9), ScatterND, TensorScatter: a copy of the data in which
 * elements or rows are replaced, or joined with what is there by a reduction. */
#include "ops/op_util.h"

struct scatter {
    int64_t axis;
    char how; /* reduction: n(one), a(dd), m(ul), x (max), i (min) */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct scatter *p = accel_op_params(n, sizeof *p);
    const char *reduction;
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_string(&reduction, n, "reduction", "none"));
    static const char *const known[] = {"none", "add", "mul", "max", "min"};
    bool found = false;
    for (int i = 0; i < 5; i++)
        found = found || strcmp(reduction, known[i]) == 0;
    if (!found)
        return accel_fail(ACCEL_EMODEL, "reduction is '%.100s'", reduction);
    p->how = strcmp(reduction, "max") == 0   ? 'x'
             : strcmp(reduction, "min") == 0 ? 'i'
                                             : reduction[0];
    return accel_attr_int(&p->axis, n, "axis", 0);
}

static enum accel_err elements_infer(struct accel_node *n)
{
    const struct scatter *p = n->params;
    int r = accel_operand_rank(n, 0), axis;
    if (r >= 0)
        ACCEL_TRY(accel_axis_of(&axis, p->axis, r));
    for (int i = 1; i < 3; i++) {
        int q = accel_operand_rank(n, i);
        if (r >= 0 && q >= 0 && r != q)
            return accel_fail(ACCEL_ESHAPE, "data has rank %d, input %d has %d", r, i, q);
        for (int k = 0; i == 2 && k < q; k++)
            if (accel_dim_differs(accel_operand_dim(n, 1, k), accel_operand_dim(n, 2, k)))
                return accel_fail(ACCEL_ESHAPE, "axis %d is %lld in indices and %lld in updates", k,
                                  (long long)accel_operand_dim(n, 1, k).n,
                                  (long long)accel_operand_dim(n, 2, k).n);
    }
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

static enum accel_err place(int64_t *out, int64_t at, int64_t size)
{
    if (at < -size || at >= size)
        return accel_fail(ACCEL_ESHAPE, "index %lld of an axis of size %lld", (long long)at,
                          (long long)size);
    *out = at < 0 ? at + size : at;
    return ACCEL_OK;
}

/* y[at …] and up[from …] by the reduction. */
static enum accel_err merge(const struct accel_array *y, int64_t at, const struct accel_array *up,
                            int64_t from, int64_t count, char how)
{
    if (how == 'n') {
        accel_array_copy(y, at, up, from, count);
        return ACCEL_OK;
    }
    if (accel_dtype_find((int)y->dtype)->cls == ACCEL_CLASS_OTHER)
        return accel_fail(ACCEL_ENOSUP, "a reduction of %s", accel_dtype_find((int)y->dtype)->name);
    for (int64_t i = 0; i < count; i++) {
        double a, b;
        accel_dtype_to_f64(y->dtype, y->data, (size_t)(at + i), 1, &a);
        accel_dtype_to_f64(up->dtype, up->data, (size_t)(from + i), 1, &b);
        a = how == 'a' ? a + b : how == 'm' ? a * b : (how == 'x') == (b > a) ? b : a;
        accel_dtype_from_f64(y->dtype, &a, 1, y->data, (size_t)(at + i));
    }
    return ACCEL_OK;
}

static enum accel_err elements_forward(const struct accel_call *c)
{
    const struct scatter *p = c->node->params;
    const struct accel_array *index = &c->x[1], *up = &c->x[2], *y = &c->y[0];
    int axis = (int)(p->axis < 0 ? p->axis + y->rank : p->axis);
    ACCEL_TRY(accel_kernel_copy(c));
    for (int64_t i = 0; i < index->n; i++) {
        int64_t rest = i, at = 0, span = 1;
        for (int k = y->rank - 1; k >= 0; k--) {
            int64_t here = rest % index->dim[k];
            rest /= index->dim[k];
            if (k == axis)
                here = ((const int64_t *)index->data)[i];
            ACCEL_TRY(place(&here, here, y->dim[k]));
            at += here * span;
            span *= y->dim[k];
        }
        ACCEL_TRY(merge(y, at, up, i, 1, p->how));
    }
    return ACCEL_OK;
}

static enum accel_err nd_infer(struct accel_node *n)
{
    int r = accel_operand_rank(n, 0), q = accel_operand_rank(n, 1), u = accel_operand_rank(n, 2);
    if (q == 0)
        return accel_fail(ACCEL_ESHAPE, "indices are a scalar");
    struct accel_dim depth = accel_operand_dim(n, 1, -1);
    if (r >= 0 && q > 0 && accel_dim_known(depth)) {
        if (depth.n > r)
            return accel_fail(ACCEL_ESHAPE, "indices of %lld numbers for data of rank %d",
                              (long long)depth.n, r);
        if (u >= 0 && u != q - 1 + r - (int)depth.n)
            return accel_fail(ACCEL_ESHAPE, "updates have rank %d instead of %d", u,
                              q - 1 + r - (int)depth.n);
    }
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

static enum accel_err nd_forward(const struct accel_call *c)
{
    const struct scatter *p = c->node->params;
    const struct accel_array *index = &c->x[1], *up = &c->x[2], *y = &c->y[0];
    int depth = (int)index->dim[index->rank - 1];
    int64_t inner = accel_array_span(y, depth, y->rank);
    ACCEL_TRY(accel_kernel_copy(c));
    int64_t rows = accel_array_span(index, 0, index->rank - 1);
    for (int64_t i = 0; up->n > 0 && i < rows; i++) {
        int64_t at = 0;
        for (int k = 0; k < depth; k++) {
            int64_t here;
            ACCEL_TRY(place(&here, ((const int64_t *)index->data)[i * depth + k], y->dim[k]));
            at = at * y->dim[k] + here;
        }
        if ((i + 1) * inner > up->n)
            return accel_fail(ACCEL_ESHAPE, "too few updates");
        ACCEL_TRY(merge(y, at * inner, up, i * inner, inner, p->how));
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ TensorScatter */

static enum accel_err cache_infer(struct accel_node *n)
{
    const struct scatter *p = n->params;
    int rank = accel_operand_rank(n, 0), axis;
    if (rank >= 0) {
        ACCEL_TRY(accel_operand_check_rank(n, 1, rank));
        ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
        if (axis == 0)
            return accel_fail(ACCEL_EMODEL, "axis 0 is the batch");
        for (int i = 0; i < rank && accel_operand_rank(n, 1) == rank; i++) {
            struct accel_dim a = accel_operand_dim(n, 0, i), b = accel_operand_dim(n, 1, i);
            if (i == axis ? a.n >= 0 && b.n > a.n : accel_dim_differs(a, b))
                return accel_fail(ACCEL_ESHAPE, "axis %d of the update is %lld, the cache has %lld",
                                  i, (long long)b.n, (long long)a.n);
        }
    }
    ACCEL_TRY(accel_operand_check_vector(n, 2, accel_operand_dim(n, 0, 0), "write_indices"));
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

static enum accel_err cache_parse(struct accel_node *n, int opset)
{
    struct scatter *p = accel_op_params(n, sizeof *p);
    const char *mode;
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_string(&mode, n, "mode", "linear"));
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'mode' is '%.100s'", mode);
    p->how = mode[0];
    return accel_attr_int(&p->axis, n, "axis", -2);
}

/* A cache [B … T …] gets an update [B … S …] behind the write index of each sample; a circular one
 * goes on at its start. */
static enum accel_err cache_forward(const struct accel_call *c)
{
    const struct scatter *p = c->node->params;
    const struct accel_array *x = &c->x[0], *u = &c->x[1], *y = &c->y[0];
    const int64_t *start = c->node->n_in > 2 ? c->x[2].data : NULL;
    int axis;
    ACCEL_TRY(accel_axis_of(&axis, p->axis, x->rank));
    int64_t T = x->dim[axis], S = u->dim[axis], inner = accel_array_span(x, axis + 1, x->rank);
    int64_t rows = u->n && inner ? u->n / inner / S : 0, per = accel_array_span(u, 1, axis);
    accel_array_copy(y, 0, x, 0, x->n);
    for (int64_t i = 0; i < rows; i++) {
        int64_t from = start ? start[i / per] : 0;
        if (from < 0 || from > (p->how == 'c' ? T - 1 : T - S))
            return accel_fail(ACCEL_ESHAPE, "write index %lld for %lld rows of %lld",
                              (long long)from, (long long)S, (long long)T);
        for (int64_t s = 0; s < S; s++)
            accel_array_copy(y, (i * T + (from + s) % T) * inner, u, (i * S + s) * inner, inner);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule elements_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"reduction", ACCEL_ATTR_STRING, 0}, {0}};
static const struct accel_attr_rule scatter_attrs[] = {{"axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule nd_attrs[] = {{"reduction", ACCEL_ATTR_STRING, 0}, {0}};

static const struct accel_attr_rule cache_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"mode", ACCEL_ATTR_STRING, 0}, {0}};

#define ROW(op_name, first, rules, inf, fwd, eg)                                                   \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = 3, .max_in = 3, .min_out = 1, \
        .max_out = 1, .flags = ACCEL_OP_MOVES, .data_slots = 1 | 4, .attrs = (rules),              \
        .parse = parse, .infer = (inf), .forward = (fwd),                                          \
        .examples = (const char *const[]){(eg), NULL},                                             \
    }

const struct accel_op accel_op_scatter_elements =
    ROW("ScatterElements", 11, elements_attrs, elements_infer, elements_forward, "3x4 i64:2x4 2x4");
const struct accel_op accel_op_scatter =
    ROW("Scatter", 9, scatter_attrs, elements_infer, elements_forward, "3x4 i64:2x4 2x4");
const struct accel_op accel_op_scatter_nd =
    ROW("ScatterND", 11, nd_attrs, nd_infer, nd_forward, "5x4 i64:3x1 3x4");
const struct accel_op accel_op_tensor_scatter = {
    .name = "TensorScatter",
    .domain = "",
    .since = 24,
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = cache_attrs,
    .parse = cache_parse,
    .infer = cache_infer,
    .forward = cache_forward,
    .data_slots = 3,
    .examples = (const char *const[]){"2x3x5x4 2x3x2x4 i64:2", "2x4x3 2x2x3 | mode=circular", NULL},
};
