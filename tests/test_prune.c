/* Plans over hand-made targets: what gets an edit, what stays and why, and the sums at the end. */
#include <string.h>

#include "base/alloc.h"
#include "prune/prune.h"
#include "tests/t.h"

enum { MOST = 8, SIZE = 64 };

/* A model that holds nothing but constants of 8 by 8 floats, all of them targets. */
struct net {
    struct accel_model *model;
    struct accel_targets *targets;
    struct accel_tensor tensor[MOST];
    float data[MOST][SIZE];
    int64_t dim[MOST][2];
    struct accel_setting setting[MOST];
    struct accel_sub_config sub;
    struct accel_prune_config config;
    struct accel_log log;
    struct accel_prune_plan *plan;
    float out[MOST][SIZE];
};

static struct net w;

static enum accel_err net_init(int n)
{
    memset(&w, 0, sizeof w);
    w.config.pattern = ACCEL_PATTERN_ELEMENT;
    w.config.n = 2, w.config.m = 4;
    ACCEL_TRY(accel_model_new(&w.model, 17));
    w.targets = accel_calloc(1, sizeof *w.targets);
    if (!w.targets)
        return accel_fail_nomem();
    w.targets->at = ACCEL_NEW(&w.targets->arena, struct accel_target, n);
    if (!w.targets->at)
        return accel_fail_nomem();
    w.targets->n = n;
    for (int i = 0; i < n; i++) {
        static const char *const name[MOST] = {"a", "b", "c", "d", "e", "f", "g", "h"};
        w.dim[i][0] = w.dim[i][1] = 8;
        for (int k = 0; k < SIZE; k++)
            w.data[i][k] = (float)((k * 29 + i * 7) % SIZE + 1) * (k % 2 ? -1 : 1);
        w.tensor[i] = (struct accel_tensor){.name = name[i],
                                            .dtype = ACCEL_F32,
                                            .rank = 2,
                                            .dim = w.dim[i],
                                            .n = SIZE,
                                            .size = SIZE * 4,
                                            .data = w.data[i]};
        w.setting[i] = (struct accel_setting){
            .on = true, .sparse_ratio = 0.5, .sparse_threshold = NAN, .max_ratio = 1};
        w.targets->at[i] = (struct accel_target){.tensor = &w.tensor[i],
                                                 .name = name[i],
                                                 .weight = {.out_axis = 0, .in_axis = 1},
                                                 .scale_axis = -1,
                                                 .sub = &w.sub,
                                                 .setting = &w.setting[i],
                                                 .reason = "selected"};
        ACCEL_TRY(accel_model_add_tensor(w.model, &w.tensor[i]));
    }
    return ACCEL_OK;
}

static enum accel_err net_plan(void)
{
    struct accel_targets *t = w.targets;
    w.targets = NULL;
    return accel_prune_plan_new(&w.plan, w.model, t, &w.config, NULL, &w.log);
}

static enum accel_err sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    memcpy((float *)ctx + first, elem, count * 4);
    return ACCEL_OK;
}

/* What the writer does, and the sums. */
static enum accel_err net_write(void)
{
    struct accel_buffer b;
    ACCEL_TRY(accel_buffer_init(&b, 0));
    enum accel_err err = ACCEL_OK;
    for (size_t i = 0; i < w.model->n_tensor && !err; i++)
        err = accel_tensor_stream(&w.tensor[i], &b, sink, w.out[i]);
    accel_buffer_clear(&b);
    return err ? err : accel_prune_finish(w.plan, w.model);
}

static void net_clear(void)
{
    for (int i = 0; i < MOST; i++)
        accel_tensor_set_edit(&w.tensor[i], NULL);
    accel_prune_plan_free(w.plan);
    accel_targets_free(w.targets);
    accel_model_free(w.model);
    accel_log_clear(&w.log);
}

static uint64_t zeros(int i)
{
    uint64_t z = 0;
    for (int k = 0; k < SIZE; k++)
        z += w.out[i][k] == 0;
    return z;
}

START_TEST(rows_and_totals_say_what_was_written)
{
    ck_ok(net_init(4));
    w.targets->at[1].sub = NULL;
    w.targets->at[1].reason = "not selected";
    w.data[1][5] = 0;
    w.setting[2].sparse_ratio = 0;
    w.setting[3].sparse_ratio = 0.9;
    w.setting[3].max_ratio = 0.25;
    ck_ok(net_plan());
    ck_ok(net_write());
    static const uint64_t want[4] = {32, 1, 0, 16};
    static const bool pruned[4] = {true, false, true, true}, edit[4] = {true, false, false, true};
    for (int i = 0; i < 4; i++) {
        const struct accel_prune_row *r = &w.plan->row[i];
        ck_assert_uint_eq(zeros(i), want[i]);
        ck_assert_uint_eq(r->zeros_after, want[i]);
        ck_assert_int_eq(r->pruned, pruned[i]);
        ck_assert_int_eq(w.tensor[i].edit != NULL, edit[i]);
        ck_assert_double_eq(r->achieved, i == 1 ? 0 : (double)want[i] / SIZE);
        ck_assert_double_ge(r->max_abs, SIZE - 1);
    }
    ck_assert_str_eq(w.plan->row[1].reason, "not selected");
    ck_assert(isnan(w.plan->row[1].requested));
    ck_assert_double_eq(w.plan->row[3].requested, 0.9);
    ck_assert_double_eq(w.plan->row[0].threshold, 32);
    ck_assert_uint_eq(w.plan->totals.params, 4 * SIZE);
    ck_assert_uint_eq(w.plan->totals.trainable, 4 * SIZE);
    ck_assert_uint_eq(w.plan->totals.nonzero_before, 4 * SIZE - 1);
    ck_assert_uint_eq(w.plan->totals.nonzero_after, 4 * SIZE - 49);
    net_clear();
}
END_TEST

START_TEST(a_global_group_is_settled_before_anything_is_written)
{
    ck_ok(net_init(4));
    for (int i = 0; i < 4; i++) {
        w.setting[i].global_group = i < 3 ? "g" : "alone";
        w.setting[i].max_ratio = 0.75;
    }
    for (int k = 0; k < SIZE; k++) {
        w.data[0][k] *= 0.01f;
        w.data[2][k] *= 100;
    }
    w.data[1][3] = INFINITY; /* left out of the group */
    ck_ok(net_plan());
    ck_assert_ptr_null(w.tensor[1].edit);
    ck_ok(net_write());
    ck_assert_uint_eq(zeros(0), 48); /* 64 of 128 are asked for */
    ck_assert_uint_eq(zeros(1), 0);
    ck_assert_uint_eq(zeros(2), 16);
    ck_assert_uint_eq(zeros(3), 32);
    ck_assert(!w.plan->row[1].pruned);
    ck_assert_uint_eq(w.log.n, 1);
    net_clear();
}
END_TEST

START_TEST(blocks_and_weights_can_share_a_group)
{
    static const int64_t block[1] = {8};
    ck_ok(net_init(2));
    for (int i = 0; i < 2; i++)
        w.setting[i].global_group = "g";
    w.setting[0].granularity = ACCEL_GRAIN_BLOCK;
    w.setting[0].block = block;
    w.setting[0].n_block = 1;
    ck_ok(net_plan());
    ck_ok(net_write());
    ck_assert_uint_eq(zeros(0) % 8, 0);
    ck_assert_uint_le(zeros(0) + zeros(1), SIZE);
    ck_assert_uint_gt(zeros(0) + zeros(1), SIZE - 8);
    net_clear();
}
END_TEST

START_TEST(granularities_take_the_operators_axes)
{
    for (int strict = 0; strict < 2; strict++) {
        ck_ok(net_init(1));
        w.setting[0].granularity = ACCEL_GRAIN_OUT_CHANNEL;
        w.targets->at[0].weight.out_axis = 1;
        w.config.strict_nni = strict;
        for (int k = 0; k < SIZE; k++)
            w.data[0][k] = (float)(1 + (k % 8 < 4) + 10 * (k / 8 < 4));
        ck_ok(net_plan());
        ck_ok(net_write());
        for (int k = 0; k < SIZE; k++)
            ck_assert((w.out[0][k] == 0) == (strict ? k / 8 >= 4 : k % 8 >= 4));
        net_clear();
    }
}
END_TEST

START_TEST(what_cannot_be_pruned_is_kept_with_a_reason)
{
    ck_ok(net_init(6));
    w.config.pattern = ACCEL_PATTERN_NM;
    w.tensor[0].dtype = ACCEL_I32;
    w.targets->at[1].weight.in_axis = -1;
    w.targets->at[1].axis_note = "Reshape '/r'";
    w.dim[2][0] = 64, w.dim[2][1] = 1;
    w.tensor[3].n = w.tensor[3].size = 0;
    w.dim[3][0] = 0;
    w.setting[4].align = true;
    ck_ok(net_plan());
    static const char *const words[5] = {"int32", "through Reshape '/r'", "1, and 2 of 4",
                                         "no elements", "not a constant"};
    for (int i = 0; i < 5; i++) {
        ck_assert(!w.plan->row[i].pruned);
        ck_assert_msg(strstr(w.plan->row[i].reason, words[i]) != NULL, "%s", w.plan->row[i].reason);
        ck_assert_ptr_null(w.tensor[i].edit);
    }
    ck_ok(net_write());
    ck_assert_uint_eq(zeros(5), 32);
    ck_assert_double_eq(w.plan->row[5].requested, 0.5);
    net_clear();
}
END_TEST

START_TEST(configs_that_do_not_fit_the_weights_are_refused)
{
    static const int64_t block[3] = {1, 3, 1};
    for (int k = 0; k < 3; k++) {
        ck_ok(net_init(2));
        w.setting[1].granularity = k == 2 ? ACCEL_GRAIN_PER_CHANNEL : ACCEL_GRAIN_BLOCK;
        w.setting[1].block = block;
        w.setting[1].n_block = k == 0 ? 3 : 2;
        w.setting[1].global_group = k == 2 ? "g" : NULL;
        ck_fails(net_plan(), ACCEL_EARG,
                 k == 0   ? "has 3 numbers, 'b' has 2 dims"
                 : k == 1 ? "blocks of 3 do not divide dim 1 of 'b', which is 8"
                          : "group 'g'");
        net_clear();
    }
}
END_TEST

START_TEST(every_failed_allocation_is_reported_and_leaks_nothing)
{
    static const int64_t block[1] = {4};
    for (long nth = 1;; nth++) {
        accel_alloc_fail_at(0, false);
        ck_ok(net_init(6));
        w.setting[0].global_group = w.setting[1].global_group = w.setting[2].global_group = "g";
        w.setting[2].granularity = w.setting[3].granularity = ACCEL_GRAIN_BLOCK;
        w.setting[2].block = w.setting[3].block = block;
        w.setting[2].n_block = w.setting[3].n_block = 1;
        w.setting[4].granularity = ACCEL_GRAIN_PER_CHANNEL;
        w.setting[5].align = true;
        accel_alloc_fail_at(nth, nth % 2);
        enum accel_err err = net_plan();
        if (!err)
            err = net_write();
        accel_alloc_fail_at(0, false);
        net_clear();
        if (!err) {
            ck_assert_int_gt(nth, 20);
            break;
        }
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("prune");
    TCase *t = tcase_create("prune");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, rows_and_totals_say_what_was_written);
    tcase_add_test(t, a_global_group_is_settled_before_anything_is_written);
    tcase_add_test(t, blocks_and_weights_can_share_a_group);
    tcase_add_test(t, granularities_take_the_operators_axes);
    tcase_add_test(t, what_cannot_be_pruned_is_kept_with_a_reason);
    tcase_add_test(t, configs_that_do_not_fit_the_weights_are_refused);
    tcase_add_test(t, every_failed_allocation_is_reported_and_leaks_nothing);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
