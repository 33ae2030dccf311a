/* Col2Im: blocks [N C*K L] are added into an image [N C D…], the reverse of cutting them out.
 * K is the product of the block's sizes, L the number of its positions, the last axis fastest. */
#include "ops/arith.h"
#include "ops/op_util.h"
#include "ops/real.h"

#define MAX_AXES 8

static enum accel_err infer(struct accel_node *n)
{
    struct accel_shape image, out = {-1, NULL};
    struct accel_list block;
    ACCEL_TRY(accel_operand_check_rank(n, 0, 3));
    ACCEL_TRY(accel_shape_from_input(&image, n, 1));
    ACCEL_TRY(accel_list_get(&block, n, NULL, 2));
    if (image.rank >= 0) {
        struct accel_dim rows = accel_operand_dim(n, 0, 1);
        int64_t taps = 1;
        ACCEL_TRY(accel_shape_new(&out, n, image.rank + 2));
        out.dim[0] = accel_operand_dim(n, 0, 0);
        for (int64_t i = 0; block.known && i < block.n; i++)
            if (block.at[i] < 1 || __builtin_mul_overflow(taps, block.at[i], &taps))
                return accel_fail(ACCEL_ESHAPE, "block_shape has the size %lld",
                                  (long long)block.at[i]);
        if (accel_dim_known(rows) && rows.n % taps)
            return accel_fail(ACCEL_ESHAPE, "size %lld is no multiple of %lld", (long long)rows.n,
                              (long long)taps);
        if (block.known)
            ACCEL_TRY(accel_dim_derive(&out.dim[1], accel_operand_symbols(n), rows, 1, 0, taps, 0));
        for (int i = 0; i < image.rank; i++)
            out.dim[i + 2] = image.dim[i];
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

/* One spatial axis: position of tap k of block l is l * stride + k * dilation - begin. */
struct axis {
    int64_t size, taps, blocks, stride, dilation, begin;
};

static enum accel_err axes_of(struct axis *a, int *count, const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0], *block = &c->x[2];
    struct accel_list stride, dilation, pad;
    int axes = y->rank - 2;
    int64_t taps = 1, blocks = 1;
    ACCEL_TRY(accel_list_get(&stride, c->node, "strides", -1));
    ACCEL_TRY(accel_list_get(&dilation, c->node, "dilations", -1));
    ACCEL_TRY(accel_list_get(&pad, c->node, "pads", -1));
    if (axes < 1 || axes > MAX_AXES)
        return accel_fail(ACCEL_ENOSUP, "an image of %d axes", axes);
    if (block->n != axes || (stride.given && stride.n != axes) ||
        (dilation.given && dilation.n != axes) || (pad.given && pad.n != 2 * axes))
        return accel_fail(ACCEL_ESHAPE, "attributes or a block of other than %d axes", axes);
    for (int i = 0; i < axes; i++) {
        int64_t k = ((const int64_t *)block->data)[i], s = stride.given ? stride.at[i] : 1;
        int64_t d = dilation.given ? dilation.at[i] : 1, before = pad.given ? pad.at[i] : 0;
        int64_t behind = pad.given ? pad.at[axes + i] : 0, most = (int64_t)1 << 40;
        if (k < 1 || s < 1 || d < 1 || before < 0 || behind < 0 || k > most / d || s > most ||
            before > most || behind > most || y->dim[2 + i] > most)
            return accel_fail(ACCEL_ESHAPE, "axis %d: a block of %lld, stride %lld, dilation %lld",
                              i, (long long)k, (long long)s, (long long)d);
        int64_t room = y->dim[2 + i] + before + behind - d * (k - 1) - 1;
        a[i] = (struct axis){y->dim[2 + i], k, room < 0 ? 0 : room / s + 1, s, d, before};
        taps = accel_macs_mul(taps, k);
        blocks = accel_macs_mul(blocks, a[i].blocks);
    }
    *count = axes;
    if (taps < 1 || x->dim[1] != accel_macs_mul(y->dim[1], taps) || x->dim[2] != blocks)
        return accel_fail(ACCEL_ESHAPE, "%lld rows of %lld blocks, expected %lld of %lld",
                          (long long)x->dim[1], (long long)x->dim[2],
                          (long long)accel_macs_mul(y->dim[1], taps), (long long)blocks);
    return ACCEL_OK;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct axis a[MAX_AXES];
    int axes;
    ACCEL_TRY(axes_of(a, &axes, c));
    if (accel_op_is_int(x))
        return accel_fail(ACCEL_ENOSUP, "blocks of integers");
    int64_t pixels = accel_array_span(y, 2, y->rank), L = x->dim[2];
    int64_t taps = y->dim[1] ? x->dim[1] / y->dim[1] : 1;
    for (int64_t i = 0; i < y->n; i++)
        ((real *)y->data)[i] = 0;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t l = i % L, k = i / L % taps, plane = i / L / taps, at = 0, step = 1;
        bool in = true;
        for (int d = axes - 1; d >= 0; d--) {
            int64_t pos =
                l % a[d].blocks * a[d].stride + k % a[d].taps * a[d].dilation - a[d].begin;
            in = in && pos >= 0 && pos < a[d].size;
            at += pos * step;
            step *= a[d].size;
            l /= a[d].blocks;
            k /= a[d].taps;
        }
        if (in)
            ((real *)y->data)[plane * pixels + at] += ((const real *)x->data)[i];
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"dilations", ACCEL_ATTR_INTS, 0},
                                               {"pads", ACCEL_ATTR_INTS, 0},
                                               {"strides", ACCEL_ATTR_INTS, 0},
                                               {0}};
static const char *const examples[] = {"1x10x5 [5,5] [1,5]",
                                       "1x8x16 [6,6] [2,2] | pads=1,1,1,1 strides=2,2",
                                       "2x4x4 [4,5] [2,2] | dilations=2,3", NULL};

const struct accel_op accel_op_col2im = {
    .name = "Col2Im",
    .domain = "",
    .since = 18,
    .min_in = 3,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .attrs = attrs,
    .infer = infer,
    .forward = forward,
    .examples = examples,
};
