/* Expand, Tile, Where: outputs larger than their inputs. */
#include "ops/arith.h"
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

#define ROW(op_name, first, n_min, n_max, inf, fwd, slots, ...)                                    \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_min), .max_in = (n_max),   \
        .min_out = 1, .max_out = 1, .flags = ACCEL_OP_MOVES, .infer = (inf), .forward = (fwd),     \
        .data_slots = (slots), .examples = (const char *const[]){__VA_ARGS__, NULL},               \
    }

const struct accel_op accel_op_expand =
    ROW("Expand", 8, 2, 2, expand_infer, expand_forward, 1, "3x1 [2,1,4]");
const struct accel_op accel_op_tile =
    ROW("Tile", 1, 2, 3, tile_infer, tile_forward, 1, "3x2 [1,4]");
const struct accel_op accel_op_where =
    ROW("Where", 9, 3, 3, where_infer, where_forward, 2 | 4, "bool:3x1 3x4 4");
