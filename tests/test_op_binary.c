/* Element-wise operators of two and more inputs: shapes under broadcasting in all opsets, numbers.
 */
#include "tests/op_t.h"

START_TEST(shapes_stretch_to_each_other)
{
    op_is("Add", 14, "2x3x4 3x1", "2x3x4", -2);
    op_is("Add", 14, "1x4 3x1", "3x4", -2);
    op_is("Mul", 14, "Nx3 1x3", "Nx3", -2);
    op_is("Mul", 14, "Nx3 Nx1", "Nx3", -2);
    op_is("Sub", 7, "Nx3 5x1", "5x3", -2);
    op_is("Sub", 7, "? 5x1", "?", -2);
    op_is("Max", 13, "2x1 1x3 scalar", "2x3", -2);
    op_is("Sum", 8, "4", "4", -2);
    op_is("Add", 14, "0x3 1x3", "0x3", -2);
}
END_TEST

START_TEST(sizes_that_do_not_fit_are_named)
{
    op_fails("Add", 14, "2x3 2x4", ACCEL_ESHAPE, "axis 1 is 4 in input 'in1' and 3");
    op_fails("Sum", 13, "2 2 3", ACCEL_ESHAPE, "axis 0 is 3");
    op_fails("Add", 6, "2x3x4 3 | broadcast=1 axis=2", ACCEL_ESHAPE, "axis 2");
    op_fails("Add", 6, "2x3 3x4x5 | broadcast=1", ACCEL_ESHAPE, "rank 3");
    op_fails("Add", 6, "2x3 3 | broadcast=1 axis=9", ACCEL_ESHAPE, "axis 9");
}
END_TEST

START_TEST(opset_6_lays_the_second_input_on_an_axis)
{
    op_is("Add", 6, "2x3x4 3 | broadcast=1 axis=1", "2x3x4", -2);
    op_is("Mul", 6, "2x3x4 4 | broadcast=1", "2x3x4", -2);
    op_gives("Add", 6, "f2x3[0,0,0,0,0,0] f[1,2] | broadcast=1 axis=0", "1,1,1,2,2,2");
    op_gives("Add", 6, "f2x3[0,0,0,0,0,0] f[1,2,3] | broadcast=1", "1,2,3,1,2,3");
}
END_TEST

START_TEST(comparisons_give_bool)
{
    struct op_run r = op_begin("Less", 13, "2x3 3");
    op_shape_is(&r, 0, "2x3");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_BOOL);
    op_end(&r);
    op_gives("Less", 13, "[1,2,3] [2]", "1,0,0");
    op_gives("LessOrEqual", 16, "[1,2,3] [2]", "1,1,0");
    op_gives("Greater", 13, "f[1,2,3] f[2]", "0,0,1");
    op_gives("GreaterOrEqual", 16, "[1,2,3] [2]", "0,1,1");
    op_gives("Equal", 13, "f[1,nan] f[1,nan]", "1,0");
}
END_TEST

START_TEST(integers_are_exact)
{
    op_gives("Add", 14, "[9007199254740993] [1]", "9007199254740994");
    op_gives("Mul", 14, "2x2[1,2,3,4] [10,100]", "10,200,30,400");
    op_gives("Sub", 14, "[-9223372036854775808] [1]", "9223372036854775807");
    op_gives("Div", 14, "[7,-7,7] [2,2,-1]", "3,-3,-7");
    op_gives("Div", 14, "[-9223372036854775808] [-1]", "-9223372036854775808");
    op_gives_nothing("Div", 14, "[7] [0]");
    op_gives("Mod", 13, "[7,-7,7,-7] [3,3,-3,-3]", "1,2,-2,-1");
    op_gives("Mod", 13, "[7,-7,7,-7] [3,3,-3,-3] | fmod=1", "1,-1,1,-1");
    op_gives("Pow", 15, "[2,-2,1,2] [10,3,-5,-1]", "1024,-8,1,0");
    op_gives("BitShift", 11, "[1,6] [3,1] | direction=LEFT", "8,12");
    op_gives("BitShift", 11, "[8,6] [3,99] | direction=RIGHT", "1,0");
    op_gives("BitShift", 28, "[-8,-8,8] [1,99,-1] | direction=RIGHT", "-4,-1,0");
    op_gives("BitwiseXor", 18, "[6] [3]", "5");
    op_gives("Max", 13, "[1,5] [3] [2,9]", "3,9");
}
END_TEST

START_TEST(floats_follow_the_formulas)
{
    op_gives("Pow", 15, "f[2,9] f[0.5]", "1.41421356,3");
    op_gives("Pow", 15, "f[2,3] [3]", "8,27");
    op_gives("Mod", 13, "f[5.5,-5.5] f[2] | fmod=1", "1.5,-1.5");
    op_gives("Div", 14, "f[1,-1] f[0]", "inf,-inf");
    op_gives("Mean", 13, "f[1,2] f[3,6]", "2,4");
    op_gives("Sum", 13, "f[1,2] f[3,6] f[1]", "5,9");
    op_gives("Min", 13, "f[1,nan] f[0]", "0,nan");
}
END_TEST

START_TEST(a_wrong_direction_is_named)
{
    op_fails("BitShift", 11, "2 2 | direction=UP", ACCEL_EMODEL, "UP");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_binary");
    TCase *t = tcase_create("op_binary");
    tcase_add_test(t, shapes_stretch_to_each_other);
    tcase_add_test(t, sizes_that_do_not_fit_are_named);
    tcase_add_test(t, opset_6_lays_the_second_input_on_an_axis);
    tcase_add_test(t, comparisons_give_bool);
    tcase_add_test(t, integers_are_exact);
    tcase_add_test(t, floats_follow_the_formulas);
    tcase_add_test(t, a_wrong_direction_is_named);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
