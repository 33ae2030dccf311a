/* repair_run.c - the parts of a repair in their order, and what is said about it. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "graph/infer.h"
#include "tools/repair_int.h"
#include "tools/table.h"

void accel_repair_clear(struct accel_repair *r)
{
    accel_free(r->row);
    accel_arena_clear(&r->arena);
    *r = (struct accel_repair){0};
}

static bool is_real(const struct accel_value *v)
{
    return v->dtype != ACCEL_UNDEFINED && accel_dtype_find((int)v->dtype)->cls == ACCEL_CLASS_REAL;
}

/* Adds |now - old|^2 and |old|^2 of the samples that are held back. */
static void compare(double sum[2], const struct accel_twin *t, const struct accel_array *old,
                    const struct accel_array *now)
{
    int64_t size = t->data.fixed ? t->data.size : t->data.n, first = t->data.next - t->data.n;
    if (!old || !now || old->n != now->n || old->rank < 1 || old->n % size)
        return;
    const float *a = old->data, *b = now->data;
    int64_t each = old->n / size;
    for (int64_t s = 0; s < t->data.n; s++)
        for (int64_t i = s * each; accel_repair_is_held(first + s) && i < (s + 1) * each; i++) {
            double d = (double)b[i] - (double)a[i];
            sum[0] += d * d;
            sum[1] += (double)a[i] * (double)a[i];
        }
}

enum accel_err accel_repair_measure(double *out, struct accel_twin *t)
{
    const struct accel_graph *old = t->feed[ACCEL_TWIN_OLD].m->graph,
                             *now = t->feed[ACCEL_TWIN_NEW].m->graph;
    double sum[2] = {0};
    accel_twin_forget(t);
    for (size_t i = 0; i < old->n_output && i < now->n_output; i++)
        if (is_real(old->output[i])) {
            accel_twin_want(t, ACCEL_TWIN_OLD, old->output[i]);
            accel_twin_want(t, ACCEL_TWIN_NEW, now->output[i]);
        }
    accel_twin_rewind(t);
    for (;;) {
        ACCEL_TRY(accel_twin_next(t));
        if (!t->data.n)
            break;
        for (size_t i = 0; i < old->n_output && i < now->n_output; i++)
            if (is_real(old->output[i]))
                compare(sum, t, accel_twin_seen(t, ACCEL_TWIN_OLD, old->output[i]),
                        accel_twin_seen(t, ACCEL_TWIN_NEW, now->output[i]));
    }
    *out = sum[1] > 0 ? sum[0] / sum[1] : NAN;
    return ACCEL_OK;
}

static enum accel_err run(struct accel_repair *r, struct accel_twin *t, struct accel_job *job,
                          const struct accel_repair_options *opt)
{
    r->samples = t->data.set->n;
    if (r->samples < 10)
        return accel_fail(ACCEL_EARG, "repair needs 10 samples or more, the data set has %lld",
                          (long long)r->samples);
    ACCEL_TRY(accel_repair_measure(&r->before, t));
    if (opt->least_squares)
        ACCEL_TRY(accel_repair_fit(t, r, job, opt));
    if (opt->bn_batches)
        ACCEL_TRY(accel_repair_norms(t, r, opt));
    return accel_repair_measure(&r->after, t);
}

enum accel_err accel_repair_run(struct accel_repair *r, struct accel_job *job,
                                struct accel_model *m, const struct accel_repair_options *opt)
{
    struct accel_twin t;
    *r = (struct accel_repair){0};
    ACCEL_TRY(accel_twin_open(&t, job, opt->path, m, opt->data, ACCEL_REPAIR_BATCH));
    enum accel_err err = run(r, &t, job, opt);
    accel_twin_close(&t);
    return err ? err : accel_model_infer(m); /* without the sizes of a batch */
}

/* ------------------------------------------------------------------ reports */

void accel_repair_json(struct accel_json *j, const struct accel_repair *r)
{
    accel_json_object(j, "repair");
    accel_json_int(j, "samples", r->samples);
    accel_json_number(j, "error_before", r->before);
    accel_json_number(j, "error_after", r->after);
    accel_json_array(j, "layers");
    for (size_t i = 0; i < r->n_row; i++) {
        const struct accel_repair_row *k = &r->row[i];
        accel_json_object(j, NULL);
        accel_json_text(j, "node", k->node);
        accel_json_text(j, "op_type", k->op_type);
        accel_json_text(j, "weight", k->weight);
        accel_json_text(j, "status", k->kept ? "repaired" : "kept");
        accel_json_text(j, "reason", k->reason);
        accel_json_number(j, "error_before", k->before);
        accel_json_number(j, "error_after", k->after);
        accel_json_number(j, "lambda", k->lambda);
        accel_json_end(j, '}');
    }
    accel_json_end(j, ']');
    accel_json_end(j, '}');
}

static void percent(struct accel_table *t, double v)
{
    if (isnan(v))
        accel_table_add(t, "-");
    else
        accel_table_add(t, "%.3g %%", 100 * v);
}

void accel_repair_text(struct accel_str *out, const struct accel_repair *r, int width, bool color)
{
    static const struct accel_column columns[] = {
        {"weight", false, true}, {"error before", true, false},  {"after", true, false},
        {"ridge", true, false},  {"what was done", false, true}, {0}};
    struct accel_table t;
    accel_table_init(&t, columns);
    for (size_t i = 0; i < r->n_row; i++) {
        const struct accel_repair_row *k = &r->row[i];
        accel_table_add(&t, "%s", k->weight);
        percent(&t, k->before);
        percent(&t, k->after);
        if (isnan(k->lambda))
            accel_table_add(&t, "-");
        else
            accel_table_add(&t, "%g", k->lambda);
        accel_table_add(&t, "%s", k->reason);
    }
    accel_str_addf(out,
                   "\nRepaired on %lld samples; squared error of outputs on the held-back ones:\n",
                   (long long)r->samples);
    accel_table_text(out, &t, width, color);
    out->failed = out->failed || t.failed;
    accel_table_clear(&t);
    accel_str_addf(out, "The model's outputs: %.3g %% before, %.3g %% after.\n", 100 * r->before,
                   100 * r->after);
}
