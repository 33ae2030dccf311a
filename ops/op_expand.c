/* Expand, Tile, Where: outputs larger than their inputs. */
#include <math.h>

#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/op_util.h"

static enum accel_err expand_infer(struct accel_node *n)
{
    const struct accel_value *x = accel_operand(n, 0);
    struct accel_shape to, out = {-1, NULL};
    ACCEL_TRY(accel_shape_from_input(&to, n, 1));
    if (x && x->shape.rank >= 0 && to.rank >= 0) {
        int r = x->shape.rank, rank = r > to.rank ? r : to.rank;
        ACCEL_TRY(accel_shape_new(&out, n, rank));
        for (int i = 0; i < rank; i++) {
            struct accel_dim a = i < rank - r ? accel_dim_of(1) : x->shape.dim[i - rank + r];
            struct accel_dim b = i < rank - to.rank ? accel_dim_of(1) : to.dim[i - rank + to.rank];
            if (!accel_dim_stretch(&out.dim[i], a, b))
                return accel_fail(ACCEL_ESHAPE, "axis %d of size %lld does not expand to %lld", i,
                                  (long long)a.n, (long long)b.n);
        }
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

static enum accel_err expand_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    for (int64_t i = 0; i < y->n; i++)
        accel_array_copy(y, i, x, accel_op_meet(x, y, y->rank - x->rank, i), 1);
    return ACCEL_OK;
}

/* Axis of the input that output axis `axis` of Expand is; -1: it is made by the shape, or only the
 * run tells. *made: for certain by the shape, and of a size in numbers. */
static int expand_source(bool *made, const struct accel_node *n, int axis)
{
    int own = accel_link_stretched(n, 0, axis);
    int lies = axis - (accel_slot_rank(n, accel_link_out(n, 0)) - accel_slot_rank(n, 0));
    *made = own < 0 && (lies < 0 || n->in[0]->shape.dim[lies].n == 1) &&
            accel_dim_known(n->out[0]->shape.dim[axis]);
    return own;
}

static void expand_links(const struct accel_node *n, struct accel_links *l)
{
    int y = accel_link_out(n, 0), shift = accel_slot_rank(n, y) - accel_slot_rank(n, 0);
    for (int axis = 0; axis < accel_slot_rank(n, y); axis++) {
        bool made;
        int own = expand_source(&made, n, axis);
        if (own >= 0)
            accel_links_pair(l, 0, own, y, axis);
        if (made) {
            accel_links_seen(l, 0, axis - shift);
            accel_links_seen(l, y, axis);
        }
    }
}

/* Along an axis that is made, every unit is the input itself. */
static void expand_zero(const struct accel_node *n, struct accel_zero *z)
{
    int y = accel_link_out(n, 0);
    bool real = accel_dtype_is_float(accel_operand_dtype(n, 0)), made;
    float number = real ? accel_zero_number(z, 0) : NAN;
    for (int axis = 0; axis < accel_slot_rank(n, y); axis++) {
        int own = expand_source(&made, n, axis);
        if (own >= 0)
            accel_zero_copy(z, 0, own, y, axis);
        else if (made && !isnan(number))
            accel_zero_set(z, y, axis, number);
    }
}

/* Sizes of the output, aligned right; 1 stays 1. A size that varies with the batch but can no
 * longer be computed may be 1 as well where the input has that size. */
static enum accel_err expand_resize(struct accel_node *n, struct accel_resize *r)
{
    const struct accel_known *k = accel_operand(n, 1) ? accel_known_get(n->in[1]) : NULL;
    int y = accel_link_out(n, 0), rank = accel_slot_rank(n, y);
    bool copied = true, made;
    if (!k || k->real || k->n > rank || rank < 0)
        return n->graph->model->symbols.failed;
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, k->n);
    if (!want)
        return accel_fail_nomem();
    for (int64_t i = 0; i < k->n; i++) {
        int axis = rank - (int)k->n + (int)i;
        int64_t old;
        bool constant = accel_known_constant(&old, k, i);
        if (constant && (old == 1 || !accel_resize_hit(r, y, axis)))
            want[i] = old;
        else if (accel_dim_known(n->out[0]->shape.dim[axis]))
            want[i] = accel_resize_now(r, y, axis);
        else
            want[i] = accel_resize_hit(r, y, axis) ? 1 : ACCEL_SIZE_VARIES;
        copied = copied && (want[i] != ACCEL_SIZE_VARIES || expand_source(&made, n, axis) >= 0);
    }
    return accel_resize_ints(r, 1, want, k->n, copied ? 1 : ACCEL_SIZE_VARIES);
}

/* ------------------------------------------------------------------------------ Tile */

static enum accel_err tile_infer(struct accel_node *n)
{
    const struct accel_value *x = accel_operand(n, 0);
    struct accel_shape times, out = {-1, NULL};
    ACCEL_TRY(accel_shape_from_input(&times, n, 1));
    if (x && x->shape.rank >= 0) {
        if (times.rank >= 0 && times.rank != x->shape.rank)
            return accel_fail(ACCEL_ESHAPE, "%d repeats for an input of rank %d", times.rank,
                              x->shape.rank);
        ACCEL_TRY(accel_shape_new(&out, n, x->shape.rank));
        for (int i = 0; times.rank >= 0 && i < out.rank; i++)
            ACCEL_TRY(accel_dim_mul(&out.dim[i], accel_operand_symbols(n), x->shape.dim[i],
                                    times.dim[i]));
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

static enum accel_err tile_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i, at = 0, span = 1;
        for (int k = y->rank - 1; k >= 0; k--) {
            at += rest % y->dim[k] % x->dim[k] * span;
            span *= x->dim[k];
            rest /= y->dim[k];
        }
        accel_array_copy(y, i, x, at, 1);
    }
    return ACCEL_OK;
}

/* Repeats of an axis, -1 when they depend on a symbol or are not known. */
static int64_t repeats(const struct accel_node *n, int axis)
{
    const struct accel_known *k = n->n_in == 2 && n->in[1] ? accel_known_get(n->in[1]) : NULL;
    int64_t r;
    return k && k->n == accel_slot_rank(n, 0) && accel_known_constant(&r, k, axis) ? r : -1;
}

static void tile_links(const struct accel_node *n, struct accel_links *l)
{
    int y = accel_link_out(n, 0);
    for (int axis = 0; axis < accel_slot_rank(n, 0); axis++) {
        int64_t r = repeats(n, axis), size = n->in[0]->shape.dim[axis].n;
        if (r == 1)
            accel_links_pair(l, 0, axis, y, axis);
        else if (r > 1 && size > 1)
            accel_links_tie(l, size, 2,
                            (const struct accel_side[]){accel_side_whole(0, axis),
                                                        accel_side_of(y, axis, 0, r, size, 1)});
    }
    (void)accel_links_ok(l, n->graph->model->symbols.failed);
}

/* The repeats stay; computed ones may have to be written as numbers. */
static enum accel_err tile_resize(struct accel_node *n, struct accel_resize *r)
{
    int rank = accel_slot_rank(n, 0);
    if (n->n_in != 2 || rank < 0)
        return ACCEL_OK;
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, rank);
    if (!want)
        return accel_fail_nomem();
    for (int axis = 0; axis < rank; axis++) {
        want[axis] = repeats(n, axis);
        want[axis] = want[axis] < 0 ? ACCEL_SIZE_VARIES : want[axis];
    }
    return accel_resize_ints(r, 1, want, rank, ACCEL_SIZE_VARIES);
}

/* ------------------------------------------------------------------------------ Where */

static enum accel_err where_infer(struct accel_node *n)
{
    struct accel_shape out;
    enum accel_dtype dtype = accel_operand_dtype(n, 1);
    ACCEL_TRY(accel_operands_broadcast(&out, n, 0, n->n_in));
    accel_result_set(n, 0, dtype != ACCEL_UNDEFINED ? dtype : accel_operand_dtype(n, 2), out);
    return ACCEL_OK;
}

/* The condition comes as int64_t, like an index. */
static enum accel_err where_forward(const struct accel_call *c)
{
    const struct accel_array *y = &c->y[0];
    for (int64_t i = 0; i < y->n; i++) {
        int64_t at = accel_op_meet(&c->x[0], y, y->rank - c->x[0].rank, i);
        const struct accel_array *x = &c->x[((const int64_t *)c->x[0].data)[at] ? 1 : 2];
        accel_array_copy(y, i, x, accel_op_meet(x, y, y->rank - x->rank, i), 1);
    }
    return ACCEL_OK;
}

/* A number where both sides have it. */
static void where_zero(const struct accel_node *n, struct accel_zero *z)
{
    int y = accel_link_out(n, 0);
    if (!accel_dtype_is_float(accel_operand_dtype(n, 1)))
        return;
    for (int axis = 0; axis < accel_slot_rank(n, y); axis++) {
        float a = accel_zero_stretched(z, 1, axis), b = accel_zero_stretched(z, 2, axis);
        if (a <= b && a >= b)
            accel_zero_set(z, y, axis, a);
    }
}

#define FIELDS(op_name, first, n_min, n_max, inf, fwd, slots, eg)                                  \
    .name = (op_name), .domain = "", .since = (first), .min_in = (n_min), .max_in = (n_max),       \
    .min_out = 1, .max_out = 1, .flags = ACCEL_OP_MOVES, .infer = (inf), .forward = (fwd),         \
    .data_slots = (slots), .examples = (eg)

static const char *const expand_examples[] = {"3x1 [2,1,4]", "3x4 [2,1,1]", "2x1x4 [2,5,1]", NULL};
static const char *const tile_examples[] = {"3x2 [1,4]", "2x3x4 [1,2,3]", NULL};
static const char *const where_examples[] = {"bool:3x1 3x4 4", "bool:2x3x4 scalar 3x4", NULL};

const struct accel_op accel_op_expand = {
    FIELDS("Expand", 8, 2, 2, expand_infer, expand_forward, 1, expand_examples),
    .links = expand_links,
    .zero = expand_zero,
    .resize = expand_resize,
    .sizes = 1u << 1,
};
const struct accel_op accel_op_tile = {
    FIELDS("Tile", 1, 2, 3, tile_infer, tile_forward, 1, tile_examples),
    .links = tile_links,
    .zero = accel_zero_moved,
    .resize = tile_resize,
    .sizes = 1u << 1,
};
const struct accel_op accel_op_where = {
    FIELDS("Where", 9, 3, 3, where_infer, where_forward, 2 | 4, where_examples),
    .links = accel_link_broadcast,
    .zero = where_zero,
};
