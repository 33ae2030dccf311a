/* Steps that several commands share. */
#include "base/alloc.h"
#include "base/threads.h"
#include "graph/graph.h"
#include "tools/tools.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum accel_err accel_job_config(struct accel_job *job)
{
    if (!job->opt.config)
        return accel_fail(ACCEL_EARG, "--config is missing: accel-%s %s", job->command->name,
                          job->command->usage);
    ACCEL_TRY(accel_config_read(&job->config, job->opt.config));
    for (size_t i = 0; i < job->opt.set.n; i++)
        ACCEL_TRY(accel_config_set(job->config, job->opt.set.at[i]));
    return ACCEL_OK;
}

/* "NAME=N" */
static enum accel_err bind_dim(struct accel_model *m, const char *text)
{
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text)
        return accel_fail(ACCEL_EARG, "option '--dim' takes NAME=N, not '%.200s'", text);
    int64_t n;
    ACCEL_TRY(accel_number_read(&n, eq + 1, 1, INT64_MAX, "the N of --dim NAME=N"));
    char *name = accel_calloc((size_t)(eq - text) + 1, 1);
    if (!name)
        return accel_fail_nomem();
    memcpy(name, text, (size_t)(eq - text));
    enum accel_err err = accel_model_bind_dim(m, name, n);
    accel_free(name);
    return err;
}

enum { MAX_RANK = 64 };

/* "1x3x224x224" or "1,3,224,224"; "?" leaves an axis as it is. `text` is cut up. */
static enum accel_err read_dims(int64_t *dim, int *rank, char *text)
{
    *rank = 0;
    for (char *p = text, *next; p; p = next) {
        size_t n = strcspn(p, "x,");
        next = p[n] ? p + n + 1 : NULL;
        p[n] = '\0';
        if (*rank == MAX_RANK)
            return accel_fail(ACCEL_EARG, "--input-shape with more than %d dims", MAX_RANK);
        if (!strcmp(p, "?"))
            dim[(*rank)++] = -1;
        else
            ACCEL_TRY(accel_number_read(&dim[(*rank)++], p, 0, INT64_MAX,
                                        "a dim of --input-shape NAME:1x3x224x224"));
    }
    return ACCEL_OK;
}

/* "NAME:1x3x224x224"; names may hold colons themselves */
static enum accel_err bind_input(struct accel_model *m, const char *text)
{
    const char *colon = strrchr(text, ':');
    if (!colon || colon == text)
        return accel_fail(ACCEL_EARG, "option '--input-shape' takes NAME:1x3x224x224, not '%.200s'",
                          text);
    char *copy = accel_calloc(strlen(text) + 1, 1);
    if (!copy)
        return accel_fail_nomem();
    strcpy(copy, text);
    copy[colon - text] = '\0';
    int64_t dim[MAX_RANK];
    int rank;
    enum accel_err err = read_dims(dim, &rank, copy + (colon - text) + 1);
    if (!err)
        err = accel_model_bind_input(m, copy, rank, dim);
    accel_free(copy);
    return err;
}

/* --batch: the first axis of every input that leaves it open. */
static enum accel_err bind_batch(struct accel_model *m, int64_t batch)
{
    int64_t dim[MAX_RANK];
    for (size_t i = 0; i < m->graph->n_input; i++) {
        const struct accel_value *v = m->graph->input[i];
        int rank = v->declared.rank;
        if (v->tensor || rank < 1 || rank > MAX_RANK || v->given || v->shape.dim[0].n == batch)
            continue;
        if (v->shape.dim[0].n >= 0)
            return accel_fail(ACCEL_EARG, "--batch %lld: input '%.200s' has a batch of %lld",
                              (long long)batch, v->name, (long long)v->shape.dim[0].n);
        dim[0] = batch;
        for (int d = 1; d < rank; d++)
            dim[d] = -1;
        ACCEL_TRY(accel_model_bind_input(m, v->name, rank, dim));
    }
    return ACCEL_OK;
}

enum accel_err accel_job_bind(struct accel_job *job, struct accel_model *m)
{
    for (size_t i = 0; i < job->opt.dim.n; i++)
        ACCEL_TRY(bind_dim(m, job->opt.dim.at[i]));
    for (size_t i = 0; i < job->opt.input_shape.n; i++)
        ACCEL_TRY(bind_input(m, job->opt.input_shape.at[i]));
    if (job->opt.batch)
        ACCEL_TRY(bind_batch(m, job->opt.batch));
    return ACCEL_OK;
}

void accel_job_warn(struct accel_job *job, const struct accel_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        accel_warn(&job->log, "%s", log->text[i]);
}

enum accel_err accel_job_threads(const struct accel_job *job)
{
    int n = 0;
    if (job->opt.cpus) {
        enum accel_err err = accel_threads_pin(&n, job->opt.cpus);
        if (err)
            return accel_fail_in(err, "option '--cpus'");
    }
    if (n && getenv("OMP_NUM_THREADS"))
        n = 0;
    accel_threads_set(job->opt.threads ? (int)job->opt.threads : n);
    return ACCEL_OK;
}

void accel_job_note(struct accel_job *job, const char *what)
{
    struct timespec t;
    if (!job->opt.verbose)
        return;
    clock_gettime(CLOCK_MONOTONIC, &t);
    int64_t now = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
    if (job->last_ns)
        accel_warn(&job->notes, "%s: %.1f ms", what, (double)(now - job->last_ns) / 1e6);
    job->last_ns = now;
}
