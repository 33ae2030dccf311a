/* test_gram.c - fits from sums against what made the samples; held-back errors against the samples
 * themselves. */
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "prune/gram.h"
#include "tests/t.h"

enum { G = 2, X = 6, Y = 3, SIDE = X + 1, ROWS = 700, HELD = 150 };

struct samples {
    float x[(ROWS + HELD) * G * X], y[(ROWS + HELD) * G * Y];
    double w[G * SIDE * Y]; /* that made y */
};
static struct samples s;

/* noise: size of what no weight explains */
static void make(double noise)
{
    struct accel_rng r = accel_rng_init(3);
    for (int i = 0; i < G * SIDE * Y; i++)
        s.w[i] = accel_rng_uniform(&r) - 0.5;
    for (int n = 0; n < ROWS + HELD; n++)
        for (int g = 0; g < G; g++) {
            float *x = s.x + (n * G + g) * X, *y = s.y + (n * G + g) * Y;
            for (int i = 0; i < X; i++)
                x[i] = (float)(accel_rng_uniform(&r) - 0.3);
            for (int k = 0; k < Y; k++) {
                double sum = s.w[(g * SIDE + X) * Y + k];
                for (int i = 0; i < X; i++)
                    sum += s.w[(g * SIDE + i) * Y + k] * (double)x[i];
                y[k] = (float)(sum + noise * (accel_rng_uniform(&r) - 0.5));
            }
        }
}

static void gather(struct accel_gram *gram)
{
    ck_ok(accel_gram_init(gram, G, X, Y));
    ck_ok(accel_gram_add(gram, ACCEL_GRAM_FIT, s.x, s.y, 300)); /* in pieces */
    ck_ok(accel_gram_add(gram, ACCEL_GRAM_FIT, s.x + 300 * G * X, s.y + 300 * G * Y, ROWS - 300));
    ck_ok(accel_gram_add(gram, ACCEL_GRAM_HELD, s.x + ROWS * G * X, s.y + ROWS * G * Y, HELD));
    ck_assert_uint_eq(gram->n_row[ACCEL_GRAM_FIT], ROWS);
}

START_TEST(error_from_sums_equals_error_from_samples)
{
    struct accel_gram gram;
    double w[G * SIDE * Y], got, want = 0;
    make(0.1);
    gather(&gram);
    for (int i = 0; i < G * SIDE * Y; i++)
        w[i] = s.w[i] * 0.7 + 0.01 * i;
    for (int n = ROWS; n < ROWS + HELD; n++)
        for (int g = 0; g < G; g++)
            for (int k = 0; k < Y; k++) {
                double sum = w[(g * SIDE + X) * Y + k];
                for (int i = 0; i < X; i++)
                    sum += w[(g * SIDE + i) * Y + k] * (double)s.x[(n * G + g) * X + i];
                double d = sum - (double)s.y[(n * G + g) * Y + k];
                want += d * d;
            }
    ck_ok(accel_gram_error(&got, &gram, ACCEL_GRAM_HELD, w));
    ck_assert_double_eq_tol(got, want, 1e-9 * want);
    accel_gram_clear(&gram);
}
END_TEST

START_TEST(fit_finds_weights_and_constant)
{
    struct accel_gram gram;
    struct accel_gram_fit fit;
    double w[G * SIDE * Y] = {0};
    make(0);
    gather(&gram);
    ck_ok(accel_gram_solve(&fit, &gram, w, NULL));
    ck_assert(fit.kept);
    ck_assert_double_lt(fit.after, 1e-6 * fit.before);
    for (int i = 0; i < G * SIDE * Y; i++)
        ck_assert_double_eq_tol(w[i], s.w[i], 1e-3);
    accel_gram_clear(&gram);
}
END_TEST

START_TEST(entries_that_must_stay_do)
{
    struct accel_gram gram;
    struct accel_gram_fit fit;
    double w[G * SIDE * Y];
    bool free[G * Y * SIDE];
    make(0);
    gather(&gram);
    memcpy(w, s.w, sizeof w);
    for (int g = 0; g < G; g++)
        for (int k = 0; k < Y; k++)
            for (int i = 0; i < SIDE; i++) {
                free[(g * Y + k) * SIDE + i] = (i + k) % 3 != 0; /* other ones for each output */
                if (!free[(g * Y + k) * SIDE + i])
                    w[(g * SIDE + i) * Y + k] = 0;
            }
    ck_ok(accel_gram_solve(&fit, &gram, w, free));
    ck_assert(fit.kept);
    ck_assert_double_lt(fit.after, fit.before);
    int changed = 0;
    for (int g = 0; g < G; g++)
        for (int k = 0; k < Y; k++)
            for (int i = 0; i < SIDE; i++) {
                double v = w[(g * SIDE + i) * Y + k];
                if (!free[(g * Y + k) * SIDE + i])
                    ck_assert_double_eq(v, 0);
                else
                    changed += v != s.w[(g * SIDE + i) * Y + k];
            }
    ck_assert_int_gt(changed, G * Y * SIDE / 2);
    accel_gram_clear(&gram);
}
END_TEST

/* Weights that are right already cannot be bettered by fitting noise. */
START_TEST(fit_that_does_not_help_is_dropped)
{
    struct accel_gram gram;
    struct accel_gram_fit fit;
    double w[G * SIDE * Y];
    make(0);
    struct accel_rng r = accel_rng_init(5);
    for (int i = 0; i < ROWS * G * Y; i++) /* only the samples of the fit are noisy */
        s.y[i] += (float)(accel_rng_uniform(&r) - 0.5);
    gather(&gram);
    memcpy(w, s.w, sizeof w);
    ck_ok(accel_gram_solve(&fit, &gram, w, NULL));
    ck_assert(!fit.kept);
    ck_assert_double_eq(fit.after, fit.before);
    ck_assert_mem_eq(w, s.w, sizeof w);
    accel_gram_clear(&gram);
}
END_TEST

START_TEST(inputs_that_are_always_zero_are_no_trouble)
{
    struct accel_gram gram;
    struct accel_gram_fit fit;
    double w[G * SIDE * Y] = {0};
    make(0.01);
    for (int n = 0; n < (ROWS + HELD) * G; n++)
        s.x[n * X + 2] = 0;
    gather(&gram);
    ck_ok(accel_gram_solve(&fit, &gram, w, NULL));
    ck_assert(fit.kept);
    for (int g = 0; g < G; g++)
        for (int k = 0; k < Y; k++)
            ck_assert_double_eq(w[(g * SIDE + 2) * Y + k], 0);
    accel_gram_clear(&gram);
}
END_TEST

START_TEST(every_failed_allocation_is_told_and_leaks_nothing)
{
    double w[G * SIDE * Y] = {0};
    make(0.1);
    for (long nth = 1;; nth++) {
        struct accel_gram gram;
        struct accel_gram_fit fit;
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_gram_init(&gram, G, X, Y);
        if (!err)
            err = accel_gram_add(&gram, ACCEL_GRAM_FIT, s.x, s.y, ROWS);
        if (!err)
            err = accel_gram_add(&gram, ACCEL_GRAM_HELD, s.x + ROWS * G * X, s.y + ROWS * G * Y,
                                 HELD);
        if (!err)
            err = accel_gram_solve(&fit, &gram, w, NULL);
        accel_alloc_fail_at(0, false);
        accel_gram_clear(&gram);
        if (!err) {
            ck_assert_int_gt(nth, 10);
            return;
        }
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
}
END_TEST

START_TEST(too_many_inputs_are_refused)
{
    struct accel_gram gram;
    ck_assert_uint_eq(accel_gram_size(1, 3, 2), 2 * 8 * (16 + 8 + 2));
    ck_assert_uint_eq(accel_gram_size(1, 40000, 2), SIZE_MAX);
    ck_fails(accel_gram_init(&gram, 1, 40000, 2), ACCEL_ENOSUP, "40000");
}
END_TEST

static Suite *suite(void)
{
    Suite *u = suite_create("gram");
    TCase *t = tcase_create("gram");
    tcase_add_test(t, error_from_sums_equals_error_from_samples);
    tcase_add_test(t, fit_finds_weights_and_constant);
    tcase_add_test(t, entries_that_must_stay_do);
    tcase_add_test(t, fit_that_does_not_help_is_dropped);
    tcase_add_test(t, inputs_that_are_always_zero_are_no_trouble);
    tcase_add_test(t, every_failed_allocation_is_told_and_leaks_nothing);
    tcase_add_test(t, too_many_inputs_are_refused);
    suite_add_tcase(u, t);
    return u;
}

T_MAIN(suite)
