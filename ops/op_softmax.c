/* Softmax, LogSoftmax, Hardmax, CumSum and CumProd: shape and type of the input, work along an
 * axis.
 *
 * Below opset 13 the first three see the input as a matrix cut at `axis` (default 1) and normalise
 * over all axes behind it; from then on over one axis (default the last). */
#include <math.h>

#include "graph/attr.h"
#include "graph/constprop.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct softmax_params {
    int64_t axis;
    bool as_matrix; /* all axes from `axis` on */
};

static enum accel_err softmax_parse(struct accel_node *n, int opset)
{
    struct softmax_params *p = ACCEL_NEW(&n->graph->model->arena, struct softmax_params, 1);
    if (!p)
        return accel_fail_nomem();
    p->as_matrix = opset < 13;
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", opset < 13 ? 1 : -1));
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err softmax_infer(struct accel_node *n)
{
    const struct softmax_params *p = n->params;
    int rank = accel_operand_rank(n, 0), axis;
    /* a matrix may be cut behind its last axis, and a scalar has the axes 0 and -1 */
    if (rank > 0 && !(p->as_matrix && p->axis == rank))
        ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

/* The axes that are not normalised over. */
static void softmax_links(const struct accel_node *n, struct accel_links *l)
{
    const struct softmax_params *p = n->params;
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    int64_t axis = p->axis < 0 ? p->axis + rank : p->axis;
    if (axis < 0 || axis > rank)
        return;
    accel_link_range(l, 0, y, 0, (int)axis);
    if (!p->as_matrix)
        accel_link_range(l, 0, y, (int)axis + 1, rank);
}

enum softmax_kind { SOFTMAX, LOG_SOFTMAX, HARDMAX };

/* One line of `size` elements, `step` apart. */
static void softmax_line(real *y, const real *x, int64_t size, int64_t step, enum softmax_kind kind)
{
    int64_t top = 0;
    double sum = 0;
    for (int64_t k = 1; k < size; k++)
        if (x[k * step] > x[top * step])
            top = k;
    double most = (double)x[top * step];
    for (int64_t k = 0; kind != HARDMAX && k < size; k++)
        sum += exp((double)x[k * step] - most);
    for (int64_t k = 0; k < size; k++) {
        double v = (double)x[k * step] - most;
        y[k * step] = (real)(kind == SOFTMAX   ? exp(v) / sum
                             : kind == HARDMAX ? k == top
                                               : v - log(sum));
    }
}

static enum accel_err softmax_forward(const struct accel_call *c)
{
    const struct softmax_params *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    enum softmax_kind kind = *(const enum softmax_kind *)c->node->op->family;
    int axis = 0;
    int64_t step = 1, size = 1;
    if (x->rank > 0 && !(p->as_matrix && p->axis == x->rank)) {
        ACCEL_TRY(accel_axis_of(&axis, p->axis, x->rank));
        for (int d = axis + 1; d < x->rank; d++)
            step *= x->dim[d];
        size = x->dim[axis];
    }
    if (p->as_matrix) {
        size *= step;
        step = 1;
    }
    for (int64_t i = 0; i < x->n; i++)
        if (i / step % size == 0)
            softmax_line((real *)c->y[0].data + i, (const real *)x->data + i, size, step, kind);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ CumSum, CumProd */

struct scan_params {
    bool exclusive, reverse;
};

static enum accel_err scan_parse(struct accel_node *n, int opset)
{
    int64_t exclusive, reverse;
    struct scan_params *p = ACCEL_NEW(&n->graph->model->arena, struct scan_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&exclusive, n, "exclusive", 0));
    ACCEL_TRY(accel_attr_int(&reverse, n, "reverse", 0));
    *p = (struct scan_params){exclusive != 0, reverse != 0};
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err scan_infer(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

static enum accel_err scan_forward(const struct accel_call *c)
{
    const struct scan_params *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    bool product = c->node->op->family != NULL, whole = accel_op_is_int(x);
    int axis;
    if (c->x[1].n != 1 || !accel_op_is_int(&c->x[1]))
        return accel_fail(ACCEL_ENOSUP, "the axis is no single integer");
    ACCEL_TRY(accel_axis_of(&axis, *(const int64_t *)c->x[1].data, x->rank));
    int64_t step = 1, size = x->dim[axis];
    for (int d = axis + 1; d < x->rank; d++)
        step *= x->dim[d];
    for (int64_t i = 0; i < x->n; i++) {
        int64_t k = i / step % size;
        if (k != 0) /* one pass per line, started by its first element */
            continue;
        int64_t sum_i = product;
        double sum = product;
        for (int64_t t = 0; t < size; t++) {
            int64_t at = i + (p->reverse ? size - 1 - t : t) * step, before_i = sum_i;
            double before = sum;
            if (whole) {
                int64_t v = ((const int64_t *)x->data)[at];
                sum_i = product ? accel_int_mul(sum_i, v) : accel_int_add(sum_i, v);
                ((int64_t *)c->y[0].data)[at] =
                    accel_int_wrap(p->exclusive ? before_i : sum_i, x->dtype);
            } else {
                double v = (double)((const real *)x->data)[at];
                sum = product ? sum * v : sum + v;
                ((real *)c->y[0].data)[at] = (real)(p->exclusive ? before : sum);
            }
        }
    }
    return ACCEL_OK;
}

/* All axes but the one that is walked along. */
static void cumsum_links(const struct accel_node *n, struct accel_links *l)
{
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0), axis;
    const int64_t *at;
    int64_t count;
    if (!accel_operand(n, 1))
        return;
    if (!accel_links_ok(l, accel_known_ints(&at, &count, n->in[1])) || !at || count != 1 ||
        accel_axis_of(&axis, at[0], rank))
        return;
    accel_link_range(l, 0, y, 0, axis);
    accel_link_range(l, 0, y, axis + 1, rank);
}

static void cumsum_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0), true);
}

static const struct accel_attr_rule softmax_attrs[] = {{"axis", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule scan_attrs[] = {
    {"exclusive", ACCEL_ATTR_INT, 0}, {"reverse", ACCEL_ATTR_INT, 0}, {0}};
static const char *const softmax_examples[] = {"2x3x4", "2x3x4 | axis=1", NULL};
static const char *const scan_examples[] = {"2x3x4 scalar", "5 1 | exclusive=1 reverse=1",
                                            "2x3x4 scalar[1]", NULL};

static const enum softmax_kind is_softmax = SOFTMAX, is_log = LOG_SOFTMAX, is_hard = HARDMAX;

#define ROW(onnx, what)                                                                            \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = 1, .min_in = 1, .max_in = 1, .min_out = 1,          \
        .max_out = 1, .attrs = softmax_attrs, .parse = softmax_parse, .infer = softmax_infer,      \
        .links = softmax_links, .forward = softmax_forward, .family = (what),                      \
        .examples = softmax_examples                                                               \
    }
const struct accel_op accel_op_softmax = ROW("Softmax", &is_softmax);
const struct accel_op accel_op_logsoftmax = ROW("LogSoftmax", &is_log);
const struct accel_op accel_op_hardmax = ROW("Hardmax", &is_hard);

static const bool multiplies = true;

#define SCAN_ROW(onnx, opset, what, ...)                                                           \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = (opset), .min_in = 2, .max_in = 2, .min_out = 1,    \
        .max_out = 1, .attrs = scan_attrs, .parse = scan_parse, .infer = scan_infer,               \
        .forward = scan_forward, .family = (what), .examples = scan_examples, __VA_ARGS__          \
    }
const struct accel_op accel_op_cumsum =
    SCAN_ROW("CumSum", 11, NULL, .links = cumsum_links, .zero = cumsum_zero);
const struct accel_op accel_op_cumprod = SCAN_ROW("CumProd", 26, &multiplies, .links = NULL);
