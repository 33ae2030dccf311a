/* matmul_forms.c - matrix products as ONNX Runtime's optimizers write them: FusedMatMul with
 * operands that are stored transposed, and integer products that end as floats.
 *
 * Operands are seen over their logical axes […, rows, columns]; accel_matmul_axis() says where each
 * one is stored, and a batch axis of size 1, or one that is not there, stretches. Sums are taken in
 * double or in integers. */
#include "ops/matmul.h"

#include <math.h>

#include "base/threads.h"
#include "ops/arith.h"
#include "ops/operand.h"
#include "ops/real.h"

/* An operand with the steps of its last two logical axes. */
struct side {
    const struct accel_array *a;
    bool trans, trans_batch;
    int64_t row, col;
};

static int64_t step_of(const struct side *s, int logical)
{
    int64_t step = 1;
    int axis = accel_matmul_axis(s->a->rank, logical, s->trans, s->trans_batch);
    for (int d = axis + 1; d < s->a->rank; d++)
        step *= s->a->dim[d];
    return step;
}

/* A vector is a row on the left and a column on the right. */
static struct side side_of(const struct accel_array *a, bool trans, bool trans_batch, bool left)
{
    struct side s = {a, trans, trans_batch, 0, 0};
    if (a->rank < 2) {
        s.row = !left;
        s.col = left;
        return s;
    }
    s.row = step_of(&s, a->rank - 2);
    s.col = step_of(&s, a->rank - 1);
    return s;
}

/* Where the matrix of batch `i` of the output's first `n_batch` axes begins. */
static int64_t base_of(const struct side *s, const struct accel_array *y, int n_batch, int64_t i)
{
    int64_t base = 0;
    for (int d = n_batch - 1; d >= 0; d--) {
        int64_t at = i % y->dim[d];
        int own = d - (n_batch - (s->a->rank - 2));
        i /= y->dim[d];
        if (s->a->rank <= 2 || own < 0)
            continue;
        if (s->a->dim[accel_matmul_axis(s->a->rank, own, s->trans, s->trans_batch)] != 1)
            base += at * step_of(s, own);
    }
    return base;
}

/* One product: sizes and both sides. */
struct product {
    struct side a, b;
    const struct accel_array *y;
    int64_t rows, cols, k;
    int n_batch;
};

static struct product product_of(const struct accel_call *c)
{
    const struct accel_matmul_params *p = c->node->params;
    const struct accel_array *a = &c->x[0], *b = &c->x[1];
    struct product m = {side_of(a, p->trans_a, p->trans_batch_a, true),
                        side_of(b, p->trans_b, p->trans_batch_b, false),
                        &c->y[0],
                        1,
                        1,
                        0,
                        c->y[0].rank - (a->rank > 1) - (b->rank > 1)};
    int ra = a->rank, rb = b->rank;
    m.k = a->dim[accel_matmul_axis(ra, ra - 1, p->trans_a, p->trans_batch_a)];
    if (ra > 1)
        m.rows = a->dim[accel_matmul_axis(ra, ra - 2, p->trans_a, p->trans_batch_a)];
    if (rb > 1)
        m.cols = b->dim[accel_matmul_axis(rb, rb - 1, p->trans_b, p->trans_batch_b)];
    return m;
}

/* Where row and column of element i of the output begin. */
static void meet(int64_t *ia, int64_t *ib, const struct product *m, int64_t i)
{
    int64_t col = i % m->cols, row = i / m->cols % m->rows, batch = i / m->cols / m->rows;
    *ia = base_of(&m->a, m->y, m->n_batch, batch) + row * m->a.row;
    *ib = base_of(&m->b, m->y, m->n_batch, batch) + col * m->b.col;
}

static void run_fused(void *ctx, int64_t from, int64_t to)
{
    const struct accel_call *c = ctx;
    const struct accel_matmul_params *p = c->node->params;
    struct product m = product_of(c);
    const real *a = c->x[0].data, *b = c->x[1].data;
    for (int64_t i = from; i < to; i++) {
        int64_t ia, ib;
        double sum = 0;
        meet(&ia, &ib, &m, i);
        for (int64_t t = 0; t < m.k; t++)
            sum += (double)a[ia + t * m.a.col] * (double)b[ib + t * m.b.row];
        ((real *)c->y[0].data)[i] = (real)(sum * (double)p->alpha);
    }
}

enum accel_err accel_matmul_fused(const struct accel_call *c)
{
    struct accel_call call = *c;
    if (accel_op_is_int(&c->x[0]) || accel_op_is_int(&c->x[1]))
        return accel_fail(ACCEL_ENOSUP, "%s of integers", c->node->op_type);
    accel_threads_run(run_fused, &call, c->y[0].n, product_of(c).k);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ integers to floats */

/* Slots behind A and B; -1: none. */
struct integer_form {
    int a_scale, b_scale, a_zero, b_zero, bias;
};

/* Element k of a vector with one element or one per column. */
static double real_of(const struct accel_call *c, int slot, int64_t k, double otherwise)
{
    const struct accel_array *v = slot >= 0 && slot < c->node->n_in ? &c->x[slot] : NULL;
    if (!v || !v->data)
        return otherwise;
    return (double)((const real *)v->data)[v->n == 1 ? 0 : k];
}
static int64_t whole_of(const struct accel_call *c, int slot, int64_t k)
{
    const struct accel_array *v = slot >= 0 && slot < c->node->n_in ? &c->x[slot] : NULL;
    if (!v || !v->data)
        return 0;
    return ((const int64_t *)v->data)[v->n == 1 ? 0 : k];
}

/* Operand `slot`, when it is there, has one element or `n`, and is whole or real. */
static enum accel_err check_vector(const struct accel_call *c, int slot, int64_t n, bool whole)
{
    const struct accel_array *v = slot >= 0 && slot < c->node->n_in ? &c->x[slot] : NULL;
    if (!v || !v->data)
        return ACCEL_OK;
    if (accel_op_is_int(v) != whole)
        return accel_fail(ACCEL_ENOSUP, "'%.200s' is of another type", c->node->in[slot]->name);
    if (v->n != 1 && v->n != n)
        return accel_fail(ACCEL_ESHAPE, "'%.200s' has %lld elements for %lld columns",
                          c->node->in[slot]->name, (long long)v->n, (long long)n);
    return ACCEL_OK;
}

/* Y = (A - za)(B - zb) * sa * sb + bias; A has its own scale and zero point, B's lie along columns.
 */
static enum accel_err integers(const struct accel_call *c, const int64_t *a, double a_scale,
                               int64_t a_zero, const struct integer_form *f)
{
    struct product m = product_of(c);
    const int64_t *b = c->x[1].data;
    ACCEL_TRY(check_vector(c, f->b_scale, m.cols, false));
    ACCEL_TRY(check_vector(c, f->b_zero, m.cols, true));
    ACCEL_TRY(check_vector(c, f->bias, m.cols, false));
    for (int64_t i = 0; i < c->y[0].n; i++) {
        int64_t ia, ib, sum = 0, col = i % m.cols, b_zero = whole_of(c, f->b_zero, col);
        meet(&ia, &ib, &m, i);
        for (int64_t t = 0; t < m.k; t++)
            sum = accel_int_add(sum, accel_int_mul(accel_int_sub(a[ia + t * m.a.col], a_zero),
                                                   accel_int_sub(b[ib + t * m.b.row], b_zero)));
        ((real *)c->y[0].data)[i] = (real)((double)sum * a_scale * real_of(c, f->b_scale, col, 1) +
                                           real_of(c, f->bias, col, 0));
    }
    return ACCEL_OK;
}

enum accel_err accel_matmul_to_float(const struct accel_call *c)
{
    static const struct integer_form f = {2, 3, 4, 5, 6};
    if (!accel_op_is_int(&c->x[0]) || !accel_op_is_int(&c->x[1]) || accel_op_is_int(&c->y[0]))
        return accel_fail(ACCEL_ENOSUP, "operands that are no integers");
    ACCEL_TRY(check_vector(c, f.a_scale, 1, false));
    ACCEL_TRY(check_vector(c, f.a_zero, 1, true));
    return integers(c, c->x[0].data, real_of(c, f.a_scale, 0, 1), whole_of(c, f.a_zero, 0), &f);
}

/* A is quantised first, to uint8 over the range of its elements and 0. */
enum accel_err accel_matmul_dynamic(const struct accel_call *c)
{
    static const struct integer_form f = {-1, 2, -1, 3, 4};
    const struct accel_array *a = &c->x[0];
    int64_t *q = c->scratch;
    real lo = 0, hi = 0;
    if (accel_op_is_int(a) || !accel_op_is_int(&c->x[1]))
        return accel_fail(ACCEL_ENOSUP, "operands of other types");
    for (int64_t i = 0; i < a->n; i++) {
        real v = ((const real *)a->data)[i];
        lo = v < lo ? v : lo;
        hi = v > hi ? v : hi;
    }
    real scale = hi > lo ? (hi - lo) / 255 : 1;
    double zero = rint(fmin(fmax((double)(-lo / scale), 0), 255));
    for (int64_t i = 0; i < a->n; i++)
        q[i] =
            (int64_t)fmin(fmax(rint((double)(((const real *)a->data)[i] / scale)) + zero, 0), 255);
    return integers(c, q, (double)scale, (int64_t)zero, &f);
}

size_t accel_matmul_dynamic_scratch(const struct accel_call *c)
{
    return (size_t)c->x[0].n * sizeof(int64_t);
}
