/* Which axis of an output a weight's channels become is what the operator says about cutting: the
 * sides of one tie. So no operator is known by name here. */
#include "tools/activation_score.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/links.h"
#include "ops/unfold.h"

enum { BATCH = 64, MOST_FOLLOWED = 8 };

/* Where one node's channels are looked at. */
struct place {
    const struct accel_value *v;
    int axis;
};

/* The side of `ties` on `slot` where (from, axis) is a side too; -1: none. */
static int tied_axis(const struct accel_tie *tie, size_t n, int from, int axis, int slot)
{
    for (size_t i = 0; i < n; i++) {
        int found = -1;
        bool here = false;
        for (int s = 0; s < tie[i].n_sides; s++) {
            here = here || (tie[i].side[s].slot == from && tie[i].side[s].axis == axis);
            if (tie[i].side[s].slot == slot)
                found = tie[i].side[s].axis;
        }
        if (here && found >= 0)
            return found;
    }
    return -1;
}

static enum accel_err find_axis(int *out, struct accel_links *l, const struct accel_node *n,
                                int from, int axis, int to)
{
    ACCEL_TRY(accel_links_ask(l, n, NULL));
    *out = tied_axis(l->tie, l->n_tie, from, axis, to);
    for (size_t i = 0; *out < 0 && i < l->n_candidate; i++)
        *out = tied_axis(l->candidate[i].tie, (size_t)l->candidate[i].n_ties, from, axis, to);
    return ACCEL_OK;
}

static bool same_shape(const struct accel_value *a, const struct accel_value *b)
{
    bool same = a->shape.rank == b->shape.rank;
    for (int i = 0; same && i < a->shape.rank; i++)
        same = accel_dim_same(a->shape.dim[i], b->shape.dim[i]);
    return same;
}

/* The one reader of v, if it makes one value of the same shape from it and constants. */
static const struct accel_node *only_reader(const struct accel_value *v)
{
    const struct accel_node *n = v->n_use == 1 && !v->is_output ? v->use[0].node : NULL;
    if (!n || n->graph != v->graph || n->n_out < 1 || !n->out[0] || !n->op || n->op->carry ||
        !same_shape(v, n->out[0]))
        return NULL;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i] != v && !n->in[i]->tensor)
            return NULL;
    return n;
}

/* The output of a node's channels, behind what follows them. */
static enum accel_err find_output(struct place *p, struct accel_links *l,
                                  const struct accel_node *n, const struct accel_weight *w)
{
    p->v = NULL;
    if (!n->n_out || !n->out[0] || w->out_axis < 0)
        return ACCEL_OK;
    ACCEL_TRY(find_axis(&p->axis, l, n, w->slot, w->out_axis, n->n_in));
    if (p->axis < 0)
        return ACCEL_OK;
    p->v = n->out[0];
    for (int i = 0; i < MOST_FOLLOWED; i++) {
        const struct accel_node *next = only_reader(p->v);
        int axis = -1;
        if (next)
            ACCEL_TRY(find_axis(&axis, l, next, p->v->use[0].slot, p->axis, next->n_in));
        if (axis != p->axis)
            break;
        p->v = next->out[0];
    }
    return ACCEL_OK;
}

/* The input that a weight's columns meet. */
static enum accel_err find_input(struct place *p, struct accel_links *l, const struct accel_node *n,
                                 const struct accel_weight *w)
{
    int slot = w->slot == 0 ? 1 : 0;
    p->v = NULL;
    if (w->in_axis < 0 || slot >= n->n_in || !n->in[slot])
        return ACCEL_OK;
    ACCEL_TRY(find_axis(&p->axis, l, n, w->slot, w->in_axis, slot));
    struct accel_unfold u;
    const char *why;
    if (p->axis < 0 && accel_unfold_init(&u, &why, n) && u.w_slot == w->slot) /* groups */
        p->axis = u.kind == ACCEL_UNFOLD_ROWS ? n->in[slot]->shape.rank - 1 : 1;
    p->v = p->axis < 0 ? NULL : n->in[slot];
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ sums */

static double measure(enum accel_score kind, double x)
{
    switch (kind) {
    case ACCEL_SCORE_APOZ:
        return x > 0;
    case ACCEL_SCORE_WANDA:
        return x * x;
    default:
        return fabs(x);
    }
}

static enum accel_err add(struct accel_activation *to, enum accel_score kind,
                          const struct accel_array *a, int axis, int64_t samples)
{
    int64_t n = a->dim[axis], inner = 1, outer = 1;
    const float *x = a->data;
    for (int i = axis + 1; i < a->rank; i++)
        inner *= a->dim[i];
    for (int i = 0; i < axis; i++)
        outer *= a->dim[i];
    if (axis > 0 && a->dim[0] > samples) /* a fixed batch repeats its last sample */
        outer = outer / a->dim[0] * samples;
    if (!to->sum && !(to->sum = accel_calloc((size_t)n, sizeof *to->sum)))
        return accel_fail_nomem();
    to->n = to->n ? to->n : n;
    if (n != to->n)
        return accel_fail(ACCEL_ENOSUP, "a layer has %lld channels, and %lld before", (long long)n,
                          (long long)to->n);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t c = 0; c < n; c++) {
            double s = 0;
            for (int64_t i = 0; i < inner; i++)
                s += measure(kind, (double)x[(o * n + c) * inner + i]);
            to->sum[c] += s;
        }
    to->count += (double)(outer * inner);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ scores */

/* |w| times the norm of the inputs, summed over each channel. */
struct products {
    const struct accel_target *t;
    const double *norm;
    int64_t n_norm;
    double *score;
    int64_t n, out_inner, in_size, in_inner; /* channels; elements behind an index of either axis */
};

static enum accel_err multiply(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    enum { STEP = 512 };
    struct products *p = ctx;
    double wide[STEP];
    for (uint64_t i = 0; i < count; i += STEP) {
        uint64_t n = count - i < STEP ? count - i : STEP;
        accel_dtype_to_f64(p->t->tensor->dtype, elem, (size_t)i, (size_t)n, wide);
        for (uint64_t k = 0; k < n; k++) {
            int64_t at = (int64_t)(first + i + k), in = at / p->in_inner % p->in_size;
            int64_t out = at / p->out_inner % p->n, groups = p->n_norm / p->in_size;
            in += groups > 1 ? out * groups / p->n * p->in_size : 0;
            p->score[out] += fabs(wide[k]) * p->norm[in % p->n_norm];
        }
    }
    return ACCEL_OK;
}

static int64_t behind(const struct accel_tensor *t, int axis)
{
    int64_t n = 1;
    for (int a = axis + 1; a < t->rank; a++)
        n *= t->dim[a];
    return n;
}

static enum accel_err score_products(struct accel_activation_score *s, const struct accel_target *t,
                                     const struct accel_activation *a, double *score, int64_t n)
{
    int in = t->weight.in_axis;
    double *norm = accel_calloc((size_t)a->n, sizeof *norm);
    if (!norm)
        return accel_fail_nomem();
    for (int64_t i = 0; i < a->n; i++)
        norm[i] = sqrt(a->sum[i]);
    for (int64_t i = 0; i < n; i++)
        score[i] = in < 0 || t->scale ? NAN : 0;
    struct products p = {.t = t, .norm = norm, .n_norm = a->n, .score = score, .n = n};
    p.out_inner = behind(t->tensor, t->weight.out_axis);
    p.in_inner = in < 0 ? 1 : behind(t->tensor, in);
    p.in_size = in < 0 ? 1 : t->tensor->dim[in];
    enum accel_err err = accel_tensor_scan(t->tensor, &s->room, multiply, &p);
    accel_free(norm);
    return err;
}

static enum accel_err score(void *ctx, const struct accel_target *t, int axis, double *out,
                            int64_t n)
{
    struct accel_activation_score *s = ctx;
    size_t node = (size_t)t->node->index;
    const struct accel_activation *a = node < s->n_node ? &s->at[node] : NULL;
    (void)axis;
    if (a && a->n && s->kind == ACCEL_SCORE_WANDA)
        return score_products(s, t, a, out, n);
    bool fits = a && a->n && n % a->n == 0; /* gates have the same channels several times */
    for (int64_t i = 0; i < n; i++)
        out[i] = fits ? a->sum[i % a->n] / a->count : NAN;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ running */

static enum accel_err find_places(struct place *place, struct accel_activation_score *s,
                                  const struct accel_graph *g, struct accel_twin *t)
{
    struct accel_links l = {0};
    struct accel_weight w[4];
    enum accel_err err = ACCEL_OK;
    for (size_t i = 0; i < g->n_node && !err; i++) {
        const struct accel_node *n = g->node[i];
        int count = n->op && n->op->weights ? n->op->weights(n, w) : 0;
        for (int k = 0; k < count && !place[i].v && !err; k++)
            err = s->kind == ACCEL_SCORE_WANDA ? find_input(&place[i], &l, n, &w[k])
                                               : find_output(&place[i], &l, n, &w[k]);
        if (!err && place[i].v && !place[i].v->tensor && accel_dtype_is_float(place[i].v->dtype))
            accel_twin_want(t, ACCEL_TWIN_OLD, place[i].v);
    }
    accel_links_clear(&l);
    return err;
}

static enum accel_err add_batch(struct accel_activation_score *s, const struct place *place,
                                struct accel_twin *t)
{
    for (size_t i = 0; i < s->n_node; i++) {
        const struct accel_array *a =
            place[i].v ? accel_twin_seen(t, ACCEL_TWIN_OLD, place[i].v) : NULL;
        if (a && place[i].axis < a->rank)
            ACCEL_TRY(add(&s->at[i], s->kind, a, place[i].axis, t->data.n));
    }
    return ACCEL_OK;
}

static enum accel_err run_all(struct accel_activation_score *s, struct accel_twin *t)
{
    const struct accel_graph *g = t->feed[ACCEL_TWIN_OLD].m->graph;
    struct place *place = accel_calloc(g->n_node, sizeof *place);
    s->n_node = g->n_node;
    s->at = accel_calloc(g->n_node, sizeof *s->at);
    enum accel_err err = place && s->at ? find_places(place, s, g, t) : accel_fail_nomem();
    accel_twin_rewind(t);
    while (!err) {
        err = accel_twin_next(t);
        if (err || !t->data.n)
            break;
        err = add_batch(s, place, t);
    }
    accel_free(place);
    return err;
}

enum accel_err accel_activation_score_run(struct accel_activation_score *s, struct accel_job *job,
                                          const char *path, const char *data, enum accel_score kind)
{
    struct accel_twin t;
    *s = (struct accel_activation_score){.kind = kind};
    s->by = (struct accel_channel_statistics){score, s};
    ACCEL_TRY(accel_buffer_init(&s->room, (size_t)1 << 20));
    ACCEL_TRY(accel_twin_open(&t, job, path, NULL, data, BATCH));
    enum accel_err err = run_all(s, &t);
    accel_twin_close(&t);
    return err;
}

void accel_activation_score_clear(struct accel_activation_score *s)
{
    for (size_t i = 0; s->at && i < s->n_node; i++)
        accel_free(s->at[i].sum);
    accel_free(s->at);
    accel_buffer_clear(&s->room);
    *s = (struct accel_activation_score){0};
}
