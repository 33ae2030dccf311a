/* cmd_run.c - accel-run: one forward pass; outputs as .npy files, or a summary of them. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/json.h"
#include "tools/feed.h"
#include "tools/table.h"

#define AT(field) offsetof(struct accel_options, field)

static const struct accel_option options[] = {
    {"input", 0, ACCEL_OPTION_LIST, AT(input), "NAME=FILE.npy",
     "values of an input; random ones where none are given", 0, 0},
    {"max-steps", 0, ACCEL_OPTION_NUMBER, AT(max_steps), "N",
     "turns that all loops may take together (default 10 million)", 1, INT64_MAX},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    {"precision", 0, ACCEL_OPTION_CHOICE, AT(precision), "f32|bf16|fp16",
     "type that products read: bf16 is refused where it is slower", 0, 0},
    ACCEL_OPTION_OPTIMIZE,
    ACCEL_OPTION_CPUS,
    {0},
};
static const char *const unused[] = {"config", "set", "report", "dry-run", NULL};

/* DIR/NAME.npy; what could mean something to a file system becomes "_". Equal names get a number.
 */
static char *output_path(const char *folder, const struct accel_plan *p, int i)
{
    struct accel_str s = {0};
    const char *name = accel_plan_output_value(p, i)->name;
    accel_str_addf(&s, "%s/", folder);
    for (const char *c = name; *c && c - name < 200; c++) {
        bool plain = (*c >= 'A' && *c <= 'Z') || (*c >= 'a' && *c <= 'z') ||
                     (*c >= '0' && *c <= '9') || *c == '.' || *c == '-';
        accel_str_addn(&s, plain ? c : "_", 1);
    }
    accel_str_add(&s, ".npy");
    return s.failed ? (accel_str_clear(&s), NULL) : s.at;
}

/* Writes all outputs; on failure those that this call wrote are removed again. */
static enum accel_err write_outputs(char **path, struct accel_job *job, const struct accel_plan *p)
{
    const char *folder = job->opt.output;
    int n = accel_plan_n_outputs(p), done = 0;
    enum accel_err err = ACCEL_OK;
    bool made = mkdir(folder, 0777) == 0;
    if (!made && errno != EEXIST)
        return accel_fail(ACCEL_EIO, "cannot create folder '%s': %s", folder, strerror(errno));
    for (; !err && done < n; done++) {
        path[done] = output_path(folder, p, done);
        for (int k = 0; path[done] && k < done; k++)
            if (strcmp(path[k], path[done]) == 0)
                err = accel_fail(ACCEL_EARG, "outputs %d and %d would both be written to '%s'", k,
                                 done, path[done]);
        if (!path[done])
            err = accel_fail_nomem();
        if (!err)
            err = accel_npy_write(path[done], accel_plan_output(p, done));
    }
    for (int i = 0; err && i + 1 < done; i++)
        unlink(path[i]);
    if (err && made)
        rmdir(folder);
    return err;
}

static void show_shape(struct accel_str *s, const struct accel_array *a)
{
    for (int i = 0; i < a->rank; i++)
        accel_str_addf(s, "%s%lld", i ? "x" : "", (long long)a->dim[i]);
    if (a->rank == 0)
        accel_str_add(s, "scalar");
}

static const struct accel_column columns[] = {
    {"output", false, true}, {"type", false, false}, {"shape", false, false}, {"min", true, false},
    {"mean", true, false},   {"max", true, false},   {"", false, true},       {0}};

static void show_text(struct accel_job *job, const struct accel_plan *p, char **path)
{
    struct accel_table t;
    accel_table_init(&t, columns);
    for (int i = 0; i < accel_plan_n_outputs(p); i++) {
        const struct accel_array *a = accel_plan_output(p, i);
        struct accel_range r = accel_range_of(a);
        struct accel_str shape = {0};
        show_shape(&shape, a);
        accel_table_add(&t, "%s", accel_plan_output_value(p, i)->name);
        accel_table_add(&t, "%s", accel_dtype_find((int)a->dtype)->name);
        accel_table_add(&t, "%s", accel_str_get(&shape));
        accel_table_add(&t, "%.6g", r.min);
        accel_table_add(&t, "%.6g", r.mean);
        accel_table_add(&t, "%.6g", r.max);
        accel_table_add(&t, "%s", path[i] ? path[i] : "");
        if (r.n_nan && job->opt.verbose)
            accel_warn(&job->log, "output '%.200s' holds %lld NaN",
                       accel_plan_output_value(p, i)->name, (long long)r.n_nan);
        accel_str_clear(&shape);
    }
    accel_table_text(&job->out, &t, job->width, job->color);
    job->out.failed = job->out.failed || t.failed;
    accel_table_clear(&t);
}

static void show_json(struct accel_job *job, const struct accel_plan *p, char **path)
{
    struct accel_json j = {.out = job->out};
    accel_json_object(&j, NULL);
    accel_json_text(&j, "command", "run");
    accel_json_text(&j, "version", ACCEL_VERSION);
    accel_json_object(&j, "outputs");
    for (int i = 0; i < accel_plan_n_outputs(p); i++) {
        const struct accel_array *a = accel_plan_output(p, i);
        accel_json_object(&j, accel_plan_output_value(p, i)->name);
        accel_json_text(&j, "file", path[i]);
        accel_json_text(&j, "dtype", accel_dtype_find((int)a->dtype)->name);
        accel_json_array(&j, "shape");
        for (int d = 0; d < a->rank; d++)
            accel_json_int(&j, NULL, a->dim[d]);
        accel_json_end(&j, ']');
        accel_json_end(&j, '}');
    }
    accel_json_end(&j, '}');
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
    struct accel_feed f;
    char **path = NULL;
    ACCEL_TRY(accel_feed_open(&f, job, job->opt.arg.at[0], &opt));
    enum accel_err err;
    int n = accel_plan_n_outputs(f.plan);
    ACCEL_GOTO(err, accel_feed_read(&f, &job->opt.input));
    ACCEL_GOTO(err, accel_feed_random(&f, (uint64_t)job->opt.seed));
    accel_job_note(job, "read");
    ACCEL_GOTO(err, accel_feed_run(&f, &job->log));
    accel_job_note(job, "ran");
    path = accel_calloc((size_t)n, sizeof(char *));
    if (!path) {
        err = accel_fail_nomem();
        goto done;
    }
    if (job->opt.output)
        ACCEL_GOTO(err, write_outputs(path, job, f.plan));
    if (job->opt.json)
        show_json(job, f.plan, path);
    else
        show_text(job, f.plan, path);
done:
    for (int i = 0; path && i < n; i++)
        accel_free(path[i]);
    accel_free(path);
    accel_feed_close(&f);
    return err;
}

const struct accel_command accel_command_run = {
    .name = "run",
    .usage = "MODEL [--input NAME=FILE.npy]... [-o DIR] [options]",
    .summary = "Runs a model once, on random inputs where none are given. With -o every output is "
               "written to DIR/NAME.npy; without, a summary is shown.",
    .options = options,
    .unused = unused,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
