/* Reductions, scans and softmax: axes in every form, numbers. */
#include "tests/op_t.h"

START_TEST(axes_are_an_attribute_or_an_input)
{
    op_is("ReduceMean", 13, "2x3x4 | axes=1", "2x1x4", -2);
    op_is("ReduceMean", 13, "2x3x4 | axes=1,-1 keepdims=0", "2", -2);
    op_is("ReduceMean", 18, "2x3x4 [2]", "2x3x1", -2);
    op_is("ReduceSum", 13, "2xNx4 [-1] | keepdims=0", "2xN", -2);
    op_is("ReduceSum", 11, "2x3x4", "1x1x1", -2);
    op_is("ReduceMax", 13, "2x3x4 | keepdims=0", "scalar", -2);
    op_is("ReduceSum", 13, "2x3x4 [] | noop_with_empty_axes=1", "2x3x4", -2);
    op_is("ReduceSum", 13, "2x3x4 | noop_with_empty_axes=1", "2x3x4", -2);
}
END_TEST

START_TEST(unknown_axes_leave_what_is_certain)
{
    op_is("ReduceSum", 13, "2x3x4 i64:2 | keepdims=0", "?", -2);
    op_is("ReduceSum", 13, "? [0]", "?", -2);
    struct op_run r = op_begin("ReduceSum", 13, "2x3x4 i64:1");
    ck_assert_int_eq(r.n->out[0]->shape.rank, 3);
    op_end(&r);
    r = op_begin("ReduceSum", 13, "2x3x4 i64:1 | keepdims=0");
    ck_assert_int_eq(r.n->out[0]->shape.rank, 2);
    op_end(&r);
}
END_TEST

START_TEST(axes_outside_are_named)
{
    op_fails("ReduceMean", 13, "2x3 | axes=2", ACCEL_ESHAPE, "axis 2 of an input of rank 2");
    op_fails("ReduceMean", 18, "2x3 [-3]", ACCEL_ESHAPE, "axis -3");
}
END_TEST

START_TEST(folds_follow_their_formulas)
{
    op_gives("ReduceSum", 13, "f2x3[1,2,3,4,5,6] [1]", "6,15");
    op_gives("ReduceSum", 13, "2x3[1,2,3,4,5,6] [0] | keepdims=0", "5,7,9");
    op_gives("ReduceMean", 18, "f2x2[1,2,3,6] [-1]", "1.5,4.5");
    op_gives("ReduceMax", 18, "[3,9,2]", "9");
    op_gives("ReduceMin", 18, "f[3,nan,2]", "nan");
    op_gives("ReduceMax", 20, "0x1[] [0]", "-9223372036854775808");
    op_gives("ReduceProd", 18, "[3,9,2]", "54");
    op_gives("ReduceProd", 13, "2x2[1,2,3,4] | axes=0", "3,8");
    op_gives("ReduceL1", 18, "f[-3,4]", "7");
    op_gives("ReduceL2", 18, "f[-3,4]", "5");
    op_gives("ReduceSumSquare", 18, "[-3,4]", "25");
    op_gives("ReduceLogSum", 18, "f[1,3]", "1.38629436");
    op_gives("ReduceLogSumExp", 18, "f[1000,1000]", "1000.69315");
}
END_TEST

START_TEST(scans_run_both_ways)
{
    op_gives("CumSum", 14, "[1,2,3] [0]", "1,3,6");
    op_gives("CumSum", 14, "[1,2,3] [0] | exclusive=1", "0,1,3");
    op_gives("CumSum", 14, "[1,2,3] [0] | reverse=1", "6,5,3");
    op_gives("CumSum", 14, "f[1,2,3] [-1] | exclusive=1 reverse=1", "5,3,0");
    op_gives("CumSum", 14, "2x2[1,2,3,4] [0]", "1,2,4,6");
    op_gives("CumProd", 26, "[1,2,3] [0] | exclusive=1", "1,1,2");
    op_gives_nothing("CumSum", 14, "[1,2,3] [4]");
}
END_TEST

START_TEST(softmax_sees_a_matrix_below_opset_13)
{
    op_is("Softmax", 13, "2x3xN | axis=-1", "2x3xN", -2);
    op_is("Softmax", 11, "2x3 | axis=2", "2x3", -2);
    op_fails("Softmax", 13, "2x3 | axis=2", ACCEL_ESHAPE, "axis 2");
    op_is("Hardmax", 13, "scalar", "scalar", -2);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_reduce");
    TCase *t = tcase_create("op_reduce");
    tcase_add_test(t, axes_are_an_attribute_or_an_input);
    tcase_add_test(t, unknown_axes_leave_what_is_certain);
    tcase_add_test(t, axes_outside_are_named);
    tcase_add_test(t, folds_follow_their_formulas);
    tcase_add_test(t, scans_run_both_ways);
    tcase_add_test(t, softmax_sees_a_matrix_below_opset_13);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
