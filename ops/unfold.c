/* unfold.c - a patch is gathered tap by tap. A transposed convolution is the same seen from its
 * output: tap t meets the input at (o + begin - t * dilation) / stride, where that divides. */
#include "ops/unfold.h"

#include <string.h>

#include "graph/attr.h"
#include "ops/operand.h"

static bool said_no(const char **why, const char *text)
{
    *why = text;
    return false;
}

static int64_t dim(const struct accel_node *n, int slot, int axis)
{
    return accel_operand_dim(n, slot, axis).n;
}

static bool init_conv(struct accel_unfold *u, const char **why, const struct accel_node *n,
                      bool back)
{
    int rank = accel_operand_rank(n, 1);
    u->kind = back ? ACCEL_UNFOLD_CONV_BACK : ACCEL_UNFOLD_CONV;
    if (accel_window_read(&u->window, n) || accel_window_check(&u->window, rank - 2))
        return said_no(why, "its attributes cannot be read");
    u->n_group = u->window.group;
    u->taps = 1;
    int64_t first = dim(n, 1, 0), second = dim(n, 1, 1);
    for (int i = 2; i < rank && i < 5; i++) {
        u->k[i - 2] = dim(n, 1, i);
        u->taps = accel_macs_mul(u->taps, u->k[i - 2]);
    }
    if (rank < 3 || rank > 5 || u->taps < 1 || first < 1 || second < 1 || first % u->n_group)
        return said_no(why, "its weight has unknown sizes or more than three spatial axes");
    u->n_x = (back ? first / u->n_group : second) * u->taps;
    u->n_y = back ? second : first / u->n_group;
    if (back && (accel_attr_find(n, "output_shape") ||
                 (u->window.auto_pad != ACCEL_PAD_GIVEN && u->window.auto_pad != ACCEL_PAD_VALID)))
        return said_no(why, "its padding follows from output_shape or auto_pad");
    return true;
}

static bool init_gemm(struct accel_unfold *u, const char **why, const struct accel_node *n)
{
    int64_t trans_a, trans_b;
    float alpha, beta;
    if (accel_attr_int(&trans_a, n, "transA", 0) || accel_attr_int(&trans_b, n, "transB", 0) ||
        accel_attr_float(&alpha, n, "alpha", 1) || accel_attr_float(&beta, n, "beta", 1))
        return said_no(why, "its attributes cannot be read");
    u->by_output = trans_b != 0;
    u->alpha = (double)alpha;
    u->beta = (double)beta;
    if (trans_a || alpha == 0)
        return said_no(why, "transA is set or alpha is 0");
    return true;
}

bool accel_unfold_init(struct accel_unfold *u, const char **why, const struct accel_node *n)
{
    *u = (struct accel_unfold){.node = n, .w_slot = 1, .b_slot = 2, .n_group = 1, .taps = 1};
    u->alpha = u->beta = 1;
    *why = NULL;
    if (!n->op || *n->op->domain || n->n_in < 2 || !n->in[1] || n->n_out != 1 || !n->out[0])
        return false;
    bool conv = !strcmp(n->op->name, "Conv"), back = !strcmp(n->op->name, "ConvTranspose");
    bool gemm = !strcmp(n->op->name, "Gemm"), matmul = !strcmp(n->op->name, "MatMul");
    if (conv || back)
        return init_conv(u, why, n, back);
    if (!gemm && !matmul)
        return false;
    u->kind = ACCEL_UNFOLD_ROWS;
    if (accel_operand_rank(n, 1) != 2)
        return said_no(why, "its weight has no two axes");
    if (matmul && n->in[0] && n->in[0]->tensor)
        return said_no(why, "its weight is the first factor");
    if (matmul)
        u->b_slot = -1;
    if (gemm && !init_gemm(u, why, n))
        return false;
    u->n_x = dim(n, 1, u->by_output);
    u->n_y = dim(n, 1, !u->by_output);
    return (u->n_x > 0 && u->n_y > 0) || said_no(why, "its weight has unknown sizes");
}

int64_t accel_unfold_weight(const struct accel_unfold *u, int64_t g, int64_t i, int64_t k)
{
    switch (u->kind) {
    case ACCEL_UNFOLD_CONV: /* [M, C / group, taps] */
        return (g * u->n_y + k) * u->n_x + i;
    case ACCEL_UNFOLD_CONV_BACK: /* [C, M / group, taps] */
        return ((g * (u->n_x / u->taps) + i / u->taps) * u->n_y + k) * u->taps + i % u->taps;
    default:
        return u->by_output ? k * u->n_x + i : i * u->n_y + k;
    }
}

int64_t accel_unfold_positions(const struct accel_unfold *u, const struct accel_array *y)
{
    int64_t n = 1;
    int from = u->kind == ACCEL_UNFOLD_ROWS ? 1 : 2;
    int to = u->kind == ACCEL_UNFOLD_ROWS ? y->rank - 1 : y->rank;
    for (int i = from; i < to; i++)
        n *= y->dim[i];
    return n;
}

/* Input position along an axis that tap t meets at output o; -1: none. */
static int64_t meets(const struct accel_window_axis *a, int64_t o, int64_t t, bool back)
{
    int64_t at = back ? o + a->begin - t * a->dilation : o * a->stride - a->begin + t * a->dilation;
    if (back && (at < 0 || at % a->stride))
        return -1;
    at = back ? at / a->stride : at;
    return at >= 0 && at < a->in ? at : -1;
}

/* x: one sample. */
static void gather(const struct accel_unfold *u, const struct accel_window_axis a[3],
                   const float *x, int64_t pos, float *to)
{
    bool back = u->kind == ACCEL_UNFOLD_CONV_BACK;
    int64_t o[3] = {pos / (a[1].out * a[2].out), pos / a[2].out % a[1].out, pos % a[2].out};
    int64_t plane = a[0].in * a[1].in * a[2].in, C = u->n_group * (u->n_x / u->taps), tap = 0;
    for (int64_t d = 0; d < a[0].k; d++)
        for (int64_t h = 0; h < a[1].k; h++)
            for (int64_t w = 0; w < a[2].k; w++, tap++) {
                int64_t i = meets(&a[0], o[0], d, back), j = meets(&a[1], o[1], h, back),
                        k = meets(&a[2], o[2], w, back);
                bool out = i < 0 || j < 0 || k < 0;
                const float *at = out ? NULL : x + (i * a[1].in + j) * a[2].in + k;
                for (int64_t c = 0; c < C; c++)
                    to[c * u->taps + tap] = out ? 0 : at[c * plane];
            }
}

enum accel_err accel_unfold_x(const struct accel_unfold *u, const struct accel_array *x,
                              const struct accel_array *y, int64_t sample, const int64_t *pos,
                              int64_t n, float *to)
{
    struct accel_window_axis a[3];
    int64_t width = u->n_group * u->n_x;
    if (u->kind == ACCEL_UNFOLD_ROWS) {
        const float *from = (const float *)x->data + sample * accel_unfold_positions(u, y) * width;
        for (int64_t i = 0; i < n; i++)
            memcpy(to + i * width, from + pos[i] * width, (size_t)width * sizeof *to);
        return ACCEL_OK;
    }
    ACCEL_TRY(accel_window_axes(a, &u->window, x, y, u->k, u->kind == ACCEL_UNFOLD_CONV_BACK));
    const float *from = (const float *)x->data + sample * (x->n / x->dim[0]);
    for (int64_t i = 0; i < n; i++)
        gather(u, a, from, pos[i], to + i * width);
    return ACCEL_OK;
}

void accel_unfold_y(const struct accel_unfold *u, const struct accel_array *y, int64_t sample,
                    const int64_t *pos, int64_t n, const int64_t *channel, int64_t n_channel,
                    float *to)
{
    int64_t positions = accel_unfold_positions(u, y);
    bool rows = u->kind == ACCEL_UNFOLD_ROWS;
    int64_t M = rows ? y->dim[y->rank - 1] : y->dim[1];
    const float *from = (const float *)y->data + sample * positions * M;
    for (int64_t i = 0; i < n; i++)
        for (int64_t c = 0; c < n_channel; c++) {
            int64_t m = channel ? channel[c] : c;
            to[i * n_channel + c] = rows ? from[pos[i] * M + m] : from[m * positions + pos[i]];
        }
}
