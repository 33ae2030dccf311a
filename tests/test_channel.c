/* test_channel.c - which channels a config takes, of networks whose filters are made to be told
 * apart: channel i of every weight has the norm i + 1 (of those named in `reversed`, n - i). */
#include <stdio.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/config.h"
#include "prune/coupled.h"
#include "prune/prune.h"
#include "tests/line_t.h"

static struct accel_config_file *file;
static struct accel_prune_config *config;
static struct accel_prune_plan *plan;
static struct accel_log log_of_run;
static struct accel_model *m;

/* Channel i of axis `axis` gets the numbers +-(i + 1). */
static void grade(const char *name, int axis, bool reversed)
{
    struct accel_tensor *t = line_find(m, name)->tensor;
    float *x = (float *)(uintptr_t)t->data;
    int64_t inner = 1, n = t->dim[axis];
    for (int a = axis + 1; a < t->rank; a++)
        inner *= t->dim[a];
    for (uint64_t i = 0; i < t->n; i++) {
        int64_t c = (int64_t)i / inner % n;
        x[i] = (float)((reversed ? n - c : c + 1) * (i % 2 ? 1 : -1));
    }
}

static void end(void)
{
    accel_prune_plan_free(plan);
    accel_model_free(m);
    accel_prune_config_free(config);
    accel_config_free(file);
    accel_log_clear(&log_of_run);
    plan = NULL;
    m = NULL;
    config = NULL;
    file = NULL;
}

static enum accel_err choose(const char *text)
{
    ck_ok(accel_config_read(&file, text));
    ck_ok(accel_prune_config_parse(&config, file, NULL));
    return accel_prune_build(&plan, m, config, &log_of_run);
}

static const struct accel_prune_row *row(const char *name)
{
    for (int i = 0; i < plan->n_row; i++)
        if (strcmp(plan->row[i].target->name, name) == 0)
            return &plan->row[i];
    ck_abort_msg("no row '%s'", name);
    return NULL;
}

/* What is kept of an axis: "2 3", or "all". */
static void keeps(const char *name, int axis, const char *want)
{
    const struct accel_prune_row *r = row(name);
    char got[256] = "";
    if (!r->cut || !r->cut[axis].kept)
        strcpy(got, "all");
    else
        for (int64_t i = 0; i < r->cut[axis].now; i++)
            sprintf(got + strlen(got), "%s%lld", i ? " " : "", (long long)r->cut[axis].kept[i]);
    ck_assert_msg(strcmp(got, want) == 0, "%s.%d keeps %s, want %s (%s)", name, axis, got, want,
                  r->reason);
}

#define CHAIN                                                                                      \
    "x:N,2,4,4 a=4,2,1,1 b=6,4,1,1 c=2,6,1,1 ; Conv x a > p ; Relu p > q ; Conv q b > r ; Relu r " \
    "> s "                                                                                         \
    "; Conv s c > y"

static void chain(void)
{
    m = line_model(13, CHAIN);
    grade("a", 0, false);
    grade("b", 0, true);
}

START_TEST(the_lowest_go_and_what_reads_them_follows)
{
    chain();
    ck_ok(choose("{\"pruner\": \"l1_norm\", \"config_list\": [{\"op_types\": [\"Conv2d\"], "
                 "\"sparse_ratio\": 0.5}]}"));
    keeps("a", 0, "2 3");
    keeps("b", 0, "0 1 2");
    keeps("b", 1, "2 3");
    keeps("c", 1, "0 1 2");
    ck_assert_str_eq(row("a")->reason, "selected");
    ck_assert_str_eq(row("c")->reason, "coupled with r; feeds a graph output");
    ck_assert_double_eq(row("a")->achieved, 0.5);
    ck_assert_int_eq(line_find(m, "a")->tensor->dim[0], 2);
    ck_assert_int_eq(line_find(m, "r")->shape.dim[1].n, 3);
    end();
}
END_TEST

START_TEST(shrink_false_keeps_shapes_and_zeroes_the_same)
{
    chain();
    ck_ok(choose("{\"pruner\": \"l2_norm\", \"shrink\": false, \"config_list\": [{\"op_types\": "
                 "[\"Conv2d\"], \"sparse_ratio\": 0.5}]}"));
    keeps("a", 0, "2 3");
    keeps("b", 1, "2 3");
    ck_assert_int_eq(line_find(m, "a")->tensor->dim[0], 4);
    ck_assert_ptr_nonnull(line_find(m, "a")->tensor->edit);
    ck_ok(accel_prune_finish(plan, m));
    ck_assert_uint_eq(row("a")->zeros_after, 4);
    ck_assert_uint_eq(row("b")->zeros_after, 24 - 6);
    ck_assert_uint_eq(plan->totals.params, plan->totals.params_before);
    end();
}
END_TEST

START_TEST(totals_tell_what_went)
{
    chain();
    ck_ok(choose("{\"pruner\": \"l2_norm\", \"config_list\": [{\"op_types\": [\"Conv2d\"], "
                 "\"sparse_ratio\": 0.5}]}"));
    ck_ok(accel_prune_finish(plan, m));
    ck_assert_uint_eq(plan->totals.params_before, 8 + 24 + 12);
    ck_assert_uint_eq(plan->totals.params, 4 + 6 + 6);
    ck_assert_uint_eq(plan->totals.nonzero_after, 4 + 6 + 6);
    end();
}
END_TEST

START_TEST(bounds_rounding_and_thresholds_hold)
{
    static const struct {
        const char *more, *top, *a, *b;
    } c[] = {
        {"\"sparse_ratio\": 0.9", "", "3", "0"},
        {"\"sparse_ratio\": 0.9, \"max_sparse_ratio\": 0.5", "", "2 3", "0 1 2"},
        {"\"sparse_ratio\": 0.1, \"min_sparse_ratio\": 0.25", "", "1 2 3", "0 1 2 3 4"},
        {"\"sparse_ratio\": 0.5", "\"round_to\": 4,", "all", "0 1 2 3"},
        {"\"sparse_threshold\": 5", "", "2 3", "0 1 2 3 4"}, /* norms 2 4 6 8 and 4 .. 24 */
        {"\"sparse_ratio\": 0.24", "", "all", "0 1 2 3 4"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        char text[512];
        chain();
        snprintf(
            text, sizeof text,
            "{\"pruner\": \"l1_norm\", %s \"config_list\": [{\"op_types\": [\"Conv2d\"], %s}]}",
            c[i].top, c[i].more);
        ck_ok(choose(text));
        keeps("a", 0, c[i].a);
        keeps("b", 0, c[i].b);
        end();
    }
}
END_TEST

START_TEST(one_ranking_over_several_sets)
{
    chain();
    ck_ok(choose("{\"pruner\": \"l1_norm\", \"config_list\": [{\"op_names\": [\"a\", \"b\"], "
                 "\"sparse_ratio\": 0.4, \"global_group_id\": 1}]}"));
    /* 8 and 24 elements, 12.8 may go; by norm / mean: a 2/5 4/5 .., b 1/3.5 2/3.5 3/3.5 .. of 4
     * each */
    keeps("b", 0, "0 1 2 3");
    keeps("a", 0, "2 3");
    end();
}
END_TEST

START_TEST(coupled_layers_share_and_the_smallest_ratio_counts)
{
    m = line_model(
        13, "x:N,2,4,4 a=4,2,1,1 b=4,4,1,1 c=2,4,1,1 ; Conv x a > p ; Conv p b > q ; Add p q > r "
            "; Conv r c > y");
    grade("a", 0, false);
    grade("b", 0, true);
    ck_ok(choose("{\"pruner\": \"l1_norm\", \"group_reduction\": \"first\", \"config_list\": "
                 "[{\"op_names\": [\"a\"], \"sparse_ratio\": 0.75}, {\"op_names\": [\"b\"], "
                 "\"sparse_ratio\": 0.25}]}"));
    keeps("a", 0, "1 2 3");
    keeps("b", 0, "1 2 3");
    keeps("b", 1, "1 2 3");
    ck_assert_int_eq(plan->channels->n_set, 1);
    end();
}
END_TEST

START_TEST(exclusion_keeps_the_whole_set)
{
    static const char text[] =
        "{\"pruner\": \"l1_norm\", %s \"config_list\": [{\"op_types\": [\"Conv2d\"], "
        "\"exclude_op_names\": [\"b\"], \"sparse_ratio\": 0.5}]}";
    char with[256];
    chain();
    snprintf(with, sizeof with, text, "");
    ck_ok(choose(with));
    keeps("a", 0, "2 3");
    keeps("b", 0, "all");
    keeps("b", 1, "2 3");
    end();
    chain();
    snprintf(with, sizeof with, text, "\"exclude_inputs\": true,");
    ck_ok(choose(with));
    keeps("a", 0, "all");
    ck_assert_msg(strstr(row("a")->reason, "excluded") != NULL, "%s", row("a")->reason);
    end();
}
END_TEST

START_TEST(a_weight_with_nan_stays_and_is_named)
{
    chain();
    ((float *)(uintptr_t)line_find(m, "a")->tensor->data)[3] = NAN;
    ck_ok(choose("{\"pruner\": \"l1_norm\", \"config_list\": [{\"op_types\": [\"Conv2d\"], "
                 "\"sparse_ratio\": 0.5}]}"));
    keeps("a", 0, "all");
    keeps("b", 0, "0 1 2");
    ck_assert_uint_eq(log_of_run.n, 1);
    ck_assert(strstr(log_of_run.text[0], "'a'") != NULL);
    end();
}
END_TEST

START_TEST(a_target_is_met_or_said_to_be_out_of_reach)
{
    chain();
    ck_ok(choose("{\"pruner\": \"l1_norm\", \"target\": {\"params\": 0.6}, \"config_list\": "
                 "[{\"op_types\": [\"Conv2d\"]}]}"));
    ck_ok(accel_prune_finish(plan, m));
    double left = (double)plan->totals.params / (double)plan->totals.params_before;
    ck_assert_double_le(left, 0.6);
    ck_assert_double_ge(left, 0.35);
    end();
    chain();
    ck_fails(choose("{\"pruner\": \"l1_norm\", \"target\": {\"macs\": 0.001}, \"config_list\": "
                    "[{\"op_types\": [\"Conv2d\"]}]}"),
             ACCEL_ETARGET, "target macs 0.001 cannot be reached: 0.11");
    plan = NULL;
    end();
}
END_TEST

START_TEST(curves_give_each_set_what_costs_the_same)
{
    char path[] = "/tmp/accel_test_curves_XXXXXX", text[512];
    int fd = mkstemp(path);
    FILE *f = fdopen(fd, "w");
    fprintf(
        f,
        "{\"base\": 0.9, \"sets\": [{\"weights\": [\"a\"], \"points\": [{\"ratio\": 0.25, "
        "\"score\": "
        "0.9}, {\"ratio\": 0.5, \"score\": 0.5}]}, {\"weights\": [\"b\"], \"points\": [{\"ratio\": "
        "0.5, \"score\": 0.89}, {\"ratio\": 0.8, \"score\": 0.85}]}]}");
    fclose(f);
    chain();
    snprintf(text, sizeof text,
             "{\"pruner\": \"l1_norm\", \"target\": {\"params\": 0.4}, \"ratios_from\": \"%s\", "
             "\"config_list\": [{\"op_types\": [\"Conv2d\"]}]}",
             path);
    ck_ok(choose(text));
    keeps("a", 0, "1 2 3"); /* half of it would cost 0.4 */
    ck_assert_int_eq(line_find(m, "b")->tensor->dim[0], 2);
    end();
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"[1]", "is a map"},
        {"{\"sets\": [1]}", "number 'base'"},
        {"{\"base\": 1}", "list 'sets'"},
        {"{\"base\": 1, \"sets\": [{\"weights\": [\"a\"]}]}", "list 'points'"},
        {"{\"base\": 1, \"sets\": [{\"weights\": [1], \"points\": [1]}]}", "named by texts"},
        {"{\"base\": 1, \"sets\": [{\"weights\": [\"a\"], \"points\": [1]}]}", "a point is a map"},
        {"{\"base\": 1, \"sets\": [{\"weights\": [\"a\"], \"points\": [{\"ratio\": 0.5, \"score\": "
         "1}, "
         "{\"ratio\": 0.5, \"score\": 1}]}]}",
         "ascend"},
    };
    struct accel_curves *curves;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_fails(accel_curves_read(&curves, bad[i].text), ACCEL_EARG, bad[i].says);
    unlink(path);
}
END_TEST

START_TEST(the_account_names_members_and_walls)
{
    struct accel_coupled *c;
    chain();
    ck_ok(choose("{\"pruner\": \"l1_norm\", \"config_list\": [{\"op_types\": [\"Conv2d\"], "
                 "\"sparse_ratio\": 0.5}]}"));
    ck_ok(accel_coupled_build(&c, plan));
    ck_assert_int_eq(c->n_set, 2);
    ck_assert_int_eq(c->n_group, 10);
    ck_assert_int_eq(c->set[0].n, 4);
    ck_assert_int_eq(c->set[0].cut, 2);
    ck_assert_uint_eq(c->set[0].n_axis, 2);
    ck_assert_str_eq(c->set[0].axis[0].name, "a");
    ck_assert_str_eq(c->set[0].axis[1].name, "b");
    ck_assert_int_eq(c->set[0].axis[1].axis, 1);
    ck_assert_uint_eq(c->n_wall, 2);
    ck_assert_double_eq(c->wall[0].elements, 12);
    ck_assert_str_eq(c->wall[0].why, "feeds a graph output");
    accel_coupled_free(c);
    end();
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    for (long nth = 1;; nth += 1 + nth / 30) {
        struct accel_coupled *c = NULL;
        chain();
        ck_ok(accel_config_read(&file, "{\"pruner\": \"lamp\", \"target\": {\"macs\": 0.5}, "
                                       "\"config_list\": [{\"op_types\": [\"Conv2d\"]}]}"));
        ck_ok(accel_prune_config_parse(&config, file, NULL));
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_prune_build(&plan, m, config, &log_of_run);
        if (err)
            plan = NULL;
        else
            err = accel_coupled_build(&c, plan);
        accel_alloc_fail_at(0, false);
        if (!err)
            accel_coupled_free(c);
        end();
        if (!err)
            break;
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("channel");
    TCase *t = tcase_create("all");
    tcase_add_test(t, the_lowest_go_and_what_reads_them_follows);
    tcase_add_test(t, shrink_false_keeps_shapes_and_zeroes_the_same);
    tcase_add_test(t, totals_tell_what_went);
    tcase_add_test(t, bounds_rounding_and_thresholds_hold);
    tcase_add_test(t, one_ranking_over_several_sets);
    tcase_add_test(t, coupled_layers_share_and_the_smallest_ratio_counts);
    tcase_add_test(t, exclusion_keeps_the_whole_set);
    tcase_add_test(t, a_weight_with_nan_stays_and_is_named);
    tcase_add_test(t, a_target_is_met_or_said_to_be_out_of_reach);
    tcase_add_test(t, curves_give_each_set_what_costs_the_same);
    tcase_add_test(t, the_account_names_members_and_walls);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
