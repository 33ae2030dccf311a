/* The option parser, as each command sees it. */
#include "tests/t.h"

#include "tools/tools.h"

#include <string.h>

static const struct accel_option options[] = {
    {"sort", 0, ACCEL_OPTION_TEXT, offsetof(struct accel_options, sort), "COLUMN", "order", 0, 0},
    {"format", 'f', ACCEL_OPTION_CHOICE, offsetof(struct accel_options, format), "table|csv", "how",
     0, 0},
    {0},
};
static const char *const unused[] = {"report", NULL};
static const char *const later[] = {"latency", "a device to measure on", NULL};

static enum accel_err nothing(struct accel_job *job)
{
    (void)job;
    return ACCEL_OK;
}

static const struct accel_command command = {.name = "show",
                                             .usage = "MODEL",
                                             .summary = "Shows a thing.",
                                             .options = options,
                                             .unused = unused,
                                             .later = later,
                                             .min_args = 1,
                                             .max_args = 1,
                                             .run = nothing};
static struct accel_job job;

static void tidy(void)
{
    accel_options_clear(&job.opt);
    accel_log_clear(&job.log);
    accel_str_clear(&job.out);
    job = (struct accel_job){0};
}

/* Parses words separated by blanks. */
static enum accel_err parse(const char *line)
{
    static char copy[256], *argv[20];
    int argc = 0;
    tidy();
    job.command = &command;
    for (char *w = strtok(strcpy(copy, line), " "); w; w = strtok(NULL, " "))
        argv[argc++] = w;
    return accel_options_parse(&job, argc, argv);
}

START_TEST(options_and_arguments_come_in_any_order)
{
    ck_ok(parse("--seed 7 m.onnx -o out --set a=1 --set=b=2 -qv --threads=3 -fcsv"));
    ck_assert_int_eq(job.opt.seed, 7);
    ck_assert_int_eq(job.opt.threads, 3);
    ck_assert_str_eq(job.opt.arg.at[0], "m.onnx");
    ck_assert_str_eq(job.opt.output, "out");
    ck_assert_str_eq(job.opt.set.at[1], "b=2");
    ck_assert_str_eq(job.opt.format, "csv");
    ck_assert(job.opt.quiet && job.opt.verbose && !job.opt.json);
}
END_TEST

START_TEST(two_dashes_end_the_options)
{
    ck_ok(parse("-- --json"));
    ck_assert_str_eq(job.opt.arg.at[0], "--json");
    ck_assert(!job.opt.json);
    ck_ok(parse("-"));
    ck_assert_str_eq(job.opt.arg.at[0], "-");
}
END_TEST

START_TEST(a_misspelt_option_gets_the_near_name)
{
    ck_fails(parse("m --jsno"), ACCEL_EARG, "unknown option '--jsno', did you mean '--json'?");
    ck_fails(parse("m --zzzzzzzz"), ACCEL_EARG, "see accel-show --help");
    ck_fails(parse("m -x"), ACCEL_EARG, "unknown option '-x'");
    ck_fails(parse("m -qx"), ACCEL_EARG, "unknown option '-qx'");
    ck_fails(parse("m --o x"), ACCEL_EARG, "unknown option '--o'");
}
END_TEST

START_TEST(values_are_checked)
{
    ck_fails(parse("m -o"), ACCEL_EARG, "option '-o' needs a value (FILE)");
    ck_fails(parse("m --threads many"), ACCEL_EARG, "'many'");
    ck_fails(parse("m --threads 0"), ACCEL_EARG, "between 1 and 65536, not 0");
    ck_fails(parse("m --seed -1"), ACCEL_EARG, "at least 0, not -1");
    ck_fails(parse("m --seed 99999999999999999999"), ACCEL_EARG, "at least 0");
    ck_fails(parse("m --seed 1e3"), ACCEL_EARG, "whole number, not '1e3'");
    ck_fails(parse("m --format xml"), ACCEL_EARG, "takes table|csv, not 'xml'");
    ck_fails(parse("m --format tab"), ACCEL_EARG, "takes table|csv, not 'tab'");
    ck_fails(parse("m --json=yes"), ACCEL_EARG, "takes no value");
    ck_fails(parse("m --output="), ACCEL_EARG, "empty");
}
END_TEST

START_TEST(arguments_are_counted)
{
    ck_fails(parse("--quiet"), ACCEL_EARG, "argument is missing");
    ck_fails(parse("a b"), ACCEL_EARG, "one argument too many, 'b'");
    ck_ok(parse("--help"));
}
END_TEST

START_TEST(a_failure_knows_whether_json_was_asked_for)
{
    ck_fails(parse("--nope m --json"), ACCEL_EARG, "--nope");
    ck_assert(job.opt.json);
}
END_TEST

START_TEST(a_device_that_is_not_there_is_its_own_error)
{
    ck_ok(parse("m --device cpu"));
    ck_fails(parse("m --device cuda:1"), ACCEL_EDEVICE, "CUDA is not built in");
    ck_fails(parse("m --device cuda:x"), ACCEL_EARG, "'x'");
    ck_fails(parse("m --device tpu"), ACCEL_EARG, "cpu or cuda[:N], not 'tpu'");
}
END_TEST

START_TEST(nothing_is_ignored_in_silence)
{
    ck_ok(parse("m --report r.html"));
    ck_assert_uint_eq(job.log.n, 1);
    ck_assert_str_eq(job.log.text[0], "option '--report' means nothing to accel-show");
    ck_fails(parse("m --latency"), ACCEL_EARG, "'--latency' needs a device to measure on");
}
END_TEST

START_TEST(help_fits_80_columns_and_names_every_option)
{
    accel_options_help(&job.out, &command);
    const char *text = accel_str_get(&job.out);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        ck_assert_uint_le(strcspn(line, "\n"), 80);
    }
    ck_assert(strstr(text, "--sort COLUMN") && strstr(text, "--input-shape") &&
              strstr(text, "  -f, --format table|csv"));
}
END_TEST

START_TEST(numbers_are_read_whole)
{
    int64_t v = 0;
    ck_ok(accel_number_read(&v, "-12", -20, 20, "n"));
    ck_assert_int_eq(v, -12);
    ck_fails(accel_number_read(&v, " 1", 0, 9, "n"), ACCEL_EARG, "' 1'");
    ck_fails(accel_number_read(&v, "", 0, 9, "n"), ACCEL_EARG, "n needs a whole number");
}
END_TEST

START_TEST(a_caret_stands_below_the_column)
{
    ck_ok(parse("m"));
    job.opt.config = "[\n {\"é中\":\t1}]\n";
    accel_job_caret(&job.out, &job, "--config:2:3: no");
    ck_assert_str_eq(accel_str_get(&job.out), "     {\"é中\": 1}]\n      ^\n");
    accel_str_clear(&job.out);
    accel_job_caret(&job.out, &job, "--config:2:6: no"); /* behind a wide character */
    ck_assert_str_eq(accel_str_get(&job.out), "     {\"é中\": 1}]\n          ^\n");
    accel_str_clear(&job.out);
    accel_job_caret(&job.out, &job, "m.onnx: no node");
    accel_job_caret(&job.out, &job, "--config:99:1: no");
    ck_assert_uint_eq(job.out.len, 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("options");
    TCase *t = tcase_create("parser");
    tcase_add_checked_fixture(t, NULL, tidy);
    tcase_add_test(t, options_and_arguments_come_in_any_order);
    tcase_add_test(t, two_dashes_end_the_options);
    tcase_add_test(t, a_misspelt_option_gets_the_near_name);
    tcase_add_test(t, values_are_checked);
    tcase_add_test(t, arguments_are_counted);
    tcase_add_test(t, a_failure_knows_whether_json_was_asked_for);
    tcase_add_test(t, a_device_that_is_not_there_is_its_own_error);
    tcase_add_test(t, nothing_is_ignored_in_silence);
    tcase_add_test(t, help_fits_80_columns_and_names_every_option);
    tcase_add_test(t, numbers_are_read_whole);
    tcase_add_test(t, a_caret_stands_below_the_column);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
