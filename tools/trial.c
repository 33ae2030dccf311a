/* Each trial reads the model again, cuts it and runs the same samples. Reading is a few
 * milliseconds; the copy is smaller than the model, so that trials run faster than the whole. */
#include "tools/trial.h"

#include <stdio.h>
#include <string.h>

#include "graph/infer.h"
#include "onnx/onnx.h"

enum { BATCH = 64, SAMPLES = 1024, STEPS = 9 };

static enum accel_err measure(double *score, struct accel_trial *t, struct accel_feed *f)
{
    struct accel_evaluation s = {0};
    enum accel_err err = accel_evaluate(&s, t->job, f, &t->data, false);
    *score = accel_evaluation_of(&s, t->data.set);
    t->samples = s.n;
    accel_score_clear(&s);
    return err;
}

enum accel_err accel_trial_open(struct accel_trial *t, struct accel_job *job, const char *path,
                                const char *spec)
{
    char text[4096];
    *t = (struct accel_trial){.job = job, .path = path};
    bool object = *spec == '{', limited = strstr(spec, "limit") != NULL;
    if (object || limited)
        snprintf(text, sizeof text, "%s", spec);
    else
        snprintf(text, sizeof text, "%s%climit=%d", spec, strchr(spec, '?') ? '&' : '?', SAMPLES);
    enum accel_err err = accel_feed_open(&t->base, job, path, &(struct accel_plan_options){0});
    if (!err)
        err = accel_batches_open(&t->data, job, text, ACCEL_SPLIT_TEST, &t->base, BATCH);
    if (!err)
        err = measure(&t->score, t, &t->base);
    if (err)
        accel_trial_close(t);
    return err;
}

void accel_trial_close(struct accel_trial *t)
{
    accel_batches_close(&t->data);
    accel_feed_close(&t->base);
}

/* A model and what its cut constants refer to. */
struct copy {
    struct accel_model *m;
    struct accel_cut_plan *cut;
};

static void copy_clear(struct copy *c)
{
    accel_model_free(c->m);
    accel_cut_plan_free(c->cut);
}

static enum accel_err copy_cut(struct copy *c, struct accel_trial *t, const bool *gone)
{
    const struct accel_onnx_read_options how = {.allow_linked_data = t->job->opt.allow_linked_data};
    struct accel_groups *g = NULL;
    ACCEL_TRY(accel_onnx_read(&c->m, t->path, &how));
    ACCEL_TRY(accel_job_bind(t->job, c->m));
    ACCEL_TRY(accel_model_infer(c->m));
    ACCEL_TRY(accel_groups_build(&g, c->m, NULL));
    enum accel_err err = accel_cut_plan_new(&c->cut, g, gone);
    if (!err)
        err = accel_cut_slice(c->cut, c->m);
    accel_groups_free(g);
    return err;
}

enum accel_err accel_trial_run(double *score, struct accel_trial *t, const bool *gone)
{
    struct copy c = {0};
    struct accel_feed f = {0};
    enum accel_err err = copy_cut(&c, t, gone);
    if (!err)
        err = accel_feed_borrow(&f, c.m, t->path, &(struct accel_plan_options){0});
    if (!err)
        err = measure(score, t, &f);
    accel_feed_close(&f);
    copy_clear(&c);
    return err;
}

enum accel_err accel_trial_search(double *drop, struct accel_trial *t, struct accel_prune_plan *p,
                                  double allowed)
{
    double low = 0, high = 1, score;
    *drop = 0;
    for (int i = 0; i < STEPS; i++) {
        double mid = (low + high) / 2;
        ACCEL_TRY(accel_channels_at(p->channels, p->curves, mid));
        ACCEL_TRY(accel_trial_run(&score, t, p->channels->gone));
        if (t->score - score <= allowed) {
            low = mid;
            *drop = t->score - score;
        } else {
            high = mid;
        }
    }
    ACCEL_TRY(accel_channels_at(p->channels, p->curves, low));
    if (low > 0)
        return ACCEL_OK;
    return accel_fail(ACCEL_ETARGET,
                      "target accuracy_drop %g cannot be kept: the smallest cut tried costs more",
                      allowed);
}
