/* Gemm: Y [M N] = alpha * A [M K] * B [K N] + beta * C, A and B stored transposed when asked, C
 * stretched to Y. com.microsoft's QGemm has scales and zero points between them, FusedGemm ends
 * with an activation. */
#include <math.h>

#include "base/threads.h"
#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/fused.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct gemm {
    int b, c; /* slots */
    int zero; /* slot of Y's zero point, which has Y's type; 0: Y has A's type */
};

struct gemm_params {
    bool trans_a, trans_b;
    float alpha, beta;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct gemm_params *p = ACCEL_NEW(&n->graph->model->arena, struct gemm_params, 1);
    int64_t a, b;
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&a, n, "transA", 0));
    ACCEL_TRY(accel_attr_int(&b, n, "transB", 0));
    ACCEL_TRY(accel_attr_float(&p->alpha, n, "alpha", 1));
    ACCEL_TRY(accel_attr_float(&p->beta, n, "beta", 1));
    p->trans_a = a != 0;
    p->trans_b = b != 0;
    n->params = p;
    return ACCEL_OK;
}

/* C must stretch to [M N]. */
static enum accel_err check_c(const struct accel_node *n, int slot, const struct accel_dim y[2])
{
    int rank = accel_operand_rank(n, slot);
    if (rank > 2)
        return accel_fail(ACCEL_ESHAPE, "bias '%.200s' has rank %d", n->in[slot]->name, rank);
    for (int i = 0; i < rank; i++) {
        struct accel_dim c = n->in[slot]->shape.dim[i], want = y[2 - rank + i];
        if (c.n != 1 && accel_dim_differs(c, want))
            return accel_fail(ACCEL_ESHAPE, "bias '%.200s' has %lld elements for %lld outputs",
                              n->in[slot]->name, (long long)c.n, (long long)want.n);
    }
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct gemm *f = n->op->family;
    const struct gemm_params *p = n->params;
    enum accel_dtype dtype = accel_operand_dtype(n, 0);
    if (f->zero)
        dtype = accel_operand(n, f->zero) ? accel_operand_dtype(n, f->zero) : ACCEL_F32;
    ACCEL_TRY(accel_operand_check_rank(n, 0, 2));
    ACCEL_TRY(accel_operand_check_rank(n, f->b, 2));
    struct accel_dim ka = accel_operand_dim(n, 0, !p->trans_a);
    struct accel_dim kb = accel_operand_dim(n, f->b, p->trans_b);
    struct accel_dim y[2] = {accel_operand_dim(n, 0, p->trans_a),
                             accel_operand_dim(n, f->b, !p->trans_b)};
    if (accel_dim_differs(ka, kb))
        return accel_fail(ACCEL_ESHAPE, "input has %lld columns, weight '%.200s' expects %lld",
                          (long long)ka.n, n->in[f->b]->name, (long long)kb.n);
    ACCEL_TRY(check_c(n, f->c, y));
    return accel_result_dims(n, 0, dtype, 2, y);
}

static void cost(const struct accel_node *n, struct accel_cost *c)
{
    const struct gemm *f = n->op->family;
    const struct gemm_params *p = n->params;
    int64_t k = accel_operand_dim(n, 0, !p->trans_a).n;
    if (k < 0)
        k = accel_operand_dim(n, f->b, p->trans_b).n;
    c->macs = accel_macs_mul(accel_result_count(n, 0), k);
}

static int weights(const struct accel_node *n, struct accel_weight w[4])
{
    const struct gemm *f = n->op->family;
    const struct gemm_params *p = n->params;
    w[0] = (struct accel_weight){f->b, 2, !p->trans_b, p->trans_b, -1, "Linear", false, f->c, 0, 0};
    w[1] = (struct accel_weight){0, 2, p->trans_a, !p->trans_a, -1, "Linear", false, -1, 0, 0};
    return 2;
}

/* ------------------------------------------------------------------ links, of Gemm only */

/* Axis `axis` of Y with the axis it comes from, and C if that has it; a C of a size that only the
 * run tells leaves the axis silent. */
static void link_side(struct accel_links *l, int axis, struct accel_axis from)
{
    const struct accel_node *n = l->node;
    int own = axis - 2 + accel_operand_rank(n, 2), y = accel_link_out(n, 0);
    bool has = accel_operand(n, 2) && own >= 0;
    int stretched = has ? accel_link_stretched(n, 2, axis) : -1;
    if (has && stretched < 0 && n->in[2]->shape.dim[own].n != 1)
        return;
    if (has && stretched < 0)
        accel_links_seen(l, 2, own);
    accel_links_axes(l, stretched < 0 ? 2 : 3,
                     (const struct accel_axis[]){from, {y, axis}, {2, stretched}});
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    const struct gemm_params *p = n->params;
    const struct accel_axis k[2] = {{0, !p->trans_a}, {1, p->trans_b}};
    accel_links_axes(l, 2, k);
    accel_links_need0(l, 2, k);
    link_side(l, 0, (struct accel_axis){0, p->trans_a});
    link_side(l, 1, (struct accel_axis){1, !p->trans_b});
}

/* beta * C where the product is 0 */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    const struct gemm_params *p = n->params;
    for (int axis = 0; axis < 2; axis++) {
        float from = accel_zero_get(z, axis, axis ? !p->trans_b : p->trans_a);
        float c = accel_operand(n, 2) ? accel_zero_stretched(z, 2, axis) : 0;
        if (from == 0 && !isnan(c))
            accel_zero_set(z, accel_link_out(n, 0), axis, p->beta * c);
    }
}

/* ------------------------------------------------------------------ kernel */

static void run_elements(void *ctx, int64_t from, int64_t to)
{
    const struct accel_call *c = ctx;
    const struct gemm_params *p = c->node->params;
    const struct accel_array *a = &c->x[0], *b = &c->x[1], *y = &c->y[0];
    const struct accel_array *bias = c->node->n_in > 2 && c->x[2].data ? &c->x[2] : NULL;
    int64_t cols = y->dim[1], k = a->dim[!p->trans_a];
    const real *u = a->data, *v = b->data;
    for (int64_t i = from; i < to; i++) {
        int64_t row = i / cols, col = i % cols;
        double sum = 0;
        for (int64_t t = 0; t < k; t++)
            sum += (double)u[p->trans_a ? t * a->dim[1] + row : row * k + t] *
                   (double)v[p->trans_b ? col * k + t : t * cols + col];
        sum *= p->alpha;
        if (bias)
            sum += p->beta *
                   (double)((const real *)bias->data)[accel_op_meet(bias, y, 2 - bias->rank, i)];
        ((real *)y->data)[i] = (real)sum;
    }
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct gemm_params *p = c->node->params;
    if (accel_op_is_int(&c->x[0]) || accel_op_is_int(&c->x[1]))
        return accel_fail(ACCEL_ENOSUP, "Gemm of integers");
    struct accel_call call = *c;
    accel_threads_run(run_elements, &call, c->y[0].n, c->x[0].dim[!p->trans_a]);
    return ACCEL_OK;
}

static enum accel_err fused_forward(const struct accel_call *c)
{
    struct accel_fused f;
    ACCEL_TRY(accel_fused_read(&f, c->node));
    ACCEL_TRY(forward(c));
    for (int64_t i = 0; i < c->y[0].n; i++) {
        real *y = (real *)c->y[0].data + i;
        *y = (real)f.f((double)*y, f.a, f.b);
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ QGemm */

enum { A, A_SCALE, A_ZERO, B, B_SCALE, B_ZERO, C, Y_SCALE, Y_ZERO };

/* Scale or zero point: one, or one per column. */
static enum accel_err q_vector(const struct accel_call *c, int slot, int64_t n, bool whole)
{
    const struct accel_array *v = slot < c->node->n_in && c->x[slot].data ? &c->x[slot] : NULL;
    if (v && accel_op_is_int(v) != whole)
        return accel_fail(ACCEL_ENOSUP, "'%.200s' is of another type", c->node->in[slot]->name);
    if (v && v->n != 1 && v->n != n)
        return accel_fail(ACCEL_ESHAPE, "'%.200s' has %lld elements for %lld columns",
                          c->node->in[slot]->name, (long long)v->n, (long long)n);
    return ACCEL_OK;
}

static double q_number(const struct accel_call *c, int slot, int64_t k, double otherwise)
{
    const struct accel_array *v = slot < c->node->n_in && c->x[slot].data ? &c->x[slot] : NULL;
    if (!v)
        return otherwise;
    k = v->n == 1 ? 0 : k;
    return accel_op_is_int(v) ? (double)((const int64_t *)v->data)[k]
                              : (double)((const real *)v->data)[k];
}

static enum accel_err q_check(const struct accel_call *c)
{
    int64_t cols = c->y[0].dim[1];
    if (!accel_op_is_int(&c->x[A]) || !accel_op_is_int(&c->x[B]) ||
        accel_op_is_int(&c->y[0]) != (c->node->n_in > Y_ZERO && c->x[Y_ZERO].data))
        return accel_fail(ACCEL_ENOSUP, "operands of other types");
    if (c->node->n_in > C && c->x[C].data && !accel_op_is_int(&c->x[C]))
        return accel_fail(ACCEL_ENOSUP, "a bias that is no integer");
    for (int i = A_SCALE; i <= Y_ZERO; i++)
        if (i != B && i != C)
            ACCEL_TRY(q_vector(c, i, i == B_SCALE || i == B_ZERO ? cols : 1,
                               i == A_ZERO || i == B_ZERO || i == Y_ZERO));
    return ACCEL_OK;
}

/* alpha * sa * sb * ((A - za)(B - zb) + C), rounded to Y's scale when there is one */
static enum accel_err q_forward(const struct accel_call *c)
{
    const struct gemm_params *p = c->node->params;
    const struct accel_array *a = &c->x[A], *b = &c->x[B], *y = &c->y[0];
    const struct accel_array *bias = c->node->n_in > C && c->x[C].data ? &c->x[C] : NULL;
    bool whole = accel_op_is_int(y), sign = y->dtype == ACCEL_I8;
    int64_t cols = y->dim[1], k = a->dim[!p->trans_a];
    const int64_t *u = a->data, *v = b->data;
    ACCEL_TRY(q_check(c));
    int64_t a_zero = (int64_t)q_number(c, A_ZERO, 0, 0);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t row = i / cols, col = i % cols, sum = 0;
        int64_t b_zero = (int64_t)q_number(c, B_ZERO, col, 0);
        for (int64_t t = 0; t < k; t++)
            sum = accel_int_add(
                sum, accel_int_mul(u[p->trans_a ? t * a->dim[1] + row : row * k + t] - a_zero,
                                   v[p->trans_b ? col * k + t : t * cols + col] - b_zero));
        if (bias)
            sum = accel_int_add(
                sum, ((const int64_t *)bias->data)[accel_op_meet(bias, y, 2 - bias->rank, i)]);
        double out = (double)sum * (double)p->alpha * q_number(c, A_SCALE, 0, 1) *
                     q_number(c, B_SCALE, col, 1);
        if (!whole) {
            ((real *)y->data)[i] = (real)out;
            continue;
        }
        out = rint(out / q_number(c, Y_SCALE, 0, 1)) + q_number(c, Y_ZERO, 0, 0);
        ((int64_t *)y->data)[i] =
            isnan(out) ? 0 : (int64_t)fmin(fmax(out, sign ? -128 : 0), sign ? 127 : 255);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule gemm_attrs[] = {
    {"alpha", ACCEL_ATTR_FLOAT, 0}, {"beta", ACCEL_ATTR_FLOAT, 0}, {"broadcast", ACCEL_ATTR_INT, 0},
    {"transA", ACCEL_ATTR_INT, 0},  {"transB", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule fused_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0},
                                                     {"beta", ACCEL_ATTR_FLOAT, 0},
                                                     {"transA", ACCEL_ATTR_INT, 0},
                                                     {"transB", ACCEL_ATTR_INT, 0},
                                                     {"activation", ACCEL_ATTR_STRING, 0},
                                                     {"activation_alpha", ACCEL_ATTR_FLOAT, 0},
                                                     {"activation_beta", ACCEL_ATTR_FLOAT, 0},
                                                     {"activation_gamma", ACCEL_ATTR_FLOAT, 0},
                                                     {0}};
static const struct accel_attr_rule q_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0},
                                                 {"transA", ACCEL_ATTR_INT, 0},
                                                 {"transB", ACCEL_ATTR_INT, 0},
                                                 {0}};
static const char *const examples[] = {"3x4 5x4 5 | transB=1",
                                       "3x4 4x5",
                                       "4x3 4x5 3x1 | transA=1 alpha=0.5 beta=2",
                                       "3x4 4x5 3x5 | beta=2",
                                       "3x4 4x5 1x5",
                                       "3x4 4x5 scalar",
                                       NULL};
static const char *const q_examples[] = {"u8:3x4 scalar u8:scalar u8:4x5 scalar u8:scalar i32:5",
                                         NULL};

#define FIELDS(onnx, dom, least, most, rules, kernel, eg, ...)                                     \
    .name = (onnx), .domain = (dom), .since = 1, .min_in = (least), .max_in = (most),              \
    .min_out = 1, .max_out = 1, .attrs = (rules), .parse = parse, .infer = infer, .cost = cost,    \
    .weights = weights, .forward = (kernel), .family = &(const struct gemm){__VA_ARGS__},          \
    .examples = (eg)
#define ROW(...)                                                                                   \
    {                                                                                              \
        FIELDS(__VA_ARGS__)                                                                        \
    }

const struct accel_op accel_op_gemm = {
    FIELDS("Gemm", "", 2, 3, gemm_attrs, forward, examples, 1, 2, 0),
    .links = links,
    .zero = zero,
};
const struct accel_op accel_op_ms_fusedgemm =
    ROW("FusedGemm", "com.microsoft", 2, 3, fused_attrs, fused_forward, examples, 1, 2, 0);
const struct accel_op accel_op_ms_qgemm =
    ROW("QGemm", "com.microsoft", 6, 9, q_attrs, q_forward, q_examples, 3, 6, 8);
