/* Attention of the standard domain: Q [B Hq S D], K [B Hk T D], V [B Hk T E]  ->  Y [B Hq S E], or
 * with the heads folded into the last axis: Q [B S Hq*D], K [B T Hk*D], V [B T Hk*E] -> Y [B S
 * Hq*E]; then the numbers of heads are attributes. Past keys and values [B Hk P D] are put in front
 * of K and V. */
#include <math.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/attend.h"
#include "ops/link_util.h"

struct attention_params {
    int64_t q_heads, kv_heads; /* 0: not said */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct attention_params *p = ACCEL_NEW(&n->graph->model->arena, struct attention_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&p->q_heads, n, "q_num_heads", 0));
    ACCEL_TRY(accel_attr_int(&p->kv_heads, n, "kv_num_heads", 0));
    if (p->q_heads < 0 || p->kv_heads < 0)
        return accel_fail(ACCEL_EMODEL, "attributes q_num_heads and kv_num_heads are %lld and %lld",
                          (long long)p->q_heads, (long long)p->kv_heads);
    n->params = p;
    return ACCEL_OK;
}

/* The four logical axes of Q, K or V. */
struct head_shape {
    struct accel_dim batch, heads, steps, size;
};

static enum accel_err head_shape(struct head_shape *out, const struct accel_node *n, int slot,
                                 int64_t heads)
{
    int rank = accel_operand_rank(n, slot);
    struct accel_dim all = accel_operand_dim(n, slot, -1), unknown = accel_dim_unknown();
    if (rank >= 0 && rank != 3 && rank != 4)
        return accel_fail(ACCEL_ESHAPE, "'%.200s' has rank %d, attention needs 3 or 4",
                          n->in[slot]->name, rank);
    *out = (struct head_shape){accel_operand_dim(n, slot, 0), unknown, unknown, unknown};
    if (rank == 4) {
        out->heads = accel_operand_dim(n, slot, 1);
        out->steps = accel_operand_dim(n, slot, 2);
        out->size = all;
    } else if (rank == 3) {
        out->steps = accel_operand_dim(n, slot, 1);
        if (heads < 1)
            return ACCEL_OK;
        out->heads = accel_dim_of(heads);
        if (accel_dim_known(all) && all.n % heads != 0)
            return accel_fail(ACCEL_ESHAPE, "'%.200s' has %lld columns for %lld heads",
                              n->in[slot]->name, (long long)all.n, (long long)heads);
        if (accel_dim_known(all))
            out->size = accel_dim_of(all.n / heads);
    }
    return ACCEL_OK;
}

struct attention_shape {
    struct head_shape q, k, v;
    struct accel_dim total; /* past steps and those of K */
};

static enum accel_err attention_shape(struct attention_shape *s, const struct accel_node *n)
{
    const struct attention_params *p = n->params;
    ACCEL_TRY(head_shape(&s->q, n, 0, p->q_heads));
    ACCEL_TRY(head_shape(&s->k, n, 1, p->kv_heads));
    ACCEL_TRY(head_shape(&s->v, n, 2, p->kv_heads));
    if (accel_dim_differs(s->q.size, s->k.size))
        return accel_fail(ACCEL_ESHAPE, "heads of Q have %lld elements, those of K %lld",
                          (long long)s->q.size.n, (long long)s->k.size.n);
    if (accel_dim_differs(s->k.steps, s->v.steps))
        return accel_fail(ACCEL_ESHAPE, "K has %lld steps, V has %lld", (long long)s->k.steps.n,
                          (long long)s->v.steps.n);
    s->total = s->k.steps;
    if (accel_operand(n, 4)) {
        struct accel_dim past = accel_operand_dim(n, 4, 2);
        if (accel_dim_known(past))
            return accel_dim_derive(&s->total, accel_operand_symbols(n), s->k.steps, 1, past.n, 1,
                                    0);
        s->total = accel_dim_unknown();
        if (accel_dim_known(s->k.steps))
            return accel_dim_derive(&s->total, accel_operand_symbols(n), past, 1, s->k.steps.n, 1,
                                    0);
    }
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    enum accel_dtype dtype = accel_operand_dtype(n, 0), v_dtype = accel_operand_dtype(n, 2);
    struct attention_shape s = {0};
    int rank = accel_operand_rank(n, 0);
    ACCEL_TRY(attention_shape(&s, n));
    struct accel_dim y[4] = {s.q.batch, s.q.heads, s.q.steps, s.v.size};
    struct accel_dim flat[3] = {s.q.batch, s.q.steps, accel_dim_unknown()};
    struct accel_dim key[4] = {s.k.batch, s.k.heads, s.total, s.k.size};
    struct accel_dim value[4] = {s.v.batch, s.v.heads, s.total, s.v.size};
    struct accel_dim scores[4] = {s.q.batch, s.q.heads, s.q.steps, s.total};
    if (rank < 0)
        ACCEL_TRY(accel_result_like(n, 0, dtype, NULL));
    if (rank == 3)
        ACCEL_TRY(accel_dim_mul(&flat[2], accel_operand_symbols(n), s.q.heads, s.v.size));
    if (rank >= 0)
        ACCEL_TRY(accel_result_dims(n, 0, dtype, rank, rank == 3 ? flat : y));
    ACCEL_TRY(accel_result_dims(n, 1, dtype, 4, key));
    ACCEL_TRY(accel_result_dims(n, 2, v_dtype, 4, value));
    return accel_result_dims(n, 3, dtype, 4, scores);
}

/* B * Hq * S * T * (D + E) */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    struct attention_shape s = {0};
    c->macs = -1;
    if (attention_shape(&s, n) != ACCEL_OK)
        return;
    int64_t rows = accel_macs_mul(accel_macs_mul(s.q.batch.n, s.q.heads.n), s.q.steps.n);
    c->macs =
        accel_macs_mul(accel_macs_mul(rows, s.total.n), accel_macs_add(s.q.size.n, s.v.size.n));
}

/* ------------------------------------------------------------------ kernel */

enum { Q, K, V, MASK, PAST_K, PAST_V, VALID };

/* What bias() looks at. */
struct masks {
    const struct accel_array *mask; /* or NULL */
    const int64_t *valid;           /* [B] keys that are no padding, or NULL */
    bool causal;
    int64_t left, right; /* window around the own place; -1: none */
    int64_t past, steps;
};

static const struct accel_array *operand(const struct accel_call *c, int i)
{
    return i < c->node->n_in && c->x[i].data ? &c->x[i] : NULL;
}

/* Element [b h s t] of the mask, whose axes are stretched; behind its last key nothing is seen. */
static double mask_at(const struct accel_array *m, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const int64_t at[4] = {b, h, s, t};
    int64_t i = 0;
    for (int d = 0; d < m->rank; d++) {
        int64_t own = at[4 - m->rank + d];
        if (d == m->rank - 1 && m->dim[d] != 1 && own >= m->dim[d])
            return -INFINITY;
        i = i * m->dim[d] + (m->dim[d] == 1 ? 0 : own);
    }
    if (m->dtype == ACCEL_BOOL)
        return ((const int64_t *)m->data)[i] ? 0 : -INFINITY;
    return (double)((const real *)m->data)[i];
}

static double bias(const void *ctx, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const struct masks *m = ctx;
    int64_t offset = m->past;
    if (m->valid && t >= m->valid[b])
        return -INFINITY;
    if (m->valid && !m->past)
        offset = m->valid[b] - m->steps;
    if (m->causal && t > s + offset)
        return -INFINITY;
    if ((m->left >= 0 && t < s + offset - m->left) || (m->right >= 0 && t > s + offset + m->right))
        return -INFINITY;
    return m->mask ? mask_at(m->mask, b, h, s, t) : 0;
}

/* The mask fits [B H S T], but for a last axis that may be shorter. */
static enum accel_err check_mask(const struct accel_attend *a, const struct accel_array *m)
{
    const int64_t want[4] = {a->batch, a->heads, a->steps, a->past + a->fresh};
    if (m->rank < 1 || m->rank > 4)
        return accel_fail(ACCEL_ESHAPE, "the mask has rank %d", m->rank);
    for (int d = 0; d < m->rank; d++) {
        int64_t size = m->dim[d], full = want[4 - m->rank + d];
        if (size != 1 && size != full && !(d == m->rank - 1 && size < full))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the mask is %lld, expected %lld", d,
                              (long long)size, (long long)full);
    }
    const struct accel_dtype_info *t = accel_dtype_find((int)m->dtype);
    if (m->dtype != ACCEL_BOOL && (!t || t->cls != ACCEL_CLASS_REAL))
        return accel_fail(ACCEL_ENOSUP, "a mask of integers");
    return ACCEL_OK;
}

static enum accel_err check_sizes(const struct accel_call *c, const struct accel_attend *a)
{
    const struct accel_array *k = &c->x[K], *v = &c->x[V], *pk = operand(c, PAST_K),
                             *pv = operand(c, PAST_V), *valid = operand(c, VALID);
    int64_t B = a->batch, Hk = a->kv_heads;
    if (Hk < 1 || a->heads % Hk || k->n != B * Hk * a->fresh * a->size ||
        v->n != B * Hk * a->fresh * a->v_size)
        return accel_fail(ACCEL_ESHAPE, "K and V do not fit %lld heads of Q", (long long)a->heads);
    if (!pk != !pv ||
        (pk && (pk->n != B * Hk * a->past * a->size || pv->n != B * Hk * a->past * a->v_size)))
        return accel_fail(ACCEL_ESHAPE, "past keys and values do not fit K and V");
    if (valid && valid->n != B)
        return accel_fail(ACCEL_ESHAPE, "nonpad_kv_seqlen has %lld elements for a batch of %lld",
                          (long long)valid->n, (long long)B);
    return ACCEL_OK;
}

/* Sizes and places of the operands. */
static enum accel_err lay_out(struct accel_attend *a, const struct accel_call *c)
{
    const struct attention_params *p = c->node->params;
    const struct accel_array *q = &c->x[Q], *k = &c->x[K], *v = &c->x[V],
                             *past = operand(c, PAST_K);
    bool flat = q->rank == 3;
    if (q->rank != k->rank || q->rank != v->rank || (flat && (p->q_heads < 1 || p->kv_heads < 1)))
        return accel_fail(ACCEL_ESHAPE, "Q, K and V have ranks %d, %d, %d; heads %lld and %lld",
                          q->rank, k->rank, v->rank, (long long)p->q_heads, (long long)p->kv_heads);
    *a = (struct accel_attend){.batch = q->dim[0], .sink = -INFINITY};
    a->heads = flat ? p->q_heads : q->dim[1];
    a->kv_heads = flat ? p->kv_heads : k->dim[1];
    a->steps = q->dim[flat ? 1 : 2];
    a->fresh = k->dim[flat ? 1 : 2];
    a->past = past && past->rank == 4 ? past->dim[2] : 0;
    a->size = flat ? q->dim[2] / a->heads : q->dim[3];
    a->v_size = flat ? v->dim[2] / a->kv_heads : v->dim[3];
    if (a->size < 1 || a->v_size < 1)
        return accel_fail(ACCEL_ESHAPE, "heads of %lld and %lld elements", (long long)a->size,
                          (long long)a->v_size);
    ACCEL_TRY(check_sizes(c, a));
    a->q = accel_heads_of(q->data, flat, a->heads, a->steps, a->size);
    a->k = accel_heads_of(k->data, flat, a->kv_heads, a->fresh, a->size);
    a->v = accel_heads_of(v->data, flat, a->kv_heads, a->fresh, a->v_size);
    a->y = accel_heads_of(c->y[0].data, flat, a->heads, a->steps, a->v_size);
    if (past) {
        a->past_k = accel_heads_of(past->data, false, a->kv_heads, a->past, a->size);
        a->past_v = accel_heads_of(c->x[PAST_V].data, false, a->kv_heads, a->past, a->v_size);
    }
    return ACCEL_OK;
}

static enum accel_err forward(const struct accel_call *c)
{
    struct accel_attend a;
    struct masks m = {.mask = operand(c, MASK)};
    int64_t causal, stage;
    float scale, softcap;
    if (accel_op_is_int(&c->x[Q]) || accel_op_is_int(&c->x[K]) || accel_op_is_int(&c->x[V]))
        return accel_fail(ACCEL_ENOSUP, "Attention of integers");
    ACCEL_TRY(lay_out(&a, c));
    ACCEL_TRY(accel_attr_int(&causal, c->node, "is_causal", 0));
    ACCEL_TRY(accel_attr_int(&m.left, c->node, "left_window_size", -1));
    ACCEL_TRY(accel_attr_int(&m.right, c->node, "right_window_size", -1));
    ACCEL_TRY(accel_attr_int(&stage, c->node, "qk_matmul_output_mode", 0));
    ACCEL_TRY(accel_attr_float(&scale, c->node, "scale", 0));
    ACCEL_TRY(accel_attr_float(&softcap, c->node, "softcap", 0));
    if (m.mask)
        ACCEL_TRY(check_mask(&a, m.mask));
    if (operand(c, VALID))
        m.valid = operand(c, VALID)->data;
    m.causal = causal != 0;
    m.past = a.past;
    m.steps = a.steps;
    a.scale = accel_attr_find(c->node, "scale") ? (double)scale : 1 / sqrt((double)a.size);
    a.softcap = (double)softcap;
    a.bias = bias;
    a.ctx = &m;
    a.row = c->scratch;
    a.stage = (int)stage;
    a.scores = c->node->n_out > 3 ? c->y[3].data : NULL;
    accel_attend(&a);
    if (c->node->n_out > 1 && c->y[1].data)
        accel_attend_present(c->y[1].data, &a, &a.past_k, &a.k, a.size);
    if (c->node->n_out > 2 && c->y[2].data)
        accel_attend_present(c->y[2].data, &a, &a.past_v, &a.v, a.v_size);
    return ACCEL_OK;
}

static size_t scratch(const struct accel_call *c)
{
    struct accel_attend a;
    return lay_out(&a, c) ? 0 : accel_attend_scratch(a.batch, a.heads, a.past + a.fresh);
}

/* The batch. */
static void links(const struct accel_node *n, struct accel_links *l)
{
    struct accel_axis at[8] = {{0, 0}, {1, 0}, {2, 0}};
    int count = 3;
    for (int i = MASK; i < n->n_in; i++)
        if (accel_operand(n, i))
            return;
    for (int o = 0; o < n->n_out; o++)
        if (n->out[o])
            at[count++] = (struct accel_axis){accel_link_out(n, o), 0};
    accel_links_axes(l, count, at);
}

/* Samples without values give 0. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_copy0(z, V, 0, accel_link_out(n, 0), 0);
}

static const struct accel_attr_rule attrs[] = {{"is_causal", ACCEL_ATTR_INT, 0},
                                               {"kv_num_heads", ACCEL_ATTR_INT, 0},
                                               {"left_window_size", ACCEL_ATTR_INT, 0},
                                               {"q_num_heads", ACCEL_ATTR_INT, 0},
                                               {"qk_matmul_output_mode", ACCEL_ATTR_INT, 0},
                                               {"right_window_size", ACCEL_ATTR_INT, 0},
                                               {"scale", ACCEL_ATTR_FLOAT, 0},
                                               {"softcap", ACCEL_ATTR_FLOAT, 0},
                                               {"softmax_precision", ACCEL_ATTR_INT, 0},
                                               {0}};
static const char *const examples[] = {"2x3x4x8 2x3x6x8 2x3x6x10",
                                       "2x4x24 2x6x24 2x6x30 | q_num_heads=3 kv_num_heads=3",
                                       "2x4x4x8 2x2x6x8 2x2x6x8", NULL};

const struct accel_op accel_op_attention = {
    .name = "Attention",
    .domain = "",
    .since = 23,
    .min_in = 3,
    .max_in = 7,
    .min_out = 1,
    .max_out = 4,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .cost = cost,
    .links = links,
    .zero = zero,
    .forward = forward,
    .scratch = scratch,
    .examples = examples,
};
