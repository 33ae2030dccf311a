/* accel-run, -eval, -compare, -bench and accel-prune --check as a whole, without processes. The
 * model is accel-new's mlp4 (input [N, 1, 28, 28], logits [N, 10]); the data are IDX files. */
#include "tests/data_t.h"

#include "base/file.h"
#include "data/npy.h"
#include "onnx/onnx.h"
#include "tools/new_draft.h"
#include "tools/tools.h"

extern const struct accel_command accel_command_run, accel_command_eval, accel_command_compare,
    accel_command_bench, accel_command_prune;

#define HALF "[{\"op_types\":[\"Linear\"],\"sparse_ratio\":0.5}]"

static struct accel_job job;
static char in[96], out[96], pair[160], few[176];

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
    data_begin();
    snprintf(in, sizeof in, "%s/m.onnx", data_dir);
    snprintf(out, sizeof out, "%s/p.onnx", data_dir);
    snprintf(pair, sizeof pair, "idx:%s/i,%s/l", data_dir, data_dir);
    snprintf(few, sizeof few, "%s?limit=2", pair);
    ck_ok(accel_network_build(&draft, w, 1));
    ck_ok(accel_onnx_write(&written, draft.m, in, &(struct accel_onnx_write_options){0}));
    accel_model_free(draft.m);
    static unsigned char images[16 + 5 * 784] = {0, 0, 8, 3, 0, 0, 0, 5, 0, 0, 0, 28, 0, 0, 0, 28};
    for (int i = 0; i < 5 * 784; i++)
        images[16 + i] = (unsigned char)(i * i % 255);
    data_save("i", images, sizeof images);
    data_save_idx("l", 1, (int[]){5}, 3);
}

static void end(void)
{
    job_clear();
    data_end();
}

static enum accel_err call(const struct accel_command *c, const char *const *words)
{
    char *argv[16];
    int argc = 0;
    while (*words)
        argv[argc++] = (char *)(uintptr_t)*words++;
    job_clear();
    job.command = c;
    enum accel_err err = accel_options_parse(&job, argc, argv);
    return err ? err : c->run(&job);
}
#define CALL(name, ...) call(&accel_command_##name, (const char *const[]){__VA_ARGS__, NULL})

static bool says(const char *word)
{
    return strstr(accel_str_get(&job.out), word) != NULL;
}

/* The number behind "key": in the JSON that came out. */
static double number(const char *key)
{
    char word[64];
    snprintf(word, sizeof word, "\"%s\":", key);
    const char *at = strstr(accel_str_get(&job.out), word);
    ck_assert_msg(at != NULL, "no %s in %s", key, accel_str_get(&job.out));
    return at ? atof(at + strlen(word)) : NAN;
}

START_TEST(eval_scores_a_data_set)
{
    ck_ok(CALL(eval, in, "--data", pair, "--json"));
    ck_assert(number("samples") == 5 && number("classes") == 10);
    ck_assert(number("loss") > 1 && number("loss") < 5); /* fresh weights: about log(10) */
    ck_assert(number("top5") >= number("top1"));
    ck_ok(CALL(eval, in, "--data", pair, "-v"));
    ck_assert(says("samples  5") && says("top-1") && says("as 9"));
    ck_ok(CALL(eval, in, "--data", few, "--json", "-v"));
    ck_assert(number("samples") == 2 && says("\"confusion\":[["));
}
END_TEST

START_TEST(the_batch_does_not_change_the_score)
{
    char one[300], two[300];
    snprintf(one, sizeof one, "%s?batch=1", pair);
    snprintf(two, sizeof two, "%s?batch=2", pair); /* 2 + 2 + 1 */
    ck_ok(CALL(eval, in, "--data", pair, "--json"));
    double loss = number("loss"), top1 = number("top1");
    ck_ok(CALL(eval, in, "--data", one, "--json"));
    ck_assert(fabs(number("loss") - loss) < 1e-6 && number("top1") == top1);
    ck_ok(CALL(eval, in, "--data", two, "--json"));
    ck_assert(fabs(number("loss") - loss) < 1e-6 && number("samples") == 5);
    /* A fixed batch of 3: the last run is filled up, and what fills it is not scored. */
    ck_ok(CALL(eval, in, "--data", pair, "--json", "--input-shape", "input:3x1x28x28"));
    ck_assert(fabs(number("loss") - loss) < 1e-6 && number("samples") == 5);
    ck_fails(CALL(eval, in, "--data", one, "--input-shape", "input:3x1x28x28"), ACCEL_EARG,
             "takes batches of 3, not batch=1");
}
END_TEST

START_TEST(data_that_do_not_fit_are_named)
{
    ck_fails(CALL(eval, in), ACCEL_EARG, "--data is missing");
    ck_fails(CALL(eval, in, "--data", "idx:a?limt=1"), ACCEL_EARG, "--data: ");
    ck_fails(CALL(eval, in, "--data", "{\"kind\": \"idx\", \"limt\": 1}"), ACCEL_EARG,
             "--data:1:17: ");
    data_save_text("t.csv", "a,label\n1,2\n");
    char csv[128];
    snprintf(csv, sizeof csv, "csv:%s/t.csv", data_dir);
    ck_fails(CALL(eval, in, "--data", csv), ACCEL_EARG, "input 'input' has rank 2");
    data_save_idx("l", 1, (int[]){5}, 30);
    unsigned char labels[13] = {0, 0, 8, 1, 0, 0, 0, 5, 1, 2, 3, 10, 4};
    data_save("l", labels, sizeof labels);
    ck_fails(CALL(eval, in, "--data", pair), ACCEL_EMODEL,
             "output 'logits': sample 3 has label 10, the model has 10 classes");
}
END_TEST

START_TEST(flat_samples_and_lone_axes_find_their_shape)
{
    char flat[300];
    static float x[2 * 784];
    struct accel_npy a = {.dim = (int64_t[]){2, 28, 28}, .data = x};
    a.a = (struct accel_array){ACCEL_F32, 3, a.dim, 2 * 784, x};
    ck_assert_int_eq(mkdir(data_path("n"), 0777), 0);
    ck_ok(accel_npy_write(data_path("n/input.npy"), &a.a));
    a.a = (struct accel_array){ACCEL_I64, 1, a.dim, 2, (int64_t[]){3, 4}};
    ck_ok(accel_npy_write(data_path("n/label.npy"), &a.a));
    snprintf(flat, sizeof flat, "npy:%s/n", data_dir);
    ck_ok(CALL(eval, in, "--data", flat, "--json")); /* [2,28,28] into [N,1,28,28] */
    ck_assert(number("samples") == 2);
    ck_assert_int_eq(rename(data_path("n/input.npy"), data_path("n/inptu.npy")), 0);
    ck_fails(CALL(eval, in, "--data", flat), ACCEL_EARG, "'input' gets nothing");
    unlink(data_path("n/label.npy"));
    ck_assert_int_eq(rename(data_path("n/inptu.npy"), data_path("n/input.npy")), 0);
    ck_fails(CALL(eval, in, "--data", flat), ACCEL_EARG, "the data set has no labels");
}
END_TEST

START_TEST(compare_finds_what_pruning_changed)
{
    ck_ok(CALL(prune, in, "--config", HALF, "-o", out, "--check", "--json"));
    double abs = number("max_abs_difference"), largest = number("max_abs_value");
    ck_assert(says("\"check\":{\"outputs\":{\"logits\"") && abs > 1e-3);
    ck_ok(CALL(compare, in, out, "--json")); /* the same from the files, same random inputs */
    ck_assert(number("max_abs_difference") == abs && number("max_abs_value") == largest);
    ck_ok(CALL(compare, in, in, "--atol", "0"));
    ck_fails(CALL(compare, in, out, "--atol", "1e-6"), ACCEL_ETARGET, "of 10 elements differ");
    ck_ok(CALL(compare, in, out, "--data", pair, "--json"));
    ck_assert(number("samples") == 5 && number("elements") == 50);
    ck_fails(CALL(compare, in, out, "--data", pair, "--input", "input=x.npy"), ACCEL_EARG,
             "contradict");
    ck_ok(CALL(compare, in, out, "--layers", "--data", few, "--json"));
    ck_assert(says("\"layers\":[{\"name\":\"/Flatten_output_0\",\"elements\":1568,"
                   "\"max_abs_difference\":0,"));
    ck_ok(CALL(compare, in, out, "--layers"));
    ck_assert(says("/layer1/Gemm_output_0") && says("argmax equal"));
}
END_TEST

START_TEST(check_leaves_the_run_as_it_was)
{
    ck_ok(CALL(prune, in, "--config", HALF, "-o", out));
    unsigned char *a, *b;
    struct accel_file *f;
    ck_ok(accel_file_open(&f, out));
    size_t n = f->size;
    a = malloc(n), b = malloc(n);
    ck_ok(accel_file_read(f, 0, n, a));
    accel_file_close(f);
    ck_ok(CALL(prune, in, "--config", HALF, "-o", out, "--check", "--data", pair));
    ck_assert(says("Old and new model on the same inputs") && says("logits"));
    ck_ok(accel_file_open(&f, out));
    ck_assert_uint_eq(f->size, n);
    ck_ok(accel_file_read(f, 0, n, b));
    accel_file_close(f);
    ck_assert_mem_eq(a, b, n);
    free(a);
    free(b);
    ck_ok(CALL(prune, in, "--config", HALF, "-o", data_path("none.onnx"), "--check", "--dry-run"));
    ck_assert_int_ne(access(data_path("none.onnx"), F_OK), 0);
    ck_fails(CALL(prune, in, "--config", HALF, "--data", pair), ACCEL_EARG, "--data needs --check");
    ck_fails(CALL(prune, in, "--config", HALF, "-o", data_path("none.onnx"), "--check", "--data",
                  "idx:a,b"),
             ACCEL_EMODEL, "'a'");
    ck_assert_int_ne(access(data_path("none.onnx"), F_OK), 0);
}
END_TEST

START_TEST(bench_tells_times_and_shares)
{
    const char *trace = data_path("t.json");
    ck_ok(
        CALL(bench, in, "--seconds", "0", "--batch", "3", "--json", "--profile", "--trace", trace));
    ck_assert(number("batch") == 3 && number("steps") >= 3 && number("macs") == 3 * 242304);
    ck_assert(number("min") <= number("median") && number("plan_bytes") > 0);
    ck_assert(says("\"profile\":[{\"node\":\"/Flatten\",\"op_type\":\"Flatten\""));
    ck_assert_int_eq(access(trace, R_OK), 0);
    ck_ok(CALL(bench, in, "--seconds", "0", "--profile"));
    ck_assert(says("forward, batch 1, f32") && says("GFLOP/s") && says("/layer1/Gemm"));
}
END_TEST

START_TEST(wrong_use_of_bench_is_named)
{
    ck_fails(CALL(bench, in, "--seconds", "-1"), ACCEL_EARG, "not '-1'");
    ck_fails(CALL(bench, in, "--train"), ACCEL_EARG, "'--train' needs training");
    ck_fails(CALL(bench, in, "--precision", "fp16"), ACCEL_EDEVICE, "precision fp16");
    ck_fails(CALL(bench, in, "--seconds", "0", "--trace", "/nowhere/t.json"), ACCEL_EIO,
             "/nowhere");
    ck_fails(CALL(bench, in, "--input-shape", "input:2x1x28x28", "--batch", "3"), ACCEL_EARG,
             "input");
}
END_TEST

START_TEST(run_writes_what_data_sets_read)
{
    char folder[96], spec[128];
    snprintf(folder, sizeof folder, "%s/o", data_dir);
    snprintf(spec, sizeof spec, "npy:%s", folder);
    ck_ok(CALL(run, in, "--dim", "N=4", "-o", folder));
    struct accel_dataset *d;
    ck_ok(data_open(&d, "npy:%/o"));
    ck_assert(d->n == 4 && d->input->dim[0] == 10);
    ck_assert_str_eq(d->input->name, "logits");
    accel_dataset_close(d);
}
END_TEST

START_TEST(every_failed_allocation_of_a_command_is_an_error)
{
    static const struct accel_command *const list[] = {&accel_command_eval, &accel_command_compare,
                                                       &accel_command_bench, &accel_command_prune};
    const char *const words[][9] = {
        {in, "--data", few, "-v", NULL},
        {in, in, "--layers", "--data", few, "--json", NULL},
        {in, "--seconds", "0", "--profile", NULL},
        {in, "--config", HALF, "--check", "--dry-run", "--json", NULL},
    };
    for (size_t c = 0; c < sizeof list / sizeof *list; c++)
        for (long nth = 1;; nth += nth < 300 ? 1 : 7) {
            ck_assert_int_lt(nth, 20000);
            accel_alloc_fail_at(nth, false);
            enum accel_err err = call(list[c], words[c]);
            bool reached = accel_alloc_count() >= nth;
            accel_alloc_fail_at(0, false);
            ck_assert_msg(!err || err == ACCEL_ENOMEM, "%s, allocation %ld: %s", list[c]->name, nth,
                          accel_errmsg());
            if (!reached) {
                ck_ok(err);
                break;
            }
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("run_commands");
    TCase *t = tcase_create("run, eval, compare, bench");
    tcase_set_timeout(t, 250);
    tcase_add_checked_fixture(t, begin, end);
    tcase_add_test(t, eval_scores_a_data_set);
    tcase_add_test(t, the_batch_does_not_change_the_score);
    tcase_add_test(t, data_that_do_not_fit_are_named);
    tcase_add_test(t, flat_samples_and_lone_axes_find_their_shape);
    tcase_add_test(t, compare_finds_what_pruning_changed);
    tcase_add_test(t, check_leaves_the_run_as_it_was);
    tcase_add_test(t, bench_tells_times_and_shares);
    tcase_add_test(t, wrong_use_of_bench_is_named);
    tcase_add_test(t, run_writes_what_data_sets_read);
    tcase_add_test(t, every_failed_allocation_of_a_command_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
