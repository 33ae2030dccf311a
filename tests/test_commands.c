/* accel-prune and accel-inspect as a whole, without a process: what they say, what they leave. The
 * model is accel-new's mlp4. */
#include "tests/t.h"

#include "base/alloc.h"
#include "onnx/onnx.h"
#include "tools/new_draft.h"
#include "tools/tools.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

extern const struct accel_command accel_command_prune, accel_command_inspect;

#define HALF "[{\"op_types\":[\"Linear\"],\"sparse_ratio\":0.5}]"

static char dir[64], in[96], out[96], html[96];
static struct accel_job job;

static void job_clear(void)
{
    accel_config_free(job.config);
    accel_options_clear(&job.opt);
    accel_log_clear(&job.log);
    accel_log_clear(&job.notes);
    accel_str_clear(&job.out);
    job = (struct accel_job){0};
}

static void begin(void)
{
    const struct accel_network *w = accel_network_table;
    while (strcmp(w->name, "mlp4"))
        w++;
    struct accel_draft draft = {.bias = true};
    struct accel_onnx_written written;
    snprintf(dir, sizeof dir, "/tmp/test_commands.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(in, sizeof in, "%s/m.v1.onnx", dir);
    snprintf(out, sizeof out, "%s/m.v1.pruned.onnx", dir);
    snprintf(html, sizeof html, "%s/r.html", dir);
    ck_ok(accel_network_build(&draft, w, 1));
    ck_ok(accel_onnx_write(&written, draft.m, in, &(struct accel_onnx_write_options){0}));
    accel_model_free(draft.m);
}

static void tidy(void)
{
    job_clear();
    unlink(in);
    unlink(out);
    unlink(html);
    ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left there */
}

/* Runs a command on the model; `more` ends with NULL. */
static enum accel_err run(const struct accel_command *c, const char *const *more)
{
    char *argv[16];
    int argc = 0;
    argv[argc++] = in;
    while (*more)
        argv[argc++] = (char *)(uintptr_t)*more++;
    job_clear();
    job.command = c;
    enum accel_err err = accel_options_parse(&job, argc, argv);
    return err ? err : c->run(&job);
}
#define PRUNE(...)   run(&accel_command_prune, (const char *const[]){__VA_ARGS__, NULL})
#define INSPECT(...) run(&accel_command_inspect, (const char *const[]){__VA_ARGS__, NULL})

static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static bool says(const char *word)
{
    return strstr(accel_str_get(&job.out), word) != NULL;
}

START_TEST(prune_writes_beside_the_input_and_shows_a_table)
{
    ck_ok(PRUNE("--config", HALF));
    ck_assert_int_eq(access(out, R_OK), 0);
    ck_assert(says("layer1.weight") && says("100,352") && says("0 parameters were removed"));
    ck_assert(says("Written: "));
    ck_assert_int_eq(n_files(), 2);
}
END_TEST

START_TEST(prune_tells_json_what_it_tells_people)
{
    ck_ok(PRUNE("--config", HALF, "--json", "--set", "0.sparse_ratio=0.25"));
    ck_assert(says("\"zeros\":50176") && says("\"requested\":0.25") && says("\"achieved\":0.25"));
    ck_assert(says("\"dry_run\":false") && says("\"status\":\"pruned\",\"reason\":\"selected\""));
}
END_TEST

START_TEST(a_dry_run_counts_and_leaves_no_file)
{
    ck_ok(PRUNE("--config", HALF, "--dry-run", "--json"));
    ck_assert(says("\"dry_run\":true") && says("\"path\":null") && says("\"zeros\":100352"));
    ck_assert_int_eq(n_files(), 1);
}
END_TEST

START_TEST(a_report_that_cannot_be_written_stops_the_run)
{
    ck_fails(PRUNE("--config", HALF, "--report", "/nowhere/r.html"), ACCEL_EIO, "/nowhere");
    ck_assert_int_eq(n_files(), 1);
    ck_fails(PRUNE("--config", HALF, "--report", in), ACCEL_EARG, "would overwrite the input");
    ck_fails(PRUNE("--config", HALF, "--report", out), ACCEL_EARG, "are both");
    ck_assert_int_eq(n_files(), 1);
    ck_ok(PRUNE("--config", HALF, "--report", html));
    ck_assert_int_eq(access(html, R_OK), 0);
    ck_assert_int_eq(n_files(), 3);
}
END_TEST

START_TEST(wrong_use_of_prune_is_named)
{
    ck_fails(PRUNE("--json"), ACCEL_EARG, "--config is missing");
    ck_fails(PRUNE("--config", HALF, "--external-data", "--no-external-data"), ACCEL_EARG,
             "contradict");
    ck_fails(PRUNE("--config", HALF, "--pruner", "levle"), ACCEL_EARG, "level");
    ck_fails(PRUNE("--config", HALF, "--sensitivity"), ACCEL_EARG,
             "--sensitivity is for pruners that score channels; 'level' removes single weights");
    ck_fails(PRUNE("--config", HALF, "--pruner", "l1_norm", "--sensitivity"), ACCEL_EARG,
             "--sensitivity needs --data");
    ck_fails(PRUNE("--config", HALF, "--groups"), ACCEL_EARG, "--groups is for pruners");
    ck_fails(PRUNE("--config", HALF, "--dim", "N"), ACCEL_EARG, "NAME=N, not 'N'");
    ck_fails(PRUNE("--config", HALF, "--dim", "=3"), ACCEL_EARG, "NAME=N");
    ck_fails(PRUNE("--config", HALF, "--input-shape", "input"), ACCEL_EARG, "not 'input'");
    ck_fails(PRUNE("--config", HALF, "--input-shape", "input:1x-2"), ACCEL_EARG, "-2");
    ck_fails(PRUNE("--config", HALF, "--input-shape", "inputt:1x1x28x28"), ACCEL_EARG, "'input'");
    ck_assert_int_eq(n_files(), 1);
}
END_TEST

START_TEST(shapes_are_bound_before_inference)
{
    ck_ok(PRUNE("--config", HALF, "--dry-run", "--input-shape", "input:4x?x28x28"));
    ck_ok(INSPECT("--json", "--input-shape", "input:4x1x28x28"));
    ck_assert(says("\"shape\":[4,1,28,28]"));
}
END_TEST

START_TEST(inspect_shows_nodes_and_totals)
{
    ck_ok(INSPECT("-v"));
    ck_assert(says("/layer1/Gemm") && says("200,960") && says("242,762 parameters"));
    ck_ok(INSPECT("--format", "csv"));
    ck_assert(says("node,op,output,params,macs,bytes,sparsity,dtype\r\n"));
    ck_assert(says("/layer4/Gemm,Gemm,"));
    ck_ok(INSPECT("--format", "md"));
    ck_assert(says("| /layer4/Gemm | Gemm |"));
    ck_ok(INSPECT("--format", "json"));
    ck_assert(says("{\"command\":\"inspect\"") && says("\"params\":200960"));
    ck_assert(says("\"module\":\"layer1\""));
    ck_assert(job.opt.json);
}
END_TEST

START_TEST(inspect_sorts_by_any_column)
{
    ck_ok(INSPECT("--sort", "params", "--format", "csv"));
    const char *text = accel_str_get(&job.out);
    ck_assert(strstr(text, "layer1/Gemm") < strstr(text, "layer2/Gemm"));
    ck_assert(strstr(text, "layer4/Gemm") < strstr(text, "/Flatten"));
    ck_ok(INSPECT("--sort", "node", "--format", "csv"));
    text = accel_str_get(&job.out);
    ck_assert(strstr(text, "/Flatten") < strstr(text, "/Relu"));
    ck_assert(strstr(text, "/Relu_2") < strstr(text, "layer1/Gemm"));
    ck_fails(INSPECT("--sort", "parms"), ACCEL_EARG, "did you mean 'PARAMS'");
    ck_fails(INSPECT("--json", "--format", "csv"), ACCEL_EARG, "contradict");
}
END_TEST

START_TEST(every_failed_allocation_of_a_command_is_an_error)
{
    const struct accel_command *const list[] = {&accel_command_inspect, &accel_command_prune};
    static const char *const args[2][6] = {{"--json", NULL}, {"--config", HALF, "--report", html}};
    for (int c = 0; c < 2; c++)
        for (long nth = 1;; nth++) {
            ck_assert_int_lt(nth, 100000);
            accel_alloc_fail_at(nth, false);
            enum accel_err err = run(list[c], args[c]);
            bool failed = job.out.failed;
            bool reached = accel_alloc_count() >= nth;
            accel_alloc_fail_at(0, false);
            ck_assert_msg(!err || err == ACCEL_ENOMEM, "allocation %ld: %s", nth, accel_errmsg());
            if (err)
                ck_assert_int_eq(n_files(), 1);
            ck_assert(!failed || c == 0 || err);
            unlink(out);
            unlink(html);
            if (!reached) {
                ck_ok(err);
                break;
            }
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("commands");
    TCase *t = tcase_create("prune and inspect");
    tcase_set_timeout(t, 200);
    tcase_add_checked_fixture(t, begin, tidy);
    tcase_add_test(t, prune_writes_beside_the_input_and_shows_a_table);
    tcase_add_test(t, prune_tells_json_what_it_tells_people);
    tcase_add_test(t, a_dry_run_counts_and_leaves_no_file);
    tcase_add_test(t, a_report_that_cannot_be_written_stops_the_run);
    tcase_add_test(t, wrong_use_of_prune_is_named);
    tcase_add_test(t, shapes_are_bound_before_inference);
    tcase_add_test(t, inspect_shows_nodes_and_totals);
    tcase_add_test(t, inspect_sorts_by_any_column);
    tcase_add_test(t, every_failed_allocation_of_a_command_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
