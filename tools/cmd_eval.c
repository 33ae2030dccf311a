/* cmd_eval.c - accel-eval: a model against the labels of a data set. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "tools/batches.h"
#include "tools/evaluate.h"
#include "tools/table.h"

#define AT(field) offsetof(struct accel_options, field)

enum { BATCH = 64, SHOWN = 16 /* classes: more make no readable square */ };

static const struct accel_option options[] = {
    {"data", 0, ACCEL_OPTION_TEXT, AT(data), "SPEC",
     "data set: KIND[:PATH][?key=value&...], such as 'fashion-mnist?mean=0.286&std=0.353'", 0, 0},
    {"max-steps", 0, ACCEL_OPTION_NUMBER, AT(max_steps), "N",
     "turns that all loops may take together (default 10 million)", 1, INT64_MAX},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    ACCEL_OPTION_CPUS,
    {0},
};
static const char *const unused[] = {"output", "config", "set", "report", "dry-run", NULL};

static void class_text(char buf[24], const struct accel_dataset *d, int64_t c)
{
    if (c < d->n_class_name)
        snprintf(buf, 24, "%.23s", d->class_name[c]);
    else
        snprintf(buf, 24, "%lld", (long long)c);
}

/* Few classes: the whole square, labels down, predictions across. */
static void show_square(struct accel_job *job, const struct accel_evaluation *s,
                        const struct accel_dataset *d)
{
    struct accel_column column[SHOWN + 3] = {{"label", false, true}};
    char title[SHOWN][8], name[24];
    struct accel_table t;
    int64_t n = s->n_class;
    for (int64_t c = 0; c < n; c++) {
        snprintf(title[c], sizeof title[c], "as %d", (int)c);
        column[c + 1] = (struct accel_column){title[c], true, false};
    }
    column[n + 1] = (struct accel_column){"right", true, false};
    accel_table_init(&t, column);
    for (int64_t r = 0; r < n; r++) {
        int64_t sum = 0;
        char share[32];
        class_text(name, d, r);
        accel_table_add(&t, r < d->n_class_name ? "%2d %s" : "%d", (int)r, name);
        for (int64_t c = 0; c < n; c++) {
            sum += s->confusion[r * n + c];
            accel_table_add(&t, "%lld", (long long)s->confusion[r * n + c]);
        }
        accel_table_add(&t, "%s",
                        accel_text_share(share, sum ? (double)s->confusion[r * n + r] / (double)sum
                                                    : (double)NAN));
    }
    accel_str_add(&job->out, "\n");
    accel_table_text(&job->out, &t, job->width, job->color);
    job->out.failed = job->out.failed || t.failed;
    accel_table_clear(&t);
}

static const struct accel_column pair_columns[] = {
    {"label", false, true}, {"taken for", false, true}, {"samples", true, false}, {0}};

/* Many classes: the pairs that are mistaken for each other most often. */
static void show_pairs(struct accel_job *job, struct accel_evaluation *s,
                       const struct accel_dataset *d)
{
    struct accel_table t;
    int64_t n = s->n_class;
    char a[24], b[24];
    accel_table_init(&t, pair_columns);
    for (int row = 0; row < SHOWN; row++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n * n; i++)
            if (i / n != i % n && s->confusion[i] > 0 &&
                (best < 0 || s->confusion[i] > s->confusion[best]))
                best = i;
        if (best < 0)
            break;
        class_text(a, d, best / n);
        class_text(b, d, best % n);
        accel_table_add(&t, "%s", a);
        accel_table_add(&t, "%s", b);
        accel_table_add(&t, "%lld", (long long)s->confusion[best]);
        s->confusion[best] = 0;
    }
    accel_str_add(&job->out, "\n");
    accel_table_text(&job->out, &t, job->width, job->color);
    job->out.failed = job->out.failed || t.failed;
    accel_table_clear(&t);
}

static void show_text(struct accel_job *job, struct accel_evaluation *s,
                      const struct accel_dataset *d)
{
    char n[32];
    accel_str_addf(&job->out, "samples  %s\n", accel_text_count(n, s->n));
    if (d->label_kind == ACCEL_LABEL_VALUE) {
        double mse = s->squares / (double)s->n_value;
        accel_str_addf(&job->out, "mse      %.6g\nrmse     %.6g\nmae      %.6g\n", mse, sqrt(mse),
                       s->gaps / (double)s->n_value);
    } else {
        accel_str_addf(&job->out, "loss     %.4f\n", accel_score_loss(s));
        accel_str_addf(&job->out, "top-1    %.2f %%\n", 100.0 * (double)s->n_top1 / (double)s->n);
        if (s->n_class > 5)
            accel_str_addf(&job->out, "top-5    %.2f %%\n",
                           100.0 * (double)s->n_top5 / (double)s->n);
    }
    if (s->confusion)
        s->n_class <= SHOWN ? show_square(job, s, d) : show_pairs(job, s, d);
}

static void show_json(struct accel_job *job, const struct accel_evaluation *s,
                      const struct accel_dataset *d)
{
    struct accel_json j = {.out = job->out};
    accel_json_object(&j, NULL);
    accel_json_text(&j, "command", "eval");
    accel_json_text(&j, "version", ACCEL_VERSION);
    accel_json_int(&j, "samples", s->n);
    if (d->label_kind == ACCEL_LABEL_VALUE) {
        accel_json_number(&j, "mse", s->squares / (double)s->n_value);
        accel_json_number(&j, "mae", s->gaps / (double)s->n_value);
    } else {
        accel_json_number(&j, "loss", accel_score_loss(s));
        accel_json_number(&j, "top1", (double)s->n_top1 / (double)s->n);
        accel_json_number(&j, "top5", (double)s->n_top5 / (double)s->n);
        accel_json_int(&j, "classes", s->n_class);
    }
    accel_json_int(&j, "nan", s->n_nan);
    if (s->confusion) {
        accel_json_array(&j, "confusion");
        for (int64_t r = 0; r < s->n_class; r++) {
            accel_json_array(&j, NULL);
            for (int64_t c = 0; c < s->n_class; c++)
                accel_json_int(&j, NULL, s->confusion[r * s->n_class + c]);
            accel_json_end(&j, ']');
        }
        accel_json_end(&j, ']');
    }
    accel_json_array(&j, "warnings");
    for (size_t i = 0; i < job->log.n; i++)
        accel_json_text(&j, NULL, job->log.text[i]);
    accel_json_end(&j, ']');
    accel_json_end(&j, '}');
    accel_str_add(&j.out, "\n");
    job->out = j.out;
}

static enum accel_err run(struct accel_job *job)
{
    const struct accel_plan_options opt = {.max_steps = job->opt.max_steps};
    struct accel_batches b = {0};
    struct accel_feed f;
    struct accel_evaluation s = {.want_confusion = job->opt.verbose};
    if (!job->opt.data)
        return accel_fail(ACCEL_EARG, "--data is missing: accel-eval %s", job->command->usage);
    accel_job_note(job, "start");
    ACCEL_TRY(accel_feed_open(&f, job, job->opt.arg.at[0], &opt));
    accel_job_note(job, "model read");
    enum accel_err err = accel_batches_open(&b, job, job->opt.data, ACCEL_SPLIT_TEST, &f, BATCH);
    accel_job_note(job, "data read");
    if (!err)
        err = accel_evaluate(&s, job, &f, &b, true);
    accel_job_note(job, "scored");
    if (!err && s.n_nan)
        accel_warn(&job->log, "%lld outputs are no numbers", (long long)s.n_nan);
    if (!err && job->opt.json)
        show_json(job, &s, b.set);
    else if (!err)
        show_text(job, &s, b.set);
    accel_score_clear(&s);
    accel_batches_close(&b);
    accel_feed_close(&f);
    return err;
}

const struct accel_command accel_command_eval = {
    .name = "eval",
    .usage = "MODEL --data SPEC [options]",
    .summary =
        "Runs a model on a labelled data set and shows its loss and accuracy (top-1, top-5), "
        "or its mean squared error where labels are values. With -v: which classes are "
        "mistaken for which.",
    .options = options,
    .unused = unused,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
