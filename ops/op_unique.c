/* Unique: the different elements of X, or its different slices along an axis -> Y, where each is
 * first, which of Y every one is, how often it comes.
 *
 * Slices are sorted by merging, ties staying in order, so that the first of equal ones is the
 * earliest: n log n comparisons. Sizes are counted in the same way before the outputs have memory.
 * NaN counts as the largest number and equal to itself. */
#include "ops/arith.h"
#include "ops/op_util.h"
#include "ops/real.h"

struct unique {
    bool flat, sorted;
    int64_t axis;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct unique *p = accel_op_params(n, sizeof *p);
    int64_t sorted;
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    p->flat = accel_attr_find(n, "axis") == NULL;
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", 0));
    ACCEL_TRY(accel_attr_int(&sorted, n, "sorted", 1));
    p->sorted = sorted != 0;
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct unique *p = n->params;
    int rank = accel_operand_rank(n, 0), axis = 0;
    struct accel_dim unknown = accel_dim_unknown(), all = unknown;
    if (!p->flat && rank >= 0) {
        ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
        all = accel_operand_dim(n, 0, axis);
    } else if (p->flat && accel_operand_count(n, 0) >= 0) {
        all = accel_dim_of(accel_operand_count(n, 0));
    }
    ACCEL_TRY(accel_result_dims(n, 1, ACCEL_I64, 1, &unknown));
    ACCEL_TRY(accel_result_dims(n, 2, ACCEL_I64, 1, &all));
    ACCEL_TRY(accel_result_dims(n, 3, ACCEL_I64, 1, &unknown));
    if (p->flat)
        return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 1, &unknown);
    ACCEL_TRY(accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0)));
    if (rank >= 0 && n->n_out && n->out[0])
        n->out[0]->shape.dim[axis] = unknown;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ kernel */

/* Slices of X: elements of slice s are outer * [of x n] + s * inner + … */
struct slices {
    const struct accel_array *x;
    int64_t n, outer, inner;
    int64_t *order, *room; /* [n] sorted slices; room for merging, later numbers of groups */
    int64_t *first;        /* [n] first slice of each group, in the order of Y */
};

static size_t scratch(const struct accel_call *c)
{
    return (size_t)(c->x[0].n + 1) * 3 * sizeof(int64_t);
}

static int compare_at(const struct accel_array *x, int64_t i, int64_t j)
{
    if (accel_op_is_int(x)) {
        uint64_t flip = x->dtype == ACCEL_U64 ? 0 : (uint64_t)1 << 63;
        uint64_t a = (uint64_t)((const int64_t *)x->data)[i] ^ flip;
        uint64_t b = (uint64_t)((const int64_t *)x->data)[j] ^ flip;
        return a < b ? -1 : a > b;
    }
    real a = ((const real *)x->data)[i], b = ((const real *)x->data)[j];
    if (a != a || b != b)
        return (a != a) - (b != b);
    return a < b ? -1 : a > b;
}

static int compare(const struct slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            int64_t at = o * s->n * s->inner + i;
            int less = compare_at(s->x, at + a * s->inner, at + b * s->inner);
            if (less)
                return less;
        }
    return 0;
}

static void sort(struct slices *s)
{
    for (int64_t i = 0; i < s->n; i++)
        s->order[i] = i;
    for (int64_t run = 1; run < s->n; run *= 2) {
        for (int64_t from = 0; from < s->n; from += 2 * run) {
            int64_t mid = from + run < s->n ? from + run : s->n;
            int64_t end = mid + run < s->n ? mid + run : s->n;
            for (int64_t k = from, a = from, b = mid; k < end; k++) {
                bool left = a < mid && (b >= end || compare(s, s->order[a], s->order[b]) <= 0);
                s->room[k] = s->order[left ? a++ : b++];
            }
        }
        memcpy(s->order, s->room, (size_t)s->n * sizeof *s->order);
    }
}

/* Sorts, and returns the number of groups: room[slice] = group, first[group] = slice. */
static int64_t group(struct slices *s, const struct accel_call *c)
{
    const struct unique *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    int64_t groups = 0;
    *s = (struct slices){.x = x, .n = x->n, .outer = 1, .inner = 1};
    if (!p->flat) {
        int axis = (int)(p->axis < 0 ? p->axis + x->rank : p->axis);
        s->n = x->n ? x->dim[axis] : 0;
        s->outer = accel_array_span(x, 0, axis);
        s->inner = accel_array_span(x, axis + 1, x->rank);
    }
    s->order = c->scratch;
    s->room = s->order + s->n;
    s->first = s->room + s->n;
    sort(s);
    for (int64_t i = 0; i < s->n; i++) {
        if (i == 0 || compare(s, s->order[i - 1], s->order[i]) != 0)
            s->first[groups++] = s->order[i];
        s->room[s->order[i]] = groups - 1;
    }
    if (p->sorted)
        return groups;
    /* in order of appearance: groups get new numbers; order[] is free by now */
    for (int64_t g = 0; g < groups; g++)
        s->order[g] = -1;
    groups = 0;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t *number = &s->order[s->room[i]];
        if (*number < 0) {
            *number = groups++;
            s->first[*number] = i;
        }
        s->room[i] = *number;
    }
    return groups;
}

static enum accel_err size(const struct accel_call *c, int slot, int64_t *dim)
{
    const struct unique *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    struct slices s;
    int64_t groups = group(&s, c);
    dim[0] = slot == 2 ? s.n : groups;
    if (slot == 0 && !p->flat)
        for (int i = 0; i < x->rank; i++)
            dim[i] = i == (p->axis < 0 ? p->axis + x->rank : p->axis) ? groups : x->dim[i];
    return ACCEL_OK;
}

static int64_t *wanted(const struct accel_call *c, int slot)
{
    return slot < c->node->n_out ? c->y[slot].data : NULL;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct slices s;
    int64_t groups = group(&s, c);
    int64_t *first = wanted(c, 1), *which = wanted(c, 2), *times = wanted(c, 3);
    if (y->data && y->n != s.outer * groups * s.inner)
        return accel_fail(ACCEL_ESHAPE, "%lld groups for %lld elements", (long long)groups,
                          (long long)y->n);
    for (int64_t i = 0; y->data && i < y->n; i++) {
        int64_t in = i % s.inner, g = i / s.inner % groups, o = i / s.inner / groups;
        int64_t at = (o * s.n + s.first[g]) * s.inner + in;
        if (accel_op_is_int(y))
            ((int64_t *)y->data)[i] = ((const int64_t *)x->data)[at];
        else
            ((real *)y->data)[i] = ((const real *)x->data)[at];
    }
    for (int64_t g = 0; g < groups; g++) {
        if (first)
            first[g] = s.first[g];
        if (times)
            times[g] = 0;
    }
    for (int64_t i = 0; i < s.n; i++) {
        if (which)
            which[i] = s.room[i];
        if (times)
            times[s.room[i]]++;
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"sorted", ACCEL_ATTR_INT, 0}, {0}};
static const char *const examples[] = {"3x4 | axis=0", "3x4 | sorted=0", NULL};

const struct accel_op accel_op_unique = {
    .name = "Unique",
    .domain = "",
    .since = 11,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 4,
    .flags = ACCEL_OP_COMPARES,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .forward = forward,
    .scratch = scratch,
    .size = size,
    .examples = examples,
};
