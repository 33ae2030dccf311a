/* Scores against numbers worked out by hand. */
#include <string.h>

#include "base/alloc.h"
#include "tests/t.h"
#include "tools/score.h"

static struct accel_evaluation s;

static void end(void)
{
    accel_score_clear(&s);
}

static struct accel_array array(int rank, const int64_t *dim, float *x)
{
    struct accel_array a = {ACCEL_F32, rank, dim, 1, x};
    for (int i = 0; i < rank; i++)
        a.n *= dim[i];
    return a;
}

static bool near(double a, double b)
{
    return fabs(a - b) < 1e-6;
}

START_TEST(logits_give_cross_entropy_and_ranks)
{
    float x[] = {0, 0, 0, 0, 0, 0, 6, 5, 4, 3, 2, 1};
    struct accel_array y = array(2, (int64_t[]){2, 6}, x);
    ck_ok(accel_score_classes(&s, &y, 2, (int64_t[]){0, 5}, 0));
    ck_assert_int_eq((int)s.n, 2);
    ck_assert_int_eq((int)s.n_top1, 1); /* of equal ones the first counts as the larger */
    ck_assert_int_eq((int)s.n_top5, 1);
    double sum = 0;
    for (int i = 1; i <= 6; i++)
        sum += exp(i);
    ck_assert(near(accel_score_loss(&s), (log(6) + log(sum) - 1) / 2));
    ck_ok(accel_score_classes(&s, &y, 1, (int64_t[]){4}, 2)); /* batches add up */
    ck_assert(s.n == 3 && s.n_top1 == 1 && s.n_top5 == 2);
}
END_TEST

START_TEST(rows_that_sum_to_one_are_probabilities)
{
    float x[] = {0.25f, 0.75f, 1, 0}, logs[] = {logf(0.25f), logf(0.75f)};
    struct accel_array y = array(4, (int64_t[]){2, 2, 1, 1}, x);
    ck_ok(accel_score_classes(&s, &y, 2, (int64_t[]){1, 0}, 0));
    ck_assert(near(accel_score_loss(&s), -log(0.75) / 2));
    accel_score_clear(&s);
    y = array(2, (int64_t[]){1, 2}, logs); /* log-probabilities need no case of their own */
    ck_ok(accel_score_classes(&s, &y, 1, (int64_t[]){1}, 0));
    ck_assert(near(accel_score_loss(&s), -log(0.75)));
}
END_TEST

START_TEST(confusions_are_counted_by_label_and_prediction)
{
    float x[] = {1, 2, 3, 3, 1, 1};
    struct accel_array y = array(2, (int64_t[]){2, 3}, x);
    s.want_confusion = true;
    ck_ok(accel_score_classes(&s, &y, 2, (int64_t[]){1, 0}, 0));
    ck_assert_int_eq((int)s.confusion[1 * 3 + 2], 1);
    ck_assert_int_eq((int)s.confusion[0], 1);
}
END_TEST

START_TEST(values_give_squared_and_absolute_errors)
{
    float x[] = {1, 2, 3, 5};
    struct accel_array y = array(2, (int64_t[]){2, 2}, x);
    ck_ok(accel_score_values(&s, &y, 2, (float[]){1, 4, 3, 4}, 2));
    ck_assert(s.n == 2 && s.n_value == 4 && s.squares == 5 && s.gaps == 3);
}
END_TEST

START_TEST(nan_is_counted_and_never_right)
{
    float x[] = {NAN, 1, NAN, NAN};
    struct accel_array y = array(2, (int64_t[]){2, 2}, x);
    ck_ok(accel_score_classes(&s, &y, 2, (int64_t[]){0, 1}, 0));
    ck_assert(s.n_nan == 3 && s.n_top1 == 0 && isnan(accel_score_loss(&s)));
}
END_TEST

START_TEST(what_does_not_fit_is_named)
{
    float x[8] = {0};
    struct accel_array y = array(2, (int64_t[]){2, 2}, x);
    ck_fails(accel_score_classes(&s, &y, 2, (int64_t[]){0, 2}, 10), ACCEL_EMODEL,
             "sample 11 has label 2, the model has 2 classes");
    ck_fails(accel_score_classes(&s, &y, 2, (int64_t[]){-1, 0}, 0), ACCEL_EMODEL, "label -1");
    ck_fails(accel_score_classes(&s, &y, 3, (int64_t[]){0, 0, 0}, 0), ACCEL_ESHAPE, "3 samples");
    struct accel_array other = array(2, (int64_t[]){2, 4}, x);
    ck_fails(accel_score_classes(&s, &other, 2, (int64_t[]){0, 0}, 0), ACCEL_ESHAPE, "2 classes");
    other = array(3, (int64_t[]){2, 2, 2}, x);
    ck_fails(accel_score_classes(&s, &other, 2, (int64_t[]){0, 0}, 0), ACCEL_ESHAPE, "rank 3");
    ck_fails(accel_score_values(&s, &other, 2, (float[]){0}, 3), ACCEL_ESHAPE, "3 values each");
    other = array(0, NULL, x);
    ck_fails(accel_score_values(&s, &other, 1, (float[]){0}, 1), ACCEL_ESHAPE, "1 samples");
}
END_TEST

static Suite *suite(void)
{
    Suite *all = suite_create("score");
    TCase *t = tcase_create("score");
    tcase_add_checked_fixture(t, NULL, end);
    tcase_add_test(t, logits_give_cross_entropy_and_ranks);
    tcase_add_test(t, rows_that_sum_to_one_are_probabilities);
    tcase_add_test(t, confusions_are_counted_by_label_and_prediction);
    tcase_add_test(t, values_give_squared_and_absolute_errors);
    tcase_add_test(t, nan_is_counted_and_never_right);
    tcase_add_test(t, what_does_not_fit_is_named);
    suite_add_tcase(all, t);
    return all;
}
T_MAIN(suite)
