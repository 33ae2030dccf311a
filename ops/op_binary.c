/* Element-wise operators of two inputs: y[i] = f(a[i], b[i]), with broadcasting.
 *
 * Since opset 7 both sides are stretched by NumPy's rule. Before, only b was, when `broadcast` said
 * so, and `axis` told on which axis of a its first one lies; parse() turns both into
 * `struct binary_params`. Integer functions get exact operands and their result is wrapped to the
 * output's width. Mod, Pow and BitShift, which need more than a function, are in op_power.c. */
#include <math.h>

#include "base/threads.h"
#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/binary.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct binary {
    real (*f)(real a, real b);
    int64_t (*fi)(int64_t a, int64_t b);
    enum accel_dtype out; /* UNDEFINED: that of the inputs */
    bool divides;         /* the integer form needs b != 0 */
    unsigned absorbs;     /* operands whose 0 makes the result 0, as bits */
};

enum accel_err accel_binary_parse(struct accel_node *n, int opset)
{
    struct accel_binary_params *p =
        ACCEL_NEW(&n->graph->model->arena, struct accel_binary_params, 1);
    if (!p)
        return accel_fail_nomem();
    if (opset < 7) {
        int64_t broadcast;
        p->one_way = true;
        p->has_axis = accel_attr_find(n, "axis") != NULL;
        ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", 0));
        ACCEL_TRY(accel_attr_int(&broadcast, n, "broadcast", 0));
    }
    n->params = p;
    return ACCEL_OK;
}

/* Axis of a where b's first axis lies. */
static enum accel_err one_way_axis(int *at, const struct accel_binary_params *p, int a_rank,
                                   int b_rank)
{
    int64_t axis = !p->has_axis  ? (int64_t)a_rank - b_rank
                   : p->axis < 0 ? p->axis + a_rank
                                 : p->axis;
    if (axis < 0 || axis > a_rank - b_rank)
        return accel_fail(ACCEL_ESHAPE,
                          "second input of rank %d does not fit at axis %lld of rank %d", b_rank,
                          (long long)axis, a_rank);
    *at = (int)axis;
    return ACCEL_OK;
}

static enum accel_err infer_one_way(struct accel_node *n, enum accel_dtype dtype)
{
    const struct accel_binary_params *p = n->params;
    const struct accel_value *a = accel_operand(n, 0), *b = accel_operand(n, 1);
    if (accel_operand_rank(n, 0) < 0 || accel_operand_rank(n, 1) < 0)
        return accel_result_like(n, 0, dtype, a);
    int at = 0;
    ACCEL_TRY(one_way_axis(&at, p, a->shape.rank, b->shape.rank));
    for (int i = 0; i < b->shape.rank; i++)
        if (b->shape.dim[i].n != 1 && accel_dim_differs(a->shape.dim[at + i], b->shape.dim[i]))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the inputs is %lld and %lld", at + i,
                              (long long)a->shape.dim[at + i].n, (long long)b->shape.dim[i].n);
    return accel_result_like(n, 0, dtype, a);
}

enum accel_err accel_binary_infer(struct accel_node *n, enum accel_dtype dtype)
{
    const struct accel_binary_params *p = n->params;
    if (p && p->one_way)
        return infer_one_way(n, dtype);
    struct accel_shape y;
    ACCEL_TRY(accel_operands_broadcast(&y, n, 0, 2));
    accel_result_set(n, 0, dtype, y);
    return ACCEL_OK;
}

enum accel_err accel_binary_at(int *a_at, int *b_at, const struct accel_call *c)
{
    const struct accel_binary_params *p = c->node->params;
    *a_at = c->y[0].rank - c->x[0].rank;
    *b_at = c->y[0].rank - c->x[1].rank;
    if (p && p->one_way)
        return one_way_axis(b_at, p, c->x[0].rank, c->x[1].rank);
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct binary *f = n->op->family;
    enum accel_dtype dtype = accel_operand_dtype(n, 0);
    if (dtype == ACCEL_UNDEFINED)
        dtype = accel_operand_dtype(n, 1);
    return accel_binary_infer(n, f->out != ACCEL_UNDEFINED ? f->out : dtype);
}

static enum accel_err forward_int(const struct accel_call *c, int a_at, int b_at)
{
    const struct binary *f = c->node->op->family;
    const int64_t *a = c->x[0].data, *b = c->x[1].data;
    struct accel_array *y = &c->y[0];
    int64_t *out = y->data;
    if (!f->fi)
        return accel_fail(ACCEL_ENOSUP, "%s has no integer form", c->node->op_type);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t u = a[accel_op_meet(&c->x[0], y, a_at, i)];
        int64_t v = b[accel_op_meet(&c->x[1], y, b_at, i)];
        if (f->divides && v == 0)
            return accel_fail(ACCEL_ENOSUP, "integer division by zero");
        out[i] = accel_int_wrap(f->fi(u, v), y->dtype);
    }
    return ACCEL_OK;
}

/* A float operation and where its operands' axes begin in the result's. */
struct floats {
    const struct accel_call *call;
    int a_at, b_at;
    bool a_whole, b_whole; /* as large as the result: no stretching */
};

static bool is_whole(const struct accel_array *x, const struct accel_array *y)
{
    bool same = x->rank == y->rank;
    for (int i = 0; same && i < x->rank; i++)
        same = x->dim[i] == y->dim[i];
    return same;
}

static void run_floats(void *ctx, int64_t from, int64_t to)
{
    const struct floats *p = ctx;
    const struct accel_call *c = p->call;
    const struct binary *f = c->node->op->family;
    const struct accel_array *y = &c->y[0];
    const real *a = c->x[0].data, *b = c->x[1].data;
    for (int64_t i = from; i < to; i++) {
        int64_t k = p->a_whole ? i : accel_op_meet(&c->x[0], y, p->a_at, i);
        int64_t l = p->b_whole ? i : accel_op_meet(&c->x[1], y, p->b_at, i);
        real v = f->f(a[k], b[l]);
        if (f->out == ACCEL_BOOL)
            ((int64_t *)y->data)[i] = v != 0;
        else
            ((real *)y->data)[i] = v;
    }
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct binary *f = c->node->op->family;
    struct accel_array *y = &c->y[0];
    int a_at, b_at;
    ACCEL_TRY(accel_binary_at(&a_at, &b_at, c));
    if (accel_op_is_int(&c->x[0]) != accel_op_is_int(&c->x[1]))
        return accel_fail(ACCEL_ENOSUP, "inputs of different types");
    if (accel_op_is_int(&c->x[0]))
        return forward_int(c, a_at, b_at);
    if (!f->f)
        return accel_fail(ACCEL_ENOSUP, "%s has no float form", c->node->op_type);
    struct floats p = {c, a_at, b_at, is_whole(&c->x[0], y), is_whole(&c->x[1], y)};
    accel_threads_run(run_floats, &p, y->n, 8);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ links */

void accel_binary_links(const struct accel_node *n, struct accel_links *l)
{
    const struct accel_binary_params *p = n->params;
    if (!p->one_way || !p->has_axis)
        accel_link_broadcast(n, l);
}

/* A constant divisor is never masked; an activation as divisor must have a number at zero. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    const struct binary *f = n->op->family;
    for (int axis = 0; f->divides && axis < accel_slot_rank(n, accel_link_out(n, 0)); axis++) {
        int own = accel_link_stretched(n, 1, axis);
        float k = accel_zero_get(z, 1, own);
        if (own >= 0 && !accel_zero_is_constant(z, 1) && !(fabsf(k) > 0))
            accel_links_wall(z->links, 1, own, "divisor may be 0");
    }
    accel_zero_absorb(n, z, f->absorbs);
}

/* ------------------------------------------------------------------ functions */

static real add(real a, real b)
{
    return a + b;
}
static real sub(real a, real b)
{
    return a - b;
}
static real mul(real a, real b)
{
    return a * b;
}
static real divide(real a, real b)
{
    return a / b;
}
static int64_t divide_i(int64_t a, int64_t b)
{
    return b == -1 ? accel_int_sub(0, a) : a / b;
}
static int64_t and_i(int64_t a, int64_t b)
{
    return a & b;
}
static int64_t or_i(int64_t a, int64_t b)
{
    return a | b;
}
static int64_t xor_i(int64_t a, int64_t b)
{
    return a ^ b;
}
static real equal(real a, real b)
{
    return a == b;
}
static int64_t equal_i(int64_t a, int64_t b)
{
    return a == b;
}
static real less(real a, real b)
{
    return a < b;
}
static int64_t less_i(int64_t a, int64_t b)
{
    return a < b;
}
static real less_equal(real a, real b)
{
    return a <= b;
}
static int64_t less_equal_i(int64_t a, int64_t b)
{
    return a <= b;
}
static real greater(real a, real b)
{
    return a > b;
}
static int64_t greater_i(int64_t a, int64_t b)
{
    return a > b;
}
static real greater_equal(real a, real b)
{
    return a >= b;
}
static int64_t greater_equal_i(int64_t a, int64_t b)
{
    return a >= b;
}

/* ------------------------------------------------------------------ rows */

static const struct accel_attr_rule no_attrs[] = {{0}};
static const struct accel_attr_rule axis_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"broadcast", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule old_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                   {"broadcast", ACCEL_ATTR_INT, 0},
                                                   {"consumed_inputs", ACCEL_ATTR_INTS, 0},
                                                   {0}};
static const char *const pairs[] = {"2x3x4 2x3x4", "2x3x4 3x1", "1x4 3x1", "2x3 1", NULL};

#define ROW(onnx, opset, flag, rules, kept, ...)                                                   \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = (opset), .min_in = 2, .max_in = 2, .min_out = 1,    \
        .max_out = 1, .flags = (flag), .attrs = (rules), .parse = accel_binary_parse,              \
        .infer = infer, .links = accel_binary_links, .zero = zero, .forward = forward,             \
        .family = &(const struct binary){__VA_ARGS__}, .keep = (kept), .examples = pairs           \
    }

const struct accel_op accel_op_add = ROW("Add", 1, 0, old_attrs, 0, .f = add, .fi = accel_int_add);
const struct accel_op accel_op_sub = ROW("Sub", 1, 0, old_attrs, 0, .f = sub, .fi = accel_int_sub);
const struct accel_op accel_op_mul =
    ROW("Mul", 1, 0, old_attrs, 0, .f = mul, .fi = accel_int_mul, .absorbs = 1u << 0 | 1u << 1);
const struct accel_op accel_op_div = ROW("Div", 1, 0, old_attrs, 1u << 1, .f = divide,
                                         .fi = divide_i, .divides = true, .absorbs = 1u << 0);
const struct accel_op accel_op_and =
    ROW("And", 1, ACCEL_OP_COMPARES, axis_attrs, 0, .fi = and_i, .out = ACCEL_BOOL);
const struct accel_op accel_op_or =
    ROW("Or", 1, ACCEL_OP_COMPARES, axis_attrs, 0, .fi = or_i, .out = ACCEL_BOOL);
const struct accel_op accel_op_xor =
    ROW("Xor", 1, ACCEL_OP_COMPARES, axis_attrs, 0, .fi = xor_i, .out = ACCEL_BOOL);
const struct accel_op accel_op_equal =
    ROW("Equal", 1, ACCEL_OP_COMPARES, axis_attrs, 0, .f = equal, .fi = equal_i, .out = ACCEL_BOOL);
const struct accel_op accel_op_less =
    ROW("Less", 1, ACCEL_OP_COMPARES, axis_attrs, 0, .f = less, .fi = less_i, .out = ACCEL_BOOL);
const struct accel_op accel_op_lessorequal =
    ROW("LessOrEqual", 12, ACCEL_OP_COMPARES, no_attrs, 0, .f = less_equal, .fi = less_equal_i,
        .out = ACCEL_BOOL);
const struct accel_op accel_op_greater = ROW("Greater", 1, ACCEL_OP_COMPARES, axis_attrs, 0,
                                             .f = greater, .fi = greater_i, .out = ACCEL_BOOL);
const struct accel_op accel_op_greaterorequal =
    ROW("GreaterOrEqual", 12, ACCEL_OP_COMPARES, no_attrs, 0, .f = greater_equal,
        .fi = greater_equal_i, .out = ACCEL_BOOL);
const struct accel_op accel_op_bitwiseand =
    ROW("BitwiseAnd", 18, ACCEL_OP_COMPARES, no_attrs, 0, .fi = and_i);
const struct accel_op accel_op_bitwiseor =
    ROW("BitwiseOr", 18, ACCEL_OP_COMPARES, no_attrs, 0, .fi = or_i);
const struct accel_op accel_op_bitwisexor =
    ROW("BitwiseXor", 18, ACCEL_OP_COMPARES, no_attrs, 0, .fi = xor_i);
