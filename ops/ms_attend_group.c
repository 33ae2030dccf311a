/* ms_attend_group.c - com.microsoft's GroupQueryAttention.
 *
 * Q [B S H*D], K and V [B S Hk*D], or packed into one [B S (H + 2 Hk)*D]. seqlens_k [B] says how
 * many keys a sample has in all, less one. In a first turn (S is the total) all of them are fresh;
 * later the past buffer [B Hk P D] holds the first ones and the fresh ones follow. So samples
 * differ in where their keys end: the keys are laid out as the present buffer first, and attention
 * runs over that, one sample at a time. Source: the operator's page and ONNX Runtime's behaviour.
 */
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/attend.h"
#include "ops/ms_attend.h"
#include "ops/operand.h"

enum { Q, K, V, PAST_K, PAST_V, LENGTHS, TOTAL, COS, SIN, PLACES, ADDED, SINK };

struct group {
    const struct accel_call *c;
    int64_t batch, heads, kv_heads, steps, size, past, total;
    int64_t present; /* keys that the present buffers hold */
    bool packed, first, rotary, interleaved;
    int64_t window;
    int64_t of_past, keys; /* of the sample at hand */
    int64_t b;
    real *q, *k, *v; /* of the sample at hand: [S H D], [present Hk D] twice */
    double *row;
    const struct accel_array *added, *sink, *cosine, *sine, *places;
};

static const struct accel_array *operand(const struct accel_call *c, int i)
{
    return i < c->node->n_in && c->x[i].data ? &c->x[i] : NULL;
}

static enum accel_err sizes(struct group *g, const struct accel_call *c)
{
    const struct accel_ms_attention_params *n = c->node->params;
    const struct accel_array *q = &c->x[Q], *k = operand(c, K), *v = operand(c, V);
    const struct accel_array *pk = operand(c, PAST_K), *pv = operand(c, PAST_V);
    int64_t parts = n->heads + 2 * n->kv_heads, total;
    *g = (struct group){.c = c, .heads = n->heads, .kv_heads = n->kv_heads, .packed = !k};
    if (q->rank != 3 || !k != !v || !pk != !pv || (pk && (pk->rank != 4 || pv->n != pk->n)) ||
        !accel_op_one_int(&total, c, TOTAL))
        return accel_fail(ACCEL_ENOSUP, "this form of %s", c->node->op_type);
    g->batch = q->dim[0];
    g->steps = q->dim[1];
    g->size = q->dim[2] / (g->packed ? parts : g->heads);
    g->past = pk ? pk->dim[2] : 0;
    g->total = total;
    g->present = g->past > total ? g->past : total;
    g->first = g->steps == total;
    if (g->size < 1 || g->heads % g->kv_heads ||
        q->dim[2] != g->size * (g->packed ? parts : g->heads) || total < 0 ||
        (k && (k->n != g->batch * g->steps * g->kv_heads * g->size || v->n != k->n)) ||
        (pk && pk->n != g->batch * g->kv_heads * g->past * g->size))
        return accel_fail(ACCEL_ESHAPE, "Q, K, V and their past do not fit %lld and %lld heads",
                          (long long)g->heads, (long long)g->kv_heads);
    return ACCEL_OK;
}

/* Row of Q (part 0), K (1) or V (2): head h of token s of the sample. */
static const real *fresh(const struct group *g, int part, int64_t h, int64_t s)
{
    int64_t token = g->b * g->steps + s, heads = part ? g->kv_heads : g->heads;
    if (!g->packed)
        return (const real *)g->c->x[Q + part].data + (token * heads + h) * g->size;
    int64_t before = part == 0 ? 0 : g->heads + (part - 1) * g->kv_heads;
    int64_t all = g->heads + 2 * g->kv_heads;
    return (const real *)g->c->x[Q].data + (token * all + before + h) * g->size;
}

/* A row, turned by the angles of its place. */
static enum accel_err place(real *to, const struct group *g, const real *from, int64_t s)
{
    memcpy(to, from, (size_t)g->size * sizeof *to);
    if (!g->rotary)
        return ACCEL_OK;
    int64_t half = g->cosine->dim[1], at = (g->first ? 0 : g->of_past) + s;
    if (g->places)
        at = ((const int64_t *)g->places->data)[g->b * g->steps + s];
    if (at < 0 || at >= g->cosine->dim[0])
        return accel_fail(ACCEL_ESHAPE, "place %lld of %lld", (long long)at,
                          (long long)g->cosine->dim[0]);
    const real *co = (const real *)g->cosine->data + at * half;
    const real *si = (const real *)g->sine->data + at * half;
    for (int64_t i = 0; i < half; i++) {
        int64_t a = g->interleaved ? 2 * i : i, b = g->interleaved ? 2 * i + 1 : i + half;
        double u = (double)from[a], v = (double)from[b];
        to[a] = (real)((double)co[i] * u - (double)si[i] * v);
        to[b] = (real)((double)si[i] * u + (double)co[i] * v);
    }
    return ACCEL_OK;
}

/* The sample's queries, keys and values in scratch, the fresh ones behind those of the past. */
static enum accel_err gather(struct group *g)
{
    int64_t D = g->size, Hk = g->kv_heads;
    const struct accel_array *pk = operand(g->c, PAST_K), *pv = operand(g->c, PAST_V);
    memset(g->k, 0, (size_t)(g->present * Hk * D) * sizeof *g->k);
    memset(g->v, 0, (size_t)(g->present * Hk * D) * sizeof *g->v);
    for (int64_t i = 0; pk && i < Hk * g->of_past; i++) {
        int64_t h = i / g->of_past, t = i % g->of_past;
        int64_t from = ((g->b * Hk + h) * g->past + t) * D, to = (t * Hk + h) * D;
        memcpy(g->k + to, (const real *)pk->data + from, (size_t)D * sizeof *g->k);
        memcpy(g->v + to, (const real *)pv->data + from, (size_t)D * sizeof *g->v);
    }
    for (int64_t s = 0; s < g->steps; s++) {
        for (int64_t h = 0; h < g->heads; h++)
            ACCEL_TRY(place(g->q + (s * g->heads + h) * D, g, fresh(g, 0, h, s), s));
        for (int64_t h = 0; h < Hk; h++) {
            int64_t to = ((g->of_past + s) * Hk + h) * D;
            ACCEL_TRY(place(g->k + to, g, fresh(g, 1, h, s), s));
            memcpy(g->v + to, fresh(g, 2, h, s), (size_t)D * sizeof *g->v);
        }
    }
    return ACCEL_OK;
}

static double bias(const void *ctx, int64_t b, int64_t h, int64_t s, int64_t t)
{
    const struct group *g = ctx;
    int64_t own = g->of_past + s;
    (void)b;
    if (t > own || t >= g->keys || (g->window >= 0 && t <= own - g->window))
        return -INFINITY;
    if (!g->added)
        return 0;
    const struct accel_array *a = g->added;
    int64_t at = (a->dim[0] == 1 ? 0 : g->b) * a->dim[1] + (a->dim[1] == 1 ? 0 : h);
    return (double)((const real *)a->data)[(at * a->dim[2] + s) * a->dim[3] + t];
}

/* The present buffers of the sample, [Hk present D]. */
static void keep(const struct group *g, int slot, const real *from)
{
    int64_t D = g->size, Hk = g->kv_heads;
    if (slot >= g->c->node->n_out || !g->c->y[slot].data)
        return;
    real *to = (real *)g->c->y[slot].data + g->b * Hk * g->present * D;
    for (int64_t i = 0; i < Hk * g->present; i++)
        memcpy(to + i * D, from + (i % g->present * Hk + i / g->present) * D,
               (size_t)D * sizeof *to);
}

static enum accel_err attend_sample(struct group *g, float scale, float softcap)
{
    int64_t last = ((const int64_t *)operand(g->c, LENGTHS)->data)[g->b];
    struct accel_attend a = {.batch = 1, .heads = g->heads, .kv_heads = g->kv_heads};
    g->keys = last < INT64_MAX ? last + 1 : last;
    g->of_past = g->first ? 0 : g->keys - g->steps;
    if (g->keys < 1 || g->keys > g->total || g->of_past < 0 || g->of_past > g->past ||
        g->of_past + g->steps > g->present)
        return accel_fail(ACCEL_ESHAPE, "sample %lld has %lld keys of %lld, %lld fresh",
                          (long long)g->b, (long long)g->keys, (long long)g->total,
                          (long long)g->steps);
    ACCEL_TRY(gather(g));
    a.steps = g->steps;
    a.fresh = g->of_past + g->steps;
    a.size = a.v_size = g->size;
    a.scale = scale != 0 ? (double)scale : 1 / sqrt((double)g->size);
    a.softcap = (double)softcap;
    a.q = accel_heads_of(g->q, true, g->heads, g->steps, g->size);
    a.k = accel_heads_of(g->k, true, g->kv_heads, g->present, g->size);
    a.v = accel_heads_of(g->v, true, g->kv_heads, g->present, g->size);
    a.y = accel_heads_of((real *)g->c->y[0].data + g->b * g->steps * g->heads * g->size, true,
                         g->heads, g->steps, g->size);
    a.bias = bias;
    a.ctx = g;
    a.row = g->row;
    a.sink = -INFINITY;
    accel_attend(&a);
    keep(g, 1, g->k);
    keep(g, 2, g->v);
    return ACCEL_OK;
}

/* Forms that the plain kernel does not have; the tables and the bias that it reads. */
static enum accel_err check(struct group *g)
{
    const struct accel_call *c = g->c;
    const struct accel_array *lengths = operand(c, LENGTHS);
    const char *k_quant, *v_quant;
    int64_t smooth, rotary, interleaved;
    ACCEL_TRY(accel_attr_int(&smooth, c->node, "smooth_softmax", 0));
    ACCEL_TRY(accel_attr_int(&rotary, c->node, "do_rotary", 0));
    ACCEL_TRY(accel_attr_int(&interleaved, c->node, "rotary_interleaved", 0));
    ACCEL_TRY(accel_attr_int(&g->window, c->node, "local_window_size", -1));
    ACCEL_TRY(accel_attr_string(&k_quant, c->node, "k_quant_type", "NONE"));
    ACCEL_TRY(accel_attr_string(&v_quant, c->node, "v_quant_type", "NONE"));
    g->rotary = rotary != 0;
    g->interleaved = interleaved != 0;
    g->cosine = operand(c, COS);
    g->sine = operand(c, SIN);
    g->places = operand(c, PLACES);
    g->added = operand(c, ADDED);
    if (smooth == 1 || operand(c, SINK) || strcmp(k_quant, "NONE") || strcmp(v_quant, "NONE") ||
        (c->node->n_out > 3 && c->y[3].data) || c->node->n_in > SINK + 1)
        return accel_fail(ACCEL_ENOSUP, "this form of %s", c->node->op_type);
    for (int i = 0; i < c->node->n_in; i++)
        if (operand(c, i) &&
            accel_op_is_int(operand(c, i)) != (i == LENGTHS || i == TOTAL || i == PLACES))
            return accel_fail(ACCEL_ENOSUP, "input %d of another type", i);
    if (!lengths || lengths->n != g->batch || (g->places && g->places->n != g->batch * g->steps))
        return accel_fail(ACCEL_ESHAPE, "lengths or places do not fit a batch of %lld",
                          (long long)g->batch);
    if (g->rotary && (!g->cosine || !g->sine || g->cosine->rank != 2 ||
                      g->sine->n != g->cosine->n || g->cosine->dim[1] > g->size / 2))
        return accel_fail(ACCEL_ESHAPE, "cosines and sines do not fit heads of %lld",
                          (long long)g->size);
    if (g->added &&
        (g->added->rank != 4 || g->added->dim[2] != g->steps || g->added->dim[3] < g->total ||
         (g->added->dim[0] != 1 && g->added->dim[0] != g->batch) ||
         (g->added->dim[1] != 1 && g->added->dim[1] != g->heads)))
        return accel_fail(ACCEL_ESHAPE, "the attention bias does not fit %lld x %lld scores",
                          (long long)g->steps, (long long)g->total);
    return ACCEL_OK;
}

enum accel_err accel_ms_group(const struct accel_call *c)
{
    struct group g;
    float scale, softcap;
    ACCEL_TRY(sizes(&g, c));
    ACCEL_TRY(check(&g));
    ACCEL_TRY(accel_attr_float(&scale, c->node, "scale", 0));
    ACCEL_TRY(accel_attr_float(&softcap, c->node, "softcap", 0));
    for (int o = 1; o < c->node->n_out && o < 3; o++)
        if (c->y[o].data && c->y[o].n != g.batch * g.kv_heads * g.present * g.size)
            return accel_fail(ACCEL_ESHAPE, "present buffers of %lld elements",
                              (long long)c->y[o].n);
    g.row = c->scratch;
    g.q = (real *)(g.row + g.heads * g.present);
    g.k = g.q + g.steps * g.heads * g.size;
    g.v = g.k + g.present * g.kv_heads * g.size;
    for (g.b = 0; g.b < g.batch; g.b++)
        ACCEL_TRY(attend_sample(&g, scale, softcap));
    return ACCEL_OK;
}

size_t accel_ms_group_scratch(const struct accel_call *c)
{
    struct group g;
    if (sizes(&g, c))
        return 0;
    size_t rows = accel_attend_scratch(1, g.heads, g.present);
    int64_t q = accel_macs_mul(g.steps, accel_macs_mul(g.heads, g.size));
    int64_t kv = accel_macs_mul(accel_macs_mul(2, g.present), accel_macs_mul(g.kv_heads, g.size));
    int64_t all = accel_macs_mul(accel_macs_add(q, kv), sizeof(real));
    return rows == SIZE_MAX || all < 0 ? SIZE_MAX : rows + (size_t)all;
}
