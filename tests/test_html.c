/* The report in its three forms, made from rows written by hand. ACCEL_KEEP=FILE leaves the HTML
 * there, to look at it. */
#include "tests/t.h"

#include "tools/report.h"

#include <stdio.h>
#include <string.h>

#define N_ROWS 3

static struct accel_tensor tensor[N_ROWS];
static struct accel_node node[N_ROWS];
static struct accel_target target[N_ROWS];
static struct accel_prune_row row[N_ROWS];
static struct accel_log log_of_run;
static struct accel_report report;
static struct accel_str out;

static void set_row(int i, const char *name, const char *label, const char *op, bool pruned,
                    const char *reason)
{
    static const int64_t dim[] = {300, 784};
    tensor[i] = (struct accel_tensor){
        .name = name, .dtype = ACCEL_F32, .rank = 2, .dim = dim, .n = 235200, .size = 940800};
    node[i] = (struct accel_node){.name = label, .label = label, .op_type = op, .domain = ""};
    target[i] = (struct accel_target){.tensor = &tensor[i], .name = name, .node = &node[i]};
    row[i] = (struct accel_prune_row){.target = &target[i],
                                      .pruned = pruned,
                                      .reason = reason,
                                      .requested = pruned ? 0.3 : NAN,
                                      .achieved = pruned ? 0.3 : NAN,
                                      .n = 235200,
                                      .dim = dim,
                                      .zeros_after = pruned ? 70560 : 0,
                                      .threshold = pruned ? 0.021 : NAN,
                                      .max_abs = 0.14};
    for (int b = 0; b < ACCEL_HISTOGRAM_BINS; b++) {
        double x = (b + 0.5) / ACCEL_HISTOGRAM_BINS * 3;
        row[i].before[b] = (uint64_t)(9000 * exp(-x * x / 2));
        row[i].after[b] = pruned && b < 10 ? 0 : row[i].before[b];
    }
    row[i].after[0] = row[i].zeros_after;
}

static void begin(void)
{
    static const char *const set[] = {"a=<b>", "c=1"};
    set_row(0, "layer1.weight", "/layer1/Gemm", "Gemm", true, "selected");
    set_row(1, "<script>alert(1)</script>\x1b[31m", "/a&b/\"x\"", "Gemm", true, "selected");
    set_row(2, "layer4.weight", "/layer4/Gemm", "Gemm", false, "excluded");
    accel_warn(&log_of_run, "'w\xff' has NaN");
    report = (struct accel_report){
        .input = "models/net.onnx",
        .output = "models/net.pruned.onnx",
        .size_before = 1066000,
        .size_after = 1066210,
        .macs_before = 266200,
        .macs_after = -1,
        .pruner = "level",
        .config_name = "prune.json",
        .config_text = "[{\"op_types\": [\"Linear\"], \"sparse_ratio\": 0.3}]",
        .set = set,
        .n_set = 2,
        .row = row,
        .n_row = N_ROWS,
        .totals = {266610, 266610, 266600, 125490, 266610, 266610},
        .log = &log_of_run,
    };
}

static void tidy(void)
{
    accel_str_clear(&out);
    accel_log_clear(&log_of_run);
}

static int times(const char *text, const char *word)
{
    int n = 0;
    for (const char *p = text; (p = strstr(p, word)); p += strlen(word))
        n++;
    return n;
}

START_TEST(html_stands_alone)
{
    accel_report_html(&out, &report);
    const char *text = accel_str_get(&out);
    ck_assert(!out.failed);
    static const char *const loads[] = {
        "http:",   "https:", "src=", "href=",   "url(",       "@import",
        "<script", "<link",  "<img", "<iframe", "javascript:"};
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        ck_assert_msg(!strstr(text, loads[i]), "the report holds '%s'", loads[i]);
    ck_assert(!strncmp(text, "<!DOCTYPE html>", 15));
    ck_assert(strstr(text, "prefers-color-scheme:dark") && strstr(text, "@media print"));
    const char *keep = getenv("ACCEL_KEEP");
    FILE *f = keep ? fopen(keep, "w") : NULL;
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}
END_TEST

START_TEST(html_escapes_names_and_config)
{
    accel_report_html(&out, &report);
    const char *text = accel_str_get(&out);
    ck_assert_int_eq(times(text, "&lt;script&gt;alert(1)&lt;/script&gt;\xef\xbf\xbd[31m"), 2);
    ck_assert(strstr(text, "/a&amp;b/&quot;x&quot;"));
    ck_assert(strstr(text, "{&quot;op_types&quot;: [&quot;Linear&quot;]"));
    ck_assert(strstr(text, "changed on the command line: <code>a=&lt;b&gt;</code>, <code>c=1<"));
    ck_assert(strstr(text, "&#39;w\xef\xbf\xbd&#39; has NaN"));
}
END_TEST

START_TEST(html_says_what_was_done_to_every_weight_and_why)
{
    accel_report_html(&out, &report);
    const char *text = accel_str_get(&out);
    ck_assert_int_eq(times(text, "pruned: selected"), 2);
    ck_assert_int_eq(times(text, "kept: excluded"), 1);
    ck_assert_int_eq(times(text, "<svg class=\"hist\""), 2);
    ck_assert_int_eq(times(text, "<svg class=\"share\""), 3);
    ck_assert(strstr(text, "70,560 of 235,200 are zero"));
}
END_TEST

START_TEST(a_histogram_leaves_exact_zeros_out)
{
    struct accel_prune_row r = {
        .max_abs = 1, .threshold = 0.25, .zeros_before = 5, .zeros_after = 9};
    r.before[0] = 9; /* 5 zeros and 4 small ones, which go */
    r.after[0] = 9;
    r.before[63] = r.after[63] = 8;
    accel_chart_histogram(&out, &r);
    const char *text = accel_str_get(&out);
    ck_assert(strstr(text, "class=\"before\" d=\"M0 72H0V36H4V72H252V0H256V72Z\""));
    ck_assert(strstr(text, "class=\"after\" d=\"M0 72H252V0H256V72Z\""));
    ck_assert(strstr(text, "class=\"cut\" d=\"M64.0 0V72\""));
}
END_TEST

START_TEST(a_weight_of_zeros_has_no_histogram)
{
    struct accel_prune_row r = {.max_abs = 0, .zeros_before = 4, .zeros_after = 4};
    r.before[0] = r.after[0] = 4;
    accel_chart_histogram(&out, &r);
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

START_TEST(json_follows_the_contract)
{
    struct accel_json j = {0};
    report.output = NULL;
    report.n_row = 1;
    accel_report_json(&j, &report);
    ck_assert_str_eq(
        accel_str_get(&j.out),
        "{\"command\":\"prune\",\"version\":\"" ACCEL_VERSION "\",\"dry_run\":true,"
        "\"input\":{\"path\":\"models/net.onnx\",\"bytes\":1066000,\"params\":266610,"
        "\"trainable\":266610,\"nonzero\":266600,\"macs\":266200},"
        "\"output\":{\"path\":null,\"bytes\":1066210,\"params\":266610,\"trainable\":266610,"
        "\"nonzero\":125490,\"macs\":null},\"pruner\":\"level\","
        "\"weights\":[{\"name\":\"layer1.weight\",\"node\":\"/layer1/Gemm\",\"op_type\":\"Gemm\","
        "\"shape\":[300,784],\"new_shape\":[300,784],\"status\":\"pruned\",\"reason\":\"selected\","
        "\"requested\":0.3,\"achieved\":0.3,\"zeros\":70560,\"zeros_before\":0,"
        "\"threshold\":0.021}],\"warnings\":[\"'w\xef\xbf\xbd' has NaN\"]}\n");
    accel_json_clear(&j);
}
END_TEST

START_TEST(the_table_counts_zeros_and_removed_parameters_apart)
{
    report.n_row = 1;
    accel_report_table(&out, &report, 0, false);
    const char *text = accel_str_get(&out);
    ck_assert(strstr(text, "layer1.weight  /layer1/Gemm  Gemm  300x784   30 %  30 %  70,560"));
    ck_assert(strstr(text, "266,600    125,490"));
    ck_assert(strstr(text, "0 parameters were removed"));
    ck_assert(strstr(text, "level: 1 of 1 weights pruned"));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("html");
    TCase *t = tcase_create("report");
    tcase_add_checked_fixture(t, begin, tidy);
    tcase_add_test(t, html_stands_alone);
    tcase_add_test(t, html_escapes_names_and_config);
    tcase_add_test(t, html_says_what_was_done_to_every_weight_and_why);
    tcase_add_test(t, a_histogram_leaves_exact_zeros_out);
    tcase_add_test(t, a_weight_of_zeros_has_no_histogram);
    tcase_add_test(t, json_follows_the_contract);
    tcase_add_test(t, the_table_counts_zeros_and_removed_parameters_apart);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
