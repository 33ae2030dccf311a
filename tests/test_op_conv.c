/* Convolutions and pools: sizes of every attribute variant, MACs, weights, error texts. */
#include "tests/op_t.h"

START_TEST(conv_sizes_follow_pads_strides_and_dilations)
{
    op_is("Conv", 11, "1x3x224x224 64x3x7x7 64 | pads=3,3,3,3 strides=2,2", "1x64x112x112",
          INT64_C(64) * 112 * 112 * 3 * 49);
    op_is("Conv", 11, "2x3x8x8 4x3x3x3", "2x4x6x6", 2 * 4 * 36 * 27);
    op_is("Conv", 11, "1x4x9x9 8x2x3x3 8 | group=2 strides=2,2", "1x8x4x4", 8 * 16 * 18);
    op_is("Conv", 11, "1x32x5x5 32x1x3x3 | group=32 pads=1,1,1,1", "1x32x5x5", 32 * 25 * 9);
    op_is("Conv", 11, "1x2x9x9 2x2x3x3 | dilations=2,2", "1x2x5x5", 2 * 25 * 18);
    op_is("Conv", 11, "1x2x9x9 2x2x3x3 | pads=0,1,2,3", "1x2x9x11", 2 * 99 * 18);
    op_is("Conv", 11, "1x2x10 3x2x5", "1x3x6", 3 * 6 * 10);
    op_is("Conv", 11, "1x1x4x5x6 2x1x2x2x2", "1x2x3x4x5", 2 * 60 * 8);
    op_is("Conv", 11, "1x1x7x7 2x1x3x3 | auto_pad=SAME_UPPER strides=2,2", "1x2x4x4", 2 * 16 * 9);
    op_is("Conv", 11, "1x1x7x7 2x1x3x3 | auto_pad=SAME_LOWER", "1x2x7x7", 2 * 49 * 9);
    op_is("Conv", 11, "1x1x7x7 2x1x3x3 | auto_pad=VALID strides=2,2", "1x2x3x3", 2 * 9 * 9);
}
END_TEST

START_TEST(unknown_sizes_stay_symbols)
{
    op_is("Conv", 11, "Nx3x8x8 4x3x3x3", "Nx4x6x6", -1);
    op_is("Conv", 11, "? 4x3x3x3", "?x4x?x?", -1);
    op_is("Conv", 11, "? ?", "?", -1);
    op_is("Conv", 11, "Nx3xHxW ? | kernel_shape=3,3 pads=1,1,1,1", "Nx?xHxW", -1);
    op_is("Conv", 11, "Nx3xHxW 5x3x3x3 | auto_pad=SAME_UPPER", "Nx5xHxW", -1);
    op_is("MaxPool", 12, "Nx3xHxW | kernel_shape=1,1", "Nx3xHxW", -2);
}
END_TEST

START_TEST(contradictions_name_both_sides)
{
    op_fails("Conv", 11, "1x5x8x8 4x3x3x3", ACCEL_ESHAPE,
             "input has 5 channels, weight 'in1' expects 3");
    op_fails("Conv", 11, "1x6x8x8 4x3x3x3 | group=3", ACCEL_ESHAPE, "expects 9");
    op_fails("Conv", 11, "1x6x8x8 4x2x3x3 | group=3", ACCEL_ESHAPE, "4 output channels in 3");
    op_fails("Conv", 11, "1x3x8x8 4x3x3", ACCEL_ESHAPE, "rank 4");
    op_fails("Conv", 11, "1x3x8x8 4x3x3x3 5", ACCEL_ESHAPE, "bias 'in2' has 5 elements for 4");
    op_fails("Conv", 11, "1x3x8x8 4x3x3x3 | kernel_shape=5,5", ACCEL_ESHAPE, "kernel_shape says 5");
    op_fails("Conv", 11, "1x3x2x2 4x3x3x3", ACCEL_ESHAPE, "window of 3");
    op_fails("Conv", 11, "1x3x8x8 4x3x3x3 | pads=1,1", ACCEL_ESHAPE, "'pads' has 2 entries");
    op_fails("Conv", 11, "1x3x8x8 4x3x3x3 | strides=0,1", ACCEL_EMODEL, "'strides' holds 0");
    op_fails("Conv", 11, "1x3x8x8 4x3x3x3 | group=0", ACCEL_EMODEL, "'group' is 0");
    op_fails("Conv", 11, "1x3x8x8 4x3x3x3 | auto_pad=SOME", ACCEL_EMODEL, "SOME");
    op_fails("Conv", 11, "1x3x8x8 4x3x3x3 | dilations=99999999999,1", ACCEL_EMODEL, "dilations");
    op_fails("Conv", 11, "3x8 4x3", ACCEL_ESHAPE, "rank 2");
    op_fails("MaxPool", 12, "1x3x8x8", ACCEL_EMODEL, "kernel_shape");
    op_fails("MaxPool", 12, "1x3x8x8 | kernel_shape=3", ACCEL_ESHAPE, "'kernel_shape' has 1");
}
END_TEST

START_TEST(transposed_convolutions_grow)
{
    op_is("ConvTranspose", 11, "2x3x4x4 3x5x2x2 5 | strides=2,2", "2x5x8x8", 2 * 48 * 20);
    op_is("ConvTranspose", 11, "1x2x5 2x3x5", "1x3x9", 10 * 15);
    op_is("ConvTranspose", 11, "1x4x3x3 4x2x3x3 4 | group=2 pads=1,1,1,1", "1x4x3x3", 36 * 18);
    op_is("ConvTranspose", 11, "1x1x3x3 1x2x3x3 | strides=3,2 output_shape=10,8", "1x2x10x8",
          9 * 18);
    op_is("ConvTranspose", 11, "1x1x3x3 1x2x3x3 | strides=3,2 output_padding=1,1", "1x2x10x8",
          9 * 18);
    op_is("ConvTranspose", 11, "1x1x3x3 1x2x3x3 | auto_pad=SAME_UPPER strides=2,2", "1x2x6x6",
          9 * 18);
    op_is("ConvTranspose", 11, "1x1x3x3 1x1x2x2 | dilations=2,2", "1x1x5x5", 9 * 4);
    op_is("ConvTranspose", 11, "Nx4xHx3 4x2x1x3", "Nx2xHx5", -1);
    op_fails("ConvTranspose", 11, "1x4x3x3 5x2x3x3", ACCEL_ESHAPE, "weight 'in1' expects 5");
}
END_TEST

START_TEST(ceil_mode_drops_windows_that_begin_in_the_padding)
{
    op_is("MaxPool", 12, "1x1x7x7 | kernel_shape=2,2 strides=2,2", "1x1x3x3", -2);
    op_is("MaxPool", 12, "1x1x7x7 | kernel_shape=2,2 strides=2,2 ceil_mode=1", "1x1x4x4", -2);
    /* room 3 + 2 - 2, stride 3: ceil(3/3) + 1 = 2; the second begins at 3 < 3 + 1 */
    op_is("MaxPool", 12, "1x1x3 | kernel_shape=2 strides=3 pads=1,1 ceil_mode=1", "1x1x2", -2);
    /* ceil((2 + 2 - 1) / 3) + 1 = 2, the second begins at 3 = 2 + 1: in the padding */
    op_is("MaxPool", 12, "1x1x2 | kernel_shape=1 strides=3 pads=1,1 ceil_mode=1", "1x1x1", -2);
    op_is("AveragePool", 11, "1x2x9x9 | kernel_shape=3,3 pads=1,1,1,1 count_include_pad=1",
          "1x2x9x9", -2);
    op_is("AveragePool", 11, "1x2x9x9 | kernel_shape=3,3 pads=0,0,1,1 strides=2,2", "1x2x4x4", -2);
}
END_TEST

START_TEST(max_pool_has_indices)
{
    struct op_run r = op_begin("MaxPool", 12, "1x1x4x4 | kernel_shape=2,2 strides=2,2");
    op_shape_is(&r, 1, "1x1x2x2");
    ck_assert_int_eq(r.n->out[1]->dtype, ACCEL_I64);
    op_end(&r);
}
END_TEST

START_TEST(other_pools)
{
    op_is("GlobalAveragePool", 1, "Nx3x7x7", "Nx3x1x1", -2);
    op_is("GlobalMaxPool", 1, "2x3x7", "2x3x1", -2);
    op_is("LpPool", 11, "1x3x8x8 | kernel_shape=2,2 p=3", "1x3x7x7", -2);
    op_is("MaxUnpool", 11, "1x1x2x2 1x1x2x2 | kernel_shape=2,2 strides=2,2", "1x1x4x4", -2);
    op_is("MaxUnpool", 11, "1x1x2x2 1x1x2x2 [1,1,5,5] | kernel_shape=2,2 strides=2,2", "1x1x5x5",
          -2);
    op_is("RoiAlign", 16, "1x3x8x8 5x4 5 | output_height=2 output_width=3", "5x3x2x3", -2);
    op_is("MaxRoiPool", 1, "1x3x8x8 2x5 | pooled_shape=2,4", "2x3x2x4", -2);
    op_fails("MaxRoiPool", 1, "1x3x8x8 2x5 | pooled_shape=2", ACCEL_EMODEL, "1 entries");
}
END_TEST

START_TEST(quantised_convolutions_count_like_plain_ones)
{
    op_is("ConvInteger", 10, "u8:1x1x3x3 u8:1x1x2x2", "1x1x2x2", 16);
    op_is("QLinearConv", 10,
          "u8:1x1x3x3 scalar u8:scalar u8:1x1x2x2 scalar u8:scalar scalar u8:scalar", "1x1x2x2",
          16);
    struct op_run r = op_begin("ConvInteger", 10, "u8:1x1x3x3 u8:1x1x2x2");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_I32);
    op_end(&r);
    op_is("DeformConv", 19, "1x2x5x5 3x2x2x2 1x8x4x4", "1x3x4x4", 3 * 16 * 8);
    op_fails("DeformConv", 19, "1x2x5x5 3x2x2x2 1x4x4x4", ACCEL_ESHAPE, "the kernel needs 8");
}
END_TEST

START_TEST(weights_say_their_axes)
{
    struct accel_weight w[4];
    struct op_run r = op_begin("Conv", 11, "1x3x8x8 4x3x3x3 4");
    ck_assert_int_eq(r.n->op->weights(r.n, w), 1);
    ck_assert_int_eq(w[0].slot, 1);
    ck_assert_int_eq(w[0].out_axis, 0);
    ck_assert_int_eq(w[0].in_axis, 1);
    ck_assert_int_eq(w[0].bias_slot, 2);
    ck_assert_str_eq(w[0].type, "Conv2d");
    op_end(&r);
    r = op_begin("ConvTranspose", 11, "1x3x8 3x4x3");
    ck_assert_int_eq(r.n->op->weights(r.n, w), 1);
    ck_assert_int_eq(w[0].out_axis, 1);
    ck_assert_int_eq(w[0].in_axis, 0);
    ck_assert_str_eq(w[0].type, "ConvTranspose1d");
    op_end(&r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_conv");
    TCase *t = tcase_create("op_conv");
    tcase_add_test(t, conv_sizes_follow_pads_strides_and_dilations);
    tcase_add_test(t, unknown_sizes_stay_symbols);
    tcase_add_test(t, contradictions_name_both_sides);
    tcase_add_test(t, transposed_convolutions_grow);
    tcase_add_test(t, ceil_mode_drops_windows_that_begin_in_the_padding);
    tcase_add_test(t, max_pool_has_indices);
    tcase_add_test(t, other_pools);
    tcase_add_test(t, quantised_convolutions_count_like_plain_ones);
    tcase_add_test(t, weights_say_their_axes);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
