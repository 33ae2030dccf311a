/* Matrix products: shapes, MACs, numbers, Einsum's equations, weights. */
#include "tests/op_t.h"

START_TEST(products_count_every_multiply)
{
    op_is("MatMul", 13, "3x4 4x5", "3x5", 60);
    op_is("MatMul", 13, "2x1x3x4 5x4x2", "2x5x3x2", 240);
    op_is("MatMul", 13, "4 4x5", "5", 20);
    op_is("MatMul", 13, "3x4 4", "3", 12);
    op_is("MatMul", 13, "4 4", "scalar", 4);
    op_is("MatMul", 13, "NxSx768 768x3072", "NxSx3072", -1);
    op_is("MatMul", 13, "? 4x5", "?", -1);
    op_is("MatMulInteger", 10, "u8:3x4 u8:4x5", "3x5", 60);
    op_is("QLinearMatMul", 21, "u8:3x4 scalar u8:scalar u8:4x5 scalar u8:scalar scalar u8:scalar",
          "3x5", 60);
    op_is("Gemm", 13, "3x4 5x4 5 | transB=1", "3x5", 60);
    op_is("Gemm", 7, "4x3 4x5 3x1 | transA=1 alpha=0.5", "3x5", 60);
    op_is("Gemm", 11, "Nx4 4x5", "Nx5", -1);
    op_is("ms:FusedMatMul", 1, "4x3 5x4 | transA=1 transB=1", "3x5", 60);
    op_is("ms:FusedMatMul", 1, "3x2x4 2x4x5 | transBatchA=1", "2x3x5", 120);
    op_is("ms:MatMulNBits", 1, "2x3x32 u8:8x1x16 8 | K=32 N=8 block_size=32", "2x3x8", 1536);
    op_is("ms:DynamicQuantizeMatMul", 1, "3x4 u8:4x5 scalar", "3x5", 60);
}
END_TEST

START_TEST(contradictions_name_both_sides)
{
    op_fails("MatMul", 13, "3x4 5x6", ACCEL_ESHAPE, "input has 4 columns, weight 'in1' expects 5");
    op_fails("MatMul", 13, "2x3x4 3x4x5", ACCEL_ESHAPE, "batch axis 0");
    op_fails("MatMul", 13, "scalar 4x5", ACCEL_ESHAPE, "scalar");
    op_fails("Gemm", 13, "3x4 5x6", ACCEL_ESHAPE, "expects 5");
    op_fails("Gemm", 13, "3x4 4x5 6", ACCEL_ESHAPE, "bias 'in2' has 6 elements for 5");
    op_fails("Gemm", 13, "3x4x5 4x5", ACCEL_ESHAPE, "rank 3");
    op_fails("ms:MatMulNBits", 1, "2x31 u8:8x1x16 8 | K=32 N=8 block_size=32", ACCEL_ESHAPE,
             "K is 32");
}
END_TEST

START_TEST(products_are_computed)
{
    op_gives("MatMul", 13, "2x2[1,2,3,4] 2x2[5,6,7,8]", "19,22,43,50");
    op_gives("MatMul", 13, "f[1,2] f2x2[5,6,7,8]", "19,22");
    op_gives("MatMul", 13, "f2x2[1,2,3,4] f[5,6]", "17,39");
    op_gives("MatMul", 13, "2x1x2[1,2,3,4] 1x2x1[5,6]", "17,39");
    op_gives("MatMul", 13, "[1,2] [3,4]", "11");
    op_gives("Gemm", 13, "f2x2[1,2,3,4] f2x2[5,6,7,8] f[1,2] | transB=1 alpha=2 beta=3",
             "37,52,81,112");
    op_gives("Gemm", 13, "f2x2[1,2,3,4] f2x1[5,6] | transA=1", "23,34");
}
END_TEST

START_TEST(einsum_reads_its_equation)
{
    op_is("Einsum", 12, "2x3 3x4 | equation=ij,jk->ik", "2x4", 24);
    op_is("Einsum", 12, "2x3 3x4 | equation=ij,jk", "2x4", 24);
    op_is("Einsum", 12, "3x3 | equation=ii->i", "3", 0);
    op_is("Einsum", 12, "3x3 | equation=ii", "scalar", 0);
    op_is("Einsum", 12, "3 4 | equation=i,j->ij", "3x4", 12);
    op_is("Einsum", 12, "7x2x3x4 2x5x4 | equation=...ik,...jk->...ij", "7x2x3x5", 7 * 2 * 60);
    op_is("Einsum", 12, "2x3 | equation=ab->ba", "3x2", 0);
    op_is("Einsum", 12, "? 3x4 | equation=ij,jk->ik", "?x4", -1);
    op_is("Einsum", 12, "? 3x4 | equation=...j,jk->...k", "?", -1);
    op_is("Einsum", 12, "BxHxSxD BxHxTxD | equation=bhsd,bhtd->bhst", "BxHxSxT", -1);
    op_fails("Einsum", 12, "2x3 4x4 | equation=ij,jk->ik", ACCEL_ESHAPE, "axis 'j' is 3 and 4");
    op_fails("Einsum", 12, "2x3 | equation=ij,jk->ik", ACCEL_EMODEL, "2 terms for 1 inputs");
    op_fails("Einsum", 12, "2x3 | equation=ij->ik", ACCEL_EMODEL, "'k' that no input has");
    op_fails("Einsum", 12, "2x3 | equation=i1->i", ACCEL_EMODEL, "wrong term");
    op_fails("Einsum", 12, "2x3x4 | equation=ij->i", ACCEL_ESHAPE, "rank 3");
    op_fails("Einsum", 12, "2x3 | equation=ij->ii", ACCEL_EMODEL, "twice");
}
END_TEST

START_TEST(weights_say_their_axes)
{
    struct accel_weight w[4];
    struct op_run r = op_begin("Gemm", 13, "3x4 5x4 5 | transB=1");
    ck_assert_int_eq(r.n->op->weights(r.n, w), 2);
    ck_assert_int_eq(w[0].out_axis, 0);
    ck_assert_int_eq(w[0].in_axis, 1);
    ck_assert_int_eq(w[0].bias_slot, 2);
    ck_assert_int_eq(w[1].slot, 0);
    ck_assert_int_eq(w[1].out_axis, 0);
    op_end(&r);
    r = op_begin("Gemm", 13, "3x4 4x5 5");
    ck_assert_int_eq(r.n->op->weights(r.n, w), 2);
    ck_assert_int_eq(w[0].out_axis, 1);
    ck_assert_int_eq(w[0].in_axis, 0);
    op_end(&r);
    r = op_begin("MatMul", 13, "2x3x4 4x5");
    ck_assert_int_eq(r.n->op->weights(r.n, w), 2);
    ck_assert_int_eq(w[0].slot, 1);
    ck_assert_int_eq(w[0].out_axis, 1);
    ck_assert_int_eq(w[0].in_axis, 0);
    ck_assert_str_eq(w[0].type, "Linear");
    ck_assert_int_eq(w[1].slot, 0);
    ck_assert_int_eq(w[1].out_axis, 1);
    ck_assert_int_eq(w[1].in_axis, 2);
    op_end(&r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_matmul");
    TCase *t = tcase_create("op_matmul");
    tcase_add_test(t, products_count_every_multiply);
    tcase_add_test(t, contradictions_name_both_sides);
    tcase_add_test(t, products_are_computed);
    tcase_add_test(t, einsum_reads_its_equation);
    tcase_add_test(t, weights_say_their_axes);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
