/* n:m patterns against a comparison of every pair. */
#include "tests/mask_t.h"

static struct mask_t w;

static struct accel_mask *nm(int axis, int64_t n, int64_t m)
{
    struct accel_mask *mask;
    ck_ok(accel_nm_new(&mask, &w.row, axis, n, m, &w.log));
    return mask;
}

/* The slow way, group by group. */
static void expect_pattern(int axis, uint64_t n, uint64_t m)
{
    uint64_t dim = (uint64_t)w.dim[axis], inner = 1, wrong = 0;
    for (int d = axis + 1; d < w.tensor.rank; d++)
        inner *= (uint64_t)w.dim[d];
    for (uint64_t i = 0; i < w.tensor.n; i++) {
        uint64_t c = i / inner % dim, from = c / m * m, to = from + m < dim ? from + m : dim;
        uint64_t beaten = 0;
        for (uint64_t o = from; o < to; o++) {
            double a = fabs(w.before[i + o * inner - c * inner]), own = fabs(w.before[i]);
            beaten += o != c && (a > own || (a == own && o > c));
        }
        wrong += (beaten >= n || w.before[i] == 0) != (w.after[i] == 0);
    }
    ck_assert_uint_eq(wrong, 0);
}

START_TEST(at_most_n_of_m_survive_along_every_axis)
{
    static const int64_t patterns[][2] = {{2, 4}, {1, 8}, {1, 2}, {3, 7}, {5, 40}, {17, 300}};
    static const enum accel_dtype types[] = {ACCEL_F32, ACCEL_F16, ACCEL_BF16, ACCEL_F64};
    for (int t = 0; t < 4; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int p = 0; p < 6; p++) {
                mask_t_init(&w, types[t], 3, 11, 40, 22, 0);
                mask_t_random(&w, (uint64_t)p, p % 2 ? 6 : 2000);
                mask_t_run(&w, nm(axis, patterns[p][0], patterns[p][1]),
                           nm(axis, patterns[p][0], patterns[p][1]));
                expect_pattern(axis, (uint64_t)patterns[p][0], (uint64_t)patterns[p][1]);
            }
}
END_TEST

START_TEST(two_of_four_removes_half_and_keeps_the_larger)
{
    static const double in[8] = {1, -2, 3, -4, 5, 5, 5, 5}, out[8] = {0, 0, 3, -4, 0, 0, 5, 5};
    mask_t_init(&w, ACCEL_F32, 2, 1, 8, 0, 0);
    for (uint64_t i = 0; i < 8; i++)
        mask_t_set(&w, i, in[i]);
    mask_t_run(&w, nm(1, 2, 4), nm(1, 2, 4));
    for (int i = 0; i < 8; i++)
        ck_assert_double_eq(w.after[i], out[i]);
}
END_TEST

START_TEST(the_grain_is_small_where_groups_tile_the_axis)
{
    mask_t_init(&w, ACCEL_F32, 2, 100, 8, 0, 0); /* one outer slice: a short last group is fine */
    struct accel_mask *m = nm(0, 1, 3);
    ck_assert_uint_eq(m->edit.grain, 24);
    m->edit.ops->free(&m->edit);
    mask_t_init(&w, ACCEL_F32, 3, 5, 10, 8, 0);
    m = nm(1, 2, 4);
    ck_assert_uint_eq(m->edit.grain, 80);
    m->edit.ops->free(&m->edit);
    m = nm(1, 2, 5);
    ck_assert_uint_eq(m->edit.grain, 40);
    m->edit.ops->free(&m->edit);
}
END_TEST

START_TEST(every_failed_allocation_is_reported_and_leaks_nothing)
{
    for (long nth = 1;; nth++) {
        struct accel_mask *m = NULL;
        mask_t_init(&w, ACCEL_F32, 2, 10, 10, 0, 0);
        mask_t_random(&w, 3, 5);
        struct accel_buffer b = {0};
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_nm_new(&m, &w.row, 1, 2, 4, &w.log);
        if (!err) {
            accel_tensor_set_edit(&w.tensor, &m->edit);
            err = accel_buffer_init(&b, 0);
        }
        if (!err)
            err = accel_tensor_stream(&w.tensor, &b, mask_t_sink, &w);
        accel_alloc_fail_at(0, false);
        accel_buffer_clear(&b);
        accel_tensor_set_edit(&w.tensor, NULL);
        if (!err) {
            ck_assert_int_gt(nth, 5);
            break;
        }
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("nm");
    TCase *t = tcase_create("nm");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, at_most_n_of_m_survive_along_every_axis);
    tcase_add_test(t, two_of_four_removes_half_and_keeps_the_larger);
    tcase_add_test(t, the_grain_is_small_where_groups_tile_the_axis);
    tcase_add_test(t, every_failed_allocation_is_reported_and_leaks_nothing);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
