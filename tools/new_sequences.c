/* new_sequences.c - transformers, with the nodes that exporters leave: every
 * projection a MatMul and an Add, heads by Reshape and Transpose, GELU and RMS
 * norm written out. Batch and length stay symbolic: Reshapes copy both with 0.
 *
 * The two differ where pruning does. The encoder normalises with
 * LayerNormalization, which holds its residual width; the decoder's RMS norm
 * lets the residual width be cut, through its embedding too, which is the output
 * projection as well (tied, behind a Transpose). Weights are normal with
 * deviation 0.02, biases 0, as BERT and GPT-2 draw them; in the decoder layers
 * that write to the residual are divided by sqrt(2 * layers), as in GPT-2.
 *
 * N batch, T length, D = 256 width, H = 8 heads. */
#include "graph/attr.h"
#include "tools/new_draft.h"

#include <float.h>
#include <math.h>

#define NAME(...) accel_draft_name(draft, __VA_ARGS__)

enum { D = 256, H = 8, INNER = 1024, LAYERS = 6 };

static const double deviation = 0.02;

static enum accel_err add_transpose(struct accel_draft *draft, const char *module,
                                    const int64_t *perm, size_t rank)
{
    struct accel_node *n;
    ACCEL_TRY(accel_draft_node(&n, draft, module, "Transpose", &draft->at, 1));
    return accel_attr_set_ints(n, "perm", perm, rank);
}

/* An operator of the running value and a number. */
static enum accel_err add_number(struct accel_draft *draft, const char *module, const char *op_type,
                                 double v)
{
    struct accel_value *number;
    ACCEL_TRY(accel_draft_float(&number, draft, module, v));
    return accel_draft_plain(draft, module, op_type, number);
}

/* x / 2 * (1 + erf(x / sqrt(2))) */
static enum accel_err add_gelu(struct accel_draft *draft, const char *module)
{
    struct accel_value *x = draft->at;
    ACCEL_TRY(add_number(draft, module, "Div", sqrt(2)));
    ACCEL_TRY(accel_draft_plain(draft, module, "Erf", NULL));
    ACCEL_TRY(add_number(draft, module, "Add", 1));
    ACCEL_TRY(accel_draft_plain(draft, module, "Mul", x));
    return add_number(draft, module, "Mul", 0.5);
}

static enum accel_err add_layer_norm(struct accel_draft *draft, const char *module)
{
    struct accel_value *in[3] = {draft->at, NULL, NULL};
    struct accel_node *n;
    int64_t width = D;
    for (int i = 0; i < 2; i++)
        ACCEL_TRY(accel_draft_weight(&in[i + 1], draft, module, i ? "bias" : "weight", 1, &width,
                                     (struct accel_fill){.value = !i}));
    ACCEL_TRY(accel_draft_node(&n, draft, module, "LayerNormalization", in, 3));
    ACCEL_TRY(accel_attr_set_int(n, "axis", -1));
    return accel_attr_set_float(n, "epsilon", 1e-5f);
}

/* weight * x / sqrt(mean(x^2) + 1e-5). Source: Zhang and Sennrich, "Root Mean
 * Square Layer Normalization", NeurIPS 2019. */
static enum accel_err add_rms_norm(struct accel_draft *draft, const char *module)
{
    struct accel_value *x = draft->at, *one, *in[2];
    struct accel_node *n;
    int64_t width = D;
    ACCEL_TRY(add_number(draft, module, "Pow", 2));
    ACCEL_TRY(accel_draft_node(&n, draft, module, "ReduceMean", &draft->at, 1));
    ACCEL_TRY(accel_attr_set_ints(n, "axes", (int64_t[]){-1}, 1));
    ACCEL_TRY(accel_attr_set_int(n, "keepdims", 1));
    ACCEL_TRY(add_number(draft, module, "Add", 1e-5));
    ACCEL_TRY(accel_draft_plain(draft, module, "Sqrt", NULL));
    ACCEL_TRY(accel_draft_float(&one, draft, module, 1));
    in[0] = one;
    in[1] = draft->at;
    ACCEL_TRY(accel_draft_node(&n, draft, module, "Div", in, 2));
    ACCEL_TRY(accel_draft_plain(draft, module, "Mul", x));
    ACCEL_TRY(accel_draft_weight(&in[0], draft, module, "weight", 1, &width,
                                 (struct accel_fill){.value = 1}));
    return accel_draft_plain(draft, module, "Mul", in[0]);
}

/* The running value with a new axis of 1. */
static enum accel_err add_axis(struct accel_draft *draft, int64_t axis)
{
    struct accel_value *at;
    ACCEL_TRY(accel_draft_ints(&at, draft, "", 1, &axis));
    return accel_draft_plain(draft, "", "Unsqueeze", at);
}

/* 0, 1, … for tokens [N, T], as int64 [T]. Computed and not a slice of a stored list: a slice ends
 * where the list does, so its length would no longer be known to be T. */
static enum accel_err add_positions(struct accel_value **out, struct accel_draft *draft)
{
    struct accel_value *in[3];
    struct accel_node *n;
    ACCEL_TRY(accel_draft_plain(draft, "", "Shape", NULL));
    in[0] = draft->at;
    ACCEL_TRY(accel_draft_ints(&in[1], draft, "", 0, (int64_t[]){1}));
    ACCEL_TRY(accel_draft_node(&n, draft, "", "Gather", in, 2));
    ACCEL_TRY(accel_attr_set_int(n, "axis", 0));
    ACCEL_TRY(accel_draft_ints(&in[0], draft, "", 0, (int64_t[]){0}));
    in[1] = draft->at;
    ACCEL_TRY(accel_draft_ints(&in[2], draft, "", 0, (int64_t[]){1}));
    ACCEL_TRY(accel_draft_node(&n, draft, "", "Range", in, 3));
    *out = draft->at;
    return ACCEL_OK;
}

/* Rows of a new table [rows, D] by the indices `at`. */
static enum accel_err add_embedding(struct accel_value **table, struct accel_draft *draft,
                                    const char *module, int64_t rows, struct accel_value *at)
{
    struct accel_value *in[2] = {NULL, at};
    struct accel_node *n;
    ACCEL_TRY(accel_draft_weight(table, draft, module, "weight", 2, (int64_t[]){rows, D},
                                 (struct accel_fill){.sd = deviation}));
    in[0] = *table;
    ACCEL_TRY(accel_draft_node(&n, draft, module, "Gather", in, 2));
    return accel_attr_set_int(n, "axis", 0);
}

/* Tokens [N, T] to embeddings [N, T, D]: of the token, plus of its position
 * among `longest`. */
static enum accel_err add_embeddings(struct accel_value **table, struct accel_draft *draft,
                                     const char *const module[2], int64_t vocab,
                                     struct accel_value *positions, int64_t longest)
{
    struct accel_value *tokens = draft->m->graph->input[0], *position, *word;
    ACCEL_TRY(add_embedding(table, draft, module[0], vocab, tokens));
    word = draft->at;
    draft->at = positions;
    ACCEL_TRY(add_axis(draft, 0));
    ACCEL_TRY(add_embedding(&position, draft, module[1], longest, draft->at));
    position = draft->at;
    draft->at = word;
    return accel_draft_plain(draft, "", "Add", position);
}

struct attention {
    const char *module, *part[3], *out; /* of query, key, value, and the way back */
    struct accel_value *mask;           /* bool [T, T], true where unseen; or NULL */
    double out_sd;
};

/* x [N, T, D] to [N, H, T, D/H], the keys to [N, H, D/H, T]. */
static enum accel_err add_heads(struct accel_draft *draft, const struct attention *a, int part)
{
    static const int64_t split[4] = {0, 0, H, D / H}, first[4] = {0, 2, 1, 3},
                         last[4] = {0, 2, 3, 1};
    ACCEL_TRY(accel_draft_dense(draft, a->part[part], D, D));
    ACCEL_TRY(accel_draft_shape(draft, a->module, 4, split));
    return add_transpose(draft, a->module, part == 1 ? last : first, 4);
}

/* Source: Vaswani et al., "Attention Is All You Need", NeurIPS 2017, 3.2. */
static enum accel_err add_attention(struct accel_draft *draft, const struct attention *a)
{
    struct accel_value *x = draft->at, *head[3], *in[3] = {a->mask, NULL, NULL};
    struct accel_node *n;
    for (int i = 0; i < 3; i++) {
        draft->at = x;
        ACCEL_TRY(add_heads(draft, a, i));
        head[i] = draft->at;
    }
    draft->at = head[0];
    ACCEL_TRY(accel_draft_plain(draft, a->module, "MatMul", head[1]));
    ACCEL_TRY(add_number(draft, a->module, "Div", sqrt((double)D / H)));
    if (a->mask) {
        ACCEL_TRY(accel_draft_float(&in[1], draft, a->module, -(double)FLT_MAX));
        in[2] = draft->at;
        ACCEL_TRY(accel_draft_node(&n, draft, a->module, "Where", in, 3));
    }
    ACCEL_TRY(accel_draft_node(&n, draft, a->module, "Softmax", &draft->at, 1));
    ACCEL_TRY(accel_attr_set_int(n, "axis", -1));
    ACCEL_TRY(accel_draft_plain(draft, a->module, "MatMul", head[2]));
    ACCEL_TRY(add_transpose(draft, a->module, (int64_t[]){0, 2, 1, 3}, 4));
    ACCEL_TRY(accel_draft_shape(draft, a->module, 3, (int64_t[]){0, 0, D}));
    draft->sd = a->out_sd;
    ACCEL_TRY(accel_draft_dense(draft, a->out, D, D));
    draft->sd = deviation;
    return ACCEL_OK;
}

/* D to INNER, GELU, and back; the last with deviation out_sd. */
static enum accel_err add_inner(struct accel_draft *draft, const char *up, const char *act,
                                const char *down, double out_sd)
{
    ACCEL_TRY(accel_draft_dense(draft, up, D, INNER));
    ACCEL_TRY(add_gelu(draft, act));
    draft->sd = out_sd;
    ACCEL_TRY(accel_draft_dense(draft, down, INNER, D));
    draft->sd = deviation;
    return ACCEL_OK;
}

/* norm(x + attention(x)), then the same with the inner layers. */
static enum accel_err add_encoder_layer(struct accel_draft *draft, const char *module)
{
    struct accel_value *x = draft->at;
    const char *out = NAME("%s.attention.output", module);
    struct attention a = {.module = NAME("%s.attention.self", module),
                          .part = {NAME("%s.attention.self.query", module),
                                   NAME("%s.attention.self.key", module),
                                   NAME("%s.attention.self.value", module)},
                          .out = NAME("%s.dense", out),
                          .out_sd = deviation};
    ACCEL_TRY(add_attention(draft, &a));
    ACCEL_TRY(accel_draft_plain(draft, out, "Add", x));
    ACCEL_TRY(add_layer_norm(draft, NAME("%s.LayerNorm", out)));
    x = draft->at;
    ACCEL_TRY(add_inner(draft, NAME("%s.intermediate.dense", module),
                        NAME("%s.intermediate", module), NAME("%s.output.dense", module),
                        deviation));
    ACCEL_TRY(accel_draft_plain(draft, NAME("%s.output", module), "Add", x));
    return add_layer_norm(draft, NAME("%s.output.LayerNorm", module));
}

/* Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional
 * Transformers", NAACL 2019, with a classifier of two classes on the first
 * token. */
enum accel_err accel_draft_encoder(struct accel_draft *draft)
{
    enum { VOCAB = 8192, LONGEST = 512, CLASSES = 2 };
    static const char *const table[2] = {"embeddings.word_embeddings",
                                         "embeddings.position_embeddings"};
    struct accel_value *positions, *words, *in[2];
    struct accel_node *n;
    draft->init = ACCEL_INIT_NORMAL;
    draft->sd = deviation;
    ACCEL_TRY(accel_draft_tokens(draft, "input_ids"));
    ACCEL_TRY(add_positions(&positions, draft));
    ACCEL_TRY(add_embeddings(&words, draft, table, VOCAB, positions, LONGEST));
    ACCEL_TRY(add_layer_norm(draft, "embeddings.LayerNorm"));
    for (int i = 0; i < LAYERS; i++)
        ACCEL_TRY(add_encoder_layer(draft, NAME("encoder.layer.%d", i)));
    in[0] = draft->at;
    ACCEL_TRY(accel_draft_ints(&in[1], draft, "pooler", 0, (int64_t[]){0}));
    ACCEL_TRY(accel_draft_node(&n, draft, "pooler", "Gather", in, 2));
    ACCEL_TRY(accel_attr_set_int(n, "axis", 1));
    ACCEL_TRY(accel_draft_gemm(draft, "pooler.dense", D, D));
    ACCEL_TRY(accel_draft_plain(draft, "pooler.activation", "Tanh", NULL));
    draft->output = "logits";
    ACCEL_TRY(accel_draft_gemm(draft, "classifier", D, CLASSES));
    return accel_draft_finish(draft, CLASSES);
}

/* x + attention(norm(x)), then the same with the inner layers. */
static enum accel_err add_decoder_layer(struct accel_draft *draft, const char *module,
                                        struct accel_value *mask)
{
    const double out_sd = deviation / sqrt(2.0 * LAYERS);
    struct accel_value *x = draft->at;
    struct attention a = {
        .module = NAME("%s.attn", module),
        .part = {NAME("%s.attn.q", module), NAME("%s.attn.k", module), NAME("%s.attn.v", module)},
        .out = NAME("%s.attn.proj", module),
        .mask = mask,
        .out_sd = out_sd};
    ACCEL_TRY(add_rms_norm(draft, NAME("%s.norm1", module)));
    ACCEL_TRY(add_attention(draft, &a));
    ACCEL_TRY(accel_draft_plain(draft, module, "Add", x));
    x = draft->at;
    ACCEL_TRY(add_rms_norm(draft, NAME("%s.norm2", module)));
    ACCEL_TRY(add_inner(draft, NAME("%s.mlp.fc", module), NAME("%s.mlp.act", module),
                        NAME("%s.mlp.proj", module), out_sd));
    return accel_draft_plain(draft, module, "Add", x);
}

/* [T, T]: true where the column's position is after the row's. */
static enum accel_err add_causal_mask(struct accel_value **out, struct accel_draft *draft,
                                      struct accel_value *positions)
{
    struct accel_value *row;
    draft->at = positions;
    ACCEL_TRY(add_axis(draft, 1));
    row = draft->at;
    draft->at = positions;
    ACCEL_TRY(add_axis(draft, 0));
    ACCEL_TRY(accel_draft_plain(draft, "", "Greater", row));
    *out = draft->at;
    return ACCEL_OK;
}

/* Source: Radford et al., "Language Models are Unsupervised Multitask Learners"
 * (GPT-2), 2019, with RMS norms and without biases. */
enum accel_err accel_draft_gpt(struct accel_draft *draft)
{
    enum { VOCAB = 4096, LONGEST = 256 };
    static const char *const table[2] = {"wte", "wpe"};
    struct accel_value *positions, *mask, *words, *x;
    draft->init = ACCEL_INIT_NORMAL;
    draft->sd = deviation;
    draft->bias = false;
    ACCEL_TRY(accel_draft_tokens(draft, "input_ids"));
    ACCEL_TRY(add_positions(&positions, draft));
    ACCEL_TRY(add_causal_mask(&mask, draft, positions));
    ACCEL_TRY(add_embeddings(&words, draft, table, VOCAB, positions, LONGEST));
    for (int i = 0; i < LAYERS; i++)
        ACCEL_TRY(add_decoder_layer(draft, NAME("h.%d", i), mask));
    ACCEL_TRY(add_rms_norm(draft, "norm"));
    x = draft->at;
    draft->at = words;
    ACCEL_TRY(add_transpose(draft, "lm_head", (int64_t[]){1, 0}, 2));
    words = draft->at;
    draft->at = x;
    draft->output = "logits";
    ACCEL_TRY(accel_draft_plain(draft, "lm_head", "MatMul", words));
    return accel_draft_end(draft, 2, (int64_t[]){ACCEL_DRAFT_T, VOCAB});
}
