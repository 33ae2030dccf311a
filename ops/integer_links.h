/* integer_links.h - what QLinearConv and QLinearMatMul say about cutting.
 *
 * 0 of quantised values is their zero point. A cut channel's weights hold their zero point in the
 * masked model, so its sums are 0 whatever meets them, and the output is its own zero point. */
#ifndef ACCEL_OPS_INTEGER_LINKS_H
#define ACCEL_OPS_INTEGER_LINKS_H

#include "graph/links.h"

/* Slots of both: X, its scale and zero point; W, its own; those of Y; the bias. */
enum {
    ACCEL_Q_X,
    ACCEL_Q_X_SCALE,
    ACCEL_Q_X_ZERO,
    ACCEL_Q_W,
    ACCEL_Q_W_SCALE,
    ACCEL_Q_W_ZERO,
    ACCEL_Q_Y_SCALE,
    ACCEL_Q_Y_ZERO,
    ACCEL_Q_BIAS
};
#define ACCEL_Q_KEEP                                                                               \
    (1u << ACCEL_Q_X_SCALE | 1u << ACCEL_Q_X_ZERO | 1u << ACCEL_Q_W_SCALE | 1u << ACCEL_Q_W_ZERO | \
     1u << ACCEL_Q_Y_SCALE | 1u << ACCEL_Q_Y_ZERO)

/* One group, or one channel per group; other forms say nothing. */
void accel_q_conv_links(struct accel_links *l, int64_t group);
void accel_q_conv_zero(struct accel_zero *z);

/* X [.. M K], W [K N]. */
void accel_q_matmul_links(struct accel_links *l);
void accel_q_matmul_zero(struct accel_zero *z);

#endif
