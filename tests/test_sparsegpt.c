/* test_sparsegpt.c - masks have the asked size, and what is left makes up for what went: less error
 * on the inputs than zeroing alone, and none where inputs can stand for each other. */
#include <string.h>

#include "base/alloc.h"
#include "base/linalg.h"
#include "base/rng.h"
#include "prune/sparsegpt.h"
#include "tests/t.h"

enum { OUT = 12, TAPS = 3, CHANNELS = 50, IN = TAPS * CHANNELS, ROWS = 400 };

static double x[ROWS * IN], h[IN * IN], w[OUT * IN], pruned[OUT * IN];

/* Inputs that depend on each other: each is a mix of its own and of its neighbour's. */
static void begin(void)
{
    struct accel_rng r = accel_rng_init(3);
    for (int n = 0; n < ROWS; n++)
        for (int i = 0; i < IN; i++)
            x[n * IN + i] = accel_rng_uniform(&r) - 0.5 + (i ? 0.8 * x[n * IN + i - 1] : 0);
    for (int i = 0; i < OUT * IN; i++)
        w[i] = accel_rng_uniform(&r) - 0.5;
    memset(h, 0, sizeof h);
    ck_ok(accel_linalg_square(h, IN, x, IN, ROWS));
    memcpy(pruned, w, sizeof w);
}

/* Sum of squares of (pruned - w) x. */
static double error_of(const double *p)
{
    double sum = 0;
    for (int n = 0; n < ROWS; n++)
        for (int o = 0; o < OUT; o++) {
            double d = 0;
            for (int i = 0; i < IN; i++)
                d += (p[o * IN + i] - w[o * IN + i]) * x[n * IN + i];
            sum += d * d;
        }
    return sum;
}

/* The same mask without moving what is left. */
static double plain_error(void)
{
    static double p[OUT * IN];
    for (int i = 0; i < OUT * IN; i++)
        p[i] = pruned[i] == 0 ? 0 : w[i];
    return error_of(p);
}

static int zeros(void)
{
    int n = 0;
    for (int i = 0; i < OUT * IN; i++)
        n += pruned[i] == 0;
    return n;
}

START_TEST(a_share_of_all_entries_goes)
{
    const struct accel_amount a = {.ratio = 0.37, .taps = TAPS};
    begin();
    ck_ok(accel_sparsegpt_prune(pruned, OUT, IN, h, &a));
    ck_assert_int_eq(zeros(), 666);
    ck_assert_double_lt(error_of(pruned), 0.6 * plain_error());
}
END_TEST

START_TEST(of_every_m_channels_n_stay)
{
    const struct accel_amount a = {.n = 2, .m = 4, .taps = TAPS};
    begin();
    ck_ok(accel_sparsegpt_prune(pruned, OUT, IN, h, &a));
    for (int o = 0; o < OUT; o++)
        for (int t = 0; t < TAPS; t++)
            for (int c = 0; c < CHANNELS; c += 4) {
                int left = 0;
                for (int i = c; i < c + 4 && i < CHANNELS; i++)
                    left += pruned[o * IN + i * TAPS + t] != 0;
                ck_assert_int_eq(left, 2);
            }
    ck_assert_double_lt(error_of(pruned), 0.7 * plain_error());
}
END_TEST

/* Input 1 is twice input 0: the weight that goes is made up for by the other one. */
START_TEST(a_copy_of_an_input_takes_over)
{
    double two[2] = {3, 2}, g[4] = {1000, 0, 2000, 4000};
    const struct accel_amount a = {.n = 1, .m = 2, .taps = 1};
    ck_ok(accel_sparsegpt_prune(two, 1, 2, g, &a));
    ck_assert_double_eq(two[0], 0);
    ck_assert_double_eq_tol(two[1], 3.5, 0.05); /* 3 x + 2 (2 x) = 3.5 (2 x), but for the damping */
}
END_TEST

START_TEST(inputs_that_are_always_zero_go_first)
{
    const struct accel_amount a = {.ratio = 0.5, .taps = 1};
    double four[4] = {9, 1, 8, 2}, g[16] = {0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5};
    ck_ok(accel_sparsegpt_prune(four, 1, 4, g, &a));
    ck_assert(four[0] == 0 && four[2] == 0 && four[1] != 0 && four[3] != 0);
}
END_TEST

START_TEST(inputs_that_are_all_zero_leave_nothing)
{
    const struct accel_amount a = {.ratio = 0.5, .taps = 1};
    double two[2] = {1, 2}, g[4] = {0};
    ck_ok(accel_sparsegpt_prune(two, 1, 2, g, &a));
    ck_assert(two[0] == 0 && two[1] == 0);
}
END_TEST

START_TEST(short_memory_is_told)
{
    const struct accel_amount a = {.ratio = 0.5, .taps = TAPS};
    for (long nth = 1;; nth++) {
        begin();
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_sparsegpt_prune(pruned, OUT, IN, h, &a);
        accel_alloc_fail_at(0, false);
        if (!err)
            break;
        ck_assert_int_eq(err, ACCEL_ENOMEM);
        ck_assert_mem_eq(pruned, w, sizeof w);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("sparsegpt");
    TCase *t = tcase_create("sparsegpt");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_share_of_all_entries_goes);
    tcase_add_test(t, of_every_m_channels_n_stay);
    tcase_add_test(t, a_copy_of_an_input_takes_over);
    tcase_add_test(t, inputs_that_are_always_zero_go_first);
    tcase_add_test(t, inputs_that_are_all_zero_leave_nothing);
    tcase_add_test(t, short_memory_is_told);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
