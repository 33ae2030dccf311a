/* Element-wise operators of one input with one or two parameters: y[i] = f(x[i]; a, b).
 *
 * parse() reads the attributes named by the family into `struct activation_params`, so that the
 * kernels know neither names nor defaults. */
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct activation_params {
    float a, b;
};

struct activation {
    real (*f)(real x, const struct activation_params *p);
    int64_t (*fi)(int64_t x);
    const char *a, *b; /* attributes; NULL: none */
    float a_otherwise, b_otherwise;
    enum accel_dtype out; /* UNDEFINED: that of the input */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    const struct activation *f = n->op->family;
    (void)opset;
    struct activation_params *p = ACCEL_NEW(&n->graph->model->arena, struct activation_params, 1);
    if (!p)
        return accel_fail_nomem();
    if (f->a)
        ACCEL_TRY(accel_attr_float(&p->a, n, f->a, f->a_otherwise));
    if (f->b)
        ACCEL_TRY(accel_attr_float(&p->b, n, f->b, f->b_otherwise));
    n->params = p;
    return ACCEL_OK;
}

/* IsInf: which infinities count. */
static enum accel_err isinf_parse(struct accel_node *n, int opset)
{
    (void)opset;
    int64_t pos, neg;
    ACCEL_TRY(accel_attr_int(&pos, n, "detect_positive", 1));
    ACCEL_TRY(accel_attr_int(&neg, n, "detect_negative", 1));
    struct activation_params *p = ACCEL_NEW(&n->graph->model->arena, struct activation_params, 1);
    if (!p)
        return accel_fail_nomem();
    *p = (struct activation_params){pos != 0, neg != 0};
    n->params = p;
    return ACCEL_OK;
}

/* Gelu: a = 1 for the tanh form. */
static enum accel_err gelu_parse(struct accel_node *n, int opset)
{
    (void)opset;
    const char *how;
    ACCEL_TRY(accel_attr_string(&how, n, "approximate", "none"));
    if (strcmp(how, "none") != 0 && strcmp(how, "tanh") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'approximate' is \"%.50s\", not none or tanh",
                          how);
    struct activation_params *p = ACCEL_NEW(&n->graph->model->arena, struct activation_params, 1);
    if (!p)
        return accel_fail_nomem();
    p->a = how[0] == 't';
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct activation *f = n->op->family;
    return accel_result_like(n, 0, f->out != ACCEL_UNDEFINED ? f->out : accel_operand_dtype(n, 0),
                             accel_operand(n, 0));
}

/* Elements from … to - 1 of a float operand. */
static void run_floats(void *ctx, int64_t from, int64_t to)
{
    const struct accel_call *c = ctx;
    const struct activation *f = c->node->op->family;
    const struct activation_params *p = c->node->params;
    const real *in = c->x[0].data;
    for (int64_t i = from; i < to; i++)
        if (f->out == ACCEL_BOOL)
            ((int64_t *)c->y[0].data)[i] = f->f(in[i], p) != 0;
        else
            ((real *)c->y[0].data)[i] = f->f(in[i], p);
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct activation *f = c->node->op->family;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    if (accel_op_is_int(x)) {
        if (!f->fi)
            return accel_fail(ACCEL_ENOSUP, "%s has no integer form", c->node->op_type);
        const int64_t *in = x->data;
        int64_t *out = y->data;
        for (int64_t i = 0; i < x->n; i++)
            out[i] = f->fi(in[i]);
        return ACCEL_OK;
    }
    struct accel_call call = *c;
    accel_threads_run(run_floats, &call, x->n, 8);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ functions */

static int64_t relu_i(int64_t x)
{
    return x > 0 ? x : 0;
}
static real relu(real x, const struct activation_params *p)
{
    (void)p;
    return x < 0 ? 0 : x;
}
static real sigmoid(real x, const struct activation_params *p)
{
    (void)p;
    return (real)(1 / (1 + exp(-(double)x)));
}
static real leaky_relu(real x, const struct activation_params *p)
{
    return x < 0 ? (real)p->a * x : x;
}
static real elu(real x, const struct activation_params *p)
{
    return x < 0 ? (real)(p->a * expm1((double)x)) : x;
}
static real selu(real x, const struct activation_params *p)
{
    return (real)p->b * (x > 0 ? x : (real)(p->a * expm1((double)x)));
}
static real celu(real x, const struct activation_params *p)
{
    return x > 0 ? x : (real)(p->a * expm1((double)x / p->a));
}
static real thresholded_relu(real x, const struct activation_params *p)
{
    return x > (real)p->a ? x : 0;
}
static real hard_sigmoid(real x, const struct activation_params *p)
{
    double v = p->a * (double)x + p->b;
    return (real)(v < 0 ? 0 : v > 1 ? 1 : v);
}
static real gelu(real x, const struct activation_params *p)
{
    double v = (double)x;
    if (p->a != 0) /* sqrt(2 / pi) */
        return (real)(0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v))));
    return (real)(0.5 * v * (1 + erf(v * 0.7071067811865476)));
}
static real swish(real x, const struct activation_params *p)
{
    return (real)((double)x / (1 + exp(-p->a * (double)x)));
}
static real shrink(real x, const struct activation_params *p)
{
    if (x < -(real)p->b)
        return x + (real)p->a;
    return x > (real)p->b ? x - (real)p->a : 0;
}
static real is_inf(real x, const struct activation_params *p)
{
    return isinf(x) && (x > 0 ? p->a : p->b) != 0;
}

/* ------------------------------------------------------------------ rows */

static const struct accel_attr_rule old_attrs[] = {{"consumed_inputs", ACCEL_ATTR_INTS, 0}, {0}};
static const struct accel_attr_rule alpha_attrs[] = {
    {"alpha", ACCEL_ATTR_FLOAT, 0}, {"consumed_inputs", ACCEL_ATTR_INTS, 0}, {0}};
static const struct accel_attr_rule only_alpha[] = {{"alpha", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule selu_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0},
                                                    {"gamma", ACCEL_ATTR_FLOAT, 0},
                                                    {"consumed_inputs", ACCEL_ATTR_INTS, 0},
                                                    {0}};
static const struct accel_attr_rule hard_sigmoid_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0},
                                                            {"beta", ACCEL_ATTR_FLOAT, 0},
                                                            {"consumed_inputs", ACCEL_ATTR_INTS, 0},
                                                            {0}};
static const struct accel_attr_rule shrink_attrs[] = {
    {"bias", ACCEL_ATTR_FLOAT, 0}, {"lambd", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule isinf_attrs[] = {
    {"detect_negative", ACCEL_ATTR_INT, 0}, {"detect_positive", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule gelu_attrs[] = {{"approximate", ACCEL_ATTR_STRING, 0}, {0}};

static const char *const any_values[] = {"2x3x4", "5", NULL};
static const char *const alpha_values[] = {"2x3x4", "5 | alpha=0.3", NULL};
static const char *const gelu_values[] = {"2x3x4", "5 | approximate=tanh", NULL};

#define ROW_IN(onnx, dom, opset, rules, flag, read, eg, ...)                                       \
    {                                                                                              \
        .name = (onnx), .domain = (dom), .since = (opset), .min_in = 1, .max_in = 1, .min_out = 1, \
        .max_out = 1, .flags = (flag), .attrs = (rules), .parse = (read), .infer = infer,          \
        .links = accel_link_unary, .zero = accel_zero_unary, .forward = forward,                   \
        .family = &(const struct activation){__VA_ARGS__}, .examples = (eg)                        \
    }
#define ROW(onnx, opset, rules, flag, eg, ...)                                                     \
    ROW_IN(onnx, "", opset, rules, flag, parse, eg, __VA_ARGS__)
#define MS_ROW(onnx, rules, eg, ...)                                                               \
    ROW_IN(onnx, "com.microsoft", 1, rules, 0, parse, eg, __VA_ARGS__)

const struct accel_op accel_op_relu =
    ROW("Relu", 1, old_attrs, ACCEL_OP_COMPARES, any_values, .f = relu, .fi = relu_i);
const struct accel_op accel_op_sigmoid = ROW("Sigmoid", 1, old_attrs, 0, any_values, .f = sigmoid);
const struct accel_op accel_op_leakyrelu =
    ROW("LeakyRelu", 1, alpha_attrs, ACCEL_OP_COMPARES, alpha_values, .f = leaky_relu, .a = "alpha",
        .a_otherwise = 0.01f);
const struct accel_op accel_op_elu = ROW("Elu", 1, alpha_attrs, ACCEL_OP_COMPARES, alpha_values,
                                         .f = elu, .a = "alpha", .a_otherwise = 1);
const struct accel_op accel_op_selu =
    ROW("Selu", 1, selu_attrs, ACCEL_OP_COMPARES, alpha_values, .f = selu, .a = "alpha",
        .a_otherwise = 1.67326319217681884765625f, .b = "gamma",
        .b_otherwise = 1.05070102214813232421875f);
const struct accel_op accel_op_celu = ROW("Celu", 12, only_alpha, ACCEL_OP_COMPARES, alpha_values,
                                          .f = celu, .a = "alpha", .a_otherwise = 1);
const struct accel_op accel_op_thresholdedrelu =
    ROW("ThresholdedRelu", 10, only_alpha, ACCEL_OP_COMPARES, alpha_values, .f = thresholded_relu,
        .a = "alpha", .a_otherwise = 1);
const struct accel_op accel_op_hardsigmoid =
    ROW("HardSigmoid", 1, hard_sigmoid_attrs, ACCEL_OP_COMPARES, alpha_values, .f = hard_sigmoid,
        .a = "alpha", .a_otherwise = 0.2f, .b = "beta", .b_otherwise = 0.5f);
const struct accel_op accel_op_swish =
    ROW("Swish", 24, only_alpha, 0, alpha_values, .f = swish, .a = "alpha", .a_otherwise = 1);
const struct accel_op accel_op_shrink =
    ROW("Shrink", 9, shrink_attrs, ACCEL_OP_COMPARES, any_values, .f = shrink, .a = "bias",
        .b = "lambd", .b_otherwise = 0.5f);
const struct accel_op accel_op_isinf =
    ROW_IN("IsInf", "", 10, isinf_attrs, ACCEL_OP_COMPARES, isinf_parse, any_values, .f = is_inf,
           .out = ACCEL_BOOL);
const struct accel_op accel_op_gelu =
    ROW_IN("Gelu", "", 20, gelu_attrs, 0, gelu_parse, gelu_values, .f = gelu);
const struct accel_op accel_op_ms_gelu = MS_ROW("Gelu", NULL, any_values, .f = gelu);
const struct accel_op accel_op_ms_quickgelu =
    MS_ROW("QuickGelu", only_alpha, alpha_values, .f = swish, .a = "alpha", .a_otherwise = 1.702f);
