/* repair.c - least squares for one layer after the other, from the sums of repair_pass.c: the
 * weights become a matrix per group, are solved for, and the pruned model gets them. */
#include "tools/repair.h"

#include <math.h>

#include "base/alloc.h"
#include "graph/tensor_values.h"
#include "tools/repair_int.h"

/* W0 [group][n_x + 1, n_y] and which entries are free [group][n_y, n_x + 1]. */
static enum accel_err weights_read(double **out, bool **free, const struct accel_repair_layer *l)
{
    const struct accel_unfold *u = &l->u;
    int64_t side = u->n_x + 1;
    double *stored;
    ACCEL_TRY(accel_tensor_values(&stored, l->weight->tensor));
    *out = accel_calloc((size_t)(u->n_group * side), (size_t)u->n_y * sizeof **out);
    *free = accel_calloc((size_t)(u->n_group * side), (size_t)u->n_y * sizeof **free);
    if (!*out || !*free) {
        accel_free(stored);
        return accel_fail_nomem();
    }
    for (int64_t g = 0; g < u->n_group; g++)
        for (int64_t k = 0; k < u->n_y; k++) {
            bool *may = *free + (g * u->n_y + k) * side, any = false;
            for (int64_t i = 0; i < u->n_x; i++) {
                double w = stored[accel_unfold_weight(u, g, i, k)];
                (*out)[(g * side + i) * u->n_y + k] = u->alpha * w;
                may[i] = w != 0;
                any = any || may[i];
            }
            double bias = l->bias[g * u->n_y + k];
            bool zeroed = l->home == ACCEL_BIAS_OWN && l->home_value->tensor->edit && bias == 0;
            (*out)[(g * side + u->n_x) * u->n_y + k] = bias;
            may[u->n_x] = any && !zeroed && l->home != ACCEL_BIAS_NOWHERE;
        }
    accel_free(stored);
    return ACCEL_OK;
}

enum accel_err accel_repair_set(struct accel_twin *t, struct accel_value *v, const double *value)
{
    ACCEL_TRY(accel_tensor_set_values(v->tensor, value));
    return accel_plan_reload(t->feed[ACCEL_TWIN_NEW].plan, v);
}

static enum accel_err bias_write(struct accel_twin *t, struct accel_repair_layer *l,
                                 const double *w)
{
    const struct accel_unfold *u = &l->u;
    double *value;
    if (l->home == ACCEL_BIAS_NOWHERE)
        return ACCEL_OK;
    ACCEL_TRY(accel_tensor_values(&value, l->home_value->tensor));
    for (int64_t i = 0; i < l->n_out; i++) {
        int64_t g = i / u->n_y, k = i % u->n_y;
        double b = w[(g * (u->n_x + 1) + u->n_x) * u->n_y + k];
        if (b == l->bias[i])
            continue;
        if (l->home == ACCEL_BIAS_OWN)
            value[i] = b / u->beta;
        else
            value[i] += l->home == ACCEL_BIAS_MEAN ? l->bias[i] - b : b - l->bias[i];
    }
    enum accel_err err = accel_repair_set(t, l->home_value, value);
    accel_free(value);
    return err;
}

static enum accel_err weights_write(struct accel_twin *t, struct accel_repair_layer *l,
                                    const double *w, const bool *free)
{
    const struct accel_unfold *u = &l->u;
    int64_t side = u->n_x + 1;
    double *stored;
    ACCEL_TRY(accel_tensor_values(&stored, l->weight->tensor));
    for (int64_t g = 0; g < u->n_group; g++)
        for (int64_t k = 0; k < u->n_y; k++)
            for (int64_t i = 0; i < u->n_x; i++)
                if (free[(g * u->n_y + k) * side + i])
                    stored[accel_unfold_weight(u, g, i, k)] =
                        w[(g * side + i) * u->n_y + k] / u->alpha;
    enum accel_err err = accel_repair_set(t, l->weight, stored);
    accel_free(stored);
    return err ? err : bias_write(t, l, w);
}

static bool all_finite(const double *w, size_t n)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++)
        finite = finite && isfinite(w[i]);
    return finite;
}

static enum accel_err solve(void *ctx, struct accel_twin *t, struct accel_repair_layer *l)
{
    struct accel_repair *r = ctx;
    struct accel_repair_row *row = &r->row[l->row];
    struct accel_gram_fit fit = {0};
    double *w = NULL, power = 0;
    bool *free = NULL;
    const struct accel_gram *g = &l->gram;
    if (!g->n_group) {
        row->reason = "it has too many inputs";
        return ACCEL_OK;
    }
    enum accel_err err = weights_read(&w, &free, l);
    size_t n = (g->n_x + 1) * (g->n_y * g->n_group);
    if (err)
        goto done;
    row->reason = "its values could not be followed";
    if (!g->n_row[ACCEL_GRAM_FIT] || !g->n_row[ACCEL_GRAM_HELD])
        goto done;
    row->reason = "it holds NaN or infinity";
    if (!all_finite(w, n) || !all_finite(g->yy[ACCEL_GRAM_HELD], g->n_group * g->n_y))
        goto done;
    err = accel_gram_solve(&fit, g, w, free);
    if (err == ACCEL_ENOSUP) {
        row->reason = "solving would take too long";
        err = ACCEL_OK;
        goto done;
    }
    if (err)
        goto done;
    for (size_t i = 0; i < g->n_group * g->n_y; i++)
        power += g->yy[ACCEL_GRAM_HELD][i];
    power /= (double)(g->n_group * g->n_y) * (double)g->n_row[ACCEL_GRAM_HELD];
    row->before = power > 0 ? fit.before / power : NAN;
    row->after = power > 0 ? fit.after / power : NAN;
    row->kept = fit.kept;
    row->lambda = fit.lambda;
    row->reason = fit.kept ? "least squares" : "no fit is better on held-back samples";
    if (fit.kept)
        err = weights_write(t, l, w, free);
done:
    accel_free(w);
    accel_free(free);
    return err;
}

enum accel_err accel_repair_fit(struct accel_twin *t, struct accel_repair *r, struct accel_job *job,
                                const struct accel_repair_options *opt)
{
    struct accel_repair_layers l;
    struct accel_progress progress;
    ACCEL_TRY(accel_linalg_open());
    ACCEL_TRY(accel_repair_layers_find(&l, r, t->feed[ACCEL_TWIN_NEW].m, t->feed[ACCEL_TWIN_OLD].m,
                                       opt->cut));
    accel_progress_begin(&progress, "accel-prune", "repairing", job->opt.quiet);
    progress.unit = "passes";
    enum accel_err err = accel_repair_each(t, &l, opt->seed, &progress, solve, r);
    accel_progress_end(&progress);
    accel_repair_layers_clear(&l);
    return err;
}
