/* data_prune.c - single weights by wanda and sparsegpt. A layer's weight becomes a matrix of
 * outputs by inputs per group, is pruned there, and goes back by an edit with the new elements. */
#include <math.h>
#include <stdio.h>

#include "base/alloc.h"
#include "graph/infer.h"
#include "graph/tensor_values.h"
#include "prune/sparsegpt.h"
#include "tools/data_prune.h"
#include "tools/repair_int.h"

struct task {
    struct accel_prune_plan *p;
    struct accel_model *m;
    const struct accel_prune_config *c;
    const struct accel_activation_score *s;
    struct accel_repair_layers layers;
};

/* The row of a layer. */
static struct accel_prune_row *row_of(const struct task *k, const struct accel_repair_layer *l)
{
    return &k->p->row[l->row];
}

static enum accel_err keep(struct task *k, struct accel_prune_row *row, const char *why)
{
    char text[256];
    int n = snprintf(text, sizeof text, "%.100s: %.100s", k->c->pruner, why);
    row->pruned = false;
    row->reason = accel_arena_strndup(&k->p->targets->arena, text, n < 0 ? 0 : (size_t)n);
    return row->reason ? ACCEL_OK : accel_fail_nomem();
}

/* One group's matrix out of the stored elements, or back. */
static void move(double *w, double *stored, const struct accel_unfold *u, int64_t g, bool back)
{
    for (int64_t k = 0; k < u->n_y; k++)
        for (int64_t i = 0; i < u->n_x; i++) {
            double *a = &w[k * u->n_x + i], *b = &stored[accel_unfold_weight(u, g, i, k)];
            *(back ? b : a) = *(back ? a : b);
        }
}

/* X^T X of a group without the constant, of all samples. */
static double *squares(const struct accel_gram *g, size_t group)
{
    size_t n = g->n_x, side = n + 1;
    double *h = accel_calloc(n, n * sizeof *h);
    for (size_t i = 0; h && i < n; i++)
        for (size_t j = 0; j <= i; j++)
            for (int p = 0; p < ACCEL_GRAM_PARTS; p++)
                h[i * n + j] += g->g[p][(group * side + i) * side + j];
    return h;
}

static enum accel_err prune_group(struct task *k, const struct accel_repair_layer *l, double *w,
                                  int64_t g)
{
    const struct accel_unfold *u = &l->u;
    bool nm = k->c->pattern == ACCEL_PATTERN_NM;
    const struct accel_amount amount = {.ratio = nm ? 0 : row_of(k, l)->requested,
                                        .n = (size_t)k->c->n,
                                        .m = nm ? (size_t)k->c->m : 0,
                                        .taps = (size_t)u->taps};
    size_t n_out = (size_t)u->n_y, n_in = (size_t)u->n_x;
    if (k->c->score == ACCEL_SCORE_SPARSEGPT) {
        double *h = squares(&l->gram, (size_t)g);
        enum accel_err err =
            h ? accel_sparsegpt_prune(w, n_out, n_in, h, &amount) : accel_fail_nomem();
        accel_free(h);
        return err;
    }
    const struct accel_activation *a = &k->s->at[l->node->index];
    double *norm = accel_calloc(n_in, sizeof *norm);
    enum accel_err err = norm ? ACCEL_OK : accel_fail_nomem();
    for (size_t i = 0; !err && i < n_in; i++)
        norm[i] = sqrt(a->sum[accel_unfold_channel(u, g, (int64_t)i)] / a->count);
    if (!err)
        err = accel_wanda_prune(w, n_out, n_in, norm, &amount);
    accel_free(norm);
    return err;
}

static bool all_finite(const double *v, uint64_t n)
{
    bool finite = true;
    for (uint64_t i = 0; i < n; i++)
        finite = finite && isfinite(v[i]);
    return finite;
}

/* t NULL: no plan is to know of it. */
static enum accel_err prune_layer(struct task *k, struct accel_twin *t,
                                  struct accel_repair_layer *l)
{
    struct accel_prune_row *row = row_of(k, l);
    double *before = NULL, *after = NULL;
    double *w = accel_calloc((size_t)l->u.n_x, (size_t)l->u.n_y * sizeof *w);
    enum accel_err err = w ? accel_tensor_values(&before, l->weight->tensor) : accel_fail_nomem();
    if (!err)
        err = accel_tensor_values(&after, l->weight->tensor);
    if (!err && !all_finite(before, row->n)) {
        accel_warn(k->p->log, "weight '%.200s' holds NaN or infinity; left as it is",
                   row->target->name);
        err = keep(k, row, "it holds NaN or infinity");
        goto done;
    }
    for (int64_t g = 0; !err && g < l->u.n_group; g++) {
        move(w, after, &l->u, g, false);
        err = prune_group(k, l, w, g);
        move(w, after, &l->u, g, true);
    }
    if (err == ACCEL_ENOSUP) {
        err = keep(k, row, accel_errmsg());
        goto done;
    }
    if (!err)
        err = t ? accel_repair_set(t, l->weight, after)
                : accel_tensor_set_values(l->weight->tensor, after);
    if (!err)
        accel_prune_row_fill(row, before, after);
done:
    accel_free(w);
    accel_free(before);
    accel_free(after);
    return err;
}

static enum accel_err solve(void *ctx, struct accel_twin *t, struct accel_repair_layer *l)
{
    struct task *k = ctx;
    const struct accel_gram *g = &l->gram;
    if (!g->n_group)
        return keep(k, row_of(k, l), "it has too many inputs");
    if (!g->n_row[ACCEL_GRAM_FIT])
        return keep(k, row_of(k, l), "its inputs could not be followed");
    return prune_layer(k, t, l);
}

/* ------------------------------------------------------------------ which layers */

static enum accel_err add_layer(struct task *k, struct accel_node *n, size_t row, int depth)
{
    struct accel_repair_layer l = {.node = n, .row = row, .depth = depth};
    struct accel_repair_layers *list = &k->layers;
    const char *why;
    bool known = accel_unfold_init(&l.u, &why, n);
    if (!known && !why)
        why = "activations are only known of Conv, ConvTranspose, Gemm and MatMul";
    if (known)
        why = accel_repair_find_weight(&l);
    l.n_out = l.u.n_group * l.u.n_y;
    if (!why && l.weight->tensor != k->p->row[row].target->tensor)
        why = "it is not the weight of its node";
    const struct accel_activation *a =
        k->s && (size_t)n->index < k->s->n_node ? &k->s->at[n->index] : NULL;
    if (!why && k->s && (!a || !a->count || a->n != l.u.n_group * (l.u.n_x / l.u.taps)))
        why = "its inputs could not be followed";
    if (why)
        return keep(k, &k->p->row[row], why);
    if (!ACCEL_GROW(list->at, list->cap, list->n + 1))
        return accel_fail_nomem();
    list->at[list->n++] = l;
    list->max_depth = depth > list->max_depth ? depth : list->max_depth;
    return ACCEL_OK;
}

/* Layers in the order of nodes, with how many of them lie before each. */
static enum accel_err find_layers(struct task *k)
{
    const struct accel_graph *g = k->m->graph;
    int *row = accel_calloc(g->n_node, sizeof *row), *depth = NULL, most = 0;
    enum accel_err err = ACCEL_OK;
    if (!row || !(depth = accel_calloc(g->n_node, sizeof *depth))) {
        accel_free(row);
        return accel_fail_nomem();
    }
    for (int i = 0; !err && i < k->p->n_row; i++) {
        const struct accel_node *n = k->p->row[i].target->node;
        if (k->p->row[i].by_data && n->graph != g)
            err = keep(k, &k->p->row[i], "it lies in a body");
        else if (k->p->row[i].by_data)
            row[n->index] = i + 1;
    }
    for (size_t i = 0; !err && i < g->n_node; i++) {
        struct accel_node *n = g->node[i];
        for (int s = 0; s < n->n_in; s++) {
            const struct accel_node *from = n->in[s] ? n->in[s]->producer : NULL;
            depth[i] = from && depth[from->index] > depth[i] ? depth[from->index] : depth[i];
        }
        for (size_t a = 0; a < n->n_attr; a++)
            depth[i] = n->attr[a].graphs ? most : depth[i];
        if (row[i])
            err = add_layer(k, n, (size_t)row[i] - 1, depth[i]++);
        most = depth[i] > most ? depth[i] : most;
    }
    accel_free(row);
    accel_free(depth);
    return err;
}

static enum accel_err run_sparsegpt(struct task *k, struct accel_job *job, const char *path,
                                    const char *spec)
{
    struct accel_twin t;
    struct accel_progress progress;
    ACCEL_TRY(accel_linalg_open());
    ACCEL_TRY(accel_twin_open(&t, job, path, k->m, spec, ACCEL_REPAIR_BATCH));
    accel_progress_begin(&progress, "accel-prune", "pruning", job->opt.quiet);
    progress.unit = "passes";
    enum accel_err err =
        accel_repair_each(&t, &k->layers, (uint64_t)job->opt.seed, &progress, solve, k);
    accel_progress_end(&progress);
    accel_twin_close(&t);
    return err ? err : accel_model_infer(k->m); /* without the sizes of a batch */
}

enum accel_err accel_data_prune(struct accel_prune_plan *p, struct accel_job *job, const char *path,
                                struct accel_model *m, const char *spec,
                                const struct accel_prune_config *c,
                                const struct accel_activation_score *s)
{
    struct task k = {.p = p, .m = m, .c = c, .s = c->score == ACCEL_SCORE_WANDA ? s : NULL};
    enum accel_err err = find_layers(&k);
    if (!err && c->score == ACCEL_SCORE_SPARSEGPT && k.layers.n)
        err = run_sparsegpt(&k, job, path, spec);
    for (size_t i = 0; !err && k.s && i < k.layers.n; i++)
        err = prune_layer(&k, NULL, &k.layers.at[i]);
    accel_repair_layers_clear(&k.layers);
    return err;
}
