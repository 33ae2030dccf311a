/* conv.h - what plain and transposed convolutions share. */
#ifndef ACCEL_OPS_CONV_H
#define ACCEL_OPS_CONV_H

#include "ops/window.h"

/* The rank that input 0, weight and kernel_shape agree on, -1 when none is known; checks the lists
 * of `w` against it. ESHAPE names both sides. */
enum accel_err accel_conv_rank(int *out, const struct accel_node *n, int w_slot,
                               const struct accel_window *w) ACCEL_CHECKED;

/* Taps along spatial axis `axis`, from kernel_shape or the weight. */
enum accel_err accel_conv_kernel(struct accel_dim *out, const struct accel_node *n, int w_slot,
                                 const struct accel_window *w, int axis) ACCEL_CHECKED;

/* Product of all axes of the weight but the first; -1 when one is unknown. */
int64_t accel_conv_taps(const struct accel_node *n, int w_slot);

#endif
