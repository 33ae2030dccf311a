/* fast_matmul.c - MatMul and Gemm as oneDNN's matmul: A [… M K], B [… K N]. A matrix B makes one
 * product of all rows of A. Transposed operands are views with other strides. */
#include "graph/attr.h"
#include "ops/onednn/dn_job.h"

struct product {
    int rank_a, rank_b;
    int64_t a[ACCEL_DN_MAX_RANK], b[ACCEL_DN_MAX_RANK];
};

static enum accel_err read_product(struct product *p, const struct accel_dn_job *j)
{
    ACCEL_TRY(accel_dn_dims(&p->rank_a, p->a, j->ask->operand[0]));
    return accel_dn_dims(&p->rank_b, p->b, j->ask->operand[1]);
}

/* A matrix times a matrix, with any leading axes of A counted as rows. */
static enum accel_err flat(struct accel_dn_job *j, const struct product *p)
{
    int64_t k = p->a[p->rank_a - 1], rows = 1, cols = p->rank_b > 1 ? p->b[1] : 1;
    for (int i = 0; i < p->rank_a - 1; i++)
        rows *= p->a[i];
    ACCEL_TRY(accel_dn_add_view(j, 0, 2, (int64_t[]){rows, k}, NULL, false));
    ACCEL_TRY(accel_dn_add_view(j, 1, 2, (int64_t[]){k, cols}, NULL, j->ask->constant[1] != NULL));
    return accel_dn_set_out_view(j, 2, (int64_t[]){rows, cols});
}

/* Leading axes are equal or 1 in one of both; the shorter operand gets ones in front. */
static enum accel_err batched(struct accel_dn_job *j, const struct product *p)
{
    int64_t a[ACCEL_DN_MAX_RANK], b[ACCEL_DN_MAX_RANK], y[ACCEL_DN_MAX_RANK];
    int rank = p->rank_a > p->rank_b ? p->rank_a : p->rank_b;
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - p->rank_a), ib = i - (rank - p->rank_b);
        a[i] = ia < 0 ? 1 : p->a[ia];
        b[i] = ib < 0 ? 1 : p->b[ib];
        y[i] = i == rank - 2 ? a[i] : i == rank - 1 ? b[i] : a[i] > b[i] ? a[i] : b[i];
    }
    ACCEL_TRY(accel_dn_add_view(j, 0, rank, a, NULL, false));
    ACCEL_TRY(accel_dn_add_view(j, 1, rank, b, NULL, false));
    return accel_dn_set_out_view(j, rank, y);
}

/* Steps behind a product see its result as rows and columns: those of one element, and one number
 * per column. */
static enum accel_err chain_rows(struct accel_dn_job *j)
{
    const struct accel_value *y = j->ask->chain[0]->out[0];
    int64_t dim[ACCEL_DN_MAX_RANK];
    int rank = 0;
    ACCEL_TRY(accel_dn_dims(&rank, dim, y));
    bool same = rank == j->rank;
    for (int i = 0; same && i < rank; i++)
        same = dim[i] == j->dim[i];
    if (same)
        j->viewed = false; /* the view is the value itself */
    return accel_dn_chain(j, 1);
}

enum accel_err accel_dn_matmul(struct accel_dn_job *j)
{
    struct product p;
    if (j->int8)
        return accel_dn_product_of_dequantized(j);
    ACCEL_TRY(read_product(&p, j));
    j->spec.kind = ACCEL_DN_MATMUL;
    if (p.rank_b <= 2)
        ACCEL_TRY(flat(j, &p));
    else if (p.rank_a >= 2)
        ACCEL_TRY(batched(j, &p));
    else
        return accel_fail(ACCEL_ENOSUP, "a vector times a batch");
    accel_dn_narrow(j);
    return chain_rows(j);
}

/* C [N], [1 N] as the kernel's bias, any other that stretches as a step of its own. */
static enum accel_err add_c(struct accel_dn_job *j, float alpha, float beta)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t c[ACCEL_DN_MAX_RANK], view[2] = {1, 1};
    int rank = 0;
    bool given = n->n_in > 2 && n->in[2];
    if (given && n->in[2]->shape.rank > 0) {
        ACCEL_TRY(accel_dn_dims(&rank, c, n->in[2]));
        for (int i = 0; i < rank && rank <= 2; i++)
            view[2 - rank + i] = c[i];
    }
    if (given && (beta != 1 || rank < 1 || rank > 2))
        return accel_fail(ACCEL_ENOSUP, "beta %g", (double)beta);
    if (alpha != 1)
        j->spec.post[j->spec.n_post++] = (struct accel_dn_post){ACCEL_DN_LINEAR, alpha, 0, -1};
    if (!given)
        return ACCEL_OK;
    if (alpha != 1 || view[0] != 1 || view[1] != j->dim[1])
        j->spec.post[j->spec.n_post++] = (struct accel_dn_post){ACCEL_DN_ADD, 0, 0, j->spec.n_in};
    return accel_dn_add_view(j, 2, 2, view, NULL, false);
}

enum accel_err accel_dn_gemm(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    struct product p;
    int64_t trans_a, trans_b;
    float alpha, beta;
    if (j->int8)
        return accel_dn_product_of_dequantized(j);
    ACCEL_TRY(read_product(&p, j));
    ACCEL_TRY(accel_attr_int(&trans_a, n, "transA", 0));
    ACCEL_TRY(accel_attr_int(&trans_b, n, "transB", 0));
    ACCEL_TRY(accel_attr_float(&alpha, n, "alpha", 1));
    ACCEL_TRY(accel_attr_float(&beta, n, "beta", 1));
    if (p.rank_a != 2 || p.rank_b != 2)
        return accel_fail(ACCEL_ENOSUP, "Gemm of rank %d", p.rank_a);
    int64_t M = p.a[trans_a ? 1 : 0], K = p.a[trans_a ? 0 : 1], N = p.b[trans_b ? 0 : 1];
    const int64_t along[2] = {1, M}, across[2] = {1, K};
    j->spec.kind = ACCEL_DN_MATMUL;
    ACCEL_TRY(accel_dn_add_view(j, 0, 2, (int64_t[]){M, K}, trans_a ? along : NULL, false));
    ACCEL_TRY(accel_dn_add_view(j, 1, 2, (int64_t[]){K, N}, trans_b ? across : NULL,
                                j->ask->constant[1] != NULL));
    accel_dn_narrow(j);
    ACCEL_TRY(accel_dn_set_out_view(j, 2, (int64_t[]){M, N}));
    ACCEL_TRY(add_c(j, alpha, beta));
    return chain_rows(j);
}
