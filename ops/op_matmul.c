/* Matrix products: A [… M K] times B [… K N] -> Y [… M N], leading axes by broadcasting; a vector
 * on the left is a row, on the right a column, and its axis is dropped from Y.
 *
 * Members differ in where A and B stand and in the type of Y. com.microsoft's FusedMatMul can
 * transpose both: accel_matmul_axis() says on which stored axis a logical one lies, and everything
 * else is written over logical axes. */
#include <math.h>

#include "base/threads.h"
#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/integer_links.h"
#include "ops/link_util.h"
#include "ops/matmul.h"
#include "ops/operand.h"
#include "ops/real.h"

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct accel_matmul_params *p =
        ACCEL_NEW(&n->graph->model->arena, struct accel_matmul_params, 1);
    int64_t a, b, batch_a, batch_b;
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&a, n, "transA", 0));
    ACCEL_TRY(accel_attr_int(&b, n, "transB", 0));
    ACCEL_TRY(accel_attr_int(&batch_a, n, "transBatchA", 0));
    ACCEL_TRY(accel_attr_int(&batch_b, n, "transBatchB", 0));
    ACCEL_TRY(accel_attr_float(&p->alpha, n, "alpha", 1));
    p->trans_a = a != 0;
    p->trans_b = b != 0;
    p->trans_batch_a = batch_a != 0;
    p->trans_batch_b = batch_b != 0;
    n->params = p;
    return ACCEL_OK;
}

int accel_matmul_axis(int rank, int i, bool trans, bool trans_batch)
{
    if (rank < 2)
        return i;
    if (trans && i >= rank - 2)
        i = i == rank - 2 ? rank - 1 : rank - 2;
    if (trans_batch && i < rank - 1)
        i = i == rank - 2 ? 0 : i + 1;
    return i;
}

static int axis_a(const struct accel_node *n, int i)
{
    const struct accel_matmul *f = n->op->family;
    const struct accel_matmul_params *p = n->params;
    return accel_matmul_axis(accel_operand_rank(n, f->a), i, p->trans_a, p->trans_batch_a);
}
static int axis_b(const struct accel_node *n, int i)
{
    const struct accel_matmul *f = n->op->family;
    const struct accel_matmul_params *p = n->params;
    return accel_matmul_axis(accel_operand_rank(n, f->b), i, p->trans_b, p->trans_batch_b);
}
static struct accel_dim dim_a(const struct accel_node *n, int i)
{
    return accel_operand_dim(n, ((const struct accel_matmul *)n->op->family)->a, axis_a(n, i));
}
static struct accel_dim dim_b(const struct accel_node *n, int i)
{
    return accel_operand_dim(n, ((const struct accel_matmul *)n->op->family)->b, axis_b(n, i));
}

/* Logical axis along which the operand is summed. */
static int k_of_a(int rank)
{
    return rank - 1;
}
static int k_of_b(int rank)
{
    return rank < 2 ? 0 : rank - 2;
}

static enum accel_err infer_batch(struct accel_shape *y, const struct accel_node *n, int ra, int rb,
                                  int batch)
{
    for (int i = 0; i < batch; i++) {
        int ia = i - (batch - (ra - 2)), ib = i - (batch - (rb - 2));
        struct accel_dim a = ra > 2 && ia >= 0 ? dim_a(n, ia) : accel_dim_of(1);
        struct accel_dim b = rb > 2 && ib >= 0 ? dim_b(n, ib) : accel_dim_of(1);
        if (!accel_dim_stretch(&y->dim[i], a, b))
            return accel_fail(ACCEL_ESHAPE, "batch axis %d of the inputs is %lld and %lld", i,
                              (long long)a.n, (long long)b.n);
    }
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct accel_matmul *f = n->op->family;
    enum accel_dtype dtype = f->out != ACCEL_UNDEFINED ? f->out : accel_operand_dtype(n, f->like);
    int ra = accel_operand_rank(n, f->a), rb = accel_operand_rank(n, f->b);
    struct accel_shape y = {-1, NULL};
    if (ra == 0 || rb == 0)
        return accel_fail(ACCEL_ESHAPE, "'%.200s' is a scalar", n->in[ra == 0 ? f->a : f->b]->name);
    if (ra < 0 || rb < 0) {
        accel_result_set(n, 0, dtype, y);
        return ACCEL_OK;
    }
    struct accel_dim ka = dim_a(n, k_of_a(ra)), kb = dim_b(n, k_of_b(rb));
    if (accel_dim_differs(ka, kb))
        return accel_fail(ACCEL_ESHAPE, "input has %lld columns, weight '%.200s' expects %lld",
                          (long long)ka.n, n->in[f->b]->name, (long long)kb.n);
    int batch = (ra > rb ? ra : rb) - 2, rank = batch > 0 ? batch : 0;
    ACCEL_TRY(accel_shape_new(&y, n, rank + (ra > 1) + (rb > 1)));
    ACCEL_TRY(infer_batch(&y, n, ra, rb, rank));
    if (ra > 1)
        y.dim[rank++] = dim_a(n, ra - 2);
    if (rb > 1) {
        y.dim[rank] = dim_b(n, rb - 1);
        if (f->bias >= 0)
            ACCEL_TRY(accel_operand_check_vector(n, f->bias, y.dim[rank], "bias"));
    }
    accel_result_set(n, 0, dtype, y);
    return ACCEL_OK;
}

/* elements of Y times K */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    const struct accel_matmul *f = n->op->family;
    int ra = accel_operand_rank(n, f->a), rb = accel_operand_rank(n, f->b);
    int64_t k = ra > 0 ? dim_a(n, k_of_a(ra)).n : -1;
    if (k < 0 && rb > 0)
        k = dim_b(n, k_of_b(rb)).n;
    c->macs = accel_macs_mul(accel_result_count(n, 0), k);
}

static int weights(const struct accel_node *n, struct accel_weight w[4])
{
    const struct accel_matmul *f = n->op->family;
    int ra = accel_operand_rank(n, f->a), rb = accel_operand_rank(n, f->b), count = 0;
    if (rb >= 2)
        w[count++] = (struct accel_weight){
            f->b, rb, axis_b(n, rb - 1), axis_b(n, rb - 2), -1, "Linear", false, f->bias, 0, 0};
    if (count && f->b == ACCEL_Q_W) {
        w[0].scale_slot = ACCEL_Q_W_SCALE;
        w[0].zero_slot = ACCEL_Q_W_ZERO;
    }
    if (ra >= 2)
        w[count++] = (struct accel_weight){
            f->a, ra, axis_a(n, ra - 2), axis_a(n, ra - 1), -1, "Linear", false, -1, 0, 0};
    return count;
}

/* ------------------------------------------------------------------ links of MatMul */

/* Axis of input `slot` that batch axis `axis` of Y is; -1 when it has none. */
static int batch_axis(const struct accel_node *n, int slot, int axis, int batch)
{
    int rank = accel_slot_rank(n, slot), own = axis - (batch - (rank - 2));
    if (rank <= 2 || own < 0)
        return -1;
    return slot ? axis_b(n, own) : axis_a(n, own);
}

/* A leading axis: the operands that have it, and a word for those of size 1. */
static void link_batch(struct accel_links *l, int axis, int batch)
{
    const struct accel_node *n = l->node;
    int y = accel_link_out(n, 0), count = 0, one[2] = {-1, -1};
    struct accel_axis at[3];
    for (int i = 0; i < 2; i++) {
        int own = batch_axis(n, i, axis, batch);
        if (own < 0)
            continue;
        struct accel_dim d = n->in[i]->shape.dim[own];
        if (d.n == 1)
            one[i] = own;
        else if (accel_dim_same(d, n->out[0]->shape.dim[axis]))
            at[count++] = (struct accel_axis){i, own};
        else
            return;
    }
    for (int i = 0; i < 2; i++)
        accel_links_seen(l, i, one[i]);
    at[count++] = (struct accel_axis){y, axis};
    if (count > 1)
        accel_links_axes(l, count, at);
    else
        accel_links_seen(l, y, axis);
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    int ra = accel_slot_rank(n, 0), rb = accel_slot_rank(n, 1), y = accel_link_out(n, 0);
    int batch = (ra > rb ? ra : rb) - 2;
    if (ra < 1 || rb < 1 || !accel_slot_value(n, y))
        return;
    const struct accel_axis k[2] = {{0, axis_a(n, k_of_a(ra))}, {1, axis_b(n, k_of_b(rb))}};
    accel_links_axes(l, 2, k);
    accel_links_need0(l, 2, k);
    batch = batch > 0 ? batch : 0;
    for (int axis = 0; axis < batch; axis++)
        link_batch(l, axis, batch);
    if (ra > 1)
        accel_links_pair(l, 0, axis_a(n, ra - 2), y, batch);
    if (rb > 1)
        accel_links_pair(l, 1, axis_b(n, rb - 1), y, batch + (ra > 1));
}

static void zero(const struct accel_node *n, struct accel_zero *z)
{
    int ra = accel_slot_rank(n, 0), rb = accel_slot_rank(n, 1), y = accel_link_out(n, 0);
    int batch = (ra > rb ? ra : rb) - 2;
    batch = batch > 0 ? batch : 0;
    for (int axis = 0; axis < batch; axis++)
        for (int i = 0; i < 2; i++) {
            int own = batch_axis(n, i, axis, batch);
            if (own >= 0 && n->in[i]->shape.dim[own].n != 1) /* else it is not a side */
                accel_zero_copy0(z, i, own, y, axis);
        }
    if (ra > 1)
        accel_zero_copy0(z, 0, axis_a(n, ra - 2), y, batch);
    if (rb > 1)
        accel_zero_copy0(z, 1, axis_b(n, rb - 1), y, batch + (ra > 1));
}

static void q_links(const struct accel_node *n, struct accel_links *l)
{
    (void)n;
    accel_q_matmul_links(l);
}

static void q_zero(const struct accel_node *n, struct accel_zero *z)
{
    (void)n;
    accel_q_matmul_zero(z);
}

/* ------------------------------------------------------------------ forward of MatMul */

/* Element of an operand by its batch, row and column; sizes 1 stretch. */
static int64_t batch_base(const struct accel_array *x, const struct accel_array *y, int y_batch,
                          int64_t i)
{
    int64_t base = 0, step = x->rank < 2 ? 1 : x->dim[x->rank - 1] * x->dim[x->rank - 2];
    for (int d = y_batch - 1; d >= 0; d--) {
        int64_t at = i % y->dim[d];
        int xd = d - (y_batch - (x->rank - 2));
        i /= y->dim[d];
        if (x->rank <= 2 || xd < 0)
            continue;
        base += (x->dim[xd] == 1 ? 0 : at) * step;
        step *= x->dim[xd];
    }
    return base;
}

static void run_elements(void *ctx, int64_t from, int64_t to)
{
    const struct accel_call *c = ctx;
    const struct accel_array *a = &c->x[0], *b = &c->x[1], *y = &c->y[0];
    int64_t m = a->rank > 1 ? a->dim[a->rank - 2] : 1, k = a->dim[a->rank - 1];
    int64_t cols = b->rank > 1 ? b->dim[b->rank - 1] : 1;
    int batch = y->rank - (a->rank > 1) - (b->rank > 1);
    bool whole = accel_op_is_int(y);
    for (int64_t i = from; i < to; i++) {
        int64_t col = i % cols, row = i / cols % m, at = i / cols / m;
        int64_t ia = batch_base(a, y, batch, at) + row * k;
        int64_t ib = batch_base(b, y, batch, at) + col, sum_i = 0;
        double sum = 0;
        for (int64_t t = 0; t < k; t++) {
            if (whole)
                sum_i =
                    accel_int_add(sum_i, accel_int_mul(((const int64_t *)a->data)[ia + t],
                                                       ((const int64_t *)b->data)[ib + t * cols]));
            else
                sum += (double)((const real *)a->data)[ia + t] *
                       (double)((const real *)b->data)[ib + t * cols];
        }
        if (whole)
            ((int64_t *)y->data)[i] = accel_int_wrap(sum_i, y->dtype);
        else
            ((real *)y->data)[i] = (real)sum;
    }
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct accel_array *a = &c->x[0], *b = &c->x[1], *y = &c->y[0];
    bool whole = accel_op_is_int(y);
    if (accel_op_is_int(a) != whole || accel_op_is_int(b) != whole)
        return accel_fail(ACCEL_ENOSUP, "inputs of different types");
    struct accel_call call = *c;
    accel_threads_run(run_elements, &call, y->n, a->dim[a->rank - 1]);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ integer forms */

/* Element k of a vector of zero points or scales, or its only one; `otherwise` when absent. */
static double of_vector(const struct accel_call *c, int slot, int64_t k, double otherwise)
{
    const struct accel_array *v = slot < c->node->n_in && c->x[slot].data ? &c->x[slot] : NULL;
    if (!v || !v->n)
        return otherwise;
    k = v->n == 1 ? 0 : k % v->n;
    return accel_op_is_int(v) ? (double)((const int64_t *)v->data)[k]
                              : (double)((const real *)v->data)[k];
}

static void run_integers(void *ctx, int64_t from, int64_t to)
{
    const struct accel_call *c = ctx;
    const struct accel_matmul *f = c->node->op->family;
    const struct accel_array *a = &c->x[f->a], *b = &c->x[f->b], *y = &c->y[0];
    bool scaled = f->like == 7;
    int64_t m = a->rank > 1 ? a->dim[a->rank - 2] : 1, k = a->dim[a->rank - 1];
    int64_t cols = b->rank > 1 ? b->dim[b->rank - 1] : 1;
    int batch = y->rank - (a->rank > 1) - (b->rank > 1), za = 2, zb = scaled ? 5 : 3;
    for (int64_t i = from; i < to; i++) {
        int64_t col = i % cols, row = i / cols % m, at = i / cols / m, sum = 0;
        int64_t ia = batch_base(a, y, batch, at) + row * k, ib = batch_base(b, y, batch, at) + col;
        int64_t of_a = (int64_t)of_vector(c, za, row, 0), of_b = (int64_t)of_vector(c, zb, col, 0);
        for (int64_t t = 0; t < k; t++)
            sum = accel_int_add(sum, (((const int64_t *)a->data)[ia + t] - of_a) *
                                         (((const int64_t *)b->data)[ib + t * cols] - of_b));
        if (scaled) {
            double v = (double)sum * of_vector(c, 1, row, 1) * of_vector(c, 4, col, 1) /
                       of_vector(c, 6, col, 1);
            bool sign = y->dtype == ACCEL_I8;
            v = rint(v) + of_vector(c, 7, col, 0);
            sum = (int64_t)fmin(fmax(v, sign ? -128 : 0), sign ? 127 : 255);
        }
        ((int64_t *)y->data)[i] = accel_int_wrap(sum, y->dtype);
    }
}

/* Sum of (a - za)(b - zb); with scales (QLinearMatMul) requantised to the output. Zero points of A
 * lie along its rows, of B along its columns. */
static enum accel_err integer_forward(const struct accel_call *c)
{
    const struct accel_matmul *f = c->node->op->family;
    const struct accel_array *a = &c->x[f->a];
    if (!accel_op_is_int(a) || !accel_op_is_int(&c->x[f->b]) || !accel_op_is_int(&c->y[0]))
        return accel_fail(ACCEL_ENOSUP, "operands that are no integers");
    struct accel_call call = *c;
    accel_threads_run(run_integers, &call, c->y[0].n, a->dim[a->rank - 1]);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ rows */

static const struct accel_attr_rule no_attrs[] = {{0}};
static const struct accel_attr_rule fused_attrs[] = {
    {"alpha", ACCEL_ATTR_FLOAT, 0},     {"transA", ACCEL_ATTR_INT, 0},
    {"transB", ACCEL_ATTR_INT, 0},      {"transBatchA", ACCEL_ATTR_INT, 0},
    {"transBatchB", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule transpose_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0},
                                                         {"transA", ACCEL_ATTR_INT, 0},
                                                         {"transB", ACCEL_ATTR_INT, 0},
                                                         {0}};
static const char *const matmul_examples[] = {"3x4 4x5",     "2x3x4 4x5",     "2x1x3x4 5x4x2",
                                              "3x2x4 3x4x5", "2x3x2x4 3x4x5", "4 4x5",
                                              "3x4 4",       "4 4",           NULL};
static const char *const fused_examples[] = {"3x4 4x5", "4x3 5x4 | transA=1 transB=1 alpha=0.5",
                                             "2x4x3 5x4 | transA=1 transB=1", NULL};
static const char *const integer_examples[] = {"3x4 4x5", NULL};
static const char *const q_examples[] = {"3x4 scalar scalar 4x5 scalar scalar scalar scalar", NULL};
static const char *const dynamic_examples[] = {"3x4 i8:4x5 scalar", NULL};
static const char *const to_float_examples[] = {"u8:3x4 i8:4x5 scalar scalar", NULL};

#define FIELDS(onnx, dom, opset, least, most, rules, kernel, eg, ...)                              \
    .name = (onnx), .domain = (dom), .since = (opset), .min_in = (least), .max_in = (most),        \
    .min_out = 1, .max_out = 1, .attrs = (rules), .parse = parse, .infer = infer, .cost = cost,    \
    .weights = weights, .forward = (kernel), .family = &(const struct accel_matmul){__VA_ARGS__},  \
    .examples = (eg)
#define ROW(...)                                                                                   \
    {                                                                                              \
        FIELDS(__VA_ARGS__)                                                                        \
    }
#define MS "com.microsoft"

const struct accel_op accel_op_matmul = {
    FIELDS("MatMul", "", 1, 2, 2, no_attrs, forward, matmul_examples, .b = 1, .bias = -1),
    .links = links,
    .zero = zero,
};
const struct accel_op accel_op_matmulinteger =
    ROW("MatMulInteger", "", 10, 2, 4, no_attrs, integer_forward, integer_examples, .b = 1,
        .bias = -1, .out = ACCEL_I32);
const struct accel_op accel_op_qlinearmatmul = {
    FIELDS("QLinearMatMul", "", 10, 8, 8, no_attrs, integer_forward, q_examples, .b = 3, .bias = -1,
           .like = 7),
    .links = q_links,
    .zero = q_zero,
    .keep = ACCEL_Q_KEEP,
};
const struct accel_op accel_op_ms_fusedmatmul =
    ROW("FusedMatMul", MS, 1, 2, 2, fused_attrs, accel_matmul_fused, fused_examples, .b = 1,
        .bias = -1);
const struct accel_op accel_op_ms_transposematmul =
    ROW("TransposeMatMul", MS, 1, 2, 2, transpose_attrs, accel_matmul_fused, fused_examples, .b = 1,
        .bias = -1);
const struct accel_op accel_op_ms_matmulinteger16 =
    ROW("MatMulInteger16", MS, 1, 2, 2, no_attrs, integer_forward, integer_examples, .b = 1,
        .bias = -1, .out = ACCEL_I32);
const struct accel_op accel_op_ms_dynamicquantizematmul = {
    FIELDS("DynamicQuantizeMatMul", MS, 1, 3, 5, no_attrs, accel_matmul_dynamic, dynamic_examples,
           .b = 1, .bias = 4),
    .scratch = accel_matmul_dynamic_scratch,
    .keep = 1u << 2 | 1u << 3,
};
const struct accel_op accel_op_ms_matmulintegertofloat = {
    FIELDS("MatMulIntegerToFloat", MS, 1, 4, 7, no_attrs, accel_matmul_to_float, to_float_examples,
           .b = 1, .bias = 6, .like = 2),
    .keep = 0x3c,
};
