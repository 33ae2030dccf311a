/* Operators of signal processing, and Det: shapes only. Sizes come from small inputs that constant
 * propagation knows, or stay unknown. */
#include "graph/attr.h"
#include "graph/constprop.h"
#include "ops/operand.h"

/* The one integer of an input as a dim; unknown when the input is left out or longer. */
static enum accel_err scalar_dim(struct accel_dim *out, const struct accel_node *n, int slot)
{
    struct accel_value *v = accel_operand(n, slot);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    *out = accel_dim_unknown();
    return k && k->n == 1 && !k->real ? accel_known_dim(out, v, k, 0) : ACCEL_OK;
}

/* Bins of a transform over `size` points: all, or floor(size / 2) + 1. */
static enum accel_err bins(struct accel_dim *out, const struct accel_node *n, struct accel_dim size,
                           bool half)
{
    *out = size;
    return half ? accel_dim_derive(out, accel_operand_symbols(n), size, 1, 0, 2, 1) : ACCEL_OK;
}

struct signal_params {
    enum accel_dtype out;
    bool half, inverse, axis_is_input;
    int64_t axis;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct signal_params *p = ACCEL_NEW(&n->graph->model->arena, struct signal_params, 1);
    bool stft = n->op->min_in == 2;
    int64_t out, half, inverse;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&out, n, "output_datatype", ACCEL_F32));
    ACCEL_TRY(accel_attr_int(&half, n, "onesided", stft));
    ACCEL_TRY(accel_attr_int(&inverse, n, "inverse", 0));
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", 1));
    if (out < 0 || !accel_dtype_find((int)(out < 1000 ? out : 1000)))
        return accel_fail(ACCEL_EMODEL, "attribute 'output_datatype' is %lld", (long long)out);
    p->out = (enum accel_dtype)out;
    p->half = half != 0;
    p->inverse = inverse != 0;
    p->axis_is_input = opset >= 20;
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err window_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    struct accel_dim size;
    ACCEL_TRY(scalar_dim(&size, n, 0));
    return accel_result_dims(n, 0, p->out, 1, &size);
}

/* [floor(dft_length / 2) + 1, n_mels] */
static enum accel_err mel_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    struct accel_dim y[2], size;
    ACCEL_TRY(scalar_dim(&y[1], n, 0));
    ACCEL_TRY(scalar_dim(&size, n, 1));
    ACCEL_TRY(bins(&y[0], n, size, true));
    return accel_result_dims(n, 0, p->out, 2, y);
}

/* X [… D … 1 or 2] -> [… bins … 2]; the inverse of half the bins is real: [… D … 1] */
static enum accel_err dft_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    int rank = accel_operand_rank(n, 0), axis = 0;
    int64_t at = p->axis_is_input ? -2 : p->axis;
    struct accel_shape y;
    if (rank < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 0), NULL);
    if (rank < 2)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a transform needs 2 or more", rank);
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    if (p->axis_is_input && accel_operand(n, 2)) {
        const int64_t *v;
        int64_t count;
        ACCEL_TRY(accel_known_ints(&v, &count, n->in[2]));
        if (!v || count != 1) {
            accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
            return ACCEL_OK;
        }
        at = v[0];
    }
    ACCEL_TRY(accel_axis_of(&axis, at, rank));
    for (int i = 0; i < rank; i++)
        y.dim[i] = accel_operand_dim(n, 0, i);
    struct accel_dim size = y.dim[axis];
    if (accel_operand(n, 1))
        ACCEL_TRY(scalar_dim(&size, n, 1));
    bool to_real = p->half && p->inverse; /* half the bins of a real signal: back to that signal */
    y.dim[rank - 1] = accel_dim_of(to_real ? 1 : 2);
    if (to_real && !accel_operand(n, 1))
        ACCEL_TRY(accel_dim_derive(&y.dim[axis], accel_operand_symbols(n), size, 2, -2, 1, 0));
    else
        ACCEL_TRY(bins(&y.dim[axis], n, size, p->half && !to_real));
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* Signal [B L 1 or 2], step, window, frame length -> [B frames bins 2] */
static enum accel_err stft_infer(struct accel_node *n)
{
    const struct signal_params *p = n->params;
    struct accel_dim step, frame = accel_operand_dim(n, 2, 0);
    ACCEL_TRY(scalar_dim(&step, n, 1));
    if (accel_operand(n, 3))
        ACCEL_TRY(scalar_dim(&frame, n, 3));
    struct accel_dim y[4] = {accel_operand_dim(n, 0, 0), accel_dim_unknown(), accel_dim_unknown(),
                             accel_dim_of(2)};
    if (accel_dim_known(step) && step.n == 0)
        return accel_fail(ACCEL_ESHAPE, "the frame step is 0");
    if (accel_dim_known(step) && accel_dim_known(frame))
        ACCEL_TRY(accel_dim_derive(&y[1], accel_operand_symbols(n), accel_operand_dim(n, 0, 1), 1,
                                   -frame.n, step.n, 1));
    ACCEL_TRY(bins(&y[2], n, frame, p->half));
    return accel_result_dims(n, 0, accel_operand_dtype(n, 0), 4, y);
}

/* [… M M] -> […] */
static enum accel_err det_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0);
    struct accel_shape y;
    struct accel_dim rows = accel_operand_dim(n, 0, -2), cols = accel_operand_dim(n, 0, -1);
    if (rank >= 0 && rank < 2)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d, a determinant needs 2 or more", rank);
    if (accel_dim_differs(rows, cols))
        return accel_fail(ACCEL_ESHAPE, "a matrix of %lld rows and %lld columns", (long long)rows.n,
                          (long long)cols.n);
    ACCEL_TRY(accel_shape_new(&y, n, rank < 0 ? -1 : rank - 2));
    for (int i = 0; i < y.rank; i++)
        y.dim[i] = accel_operand_dim(n, 0, i);
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

static const struct accel_attr_rule window_attrs[] = {
    {"output_datatype", ACCEL_ATTR_INT, 0}, {"periodic", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule mel_attrs[] = {{"output_datatype", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule dft_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                   {"inverse", ACCEL_ATTR_INT, 0},
                                                   {"onesided", ACCEL_ATTR_INT, 0},
                                                   {0}};
static const struct accel_attr_rule stft_attrs[] = {{"onesided", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule no_attrs[] = {{0}};
static const char *const scalar_examples[] = {"scalar", NULL};
static const char *const mel_examples[] = {"scalar scalar scalar scalar scalar", NULL};
static const char *const dft_examples[] = {"2x8x1", "2x8x2", NULL};
static const char *const stft_examples[] = {"2x32x1 scalar 8", NULL};
static const char *const det_examples[] = {"2x3x3", "3x3", NULL};

#define ROW(onnx, opset, least, most, rules, read, shapes, eg)                                     \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = (opset), .min_in = (least), .max_in = (most),       \
        .min_out = 1, .max_out = 1, .attrs = (rules), .parse = (read), .infer = (shapes),          \
        .examples = (eg)                                                                           \
    }
const struct accel_op accel_op_blackmanwindow =
    ROW("BlackmanWindow", 17, 1, 1, window_attrs, parse, window_infer, scalar_examples);
const struct accel_op accel_op_hannwindow =
    ROW("HannWindow", 17, 1, 1, window_attrs, parse, window_infer, scalar_examples);
const struct accel_op accel_op_hammingwindow =
    ROW("HammingWindow", 17, 1, 1, window_attrs, parse, window_infer, scalar_examples);
const struct accel_op accel_op_melweightmatrix =
    ROW("MelWeightMatrix", 17, 5, 5, mel_attrs, parse, mel_infer, mel_examples);
const struct accel_op accel_op_dft =
    ROW("DFT", 17, 1, 3, dft_attrs, parse, dft_infer, dft_examples);
const struct accel_op accel_op_stft =
    ROW("STFT", 17, 2, 4, stft_attrs, parse, stft_infer, stft_examples);
const struct accel_op accel_op_det = ROW("Det", 11, 1, 1, no_attrs, NULL, det_infer, det_examples);
