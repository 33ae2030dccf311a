/* Element-wise and normalising operators that ONNX Runtime's optimizers write, domain
 * com.microsoft: shape and type mostly follow the first input. */
#include <math.h>

#include "graph/attr.h"
#include "ops/link_util.h"
#include "ops/real.h"

/* What is done to the sum of input and bias. */
struct bias {
    double (*f)(double);
};

/* params: epsilon, a float */
static enum accel_err parse(struct accel_node *n, int opset)
{
    float *epsilon = ACCEL_NEW(&n->graph->model->arena, float, 1);
    (void)opset;
    if (!epsilon)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_float(epsilon, n, "epsilon", 1e-12f));
    n->params = epsilon;
    return ACCEL_OK;
}

static enum accel_err like_input(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

/* The bias of the last axis, input 1. */
static enum accel_err bias_infer(struct accel_node *n)
{
    ACCEL_TRY(accel_operand_check_vector(n, 1, accel_operand_dim(n, 0, -1), "bias"));
    return like_input(n);
}

/* SkipLayerNormalization and its kind: Y, mean, inverse deviation, sum. */
static enum accel_err skip_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    ACCEL_TRY(accel_operand_check_vector(n, 2, accel_operand_dim(n, 0, -1), "scale"));
    for (int i = 1; i < 3; i++) {
        struct accel_shape s;
        ACCEL_TRY(accel_shape_new(&s, n, rank));
        for (int k = 0; k < rank; k++)
            s.dim[k] = k == rank - 1 ? accel_dim_of(1) : accel_operand_dim(n, 0, k);
        accel_result_set(n, i, ACCEL_F32, s);
    }
    ACCEL_TRY(accel_result_like(n, 3, accel_operand_dtype(n, 0), accel_operand(n, 0)));
    return like_input(n);
}

/* Ids [B S], word table [V H] in slot 2 -> [B S H], a mask [B], the sum before normalisation. */
static enum accel_err embed_infer(struct accel_node *n)
{
    struct accel_dim y[3] = {accel_operand_dim(n, 0, 0), accel_operand_dim(n, 0, 1),
                             accel_operand_dim(n, 2, 1)};
    ACCEL_TRY(accel_operand_check_rank(n, 0, 2));
    ACCEL_TRY(accel_operand_check_rank(n, 2, 2));
    ACCEL_TRY(accel_result_dims(n, 0, accel_operand_dtype(n, 2), 3, y));
    ACCEL_TRY(accel_result_dims(n, 1, ACCEL_I32, 1, y));
    return accel_result_dims(n, 2, accel_operand_dtype(n, 2), 3, y);
}

/* The three tables of embeddings: rows are tokens, positions, segments. */
static int embed_weights(const struct accel_node *n, struct accel_weight w[4])
{
    (void)n;
    for (int i = 0; i < 3; i++)
        w[i] = (struct accel_weight){2 + i, 2, 1, 0, -1, "Embedding", false, -1, 0, 0};
    return 3;
}

/* ------------------------------------------------------------------ links */

/* The rows of X, skip, Y and the sum stand or fall together; along a row lie the statistics. With a
 * skip of fewer axes, and where statistics are looked at, nothing is said. */
static void skip_links(const struct accel_node *n, struct accel_links *l)
{
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    if (accel_slot_rank(n, 1) != rank || accel_link_has_out(n, 1) || accel_link_has_out(n, 2))
        return;
    for (int axis = 0; axis < rank - 1; axis++) {
        struct accel_axis at[4] = {{0, axis}, {1, axis}, {y, axis}};
        int count = 3;
        if (n->n_out > 3 && n->out[3])
            at[count++] = (struct accel_axis){accel_link_out(n, 3), axis};
        if (accel_dim_same(accel_operand_dim(n, 0, axis), accel_operand_dim(n, 1, axis)))
            accel_links_axes(l, count, at);
    }
}

/* ------------------------------------------------------------------ kernels */

static real *reals(const struct accel_array *a)
{
    return a->data;
}

/* Element i of an operand that repeats along the first axes; 0 when it is left out. */
static double repeated(const struct accel_call *c, int slot, int64_t i)
{
    const struct accel_array *a = &c->x[slot];
    return slot < c->node->n_in && a->data && a->n ? (double)reals(a)[i % a->n] : 0;
}

static double gelu(double v)
{
    return 0.5 * v * (1 + erf(v * 0.7071067811865476));
}

static double fast_gelu(double v)
{
    return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
}

static double same(double v)
{
    return v;
}

/* f(x + bias) + what is in input 2. */
static enum accel_err bias_forward(const struct accel_call *c)
{
    const struct bias *f = c->node->op->family;
    for (int64_t i = 0; i < c->x[0].n; i++)
        reals(&c->y[0])[i] =
            (real)(f->f((double)reals(&c->x[0])[i] + repeated(c, 1, i)) + repeated(c, 2, i));
    return ACCEL_OK;
}

/* One row of `size` elements at `v`, normalised in place; the shift is input `shift`, -1: none. */
static void normalise(const struct accel_call *c, real *y, const double *v, int64_t size, int scale,
                      int shift, bool rms, double stats[2])
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < size && !rms; i++)
        mean += v[i] / (double)size;
    for (int64_t i = 0; i < size; i++)
        square += (v[i] - mean) * (v[i] - mean);
    stats[0] = mean;
    stats[1] = 1 / sqrt(square / (double)size + (double)*(const float *)c->node->params);
    for (int64_t i = 0; i < size && y; i++)
        y[i] = (real)((v[i] - mean) * stats[1] * repeated(c, scale, i) +
                      (shift < 0 ? 0 : repeated(c, shift, i)));
}

/* Y = norm(x + skip + bias) * scale + shift */
static enum accel_err skip_forward(const struct accel_call *c)
{
    bool rms = c->node->op->max_in == 4;
    int64_t size = c->x[0].rank ? c->x[0].dim[c->x[0].rank - 1] : 1;
    double *row = c->scratch, stats[2];
    if (!c->x[1].n && c->x[0].n)
        return accel_fail(ACCEL_ESHAPE, "skip is empty");
    for (int64_t r = 0; size && r < c->x[0].n / size; r++) {
        for (int64_t i = 0; i < size; i++)
            row[i] = (double)(real)((double)reals(&c->x[0])[r * size + i] +
                                    repeated(c, 1, r * size + i) + repeated(c, rms ? 3 : 4, i));
        normalise(c, reals(&c->y[0]) + r * size, row, size, 2, rms ? -1 : 3, rms, stats);
        for (int o = 1; o < 3; o++)
            if (o < c->node->n_out && c->y[o].data)
                reals(&c->y[o])[r] = (real)stats[o - 1];
        for (int64_t i = 0; i < size && c->node->n_out > 3 && c->y[3].data; i++)
            reals(&c->y[3])[r * size + i] = (real)row[i];
    }
    return ACCEL_OK;
}

static size_t skip_scratch(const struct accel_call *c)
{
    return (size_t)(c->x[0].rank ? c->x[0].dim[c->x[0].rank - 1] : 1) * sizeof(double);
}

enum { IDS, SEGMENTS, WORDS, PLACES, KINDS, SCALE, SHIFT, MASK, PLACE_IDS };

/* Row of a table by its number; NULL with an error when there is no such row. */
static enum accel_err table_row(const real **row, const struct accel_call *c, int slot, int64_t at)
{
    const struct accel_array *t = &c->x[slot];
    if (t->rank != 2 || at < 0 || at >= t->dim[0] || t->dim[1] != c->y[0].dim[2])
        return accel_fail(ACCEL_ESHAPE, "row %lld of '%.200s' of %lld x %lld", (long long)at,
                          c->node->in[slot]->name, t->rank == 2 ? (long long)t->dim[0] : -1,
                          t->rank == 2 ? (long long)t->dim[1] : -1);
    *row = reals(t) + at * t->dim[1];
    return ACCEL_OK;
}

static const int64_t *ids(const struct accel_call *c, int slot)
{
    return slot < c->node->n_in ? c->x[slot].data : NULL;
}

/* The sum of the embeddings of a token. */
static enum accel_err embed_token(double *row, const struct accel_call *c, int64_t i, int64_t S)
{
    int64_t H = c->y[0].dim[2];
    const int64_t *segment = ids(c, SEGMENTS), *place = ids(c, PLACE_IDS);
    const real *word, *position, *kind = NULL;
    ACCEL_TRY(table_row(&word, c, WORDS, ids(c, IDS)[i]));
    ACCEL_TRY(table_row(&position, c, PLACES,
                        place ? place[c->x[PLACE_IDS].n == c->x[IDS].n ? i : i % S] : i % S));
    if (segment && c->x[KINDS].data)
        ACCEL_TRY(table_row(&kind, c, KINDS, segment[i]));
    for (int64_t k = 0; k < H; k++)
        row[k] = (double)word[k] + (double)position[k] + (kind ? (double)kind[k] : 0);
    return ACCEL_OK;
}

static enum accel_err embed_forward(const struct accel_call *c)
{
    int64_t B = c->x[IDS].dim[0], S = c->x[IDS].dim[1], H = c->y[0].dim[2];
    const int64_t *mask = ids(c, MASK);
    double stats[2], *row = c->scratch;
    bool sums = c->node->n_out > 1 && c->y[1].data;
    if (c->x[SCALE].n != H || c->x[SHIFT].n != H ||
        (ids(c, SEGMENTS) && c->x[SEGMENTS].n != B * S) || (mask && c->x[MASK].n != B * S) ||
        (ids(c, PLACE_IDS) && c->x[PLACE_IDS].n != B * S && c->x[PLACE_IDS].n != S))
        return accel_fail(ACCEL_ESHAPE, "operands do not fit %lld x %lld ids, width %lld",
                          (long long)B, (long long)S, (long long)H);
    for (int64_t b = 0; b < B && sums; b++) {
        int64_t *count = (int64_t *)c->y[1].data + b;
        *count = 0;
        for (int64_t s = 0; s < S && mask; s++)
            *count += mask[b * S + s] == 1;
    }
    for (int64_t i = 0; i < B * S; i++) {
        ACCEL_TRY(embed_token(row, c, i, S));
        normalise(c, reals(&c->y[0]) + i * H, row, H, SCALE, SHIFT, false, stats);
        for (int64_t k = 0; k < H && c->node->n_out > 2 && c->y[2].data; k++)
            reals(&c->y[2])[i * H + k] = (real)row[k];
    }
    return ACCEL_OK;
}

static size_t embed_scratch(const struct accel_call *c)
{
    return (size_t)c->y[0].dim[2] * sizeof(double);
}

static const struct accel_attr_rule no_attrs[] = {{0}};
static const struct accel_attr_rule epsilon_attrs[] = {{"epsilon", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule embed_attrs[] = {
    {"epsilon", ACCEL_ATTR_FLOAT, 0}, {"mask_index_type", ACCEL_ATTR_INT, 0}, {0}};

static const char *const bias_examples[] = {"2x3x4 4", NULL};
static const char *const plus_examples[] = {"2x3x4 4 2x3x4", NULL};
static const char *const skip_examples[] = {"2x3x4 2x3x4 4 4", NULL};
static const char *const embed_examples[] = {"i64:2x3 i64:2x3 7x4 5x4 2x4 4 4", NULL};

#define ROW(onnx, least, most, outs, rules, shapes, eg, fwd)                                       \
    .name = (onnx), .domain = "com.microsoft", .since = 1, .min_in = (least), .max_in = (most),    \
    .min_out = 1, .max_out = (outs), .attrs = (rules), .infer = (shapes), .examples = (eg),        \
    .forward = (fwd)
#define BIAS(onnx, least, most, eg, what)                                                          \
    {                                                                                              \
        ROW(onnx, least, most, 1, no_attrs, bias_infer, eg, bias_forward),                         \
            .links = accel_link_broadcast, .zero = accel_zero_broadcast,                           \
            .family = &(const struct bias)                                                         \
        {                                                                                          \
            what                                                                                   \
        }                                                                                          \
    }
#define SKIP(onnx, most)                                                                           \
    {                                                                                              \
        ROW(onnx, 3, most, 4, epsilon_attrs, skip_infer, skip_examples, skip_forward),             \
            .parse = parse, .links = skip_links, .scratch = skip_scratch                           \
    }

const struct accel_op accel_op_ms_biasgelu = BIAS("BiasGelu", 2, 2, bias_examples, gelu);
const struct accel_op accel_op_ms_fastgelu = BIAS("FastGelu", 1, 2, bias_examples, fast_gelu);
const struct accel_op accel_op_ms_biasadd = BIAS("BiasAdd", 3, 3, plus_examples, same);
const struct accel_op accel_op_ms_skiplayernormalization = SKIP("SkipLayerNormalization", 5);
const struct accel_op accel_op_ms_skipsimplifiedlayernormalization =
    SKIP("SkipSimplifiedLayerNormalization", 4);
const struct accel_op accel_op_ms_embedlayernormalization = {
    ROW("EmbedLayerNormalization", 7, 9, 3, embed_attrs, embed_infer, embed_examples,
        embed_forward),
    .parse = parse,
    .weights = embed_weights,
    .scratch = embed_scratch,
    .holes = 1u << SEGMENTS | 1u << KINDS,
};
