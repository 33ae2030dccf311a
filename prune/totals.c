/* The numbers of a plan after writing. Rows of edited tensors were filled in while their elements
 * passed by; everything else is read once here, in the order of the model's tensors. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "graph/op.h"
#include "prune/mask.h"

struct known {
    const struct accel_tensor *tensor;
    struct accel_prune_row *row; /* NULL: not trainable */
};

static int by_tensor(const void *x, const void *y)
{
    uintptr_t a = (uintptr_t)((const struct known *)x)->tensor,
              b = (uintptr_t)((const struct known *)y)->tensor;
    return a < b ? -1 : a > b;
}

static struct known *known_find(struct known *list, size_t n, const struct accel_tensor *t)
{
    struct known want = {t, NULL};
    return n ? bsearch(&want, list, n, sizeof *list, by_tensor) : NULL;
}

/* ----------------------------------------------------------------- running means and variances */

struct fixed {
    struct known *at;
    size_t n, cap;
};

static enum accel_err graph_walk(struct fixed *f, const struct accel_graph *g);

/* Constants of a normalisation that are neither its scale nor its shift. */
static enum accel_err node_fixed(struct fixed *f, const struct accel_node *node)
{
    struct accel_weight w[4];
    int n = node->op && node->op->weights ? node->op->weights(node, w) : 0;
    for (int i = 0; i < n; i++)
        for (int slot = 1; w[i].norm && slot < node->n_in; slot++) {
            const struct accel_value *v = node->in[slot];
            if (!v || !v->tensor || slot == w[i].slot || slot == w[i].bias_slot)
                continue;
            if (!ACCEL_GROW(f->at, f->cap, f->n + 1))
                return accel_fail_nomem();
            f->at[f->n++].tensor = v->tensor;
        }
    for (size_t a = 0; a < node->n_attr; a++)
        for (size_t k = 0; node->attr[a].graphs && k < node->attr[a].n; k++)
            ACCEL_TRY(graph_walk(f, node->attr[a].graphs[k]));
    return ACCEL_OK;
}

/* Graphs nest no deeper than the reader allows (100). */
static enum accel_err graph_walk(struct fixed *f, const struct accel_graph *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        ACCEL_TRY(node_fixed(f, g->node[i]));
    return ACCEL_OK;
}

static enum accel_err fixed_find(struct fixed *f, const struct accel_model *m)
{
    ACCEL_TRY(graph_walk(f, m->graph));
    for (size_t i = 0; i < m->n_function; i++)
        ACCEL_TRY(graph_walk(f, m->function[i]->body));
    if (f->n)
        qsort(f->at, f->n, sizeof *f->at, by_tensor);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------------- counting */

struct count_pass {
    struct accel_key key;
    uint64_t zeros;
    struct accel_spectrum *s; /* or NULL: zeros only */
};

static enum accel_err count_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct count_pass *p = ctx;
    if (p->s)
        accel_spectrum_add(p->s, &p->key, elem, first, count);
    else
        p->zeros += accel_key_below(&p->key, elem, first, count, 1);
    return ACCEL_OK;
}

static bool can_count(const struct accel_tensor *t)
{
    const struct accel_dtype_info *r = accel_dtype_find((int)t->dtype);
    return r && r->cls != ACCEL_CLASS_OTHER;
}

/* A constant that was not changed: the same before and after. */
static enum accel_err row_count(struct accel_prune_row *row, struct accel_buffer *room,
                                struct accel_spectrum *s)
{
    const struct accel_tensor *t = row->target->tensor;
    if (!can_count(t))
        return ACCEL_OK;
    struct count_pass p = {accel_key_of(t->dtype, false), 0, s};
    if (t->n <= ACCEL_SMALL) {
        uint64_t *key;
        ACCEL_TRY(accel_tensor_read(t, 0, t->n, room->data));
        ACCEL_TRY(accel_small_sort(&key, &p.key, room->data, t->n));
        accel_small_survey(row, &p.key, key);
        accel_free(key);
    } else {
        accel_spectrum_reset(s);
        ACCEL_TRY(accel_tensor_scan(t, room, count_sink, &p));
        accel_spectrum_end(s);
        row->zeros_before = s->zeros;
        row->max_abs = accel_spectrum_largest(s, &p.key);
        accel_spectrum_fold(s, &p.key, row->max_abs, row->before, ACCEL_HISTOGRAM_BINS);
    }
    row->zeros_after = row->zeros_before;
    for (int b = 0; b < ACCEL_HISTOGRAM_BINS; b++)
        row->after[b] = row->before[b];
    row->achieved = row->pruned && row->n ? (double)row->zeros_after / (double)row->n : 0;
    return ACCEL_OK;
}

static void fold(uint64_t *bin, double max, const double *v, uint64_t n)
{
    for (int b = 0; b < ACCEL_HISTOGRAM_BINS; b++)
        bin[b] = 0;
    for (uint64_t i = 0; i < n; i++) {
        double at = max > 0 ? fabs(v[i]) / max * ACCEL_HISTOGRAM_BINS : 0;
        if (v[i] != 0 && isfinite(at))
            bin[at < ACCEL_HISTOGRAM_BINS ? (int)at : ACCEL_HISTOGRAM_BINS - 1]++;
    }
}

static uint64_t zeros_of(const double *v, uint64_t n)
{
    uint64_t zeros = 0;
    for (uint64_t i = 0; i < n; i++)
        zeros += v[i] == 0;
    return zeros;
}

void accel_prune_row_fill(struct accel_prune_row *row, const double *before, const double *after)
{
    for (uint64_t i = 0; before && i < row->n; i++)
        if (isfinite(before[i]) && fabs(before[i]) > row->max_abs)
            row->max_abs = fabs(before[i]);
    if (before) {
        row->zeros_before = zeros_of(before, row->n);
        fold(row->before, row->max_abs, before, row->n);
    }
    row->zeros_after = zeros_of(after, row->n);
    fold(row->after, row->max_abs, after, row->n);
    row->achieved = row->pruned && row->n ? (double)row->zeros_after / (double)row->n : 0;
    row->counted = true;
}

/* In the order of tensors, for a search. */
static int by_cut(const void *x, const void *y)
{
    uintptr_t a = (uintptr_t)((const struct accel_cut_tensor *)x)->tensor,
              b = (uintptr_t)((const struct accel_cut_tensor *)y)->tensor;
    return a < b ? -1 : a > b;
}

static const struct accel_cut_tensor *cut_find(const struct accel_cut_plan *c,
                                               const struct accel_tensor *t)
{
    const struct accel_cut_tensor want = {.tensor = (struct accel_tensor *)(uintptr_t)t};
    return c && c->n_tensor ? bsearch(&want, c->tensor, c->n_tensor, sizeof want, by_cut) : NULL;
}

/* Zeros of what was cut or blanked. */
static enum accel_err cut_count(struct accel_prune_totals *sum, const struct accel_cut_tensor *c,
                                struct accel_prune_row *row, bool trainable,
                                struct accel_buffer *room)
{
    struct count_pass before = {accel_key_of(c->before.dtype, false), 0, NULL}, after = before;
    if (!can_count(&c->before))
        return ACCEL_OK;
    ACCEL_TRY(accel_tensor_scan(&c->before, room, count_sink, &before));
    ACCEL_TRY(accel_tensor_stream(c->tensor, room, count_sink, &after));
    if (row) {
        row->zeros_before = before.zeros;
        row->zeros_after = after.zeros;
    }
    if (!accel_dtype_is_float(c->before.dtype))
        return ACCEL_OK;
    sum->params_before += c->before.n;
    sum->params += c->tensor->n;
    sum->nonzero_before += c->before.n - before.zeros;
    sum->nonzero_after += c->tensor->n - after.zeros;
    sum->trainable_before += trainable ? c->before.n : 0;
    sum->trainable += trainable ? c->tensor->n : 0;
    return ACCEL_OK;
}

static enum accel_err tensor_add(struct accel_prune_totals *sum, const struct accel_tensor *t,
                                 const struct accel_prune_row *row, bool trainable,
                                 struct accel_buffer *room)
{
    uint64_t before = row ? row->zeros_before : 0, after = row ? row->zeros_after : 0;
    if (!accel_dtype_is_float(t->dtype))
        return ACCEL_OK;
    if (!row) {
        struct count_pass p = {accel_key_of(t->dtype, false), 0, NULL};
        ACCEL_TRY(accel_tensor_scan(t, room, count_sink, &p));
        before = after = p.zeros;
        p.zeros = 0;
        if (t->edit) {
            ACCEL_TRY(accel_tensor_stream(t, room, count_sink, &p));
            after = p.zeros;
        }
    }
    sum->params_before += t->n;
    sum->params += t->n;
    sum->nonzero_before += t->n - before;
    sum->nonzero_after += t->n - after;
    sum->trainable_before += trainable ? t->n : 0;
    sum->trainable += trainable ? t->n : 0;
    return ACCEL_OK;
}

enum accel_err accel_prune_finish(struct accel_prune_plan *p, struct accel_model *m)
{
    enum accel_err err = ACCEL_OK;
    struct accel_buffer room = {0};
    struct accel_spectrum s = {0};
    struct fixed fixed = {0};
    struct known *rows = accel_calloc((size_t)p->n_row, sizeof *rows);
    if (!rows)
        return accel_fail_nomem();
    for (int i = 0; i < p->n_row; i++)
        rows[i] = (struct known){p->row[i].target->tensor, &p->row[i]};
    if (p->cut && p->cut->n_tensor)
        qsort(p->cut->tensor, p->cut->n_tensor, sizeof *p->cut->tensor, by_cut);
    if (p->n_row)
        qsort(rows, (size_t)p->n_row, sizeof *rows, by_tensor);
    p->totals = (struct accel_prune_totals){0};
    ACCEL_GOTO(err, accel_buffer_init(&room, (size_t)4 << 20));
    ACCEL_GOTO(err, accel_spectrum_init(&s));
    ACCEL_GOTO(err, fixed_find(&fixed, m));
    for (int i = 0; i < p->n_row; i++)
        if (!p->row[i].counted && !p->row[i].cut)
            ACCEL_GOTO(err, row_count(&p->row[i], &room, &s));
    for (size_t i = 0; i < m->n_tensor; i++) {
        const struct accel_tensor *t = m->tensor[i];
        const struct known *k = known_find(rows, (size_t)p->n_row, t);
        bool trainable = !known_find(fixed.at, fixed.n, t);
        const struct accel_cut_tensor *c = cut_find(p->cut, t);
        if (c)
            ACCEL_GOTO(err, cut_count(&p->totals, c, k ? k->row : NULL, trainable, &room));
        else
            ACCEL_GOTO(err, tensor_add(&p->totals, t, k ? k->row : NULL, trainable, &room));
    }
done:
    accel_free(rows);
    accel_free(fixed.at);
    accel_spectrum_clear(&s);
    accel_buffer_clear(&room);
    return err;
}
