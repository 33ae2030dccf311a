/* test_oom.c - memory that runs out at every allocation in turn.
 *
 * One run reads, infers, configures, prunes and writes a small model. The n-th allocation of the
 * run fails, alone or with all after it, n = 1, 2, … until a run has fewer than n. Each run must
 * end in ACCEL_ENOMEM and leave no file, or, where the loss stops nothing (a warning is dropped),
 * write the same bytes as ever. Leaks are LeakSanitizer's part. */
#include "tests/t.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "prune/prune.h"
#include "tools/new_draft.h"

static char folder[64], in[96], out[96];

static enum accel_err add_layers(struct accel_draft *d)
{
    ACCEL_TRY(accel_draft_input(d, "input", 3, (int64_t[]){1, 8, 8}));
    ACCEL_TRY(accel_draft_conv(d, "conv1", (struct accel_draft_conv){1, 4, 3, 1, true, 0}));
    ACCEL_TRY(accel_draft_norm(d, "bn1", 4));
    ACCEL_TRY(accel_draft_plain(d, "", "Relu", NULL));
    ACCEL_TRY(accel_draft_max_pool(d));
    ACCEL_TRY(accel_draft_reshape(d, 64));
    d->output = "logits";
    ACCEL_TRY(accel_draft_gemm(d, "fc1", 64, 3));
    return accel_draft_finish(d, 3);
}

static void setup(void)
{
    static const struct accel_network small = {"small", "", add_layers};
    struct accel_draft d = {.bias = true};
    struct accel_onnx_written written;
    snprintf(folder, sizeof folder, "%s/accel-oom-XXXXXX",
             access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(in, sizeof in, "%s/in.onnx", folder);
    snprintf(out, sizeof out, "%s/out.onnx", folder);
    ck_ok(accel_network_build(&d, &small, 1));
    ck_ok(accel_onnx_write(&written, d.m, in, &(struct accel_onnx_write_options){0}));
    accel_model_free(d.m);
}

static void teardown(void)
{
    unlink(in);
    unlink(out);
    ck_assert_int_eq(rmdir(folder), 0); /* nothing else was left */
}

/* What the programs do before the new file takes its place: nothing may fail after it. */
struct finish {
    struct accel_prune_plan *plan;
    struct accel_model *m;
};
static enum accel_err finish(void *ctx, const struct accel_onnx_written *written)
{
    const struct finish *f = ctx;
    (void)written;
    return accel_prune_finish(f->plan, f->m);
}

static enum accel_err prune_model(struct accel_model *m, const struct accel_config_file *f)
{
    struct accel_prune_config *c = NULL;
    struct accel_prune_plan *plan = NULL;
    struct accel_onnx_written written;
    const struct accel_property meta[] = {{"accel.version", ACCEL_VERSION},
                                          {"accel.config", f->text}};
    struct finish last = {NULL, m};
    const struct accel_onnx_write_options how = {
        .meta = meta, .n_meta = 2, .ready = finish, .ready_ctx = &last};
    enum accel_err err;
    ACCEL_GOTO(err, accel_prune_config_parse(&c, f, NULL));
    ACCEL_GOTO(err, accel_model_infer(m));
    ACCEL_GOTO(err, accel_prune_build(&plan, m, c, &m->log));
    last.plan = plan;
    err = accel_onnx_write(&written, m, out, &how);
done:
    accel_prune_plan_free(plan);
    accel_prune_config_free(c);
    return err;
}

/* The whole run. */
static enum accel_err run(const char *config)
{
    struct accel_model *m = NULL;
    struct accel_config_file *f = NULL;
    enum accel_err err = accel_onnx_read(&m, in, &(struct accel_onnx_read_options){0});
    if (!err)
        err = accel_config_read(&f, config);
    if (!err)
        err = prune_model(m, f);
    accel_config_free(f);
    accel_model_free(m);
    return err;
}

/* The bytes of the output in `to`; 0 when there is none. */
static size_t read_out(char to[65536])
{
    FILE *f = fopen(out, "rb");
    size_t n = f ? fread(to, 1, 65536, f) : 0;
    if (f)
        fclose(f);
    return n;
}

static int files_in_folder(void)
{
    int n = 0;
    DIR *d = opendir(folder);
    ck_assert_ptr_nonnull(d);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void fail_each(const char *config, bool forever)
{
    static char want[65536], got[65536];
    accel_alloc_fail_at(0, false);
    ck_ok(run(config));
    size_t size = read_out(want);
    ck_assert_uint_gt(size, 200);
    long n = 1, refused = 0, last = accel_alloc_count();
    for (;; n++) {
        unlink(out);
        accel_alloc_fail_at(n, forever);
        enum accel_err err = run(config);
        long count = accel_alloc_count();
        accel_alloc_fail_at(0, false);
        if (err) {
            ck_assert_msg(err == ACCEL_ENOMEM, "allocation %ld of %ld: error %d: %s", n, last,
                          (int)err, accel_errmsg());
            ck_assert_msg(strstr(accel_errmsg(), "memory") != NULL, "%s", accel_errmsg());
            refused++;
        } else {
            ck_assert_uint_eq(read_out(got), size);
            ck_assert_mem_eq(got, want, size);
            if (count < n)
                break;
        }
        ck_assert_msg(files_in_folder() == (err ? 1 : 2), "allocation %ld left a file", n);
    }
    ck_assert_int_gt(refused, 50);
    ck_assert_int_ge(refused, (n - 1) * 9 / 10);
}

#define LEVEL "[{\"op_types\": [\"Conv2d\", \"Linear\"], \"sparse_ratio\": 0.5}]"
#define GLOBAL                                                                                     \
    "[{\"op_names_re\": [\".*fc.*\", \"/conv\"], \"sparse_ratio\": 0.5, \"global_group_id\": 1}]"
#define CHANNELS                                                                                   \
    "{\"pruner\": \"%s\", \"shrink\": %s, \"config_list\": [{\"op_types\": [\"default\"], "        \
    "\"sparse_ratio\": 0.5}]}"
#define NM "{\"pruner\": \"nm\", \"config_list\": [{\"op_types\": [\"Linear\"]}]}"

START_TEST(one_failed_allocation_is_an_error_without_a_leak)
{
    fail_each(LEVEL, false);
}
END_TEST

START_TEST(memory_that_stays_short_is_an_error_without_a_leak)
{
    fail_each(LEVEL, true);
}
END_TEST

START_TEST(a_global_group_survives_failed_allocations)
{
    fail_each(GLOBAL, false);
}
END_TEST

START_TEST(n_of_m_survives_failed_allocations)
{
    fail_each(NM, true);
}
END_TEST

START_TEST(cutting_channels_survives_failed_allocations)
{
    static const struct {
        const char *pruner, *shrink;
    } at[] = {{"l1_norm", "true"}, {"fpgm", "false"}, {"lamp", "true"}};
    char config[512];
    snprintf(config, sizeof config, CHANNELS, at[_i].pruner, at[_i].shrink);
    fail_each(config, _i == 2);
}
END_TEST

START_TEST(a_target_of_macs_survives_failed_allocations)
{
    fail_each("{\"pruner\": \"l2_norm\", \"target\": {\"macs\": 0.7}, \"config_list\": "
              "[{\"op_types\": [\"default\"]}]}",
              true);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("oom");
    TCase *t = tcase_create("oom");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, one_failed_allocation_is_an_error_without_a_leak);
    tcase_add_test(t, memory_that_stays_short_is_an_error_without_a_leak);
    tcase_add_test(t, a_global_group_survives_failed_allocations);
    tcase_add_test(t, n_of_m_survives_failed_allocations);
    tcase_add_loop_test(t, cutting_channels_survives_failed_allocations, 0, 3);
    tcase_add_test(t, a_target_of_macs_survives_failed_allocations);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
