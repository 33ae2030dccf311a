/* Normalisations: Y has shape and type of X; scale and shift must fit the channels (axis 1) or the
 * axes that are normalised. Some also give the statistics. */
#include "graph/attr.h"
#include "ops/operand.h"

struct norm_params {
    bool spatial;       /* BatchNormalization: one scale per channel (below opset 9 maybe not) */
    int64_t axis;       /* LayerNormalization */
    int64_t groups;     /* GroupNormalization; 0: not one */
    bool group_vectors; /* scale and shift have one element per group (opset 18) */
    enum accel_dtype stash;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct norm_params *p = ACCEL_NEW(&n->graph->model->arena, struct norm_params, 1);
    int64_t spatial, stash;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&spatial, n, "spatial", 1));
    ACCEL_TRY(accel_attr_int(&stash, n, "stash_type", ACCEL_F32));
    ACCEL_TRY(accel_attr_int(&p->groups, n, "num_groups", 1));
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", -1));
    if (p->groups < 1)
        return accel_fail(ACCEL_EMODEL, "attribute 'num_groups' is %lld", (long long)p->groups);
    p->spatial = spatial != 0;
    p->group_vectors = opset < 21;
    p->stash = stash == ACCEL_F64 || stash == ACCEL_F16 || stash == ACCEL_BF16
                   ? (enum accel_dtype)stash
                   : ACCEL_F32;
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err like_input(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

/* ------------------------------------------------------------------ by channel */

/* The number of channels, from the input or from one of `count` parameters behind it. */
static enum accel_err channels(struct accel_dim *c, const struct accel_node *n, int count)
{
    static const char *const what[] = {"", "scale", "shift", "mean", "variance"};
    int rank = accel_operand_rank(n, 0);
    *c = rank == 1 ? accel_dim_of(1) : accel_operand_dim(n, 0, 1);
    for (int i = 1; i <= count; i++) {
        ACCEL_TRY(accel_operand_check_vector(n, i, *c, what[i]));
        if (!accel_dim_known(*c) && accel_operand_rank(n, i) == 1 &&
            accel_dim_known(accel_operand_dim(n, i, 0)))
            *c = accel_operand_dim(n, i, 0);
    }
    return ACCEL_OK;
}

static enum accel_err batch_infer(struct accel_node *n)
{
    const struct norm_params *p = n->params;
    struct accel_dim c = accel_dim_unknown();
    if (p->spatial)
        ACCEL_TRY(channels(&c, n, 4));
    ACCEL_TRY(like_input(n));
    for (int i = 1; i < n->n_out; i++)
        ACCEL_TRY(accel_result_dims(n, i, accel_operand_dtype(n, i < 3 ? i + 2 : i), 1, &c));
    return ACCEL_OK;
}

static int batch_weights(const struct accel_node *n, struct accel_weight w[4])
{
    static const char *const types[] = {"BatchNorm1d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"};
    int rank = accel_operand_rank(n, 0);
    w[0] = (struct accel_weight){
        1, 1, 0, -1, -1, rank >= 2 && rank <= 5 ? types[rank - 2] : "BatchNorm", true, 2};
    return 1;
}

static enum accel_err instance_infer(struct accel_node *n)
{
    struct accel_dim c;
    ACCEL_TRY(channels(&c, n, 2));
    return like_input(n);
}

static enum accel_err group_infer(struct accel_node *n)
{
    const struct norm_params *p = n->params;
    struct accel_dim c = accel_operand_dim(n, 0, 1);
    if (accel_dim_known(c) && c.n % p->groups != 0)
        return accel_fail(ACCEL_ESHAPE, "input has %lld channels in %lld groups", (long long)c.n,
                          (long long)p->groups);
    struct accel_dim of = p->group_vectors ? accel_dim_of(p->groups) : c;
    ACCEL_TRY(accel_operand_check_vector(n, 1, of, "scale"));
    ACCEL_TRY(accel_operand_check_vector(n, 2, of, "shift"));
    return like_input(n);
}

/* ------------------------------------------------------------------ from an axis on */

/* Scale and shift are laid onto the last axes of the input. */
static enum accel_err check_tail(const struct accel_node *n, int slot)
{
    int rank = accel_operand_rank(n, 0), tail = accel_operand_rank(n, slot);
    if (rank < 0 || tail < 0)
        return ACCEL_OK;
    if (tail > rank)
        return accel_fail(ACCEL_ESHAPE, "'%.200s' of rank %d for an input of rank %d",
                          n->in[slot]->name, tail, rank);
    for (int i = 0; i < tail; i++) {
        struct accel_dim x = accel_operand_dim(n, 0, rank - tail + i);
        struct accel_dim s = accel_operand_dim(n, slot, i);
        if (s.n != 1 && accel_dim_differs(x, s))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the input is %lld, of '%.200s' %lld",
                              rank - tail + i, (long long)x.n, n->in[slot]->name, (long long)s.n);
    }
    return ACCEL_OK;
}

static enum accel_err layer_infer(struct accel_node *n)
{
    const struct norm_params *p = n->params;
    int rank = accel_operand_rank(n, 0), axis = 0;
    if (rank < 0) {
        for (int i = 1; i < n->n_out; i++)
            ACCEL_TRY(accel_result_like(n, i, p->stash, NULL));
        return like_input(n);
    }
    ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    ACCEL_TRY(check_tail(n, 1));
    ACCEL_TRY(check_tail(n, 2));
    for (int i = 1; i < n->n_out; i++) {
        struct accel_shape s;
        ACCEL_TRY(accel_shape_copy(&s, n, &n->in[0]->shape));
        for (int k = axis; k < rank; k++)
            s.dim[k] = accel_dim_of(1);
        accel_result_set(n, i, p->stash, s);
    }
    return like_input(n);
}

static const struct accel_attr_rule batch_attrs[] = {{"consumed_inputs", ACCEL_ATTR_INTS, 0},
                                                     {"epsilon", ACCEL_ATTR_FLOAT, 0},
                                                     {"is_test", ACCEL_ATTR_INT, 0},
                                                     {"momentum", ACCEL_ATTR_FLOAT, 0},
                                                     {"spatial", ACCEL_ATTR_INT, 0},
                                                     {"training_mode", ACCEL_ATTR_INT, 0},
                                                     {0}};
static const struct accel_attr_rule instance_attrs[] = {
    {"consumed_inputs", ACCEL_ATTR_INTS, 0}, {"epsilon", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule layer_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                     {"epsilon", ACCEL_ATTR_FLOAT, 0},
                                                     {"stash_type", ACCEL_ATTR_INT, 0},
                                                     {0}};
static const struct accel_attr_rule group_attrs[] = {{"epsilon", ACCEL_ATTR_FLOAT, 0},
                                                     {"num_groups", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                                     {"stash_type", ACCEL_ATTR_INT, 0},
                                                     {0}};
static const struct accel_attr_rule lrn_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0},
                                                   {"beta", ACCEL_ATTR_FLOAT, 0},
                                                   {"bias", ACCEL_ATTR_FLOAT, 0},
                                                   {"size", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                                   {0}};
static const struct accel_attr_rule lp_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"p", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule mean_attrs[] = {{"axes", ACCEL_ATTR_INTS, 0}, {0}};

static const char *const batch_examples[] = {"2x3x4x4 3 3 3 3", "2x3x5 3 3 3 3", "2x3 3 3 3 3",
                                             NULL};
static const char *const instance_examples[] = {"2x3x4x4 3 3", NULL};
static const char *const layer_examples[] = {"2x3x4 4 4", "2x3x4 3x4 3x4 | axis=1", NULL};
static const char *const rms_examples[] = {"2x3x4 4", NULL};
static const char *const group_examples[] = {"2x4x3x3 2 2 | num_groups=2", NULL};
static const char *const lrn_examples[] = {"2x5x3x3 | size=3", NULL};
static const char *const plain_examples[] = {"2x3x4x4", NULL};

#define ROW(onnx, opset, least, most, outs, rules, read, shapes, eg)                               \
    .name = (onnx), .domain = "", .since = (opset), .min_in = (least), .max_in = (most),           \
    .min_out = 1, .max_out = (outs), .attrs = (rules), .parse = (read), .infer = (shapes),         \
    .examples = (eg)

const struct accel_op accel_op_batchnormalization = {
    ROW("BatchNormalization", 1, 5, 5, 5, batch_attrs, parse, batch_infer, batch_examples),
    .weights = batch_weights,
    .keep = 1u << 3 | 1u << 4,
};
const struct accel_op accel_op_instancenormalization = {ROW(
    "InstanceNormalization", 1, 3, 3, 1, instance_attrs, NULL, instance_infer, instance_examples)};
const struct accel_op accel_op_layernormalization = {
    ROW("LayerNormalization", 17, 2, 3, 3, layer_attrs, parse, layer_infer, layer_examples)};
/* What ONNX Runtime's optimizer calls RMSNormalization; it stands in the standard domain. */
const struct accel_op accel_op_simplifiedlayernormalization = {
    ROW("SimplifiedLayerNormalization", 1, 2, 2, 2, layer_attrs, parse, layer_infer, rms_examples)};
const struct accel_op accel_op_rmsnormalization = {
    ROW("RMSNormalization", 23, 2, 2, 1, layer_attrs, parse, layer_infer, rms_examples)};
const struct accel_op accel_op_groupnormalization = {
    ROW("GroupNormalization", 18, 3, 3, 1, group_attrs, parse, group_infer, group_examples)};
const struct accel_op accel_op_lrn = {
    ROW("LRN", 1, 1, 1, 1, lrn_attrs, NULL, like_input, lrn_examples)};
const struct accel_op accel_op_lpnormalization = {
    ROW("LpNormalization", 1, 1, 1, 1, lp_attrs, NULL, like_input, plain_examples)};
const struct accel_op accel_op_meanvariancenormalization = {
    ROW("MeanVarianceNormalization", 9, 1, 1, 1, mean_attrs, NULL, like_input, plain_examples)};
