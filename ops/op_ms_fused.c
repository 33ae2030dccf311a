/* Element-wise and normalising operators that ONNX Runtime's optimizers write, domain
 * com.microsoft: shape and type mostly follow the first input. */
#include <limits.h>

#include "graph/attr.h"
#include "ops/operand.h"

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
        w[i] = (struct accel_weight){2 + i, 2, 1, 0, -1, "Embedding", false, -1};
    return 3;
}

/* QLinearAdd, QLinearMul: inputs 0 and 3 stretch to each other. */
static enum accel_err q_binary_infer(struct accel_node *n)
{
    int a = accel_operand_rank(n, 0), b = accel_operand_rank(n, 3), rank = a > b ? a : b;
    struct accel_shape y;
    if (a < 0 || b < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 0), NULL);
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++) {
        int ia = i - (rank - a), ib = i - (rank - b);
        struct accel_dim u = ia < 0 ? accel_dim_of(1) : accel_operand_dim(n, 0, ia);
        struct accel_dim v = ib < 0 ? accel_dim_of(1) : accel_operand_dim(n, 3, ib);
        if (!accel_dim_stretch(&y.dim[i], u, v))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the inputs is %lld and %lld", i,
                              (long long)u.n, (long long)v.n);
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ QLinearConcat */

struct concat_params {
    int64_t axis;
};

static enum accel_err concat_parse(struct accel_node *n, int opset)
{
    struct concat_params *p = ACCEL_NEW(&n->graph->model->arena, struct concat_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", 0));
    n->params = p;
    return ACCEL_OK;
}

/* Inputs: scale and zero point of Y, then (X, scale, zero point) again and again. */
static enum accel_err concat_infer(struct accel_node *n)
{
    const struct concat_params *p = n->params;
    int rank = accel_operand_rank(n, 2), axis = 0;
    struct accel_shape y;
    if (rank < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 1), NULL);
    ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    int64_t sum = 0;
    for (int i = 2; i < n->n_in; i += 3) {
        ACCEL_TRY(accel_operand_check_rank(n, i, rank));
        sum = accel_macs_add(sum, accel_operand_dim(n, i, axis).n);
        for (int k = 0; k < rank; k++) {
            struct accel_dim d = accel_operand_dim(n, i, k), before = y.dim[k];
            if (k != axis && !accel_dim_join(&y.dim[k], before, d))
                return accel_fail(ACCEL_ESHAPE, "axis %d is %lld in '%.200s', %lld before it", k,
                                  (long long)d.n, n->in[i]->name, (long long)before.n);
        }
    }
    y.dim[axis] = sum < 0 ? accel_dim_unknown() : accel_dim_of(sum);
    accel_result_set(n, 0, accel_operand_dtype(n, 1), y);
    return ACCEL_OK;
}

static const struct accel_attr_rule no_attrs[] = {{0}};
static const struct accel_attr_rule epsilon_attrs[] = {{"epsilon", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule embed_attrs[] = {
    {"epsilon", ACCEL_ATTR_FLOAT, 0}, {"mask_index_type", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule alpha_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule axis_attrs[] = {{"axis", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {0}};
static const struct accel_attr_rule softmax_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"opset", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {0}};

static const char *const bias_examples[] = {"2x3x4 4", NULL};
static const char *const plus_examples[] = {"2x3x4 4 2x3x4", NULL};
static const char *const skip_examples[] = {"2x3x4 2x3x4 4 4", NULL};
static const char *const embed_examples[] = {"2x3 2x3 7x4 5x4 2x4 4 4", NULL};
static const char *const q_binary_examples[] = {"2x3 scalar scalar 3 scalar scalar scalar scalar",
                                                NULL};
static const char *const q_unary_examples[] = {"2x3 scalar scalar scalar scalar", NULL};
static const char *const q_softmax_examples[] = {"2x3 scalar scalar scalar scalar | opset=13",
                                                 NULL};

static const char *const q_concat_examples[] = {
    "scalar scalar 2x3 scalar scalar 2x4 scalar scalar | axis=1", NULL};

#define ROW(onnx, least, most, outs, rules, shapes, eg)                                            \
    .name = (onnx), .domain = "com.microsoft", .since = 1, .min_in = (least), .max_in = (most),    \
    .min_out = 1, .max_out = (outs), .attrs = (rules), .infer = (shapes), .examples = (eg)

const struct accel_op accel_op_ms_biasgelu = {
    ROW("BiasGelu", 2, 2, 1, no_attrs, bias_infer, bias_examples)};
const struct accel_op accel_op_ms_fastgelu = {
    ROW("FastGelu", 1, 2, 1, no_attrs, bias_infer, bias_examples)};
const struct accel_op accel_op_ms_biasadd = {
    ROW("BiasAdd", 3, 3, 1, no_attrs, bias_infer, plus_examples)};
const struct accel_op accel_op_ms_skiplayernormalization = {
    ROW("SkipLayerNormalization", 3, 5, 4, epsilon_attrs, skip_infer, skip_examples)};
const struct accel_op accel_op_ms_skipsimplifiedlayernormalization = {
    ROW("SkipSimplifiedLayerNormalization", 3, 4, 4, epsilon_attrs, skip_infer, skip_examples)};
const struct accel_op accel_op_ms_embedlayernormalization = {
    ROW("EmbedLayerNormalization", 7, 9, 3, embed_attrs, embed_infer, embed_examples),
    .weights = embed_weights,
};
const struct accel_op accel_op_ms_qlinearadd = {
    ROW("QLinearAdd", 7, 8, 1, no_attrs, q_binary_infer, q_binary_examples)};
const struct accel_op accel_op_ms_qlinearmul = {
    ROW("QLinearMul", 7, 8, 1, no_attrs, q_binary_infer, q_binary_examples)};
const struct accel_op accel_op_ms_qlinearsigmoid = {
    ROW("QLinearSigmoid", 4, 5, 1, no_attrs, like_input, q_unary_examples)};
const struct accel_op accel_op_ms_qlinearleakyrelu = {
    ROW("QLinearLeakyRelu", 4, 5, 1, alpha_attrs, like_input, q_unary_examples)};
const struct accel_op accel_op_ms_qlinearsoftmax = {
    ROW("QLinearSoftmax", 5, 5, 1, softmax_attrs, like_input, q_softmax_examples)};
const struct accel_op accel_op_ms_qlinearconcat = {
    ROW("QLinearConcat", 3, INT_MAX, 1, axis_attrs, concat_infer, q_concat_examples),
    .parse = concat_parse,
};
