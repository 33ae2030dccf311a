/* cmd_compare.c - accel-compare: two models on the same inputs, and how far their outputs are
 * apart. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tools/difference.h"

#define AT(field) offsetof(struct accel_options, field)

enum { BATCH = 64 };

static const struct accel_option options[] = {
    {"input", 0, ACCEL_OPTION_LIST, AT(input), "NAME=FILE.npy",
     "values of an input; random ones where none are given", 0, 0},
    {"data", 0, ACCEL_OPTION_TEXT, AT(data), "SPEC",
     "all samples of a data set instead: KIND[:PATH][?key=value&...]", 0, 0},
    {"layers", 0, ACCEL_OPTION_FLAG, AT(layers), NULL,
     "compare the values inside too, where both models have one of that name", 0, 0},
    {"atol", 0, ACCEL_OPTION_TEXT, AT(atol), "X", "absolute difference allowed; more is exit 3", 0,
     0},
    {"rtol", 0, ACCEL_OPTION_TEXT, AT(rtol), "X",
     "difference allowed as a share of A's value; more is exit 3", 0, 0},
    {"max-steps", 0, ACCEL_OPTION_NUMBER, AT(max_steps), "N",
     "turns that all loops may take together (default 10 million)", 1, INT64_MAX},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    ACCEL_OPTION_CPUS,
    {0},
};
static const char *const unused[] = {"output", "config", "set", "report", "dry-run", NULL};

static enum accel_err tolerance(double *out, const char *text, const char *name)
{
    char *end;
    *out = INFINITY;
    if (!text)
        return ACCEL_OK;
    errno = 0;
    *out = strtod(text, &end);
    if (errno || end == text || *end || !(*out >= 0))
        return accel_fail(ACCEL_EARG, "option '--%s' needs a number of 0 or more, not '%.100s'",
                          name, text);
    return ACCEL_OK;
}

static void show_json(struct accel_job *job, const struct accel_differences *d)
{
    struct accel_json j = {.out = job->out};
    accel_json_object(&j, NULL);
    accel_json_text(&j, "command", "compare");
    accel_json_text(&j, "version", ACCEL_VERSION);
    if (d->samples)
        accel_json_int(&j, "samples", d->samples);
    accel_differences_json(&j, d);
    accel_json_end(&j, '}');
    accel_str_add(&j.out, "\n");
    job->out = j.out;
}

static enum accel_err compare(struct accel_job *job, struct accel_feed *a, struct accel_feed *b,
                              struct accel_layers *layers)
{
    struct accel_differences d = {0};
    struct accel_batches data = {0};
    enum accel_err err = tolerance(&d.atol, job->opt.atol, "atol");
    if (!err)
        err = tolerance(&d.rtol, job->opt.rtol, "rtol");
    if (!err && job->opt.data && job->opt.input.n)
        err = accel_fail(ACCEL_EARG, "--input and --data contradict each other");
    if (!err && job->opt.data) {
        err = accel_batches_open(&data, job, job->opt.data, ACCEL_SPLIT_TEST, a, BATCH);
    } else if (!err) {
        err = accel_feed_read(a, &job->opt.input);
        if (!err)
            err = accel_feed_random(a, (uint64_t)job->opt.seed);
    }
    if (!err)
        err = accel_differences_run(&d, &job->log, a, b, job->opt.data ? &data : NULL, layers);
    if (!err)
        err = accel_differences_check(&d);
    if (!err && job->opt.json)
        show_json(job, &d);
    else if (!err)
        accel_differences_text(&job->out, &d, job->width, job->color);
    accel_differences_clear(&d);
    accel_batches_close(&data);
    return err;
}

static enum accel_err run(struct accel_job *job)
{
    struct accel_plan_options of_a = {.max_steps = job->opt.max_steps}, of_b = of_a;
    struct accel_feed a = {0}, b = {0};
    struct accel_layers *layers = NULL;
    enum accel_err err = ACCEL_OK;
    if (job->opt.layers)
        err = accel_layers_new(&layers);
    of_a.watch_ctx = of_b.watch_ctx = layers;
    if (layers) {
        of_a.watch = accel_layers_keep;
        of_b.watch = accel_layers_match;
    }
    if (!err)
        err = accel_feed_open(&a, job, job->opt.arg.at[0], &of_a);
    if (!err)
        err = accel_feed_open(&b, job, job->opt.arg.at[1], &of_b);
    if (!err)
        err = compare(job, &a, &b, layers);
    accel_layers_free(layers);
    accel_feed_close(&a);
    accel_feed_close(&b);
    return err;
}

const struct accel_command accel_command_compare = {
    .name = "compare",
    .usage = "A B [--input NAME=FILE.npy]... [--data SPEC] [options]",
    .summary =
        "Runs two models on the same inputs, random ones where none are given, and shows the "
        "largest differences of their outputs.",
    .options = options,
    .unused = unused,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
