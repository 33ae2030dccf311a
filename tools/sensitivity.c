/* One set at a time loses its lowest scores, in steps of a tenth; the others stay whole. */
#include "tools/sensitivity.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/escape.h"
#include "tools/progress.h"
#include "tools/report.h"
#include "tools/table.h"

static void cut_only(struct accel_channels *c, int set, int32_t n)
{
    for (int i = 0; i < c->n_set; i++)
        c->set[i].cut = i == set ? n : 0;
}

static enum accel_err measure_set(struct accel_sensitivity *s, struct accel_trial *t,
                                  struct accel_prune_plan *p, struct accel_model *m, int set)
{
    struct accel_sensitivity_curve *k = &s->curve[s->n_curve];
    struct accel_channel_set *at = &p->channels->set[set];
    int32_t last = 0;
    *k = (struct accel_sensitivity_curve){.set = set};
    for (int i = 1; i <= ACCEL_SENSITIVITY_POINTS; i++) {
        struct accel_sensitivity_point *point = &k->point[k->n];
        int32_t want = (int32_t)((double)at->n * i / (ACCEL_SENSITIVITY_POINTS + 1));
        if (want <= last)
            continue;
        cut_only(p->channels, set, want);
        ACCEL_TRY(accel_channels_pick(p->channels));
        if (at->cut <= last)
            continue;
        last = at->cut;
        point->ratio = (double)at->cut / at->n;
        ACCEL_TRY(accel_channels_left(&point->left, p->channels, m));
        ACCEL_TRY(accel_trial_run(&point->score, t, p->channels->gone));
        k->n++;
    }
    s->n_curve += k->n > 0;
    return ACCEL_OK;
}

enum accel_err accel_sensitivity_run(struct accel_sensitivity *s, struct accel_job *job,
                                     const char *path, const char *spec, struct accel_prune_plan *p,
                                     struct accel_model *m)
{
    struct accel_trial t;
    struct accel_progress progress;
    *s = (struct accel_sensitivity){.plan = p, .data = spec};
    s->curve = accel_calloc((size_t)p->channels->n_set, sizeof *s->curve);
    if (!s->curve)
        return accel_fail_nomem();
    ACCEL_TRY(accel_trial_open(&t, job, path, spec));
    s->base = t.score;
    s->samples = t.samples;
    s->classes = t.data.set->label_kind == ACCEL_LABEL_CLASS;
    accel_progress_begin(&progress, "accel-prune", "measuring", job->opt.quiet);
    progress.unit = "sets";
    enum accel_err err = ACCEL_OK;
    for (int i = 0; i < p->channels->n_set && !err; i++) {
        if (p->channels->set[i].kept_for < 0)
            err = measure_set(s, &t, p, m, i);
        if (!err)
            err = accel_progress_step(&progress, (uint64_t)i + 1, (uint64_t)p->channels->n_set);
    }
    accel_progress_end(&progress);
    accel_trial_close(&t);
    return err;
}

void accel_sensitivity_clear(struct accel_sensitivity *s)
{
    accel_free(s->curve);
    *s = (struct accel_sensitivity){0};
}

static const char *name_of(const struct accel_sensitivity *s, int set, int i)
{
    const struct accel_channels *c = s->plan->channels;
    return c->member[c->set[set].member[i]].target->name;
}

void accel_sensitivity_json(struct accel_json *j, const struct accel_sensitivity *s)
{
    accel_json_object(j, NULL);
    accel_json_text(j, "command", "sensitivity");
    accel_json_text(j, "version", ACCEL_VERSION);
    accel_json_text(j, "data", s->data);
    accel_json_int(j, "samples", s->samples);
    accel_json_text(j, "metric", s->classes ? "top1" : "minus_mse");
    accel_json_number(j, "base", s->base);
    accel_json_array(j, "sets");
    for (int i = 0; i < s->n_curve; i++) {
        const struct accel_sensitivity_curve *k = &s->curve[i];
        const struct accel_channel_set *set = &s->plan->channels->set[k->set];
        accel_json_object(j, NULL);
        accel_json_array(j, "weights");
        for (int w = 0; w < set->n_member; w++)
            accel_json_text(j, NULL, name_of(s, k->set, w));
        accel_json_end(j, ']');
        accel_json_int(j, "channels", set->n);
        accel_json_array(j, "points");
        for (int p = 0; p < k->n; p++) {
            accel_json_object(j, NULL);
            accel_json_number(j, "ratio", k->point[p].ratio);
            accel_json_number(j, "score", k->point[p].score);
            accel_json_number(j, "macs", k->point[p].left.macs);
            accel_json_number(j, "params", k->point[p].left.params);
            accel_json_end(j, '}');
        }
        accel_json_end(j, ']');
        accel_json_end(j, '}');
    }
    accel_json_end(j, ']');
    accel_json_end(j, '}');
    accel_str_add(&j->out, "\n");
}

/* The drop at the point nearest to a ratio. */
static double drop_near(const struct accel_sensitivity *s, const struct accel_sensitivity_curve *k,
                        double ratio)
{
    int best = 0;
    for (int i = 1; i < k->n; i++)
        if (fabs(k->point[i].ratio - ratio) < fabs(k->point[best].ratio - ratio))
            best = i;
    return s->base - k->point[best].score;
}

void accel_sensitivity_text(struct accel_str *out, const struct accel_sensitivity *s, int width,
                            bool color)
{
    static const struct accel_column columns[] = {{"SET", true, false},
                                                  {"CHANNELS", true, false},
                                                  {"LOSS AT 30 %", true, false},
                                                  {"AT 50 %", true, false},
                                                  {"AT 70 %", true, false},
                                                  {"WEIGHTS", false, true},
                                                  {0}};
    struct accel_table t;
    accel_table_init(&t, columns);
    for (int i = 0; i < s->n_curve; i++) {
        const struct accel_sensitivity_curve *k = &s->curve[i];
        const struct accel_channel_set *set = &s->plan->channels->set[k->set];
        accel_table_add(&t, "%d", i + 1);
        accel_table_add(&t, "%d", set->n);
        for (int r = 3; r <= 7; r += 2)
            accel_table_add(&t, "%.4f", drop_near(s, k, r / 10.0));
        accel_table_add(&t, set->n_member > 1 ? "%s and %d more" : "%s", name_of(s, k->set, 0),
                        set->n_member - 1);
    }
    accel_str_addf(out, "%s of the whole model on %lld samples: %.4f\n\n",
                   s->classes ? "top-1" : "minus mean squared error", (long long)s->samples,
                   s->base);
    accel_table_text(out, &t, width, color);
    accel_table_clear(&t);
}

/* Ratio to the right, score upwards; the dashed line is the whole model. */
static void chart(struct accel_str *out, const struct accel_sensitivity *s,
                  const struct accel_sensitivity_curve *k, double low, double high)
{
    enum { WIDTH = 256, HEIGHT = 96 };
    double span = high > low ? high - low : 1, base = HEIGHT - (s->base - low) / span * HEIGHT;
    accel_str_addf(out,
                   "<svg class=\"hist\" viewBox=\"0 0 %d %d\" preserveAspectRatio=\"none\" "
                   "role=\"img\" aria-label=\"score against share of channels cut\"><path "
                   "class=\"cut\" d=\"M0 %.1fH%d\"/><path class=\"curve\" d=\"M0 %.1f",
                   WIDTH, HEIGHT, base, WIDTH, base);
    for (int i = 0; i < k->n; i++)
        accel_str_addf(out, "L%.1f %.1f", k->point[i].ratio * WIDTH,
                       HEIGHT - (k->point[i].score - low) / span * HEIGHT);
    accel_str_addf(out,
                   "\"/><path class=\"axis\" d=\"M0 %dH%d\"/></svg><div class=\"scale\">"
                   "<span>0 %%</span><span>cut</span><span>100 %%</span></div>",
                   HEIGHT, WIDTH);
}

void accel_sensitivity_page(struct accel_str *out, const struct accel_sensitivity *s,
                            const char *file)
{
    double low = s->base, high = s->base;
    for (int i = 0; i < s->n_curve; i++)
        for (int k = 0; k < s->curve[i].n; k++) {
            double v = s->curve[i].point[k].score;
            low = v < low ? v : low;
            high = v > high ? v : high;
        }
    accel_html_begin(out, "Sensitivity report", file);
    accel_str_add(out, "</header>\n");
    accel_str_addf(out,
                   "<h2>Sensitivity</h2>\n<p class=\"note\">%s on %lld samples when one set alone "
                   "loses channels; all charts from %.4g to %.4g, dashed: the whole model.</p>\n"
                   "<div class=\"charts\">\n",
                   s->classes ? "Top-1 accuracy" : "Minus the mean squared error",
                   (long long)s->samples, low, high);
    for (int i = 0; i < s->n_curve; i++) {
        accel_str_add(out, "<div class=\"chart\"><h3>");
        accel_escape_html(out, name_of(s, s->curve[i].set, 0));
        accel_str_addf(out, "</h3><p>%d channels</p>", s->plan->channels->set[s->curve[i].set].n);
        chart(out, s, &s->curve[i], low, high);
        accel_str_add(out, "</div>\n");
    }
    accel_str_add(out, "</div>\n");
    accel_html_end(out);
}
