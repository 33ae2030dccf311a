/* accel-prune: read, infer, select, write, report.
 *
 * The report is made when the new model is complete but not yet in place (the writer's `ready`), so
 * that a report that cannot be written leaves everything as it was. */
#include "base/alloc.h"
#include "base/file.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "prune/prune.h"
#include "tools/data_prune.h"
#include "tools/difference.h"
#include "tools/latency.h"
#include "tools/progress.h"
#include "tools/repair.h"
#include "tools/repair_rows.h"
#include "tools/report.h"
#include "tools/sensitivity.h"
#include "tools/tools.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#define AT(field) offsetof(struct accel_options, field)

static const struct accel_option options[] = {
    {"pruner", 0, ACCEL_OPTION_TEXT, AT(pruner), "NAME",
     "level (default), nm, wanda, sparsegpt, or of channels: l1_norm, l2_norm, fpgm, bn_scale, "
     "lamp, "
     "random, apoz, mean_activation; overrides the config's",
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
    {"sensitivity", 0, ACCEL_OPTION_FLAG, AT(sensitivity), NULL,
     "measure accuracy against the share of channels cut, set by set (needs --data); the result, "
     "by default MODEL's stem + .sensitivity.json, feeds back as \"ratios_from\"",
     0, 0},
    {"latency", 0, ACCEL_OPTION_FLAG, AT(latency), NULL,
     "time the old and the new model and report both", 0, 0},
    {"check", 0, ACCEL_OPTION_FLAG, AT(check), NULL,
     "run the old and the new model on the same inputs and report the difference", 0, 0},
    {"data", 0, ACCEL_OPTION_TEXT, AT(data), "SPEC",
     "data set to measure and check on: KIND[:PATH][?key=value&...]", 0, 0},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    ACCEL_OPTION_CPUS,
    {0},
};

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
    struct accel_repair repair;    /* samples 0: there was none */
    struct accel_prune_row
        *all; /* [n_all] rows with those of the repair; NULL: those of the plan */
    int n_all;
    int64_t macs, macs_after;
    struct accel_out *report; /* the HTML file, not yet in place */
    struct accel_progress progress;
};

/* "dir/net.v2.onnx" → "dir/net.v2.pruned.onnx" */
static enum accel_err output_name(char **out, const char *input, const char *given,
                                  const char *tail)
{
    size_t len = strlen(given ? given : input);
    *out = accel_calloc(len + strlen(tail) + 1, 1);
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

/* --latency: both models, one after the other. */
static enum accel_err time_both(struct accel_latency *l, struct prune *p)
{
    struct accel_feed f = {0};
    const struct accel_plan_options opt = {0};
    enum accel_err err = accel_feed_open(&f, p->job, p->input, &opt);
    if (!err)
        err = accel_latency_measure(&l->before_ms, p->job, &f);
    accel_feed_close(&f);
    if (err)
        return err;
    err = accel_feed_borrow(&f, p->model, p->input, &opt);
    if (!err)
        err = accel_latency_measure(&l->after_ms, p->job, &f);
    accel_feed_close(&f);
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
                                  const struct accel_differences *check,
                                  const struct accel_latency *latency)
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
        .row = p->all ? p->all : p->plan->row,
        .n_row = p->all ? p->n_all : p->plan->n_row,
        .totals = p->plan->totals,
        .coupled = p->coupled,
        .groups = job->opt.groups,
        .check = check,
        .latency = latency,
        .repair = p->repair.samples ? &p->repair : NULL,
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
    if (p->repair.samples)
        ACCEL_TRY(accel_repair_rows_all(&p->all, &p->n_all, p->plan, p->model, &p->repair));
    struct accel_latency l;
    enum accel_err err = p->job->opt.check ? check(&d, p) : ACCEL_OK;
    if (!err && p->job->opt.latency)
        err = time_both(&l, p);
    accel_job_warn(p->job, &p->model->log);
    if (!err)
        err = show_report(p, size, p->job->opt.check ? &d : NULL, p->job->opt.latency ? &l : NULL);
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

/* The data set of --data, else the config's. */
static const char *data_of(const struct prune *p)
{
    return p->job->opt.data ? p->job->opt.data : p->config->data;
}

static enum accel_err check_options(const struct prune *p)
{
    const struct accel_options *opt = &p->job->opt;
    const char *channels = opt->groups ? "--groups" : opt->sensitivity ? "--sensitivity" : NULL;
    if (channels && p->config->pattern != ACCEL_PATTERN_CHANNEL)
        return accel_fail(ACCEL_EARG,
                          "%s is for pruners that score channels; '%s' removes single weights",
                          channels, p->config->pruner);
    if (opt->sensitivity && !data_of(p))
        return accel_fail(ACCEL_EARG, "--sensitivity needs --data");
    const struct accel_config *repaired =
        p->config->repair ? p->config->repair : p->config->bn_reestimate;
    if (p->config->by_data && !data_of(p))
        return accel_fail(ACCEL_EARG, "pruner '%s' needs --data: its scores come from activations",
                          p->config->pruner);
    if (repaired && !data_of(p))
        return accel_config_fail(repaired, true, "%s needs --data", repaired->key);
    bool measured = p->config->target && accel_config_find(p->config->target, "accuracy_drop");
    if (opt->data && !opt->check && !opt->sensitivity && !measured && !repaired &&
        !p->config->by_data)
        return accel_fail(ACCEL_EARG, "--data needs --check, --sensitivity, or a config that "
                                      "measures: nothing else looks at data");
    return ACCEL_OK;
}

/* target.accuracy_drop: what may go is found by measuring. */
static enum accel_err keep_accuracy(struct prune *p)
{
    struct accel_trial t;
    const struct accel_config *k =
        p->config->target ? accel_config_find(p->config->target, "accuracy_drop") : NULL;
    double drop;
    if (!k)
        return ACCEL_OK;
    if (!data_of(p))
        return accel_config_fail(k, true, "accuracy_drop needs --data: it is measured");
    ACCEL_TRY(accel_trial_open(&t, p->job, p->input, data_of(p)));
    enum accel_err err = accel_trial_search(&drop, &t, p->plan, k->number);
    accel_trial_close(&t);
    return err;
}

/* Selects and ranks, by the weights or by what passes through the network. */
static enum accel_err choose(struct prune *p)
{
    const struct accel_prune_config *c = p->config;
    struct accel_activation_score s = {0};
    bool channels = c->pattern == ACCEL_PATTERN_CHANNEL;
    bool watched = c->by_data && c->score != ACCEL_SCORE_SPARSEGPT;
    enum accel_err err = ACCEL_OK;
    if (watched)
        err = accel_activation_score_run(&s, p->job, p->input, data_of(p), c->score);
    if (!err)
        err = accel_prune_choose(&p->plan, p->model, c, channels && watched ? &s.by : NULL,
                                 &p->model->log);
    if (!err && c->by_data && !channels)
        err = accel_data_prune(p->plan, p->job, p->input, p->model, data_of(p), c,
                               watched ? &s : NULL);
    accel_activation_score_clear(&s);
    return err;
}

/* What pruning cost comes back from activations; no labels are looked at. */
static enum accel_err repair(struct prune *p)
{
    const struct accel_prune_config *c = p->config;
    const struct accel_config *batches =
        c->bn_reestimate ? accel_config_find(c->bn_reestimate, "batches") : NULL;
    const struct accel_repair_options how = {
        .path = p->input,
        .data = data_of(p),
        .least_squares = c->repair != NULL,
        .bn_batches = batches            ? batches->integer
                      : c->bn_reestimate ? 10
                                         : 0,
        .cut = c->shrink ? p->plan->cut : NULL,
        .seed = (uint64_t)p->job->opt.seed,
    };
    if (!c->repair && !c->bn_reestimate)
        return ACCEL_OK;
    ACCEL_TRY(accel_repair_run(&p->repair, p->job, p->model, &how));
    ACCEL_TRY(accel_repair_rows_mark(p->plan, &p->repair));
    accel_job_note(p->job, "repaired");
    return ACCEL_OK;
}

static enum accel_err write_text(const char *path, const struct accel_str *s)
{
    struct accel_out *out;
    ACCEL_TRY(accel_out_open(&out, path));
    enum accel_err err = accel_out_write(out, accel_str_get(s), s->len);
    if (!err)
        err = accel_out_finish(out);
    if (!err)
        err = accel_out_commit(out);
    accel_out_close(out);
    return err;
}

static enum accel_err show_sensitivity(struct prune *p, const struct accel_sensitivity *s)
{
    struct accel_job *job = p->job;
    struct accel_json j = {0};
    struct accel_str html = {0};
    accel_sensitivity_json(&j, s);
    if (job->opt.report)
        accel_sensitivity_page(&html, s, p->input);
    enum accel_err err = j.out.failed || html.failed ? accel_fail_nomem() : ACCEL_OK;
    if (!err && !job->opt.dry_run)
        err = write_text(p->output, &j.out);
    if (!err && job->opt.report)
        err = write_text(job->opt.report, &html);
    if (!err && job->opt.json)
        accel_str_addn(&job->out, j.out.at, j.out.len);
    else if (!err) {
        accel_sensitivity_text(&job->out, s, job->width, job->color);
        if (!job->opt.dry_run)
            accel_str_addf(&job->out, "\nWritten: %s\n", p->output);
    }
    accel_str_clear(&html);
    accel_json_clear(&j);
    return err;
}

static enum accel_err write_sensitivity(struct prune *p)
{
    struct accel_sensitivity s;
    enum accel_err err = accel_sensitivity_run(&s, p->job, p->input, data_of(p), p->plan, p->model);
    accel_job_warn(p->job, &p->model->log);
    if (!err)
        err = show_sensitivity(p, &s);
    accel_sensitivity_clear(&s);
    return err;
}

static enum accel_err prune(struct prune *p)
{
    struct accel_job *job = p->job;
    const struct accel_onnx_read_options how = {.allow_linked_data = job->opt.allow_linked_data};
    accel_job_note(job, "start");
    ACCEL_TRY(accel_job_config(job));
    ACCEL_TRY(accel_prune_config_parse(&p->config, job->config, job->opt.pruner));
    ACCEL_TRY(output_name(&p->output, p->input, job->opt.output,
                          job->opt.sensitivity ? ".sensitivity.json" : ".pruned.onnx"));
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
    ACCEL_TRY(check_options(p));
    ACCEL_TRY(of_model(p, choose(p)));
    if (job->opt.sensitivity)
        return of_model(p, write_sensitivity(p));
    if (p->plan->channels) {
        ACCEL_TRY(of_model(p, keep_accuracy(p)));
        ACCEL_TRY(of_model(p, accel_prune_cut(p->plan, p->model)));
    }
    p->macs_after = p->macs; /* zeros change no shape */
    if (p->plan->cut && p->config->shrink)
        ACCEL_TRY(of_model(p, accel_model_macs(&p->macs_after, p->model)));
    if (p->plan->channels && (job->opt.groups || job->opt.report))
        ACCEL_TRY(accel_coupled_build(&p->coupled, p->plan));
    accel_job_note(job, "weights selected and ranked");
    ACCEL_TRY(of_model(p, repair(p)));
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
    struct prune p = {.job = job, .input = job->opt.arg.at[0]};
    enum accel_err err = prune(&p);
    accel_out_close(p.report);
    accel_free(p.all);
    accel_repair_clear(&p.repair);
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
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
