/* repair_norm.c - means and variances anew, one pass over a few batches for all batch norms that do
 * not wait for another one. After least squares they are kept only where the model's outputs on the
 * samples held back come nearer to those of the unpruned model: the fit has aimed at the old
 * statistics. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "graph/tensor_values.h"
#include "tools/repair_int.h"

struct norm {
    struct accel_node *node;
    int depth;
    int64_t n;            /* channels */
    double *old[2];       /* mean, variance as they were */
    double *sum, *square; /* [n], around the first sample's mean */
    double count;
};

struct norms {
    struct norm *at;
    size_t n, cap;
    int max_depth;
};

static void norms_clear(struct norms *l)
{
    for (size_t i = 0; i < l->n; i++) {
        accel_free(l->at[i].old[0]);
        accel_free(l->at[i].old[1]);
        accel_free(l->at[i].sum);
    }
    accel_free(l->at);
}

static bool is_stored(const struct accel_value *v, const struct accel_value *like)
{
    return v && v->tensor && v->n_use == 1 && !v->is_output &&
           accel_dtype_is_float(v->tensor->dtype) && like && like->tensor &&
           v->tensor->n == like->tensor->n;
}

/* A batch norm with statistics of its own. */
static bool is_norm(const struct accel_node *n)
{
    int64_t training;
    return n->op && !*n->op->domain && !strcmp(n->op->name, "BatchNormalization") && n->n_in == 5 &&
           n->in[0] && !accel_attr_int(&training, n, "training_mode", 0) && !training &&
           is_stored(n->in[3], n->in[1]) && is_stored(n->in[4], n->in[1]);
}

static enum accel_err norm_add(struct norms *l, struct accel_node *node, int depth)
{
    if (!ACCEL_GROW(l->at, l->cap, l->n + 1))
        return accel_fail_nomem();
    struct norm *k = &l->at[l->n++];
    *k = (struct norm){.node = node, .depth = depth, .n = (int64_t)node->in[3]->tensor->n};
    l->max_depth = depth > l->max_depth ? depth : l->max_depth;
    k->sum = accel_calloc((size_t)k->n, 2 * sizeof *k->sum);
    if (!k->sum)
        return accel_fail_nomem();
    k->square = k->sum + k->n;
    for (int i = 0; i < 2; i++)
        ACCEL_TRY(accel_tensor_values(&k->old[i], node->in[3 + i]->tensor));
    return ACCEL_OK;
}

/* Batch norms of which the input changed, and how many of them lie before each. */
static enum accel_err norms_find(struct norms *l, const struct accel_graph *g)
{
    bool *changed;
    int *depth = accel_calloc(g->n_node, sizeof *depth), most = 0;
    if (!depth)
        return accel_fail_nomem();
    enum accel_err err = accel_repair_changes(&changed, g);
    for (size_t i = 0; !err && i < g->n_node; i++) {
        struct accel_node *n = g->node[i];
        for (int k = 0; k < n->n_in; k++) {
            const struct accel_node *from = n->in[k] ? n->in[k]->producer : NULL;
            depth[i] = from && depth[from->index] > depth[i] ? depth[from->index] : depth[i];
        }
        for (size_t k = 0; k < n->n_attr; k++)
            depth[i] = n->attr[k].graphs ? most : depth[i];
        const struct accel_node *from = is_norm(n) ? n->in[0]->producer : NULL;
        if (from && changed[from->index])
            err = norm_add(l, n, depth[i]++);
        most = depth[i] > most ? depth[i] : most;
    }
    accel_free(depth);
    accel_free(changed);
    return err;
}

/* Sums around the old mean, so that little is lost to cancellation. */
static void add_batch(struct norm *k, const struct accel_array *a, int64_t samples, int64_t batch)
{
    int64_t rest = 1, rows = a->dim[0] * samples / batch;
    for (int i = 2; i < a->rank; i++)
        rest *= a->dim[i];
    const float *x = a->data;
    for (int64_t s = 0; s < rows; s++)
        for (int64_t c = 0; c < k->n; c++)
            for (int64_t i = 0; i < rest; i++) {
                double d = (double)x[(s * k->n + c) * rest + i] - k->old[0][c];
                k->sum[c] += d;
                k->square[c] += d * d;
            }
    k->count += (double)(rows * rest);
}

static enum accel_err norm_set(struct accel_twin *t, struct norm *k)
{
    if (k->count < 2)
        return ACCEL_OK;
    for (int64_t c = 0; c < k->n; c++) {
        double mean = k->sum[c] / k->count, variance = k->square[c] / k->count - mean * mean;
        bool ok = isfinite(mean) && isfinite(variance);
        k->sum[c] = ok ? k->old[0][c] + mean : k->old[0][c];
        k->square[c] = ok ? fmax(variance * k->count / (k->count - 1), 0) : k->old[1][c];
    }
    ACCEL_TRY(accel_repair_set(t, k->node->in[3], k->sum));
    return accel_repair_set(t, k->node->in[4], k->square);
}

static enum accel_err pass(struct accel_twin *t, struct norms *l, int depth, int64_t batches)
{
    accel_twin_forget(t);
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].depth == depth)
            accel_twin_want(t, ACCEL_TWIN_NEW, l->at[i].node->in[0]);
    accel_twin_rewind(t);
    for (int64_t b = 0; b < batches; b++) {
        ACCEL_TRY(accel_twin_next(t));
        if (!t->data.n)
            break;
        for (size_t i = 0; i < l->n; i++) {
            const struct accel_array *a =
                l->at[i].depth == depth ? accel_twin_seen(t, ACCEL_TWIN_NEW, l->at[i].node->in[0])
                                        : NULL;
            if (a && a->rank >= 2 && a->dim[1] == l->at[i].n)
                add_batch(&l->at[i], a, t->data.n, t->data.fixed ? t->data.size : t->data.n);
        }
    }
    for (size_t i = 0; i < l->n; i++)
        if (l->at[i].depth == depth)
            ACCEL_TRY(norm_set(t, &l->at[i]));
    return ACCEL_OK;
}

static enum accel_err put_back(struct accel_twin *t, struct norms *l)
{
    for (size_t i = 0; i < l->n; i++)
        for (int k = 0; k < 2; k++)
            ACCEL_TRY(accel_repair_set(t, l->at[i].node->in[3 + k], l->at[i].old[k]));
    return ACCEL_OK;
}

enum accel_err accel_repair_norms(struct accel_twin *t, struct accel_repair *r,
                                  const struct accel_repair_options *opt)
{
    struct norms l = {0};
    double before, after;
    size_t row;
    enum accel_err err;
    ACCEL_GOTO(err, norms_find(&l, t->feed[ACCEL_TWIN_NEW].m->graph));
    if (!l.n)
        goto done;
    ACCEL_GOTO(err, accel_repair_measure(&before, t));
    for (int d = 0; d <= l.max_depth; d++)
        ACCEL_GOTO(err, pass(t, &l, d, opt->bn_batches));
    ACCEL_GOTO(err, accel_repair_measure(&after, t));
    bool kept = !opt->least_squares || after < before;
    if (!kept)
        ACCEL_GOTO(err, put_back(t, &l));
    for (size_t i = 0; i < l.n; i++) {
        const struct accel_node *n = l.at[i].node;
        ACCEL_GOTO(err, accel_repair_row_add(&row, r, n, n->in[3]->tensor->name,
                                             kept ? "new statistics"
                                                  : "new statistics do not help after the fit"));
        r->row[row].kept = kept;
    }
done:
    norms_clear(&l);
    return err;
}
