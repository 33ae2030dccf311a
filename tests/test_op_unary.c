/* Element-wise operators of one input: every function at a point, parameters, defaults. */
#include "tests/op_t.h"

START_TEST(shape_and_type_follow_the_input)
{
    op_is("Relu", 14, "2x3xN", "2x3xN", -2);
    op_is("Sin", 7, "?", "?", -2);
    op_is("Clip", 6, "4x5 | min=0 max=6", "4x5", -2);
    op_is("PRelu", 9, "2x3x4 3x1", "2x3x4", -2);
    struct op_run r = op_begin("IsNaN", 13, "2x3");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_BOOL);
    op_end(&r);
    r = op_begin("Neg", 13, "i32:2x3");
    ck_assert_int_eq(r.n->out[0]->dtype, ACCEL_I32);
    op_end(&r);
}
END_TEST

START_TEST(functions_follow_their_formulas)
{
    op_gives("Abs", 13, "f[-1.5,2]", "1.5,2");
    op_gives("Neg", 13, "f[1,-2]", "-1,2");
    op_gives("Sign", 13, "f[-3,0,2]", "-1,0,1");
    op_gives("Floor", 13, "f[-1.5,1.5]", "-2,1");
    op_gives("Ceil", 13, "f[-1.5,1.5]", "-1,2");
    op_gives("Round", 11, "f[0.5,1.5,2.5,-0.5]", "0,2,2,0");
    op_gives("Sqrt", 13, "f[4,2]", "2,1.41421356");
    op_gives("Exp", 13, "f[0,1]", "1,2.71828183");
    op_gives("Log", 13, "f[1,10]", "0,2.30258509");
    op_gives("Reciprocal", 13, "f[4,-2]", "0.25,-0.5");
    op_gives("Erf", 13, "f[0.5]", "0.52049988");
    op_gives("Sin", 7, "f[1]", "0.84147098");
    op_gives("Cos", 7, "f[1]", "0.54030231");
    op_gives("Tan", 7, "f[1]", "1.55740772");
    op_gives("Asin", 7, "f[0.5]", "0.52359878");
    op_gives("Acos", 7, "f[0.5]", "1.04719755");
    op_gives("Atan", 7, "f[1]", "0.78539816");
    op_gives("Sinh", 9, "f[1]", "1.17520119");
    op_gives("Cosh", 9, "f[1]", "1.54308063");
    op_gives("Tanh", 13, "f[1]", "0.76159416");
    op_gives("Asinh", 9, "f[1]", "0.88137359");
    op_gives("Acosh", 9, "f[2]", "1.3169579");
    op_gives("Atanh", 9, "f[0.5]", "0.54930614");
    op_gives("Sigmoid", 13, "f[0,2]", "0.5,0.88079708");
    op_gives("Softplus", 1, "f[0,100]", "0.69314718,100");
    op_gives("Softsign", 1, "f[1,-3]", "0.5,-0.75");
    op_gives("HardSwish", 14, "f[-4,1,4]", "0,0.66666667,4");
    op_gives("Mish", 18, "f[1]", "0.86509839");
    op_gives("IsNaN", 13, "f[nan,1]", "1,0");
    op_gives("Not", 1, "[0,3]", "1,0");
    op_gives("BitwiseNot", 18, "[5]", "-6");
    op_gives("Abs", 13, "[-9223372036854775807]", "9223372036854775807");
    op_gives("Neg", 13, "[-9223372036854775808]", "-9223372036854775808");
    op_gives("Sign", 13, "[-3,0,9]", "-1,0,1");
}
END_TEST

START_TEST(parameters_and_their_defaults)
{
    op_gives("Relu", 14, "f[-1,2]", "0,2");
    op_gives("Relu", 14, "[-1,2]", "0,2");
    op_gives("LeakyRelu", 16, "f[-1,2]", "-0.01,2");
    op_gives("LeakyRelu", 16, "f[-1,2] | alpha=0.5", "-0.5,2");
    op_gives("Elu", 6, "f[-1,2] | alpha=2", "-1.26424112,2");
    op_gives("Selu", 6, "f[-1,2]", "-1.11133073,2.10140204");
    op_gives("Celu", 12, "f[-1,2] | alpha=2", "-0.78693868,2");
    op_gives("ThresholdedRelu", 10, "f[1,1.5]", "0,1.5");
    op_gives("HardSigmoid", 6, "f[-3,0,3]", "0,0.5,1");
    op_gives("Gelu", 20, "f[1]", "0.84134475");
    op_gives("Gelu", 20, "f[1] | approximate=tanh", "0.84119199");
    op_gives("ms:Gelu", 1, "f[1]", "0.84134475");
    op_gives("ms:QuickGelu", 1, "f[1]", "0.84579577");
    op_gives("Swish", 24, "f[1]", "0.73105858");
    op_gives("Shrink", 9, "f[-1,0.2,1] | bias=0.1 lambd=0.5", "-0.9,0,0.9");
    op_gives("IsInf", 10, "f[inf,-inf,1]", "1,1,0");
    op_gives("IsInf", 10, "f[inf,-inf,1] | detect_negative=0", "1,0,0");
    op_gives("Clip", 6, "f[-1,3,9] | min=0 max=6", "0,3,6");
    op_gives("Clip", 13, "f[-1,3,9] f[0] f[6]", "0,3,6");
    op_gives("Clip", 13, "[-1,3,9] - [6]", "-1,3,6");
    op_gives("Clip", 6, "f[-1,9]", "-1,9");
    op_gives("PRelu", 9, "f[-2,4] f[0.5]", "-1,4");
    op_gives("PRelu", 6, "f1x2x1[-2,-4] f[0.5,0.25]", "-1,-1");
}
END_TEST

START_TEST(what_has_no_integer_form_stays_unknown)
{
    op_gives_nothing("Sqrt", 13, "[4]");
    op_gives_nothing("Sigmoid", 13, "[4]");
    op_gives_nothing("Not", 1, "f[4]");
}
END_TEST

START_TEST(wrong_attributes_and_slopes_are_named)
{
    op_fails("Gelu", 20, "2 | approximate=fast", ACCEL_EMODEL, "fast");
    op_fails("PRelu", 9, "2x3x4 2", ACCEL_ESHAPE, "axis 2 of the input is 4");
    op_fails("PRelu", 9, "3 2x3", ACCEL_ESHAPE, "rank 2");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_unary");
    TCase *t = tcase_create("op_unary");
    tcase_add_test(t, shape_and_type_follow_the_input);
    tcase_add_test(t, functions_follow_their_formulas);
    tcase_add_test(t, parameters_and_their_defaults);
    tcase_add_test(t, what_has_no_integer_form_stays_unknown);
    tcase_add_test(t, wrong_attributes_and_slopes_are_named);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
