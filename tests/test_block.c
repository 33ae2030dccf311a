/* Block granularities against block means computed the slow way. */
#include "tests/mask_t.h"

static struct mask_t w, v;
static bool gone[MASK_MOST];

static struct accel_mask *blocks(struct mask_t *x, const int64_t *size, enum accel_rule rule,
                                 uint64_t count, double threshold)
{
    struct accel_mask *m;
    struct accel_choice *c;
    ck_ok(accel_block_new(&m, &c, &x->row, size, &x->log));
    c->rule = rule;
    c->count = count;
    c->threshold = threshold;
    c->high = accel_block_count(m);
    return m;
}

/* The slow way: block of element i, and the mean of |w| of each block. */
static uint64_t block_of(const struct mask_t *x, const int64_t *size, uint64_t i)
{
    uint64_t coord[4], b = 0;
    for (int d = x->tensor.rank; d-- > 0;) {
        coord[d] = i % (uint64_t)x->dim[d];
        i /= (uint64_t)x->dim[d];
    }
    for (int d = 0; d < x->tensor.rank; d++)
        b = b * (uint64_t)(x->dim[d] / size[d]) + coord[d] / (uint64_t)size[d];
    return b;
}

static void expect_blocks(const struct mask_t *x, const int64_t *size, uint64_t count)
{
    static double mean[MASK_MOST];
    uint64_t each = 1, wrong = 0;
    for (int d = 0; d < x->tensor.rank; d++)
        each *= (uint64_t)size[d];
    memset(mean, 0, sizeof mean);
    for (uint64_t i = 0; i < x->tensor.n; i++)
        mean[block_of(x, size, i)] += fabs(x->before[i]);
    for (uint64_t b = 0; b < x->tensor.n / each; b++)
        mean[b] /= (double)each;
    mask_t_lowest(mean, x->tensor.n / each, count, gone);
    for (uint64_t i = 0; i < x->tensor.n; i++)
        wrong += (gone[block_of(x, size, i)] || x->before[i] == 0) != (x->after[i] == 0);
    ck_assert_uint_eq(wrong, 0);
}

START_TEST(the_weakest_blocks_go_whole)
{
    static const int64_t sizes[][4] = {{1, 1, 1, 4},  {2, 3, 1, 1},  {6, 1, 2, 20}, {1, 9, 4, 20},
                                       {6, 1, 4, 20}, {1, 1, 1, 20}, {6, 9, 4, 20}, {3, 3, 2, 5}};
    static const enum accel_dtype types[] = {ACCEL_F32, ACCEL_F16, ACCEL_F64};
    for (int t = 0; t < 3; t++)
        for (int k = 0; k < 8; k++) {
            mask_t_init(&w, types[t], 4, 6, 9, 4, 20);
            mask_t_random(&w, (uint64_t)k, k % 2 ? 3 : 1000);
            struct accel_mask *m = blocks(&w, sizes[k], ACCEL_RULE_COUNT, 0, 0);
            uint64_t count = accel_block_count(m) * 3 / 5;
            m->edit.ops->free(&m->edit);
            mask_t_run(&w, blocks(&w, sizes[k], ACCEL_RULE_COUNT, count, 0),
                       blocks(&w, sizes[k], ACCEL_RULE_COUNT, count, 0));
            expect_blocks(&w, sizes[k], count);
        }
}
END_TEST

START_TEST(a_threshold_applies_to_the_mean)
{
    static const int64_t size[4] = {1, 2};
    static const double values[8] = {1, 3, 2, 2.2, 0, 0, 5, -5};
    mask_t_init(&w, ACCEL_F64, 2, 2, 4, 0, 0);
    for (uint64_t i = 0; i < 8; i++)
        mask_t_set(&w, i, values[i]);
    mask_t_run(&w, blocks(&w, size, ACCEL_RULE_THRESHOLD, 0, 2.1),
               blocks(&w, size, ACCEL_RULE_THRESHOLD, 0, 2.1));
    static const double want[8] = {0, 0, 2, 2.2, 0, 0, 5, -5};
    for (int i = 0; i < 8; i++)
        ck_assert_double_eq(w.after[i], want[i]);
    mask_t_run(&w, blocks(&w, size, ACCEL_RULE_THRESHOLD, 0, 2),
               blocks(&w, size, ACCEL_RULE_THRESHOLD, 0, 2));
    ck_assert_uint_eq(w.row.zeros_after, 2); /* a mean equal to it stays */
}
END_TEST

START_TEST(blocks_that_do_not_divide_are_refused_with_both_numbers)
{
    static const int64_t size[4] = {2, 3};
    struct accel_mask *m;
    struct accel_choice *c;
    mask_t_init(&w, ACCEL_F32, 2, 4, 8, 0, 0);
    ck_fails(accel_block_new(&m, &c, &w.row, size, NULL), ACCEL_EARG, "'w', which is 8");
    ck_fails(accel_block_new(&m, &c, &w.row, size, NULL), ACCEL_EARG, "blocks of 3");
}
END_TEST

START_TEST(groups_of_blocks_count_elements_and_do_not_exceed)
{
    static const int64_t pairs[4] = {1, 2}, fours[4] = {1, 4};
    mask_t_init(&w, ACCEL_F32, 2, 2, 4, 0, 0);
    mask_t_init(&v, ACCEL_F32, 2, 2, 4, 0, 0);
    for (uint64_t i = 0; i < 8; i++) {
        mask_t_set(&w, i, 1 + (double)(i / 2));   /* pairs 1 2 3 4 */
        mask_t_set(&v, i, 1.5 + (double)(i / 4)); /* fours 1.5 2.5 */
    }
    struct mask_t *x[2] = {&w, &v};
    struct accel_member member[2];
    memset(member, 0, sizeof member);
    for (int i = 0; i < 2; i++) {
        struct accel_mask *m = blocks(x[i], i ? fours : pairs, ACCEL_RULE_COUNT, 0, 0);
        struct accel_source src = accel_mask_source(&x[i]->tensor, x[i]->in, NULL, 0);
        ck_ok(accel_block_measure(m, &src));
        member[i].mask = m;
        member[i].ratio = 0.6; /* 9 of 16 elements: 2 + 4 + 2, then 4 more would exceed */
        accel_block_member(m, &member[i]);
    }
    /* the choices lie in the edits */
    struct accel_choice choice[2] = {{.high = 4}, {.high = 2}};
    for (int i = 0; i < 2; i++)
        member[i].choice = &choice[i];
    ck_ok(accel_global_rank(member, 2, false));
    ck_assert_uint_eq(choice[0].count, 2);
    ck_assert_uint_eq(choice[1].count, 1);
    for (int i = 0; i < 2; i++)
        member[i].mask->edit.ops->free(&member[i].mask->edit);
}
END_TEST

START_TEST(every_failed_allocation_is_reported_and_leaks_nothing)
{
    static const int64_t size[4] = {2, 2};
    for (long nth = 1;; nth++) {
        struct accel_mask *m = NULL;
        struct accel_choice *c;
        mask_t_init(&w, ACCEL_F32, 2, 10, 10, 0, 0);
        mask_t_random(&w, 3, 5);
        struct accel_buffer b = {0};
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_block_new(&m, &c, &w.row, size, &w.log);
        if (!err) {
            c->count = 9;
            accel_tensor_set_edit(&w.tensor, &m->edit);
            err = accel_buffer_init(&b, 0);
        }
        if (!err)
            err = accel_tensor_stream(&w.tensor, &b, mask_t_sink, &w);
        accel_alloc_fail_at(0, false);
        accel_buffer_clear(&b);
        accel_tensor_set_edit(&w.tensor, NULL);
        if (!err) {
            ck_assert_int_gt(nth, 6);
            break;
        }
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("block");
    TCase *t = tcase_create("block");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, the_weakest_blocks_go_whole);
    tcase_add_test(t, a_threshold_applies_to_the_mean);
    tcase_add_test(t, blocks_that_do_not_divide_are_refused_with_both_numbers);
    tcase_add_test(t, groups_of_blocks_count_elements_and_do_not_exceed);
    tcase_add_test(t, every_failed_allocation_is_reported_and_leaks_nothing);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
