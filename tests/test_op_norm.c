/* Normalisations, quantisers and losses: shapes, types, statistics, error texts. */
#include "tests/op_t.h"

START_TEST(normalisations_keep_the_shape)
{
    op_is("BatchNormalization", 15, "2x3x4x4 3 3 3 3", "2x3x4x4", -2);
    op_is("BatchNormalization", 7, "2x3x4 3x4 3x4 3x4 3x4 | spatial=0", "2x3x4", -2);
    op_is("InstanceNormalization", 6, "NxCx4 5 5", "NxCx4", -2);
    op_is("LRN", 13, "2x5x3x3 | size=3", "2x5x3x3", -2);
    op_is("GroupNormalization", 21, "2x4x3 4 4 | num_groups=2", "2x4x3", -2);
    op_is("GroupNormalization", 18, "2x4x3 2 2 | num_groups=2", "2x4x3", -2);
    op_is("RMSNormalization", 23, "2xSx8 8", "2xSx8", -2);
    op_is("LpNormalization", 1, "2x3", "2x3", -2);
    op_is("MeanVarianceNormalization", 13, "2x3x4x4", "2x3x4x4", -2);
    op_is("ms:SkipLayerNormalization", 1, "2xSx8 2xSx8 8 8", "2xSx8", -2);
}
END_TEST

START_TEST(statistics_come_out_too)
{
    struct op_run r = op_begin("BatchNormalization", 15, "2x3x4x4 3 3 3 3 | training_mode=1");
    op_shape_is(&r, 1, "3");
    op_shape_is(&r, 2, "3");
    op_end(&r);
    r = op_begin("LayerNormalization", 17, "2x3x4 4 4");
    op_shape_is(&r, 1, "2x3x1");
    op_end(&r);
    r = op_begin("LayerNormalization", 17, "2x3x4 3x4 | axis=1");
    op_shape_is(&r, 2, "2x1x1");
    op_end(&r);
}
END_TEST

START_TEST(contradictions_name_both_sides)
{
    op_fails("BatchNormalization", 15, "2x3x4x4 4 3 3 3", ACCEL_ESHAPE,
             "scale 'in1' has 4 elements for 3 channels");
    op_fails("BatchNormalization", 15, "2x3x4x4 3 3 3 5", ACCEL_ESHAPE, "variance 'in4' has 5");
    op_fails("LayerNormalization", 17, "2x3x4 5", ACCEL_ESHAPE, "axis 2 of the input is 4");
    op_fails("LayerNormalization", 17, "2x3 3 | axis=2", ACCEL_ESHAPE, "axis 2");
    op_fails("GroupNormalization", 21, "2x5x3 5 5 | num_groups=2", ACCEL_ESHAPE,
             "5 channels in 2 groups");
    op_fails("GroupNormalization", 21, "2x5x3 5 5 | num_groups=0", ACCEL_EMODEL, "num_groups");
}
END_TEST

START_TEST(only_batch_norms_are_weights_of_their_own)
{
    struct accel_weight w[4];
    struct op_run r = op_begin("BatchNormalization", 15, "2x3x4x4 3 3 3 3");
    ck_assert_int_eq(r.n->op->weights(r.n, w), 1);
    ck_assert(w[0].norm);
    ck_assert_int_eq(w[0].slot, 1);
    ck_assert_int_eq(w[0].out_axis, 0);
    ck_assert_str_eq(w[0].type, "BatchNorm2d");
    ck_assert_uint_eq(r.n->op->keep, 1u << 3 | 1u << 4);
    op_end(&r);
}
END_TEST

START_TEST(quantisers_change_the_type)
{
    struct op_run r = op_begin("QuantizeLinear", 13, "2x3x4 3 i8:3 | axis=1");
    op_shape_is(&r, 0, "2x3x4");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_I8);
    op_end(&r);
    r = op_begin("QuantizeLinear", 21, "2x3 scalar | output_dtype=3");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_I8);
    op_end(&r);
    r = op_begin("QuantizeLinear", 10, "2x3 scalar");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_U8);
    op_end(&r);
    r = op_begin("DequantizeLinear", 21, "i8:2x8 2x2 i8:2x2 | axis=1 block_size=4");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_F32);
    ck_assert_int_eq(r.n->op->carry(r.n, 1), 1);
    ck_assert_int_eq(r.n->op->carry(r.n, 2), -1);
    op_end(&r);
    r = op_begin("DynamicQuantizeLinear", 11, "2xN");
    op_shape_is(&r, 0, "2xN");
    op_shape_is(&r, 1, "scalar");
    op_end(&r);
    op_fails("DequantizeLinear", 13, "i8:2x3 2 | axis=1", ACCEL_ESHAPE,
             "scale 'in1' has 2 elements, axis 1 is 3");
    op_fails("DequantizeLinear", 21, "i8:2x8 2x3 | axis=1 block_size=4", ACCEL_ESHAPE,
             "is 3 instead of 2");
}
END_TEST

START_TEST(losses_are_one_number_or_one_per_label)
{
    op_is("SoftmaxCrossEntropyLoss", 13, "4x3 i64:4", "scalar", -2);
    op_is("NegativeLogLikelihoodLoss", 13, "2x3x5 i64:2x5 3 | reduction=none", "2x5", -2);
    op_fails("SoftmaxCrossEntropyLoss", 13, "4x3 i64:5", ACCEL_ESHAPE,
             "labels is 5, scores have 4");
    op_fails("SoftmaxCrossEntropyLoss", 13, "4x3 i64:4 | reduction=max", ACCEL_EMODEL, "max");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_norm");
    TCase *t = tcase_create("op_norm");
    tcase_add_test(t, normalisations_keep_the_shape);
    tcase_add_test(t, statistics_come_out_too);
    tcase_add_test(t, contradictions_name_both_sides);
    tcase_add_test(t, only_batch_norms_are_weights_of_their_own);
    tcase_add_test(t, quantisers_change_the_type);
    tcase_add_test(t, losses_are_one_number_or_one_per_label);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
