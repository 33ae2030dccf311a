/* DeformConv's kernel: a convolution in two dimensions whose taps look beside their places.
 *
 * Each tap of each group of input channels has an offset (rows, columns) per output pixel, and may
 * have a factor. Its value lies between four pixels, outside of the image is 0. All output channels
 * of one pixel are summed at once, in double, so that every tap is looked at once per input
 * channel. Source: ONNX operator page DeformConv; Dai et al., "Deformable convolutional networks",
 * 2017. */
#include <math.h>

#include "ops/arith.h"
#include "ops/conv.h"
#include "ops/operand.h"
#include "ops/real.h"

/* The pixel at (row, col) of a plane, 0 outside. */
static double pixel(const real *plane, const struct accel_window_axis a[2], double row, double col)
{
    if (!(row >= 0 && row < (double)a[0].in && col >= 0 && col < (double)a[1].in))
        return 0;
    return (double)plane[(int64_t)row * a[1].in + (int64_t)col];
}

static double between(const real *plane, const struct accel_window_axis a[2], double row,
                      double col)
{
    double r = floor(row), c = floor(col), fr = row - r, fc = col - c;
    return (1 - fr) * ((1 - fc) * pixel(plane, a, r, c) + fc * pixel(plane, a, r, c + 1)) +
           fr * ((1 - fc) * pixel(plane, a, r + 1, c) + fc * pixel(plane, a, r + 1, c + 1));
}

struct deform {
    const struct accel_array *x, *w, *offset, *mask; /* mask NULL: ones */
    struct accel_window_axis a[2];
    int64_t taps, groups, offset_groups;
    double *sum; /* [M] */
};

/* Value of a tap for input channel `ch` at output pixel `at` of sample n. */
static double tap_value(const struct deform *d, int64_t n, int64_t ch, int64_t tap, int64_t at)
{
    int64_t C = d->x->dim[1], pixels = d->a[0].out * d->a[1].out;
    int64_t g = ch / (C / d->offset_groups), row = tap / d->a[1].k, col = tap % d->a[1].k;
    int64_t where = (n * d->offset_groups + g) * d->taps + tap;
    const real *off = (const real *)d->offset->data + where * 2 * pixels + at;
    double r =
        (double)(at / d->a[1].out * d->a[0].stride - d->a[0].begin + row * d->a[0].dilation) +
        (double)off[0];
    double c =
        (double)(at % d->a[1].out * d->a[1].stride - d->a[1].begin + col * d->a[1].dilation) +
        (double)off[pixels];
    double v =
        between((const real *)d->x->data + (n * C + ch) * d->a[0].in * d->a[1].in, d->a, r, c);
    return d->mask ? v * (double)((const real *)d->mask->data)[where * pixels + at] : v;
}

/* All output channels of one pixel. */
static void pixel_sums(const struct deform *d, int64_t n, int64_t at)
{
    int64_t C = d->x->dim[1], M = d->w->dim[0], per = d->w->dim[1], of_group = M / d->groups;
    for (int64_t ch = 0; ch < C; ch++)
        for (int64_t tap = 0; tap < d->taps; tap++) {
            double v = tap_value(d, n, ch, tap, at);
            int64_t first = ch / per * of_group;
            for (int64_t m = first; m < first + of_group; m++)
                d->sum[m] +=
                    v * (double)((const real *)d->w->data)[(m * per + ch % per) * d->taps + tap];
        }
}

size_t accel_deform_scratch(const struct accel_call *c)
{
    return (size_t)(c->x[1].n + 1) * sizeof(double);
}

enum accel_err accel_deform_forward(const struct accel_call *c, const struct accel_window *window,
                                    int64_t offset_groups)
{
    const struct accel_array *x = &c->x[0], *w = &c->x[1], *y = &c->y[0];
    const struct accel_array *b = c->node->n_in > 3 && c->x[3].data ? &c->x[3] : NULL;
    struct deform d = {.x = x,
                       .w = w,
                       .offset = &c->x[2],
                       .mask = c->node->n_in > 4 && c->x[4].data ? &c->x[4] : NULL,
                       .groups = window->group,
                       .offset_groups = offset_groups,
                       .sum = c->scratch};
    struct accel_window_axis axis[3];
    if (x->rank != 4 || accel_op_is_int(x) || accel_op_is_int(w) || accel_op_is_int(d.offset) ||
        (d.mask && accel_op_is_int(d.mask)) || (b && accel_op_is_int(b)))
        return accel_fail(ACCEL_ENOSUP, "DeformConv of rank %d, or of integers", x->rank);
    ACCEL_TRY(accel_window_axes(axis, window, x, y, w->dim + 2, false));
    d.a[0] = axis[1];
    d.a[1] = axis[2];
    d.taps = axis[1].k * axis[2].k;
    int64_t pixels = axis[1].out * axis[2].out, M = y->dim[1];
    int64_t looks =
        accel_macs_mul(accel_macs_mul(x->dim[0], offset_groups), accel_macs_mul(d.taps, pixels));
    if (x->dim[1] % offset_groups != 0 || d.offset->n != accel_macs_mul(looks, 2) ||
        (d.mask && d.mask->n != looks))
        return accel_fail(ACCEL_ESHAPE, "%lld offsets for %lld taps in all, %lld groups of %lld",
                          (long long)d.offset->n, (long long)looks, (long long)offset_groups,
                          (long long)x->dim[1]);
    for (int64_t i = 0; i < y->dim[0] * pixels && M; i++) {
        for (int64_t m = 0; m < M; m++)
            d.sum[m] = b ? (double)((const real *)b->data)[m] : 0;
        pixel_sums(&d, i / pixels, i % pixels);
        for (int64_t m = 0; m < M; m++)
            ((real *)y->data)[(i / pixels * M + m) * pixels + i % pixels] = (real)d.sum[m];
    }
    return ACCEL_OK;
}
