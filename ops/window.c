/* Sizes of sliding windows. Numbers are computed here with checked arithmetic; symbols go through
 * accel_dim_derive() with the same formula, so that two branches of equal strides keep equal dims.
 *
 * ceil_mode counts a last window that is not whole, unless it would begin in the padding at the
 * end: such a window holds no element of the input. Whether it does depends on the size, so a
 * symbolic size stays unknown where the two formulas can differ. */
#include "ops/window.h"

#include <string.h>

#include "graph/attr.h"

/* Larger steps and pads mean nothing; with this bound sums of a few products cannot overflow. */
#define SANE ((int64_t)1 << 31)

static enum accel_err read_list(const int64_t **out, size_t *count, const struct accel_node *n,
                                const char *name, int64_t least)
{
    ACCEL_TRY(accel_attr_ints(out, count, n, name));
    if (*count == 0)
        *out = NULL;
    for (size_t i = 0; i < *count; i++)
        if ((*out)[i] < least || (*out)[i] >= SANE)
            return accel_fail(ACCEL_EMODEL, "attribute '%s' holds %lld, allowed is %lld to %lld",
                              name, (long long)(*out)[i], (long long)least, (long long)SANE - 1);
    return ACCEL_OK;
}

enum accel_err accel_window_read(struct accel_window *w, const struct accel_node *n)
{
    static const char *const names[] = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    const char *how;
    int64_t ceil_mode;
    *w = (struct accel_window){0};
    ACCEL_TRY(accel_attr_string(&how, n, "auto_pad", "NOTSET"));
    size_t k = 0;
    while (k < 4 && strcmp(how, names[k]) != 0)
        k++;
    if (k == 4 && how[0])
        return accel_fail(ACCEL_EMODEL, "attribute 'auto_pad' is \"%.50s\"", how);
    w->auto_pad = k == 4 ? ACCEL_PAD_GIVEN : (enum accel_auto_pad)k;
    ACCEL_TRY(accel_attr_int(&ceil_mode, n, "ceil_mode", 0));
    ACCEL_TRY(accel_attr_int(&w->group, n, "group", 1));
    w->ceil = ceil_mode != 0;
    if (w->group < 1)
        return accel_fail(ACCEL_EMODEL, "attribute 'group' is %lld", (long long)w->group);
    ACCEL_TRY(read_list(&w->kernel, &w->n_kernel, n, "kernel_shape", 1));
    ACCEL_TRY(read_list(&w->stride, &w->n_stride, n, "strides", 1));
    ACCEL_TRY(read_list(&w->dilation, &w->n_dilation, n, "dilations", 1));
    return read_list(&w->pad, &w->n_pad, n, "pads", 1 - SANE);
}

static enum accel_err check_list(const char *name, size_t count, size_t want)
{
    if (count && count != want)
        return accel_fail(ACCEL_ESHAPE, "attribute '%s' has %zu entries instead of %zu", name,
                          count, want);
    return ACCEL_OK;
}

enum accel_err accel_window_check(const struct accel_window *w, int n_axes)
{
    if (n_axes < 0)
        return ACCEL_OK;
    ACCEL_TRY(check_list("kernel_shape", w->n_kernel, (size_t)n_axes));
    ACCEL_TRY(check_list("strides", w->n_stride, (size_t)n_axes));
    ACCEL_TRY(check_list("dilations", w->n_dilation, (size_t)n_axes));
    return check_list("pads", w->n_pad, 2 * (size_t)n_axes);
}

enum accel_err accel_window_extent(int64_t *out, const struct accel_window *w, int axis, int64_t k)
{
    int64_t d = w->dilation ? w->dilation[axis] : 1;
    if (k < 1 || __builtin_mul_overflow(k - 1, d, out) || *out >= INT64_MAX / 4)
        return accel_fail(ACCEL_ESHAPE, "kernel of size %lld with dilation %lld", (long long)k,
                          (long long)d);
    *out += 1;
    return ACCEL_OK;
}

/* ceil_mode on a number. */
static int64_t ceil_windows(int64_t in, int64_t begin, int64_t room, int64_t stride)
{
    int64_t out = room / stride + (room % stride != 0) + 1, start;
    if (!__builtin_mul_overflow(out - 1, stride, &start) && start >= in + begin)
        out--;
    return out;
}

enum accel_err accel_window_size(struct accel_dim *out, struct accel_symbols *s,
                                 const struct accel_window *w, int axis, struct accel_dim in,
                                 struct accel_dim k)
{
    int64_t extent, stride = accel_window_stride(w, axis), begin = 0, end = 0;
    if (w->auto_pad == ACCEL_PAD_SAME_UPPER || w->auto_pad == ACCEL_PAD_SAME_LOWER)
        return accel_dim_derive(out, s, in, 1, stride - 1, stride, 0);
    *out = accel_dim_unknown();
    if (!accel_dim_known(k))
        return ACCEL_OK;
    ACCEL_TRY(accel_window_extent(&extent, w, axis, k.n));
    if (w->auto_pad == ACCEL_PAD_GIVEN && w->pad) {
        begin = w->pad[axis];
        end = w->pad[w->n_pad / 2 + (size_t)axis];
    }
    int64_t add = begin + end - extent;
    if (accel_dim_known(in)) {
        int64_t room;
        if (__builtin_add_overflow(in.n, add, &room) || room < 0)
            return accel_fail(ACCEL_ESHAPE,
                              "a window of %lld is larger than axis %d of size %lld "
                              "with padding %lld",
                              (long long)extent, axis + 2, (long long)in.n,
                              (long long)(begin + end));
        if (!w->ceil) {
            *out = accel_dim_of(room / stride + 1);
            return ACCEL_OK;
        }
        if (in.n > INT64_MAX - SANE)
            return accel_fail(ACCEL_ESHAPE, "axis %d has size %lld", axis + 2, (long long)in.n);
        *out = accel_dim_of(ceil_windows(in.n, begin, room, stride));
        return ACCEL_OK;
    }
    if (!w->ceil || stride == 1)
        return accel_dim_derive(out, s, in, 1, add, stride, 1);
    /* the last window begins before in + begin for certain when end <= extent - stride */
    if (end <= extent - stride)
        return accel_dim_derive(out, s, in, 1, add + stride - 1, stride, 1);
    return ACCEL_OK;
}

/* Padding in front of an axis; SAME pads what is missing, the odd one at the end (UPPER) or in
 * front. */
static int64_t begin_of(const struct accel_window *w, const struct accel_window_axis *a, int i,
                        bool transposed)
{
    int64_t extent = (a->k - 1) * a->dilation + 1, total;
    if (transposed)
        total = a->stride * (a->in - 1) + extent - a->out;
    else
        total = (a->out - 1) * a->stride + extent - a->in;
    if (w->auto_pad == ACCEL_PAD_SAME_UPPER || w->auto_pad == ACCEL_PAD_SAME_LOWER) {
        total = total > 0 ? total : 0;
        return w->auto_pad == ACCEL_PAD_SAME_UPPER ? total / 2 : total - total / 2;
    }
    return w->auto_pad == ACCEL_PAD_GIVEN && w->pad ? w->pad[i] : 0;
}

enum accel_err accel_window_axes(struct accel_window_axis axis[3], const struct accel_window *w,
                                 const struct accel_array *x, const struct accel_array *y,
                                 const int64_t *k, bool transposed)
{
    int n = x->rank - 2, skip = 3 - n;
    if (n > 3)
        return accel_fail(ACCEL_ENOSUP, "%d spatial axes, at most 3 can be computed", n);
    for (int i = 0; i < 3; i++)
        axis[i] = (struct accel_window_axis){1, 1, 1, 1, 1, 0, 0};
    for (int i = 0; i < n; i++) {
        struct accel_window_axis *a = &axis[skip + i];
        a->in = x->dim[2 + i];
        a->out = y->dim[2 + i];
        a->k = k[i];
        a->stride = accel_window_stride(w, i);
        a->dilation = w->dilation ? w->dilation[i] : 1;
        a->begin = begin_of(w, a, i, transposed);
        a->end = w->auto_pad == ACCEL_PAD_GIVEN
                     ? (w->pad ? w->pad[w->n_pad / 2 + (size_t)i] : 0)
                     : (a->out - 1) * a->stride + (a->k - 1) * a->dilation + 1 - a->in - a->begin;
    }
    return ACCEL_OK;
}
