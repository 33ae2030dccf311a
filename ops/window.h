/* window.h - the sliding windows of convolutions and pools: attributes, and sizes along each axis.
 *
 * k taps of dilation d cover  e = (k - 1) * d + 1  elements. With padding p in all,
 *     convolution, pool:  out = floor((in + p - e) / stride) + 1     (ceil with ceil_mode)
 *     transposed:         out = stride * (in - 1) + output_padding + e - p
 * auto_pad SAME gives out = ceil(in / stride), transposed in * stride; VALID is p = 0.
 * Source: the ONNX pages of Conv, ConvTranspose and MaxPool. */
#ifndef ACCEL_OPS_WINDOW_H
#define ACCEL_OPS_WINDOW_H

#include "graph/op.h"

enum accel_auto_pad {
    ACCEL_PAD_GIVEN,
    ACCEL_PAD_VALID,
    ACCEL_PAD_SAME_UPPER,
    ACCEL_PAD_SAME_LOWER
};

/* Attributes as they are in the node; lists are NULL when absent. */
struct accel_window {
    enum accel_auto_pad auto_pad;
    bool ceil;
    int64_t group;
    const int64_t *kernel, *stride, *dilation, *pad; /* pad: [2 * n_pad / 2] begins, then ends */
    size_t n_kernel, n_stride, n_dilation, n_pad;
};

/* Reads auto_pad, ceil_mode, group, kernel_shape, strides, dilations, pads. EMODEL names the
 * attribute and the value: sizes and steps must be positive. */
enum accel_err accel_window_read(struct accel_window *w, const struct accel_node *n) ACCEL_CHECKED;

/* ESHAPE when a list has not one entry (pads: two) for each of `n_axes` axes. */
enum accel_err accel_window_check(const struct accel_window *w, int n_axes) ACCEL_CHECKED;

static inline int64_t accel_window_stride(const struct accel_window *w, int axis)
{
    return w->stride ? w->stride[axis] : 1;
}

/* Elements that `k` taps cover on this axis; ESHAPE when that overflows. */
enum accel_err accel_window_extent(int64_t *out, const struct accel_window *w, int axis,
                                   int64_t k) ACCEL_CHECKED;

/* Size along a spatial axis after windows of `k` taps; unknown when k or `in` is. ESHAPE when the
 * window is larger than the padded input. */
enum accel_err accel_window_size(struct accel_dim *out, struct accel_symbols *s,
                                 const struct accel_window *w, int axis, struct accel_dim in,
                                 struct accel_dim k) ACCEL_CHECKED;

/* One spatial axis of a kernel's loops: input position = o * stride - begin + t * dilation. */
struct accel_window_axis {
    int64_t in, out, k, stride, dilation, begin, end; /* begin, end: padding */
};

/* Up to three spatial axes of a call, filled up in front with axes of size 1; x and y are [N C D…],
 * k holds the taps. ENOSUP for more. Transposed: in and out change places in the formula. */
enum accel_err accel_window_axes(struct accel_window_axis axis[3], const struct accel_window *w,
                                 const struct accel_array *x, const struct accel_array *y,
                                 const int64_t *k, bool transposed) ACCEL_CHECKED;

/* The outputs [*lo, *hi) whose tap t meets the input. */
static inline void accel_window_range(int64_t *lo, int64_t *hi, const struct accel_window_axis *a,
                                      int64_t t)
{
    int64_t off = t * a->dilation - a->begin; /* in = o * stride + off */
    *lo = off >= 0 ? 0 : (-off + a->stride - 1) / a->stride;
    *hi = a->in - off <= 0 ? 0 : (a->in - off - 1) / a->stride + 1;
    *hi = *hi < a->out ? *hi : a->out;
    *lo = *lo < *hi ? *lo : *hi;
}

#endif
