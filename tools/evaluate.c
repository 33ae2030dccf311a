/* A model against the labels of a data set, batch after batch. */
#include "tools/evaluate.h"

#include "tools/progress.h"

/* The output that is scored: the first one of real numbers. */
static enum accel_err find_output(int *out, const struct accel_feed *f)
{
    for (*out = 0; *out < accel_plan_n_outputs(f->plan); ++*out) {
        const struct accel_array *y = accel_plan_output(f->plan, *out);
        if (accel_dtype_find((int)y->dtype)->cls == ACCEL_CLASS_REAL)
            return ACCEL_OK;
    }
    return accel_fail(ACCEL_ENOSUP, "%.1000s: it has no output of real numbers", f->path);
}

static enum accel_err add_batch(struct accel_evaluation *s, struct accel_feed *f,
                                const struct accel_batches *b)
{
    int k;
    ACCEL_TRY(find_output(&k, f));
    const struct accel_array *y = accel_plan_output(f->plan, k);
    enum accel_err err = b->set->label_kind == ACCEL_LABEL_CLASS
                             ? accel_score_classes(s, y, b->n, b->label, b->next - b->n)
                             : accel_score_values(s, y, b->n, b->label, b->set->label_width);
    return err ? accel_fail_in(err, "%.500s: output '%.200s'", f->path,
                               accel_plan_output_value(f->plan, k)->name)
               : ACCEL_OK;
}

enum accel_err accel_evaluate(struct accel_evaluation *s, struct accel_job *job,
                              struct accel_feed *f, struct accel_batches *b, bool show)
{
    struct accel_progress progress;
    enum accel_err err = ACCEL_OK;
    if (b->set->label_kind == ACCEL_LABEL_NONE)
        return accel_fail(ACCEL_EARG, "the data set has no labels");
    accel_progress_begin(&progress, "accel-eval", "scoring", job->opt.quiet || !show);
    progress.unit = "samples";
    accel_batches_rewind(b);
    for (;;) {
        ACCEL_GOTO(err, accel_batches_next(b));
        if (!b->n)
            break;
        ACCEL_GOTO(err, accel_batches_feed(b, f));
        ACCEL_GOTO(err, accel_feed_run(f, &job->log));
        ACCEL_GOTO(err, add_batch(s, f, b));
        ACCEL_GOTO(err, accel_progress_step(&progress, (uint64_t)b->next, (uint64_t)b->set->n));
    }
done:
    accel_progress_end(&progress);
    return err;
}

double accel_evaluation_of(const struct accel_evaluation *s, const struct accel_dataset *d)
{
    if (d->label_kind == ACCEL_LABEL_VALUE)
        return s->n_value ? -s->squares / (double)s->n_value : 0;
    return s->n ? (double)s->n_top1 / (double)s->n : 0;
}
