/* conv.h - what plain and transposed convolutions share. */
#ifndef ACCEL_OPS_CONV_H
#define ACCEL_OPS_CONV_H

#include "graph/links.h"
#include "graph/resize.h"
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

/* Links of a convolution X, W, B -> Y. The weight has one axis of input and one of output channels;
 * the one that is axis 0 runs over all groups, the other over one. In groups there are two ways to
 * cut: whole groups, or channel j of every group; with one input channel per group only whole ones.
 */
void accel_conv_links(struct accel_links *l, int64_t group, bool transposed);
void accel_conv_zero(struct accel_zero *z, int64_t group, bool transposed);

/* Sets `group` to what is left of it: the channels of `slot` by those that the weight's axis 1
 * counts for one group. */
enum accel_err accel_conv_resize(struct accel_resize *r, int64_t group, int slot) ACCEL_CHECKED;

/* The kernel of DeformConv (X, W, offset, B, mask -> Y), in two dimensions; ENOSUP for others. */
enum accel_err accel_deform_forward(const struct accel_call *c, const struct accel_window *window,
                                    int64_t offset_groups) ACCEL_CHECKED;
size_t accel_deform_scratch(const struct accel_call *c);

#endif
