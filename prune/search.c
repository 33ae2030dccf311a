/* Sizes are counted on the model as it is, with the dims of values exchanged for those after the
 * cut while the operators' own cost functions look; nothing is cut before the answer is known. */
#include "prune/search.h"

#include <math.h>

#include "base/alloc.h"
#include "graph/infer.h"
#include "prune/cut.h"

struct counting {
    struct accel_channels *c;
    const struct accel_curves *curves;
    struct accel_model *m;
    struct accel_shape *shape;   /* [n_value] of the main graph as inferred */
    double macs, params, bytes;  /* of the whole model */
    bool known;                  /* macs could be counted */
    struct accel_left want, got; /* search */
    double ratio;
    bool search;
    enum accel_err err;
};

/* Puts the dims after the cut in place; undone by restore(). */
static enum accel_err exchange(struct counting *s, const struct accel_cut_plan *cut,
                               struct accel_arena *arena)
{
    const struct accel_graph *g = s->m->graph;
    for (size_t i = 0; i < g->n_value; i++) {
        struct accel_value *v = g->value[i];
        const struct accel_cut *axis = cut->axis + s->c->g->value_axis[i];
        s->shape[i] = v->shape;
        bool hit = false;
        for (int a = 0; a < v->shape.rank && !accel_groups_is_split(s->m, v); a++)
            hit = hit || axis[a].kept;
        if (!hit)
            continue;
        struct accel_dim *dim = ACCEL_NEW(arena, struct accel_dim, v->shape.rank);
        if (!dim)
            return accel_fail_nomem();
        for (int a = 0; a < v->shape.rank; a++)
            dim[a] = axis[a].kept ? accel_dim_of(axis[a].now) : v->shape.dim[a];
        v->shape.dim = dim;
    }
    return ACCEL_OK;
}

static void restore(struct counting *s)
{
    for (size_t i = 0; i < s->m->graph->n_value; i++)
        s->m->graph->value[i]->shape = s->shape[i];
}

static double elements_left(const struct counting *s, const struct accel_cut_plan *cut,
                            const struct accel_value *v)
{
    double n = 1;
    for (int a = 0; a < v->tensor->rank; a++)
        n *= (double)cut->axis[s->c->g->value_axis[v->index] + (uint32_t)a].now;
    return n;
}

/* Elements and bytes that go. */
static void count_stored(struct counting *s, const struct accel_cut_plan *cut, double *params,
                         double *bytes)
{
    const struct accel_graph *g = s->m->graph;
    *params = *bytes = 0;
    for (size_t i = 0; i < g->n_value; i++) {
        const struct accel_value *v = g->value[i];
        if (!v->tensor || !v->tensor->n)
            continue;
        double gone = (double)v->tensor->n - elements_left(s, cut, v);
        *bytes += gone / (double)v->tensor->n * (double)v->tensor->size;
        *params += accel_dtype_is_float(v->tensor->dtype) ? gone : 0;
    }
}

static enum accel_err count_left(struct accel_left *out, struct counting *s)
{
    struct accel_arena arena = {0};
    struct accel_cut_plan *cut;
    double params, bytes;
    ACCEL_TRY(accel_cut_plan_new(&cut, s->c->g, s->c->gone));
    count_stored(s, cut, &params, &bytes);
    enum accel_err err = exchange(s, cut, &arena);
    int64_t macs = err ? -1 : accel_graph_macs(s->m->graph);
    restore(s);
    out->macs = s->macs > 0 && macs >= 0 ? (double)macs / s->macs : 1;
    out->params = s->params > 0 ? 1 - params / s->params : 1;
    out->bytes = s->bytes > 0 ? 1 - bytes / s->bytes : 1;
    accel_arena_clear(&arena);
    accel_cut_plan_free(cut);
    return err;
}

static bool meets(const struct accel_left *got, const struct accel_left *want)
{
    const double close = 1 + 1e-9;
    return got->macs <= want->macs * close && got->params <= want->params * close &&
           got->bytes <= want->bytes * close;
}

enum accel_err accel_channels_at(struct accel_channels *c, const struct accel_curves *curves,
                                 double x)
{
    /* Much of a network costs nothing set by set, and does all together: small x take less of it.
     */
    const double gentle = 0.1;
    double share = x < gentle ? x / gentle : 1;
    return curves ? accel_channels_by_curves(c, curves, x * accel_curves_worst(curves), share)
                  : accel_channels_rank(c, x);
}

static enum accel_err at_ratio(struct counting *s, double ratio)
{
    s->ratio = ratio;
    ACCEL_TRY(accel_channels_at(s->c, s->curves, ratio));
    return count_left(&s->got, s);
}

static enum accel_err bisect(struct counting *s)
{
    enum { STEPS = 24 };
    double low = 0, high = 1; /* low leaves too much, high does not */
    ACCEL_TRY(at_ratio(s, 1));
    if (!meets(&s->got, &s->want))
        return ACCEL_OK; /* the caller tells */
    for (int i = 0; i < STEPS; i++) {
        double mid = (low + high) / 2;
        ACCEL_TRY(at_ratio(s, mid));
        if (meets(&s->got, &s->want))
            high = mid;
        else
            low = mid;
    }
    return s->ratio < high || s->ratio > high ? at_ratio(s, high) : ACCEL_OK;
}

/* Called while the shapes are those of one batch. */
static void visit(void *ctx, int64_t batch)
{
    struct counting *s = ctx;
    int64_t macs = accel_graph_macs(s->m->graph);
    (void)batch;
    s->known = macs > 0;
    s->macs = (double)macs;
    for (size_t i = 0; i < s->m->n_tensor; i++)
        s->params += accel_dtype_is_float(s->m->tensor[i]->dtype) ? (double)s->m->tensor[i]->n : 0;
    s->bytes = (double)s->m->size;
    s->err = s->search ? bisect(s) : count_left(&s->got, s);
}

static enum accel_err run(struct counting *s)
{
    int64_t macs;
    s->shape = accel_calloc(s->m->graph->n_value, sizeof *s->shape);
    if (!s->shape)
        return accel_fail_nomem();
    enum accel_err err = accel_model_macs_visit(&macs, s->m, visit, s);
    accel_free(s->shape);
    return err ? err : s->err;
}

enum accel_err accel_channels_left(struct accel_left *out, const struct accel_channels *c,
                                   struct accel_model *m)
{
    struct counting s = {.c = (struct accel_channels *)(uintptr_t)c, .m = m};
    ACCEL_TRY(run(&s));
    *out = s.got;
    return ACCEL_OK;
}

static double wanted(const struct accel_config *target, const char *key)
{
    const struct accel_config *k = accel_config_find(target, key);
    return k ? k->number : INFINITY;
}

enum accel_err accel_channels_search(struct accel_left *reached, struct accel_channels *c,
                                     const struct accel_curves *curves, struct accel_model *m)
{
    const struct accel_config *target = c->config->target;
    struct counting s = {.c = c, .curves = curves, .m = m, .search = true};
    s.want = (struct accel_left){wanted(target, "macs"), wanted(target, "params"),
                                 wanted(target, "bytes")};
    ACCEL_TRY(run(&s));
    *reached = s.got;
    if (!isinf(s.want.macs) && !s.known)
        return accel_fail(ACCEL_ETARGET,
                          "target macs %g: the multiply-adds cannot be counted, a "
                          "shape is unknown",
                          s.want.macs);
    if (meets(&s.got, &s.want))
        return ACCEL_OK;
    const char *what = s.got.macs > s.want.macs       ? "macs"
                       : s.got.params > s.want.params ? "params"
                                                      : "bytes";
    const double *got = *what == 'm' ? &s.got.macs : *what == 'p' ? &s.got.params : &s.got.bytes;
    const double *want = *what == 'm'   ? &s.want.macs
                         : *what == 'p' ? &s.want.params
                                        : &s.want.bytes;
    return accel_fail(ACCEL_ETARGET,
                      "target %s %g cannot be reached: %.4g is left when all goes that may", what,
                      *want, *got);
}
