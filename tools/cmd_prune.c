/* accel-prune: read, infer, select, write, report.
 *
 * The report is made when the new model is complete but not yet in place (the writer's `ready`), so
 * that a report that cannot be written leaves everything as it was. */
#include "base/alloc.h"
#include "base/file.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "prune/prune.h"
#include "tools/difference.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/tools.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define AT(field) offsetof(struct accel_options, field)

static const struct accel_option options[] = {
    {"pruner", 0, ACCEL_OPTION_TEXT, AT(pruner), "NAME",
     "level (default), nm, l1_norm, l2_norm, fpgm, bn_scale, lamp, random and more; overrides the "
     "config's",
     0, 0},
    {"external-data", 0, ACCEL_OPTION_FLAG, AT(external_data), NULL,
     "weights into OUT.data (default when the input did so or above 2 GiB)", 0, 0},
    {"no-external-data", 0, ACCEL_OPTION_FLAG, AT(no_external_data), NULL,
     "weights into the model file", 0, 0},
    {"sparse-initializers", 0, ACCEL_OPTION_FLAG, AT(sparse_initializers), NULL,
     "store weights that are at least 80 % zeros in sparse form (smaller file; runtimes expand it)",
     0, 0},
    {"groups", 0, ACCEL_OPTION_FLAG, AT(groups), NULL,
     "show the sets of coupled channels: members, channels, what is in the way", 0, 0},
    {"check", 0, ACCEL_OPTION_FLAG, AT(check), NULL,
     "run the old and the new model on the same inputs and report the difference", 0, 0},
    {"data", 0, ACCEL_OPTION_TEXT, AT(data), "SPEC",
     "data set that --check runs on instead of random inputs: KIND[:PATH][?key=value&...]", 0, 0},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    {0},
};
static const char *const later[] = {"sensitivity", "accuracy by ratio", "latency",
                                    "fast kernels to time", NULL};

enum { BATCH = 64 }; /* samples that --check --data runs at once */

/* What one run holds. */
struct prune {
    struct accel_job *job;
    const char *input;
    char *output; /* owned */
    struct accel_model *model;
    struct accel_prune_config *config;
    struct accel_prune_plan *plan;
    struct accel_coupled *coupled; /* or NULL */
    int64_t macs, macs_after;
    struct accel_out *report; /* the HTML file, not yet in place */
    struct accel_progress progress;
};

/* "dir/net.v2.onnx" → "dir/net.v2.pruned.onnx" */
static enum accel_err output_name(char **out, const char *input, const char *given)
{
    static const char tail[] = ".pruned.onnx";
    size_t len = strlen(given ? given : input);
    *out = accel_calloc(len + sizeof tail, 1);
    if (!*out)
        return accel_fail_nomem();
    strcpy(*out, given ? given : input);
    if (given)
        return ACCEL_OK;
    if (len > 5 && !strcmp(*out + len - 5, ".onnx"))
        len -= 5;
    strcpy(*out + len, tail);
    return ACCEL_OK;
}

/* --check: the input is read once more, so that each side has its own weights. The new model is the
 * one in memory, with the edits that are written. */
static enum accel_err check(struct accel_differences *d, struct prune *p)
{
    struct accel_job *job = p->job;
    struct accel_feed before = {0}, after = {0};
    struct accel_batches data = {0};
    d->atol = d->rtol = INFINITY;
    enum accel_err err = accel_feed_open(&before, job, p->input, &(struct accel_plan_options){0});
    if (!err)
        err = accel_feed_borrow(&after, p->model, p->input, &(struct accel_plan_options){0});
    if (!err && job->opt.data)
        err = accel_batches_open(&data, job, job->opt.data, ACCEL_SPLIT_TEST, &before, BATCH);
    else if (!err)
        err = accel_feed_random(&before, (uint64_t)job->opt.seed);
    if (!err)
        err = accel_differences_run(d, &job->log, &before, &after, job->opt.data ? &data : NULL,
                                    NULL);
    accel_batches_close(&data);
    accel_feed_close(&before);
    accel_feed_close(&after);
    return err;
}

/* A report must not land on the model it reports about. */
static enum accel_err check_report_path(const struct prune *p, const char *report)
{
    struct stat a, b;
    if (!strcmp(report, p->output))
        return accel_fail(ACCEL_EARG, "--report and the output are both '%.1000s'", report);
    if (!stat(report, &a) && !stat(p->input, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
        return accel_fail(ACCEL_EARG, "--report would overwrite the input '%.1000s'", p->input);
    return ACCEL_OK;
}

static enum accel_err show_report(struct prune *p, uint64_t size,
                                  const struct accel_differences *check)
{
    struct accel_job *job = p->job;
    const struct accel_report r = {
        .input = p->input,
        .output = job->opt.dry_run ? NULL : p->output,
        .size_before = p->model->size,
        .size_after = size,
        .macs_before = p->macs,
        .macs_after = p->macs_after,
        .pruner = p->config->pruner,
        .config_name = job->config->name,
        .config_text = job->config->text,
        .set = job->opt.set.at,
        .n_set = job->opt.set.n,
        .row = p->plan->row,
        .n_row = p->plan->n_row,
        .totals = p->plan->totals,
        .coupled = p->coupled,
        .groups = job->opt.groups,
        .check = check,
        .log = &job->log,
    };
    if (job->opt.json) {
        struct accel_json j = {.out = job->out};
        accel_report_json(&j, &r);
        job->out = j.out;
    } else {
        accel_report_table(&job->out, &r, job->width, job->color);
    }
    if (job->out.failed)
        return accel_fail_nomem();
    if (!p->report)
        return ACCEL_OK;
    struct accel_str html = {0};
    accel_report_html(&html, &r);
    enum accel_err err = html.failed ? accel_fail_nomem()
                                     : accel_out_write(p->report, accel_str_get(&html), html.len);
    accel_str_clear(&html);
    return err ? err : accel_out_finish(p->report);
}

static enum accel_err make_report(struct prune *p, uint64_t size)
{
    struct accel_differences d = {0};
    ACCEL_TRY(accel_prune_finish(p->plan, p->model));
    enum accel_err err = p->job->opt.check ? check(&d, p) : ACCEL_OK;
    accel_job_warn(p->job, &p->model->log);
    if (!err)
        err = show_report(p, size, p->job->opt.check ? &d : NULL);
    accel_differences_clear(&d);
    return err;
}

static enum accel_err ready(void *ctx, const struct accel_onnx_written *w)
{
    return make_report(ctx, w->size);
}

static enum accel_err write_model(struct prune *p)
{
    const struct accel_options *opt = &p->job->opt;
    const struct accel_property meta[] = {{"accel.version", ACCEL_VERSION},
                                          {"accel.config", p->job->config->text}};
    const struct accel_onnx_write_options how = {
        .external = opt->external_data      ? ACCEL_EXTERNAL_YES
                    : opt->no_external_data ? ACCEL_EXTERNAL_NO
                                            : ACCEL_EXTERNAL_AUTO,
        .sparse_initializers = opt->sparse_initializers,
        .meta = meta,
        .n_meta = 2,
        .progress = accel_progress_step,
        .ctx = &p->progress,
        .ready = ready,
        .ready_ctx = p,
    };
    struct accel_onnx_written written;
    if (opt->report)
        ACCEL_TRY(accel_out_open(&p->report, opt->report));
    accel_progress_begin(&p->progress, "accel-prune", opt->dry_run ? "trying" : "writing",
                         opt->quiet);
    enum accel_err err = opt->dry_run ? accel_onnx_dry_write(&written, p->model, p->output, &how)
                                      : accel_onnx_write(&written, p->model, p->output, &how);
    accel_progress_end(&p->progress);
    if (!err && opt->dry_run)
        err = make_report(p, written.size);
    if (!err && p->report)
        err = accel_out_commit(p->report);
    return err;
}

/* Errors of the model file get its name in front; those of the config and of the system name their
 * own files. */
static enum accel_err of_model(struct prune *p, enum accel_err err)
{
    return err == ACCEL_EMODEL || err == ACCEL_ESHAPE || err == ACCEL_ENOSUP
               ? accel_fail_in(err, "%.1000s", p->input)
               : err;
}

static enum accel_err prune(struct prune *p)
{
    struct accel_job *job = p->job;
    const struct accel_onnx_read_options how = {.allow_linked_data = job->opt.allow_linked_data};
    accel_job_note(job, "start");
    ACCEL_TRY(accel_job_config(job));
    ACCEL_TRY(accel_prune_config_parse(&p->config, job->config, job->opt.pruner));
    ACCEL_TRY(output_name(&p->output, p->input, job->opt.output));
    if (job->opt.report)
        ACCEL_TRY(check_report_path(p, job->opt.report));
    accel_job_note(job, "config read");
    ACCEL_TRY(of_model(p, accel_onnx_read(&p->model, p->input, &how)));
    accel_job_note(job, "model read");
    ACCEL_TRY(accel_job_bind(job, p->model));
    ACCEL_TRY(of_model(p, accel_model_infer(p->model)));
    ACCEL_TRY(of_model(p, accel_model_macs(&p->macs, p->model)));
    accel_job_note(job, "shapes inferred");
    p->config->seed = (uint64_t)job->opt.seed;
    if (job->opt.groups && p->config->pattern != ACCEL_PATTERN_CHANNEL)
        return accel_fail(ACCEL_EARG,
                          "--groups is for pruners that score channels; '%s' removes "
                          "single weights",
                          p->config->pruner);
    ACCEL_TRY(of_model(p, accel_prune_build(&p->plan, p->model, p->config, &p->model->log)));
    p->macs_after = p->macs; /* zeros change no shape */
    if (p->plan->cut && p->config->shrink)
        ACCEL_TRY(of_model(p, accel_model_macs(&p->macs_after, p->model)));
    if (p->plan->channels && (job->opt.groups || job->opt.report))
        ACCEL_TRY(accel_coupled_build(&p->coupled, p->plan));
    accel_job_note(job, "weights selected and ranked");
    ACCEL_TRY(of_model(p, write_model(p)));
    accel_job_note(job, job->opt.dry_run ? "pruned without writing" : "pruned and written");
    if (!job->opt.json)
        accel_str_addf(&job->out, "%s%s%s\n",
                       job->opt.dry_run ? "Dry run: nothing was written" : "",
                       job->opt.dry_run ? "" : "Written: ", job->opt.dry_run ? "" : p->output);
    return ACCEL_OK;
}

static enum accel_err run(struct accel_job *job)
{
    if (job->opt.external_data && job->opt.no_external_data)
        return accel_fail(ACCEL_EARG,
                          "--external-data and --no-external-data contradict each other");
    if (job->opt.data && !job->opt.check)
        return accel_fail(ACCEL_EARG, "--data needs --check: no pruner built in looks at data");
    struct prune p = {.job = job, .input = job->opt.arg.at[0]};
    enum accel_err err = prune(&p);
    accel_out_close(p.report);
    accel_coupled_free(p.coupled);
    accel_prune_plan_free(p.plan);
    accel_model_free(p.model);
    accel_prune_config_free(p.config);
    accel_free(p.output);
    return err;
}

const struct accel_command accel_command_prune = {
    .name = "prune",
    .usage = "MODEL --config FILE [-o OUT] [options]",
    .summary = "Selects weights of an ONNX model by a config, prunes them and writes the model. "
               "Without -o the result is MODEL's stem + .pruned.onnx.",
    .options = options,
    .later = later,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
