/* test_linalg.c - factors, solutions and ridge regression against numbers worked out by hand, and
 * matrices that are not definite. */
#include <string.h>

#include "base/linalg.h"
#include "base/rng.h"
#include "tests/t.h"

enum { N = 37, M = 5, ROWS = 90 };

START_TEST(cholesky_factor_of_a_known_matrix)
{
    double a[9] = {4, 7, 7, 12, 37, 7, -16, -43, 98}; /* what is above the diagonal is ignored */
    const double want[9] = {2, 7, 7, 6, 1, 7, -8, 5, 3};
    bool definite;
    ck_ok(accel_linalg_cholesky(&definite, a, 3));
    ck_assert(definite);
    for (int i = 0; i < 9; i++)
        ck_assert_double_eq_tol(a[i], want[i], 1e-12);
}
END_TEST

START_TEST(a_matrix_that_is_not_definite_is_told)
{
    double a[4] = {1, 0, 2, 1}, nan[4] = {1, 0, NAN, 1}, none[1] = {0};
    bool definite;
    ck_ok(accel_linalg_cholesky(&definite, a, 2));
    ck_assert(!definite);
    ck_ok(accel_linalg_cholesky(&definite, nan, 2));
    ck_assert(!definite);
    ck_ok(accel_linalg_cholesky(&definite, none, 1));
    ck_assert(!definite);
    ck_ok(accel_linalg_cholesky(&definite, none, 0));
    ck_assert(definite);
}
END_TEST

static void fill(double *x, size_t n, uint64_t seed)
{
    struct accel_rng r = accel_rng_init(seed);
    for (size_t i = 0; i < n; i++)
        x[i] = accel_rng_uniform(&r) - 0.5;
}

START_TEST(least_squares_finds_the_weights_that_made_the_targets)
{
    static double x[ROWS * N], w[N * M], y[ROWS * M], g[N * N], c[N * M], ridge[N];
    bool definite;
    fill(x, ROWS * N, 1);
    fill(w, N * M, 2);
    memset(y, 0, sizeof y);
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < N; i++)
            for (int k = 0; k < M; k++)
                y[r * M + k] += x[r * N + i] * w[i * M + k];
    for (int r = 0; r < ROWS; r += 45) { /* sums over two halves */
        ck_ok(accel_linalg_square(g, N, x + r * N, N, 45));
        ck_ok(accel_linalg_cross(c, M, N, M, x + r * N, N, y + r * M, M, 45));
    }
    ck_ok(accel_linalg_ridge(&definite, g, ridge, c, N, M));
    ck_assert(definite);
    for (int i = 0; i < N * M; i++)
        ck_assert_double_eq_tol(c[i], w[i], 1e-9);
}
END_TEST

/* One input, one output:  w = sum(xy) / (sum(xx) + ridge). */
START_TEST(ridge_shrinks_as_the_formula_says)
{
    double g = 5, c = 12, ridge = 3;
    bool definite;
    ck_ok(accel_linalg_ridge(&definite, &g, &ridge, &c, 1, 1));
    ck_assert_double_eq_tol(c, 12.0 / 8, 1e-15);
}
END_TEST

START_TEST(symmetric_product_reads_the_lower_triangle)
{
    const double a[4] = {1, 99, 2, 3}, b[4] = {1, 2, 3, 4};
    double c[4] = {10, 10, 10, 10};
    ck_ok(accel_linalg_symmetric(c, a, b, 2, 2, 1));
    const double want[4] = {17, 20, 21, 26};
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(c[i], want[i], 1e-12);
}
END_TEST

START_TEST(half_a_solution_by_the_factor_alone)
{
    const double l[4] = {2, 99, 1, 4};
    double b[4] = {2, 4, 9, 6};
    ck_ok(accel_linalg_solve_lower(l, 2, b, 2));
    const double want[4] = {1, 2, 2, 1};
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq_tol(b[i], want[i], 1e-12);
}
END_TEST

START_TEST(too_large_is_refused)
{
    bool definite;
    double one = 1;
    ck_fails(accel_linalg_cholesky(&definite, &one, ACCEL_LINALG_MAX + 1), ACCEL_ENOSUP, "32768");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("linalg");
    TCase *t = tcase_create("linalg");
    tcase_add_test(t, cholesky_factor_of_a_known_matrix);
    tcase_add_test(t, a_matrix_that_is_not_definite_is_told);
    tcase_add_test(t, least_squares_finds_the_weights_that_made_the_targets);
    tcase_add_test(t, ridge_shrinks_as_the_formula_says);
    tcase_add_test(t, symmetric_product_reads_the_lower_triangle);
    tcase_add_test(t, half_a_solution_by_the_factor_alone);
    tcase_add_test(t, too_large_is_refused);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
