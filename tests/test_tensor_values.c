/* test_tensor_values.c - elements as numbers, and new ones, for all that reads a tensor. */
#include "graph/tensor_values.h"

#include <string.h>

#include "base/alloc.h"
#include "tests/t.h"

START_TEST(new_elements_take_the_place_of_the_old)
{
    float stored[4] = {1, 2, 3, 4};
    int64_t dim[1] = {4};
    struct accel_tensor t = {
        .name = "t", .dtype = ACCEL_F32, .rank = 1, .dim = dim, .n = 4, .size = 16, .data = stored};
    double *v;
    ck_ok(accel_tensor_values(&v, &t));
    for (int i = 0; i < 4; i++)
        ck_assert_double_eq(v[i], i + 1);
    v[2] = 0.1;
    ck_ok(accel_tensor_set_values(&t, v));
    accel_free(v);
    ck_ok(accel_tensor_values(&v, &t));
    ck_assert_double_eq(v[2], (double)0.1f);
    v[0] = -5;
    ck_ok(accel_tensor_set_values(&t, v)); /* a second time: the first edit is freed */
    accel_free(v);
    ck_ok(accel_tensor_values(&v, &t));
    ck_assert(v[0] == -5 && v[1] == 2 && v[2] == (double)0.1f);
    ck_assert(stored[0] == 1 && stored[2] == 3);
    accel_free(v);
    accel_tensor_set_edit(&t, NULL);
}
END_TEST

START_TEST(numbers_are_rounded_to_the_type)
{
    uint16_t stored[3] = {0x3c00, 0, 0};
    int64_t dim[1] = {3};
    struct accel_tensor t = {
        .name = "t", .dtype = ACCEL_F16, .rank = 1, .dim = dim, .n = 3, .size = 6, .data = stored};
    double *v;
    ck_ok(accel_tensor_set_values(&t, (double[]){0.1, -2, 70000}));
    ck_ok(accel_tensor_values(&v, &t));
    ck_assert_double_eq_tol(v[0], 0.1, 1e-4);
    ck_assert(v[1] == -2 && isinf(v[2]));
    accel_free(v);
    accel_tensor_set_edit(&t, NULL);
}
END_TEST

START_TEST(what_holds_no_numbers_is_refused)
{
    int64_t stored[1] = {7}, dim[1] = {1};
    struct accel_tensor t = {.name = "ids",
                             .dtype = ACCEL_I64,
                             .rank = 1,
                             .dim = dim,
                             .n = 1,
                             .size = 8,
                             .data = stored};
    double *v, one = 1;
    ck_fails(accel_tensor_values(&v, &t), ACCEL_ENOSUP, "'ids' holds int64");
    ck_fails(accel_tensor_set_values(&t, &one), ACCEL_ENOSUP, "int64");
}
END_TEST

START_TEST(short_memory_is_told)
{
    float stored[4] = {1, 2, 3, 4};
    int64_t dim[1] = {4};
    struct accel_tensor t = {
        .name = "t", .dtype = ACCEL_F32, .rank = 1, .dim = dim, .n = 4, .size = 16, .data = stored};
    double *v;
    for (long nth = 1; nth <= 2; nth++) {
        accel_alloc_fail_at(nth, false);
        ck_assert_int_eq(accel_tensor_values(&v, &t), ACCEL_ENOMEM);
        accel_alloc_fail_at(0, false);
    }
    accel_alloc_fail_at(1, false);
    ck_assert_int_eq(accel_tensor_set_values(&t, (double[]){1, 2, 3, 4}), ACCEL_ENOMEM);
    accel_alloc_fail_at(0, false);
    ck_assert_ptr_null(t.edit);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("tensor_values");
    TCase *t = tcase_create("tensor_values");
    tcase_add_test(t, new_elements_take_the_place_of_the_old);
    tcase_add_test(t, numbers_are_rounded_to_the_type);
    tcase_add_test(t, what_holds_no_numbers_is_refused);
    tcase_add_test(t, short_memory_is_told);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
