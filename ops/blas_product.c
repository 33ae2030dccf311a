/* blas_product.c - MatMul and Gemm by BLAS. A matrix B makes one product of all rows of A; other
 * leading axes are a loop over products. */
#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "graph/op.h"
#include "ops/blas.h"

/* Leading axes of a batched product: element offsets of A and B per step. */
struct batch {
    int rank;
    int64_t n, dim[ACCEL_BLAS_RANK], step_a[ACCEL_BLAS_RANK], step_b[ACCEL_BLAS_RANK];
};

static enum accel_err run_one(const struct accel_blas_job *j, const struct accel_run *r)
{
    accel_gemm_run(&j->gemm, r->x[0], r->x[1], r->y);
    return ACCEL_OK;
}

static enum accel_err run_batch(const struct accel_blas_job *j, const struct accel_run *r)
{
    const struct batch *b = j->more;
    int64_t each = j->gemm.M * j->gemm.N;
    for (int64_t i = 0; i < b->n; i++) {
        const float *at = r->x[0], *bt = r->x[1];
        for (int64_t d = b->rank - 1, rest = i; d >= 0; d--) {
            at += rest % b->dim[d] * b->step_a[d];
            bt += rest % b->dim[d] * b->step_b[d];
            rest /= b->dim[d];
        }
        accel_gemm_run(&j->gemm, at, bt, (float *)r->y + i * each);
    }
    return ACCEL_OK;
}

/* Dims with ones in front; the steps of its leading axes, 0 where it stretches. */
static void lead(int64_t *step, const int64_t *dim, int rank, int all)
{
    int64_t size = dim[rank - 2] * dim[rank - 1];
    for (int d = all - 3; d >= 0; d--) {
        int at = d - (all - rank);
        int64_t n = at < 0 ? 1 : dim[at];
        step[d] = n > 1 ? size : 0;
        size *= n;
    }
}

enum accel_err accel_blas_matmul(struct accel_blas_job *j, const struct accel_ask *ask)
{
    int64_t a[ACCEL_BLAS_RANK], b[ACCEL_BLAS_RANK];
    int rank_a, rank_b;
    ACCEL_TRY(accel_blas_dims(&rank_a, a, ask->operand[0]));
    ACCEL_TRY(accel_blas_dims(&rank_b, b, ask->operand[1]));
    if (rank_a < 2 || rank_b < 2)
        return accel_fail(ACCEL_ENOSUP, "a vector");
    int64_t M = a[rank_a - 2], K = a[rank_a - 1], N = b[rank_b - 1];
    j->run = run_one;
    for (int i = 0; rank_b == 2 && i < rank_a - 2; i++)
        M *= a[i];
    j->gemm = (struct accel_gemm){false, false, M, N, K, 1, 0, K, N, N};
    if (!accel_gemm_fits(M))
        return accel_fail(ACCEL_ENOSUP, "very many rows");
    if (rank_b == 2)
        return ACCEL_OK;
    struct batch *t = accel_calloc(1, sizeof *t);
    if (!t)
        return accel_fail_nomem();
    int all = rank_a > rank_b ? rank_a : rank_b;
    j->more = t;
    j->run = run_batch;
    t->rank = all - 2;
    t->n = 1;
    lead(t->step_a, a, rank_a, all);
    lead(t->step_b, b, rank_b, all);
    for (int d = 0; d < t->rank; d++) {
        int ia = d - (all - rank_a), ib = d - (all - rank_b);
        int64_t na = ia < 0 ? 1 : a[ia], nb = ib < 0 ? 1 : b[ib];
        t->dim[d] = na > nb ? na : nb;
        t->n *= t->dim[d];
    }
    return ACCEL_OK;
}

/* Steps of C [M N], 0 where it stretches; NULL in `more`: no C. */
struct addend {
    int64_t row, col;
};

static enum accel_err run_gemm(const struct accel_blas_job *j, const struct accel_run *r)
{
    const struct addend *c = j->more;
    const float *from = r->x[2];
    float *y = r->y;
    for (int64_t m = 0; m < j->gemm.M; m++)
        for (int64_t n = 0; n < j->gemm.N; n++)
            y[m * j->gemm.N + n] = from[m * c->row + n * c->col];
    accel_gemm_run(&j->gemm, r->x[0], r->x[1], y);
    return ACCEL_OK;
}

enum accel_err accel_blas_gemm(struct accel_blas_job *j, const struct accel_ask *ask)
{
    const struct accel_node *n = ask->chain[0];
    int64_t a[ACCEL_BLAS_RANK], b[ACCEL_BLAS_RANK], c[ACCEL_BLAS_RANK], trans_a, trans_b;
    int rank_a, rank_b, rank_c;
    float alpha, beta;
    ACCEL_TRY(accel_blas_dims(&rank_a, a, ask->operand[0]));
    ACCEL_TRY(accel_blas_dims(&rank_b, b, ask->operand[1]));
    ACCEL_TRY(accel_attr_int(&trans_a, n, "transA", 0));
    ACCEL_TRY(accel_attr_int(&trans_b, n, "transB", 0));
    ACCEL_TRY(accel_attr_float(&alpha, n, "alpha", 1));
    ACCEL_TRY(accel_attr_float(&beta, n, "beta", 1));
    if (rank_a != 2 || rank_b != 2)
        return accel_fail(ACCEL_ENOSUP, "Gemm of rank %d", rank_a);
    int64_t M = a[trans_a ? 1 : 0], K = a[trans_a ? 0 : 1], N = b[trans_b ? 0 : 1];
    j->gemm = (struct accel_gemm){trans_a != 0, trans_b != 0, M, N, K, alpha, 0, a[1], b[1], N};
    j->run = run_one;
    if (n->n_in < 3 || !n->in[2])
        return ACCEL_OK;
    ACCEL_TRY(accel_blas_dims(&rank_c, c, n->in[2]));
    struct addend *t = accel_calloc(1, sizeof *t);
    if (!t)
        return accel_fail_nomem();
    j->more = t;
    j->run = run_gemm;
    j->gemm.beta = beta;
    if (rank_c > 2)
        return accel_fail(ACCEL_ENOSUP, "C of rank %d", rank_c);
    t->col = rank_c > 0 && c[rank_c - 1] > 1;
    t->row = rank_c == 2 && c[0] > 1 ? c[1] : 0;
    return ACCEL_OK;
}
