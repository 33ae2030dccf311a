/* Recurrent layers, attention and signal transforms: shapes, MACs, error texts. */
#include "tests/op_t.h"

START_TEST(recurrent_layers)
{
    op_is("LSTM", 14, "3x2x4 1x20x4 1x20x5 1x40 | hidden_size=5", "3x1x2x5", 3 * 2 * 20 * 9);
    op_is("LSTM", 14, "3x2x4 2x20x4 2x20x5 | direction=bidirectional", "3x2x2x5",
          2 * 3 * 2 * 20 * 9);
    op_is("GRU", 14, "2x3x4 1x15x4 1x15x5 | layout=1 hidden_size=5", "2x3x1x5", 3 * 2 * 15 * 9);
    op_is("RNN", 7, "TxNx4 1x5x4 1x5x5 | direction=reverse", "Tx1xNx5", -1);
    op_is("ms:DynamicQuantizeLSTM", 1,
          "3x2x4 i8:1x4x20 i8:1x5x20 1x40 - - - - 1 i8:1 1 i8:1 | hidden_size=5", "3x1x2x5",
          3 * 2 * 20 * 9);
    struct op_run r = op_begin("LSTM", 14, "3x2x4 1x20x4 1x20x5");
    op_shape_is(&r, 1, "1x2x5");
    op_shape_is(&r, 2, "1x2x5");
    struct accel_weight w[4];
    ck_assert_int_eq(r.n->op->weights(r.n, w), 2);
    ck_assert_int_eq(w[1].slot, 2);
    ck_assert_int_eq(w[1].in_axis, 2);
    ck_assert_int_eq(w[1].out_axis, 1);
    ck_assert_str_eq(w[1].type, "LSTM");
    op_end(&r);
}
END_TEST

START_TEST(recurrent_contradictions_name_both_sides)
{
    op_fails("LSTM", 14, "3x2x5 1x20x4 1x20x5", ACCEL_ESHAPE,
             "input has 5 features, weight 'in1' expects 4");
    op_fails("LSTM", 14, "3x2x4 1x20x4 1x20x5 | hidden_size=6", ACCEL_ESHAPE, "hidden_size is 6");
    op_fails("LSTM", 14, "3x2x4 2x20x4 2x20x5", ACCEL_ESHAPE, "2 directions instead of 1");
    op_fails("GRU", 14, "3x2x4 1x15x4 1x15x5 | direction=up", ACCEL_EMODEL, "up");
    op_fails("GRU", 14, "3x4 1x15x4 1x15x5", ACCEL_ESHAPE, "rank 2");
}
END_TEST

START_TEST(attention_counts_both_products)
{
    op_is("Attention", 23, "2x3x4x8 2x3x6x8 2x3x6x10", "2x3x4x10", 2 * 3 * 4 * 6 * 18);
    op_is("Attention", 23, "2x4x24 2x6x24 2x6x30 | q_num_heads=3 kv_num_heads=3", "2x4x30",
          2 * 3 * 4 * 6 * 18);
    op_is("Attention", 24, "2x4x4x8 2x2x6x8 2x2x6x8 - 2x2x5x8 2x2x5x8", "2x4x4x8",
          2 * 4 * 4 * 11 * 16);
    op_is("Attention", 23, "BxHxSx8 BxHxTx8 BxHxTx8", "BxHxSx8", -1);
    struct op_run r = op_begin("Attention", 23, "2x4x4x8 2x2x6x8 2x2x6x8 - 2x2x5x8 2x2x5x8");
    op_shape_is(&r, 1, "2x2x11x8");
    op_shape_is(&r, 3, "2x4x4x11");
    op_end(&r);
    op_fails("Attention", 23, "2x3x4x8 2x3x6x9 2x3x6x8", ACCEL_ESHAPE,
             "heads of Q have 8 elements, those of K 9");
    op_fails("Attention", 23, "2x4x25 2x6x24 2x6x24 | q_num_heads=3 kv_num_heads=3", ACCEL_ESHAPE,
             "25 columns for 3 heads");
}
END_TEST

START_TEST(attention_of_onnx_runtime)
{
    op_is("ms:Attention", 1, "2x4x6 6x18 18 | num_heads=3", "2x4x6",
          2 * 4 * 6 * 18 + 2 * 4 * 4 * 12);
    op_is("ms:MultiHeadAttention", 1, "2x4x6 2x5x6 2x5x9 | num_heads=3", "2x4x9", 2 * 4 * 5 * 15);
    op_is("ms:GroupQueryAttention", 1,
          "2x4x8 2x4x4 2x4x4 - - i32:2 i32:scalar | num_heads=4 kv_num_heads=2", "2x4x8",
          2 * 4 * 4 * 16);
    op_is("ms:EmbedLayerNormalization", 1, "i32:2x3 - 7x4 5x4 - 4 4", "2x3x4", -2);
    op_is("ms:QLinearAdd", 1, "u8:2x3 scalar u8:scalar u8:3 scalar u8:scalar scalar", "2x3", -2);
    op_is("ms:QLinearConcat", 1,
          "scalar u8:scalar u8:2x3 scalar u8:scalar u8:2x4 scalar u8:scalar | axis=1", "2x7", -2);
}
END_TEST

START_TEST(signal_sizes_come_from_inputs)
{
    op_is("HannWindow", 17, "scalar[9]", "9", -2);
    op_is("HannWindow", 17, "i64:scalar", "?", -2);
    op_is("MelWeightMatrix", 17, "scalar[8] scalar[16] scalar[8192] scalar scalar", "9x8", -2);
    op_is("DFT", 17, "2x10x1 | onesided=1", "2x6x2", -2);
    op_is("DFT", 17, "2x6x2 | onesided=1 inverse=1", "2x10x1", -2);
    op_is("DFT", 20, "2x10x1 scalar[16] scalar[1]", "2x16x2", -2);
    op_is("STFT", 17, "2x128x1 scalar[8] 16", "2x15x9x2", -2);
    op_is("Det", 11, "2x3x3", "2", -2);
    op_fails("Det", 11, "2x3x4", ACCEL_ESHAPE, "3 rows and 4 columns");
    op_fails("STFT", 17, "2x128x1 scalar[0] 16", ACCEL_ESHAPE, "step is 0");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_rnn");
    TCase *t = tcase_create("op_rnn");
    tcase_add_test(t, recurrent_layers);
    tcase_add_test(t, recurrent_contradictions_name_both_sides);
    tcase_add_test(t, attention_counts_both_products);
    tcase_add_test(t, attention_of_onnx_runtime);
    tcase_add_test(t, signal_sizes_come_from_inputs);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
