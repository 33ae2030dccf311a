/* ms_attend.c - com.microsoft's Attention, QAttention and MultiHeadAttention over ops/attend.h.
 *
 * Attention first makes Q, K and V from its input with one weight, in scratch. Masks are numbers
 * that are added to scores, as the runtime does: mask_filter_value (-10000) for a key that is
 * masked, the lowest float for one behind the query of a unidirectional node. They come as the
 * number of keys per sample [B], its end and begin [2 B], or 0 and 1 for every key [B T] or for
 * every query too [B S T]. */
#include "ops/ms_attend.h"

#include <float.h>
#include <math.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/attend.h"
#include "ops/operand.h"

static const struct accel_array *operand(const struct accel_call *c, int i)
{
    return i >= 0 && i < c->node->n_in && c->x[i].data ? &c->x[i] : NULL;
}

/* ------------------------------------------------------------------ masks */

struct masks {
    const struct accel_array *mask, *bias; /* or NULL */
    double filter;
    bool causal;
    int64_t batch, heads, steps, past, total;
};

/* 0: the key is masked. */
static bool seen(const struct masks *m, int64_t b, int64_t s, int64_t t)
{
    const int64_t *at = m->mask->data;
    if (m->mask->rank == 3)
        return at[(b * m->steps + s) * m->total + t] != 0;
    if (m->mask->rank == 2)
        return at[b * m->total + t] != 0;
    return t < at[b] && (m->mask->n == m->batch || t >= at[m->batch + b]);
}

static double bias(const void *ctx, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const struct masks *m = ctx;
    double v = m->mask && !seen(m, b, s, t) ? m->filter : 0;
    if (m->causal && t > m->past + s)
        v = -FLT_MAX;
    if (!m->bias)
        return v;
    const struct accel_array *a = m->bias;
    int64_t at = (a->dim[0] == 1 ? 0 : b) * a->dim[1] + (a->dim[1] == 1 ? 0 : h);
    return v + (double)((const real *)a->data)[(at * m->steps + s) * m->total + t];
}

static enum accel_err read_masks(struct masks *m, const struct accel_call *c,
                                 const struct accel_attend *a, int mask, int added)
{
    float filter;
    int64_t causal;
    *m = (struct masks){.mask = operand(c, mask), .bias = operand(c, added)};
    ACCEL_TRY(accel_attr_float(&filter, c->node, "mask_filter_value", -10000.0f));
    ACCEL_TRY(accel_attr_int(&causal, c->node, "unidirectional", 0));
    m->filter = (double)filter;
    m->causal = causal != 0;
    m->batch = a->batch;
    m->heads = a->heads;
    m->steps = a->steps;
    m->past = a->past;
    m->total = a->past + a->fresh;
    const struct accel_array *x = m->mask, *y = m->bias;
    if (x && !accel_op_is_int(x))
        return accel_fail(ACCEL_ENOSUP, "a mask that is not of integers");
    if (x && !(x->rank == 3 && x->n == m->batch * m->steps * m->total) &&
        !(x->rank == 2 && x->n == m->batch * m->total) &&
        !(x->rank == 1 && (x->n == m->batch || x->n == 2 * m->batch)))
        return accel_fail(ACCEL_ENOSUP, "a mask of rank %d with %lld elements for %lld x %lld keys",
                          x->rank, (long long)x->n, (long long)m->batch, (long long)m->total);
    if (y &&
        (accel_op_is_int(y) || y->rank != 4 || y->dim[2] != m->steps || y->dim[3] != m->total ||
         (y->dim[0] != 1 && y->dim[0] != m->batch) || (y->dim[1] != 1 && y->dim[1] != m->heads)))
        return accel_fail(ACCEL_ESHAPE, "the attention bias does not fit %lld x %lld scores",
                          (long long)m->steps, (long long)m->total);
    return ACCEL_OK;
}

static enum accel_err read_scale(struct accel_attend *a, const struct accel_call *c)
{
    float scale;
    ACCEL_TRY(accel_attr_float(&scale, c->node, "scale", 0));
    a->scale = scale != 0 ? (double)scale : 1 / sqrt((double)a->size);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ Attention, QAttention */

enum { X, W, B };

/* What the projection makes: [B S all] with the columns of Q, K and V. */
struct project {
    int64_t rows, in, all, q, v;
};

static enum accel_err project_sizes(struct project *p, const struct accel_call *c)
{
    const struct accel_ms_attention_params *n = c->node->params;
    const struct accel_array *x = &c->x[X], *w = &c->x[W];
    p->rows = x->dim[0] * x->dim[1];
    p->in = x->dim[2];
    p->all = w->dim[1];
    p->q = n->sizes ? n->sizes[0] : p->all / 3;
    p->v = n->sizes ? n->sizes[2] : p->all / 3;
    if (w->dim[0] != p->in || p->q < 1 || p->v < 1 || p->q > p->all || p->v > p->all ||
        p->all - p->q != p->q + p->v || p->q % n->heads || p->v % n->heads)
        return accel_fail(ACCEL_ESHAPE, "%lld columns of the weight as Q, K and V in %lld heads",
                          (long long)p->all, (long long)n->heads);
    return ACCEL_OK;
}

static enum accel_err project(real *to, const struct accel_call *c, const struct project *p)
{
    const struct accel_array *x = &c->x[X], *w = &c->x[W], *b = operand(c, B);
    if (accel_op_is_int(x) || accel_op_is_int(w) || (b && accel_op_is_int(b)))
        return accel_fail(ACCEL_ENOSUP, "operands of integers");
    if (b && b->n != p->all)
        return accel_fail(ACCEL_ESHAPE, "bias has %lld elements for %lld columns", (long long)b->n,
                          (long long)p->all);
    for (int64_t i = 0; i < p->rows * p->all; i++) {
        int64_t col = i % p->all;
        const real *row = (const real *)x->data + i / p->all * p->in;
        double sum = b ? (double)((const real *)b->data)[col] : 0;
        for (int64_t k = 0; k < p->in; k++)
            sum += (double)row[k] * (double)((const real *)w->data)[k * p->all + col];
        to[i] = (real)sum;
    }
    return ACCEL_OK;
}

/* Scales of X (one) and W (one or one per column) are slots 3 and 4, zero points 6 and 7. */
static enum accel_err project_quantised(real *to, const struct accel_call *c,
                                        const struct project *p)
{
    const struct accel_array *x = &c->x[X], *w = &c->x[W], *b = &c->x[B], *s = &c->x[4];
    const struct accel_array *w_zero = operand(c, 7);
    int64_t x_zero;
    if (!accel_op_is_int(x) || !accel_op_is_int(w) || accel_op_is_int(b) || accel_op_is_int(s) ||
        accel_op_is_int(&c->x[3]) || (w_zero && !accel_op_is_int(w_zero)) ||
        !accel_op_one_int(&x_zero, c, 6))
        return accel_fail(ACCEL_ENOSUP, "operands of other types");
    if (b->n != p->all || c->x[3].n != 1 || (s->n != 1 && s->n != p->all) ||
        (w_zero && w_zero->n != 1 && w_zero->n != p->all))
        return accel_fail(ACCEL_ESHAPE, "bias, scales or zero points do not fit %lld columns",
                          (long long)p->all);
    for (int64_t i = 0; i < p->rows * p->all; i++) {
        int64_t col = i % p->all, sum = 0;
        const int64_t *row = (const int64_t *)x->data + i / p->all * p->in;
        int64_t zero = w_zero ? ((const int64_t *)w_zero->data)[w_zero->n == 1 ? 0 : col] : 0;
        for (int64_t k = 0; k < p->in; k++)
            sum += (row[k] - x_zero) * (((const int64_t *)w->data)[k * p->all + col] - zero);
        double by = (double)*(const real *)c->x[3].data *
                    (double)((const real *)s->data)[s->n == 1 ? 0 : col];
        to[i] = (real)((double)sum * by + (double)((const real *)b->data)[col]);
    }
    return ACCEL_OK;
}

/* Everything but the masks, over a projection at `made`. */
static enum accel_err attention_lay_out(struct accel_attend *a, const struct accel_call *c,
                                        const struct project *p, real *made)
{
    const struct accel_ms_attention_params *n = c->node->params;
    const struct accel_ms_attention *f = c->node->op->family;
    const struct accel_array *past = operand(c, f->past);
    *a = (struct accel_attend){.batch = c->x[X].dim[0], .heads = n->heads, .kv_heads = n->heads};
    a->steps = a->fresh = c->x[X].dim[1];
    a->size = p->q / n->heads;
    a->v_size = p->v / n->heads;
    a->sink = -INFINITY;
    a->past = past ? past->dim[3] : 0;
    if (past && (past->dim[0] != 2 || past->dim[1] != a->batch || past->dim[2] != a->heads ||
                 past->dim[4] != a->size || a->size != a->v_size))
        return accel_fail(ACCEL_ESHAPE, "the past state does not fit %lld heads of %lld",
                          (long long)a->heads, (long long)a->size);
    a->q = (struct accel_heads){made, a->steps * p->all, a->size, p->all};
    a->k = (struct accel_heads){made + p->q, a->steps * p->all, a->size, p->all};
    a->v = (struct accel_heads){made + 2 * p->q, a->steps * p->all, a->v_size, p->all};
    a->y = accel_heads_of(c->y[0].data, true, a->heads, a->steps, a->v_size);
    if (past) {
        a->past_k = accel_heads_of(past->data, false, a->heads, a->past, a->size);
        a->past_v =
            accel_heads_of((real *)past->data + past->n / 2, false, a->heads, a->past, a->size);
    }
    return ACCEL_OK;
}

enum accel_err accel_ms_attention(const struct accel_call *c)
{
    const struct accel_ms_attention *f = c->node->op->family;
    const struct accel_array *past = operand(c, f->past);
    struct project p;
    struct accel_attend a;
    struct masks m;
    int64_t rotary, shared;
    ACCEL_TRY(accel_attr_int(&rotary, c->node, "do_rotary", 0));
    ACCEL_TRY(accel_attr_int(&shared, c->node, "past_present_share_buffer", 0));
    if (rotary || shared || (past && (accel_op_is_int(past) || past->rank != 5)))
        return accel_fail(ACCEL_ENOSUP, "this form of %s", c->node->op_type);
    ACCEL_TRY(project_sizes(&p, c));
    double *row = c->scratch;
    ACCEL_TRY(attention_lay_out(&a, c, &p, NULL));
    real *made = (real *)(row + a.batch * a.heads * (a.past + a.fresh));
    ACCEL_TRY(f->quantised ? project_quantised(made, c, &p) : project(made, c, &p));
    ACCEL_TRY(attention_lay_out(&a, c, &p, made));
    ACCEL_TRY(read_masks(&m, c, &a, f->quantised ? 5 : 3, f->quantised ? -1 : 5));
    ACCEL_TRY(read_scale(&a, c));
    a.bias = bias;
    a.ctx = &m;
    a.row = row;
    accel_attend(&a);
    if (c->node->n_out > 1 && c->y[1].data) {
        accel_attend_present(c->y[1].data, &a, &a.past_k, &a.k, a.size);
        accel_attend_present((real *)c->y[1].data + c->y[1].n / 2, &a, &a.past_v, &a.v, a.v_size);
    }
    return ACCEL_OK;
}

size_t accel_ms_attention_scratch(const struct accel_call *c)
{
    const struct accel_ms_attention *f = c->node->op->family;
    const struct accel_array *past = operand(c, f->past);
    struct project p;
    struct accel_attend a;
    if ((past && past->rank != 5) || project_sizes(&p, c) || attention_lay_out(&a, c, &p, NULL))
        return 0;
    size_t rows = accel_attend_scratch(a.batch, a.heads, a.past + a.fresh);
    int64_t made = accel_macs_mul(accel_macs_mul(p.rows, p.all), sizeof(real));
    return rows == SIZE_MAX || made < 0 ? SIZE_MAX : rows + (size_t)made;
}

/* ------------------------------------------------------------------ MultiHeadAttention */

enum { Q, K, V, BIAS, PADDING, ADDED, PAST_K, PAST_V };

/* K and V lie as [B T W], or as [B heads T size] when they come from another node. */
static enum accel_err multi_lay_out(struct accel_attend *a, const struct accel_call *c)
{
    const struct accel_ms_attention_params *n = c->node->params;
    const struct accel_array *q = &c->x[Q], *k = operand(c, K), *v = operand(c, V);
    const struct accel_array *pk = operand(c, PAST_K), *pv = operand(c, PAST_V);
    if (!k || !v || q->rank != 3 || k->rank != v->rank || (k->rank != 3 && k->rank != 4))
        return accel_fail(ACCEL_ENOSUP, "packed operands");
    bool flat = k->rank == 3;
    *a = (struct accel_attend){.batch = q->dim[0], .heads = n->heads, .kv_heads = n->heads};
    a->sink = -INFINITY;
    a->steps = q->dim[1];
    a->size = q->dim[2] / n->heads;
    a->fresh = k->dim[flat ? 1 : 2];
    a->v_size = flat ? v->dim[2] / n->heads : v->dim[3];
    a->past = pk && pk->rank == 4 ? pk->dim[2] : 0;
    if (q->dim[2] % n->heads || a->size < 1 || a->v_size < 1 || (flat && v->dim[2] % n->heads) ||
        k->n != a->batch * a->heads * a->fresh * a->size ||
        v->n != a->batch * a->heads * a->fresh * a->v_size || !pk != !pv ||
        (pk && (pk->n != a->batch * a->heads * a->past * a->size ||
                pv->n != a->batch * a->heads * a->past * a->v_size)))
        return accel_fail(ACCEL_ESHAPE, "Q, K, V and their past do not fit %lld heads",
                          (long long)n->heads);
    a->q = accel_heads_of(q->data, true, a->heads, a->steps, a->size);
    a->k = accel_heads_of(k->data, flat, a->heads, a->fresh, a->size);
    a->v = accel_heads_of(v->data, flat, a->heads, a->fresh, a->v_size);
    a->y = accel_heads_of(c->y[0].data, true, a->heads, a->steps, a->v_size);
    if (pk) {
        a->past_k = accel_heads_of(pk->data, false, a->heads, a->past, a->size);
        a->past_v = accel_heads_of(pv->data, false, a->heads, a->past, a->v_size);
    }
    return ACCEL_OK;
}

/* A copy of an operand in `to` with its part of the bias added; returns what lies behind it. */
static real *biased(struct accel_heads *h, real *to, const struct accel_attend *a, int64_t steps,
                    int64_t size, const real *bias_of)
{
    struct accel_heads copy = accel_heads_of(to, true, a->heads, steps, size);
    for (int64_t i = 0; i < a->batch * steps * a->heads; i++) {
        int64_t head = i % a->heads, s = i / a->heads % steps, b = i / a->heads / steps;
        const real *from = accel_heads_at(h, b, head, s);
        for (int64_t k = 0; k < size; k++)
            to[i * size + k] = from[k] + bias_of[head * size + k];
    }
    *h = copy;
    return to + a->batch * steps * a->heads * size;
}

enum accel_err accel_ms_multi(const struct accel_call *c)
{
    struct accel_attend a;
    struct masks m;
    const struct accel_array *b = operand(c, BIAS);
    for (int i = 0; i < c->node->n_in; i++)
        if (operand(c, i) && accel_op_is_int(operand(c, i)) != (i == PADDING || i > PAST_V))
            return accel_fail(ACCEL_ENOSUP, "input %d of another type", i);
    if (operand(c, 8) || operand(c, 9))
        return accel_fail(ACCEL_ENOSUP, "a cache of the runtime's own");
    ACCEL_TRY(multi_lay_out(&a, c));
    ACCEL_TRY(read_masks(&m, c, &a, PADDING, ADDED));
    ACCEL_TRY(read_scale(&a, c));
    a.bias = bias;
    a.ctx = &m;
    a.row = c->scratch;
    if (b && b->n != a.heads * (2 * a.size + a.v_size))
        return accel_fail(ACCEL_ESHAPE, "bias has %lld elements for %lld heads", (long long)b->n,
                          (long long)a.heads);
    if (b) {
        const real *of = b->data;
        real *to = (real *)(a.row + a.batch * a.heads * (a.past + a.fresh));
        to = biased(&a.q, to, &a, a.steps, a.size, of);
        to = biased(&a.k, to, &a, a.fresh, a.size, of + a.heads * a.size);
        biased(&a.v, to, &a, a.fresh, a.v_size, of + 2 * a.heads * a.size);
    }
    a.scores = c->node->n_out > 3 ? c->y[3].data : NULL;
    a.stage = 0;
    accel_attend(&a);
    if (c->node->n_out > 1 && c->y[1].data)
        accel_attend_present(c->y[1].data, &a, &a.past_k, &a.k, a.size);
    if (c->node->n_out > 2 && c->y[2].data)
        accel_attend_present(c->y[2].data, &a, &a.past_v, &a.v, a.v_size);
    return ACCEL_OK;
}

size_t accel_ms_multi_scratch(const struct accel_call *c)
{
    struct accel_attend a;
    if (multi_lay_out(&a, c))
        return 0;
    size_t rows = accel_attend_scratch(a.batch, a.heads, a.past + a.fresh);
    int64_t copies = accel_macs_add(c->x[Q].n, accel_macs_add(c->x[K].n, c->x[V].n));
    copies = operand(c, BIAS) ? accel_macs_mul(copies, sizeof(real)) : 0;
    return rows == SIZE_MAX || copies < 0 ? SIZE_MAX : rows + (size_t)copies;
}
