/* Attention and RotaryEmbedding of the standard domain.
 *
 * Attention: Q [B Hq S D], K [B Hk T D], V [B Hk T E]  ->  Y [B Hq S E], or with the heads folded
 * into the last axis: Q [B S Hq*D], K [B T Hk*D], V [B T Hk*E] -> Y [B S Hq*E]; then the numbers of
 * heads are attributes. Past keys and values [B Hk P D] are put in front of K and V. */
#include "graph/attr.h"
#include "ops/operand.h"

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

static enum accel_err like_input(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
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
static const struct accel_attr_rule rotary_attrs[] = {{"interleaved", ACCEL_ATTR_INT, 0},
                                                      {"num_heads", ACCEL_ATTR_INT, 0},
                                                      {"rotary_embedding_dim", ACCEL_ATTR_INT, 0},
                                                      {0}};
static const struct accel_attr_rule ms_rotary_attrs[] = {
    {"interleaved", ACCEL_ATTR_INT, 0}, {"is_packed_batching", ACCEL_ATTR_INT, 0},
    {"num_heads", ACCEL_ATTR_INT, 0},   {"rotary_embedding_dim", ACCEL_ATTR_INT, 0},
    {"scale", ACCEL_ATTR_FLOAT, 0},     {0}};
static const char *const examples[] = {"2x3x4x8 2x3x6x8 2x3x6x10",
                                       "2x4x24 2x6x24 2x6x30 | q_num_heads=3 kv_num_heads=3",
                                       "2x4x4x8 2x2x6x8 2x2x6x8", NULL};
static const char *const rotary_examples[] = {"2x3x4x8 2x4x4 2x4x4", NULL};
static const char *const ms_rotary_examples[] = {"2x3x4x8 1 16x4 16x4", NULL};

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
    .examples = examples,
};
const struct accel_op accel_op_rotaryembedding = {
    .name = "RotaryEmbedding",
    .domain = "",
    .since = 23,
    .min_in = 3,
    .max_in = 4,
    .min_out = 1,
    .max_out = 1,
    .attrs = rotary_attrs,
    .infer = like_input,
    .examples = rotary_examples,
};
const struct accel_op accel_op_ms_rotaryembedding = {
    .name = "RotaryEmbedding",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 4,
    .max_in = 4,
    .min_out = 1,
    .max_out = 1,
    .attrs = ms_rotary_attrs,
    .infer = like_input,
    .examples = ms_rotary_examples,
};
