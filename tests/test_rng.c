/* test_rng.c - the generator against published numbers, and the shape of its uniform numbers. */
#include "base/rng.h"
#include "tests/t.h"

/* First outputs for the state 1, 2, 3, 4: the check value that comes with the published generator.
 */
START_TEST(follows_the_published_sequence)
{
    struct accel_rng r = {{1, 2, 3, 4}};
    ck_assert_uint_eq(accel_rng_next(&r), 41943041u);
    ck_assert_uint_eq(accel_rng_next(&r), 58720359u);
    ck_assert_uint_eq(accel_rng_next(&r), UINT64_C(3588806011781223));
    ck_assert_uint_eq(accel_rng_next(&r), UINT64_C(3591011842654386));
}
END_TEST

/* splitmix64 from 0 begins e220a8397b1dcdaf, 6e789e6aa1b965f4. */
START_TEST(seed_fills_the_state_by_splitmix64)
{
    struct accel_rng r = accel_rng_init(0);
    ck_assert_uint_eq(r.s[0], UINT64_C(0xe220a8397b1dcdaf));
    ck_assert_uint_eq(r.s[1], UINT64_C(0x6e789e6aa1b965f4));
    ck_assert_uint_eq(accel_rng_next(&r), UINT64_C(0x53175d61490b23df));
    ck_assert_uint_eq(accel_rng_next(&r), UINT64_C(0x61da6f3dc380d507));
}
END_TEST

START_TEST(neighbouring_seeds_give_unrelated_streams)
{
    struct accel_rng a = accel_rng_init(1), b = accel_rng_init(2);
    int differ = 0;
    for (int i = 0; i < 1000; i++)
        differ += __builtin_popcountll(accel_rng_next(&a) ^ accel_rng_next(&b));
    ck_assert_int_gt(differ, 31000); /* 32,000 expected, deviation 126 */
    ck_assert_int_lt(differ, 33000);
}
END_TEST

START_TEST(uniform_numbers_fill_the_unit_interval)
{
    struct accel_rng r = accel_rng_init(7);
    double sum = 0, squares = 0, low = 1, high = 0;
    for (int i = 0; i < 100000; i++) {
        double u = accel_rng_uniform(&r);
        ck_assert(u >= 0 && u < 1);
        sum += u;
        squares += u * u;
        low = fmin(low, u);
        high = fmax(high, u);
    }
    ck_assert_double_eq_tol(sum / 1e5, 0.5, 0.005); /* deviation 0.0009 */
    ck_assert_double_eq_tol(squares / 1e5, 1.0 / 3, 0.005);
    ck_assert_double_lt(low, 0.001);
    ck_assert_double_gt(high, 0.999);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("rng");
    TCase *t = tcase_create("rng");
    tcase_add_test(t, follows_the_published_sequence);
    tcase_add_test(t, seed_fills_the_state_by_splitmix64);
    tcase_add_test(t, neighbouring_seeds_give_unrelated_streams);
    tcase_add_test(t, uniform_numbers_fill_the_unit_interval);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
