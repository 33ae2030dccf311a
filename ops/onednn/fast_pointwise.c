/* fast_pointwise.c - element-wise functions, arithmetic of two tensors, BatchNormalization,
 * LayerNormalization, Softmax, Concat and Transpose. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "ops/onednn/chain.h"
#include "ops/onednn/dn_job.h"

/* Operand i as input, in the format it has, which the result takes over; in row-major order when
 * somebody reads the result so. */
static enum accel_err add_leading(struct accel_dn_job *j, int i)
{
    int at = j->spec.n_in;
    ACCEL_TRY(accel_dn_add(j, i, false));
    if (j->ask->row_major)
        ACCEL_TRY(accel_dn_format_row_major(&j->arg[at].want, &j->arg[at].have));
    ACCEL_TRY(accel_dn_set_out(j, j->ask->chain[0]->out[0], false));
    j->out = j->arg[at].want;
    return ACCEL_OK;
}

/* A call of the library takes 0.4 us, a plain one 0.03 us and half a nanosecond per element: few
 * elements in rows that are only compared, added or multiplied stay plain. */
static bool is_too_small(const struct accel_dn_job *j, enum accel_dn_algo algo)
{
    enum { FEW = 256 };
    bool cheap = algo == ACCEL_DN_RELU || algo == ACCEL_DN_CLIP || algo == ACCEL_DN_LINEAR ||
                 algo == ACCEL_DN_ABS || (algo >= ACCEL_DN_ADD && algo <= ACCEL_DN_DIV);
    for (int i = 0; i < j->ask->n_operand; i++)
        cheap = cheap && j->ask->in[i].kind == ACCEL_ROW_MAJOR;
    return cheap && accel_shape_count(&j->ask->chain[0]->out[0]->shape) < FEW;
}

enum accel_err accel_dn_unary(struct accel_dn_job *j)
{
    struct accel_dn_post step[2];
    int n_step;
    if (!accel_dn_function(step, &n_step, j, 0) || n_step > 1)
        return accel_fail(ACCEL_ENOSUP, "no such function");
    if (is_too_small(j, step[0].algo))
        return accel_fail(ACCEL_ENOSUP, "few elements");
    j->spec.kind = ACCEL_DN_ELTWISE;
    j->spec.algo = step[0].algo;
    j->spec.alpha = step[0].alpha;
    j->spec.beta = step[0].beta;
    ACCEL_TRY(add_leading(j, 0));
    j->takes = 1;
    return ACCEL_OK;
}

/* One operand is a constant number; *of: the other one. */
static bool with_number(struct accel_dn_job *j, enum accel_dn_algo algo, int *of)
{
    struct accel_dn_post step;
    const float *c;
    for (*of = 0; *of < 2; ++*of)
        if (accel_dn_same_sizes(j->ask->operand[*of], j->ask->chain[0]->out[0]) &&
            !accel_dn_constant(&c, j, 1 - *of, 1) &&
            accel_dn_with_number(&step, algo, *of == 0, *c)) {
            j->spec.alpha = step.alpha;
            j->spec.beta = step.beta;
            return true;
        }
    return false;
}

/* The second operand lies like the first, or stretches to it. */
static enum accel_err add_second(struct accel_dn_job *j, int i)
{
    const struct accel_value *v = j->ask->operand[i];
    int64_t dim[ACCEL_DN_MAX_RANK], own[ACCEL_DN_MAX_RANK];
    int rank = 0;
    if (accel_dn_same_sizes(v, j->ask->chain[0]->out[0])) {
        ACCEL_TRY(accel_dn_add(j, i, false));
        j->arg[1].want = j->arg[0].want;
        return ACCEL_OK;
    }
    ACCEL_TRY(accel_dn_dims(&rank, own, v));
    for (int d = 0; d < j->rank; d++)
        dim[d] = d < j->rank - rank ? 1 : own[d - (j->rank - rank)];
    return accel_dn_add_view(j, i, j->rank, dim, NULL, false);
}

enum accel_err accel_dn_binary(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    enum accel_dn_algo algo;
    bool swaps;
    int of;
    if (!accel_dn_arithmetic(&algo, &swaps, n) || !n->in[0] || !n->in[1])
        return accel_fail(ACCEL_ENOSUP, "no arithmetic of two tensors");
    if (is_too_small(j, algo))
        return accel_fail(ACCEL_ENOSUP, "few elements");
    j->takes = 1;
    if (with_number(j, algo, &of)) {
        j->spec.kind = ACCEL_DN_ELTWISE;
        j->spec.algo = ACCEL_DN_LINEAR;
        return add_leading(j, of);
    }
    of = accel_dn_same_sizes(n->in[0], n->out[0]) ? 0 : 1;
    if (of == 1 && (!swaps || !accel_dn_same_sizes(n->in[1], n->out[0])))
        return accel_fail(ACCEL_ENOSUP, "both operands stretch");
    j->spec.kind = ACCEL_DN_BINARY;
    j->spec.algo = algo;
    ACCEL_TRY(add_leading(j, of));
    ACCEL_TRY(add_second(j, 1 - of));
    return accel_dn_chain(j, 1);
}

/* y = x a + b per channel. */
enum accel_err accel_dn_batch_norm(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    const float *part[4]; /* scale, shift, mean, variance */
    int64_t dim[ACCEL_DN_MAX_RANK], view[ACCEL_DN_MAX_RANK], training, spatial;
    float epsilon;
    int rank = 0;
    ACCEL_TRY(accel_attr_int(&training, n, "training_mode", 0));
    ACCEL_TRY(accel_attr_int(&spatial, n, "spatial", 1));
    ACCEL_TRY(accel_attr_float(&epsilon, n, "epsilon", 1e-5f));
    ACCEL_TRY(accel_dn_dims(&rank, dim, j->ask->operand[0]));
    if (training || !spatial || rank < 2 || n->n_in != 5)
        return accel_fail(ACCEL_ENOSUP, "statistics of the batch");
    for (int i = 0; i < 4; i++)
        ACCEL_TRY(accel_dn_constant(&part[i], j, i + 1, dim[1]));
    for (int i = 0; i < rank; i++)
        view[i] = i == 1 ? dim[1] : 1;
    j->spec.kind = ACCEL_DN_BINARY;
    j->spec.algo = ACCEL_DN_MUL;
    ACCEL_TRY(add_leading(j, 0));
    float *a = accel_calloc((size_t)dim[1], sizeof *a),
          *b = accel_calloc((size_t)dim[1], sizeof *b);
    for (int64_t c = 0; a && b && c < dim[1]; c++) {
        double by = (double)part[0][c] / sqrt((double)part[3][c] + (double)epsilon);
        a[c] = (float)by;
        b[c] = (float)((double)part[1][c] - (double)part[2][c] * by);
    }
    enum accel_err err = accel_dn_add_own(j, a, ACCEL_DN_F32, rank, view);
    if (err) {
        accel_free(b);
        return err;
    }
    j->spec.post[j->spec.n_post++] = (struct accel_dn_post){ACCEL_DN_ADD, 0, 0, j->spec.n_in};
    ACCEL_TRY(accel_dn_add_own(j, b, ACCEL_DN_F32, rank, view));
    return accel_dn_chain(j, 1);
}

/* Scale and shift have the size of the last axis, which alone is normalised. */
enum accel_err accel_dn_layer_norm(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t dim[ACCEL_DN_MAX_RANK], axis, stash, rows = 1;
    float epsilon;
    int rank = 0;
    ACCEL_TRY(accel_dn_dims(&rank, dim, j->ask->operand[0]));
    ACCEL_TRY(accel_attr_int(&axis, n, "axis", -1));
    ACCEL_TRY(accel_attr_int(&stash, n, "stash_type", ACCEL_F32));
    ACCEL_TRY(accel_attr_float(&epsilon, n, "epsilon", 1e-5f));
    if ((axis != -1 && axis != rank - 1) || n->n_in < 3 || !n->in[2] || stash != ACCEL_F32)
        return accel_fail(ACCEL_ENOSUP, "not over the last axis");
    int64_t size = dim[rank - 1];
    if (accel_shape_count(&n->in[1]->shape) != size || accel_shape_count(&n->in[2]->shape) != size)
        return accel_fail(ACCEL_ENOSUP, "scale of another size");
    for (int i = 0; i < rank - 1; i++)
        rows *= dim[i];
    j->spec.kind = ACCEL_DN_LAYER_NORM;
    j->spec.alpha = epsilon;
    ACCEL_TRY(accel_dn_add_view(j, 0, 2, (int64_t[]){rows, size}, NULL, false));
    ACCEL_TRY(accel_dn_add_view(j, 1, 1, &size, NULL, false));
    ACCEL_TRY(accel_dn_add_view(j, 2, 1, &size, NULL, false));
    j->takes = 1;
    return accel_dn_set_out_view(j, 2, (int64_t[]){rows, size});
}

/* Lines of `size` elements: [outer size inner]; before opset 13 all axes from `axis` on are one. */
enum accel_err accel_dn_softmax(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t dim[ACCEL_DN_MAX_RANK], view[3] = {1, 1, 1}, at;
    bool as_matrix = n->graph->opset < 13;
    int rank = 0;
    ACCEL_TRY(accel_dn_dims(&rank, dim, j->ask->operand[0]));
    ACCEL_TRY(accel_attr_int(&at, n, "axis", as_matrix ? 1 : -1));
    at += at < 0 ? rank : 0;
    if (at < 0 || at >= rank)
        return accel_fail(ACCEL_ENOSUP, "axis %lld", (long long)at);
    for (int i = 0; i < rank; i++)
        view[i < at ? 0 : i == at || as_matrix ? 1 : 2] *= dim[i];
    j->spec.kind = ACCEL_DN_SOFTMAXES;
    j->spec.algo = strcmp(n->op->name, "Softmax") == 0 ? ACCEL_DN_SOFTMAX : ACCEL_DN_LOG_SOFTMAX;
    j->spec.axis = 1;
    int used = view[2] > 1 ? 3 : 2;
    ACCEL_TRY(accel_dn_add_view(j, 0, used, view, NULL, false));
    j->takes = 1;
    return accel_dn_set_out_view(j, used, view);
}

enum accel_err accel_dn_concat(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t axis;
    ACCEL_TRY(accel_attr_int(&axis, n, "axis", 1));
    ACCEL_TRY(accel_dn_set_out(j, n->out[0], true));
    axis += axis < 0 ? j->rank : 0;
    if (axis < 0 || axis >= j->rank)
        return accel_fail(ACCEL_ENOSUP, "axis %lld", (long long)axis);
    j->spec.kind = ACCEL_DN_CONCAT;
    j->spec.axis = (int)axis;
    for (int i = 0; i < n->n_in; i++)
        ACCEL_TRY(accel_dn_add(j, i, false));
    j->takes = 1;
    return ACCEL_OK;
}

/* A reorder from the input seen with its axes in the order of the result. */
enum accel_err accel_dn_transpose(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t dim[ACCEL_DN_MAX_RANK], step[ACCEL_DN_MAX_RANK], to[ACCEL_DN_MAX_RANK],
        stride[ACCEL_DN_MAX_RANK];
    const int64_t *perm;
    size_t n_perm;
    int rank = 0;
    ACCEL_TRY(accel_dn_dims(&rank, dim, j->ask->operand[0]));
    ACCEL_TRY(accel_attr_ints(&perm, &n_perm, n, "perm"));
    if (n_perm && n_perm != (size_t)rank)
        return accel_fail(ACCEL_ENOSUP, "perm has %zu entries for rank %d", n_perm, rank);
    for (int i = rank - 1; i >= 0; i--)
        step[i] = i == rank - 1 ? 1 : step[i + 1] * dim[i + 1];
    for (int i = 0; i < rank; i++) {
        int64_t from = n_perm ? perm[i] : rank - 1 - i;
        if (from < 0 || from >= rank)
            return accel_fail(ACCEL_ENOSUP, "perm holds %lld", (long long)from);
        to[i] = dim[from];
        stride[i] = step[from];
    }
    j->spec.kind = ACCEL_DN_REORDER;
    ACCEL_TRY(accel_dn_add_view(j, 0, rank, to, stride, false));
    j->takes = 1;
    return accel_dn_set_out(j, n->out[0], false);
}
