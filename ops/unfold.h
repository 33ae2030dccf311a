/* unfold.h - nodes that are linear in a constant weight, as rows: at every position of the output,
 *
 *     y = alpha W^T x + beta b,
 *
 * x being what the weight meets there (the patch under a convolution's window, zeros in the
 * padding). With groups (grouped convolutions) there are n_group such maps side by side. What
 * least-squares fits and activation statistics look at. */
#ifndef ACCEL_OPS_UNFOLD_H
#define ACCEL_OPS_UNFOLD_H

#include "graph/op.h"
#include "ops/window.h"

struct accel_unfold {
    const struct accel_node *node;
    enum { ACCEL_UNFOLD_CONV, ACCEL_UNFOLD_CONV_BACK, ACCEL_UNFOLD_ROWS } kind;
    int w_slot, b_slot;        /* b_slot -1: there is no input for a bias */
    int64_t n_group, n_x, n_y; /* groups; inputs and outputs of one */
    int64_t taps;              /* of convolutions; n_x = channels of a group * taps */
    int64_t k[3];              /* taps along each spatial axis */
    bool by_output;            /* of ROWS: the weight is [n_y, n_x], else [n_x, n_y] */
    double alpha, beta;
    struct accel_window window;
};

/* False when the node is none of Conv, ConvTranspose, Gemm and MatMul in a form that is known here,
 * with a weight of known sizes (it need not be a constant). Then *why (a few words) says which form
 * it is; NULL for other operators. */
bool accel_unfold_init(struct accel_unfold *u, const char **why, const struct accel_node *n);

/* Element of the weight that joins input i and output k of group g. */
int64_t accel_unfold_weight(const struct accel_unfold *u, int64_t g, int64_t i, int64_t k);

/* Channel of the input that entry i of group g's x belongs to. */
static inline int64_t accel_unfold_channel(const struct accel_unfold *u, int64_t g, int64_t i)
{
    return g * (u->n_x / u->taps) + i / u->taps;
}

/* Positions of one sample (index of the first axis) in an output of these dims. */
int64_t accel_unfold_positions(const struct accel_unfold *u, const struct accel_array *y);

/**
 * Writes the inputs of some positions of one sample.
 *
 * @param x, y    arrays of float; of y only the dims are read
 * @param sample  index along the first axis (of ROWS: of the first axis of y)
 * @param pos     [n] positions, ascending
 * @param to      [n, n_group * n_x]
 */
enum accel_err accel_unfold_x(const struct accel_unfold *u, const struct accel_array *x,
                              const struct accel_array *y, int64_t sample, const int64_t *pos,
                              int64_t n, float *to) ACCEL_CHECKED;

/* The same for outputs, of `channel` [n_channel] (NULL: all): to [n, n_channel]. */
void accel_unfold_y(const struct accel_unfold *u, const struct accel_array *y, int64_t sample,
                    const int64_t *pos, int64_t n, const int64_t *channel, int64_t n_channel,
                    float *to);

#endif
