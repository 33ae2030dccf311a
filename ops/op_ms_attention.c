/* Attention as ONNX Runtime's optimizers write it, domain com.microsoft.
 *
 * Attention, QAttention: X [B S I] times one weight [I Wq+Wk+Wv] gives Q, K and V; Y [B S Wv].
 * MultiHeadAttention, GroupQueryAttention: Q [B S W], K [B T W], V [B T Wv] as inputs; Y [B S Wv].
 * Packed or 4-D operands are allowed there; what they leave open stays unknown. */
#include "graph/attr.h"
#include "graph/constprop.h"
#include "ops/attention_links.h"
#include "ops/link_util.h"
#include "ops/ms_attend.h"

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct accel_ms_attention_params *p =
        ACCEL_NEW(&n->graph->model->arena, struct accel_ms_attention_params, 1);
    size_t count;
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&p->heads, n, "num_heads", 1));
    ACCEL_TRY(accel_attr_int(&p->kv_heads, n, "kv_num_heads", p->heads));
    ACCEL_TRY(accel_attr_ints(&p->sizes, &count, n, "qkv_hidden_sizes"));
    if (count == 0)
        p->sizes = NULL;
    if (p->heads < 1 || p->kv_heads < 1)
        return accel_fail(ACCEL_EMODEL, "attributes num_heads and kv_num_heads are %lld and %lld",
                          (long long)p->heads, (long long)p->kv_heads);
    if (p->sizes && (count != 3 || p->sizes[0] < 1 || p->sizes[1] < 1 || p->sizes[2] < 1))
        return accel_fail(ACCEL_EMODEL, "attribute 'qkv_hidden_sizes' is not three sizes");
    n->params = p;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ Attention, QAttention */

/* Widths of Q and V, from the attribute or a third of the weight's columns. */
static enum accel_err widths(struct accel_dim *q, struct accel_dim *v, const struct accel_node *n)
{
    const struct accel_ms_attention_params *p = n->params;
    struct accel_dim columns = accel_operand_dim(n, 1, 1);
    *q = *v = accel_dim_unknown();
    if (p->sizes) {
        *q = accel_dim_of(p->sizes[0]);
        *v = accel_dim_of(p->sizes[2]);
        return ACCEL_OK;
    }
    if (!accel_dim_known(columns))
        return ACCEL_OK;
    if (columns.n % 3 != 0)
        return accel_fail(ACCEL_ESHAPE, "weight '%.200s' has %lld columns, no multiple of 3",
                          n->in[1]->name, (long long)columns.n);
    *q = *v = accel_dim_of(columns.n / 3);
    return ACCEL_OK;
}

/* Fresh steps behind those of a past state, axis `axis` of a slot. */
static struct accel_dim steps_after(struct accel_dim fresh, const struct accel_node *n, int past,
                                    int axis)
{
    if (!accel_operand(n, past))
        return fresh;
    int64_t all = accel_macs_add(fresh.n, accel_operand_dim(n, past, axis).n);
    return all < 0 ? accel_dim_unknown() : accel_dim_of(all);
}

static enum accel_err infer(struct accel_node *n)
{
    const struct accel_ms_attention_params *p = n->params;
    struct accel_dim q, v, in = accel_operand_dim(n, 0, 2), want = accel_operand_dim(n, 1, 0);
    ACCEL_TRY(accel_operand_check_rank(n, 0, 3));
    ACCEL_TRY(accel_operand_check_rank(n, 1, 2));
    if (accel_dim_differs(in, want))
        return accel_fail(ACCEL_ESHAPE, "input has %lld columns, weight '%.200s' expects %lld",
                          (long long)in.n, n->in[1]->name, (long long)want.n);
    ACCEL_TRY(widths(&q, &v, n));
    struct accel_dim y[3] = {accel_operand_dim(n, 0, 0), accel_operand_dim(n, 0, 1), v};
    ACCEL_TRY(accel_result_dims(n, 0, accel_operand_dtype(n, n->op->min_in == 5 ? 3 : 0), 3, y));
    struct accel_shape present;
    ACCEL_TRY(accel_shape_new(&present, n, 5));
    present.dim[0] = accel_dim_of(2);
    present.dim[1] = y[0];
    present.dim[2] = accel_dim_of(p->heads);
    present.dim[3] =
        steps_after(y[1], n, ((const struct accel_ms_attention *)n->op->family)->past, 3);
    if (accel_dim_known(q) && q.n % p->heads == 0)
        present.dim[4] = accel_dim_of(q.n / p->heads);
    accel_result_set(n, 1, accel_operand_dtype(n, n->op->min_in == 5 ? 3 : 0), present);
    return ACCEL_OK;
}

/* The projection B * S * I * columns, and B * S * T * (Wq + Wv) */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    const struct accel_ms_attention *f = n->op->family;
    struct accel_dim q, v;
    c->macs = -1;
    if (widths(&q, &v, n) != ACCEL_OK)
        return;
    int64_t steps = accel_operand_dim(n, 0, 1).n, total = steps;
    if (accel_operand(n, f->past))
        total = accel_macs_add(steps, accel_operand_dim(n, f->past, 3).n);
    int64_t rows = accel_macs_mul(accel_operand_dim(n, 0, 0).n, steps);
    int64_t project = accel_macs_mul(accel_macs_mul(rows, accel_operand_dim(n, 1, 0).n),
                                     accel_operand_dim(n, 1, 1).n);
    int64_t attend = accel_macs_mul(accel_macs_mul(rows, total), accel_macs_add(q.n, v.n));
    c->macs = accel_macs_add(project, attend);
}

static int weights(const struct accel_node *n, struct accel_weight w[4])
{
    (void)n;
    w[0] = (struct accel_weight){1, 2, 1, 0, -1, "Linear", false, 2, 0, 0};
    return 1;
}

static struct accel_packed_heads packed_of(const struct accel_node *n)
{
    const struct accel_ms_attention_params *p = n->params;
    struct accel_dim q, v;
    bool known = !widths(&q, &v, n) && accel_dim_known(q) && accel_dim_known(v);
    return (struct accel_packed_heads){p->heads, known ? q.n : -1, known ? v.n : -1};
}

static void packed_links(const struct accel_node *n, struct accel_links *l)
{
    struct accel_packed_heads h = packed_of(n);
    accel_packed_links(l, &h);
}

static void packed_zero(const struct accel_node *n, struct accel_zero *z)
{
    (void)n;
    accel_packed_zero(z);
}

static enum accel_err packed_resize(struct accel_node *n, struct accel_resize *r)
{
    const struct accel_ms_attention_params *p = n->params;
    struct accel_packed_heads h = packed_of(n);
    if (h.v < h.heads || !accel_resize_hit(r, n->n_in, 2))
        return ACCEL_OK;
    int64_t left = accel_packed_left(r, &h), q = h.q / h.heads * left, v = h.v / h.heads * left;
    ACCEL_TRY(accel_resize_attr_int(r, "num_heads", left));
    return p->sizes ? accel_resize_attr_ints(r, "qkv_hidden_sizes", (const int64_t[]){q, q, v}, 3)
                    : ACCEL_OK;
}

/* ------------------------------------------------------------------ MultiHeadAttention … */

/* GroupQueryAttention has a family. Masks and lengths say nothing of heads; a bias for each head
 * does, and so do scales of a quantised cache: then nothing is said. */
static struct accel_split_heads split_of(const struct accel_node *n)
{
    const struct accel_ms_attention_params *p = n->params;
    return n->op->family ? (struct accel_split_heads){p->heads, p->kv_heads, -1, 3}
                         : (struct accel_split_heads){p->heads, p->heads, 3, 6};
}

static void multi_links(const struct accel_node *n, struct accel_links *l)
{
    struct accel_split_heads h = split_of(n);
    for (int i = n->op->family ? 10 : 5; i < n->n_in; i++)
        if (n->in[i] && (n->op->family || i == 5 || i > 7))
            return;
    if (!accel_link_has_out(n, 3))
        accel_split_links(l, &h);
}

static void multi_zero(const struct accel_node *n, struct accel_zero *z)
{
    struct accel_split_heads h = split_of(n);
    accel_split_zero(z, &h);
}

static enum accel_err multi_resize(struct accel_node *n, struct accel_resize *r)
{
    struct accel_split_heads h = split_of(n);
    if (!accel_resize_hit(r, 1, 2))
        return ACCEL_OK;
    int64_t left = accel_split_left(r, &h);
    ACCEL_TRY(accel_resize_attr_int(r, "num_heads", h.heads / h.kv_heads * left));
    return n->op->family ? accel_resize_attr_int(r, "kv_num_heads", left) : ACCEL_OK;
}

/* Widths of Y and of Q; unknown for packed operands of other forms. */
static void multi_widths(struct accel_dim *q, struct accel_dim *y, const struct accel_node *n)
{
    const struct accel_ms_attention_params *p = n->params;
    *q = *y = accel_dim_unknown();
    if (accel_operand_rank(n, 0) != 3)
        return;
    *q = *y = accel_operand_dim(n, 0, 2);
    if (!accel_operand(n, 1) && accel_dim_known(*q)) {
        /* only GroupQueryAttention packs Q, K and V into one 3-D operand */
        int64_t parts = accel_macs_add(p->heads, accel_macs_mul(2, p->kv_heads));
        *q = *y = parts > 0 && q->n % parts == 0
                      ? accel_dim_of(accel_macs_mul(q->n / parts, p->heads))
                      : accel_dim_unknown();
    } else if (!n->op->family && accel_operand_rank(n, 2) == 3) {
        *y = accel_operand_dim(n, 2, 2);
    }
}

/* Steps of the present states. GroupQueryAttention: those of the past buffer or of input 6, the
 * total, whichever are more. */
static enum accel_err present_steps(struct accel_dim *out, const struct accel_node *n)
{
    const int64_t *total;
    int64_t count;
    *out = accel_dim_unknown();
    if (!n->op->family) {
        int key = accel_operand_rank(n, 1);
        if (key == 3 || key == 4)
            *out = steps_after(accel_operand_dim(n, 1, key - 2), n, 6, 2);
        return ACCEL_OK;
    }
    if (!accel_operand(n, 6))
        return ACCEL_OK;
    ACCEL_TRY(accel_known_ints(&total, &count, n->in[6]));
    int64_t past = accel_operand(n, 3) ? accel_operand_dim(n, 3, 2).n : 0;
    if (total && count == 1 && past >= 0 && total[0] >= 0)
        *out = accel_dim_of(past > total[0] ? past : total[0]);
    return ACCEL_OK;
}

static enum accel_err multi_infer(struct accel_node *n)
{
    const struct accel_ms_attention_params *p = n->params;
    enum accel_dtype dtype = accel_operand_dtype(n, 0);
    struct accel_dim q, width;
    struct accel_dim y[3] = {accel_operand_dim(n, 0, 0), accel_operand_dim(n, 0, 1),
                             accel_dim_unknown()};
    struct accel_dim present[4] = {y[0], accel_dim_of(p->kv_heads), accel_dim_unknown(),
                                   accel_dim_unknown()};
    multi_widths(&q, &width, n);
    y[2] = width;
    if (accel_dim_known(q) && q.n % p->heads == 0)
        present[3] = accel_dim_of(q.n / p->heads);
    ACCEL_TRY(present_steps(&present[2], n));
    struct accel_dim scores[4] = {y[0], accel_dim_of(p->heads), y[1], present[2]};
    ACCEL_TRY(accel_result_dims(n, 0, dtype, 3, y));
    for (int i = 1; i < 3; i++)
        ACCEL_TRY(accel_result_dims(n, i, dtype, 4, present));
    return accel_result_dims(n, 3, dtype, 4, scores);
}

/* B * S * T * (Wq + Wy), for operands that are not packed */
static void multi_cost(const struct accel_node *n, struct accel_cost *c)
{
    struct accel_dim q, y, steps = accel_operand_dim(n, 0, 1);
    multi_widths(&q, &y, n);
    int key = accel_operand_rank(n, 1);
    int64_t total = key == 3               ? accel_operand_dim(n, 1, 1).n
                    : key == 4             ? accel_operand_dim(n, 1, 2).n
                    : !accel_operand(n, 1) ? steps.n
                                           : -1;
    int past = n->op->family ? 3 : 6;
    if (accel_operand(n, past))
        total = accel_macs_add(total, accel_operand_dim(n, past, 2).n);
    int64_t rows = accel_macs_mul(accel_operand_dim(n, 0, 0).n, steps.n);
    c->macs = accel_macs_mul(accel_macs_mul(rows, total), accel_macs_add(q.n, y.n));
}

static const struct accel_attr_rule attention_attrs[] = {
    {"do_rotary", ACCEL_ATTR_INT, 0},
    {"mask_filter_value", ACCEL_ATTR_FLOAT, 0},
    {"num_heads", ACCEL_ATTR_INT, ACCEL_REQUIRED},
    {"past_present_share_buffer", ACCEL_ATTR_INT, 0},
    {"qkv_hidden_sizes", ACCEL_ATTR_INTS, 0},
    {"rotary_embedding_dim", ACCEL_ATTR_INT, 0},
    {"scale", ACCEL_ATTR_FLOAT, 0},
    {"unidirectional", ACCEL_ATTR_INT, 0},
    {0}};
static const struct accel_attr_rule q_attrs[] = {{"do_rotary", ACCEL_ATTR_INT, 0},
                                                 {"mask_filter_value", ACCEL_ATTR_FLOAT, 0},
                                                 {"num_heads", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                                 {"past_present_share_buffer", ACCEL_ATTR_INT, 0},
                                                 {"scale", ACCEL_ATTR_FLOAT, 0},
                                                 {"unidirectional", ACCEL_ATTR_INT, 0},
                                                 {0}};
static const struct accel_attr_rule multi_attrs[] = {{"mask_filter_value", ACCEL_ATTR_FLOAT, 0},
                                                     {"num_heads", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                                     {"scale", ACCEL_ATTR_FLOAT, 0},
                                                     {"unidirectional", ACCEL_ATTR_INT, 0},
                                                     {0}};
static const struct accel_attr_rule group_attrs[] = {
    {"causal", ACCEL_ATTR_INT, 0},
    {"do_rotary", ACCEL_ATTR_INT, 0},
    {"k_norm_epsilon", ACCEL_ATTR_FLOAT, 0},
    {"k_quant_type", ACCEL_ATTR_STRING, 0},
    {"kv_cache_bit_width", ACCEL_ATTR_INT, 0},
    {"kv_num_heads", ACCEL_ATTR_INT, ACCEL_REQUIRED},
    {"local_window_size", ACCEL_ATTR_INT, 0},
    {"num_heads", ACCEL_ATTR_INT, ACCEL_REQUIRED},
    {"q_norm_epsilon", ACCEL_ATTR_FLOAT, 0},
    {"qk_norm_epsilon", ACCEL_ATTR_FLOAT, 0},
    {"qk_output", ACCEL_ATTR_INT, 0},
    {"rotary_interleaved", ACCEL_ATTR_INT, 0},
    {"scale", ACCEL_ATTR_FLOAT, 0},
    {"sliding_window_cache", ACCEL_ATTR_INT, 0},
    {"smooth_softmax", ACCEL_ATTR_INT, 0},
    {"softcap", ACCEL_ATTR_FLOAT, 0},
    {"v_quant_type", ACCEL_ATTR_STRING, 0},
    {0}};
static const char *const attention_examples[] = {"2x4x6 6x18 18 | num_heads=3", NULL};
static const char *const q_examples[] = {"u8:2x4x6 i8:6x18 18 scalar scalar | num_heads=3", NULL};
static const char *const multi_examples[] = {"2x4x6 2x5x6 2x5x6 | num_heads=3", NULL};
static const char *const group_examples[] = {
    "2x4x8 2x4x4 2x4x4 2x2x3x2 2x2x3x2 i32:2 i32:scalar | num_heads=4 kv_num_heads=2", NULL};

static const struct accel_ms_attention of_weight = {4, false}, of_bytes = {8, true},
                                       of_groups = {3, false};

#define ROW(onnx, least, most, outs, rules, shapes, macs_of, holds, what, eg, ...)                 \
    {                                                                                              \
        .name = (onnx), .domain = "com.microsoft", .since = 1, .min_in = (least),                  \
        .max_in = (most), .min_out = 1, .max_out = (outs), .attrs = (rules), .parse = parse,       \
        .infer = (shapes), .cost = (macs_of), .weights = (holds), .family = (what),                \
        .examples = (eg), __VA_ARGS__                                                              \
    }
const struct accel_op accel_op_ms_attention =
    ROW("Attention", 2, 7, 2, attention_attrs, infer, cost, weights, &of_weight, attention_examples,
        .links = packed_links, .zero = packed_zero, .resize = packed_resize,
        .forward = accel_ms_attention, .scratch = accel_ms_attention_scratch);
const struct accel_op accel_op_ms_qattention =
    ROW("QAttention", 5, 9, 2, q_attrs, infer, cost, weights, &of_bytes, q_examples,
        .forward = accel_ms_attention, .scratch = accel_ms_attention_scratch,
        .keep = 1u << 3 | 1u << 4 | 1u << 6 | 1u << 7);
const struct accel_op accel_op_ms_multiheadattention =
    ROW("MultiHeadAttention", 1, 10, 4, multi_attrs, multi_infer, multi_cost, NULL, NULL,
        multi_examples, .links = multi_links, .zero = multi_zero, .resize = multi_resize,
        .forward = accel_ms_multi, .scratch = accel_ms_multi_scratch);
const struct accel_op accel_op_ms_groupqueryattention =
    ROW("GroupQueryAttention", 7, 17, 4, group_attrs, multi_infer, multi_cost, NULL, &of_groups,
        group_examples, .links = multi_links, .zero = multi_zero, .resize = multi_resize,
        .forward = accel_ms_group, .scratch = accel_ms_group_scratch, .holes = 0x1e);
