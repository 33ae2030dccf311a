/* test_wanda.c - what goes by size times input, against masks worked out by hand. */
#include "prune/wanda.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/t.h"

START_TEST(weights_go_by_size_times_input)
{
    double w[8] = {4, -1, 3, 2, 1, 1, 1, 1};
    const double norm[4] = {0.1, 5, 1, 1};
    const struct accel_amount a = {.ratio = 0.5, .taps = 1};
    ck_ok(accel_wanda_prune(w, 2, 4, norm, &a)); /* 0.4, 5, 3, 2 and 0.1, 5, 1, 1 */
    const double want[8] = {0, -1, 3, 0, 0, 1, 0, 1};
    for (int i = 0; i < 8; i++)
        ck_assert_double_eq(w[i], want[i]);
}
END_TEST

/* Inputs [5 channels, 2 taps]: groups of 2 channels for each tap, the last one shorter. */
START_TEST(of_every_m_channels_n_stay)
{
    double w[10] = {1, 9, 2, 8, 3, 7, 4, 6, 5, 5};
    double norm[10];
    for (int i = 0; i < 10; i++)
        norm[i] = 1;
    norm[8] = 0; /* alone in its group: it may stay */
    const struct accel_amount a = {.n = 1, .m = 2, .taps = 2};
    ck_ok(accel_wanda_prune(w, 1, 10, norm, &a));
    const double want[10] = {0, 9, 2, 0, 0, 7, 4, 0, 5, 5};
    for (int i = 0; i < 10; i++)
        ck_assert_double_eq(w[i], want[i]);
}
END_TEST

START_TEST(short_memory_is_told)
{
    double w[2] = {1, 2};
    const struct accel_amount amount = {.ratio = 0.5, .taps = 1};
    accel_alloc_fail_at(1, true);
    ck_assert_int_eq(accel_wanda_prune(w, 1, 2, w, &amount), ACCEL_ENOMEM);
    accel_alloc_fail_at(0, false);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("wanda");
    TCase *t = tcase_create("wanda");
    tcase_add_test(t, weights_go_by_size_times_input);
    tcase_add_test(t, of_every_m_channels_n_stay);
    tcase_add_test(t, short_memory_is_told);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
