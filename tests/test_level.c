/* Level pruning, thresholds, bounds, global groups, channels, aligned biases: against sorts. */
#include "tests/mask_t.h"

static struct mask_t w, v;
static bool gone[MASK_MOST];

static struct accel_mask *level(struct mask_t *x, enum accel_rule rule, uint64_t count,
                                double threshold, uint64_t low, uint64_t high)
{
    struct accel_mask *m;
    struct accel_choice *c;
    ck_ok(accel_level_new(&m, &c, &x->row, &x->log));
    *c = (struct accel_choice){
        .rule = rule, .count = count, .threshold = threshold, .low = low, .high = high};
    return m;
}

static void run_count(struct mask_t *x, uint64_t count)
{
    struct accel_mask *a = level(x, ACCEL_RULE_COUNT, count, 0, 0, 0);
    mask_t_run(x, a, level(x, ACCEL_RULE_COUNT, count, 0, 0, 0));
}

static void expect_gone(const struct mask_t *x, const bool *g)
{
    uint64_t wrong = 0;
    for (uint64_t i = 0; i < x->tensor.n; i++)
        wrong += (g[i] || x->before[i] == 0) != (x->after[i] == 0);
    ck_assert_uint_eq(wrong, 0);
}

START_TEST(counts_are_rounded_down_but_for_noise)
{
    ck_assert_uint_eq(accel_choice_count(100, 0.29, false), 29);
    ck_assert_uint_eq(accel_choice_count(100, 0.29, true), 28);
    ck_assert_uint_eq(accel_choice_count(3, 0.3, false), 0);
    ck_assert_uint_eq(accel_choice_count(3, 0.34, false), 1);
    ck_assert_uint_eq(accel_choice_count(3, 1, false), 3);
    ck_assert_uint_eq(accel_choice_count(0, 0.5, false), 0);
    ck_assert_uint_eq(accel_choice_count(5, NAN, false), 0);
}
END_TEST

START_TEST(the_smallest_go_and_ties_by_index)
{
    static const enum accel_dtype types[] = {ACCEL_F32, ACCEL_F16, ACCEL_BF16, ACCEL_F64};
    for (int t = 0; t < 4; t++)
        for (unsigned values = 1; values < 5000; values = values * 9 + 1) {
            mask_t_init(&w, types[t], 2, 40, 25, 0, 0);
            mask_t_random(&w, values, values);
            for (uint64_t count = 0; count <= 1000; count += 125) {
                run_count(&w, count);
                mask_t_lowest(w.before, 1000, count, gone);
                expect_gone(&w, gone);
            }
        }
}
END_TEST

START_TEST(large_tensors_stream_and_agree)
{
    static const enum accel_dtype types[] = {ACCEL_F32, ACCEL_F16, ACCEL_F64};
    for (int t = 0; t < 3; t++) {
        mask_t_init(&w, types[t], 1, MASK_MOST, 0, 0, 0);
        mask_t_random(&w, 7, 300);
        run_count(&w, MASK_MOST / 2);
        uint64_t zeros = w.row.zeros_after;
        ck_assert_uint_eq(zeros, MASK_MOST / 2);
        double largest = 0, kept = INFINITY;
        uint64_t last = 0;
        for (uint64_t i = 0; i < MASK_MOST; i++) {
            double a = fabs(w.before[i]);
            if (w.after[i] == 0 && a > largest)
                largest = a;
            if (w.after[i] != 0 && a < kept)
                kept = a;
        }
        ck_assert(largest <= kept);
        ck_assert_double_eq(w.row.threshold, largest);
        for (uint64_t i = 0; i < MASK_MOST; i++) /* equal ones: first those that went */
            if (fabs(w.before[i]) == largest) {
                if (w.after[i] == 0)
                    ck_assert_uint_eq(last, 0);
                else
                    last = i;
            }
    }
}
END_TEST

START_TEST(thresholds_keep_equal_values_and_bounds_hold)
{
    static const double values[8] = {.1, -.5, .25, 1, -.25, .2, 2, -3};
    static const struct {
        double threshold;
        uint64_t low, high, zeros;
    } rows[] = {{0.25, 0, 8, 2}, {10, 0, 4, 4}, {0, 2, 8, 2}, {INFINITY, 0, 8, 8}, {0.3, 1, 7, 4}};
    for (int r = 0; r < 5; r++) {
        mask_t_init(&w, ACCEL_F64, 2, 2, 4, 0, 0);
        for (uint64_t i = 0; i < 8; i++)
            mask_t_set(&w, i, values[i]);
        struct accel_mask *m[2];
        for (int k = 0; k < 2; k++)
            m[k] = level(&w, ACCEL_RULE_THRESHOLD, 0, rows[r].threshold, rows[r].low, rows[r].high);
        mask_t_run(&w, m[0], m[1]);
        ck_assert_uint_eq(w.row.zeros_after, rows[r].zeros);
        mask_t_lowest(values, 8, rows[r].zeros, gone);
        expect_gone(&w, gone);
    }
}
END_TEST

START_TEST(nan_and_infinity_leave_a_weight_alone)
{
    for (int k = 0; k < 2; k++) {
        mask_t_init(&w, k ? ACCEL_F16 : ACCEL_F32, 1, 100, 0, 0, 0);
        mask_t_random(&w, 1, 50);
        mask_t_set(&w, 30, k ? INFINITY : NAN);
        struct accel_buffer b;
        ck_ok(accel_buffer_init(&b, 0));
        accel_tensor_set_edit(&w.tensor, &level(&w, ACCEL_RULE_COUNT, 50, 0, 0, 0)->edit);
        ck_ok(accel_tensor_stream(&w.tensor, &b, mask_t_sink, &w));
        ck_assert_mem_eq(w.in, w.out, w.tensor.size);
        ck_assert(!w.row.pruned);
        ck_assert_uint_eq(w.log.n, 1);
        ck_assert_ptr_nonnull(strstr(w.log.text[0], k ? "'w' holds infinity" : "'w' holds NaN"));
        ck_assert_uint_eq(w.row.zeros_after, w.row.zeros_before);
        ck_assert_double_le(w.row.max_abs, 49.0 / 8 * 1.01);
        accel_tensor_set_edit(&w.tensor, NULL);
        accel_buffer_clear(&b);
        accel_log_clear(&w.log);
    }
}
END_TEST

START_TEST(stored_integers_get_their_zero_point)
{
    mask_t_init(&w, ACCEL_U8, 2, 3, 4, 0, 0);
    static const unsigned char q[12] = {128, 130, 100, 255, 1, 2, 3, 4, 10, 20, 30, 40};
    static float scale[3] = {0.1f, 100, 1};
    static unsigned char zero[3] = {128, 0, 10};
    struct accel_tensor s = {.dtype = ACCEL_F32, .n = 3, .size = 12, .data = scale};
    struct accel_tensor z = {.dtype = ACCEL_U8, .n = 3, .size = 3, .data = zero};
    memcpy(w.in, q, 12);
    w.target.scale = &s, w.target.zero_point = &z, w.target.scale_axis = 0;
    struct accel_mask *m = level(&w, ACCEL_RULE_COUNT, 6, 0, 0, 0);
    struct accel_buffer b;
    ck_ok(accel_buffer_init(&b, 0));
    accel_tensor_set_edit(&w.tensor, &m->edit);
    ck_ok(accel_tensor_stream(&w.tensor, &b, mask_t_sink, &w));
    /* magnitudes 0 .2 2.8 12.7 | 100 200 300 400 | 0 10 20 30 */
    static const unsigned char want[12] = {128, 128, 128, 128, 1, 2, 3, 4, 10, 10, 30, 40};
    ck_assert_mem_eq(w.out, want, 12);
    ck_assert_uint_eq(w.row.zeros_before, 2);
    ck_assert_uint_eq(w.row.zeros_after, 6);
    accel_tensor_set_edit(&w.tensor, NULL);
    accel_buffer_clear(&b);
}
END_TEST

/* Ranks w and v together and runs both. */
static void rank_both(double ratio, const uint64_t low[2], const uint64_t high[2], bool wide,
                      bool strict)
{
    struct mask_t *x[2] = {&w, &v};
    struct accel_mask *m[2];
    struct accel_member member[2];
    memset(member, 0, sizeof member);
    for (int i = 0; i < 2; i++) {
        struct accel_choice *c;
        ck_ok(accel_level_new(&m[i], &c, &x[i]->row, &x[i]->log));
        c->low = low[i];
        c->high = high[i];
        member[i].mask = m[i];
        member[i].choice = c;
        member[i].src = accel_mask_source(&x[i]->tensor, x[i]->in, NULL, 0);
        member[i].key = accel_key_of(x[i]->tensor.dtype, wide);
        member[i].weight = 1;
        member[i].ratio = ratio;
    }
    ck_ok(accel_global_rank(member, 2, strict));
    for (int i = 0; i < 2; i++) {
        struct accel_mask *again = level(x[i], ACCEL_RULE_COUNT, 0, 0, 0, 0);
        struct accel_choice *c = member[i].choice;
        struct accel_mask *copy;
        struct accel_choice *cc;
        again->edit.ops->free(&again->edit);
        ck_ok(accel_level_new(&copy, &cc, &x[i]->row, &x[i]->log));
        *cc = *c;
        copy->surveyed = true;
        mask_t_run(x[i], m[i], copy);
    }
}

START_TEST(a_group_equals_one_sort_over_all_members)
{
    static double all[2000];
    static const uint64_t low[2] = {0, 0}, high[2] = {700, 1300};
    for (unsigned values = 1; values < 3000; values = values * 13 + 1)
        for (int wide = 0; wide < 2; wide++)
            for (double ratio = 0; ratio <= 1; ratio += 0.25) {
                mask_t_init(&w, ACCEL_F32, 1, 700, 0, 0, 0);
                mask_t_init(&v, wide ? ACCEL_F16 : ACCEL_F32, 1, 1300, 0, 0, 0);
                mask_t_random(&w, 1, values);
                mask_t_random(&v, 2, values);
                rank_both(ratio, low, high, wide, false);
                memcpy(all, w.before, 700 * sizeof *all);
                memcpy(all + 700, v.before, 1300 * sizeof *all);
                mask_t_lowest(all, 2000, accel_choice_count(2000, ratio, false), gone);
                expect_gone(&w, gone);
                expect_gone(&v, gone + 700);
            }
}
END_TEST

START_TEST(what_a_bound_takes_the_others_make_up)
{
    static const uint64_t low[2] = {0, 0}, high[2] = {48, 96}, floor_low[2] = {0, 50};
    for (int k = 0; k < 2; k++) {
        mask_t_init(&w, ACCEL_F32, 1, 60, 0, 0, 0);
        mask_t_init(&v, ACCEL_F32, 1, 120, 0, 0, 0);
        for (uint64_t i = 0; i < 60; i++)
            mask_t_set(&w, i, (double)(i + 1) * 0.01);
        for (uint64_t i = 0; i < 120; i++)
            mask_t_set(&v, i, (double)(120 - i));
        rank_both(0.5, k ? floor_low : low, high, false, false);
        ck_assert_uint_eq(w.row.zeros_after, k ? 40 : 48);
        ck_assert_uint_eq(v.row.zeros_after, k ? 50 : 42);
        mask_t_lowest(v.before, 120, k ? 50 : 42, gone);
        expect_gone(&v, gone);
        mask_t_lowest(w.before, 60, k ? 40 : 48, gone);
        expect_gone(&w, gone);
    }
}
END_TEST

START_TEST(strict_groups_keep_ties_at_the_threshold_and_ignore_bounds_between)
{
    static const uint64_t low[2] = {0, 0}, high[2] = {1, 4};
    mask_t_init(&w, ACCEL_F32, 1, 4, 0, 0, 0);
    mask_t_init(&v, ACCEL_F32, 1, 4, 0, 0, 0);
    for (uint64_t i = 0; i < 4; i++) {
        mask_t_set(&w, i, 1 + (double)(i / 3)); /* 1 1 1 2 */
        mask_t_set(&v, i, 2 + (double)i);       /* 2 3 4 5 */
    }
    rank_both(0.5, low, high, false, true); /* 4 asked: the fifth smallest is 2 */
    ck_assert_uint_eq(w.row.zeros_after, 3);
    ck_assert_uint_eq(v.row.zeros_after, 0);
}
END_TEST

START_TEST(members_with_nan_are_left_out)
{
    static const uint64_t low[2] = {0, 0}, high[2] = {10, 10};
    struct accel_mask *m[2];
    struct accel_member member[2];
    struct mask_t *x[2] = {&w, &v};
    memset(member, 0, sizeof member);
    for (int i = 0; i < 2; i++) {
        struct accel_choice *c;
        mask_t_init(x[i], ACCEL_F32, 1, 10, 0, 0, 0);
        for (uint64_t k = 0; k < 10; k++)
            mask_t_set(x[i], k, (double)k + 1);
        if (!i)
            mask_t_set(x[i], 3, NAN);
        ck_ok(accel_level_new(&m[i], &c, &x[i]->row, &x[i]->log));
        c->low = low[i], c->high = high[i];
        member[i] =
            (struct accel_member){.mask = m[i],
                                  .choice = c,
                                  .src = accel_mask_source(&x[i]->tensor, x[i]->in, NULL, 0),
                                  .key = m[i]->key,
                                  .weight = 1,
                                  .ratio = 0.5};
    }
    ck_ok(accel_global_rank(member, 2, false));
    ck_assert(m[0]->left);
    ck_assert_uint_eq(member[1].choice->count, 5);
    for (int i = 0; i < 2; i++) {
        m[i]->edit.ops->free(&m[i]->edit);
        accel_log_clear(&x[i]->log);
    }
}
END_TEST

START_TEST(each_channel_can_be_ranked_by_itself)
{
    static const enum accel_dtype types[] = {ACCEL_F32, ACCEL_BF16, ACCEL_F64};
    for (int t = 0; t < 3; t++)
        for (int axis = 0; axis < 3; axis++)
            for (int rule = 0; rule < 2; rule++) {
                struct accel_mask *m[2];
                mask_t_init(&w, types[t], 3, 7, 9, 80, 0);
                mask_t_random(&w, (uint64_t)axis, 40);
                uint64_t c = (uint64_t)w.dim[axis], each = w.tensor.n / c, inner = 1;
                for (int d = axis + 1; d < 3; d++)
                    inner *= (uint64_t)w.dim[d];
                for (int k = 0; k < 2; k++) {
                    struct accel_choice *choice;
                    ck_ok(accel_channel_new(&m[k], &choice, &w.row, axis, &w.log));
                    choice->rule = rule ? ACCEL_RULE_THRESHOLD : ACCEL_RULE_COUNT;
                    choice->count = each / 3;
                    choice->threshold = 2.5;
                    choice->low = 0;
                    choice->high = each / 2;
                }
                mask_t_run(&w, m[0], m[1]);
                for (uint64_t ch = 0; ch < c; ch++) {
                    static double own[MASK_MOST];
                    static uint64_t at[MASK_MOST];
                    uint64_t n = 0, below = 0, wrong = 0;
                    for (uint64_t i = 0; i < w.tensor.n; i++)
                        if (i / inner % c == ch) {
                            at[n] = i;
                            own[n++] = w.before[i];
                            below += fabs(w.before[i]) < 2.5;
                        }
                    mask_t_lowest(own, n,
                                  !rule              ? each / 3
                                  : below < each / 2 ? below
                                                     : each / 2,
                                  gone);
                    for (uint64_t i = 0; i < n; i++)
                        wrong += (gone[i] || own[i] == 0) != (w.after[at[i]] == 0);
                    ck_assert_uint_eq(wrong, 0);
                }
            }
}
END_TEST

START_TEST(a_bias_follows_channels_that_are_gone)
{
    struct accel_mask *m, *again, *wm;
    mask_t_init(&w, ACCEL_F32, 2, 3, 4, 0, 0);
    for (uint64_t i = 0; i < 12; i++)
        mask_t_set(&w, i, i % 4 == 2 ? 0.1 : 1); /* column 2 is weak */
    mask_t_init(&v, ACCEL_F32, 1, 4, 0, 0, 0);
    for (uint64_t i = 0; i < 4; i++)
        mask_t_set(&v, i, 5 + (double)i);
    wm = level(&w, ACCEL_RULE_COUNT, 3, 0, 0, 0);
    accel_tensor_set_edit(&w.tensor, &wm->edit);
    ck_ok(accel_align_new(&m, &v.row, &w.target, 1, &v.log));
    ck_ok(accel_align_new(&again, &v.row, &w.target, 1, &v.log));
    mask_t_run(&v, m, again);
    for (int i = 0; i < 4; i++)
        ck_assert((v.after[i] == 0) == (i == 2));
    accel_tensor_set_edit(&w.tensor, NULL);
}
END_TEST

START_TEST(every_failed_allocation_is_reported_and_leaks_nothing)
{
    for (long nth = 1;; nth++) {
        struct accel_mask *m = NULL;
        struct accel_choice *c;
        mask_t_init(&w, ACCEL_F64, 1, 2000, 0, 0, 0);
        mask_t_random(&w, 3, 5);
        struct accel_buffer b = {0};
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_level_new(&m, &c, &w.row, &w.log);
        if (!err) {
            c->count = 33;
            accel_tensor_set_edit(&w.tensor, &m->edit);
            err = accel_buffer_init(&b, 0);
        }
        if (!err)
            err = accel_tensor_stream(&w.tensor, &b, mask_t_sink, &w);
        accel_alloc_fail_at(0, false);
        accel_buffer_clear(&b);
        accel_tensor_set_edit(&w.tensor, NULL);
        if (!err) {
            ck_assert_int_gt(nth, 4);
            break;
        }
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("level");
    TCase *t = tcase_create("level");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, counts_are_rounded_down_but_for_noise);
    tcase_add_test(t, the_smallest_go_and_ties_by_index);
    tcase_add_test(t, large_tensors_stream_and_agree);
    tcase_add_test(t, thresholds_keep_equal_values_and_bounds_hold);
    tcase_add_test(t, nan_and_infinity_leave_a_weight_alone);
    tcase_add_test(t, stored_integers_get_their_zero_point);
    tcase_add_test(t, a_group_equals_one_sort_over_all_members);
    tcase_add_test(t, what_a_bound_takes_the_others_make_up);
    tcase_add_test(t, strict_groups_keep_ties_at_the_threshold_and_ignore_bounds_between);
    tcase_add_test(t, members_with_nan_are_left_out);
    tcase_add_test(t, each_channel_can_be_ranked_by_itself);
    tcase_add_test(t, a_bias_follows_channels_that_are_gone);
    tcase_add_test(t, every_failed_allocation_is_reported_and_leaks_nothing);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
