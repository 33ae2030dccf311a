/* cmd_compare.c - accel-compare: two models on the same inputs, and how far their outputs are
 * apart. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/json.h"
#include "tools/feed.h"
#include "tools/table.h"

#define AT(field) offsetof(struct accel_options, field)

static const struct accel_option options[] = {
    {"input", 0, ACCEL_OPTION_LIST, AT(input), "NAME=FILE.npy",
     "values of an input; random ones where none are given", 0, 0},
    {"atol", 0, ACCEL_OPTION_TEXT, AT(atol), "X", "absolute difference allowed; more is exit 3", 0,
     0},
    {"rtol", 0, ACCEL_OPTION_TEXT, AT(rtol), "X",
     "difference allowed as a share of A's value; more is exit 3", 0, 0},
    {"max-steps", 0, ACCEL_OPTION_NUMBER, AT(max_steps), "N",
     "turns that all loops may take together (default 10 million)", 1, INT64_MAX},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    {0},
};
static const char *const unused[] = {"output", "config", "set", "report", "dry-run", NULL};

/* One output of A beside B's. */
struct difference {
    const char *name;
    double abs, rel;   /* largest; rel over elements where A is not 0 */
    double max_abs;    /* of A */
    int64_t n, n_past; /* elements; those past the tolerance */
    int64_t rows,
        agree; /* classifiers ([N, classes]): samples, and those with the same largest class */
};

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

static double element(const struct accel_array *a, int64_t i)
{
    double v;
    accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &v);
    return v;
}

/* Index of the largest of `n` elements from `first` on. */
static int64_t top(const struct accel_array *a, int64_t first, int64_t n)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (element(a, first + k) > element(a, first + best))
            best = k;
    return best;
}

static enum accel_err measure(struct difference *d, const char *name, const struct accel_array *a,
                              const struct accel_array *b, double atol, double rtol)
{
    *d = (struct difference){.name = name, .n = a->n};
    if (accel_dtype_find((int)a->dtype)->cls == ACCEL_CLASS_OTHER ||
        accel_dtype_find((int)b->dtype)->cls == ACCEL_CLASS_OTHER)
        return accel_fail(ACCEL_ENOSUP, "output '%.200s' has no numbers", name);
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    if (!same)
        return accel_fail(ACCEL_ESHAPE,
                          "output '%.200s' has %lld elements in A, %lld in B, or another shape",
                          name, (long long)a->n, (long long)b->n);
    bool limited = isfinite(atol) || isfinite(rtol);
    for (int64_t i = 0; i < a->n; i++) {
        double x = element(a, i), y = element(b, i);
        double gap = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
        if (isnan(gap))
            gap = INFINITY;
        d->abs = gap > d->abs ? gap : d->abs;
        d->max_abs = fabs(x) > d->max_abs ? fabs(x) : d->max_abs;
        if (x != 0 && gap / fabs(x) > d->rel)
            d->rel = gap / fabs(x);
        double allowed = (isfinite(atol) ? atol : 0) + (isfinite(rtol) ? rtol : 0) * fabs(x);
        d->n_past += limited && gap > allowed;
    }
    if (a->rank == 2 && a->dim[1] > 1)
        for (d->rows = 0; d->rows < a->dim[0]; d->rows++)
            d->agree +=
                top(a, d->rows * a->dim[1], a->dim[1]) == top(b, d->rows * a->dim[1], a->dim[1]);
    return ACCEL_OK;
}

static const struct accel_column columns[] = {{"output", false, true},
                                              {"elements", true, false},
                                              {"abs", true, false},
                                              {"rel", true, false},
                                              {"largest", true, false},
                                              {"argmax equal", true, false},
                                              {0}};

static void show_text(struct accel_job *job, const struct difference *d, int n)
{
    struct accel_table t;
    char count[32];
    accel_table_init(&t, columns);
    for (int i = 0; i < n; i++) {
        accel_table_add(&t, "%s", d[i].name);
        accel_table_add(&t, "%s", accel_text_count(count, d[i].n));
        accel_table_add(&t, "%.3g", d[i].abs);
        accel_table_add(&t, "%.3g", d[i].rel);
        accel_table_add(&t, "%.3g", d[i].max_abs);
        if (d[i].rows)
            accel_table_add(&t, "%lld of %lld", (long long)d[i].agree, (long long)d[i].rows);
        else
            accel_table_add(&t, "-");
    }
    accel_table_text(&job->out, &t, job->width, job->color);
    job->out.failed = job->out.failed || t.failed;
    accel_table_clear(&t);
}

static void show_json(struct accel_job *job, const struct difference *d, int n)
{
    struct accel_json j = {.out = job->out};
    accel_json_object(&j, NULL);
    accel_json_text(&j, "command", "compare");
    accel_json_text(&j, "version", ACCEL_VERSION);
    accel_json_object(&j, "outputs");
    for (int i = 0; i < n; i++) {
        accel_json_object(&j, d[i].name);
        accel_json_int(&j, "elements", d[i].n);
        accel_json_number(&j, "max_abs_difference", d[i].abs);
        accel_json_number(&j, "max_rel_difference", d[i].rel);
        accel_json_number(&j, "max_abs_value", d[i].max_abs);
        if (d[i].rows) {
            accel_json_int(&j, "samples", d[i].rows);
            accel_json_int(&j, "argmax_equal", d[i].agree);
        }
        accel_json_end(&j, '}');
    }
    accel_json_end(&j, '}');
    accel_json_end(&j, '}');
    accel_str_add(&j.out, "\n");
    job->out = j.out;
}

/* B gets A's inputs, by name. */
static enum accel_err share_inputs(const struct accel_feed *a, struct accel_feed *b)
{
    for (int i = 0; i < b->n_in; i++) {
        const char *name = accel_plan_input(b->plan, i)->name;
        int k = 0;
        while (k < a->n_in && strcmp(accel_plan_input(a->plan, k)->name, name) != 0)
            k++;
        if (k == a->n_in)
            return accel_fail(ACCEL_EMODEL, "%.500s: input '%.200s' is not one of %.500s", b->path,
                              name, a->path);
        ACCEL_TRY(accel_plan_set_input(b->plan, i, &a->in[k].a));
    }
    return ACCEL_OK;
}

static enum accel_err find_output(const struct accel_array **out, const struct accel_feed *b,
                                  const char *name)
{
    for (int i = 0; i < accel_plan_n_outputs(b->plan); i++)
        if (strcmp(accel_plan_output_value(b->plan, i)->name, name) == 0) {
            *out = accel_plan_output(b->plan, i);
            return ACCEL_OK;
        }
    return accel_fail(ACCEL_EMODEL, "%.500s: it has no output '%.200s'", b->path, name);
}

static enum accel_err compare(struct accel_job *job, struct accel_feed *a, struct accel_feed *b)
{
    double atol, rtol;
    ACCEL_TRY(tolerance(&atol, job->opt.atol, "atol"));
    ACCEL_TRY(tolerance(&rtol, job->opt.rtol, "rtol"));
    ACCEL_TRY(accel_feed_read(a, &job->opt.input));
    ACCEL_TRY(accel_feed_random(a, (uint64_t)job->opt.seed));
    ACCEL_TRY(share_inputs(a, b));
    ACCEL_TRY(accel_feed_run(a, &job->log));
    ACCEL_TRY(accel_feed_run(b, &job->log));
    int n = accel_plan_n_outputs(a->plan);
    struct difference *d = accel_calloc((size_t)n, sizeof *d);
    enum accel_err err = d ? ACCEL_OK : accel_fail_nomem();
    for (int i = 0; !err && i < n; i++) {
        const char *name = accel_plan_output_value(a->plan, i)->name;
        const struct accel_array *other;
        ACCEL_GOTO(err, find_output(&other, b, name));
        ACCEL_GOTO(err, measure(&d[i], name, accel_plan_output(a->plan, i), other, atol, rtol));
    }
    for (int i = 0; !err && i < n; i++)
        if (d[i].n_past)
            err = accel_fail(ACCEL_ETARGET,
                             "output '%.200s': %lld of %lld elements differ by more than allowed, "
                             "the largest difference is %.3g",
                             d[i].name, (long long)d[i].n_past, (long long)d[i].n, d[i].abs);
    if (!err && job->opt.json)
        show_json(job, d, n);
    else if (!err)
        show_text(job, d, n);
done:
    accel_free(d);
    return err;
}

static enum accel_err run(struct accel_job *job)
{
    const struct accel_plan_options opt = {.max_steps = job->opt.max_steps};
    struct accel_feed a = {0}, b = {0};
    enum accel_err err = accel_feed_open(&a, job, job->opt.arg.at[0], &opt);
    if (!err)
        err = accel_feed_open(&b, job, job->opt.arg.at[1], &opt);
    if (!err)
        err = compare(job, &a, &b);
    accel_feed_close(&a);
    accel_feed_close(&b);
    return err;
}

const struct accel_command accel_command_compare = {
    .name = "compare",
    .usage = "A B [--input NAME=FILE.npy]... [options]",
    .summary =
        "Runs two models on the same inputs, random ones where none are given, and shows the "
        "largest differences of their outputs.",
    .options = options,
    .unused = unused,
    .min_args = 2,
    .max_args = 2,
    .run = run,
};
