/* Pools over windows: X [N C D…] -> Y [N C O…]; sizes by ops/window.h. MaxPool's second output
 * holds the places of the largest elements. */
#include "graph/attr.h"
#include "ops/operand.h"
#include "ops/window.h"

struct pool_params {
    struct accel_window w;
    bool channels_last;
};

/* Opset 1's LpPool had no kernel_shape of its own rules: an absent one is an error for all. */
static enum accel_err parse(struct accel_node *n, int opset)
{
    int64_t last;
    struct pool_params *p = ACCEL_NEW(&n->graph->model->arena, struct pool_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_window_read(&p->w, n));
    ACCEL_TRY(accel_attr_int(&last, n, "channels_last", 0));
    p->channels_last = last != 0;
    if (!p->w.kernel)
        return accel_fail(ACCEL_EMODEL, "attribute 'kernel_shape' is missing");
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct pool_params *p = n->params;
    int rank = accel_operand_rank(n, 0), first = p->channels_last ? 1 : 2;
    struct accel_shape y, indices;
    if (rank < 0 && p->w.n_kernel < 1024)
        rank = (int)p->w.n_kernel + 2;
    if (rank >= 0 && rank < 3)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a pool needs 3 or more", rank);
    ACCEL_TRY(accel_window_check(&p->w, rank < 0 ? -1 : rank - 2));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++)
        y.dim[i] = accel_operand_dim(n, 0, i);
    for (int i = 0; i < rank - 2; i++)
        ACCEL_TRY(accel_window_size(&y.dim[first + i], accel_operand_symbols(n), &p->w, i,
                                    accel_operand_dim(n, 0, first + i),
                                    accel_dim_of(p->w.kernel[i])));
    ACCEL_TRY(accel_shape_copy(&indices, n, &y));
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    accel_result_set(n, 1, ACCEL_I64, indices);
    return ACCEL_OK;
}

static const struct accel_attr_rule max_attrs[] = {
    {"auto_pad", ACCEL_ATTR_STRING, 0}, {"ceil_mode", ACCEL_ATTR_INT, 0},
    {"dilations", ACCEL_ATTR_INTS, 0},  {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"pads", ACCEL_ATTR_INTS, 0},       {"storage_order", ACCEL_ATTR_INT, 0},
    {"strides", ACCEL_ATTR_INTS, 0},    {0}};
static const struct accel_attr_rule average_attrs[] = {
    {"auto_pad", ACCEL_ATTR_STRING, 0},
    {"ceil_mode", ACCEL_ATTR_INT, 0},
    {"count_include_pad", ACCEL_ATTR_INT, 0},
    {"dilations", ACCEL_ATTR_INTS, 0},
    {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"pads", ACCEL_ATTR_INTS, 0},
    {"strides", ACCEL_ATTR_INTS, 0},
    {0}};
static const struct accel_attr_rule q_attrs[] = {{"auto_pad", ACCEL_ATTR_STRING, 0},
                                                 {"ceil_mode", ACCEL_ATTR_INT, 0},
                                                 {"count_include_pad", ACCEL_ATTR_INT, 0},
                                                 {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
                                                 {"pads", ACCEL_ATTR_INTS, 0},
                                                 {"strides", ACCEL_ATTR_INTS, 0},
                                                 {"channels_last", ACCEL_ATTR_INT, 0},
                                                 {0}};
static const struct accel_attr_rule lp_attrs[] = {
    {"auto_pad", ACCEL_ATTR_STRING, 0}, {"ceil_mode", ACCEL_ATTR_INT, 0},
    {"dilations", ACCEL_ATTR_INTS, 0},  {"kernel_shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
    {"p", ACCEL_ATTR_INT, 0},           {"pads", ACCEL_ATTR_INTS, 0},
    {"strides", ACCEL_ATTR_INTS, 0},    {0}};
static const char *const examples[] = {
    "2x3x8x8 | kernel_shape=2,2 strides=2,2", "1x2x7 | kernel_shape=3 pads=1,1",
    "1x1x7x7 | kernel_shape=3,3 strides=2,2 ceil_mode=1",
    "1x1x7x7 | kernel_shape=3,3 strides=2,2 auto_pad=SAME_UPPER", NULL};
static const char *const q_examples[] = {
    "2x3x8x8 scalar scalar scalar scalar | kernel_shape=2,2 strides=2,2", NULL};

#define ROW(onnx, dom, least, most, outs, flag, rules, eg)                                         \
    {                                                                                              \
        .name = (onnx), .domain = (dom), .since = 1, .min_in = (least), .max_in = (most),          \
        .min_out = 1, .max_out = (outs), .flags = (flag), .attrs = (rules), .parse = parse,        \
        .infer = infer, .examples = (eg)                                                           \
    }
const struct accel_op accel_op_maxpool =
    ROW("MaxPool", "", 1, 1, 2, ACCEL_OP_COMPARES, max_attrs, examples);
const struct accel_op accel_op_averagepool =
    ROW("AveragePool", "", 1, 1, 1, 0, average_attrs, examples);
const struct accel_op accel_op_lppool = ROW("LpPool", "", 1, 1, 1, 0, lp_attrs, examples);
const struct accel_op accel_op_ms_qlinearaveragepool =
    ROW("QLinearAveragePool", "com.microsoft", 4, 5, 1, 0, q_attrs, q_examples);
