/* test_repair.c - accel-prune with "repair": what can be brought back exactly is, zeros stay, and
 * every kind of layer takes part. Networks are made here; data are random images. */
#include "tests/data_files.h"
#include "tests/data_t.h"

#include "graph/tensor_values.h"
#include "onnx/onnx.h"
#include "tools/new_draft.h"
#include "tools/tools.h"

extern const struct accel_command accel_command_prune;

enum { SAMPLES = 120, SIDE = 6, PIXELS = SIDE * SIDE };

static struct accel_job job;
static char in[96], out[96], spec[160];

static void job_clear(void)
{
    accel_config_free(job.config);
    accel_options_clear(&job.opt);
    accel_log_clear(&job.log);
    accel_log_clear(&job.notes);
    accel_str_clear(&job.out);
    job = (struct accel_job){0};
}

static enum accel_err prune(const char *config, const char *data, const char *seed)
{
    const char *words[] = {in,       "--config", config,    "-o",     out, "--json",
                           "--seed", seed,       "--quiet", "--data", data};
    char *argv[16];
    int argc = 0;
    for (size_t i = 0; i < sizeof words / sizeof *words - (data ? 0 : 2); i++)
        argv[argc++] = (char *)(uintptr_t)words[i];
    job_clear();
    job.command = &accel_command_prune;
    enum accel_err err = accel_options_parse(&job, argc, argv);
    return err ? err : accel_command_prune.run(&job);
}

static double number(const char *key)
{
    char word[64];
    snprintf(word, sizeof word, "\"%s\":", key);
    const char *at = strstr(accel_str_get(&job.out), word);
    ck_assert_msg(at != NULL, "no %s in %s", key, accel_str_get(&job.out));
    return at ? atof(at + strlen(word)) : NAN;
}

static int count(const char *word)
{
    int n = 0;
    for (const char *at = accel_str_get(&job.out); (at = strstr(at, word)); at++)
        n++;
    return n;
}

static void save_model(struct accel_draft *d)
{
    struct accel_onnx_written written;
    ck_ok(accel_onnx_write(&written, d->m, in, &(struct accel_onnx_write_options){0}));
    accel_model_free(d->m);
}

static void begin(void)
{
    data_begin();
    snprintf(in, sizeof in, "%s/m.onnx", data_dir);
    snprintf(out, sizeof out, "%s/p.onnx", data_dir);
    snprintf(spec, sizeof spec, "idx:%s/i,%s/l", data_dir, data_dir);
    static unsigned char images[16 + SAMPLES * PIXELS] = {0, 0, 8, 3,    0, 0, 0, SAMPLES,
                                                          0, 0, 0, SIDE, 0, 0, 0, SIDE};
    struct accel_rng r = accel_rng_init(4);
    for (int i = 0; i < SAMPLES * PIXELS; i++)
        images[16 + i] = (unsigned char)(accel_rng_next(&r) & 255);
    data_save("i", images, sizeof images);
    data_save_idx("l", 1, (int[]){SAMPLES}, 3);
}

static void end(void)
{
    job_clear();
    data_end();
}

static float *elements(const struct accel_draft *d, const char *name)
{
    struct accel_value *v = accel_value_find(d->m->graph, name);
    ck_assert_ptr_nonnull(v);
    return (float *)(uintptr_t)v->tensor->data;
}

/* A perceptron whose hidden units 8 to 15 are ten times units 0 to 7: the small ones can go without
 * a loss, if the second layer learns of it. */
static enum accel_err build_twins(struct accel_draft *d)
{
    ACCEL_TRY(accel_draft_input(d, "input", 3, (int64_t[]){1, SIDE, SIDE}));
    ACCEL_TRY(accel_draft_flatten(d));
    ACCEL_TRY(accel_draft_gemm(d, "fc1", PIXELS, 16));
    ACCEL_TRY(accel_draft_plain(d, "", "Relu", NULL));
    ACCEL_TRY(accel_draft_gemm(d, "fc2", 16, 4));
    return accel_draft_finish(d, 4);
}

static void save_twins(void)
{
    struct accel_network w = {"twins", "", build_twins};
    struct accel_draft d = {.bias = true};
    ck_ok(accel_network_build(&d, &w, 1));
    float *fc1 = elements(&d, "fc1.weight"), *bias = elements(&d, "fc1.bias");
    for (int i = 0; i < 8 * PIXELS; i++)
        fc1[8 * PIXELS + i] = 10 * fc1[i];
    for (int i = 0; i < 8; i++)
        bias[8 + i] = 10 * bias[i];
    save_model(&d);
}

/* What the other kinds of layers are: with and without bias and batch norm, a residual, depthwise,
 * transposed, MatMul with an Add behind it. */
static enum accel_err build_mixed(struct accel_draft *d)
{
    ACCEL_TRY(accel_draft_input(d, "input", 3, (int64_t[]){1, SIDE, SIDE}));
    ACCEL_TRY(accel_draft_conv(d, "c1", (struct accel_draft_conv){1, 8, 3, 1, false, 1}));
    ACCEL_TRY(accel_draft_norm(d, "n1", 8));
    ACCEL_TRY(accel_draft_plain(d, "r1", "Relu", NULL));
    struct accel_value *skip = d->at;
    ACCEL_TRY(accel_draft_conv(d, "c2", (struct accel_draft_conv){8, 12, 3, 1, true, 1}));
    ACCEL_TRY(accel_draft_plain(d, "r2", "Relu", NULL));
    ACCEL_TRY(accel_draft_conv(d, "c3", (struct accel_draft_conv){12, 8, 3, 1, false, 1}));
    ACCEL_TRY(accel_draft_norm(d, "n3", 8));
    ACCEL_TRY(accel_draft_plain(d, "a", "Add", skip));
    ACCEL_TRY(accel_draft_plain(d, "r3", "Relu", NULL));
    ACCEL_TRY(accel_draft_conv(d, "dw", (struct accel_draft_conv){8, 8, 3, 1, true, 8}));
    ACCEL_TRY(accel_draft_plain(d, "r4", "Relu", NULL));
    ACCEL_TRY(accel_draft_up(d, "up", 8, 6));
    ACCEL_TRY(accel_draft_plain(d, "r5", "Relu", NULL));
    ACCEL_TRY(accel_draft_pool(d, "p", "MaxPool", 4, 4, 0));
    ACCEL_TRY(accel_draft_flatten(d));
    ACCEL_TRY(accel_draft_dense(d, "d1", 54, 20));
    ACCEL_TRY(accel_draft_plain(d, "r6", "Relu", NULL));
    ACCEL_TRY(accel_draft_gemm(d, "d2", 20, 5));
    return accel_draft_finish(d, 5);
}

static void save_mixed(void)
{
    struct accel_network w = {"mixed", "", build_mixed};
    struct accel_draft d = {.bias = true};
    ck_ok(accel_network_build(&d, &w, 2));
    float *mean = elements(&d, "n1.running_mean"), *scale = elements(&d, "n3.weight");
    for (int i = 0; i < 8; i++) {
        mean[i] = 0.1f * (float)i - 0.3f;
        scale[i] = 0.5f + 0.2f * (float)i;
    }
    save_model(&d);
}

#define CHANNELS                                                                                   \
    "\"pruner\":\"l2_norm\",\"config_list\":[{\"op_types\":[\"Conv\",\"Gemm\",\"MatMul\","         \
    "\"ConvTranspose\"],\"sparse_ratio\":0.5}]"
#define LEVEL                                                                                      \
    "\"config_list\":[{\"op_types\":[\"Conv\",\"Gemm\",\"MatMul\",\"ConvTranspose\"],"             \
    "\"sparse_ratio\":0.6}]"
#define FIT "\"repair\":\"least_squares\","

START_TEST(what_can_be_brought_back_exactly_is)
{
    begin();
    save_twins();
    ck_ok(prune("{" FIT CHANNELS "}", spec, "0"));
    ck_assert_double_gt(number("repair\":{\"samples\":120,\"error_before"), 1e-3);
    ck_assert_double_lt(number("repair\":{\"samples\":120,\"error_before"), 10);
    ck_assert_double_lt(number("error_after"), 1e-9);
    ck_assert_int_eq(count("\"status\":\"repaired\""), 1); /* nothing was cut before fc1 */
    ck_assert_int_eq(count("\"repaired\":true"), 2);
    ck_assert_int_eq(count("\"name\":\"fc2.bias\""), 1); /* changed: it has a row of its own */
    ck_assert_int_eq(count("\"reason\":\"repaired\""), 1);
    end();
}
END_TEST

START_TEST(every_kind_of_layer_is_repaired)
{
    double cut, masked;
    begin();
    save_mixed();
    ck_ok(prune("{" FIT CHANNELS "}", spec, "0"));
    cut = number("error_after");
    ck_assert_double_lt(cut, 0.3 * number("error_before"));
    ck_assert_int_eq(count("\"status\":\"repaired\""), 6); /* all but c1 */
    ck_ok(prune("{" FIT "\"shrink\":false," CHANNELS "}", spec, "0"));
    masked = number("error_after");
    ck_assert_double_eq_tol(masked, cut, 0.02 * cut); /* the same function, but for the ridge */
    ck_ok(prune("{" FIT LEVEL "}", spec, "0"));
    ck_assert_int_eq(count("\"status\":\"repaired\""), 7);
    ck_assert_double_lt(number("error_after"), 0.5 * number("error_before"));
    end();
}
END_TEST

START_TEST(zeros_stay_zeros_and_others_change)
{
    struct accel_model *m[2];
    begin();
    save_mixed();
    for (int i = 0; i < 2; i++) {
        ck_ok(prune(i ? "{" FIT LEVEL "}" : "{" LEVEL "}", i ? spec : NULL, "0"));
        ck_ok(accel_onnx_read(&m[i], out, &(struct accel_onnx_read_options){0}));
    }
    int64_t zeros = 0, changed = 0;
    for (size_t t = 0; t < m[0]->n_tensor; t++) {
        double *v[2];
        if (!accel_dtype_is_float(m[0]->tensor[t]->dtype) || m[0]->tensor[t]->rank < 2)
            continue;
        for (int i = 0; i < 2; i++)
            ck_ok(accel_tensor_values(&v[i], m[i]->tensor[t]));
        for (uint64_t i = 0; i < m[0]->tensor[t]->n; i++) {
            if (v[0][i] == 0)
                ck_assert_double_eq(v[1][i], 0);
            zeros += v[0][i] == 0;
            changed += v[0][i] != v[1][i];
        }
        accel_free(v[0]);
        accel_free(v[1]);
    }
    ck_assert_int_gt(zeros, 1000);
    ck_assert_int_gt(changed, 500);
    accel_model_free(m[0]);
    accel_model_free(m[1]);
    end();
}
END_TEST

START_TEST(the_seed_alone_decides_the_bytes)
{
    static char first[65536], second[65536];
    size_t n[3];
    begin();
    save_mixed();
    for (int i = 0; i < 3; i++) {
        ck_ok(prune("{" FIT LEVEL "}", spec, i == 2 ? "7" : "0"));
        FILE *f = fopen(out, "rb");
        n[i] = fread(i ? second : first, 1, sizeof first, f);
        fclose(f);
        if (i == 1) {
            ck_assert_uint_eq(n[0], n[1]);
            ck_assert_mem_eq(first, second, n[0]);
        }
    }
    ck_assert(memcmp(first, second, n[0]));
    end();
}
END_TEST

START_TEST(statistics_of_batch_norms_are_taken_anew)
{
    struct accel_model *m;
    double *variance;
    begin();
    save_mixed();
    ck_ok(prune("{\"bn_reestimate\":{\"batches\":2}," CHANNELS "}", spec, "0"));
    ck_assert_int_eq(count("\"reason\":\"new statistics\""), 2);
    ck_ok(accel_onnx_read(&m, out, &(struct accel_onnx_read_options){0}));
    ck_ok(accel_tensor_values(&variance, accel_value_find(m->graph, "n3.running_var")->tensor));
    for (int i = 0; i < 4; i++)
        ck_assert(variance[i] > 0 && variance[i] != 1);
    accel_free(variance);
    accel_model_free(m);
    ck_ok(prune("{" FIT "\"bn_reestimate\":{}," CHANNELS "}", spec, "0"));
    ck_assert_int_eq(count("new statistics"), 2); /* kept or not, it is told */
    end();
}
END_TEST

#define OF(name, pattern)                                                                          \
    "\"pruner\":\"" name "\"," pattern                                                             \
    "\"config_list\":[{\"op_types\":[\"Conv\",\"Gemm\",\"MatMul\",\"ConvTranspose\"]"
#define HALF ",\"sparse_ratio\":0.5}]"

START_TEST(scores_can_come_from_activations)
{
    static const char *const channels[] = {"{" OF("mean_activation", "") HALF "}",
                                           "{" OF("apoz", "") HALF "}",
                                           "{" OF("wanda", "\"pattern\":\"channel\",") HALF "}"};
    static const char *const weights[] = {"{" OF("wanda", "") HALF "}",
                                          "{" OF("sparsegpt", "") HALF "}",
                                          "{" OF("wanda", "\"pattern\":\"n:m\",") "}]}",
                                          "{" OF("sparsegpt", "\"pattern\":\"n:m\",") "}]}"};
    begin();
    save_mixed();
    for (int i = 0; i < 3; i++) {
        ck_ok(prune(channels[i], spec, "0"));
        ck_assert_int_ge(count("\"status\":\"pruned\""), 7);
    }
    for (int i = 0; i < 4; i++) {
        ck_ok(prune(weights[i], spec, "0"));
        ck_assert_int_eq(count("\"status\":\"pruned\""),
                         i < 2 ? 7 : 5); /* c1 and dw have one input channel */
        if (i < 2)
            ck_assert_double_gt(number("achieved"), 0.4);
    }
    end();
}
END_TEST

START_TEST(what_is_missing_is_said)
{
    char few[200];
    begin();
    save_twins();
    snprintf(few, sizeof few, "%s?limit=9", spec);
    ck_fails(prune("{" FIT CHANNELS "}", NULL, "0"), ACCEL_EARG, "repair needs --data");
    ck_fails(prune("{\"bn_reestimate\":{}," CHANNELS "}", NULL, "0"), ACCEL_EARG,
             "bn_reestimate needs --data");
    ck_fails(prune("{" FIT CHANNELS "}", few, "0"), ACCEL_EARG, "10 samples");
    ck_fails(prune("{" OF("wanda", "") HALF "}", NULL, "0"), ACCEL_EARG,
             "pruner 'wanda' needs --data");
    ck_fails(prune("{" OF("sparsegpt", "\"pattern\":\"channel\",") HALF "}", spec, "0"), ACCEL_EARG,
             "needs \"pattern\"");
    ck_fails(prune("{" OF("wanda", "") ",\"global_group_id\":1" HALF "}", spec, "0"), ACCEL_EARG,
             "global_group_id is for");
    ck_ok(prune("{\"repair\":\"none\"," CHANNELS "}", NULL, "0"));
    ck_assert_int_eq(count("\"repair\":{"), 0);
    end();
}
END_TEST

START_TEST(a_failed_allocation_is_told_and_leaks_nothing)
{
    enum accel_err err = ACCEL_ENOMEM;
    begin();
    save_twins();
    for (long nth = 1; err; nth += 1 + nth / 20) {
        accel_alloc_fail_at(nth, false);
        err = prune("{" FIT CHANNELS "}", spec, "0");
        accel_alloc_fail_at(0, false);
        ck_assert(!err || err == ACCEL_ENOMEM);
    }
    end();
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("repair");
    TCase *t = tcase_create("repair");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, what_can_be_brought_back_exactly_is);
    tcase_add_test(t, every_kind_of_layer_is_repaired);
    tcase_add_test(t, zeros_stay_zeros_and_others_change);
    tcase_add_test(t, the_seed_alone_decides_the_bytes);
    tcase_add_test(t, statistics_of_batch_norms_are_taken_anew);
    tcase_add_test(t, scores_can_come_from_activations);
    tcase_add_test(t, what_is_missing_is_said);
    tcase_add_test(t, a_failed_allocation_is_told_and_leaks_nothing);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
