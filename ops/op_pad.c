/* Pad and CenterCropPad: sizes along some axes change by given numbers. */
#include "ops/op_util.h"

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };

struct pad {
    bool attr; /* opset < 11: pads are an attribute ("paddings" in opset 1) */
    enum pad_mode mode;
    float value; /* opset < 11 */
};

static enum accel_err pad_parse(struct accel_node *n, int opset)
{
    struct pad *p = accel_op_params(n, sizeof *p);
    const char *mode;
    if (!p)
        return ACCEL_ENOMEM;
    p->attr = opset < 11;
    ACCEL_TRY(accel_attr_string(&mode, n, "mode", "constant"));
    if (strcmp(mode, "constant") != 0 && strcmp(mode, "reflect") != 0 &&
        strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
        return accel_fail(ACCEL_EMODEL, "mode is '%.100s'", mode);
    p->mode = mode[0] == 'r'   ? PAD_REFLECT
              : mode[0] == 'e' ? PAD_EDGE
              : mode[0] == 'w' ? PAD_WRAP
                               : PAD_CONSTANT;
    return accel_attr_float(&p->value, n, "value", 0);
}

static enum accel_err pad_axis(struct accel_dim *d, struct accel_symbols *s,
                               const struct accel_known *k, const struct accel_list *pads,
                               int64_t at, int64_t half)
{
    int64_t probe[ACCEL_N_PROBES], sum;
    const struct accel_dim in = *d;
    if (pads->known) {
        if (__builtin_add_overflow(pads->at[at], pads->at[at + half], &sum))
            return accel_fail(ACCEL_ESHAPE, "pads overflow");
        return accel_dim_derive(d, s, in, 1, sum, 1, 0);
    }
    *d = accel_dim_unknown();
    for (int t = 0; k && t < ACCEL_N_PROBES; t++) {
        const int64_t *p = k->probe[t];
        probe[t] = accel_dim_probe(in, s, t);
        if (probe[t] < 0 || __builtin_add_overflow(probe[t], p[at], &probe[t]) ||
            __builtin_add_overflow(probe[t], p[at + half], &probe[t]))
            return ACCEL_OK;
    }
    return k ? accel_dim_of_probes(d, s, probe) : ACCEL_OK;
}

static enum accel_err pad_infer(struct accel_node *n)
{
    const struct pad *p = n->params;
    struct accel_list pads, axes;
    struct accel_value *v = p->attr ? NULL : accel_operand(n, 1);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    int rank = accel_operand_rank(n, 0);
    bool old_name = p->attr && !accel_attr_find(n, "pads");
    ACCEL_TRY(accel_list_get(&pads, n, p->attr ? old_name ? "paddings" : "pads" : NULL,
                             p->attr ? -1 : 1));
    ACCEL_TRY(accel_list_get(&axes, n, NULL, p->attr ? -1 : 3));
    ACCEL_TRY(accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0)));
    if (rank < 0 || !n->n_out || !n->out[0])
        return ACCEL_OK;
    struct accel_dim *d = n->out[0]->shape.dim;
    int64_t half = axes.given ? axes.n : rank;
    if (half >= 0 && pads.n >= 0 && pads.n != 2 * half)
        return accel_fail(ACCEL_ESHAPE, "%lld pads for %lld axes", (long long)pads.n,
                          (long long)half);
    if ((axes.given && !axes.known) || pads.n < 0 || half < 0 || (k && k->real)) {
        for (int i = 0; i < rank; i++)
            d[i] = accel_dim_unknown();
        return ACCEL_OK;
    }
    for (int64_t i = 0; i < half; i++) {
        int axis = (int)i;
        if (axes.given)
            ACCEL_TRY(accel_axis_of(&axis, axes.at[i], rank));
        ACCEL_TRY(pad_axis(&d[axis], accel_operand_symbols(n), k, &pads, i, half));
    }
    return ACCEL_OK;
}

/* Where position i of a padded axis comes from; -1: the constant. */
static int64_t source(int64_t i, int64_t size, enum pad_mode mode)
{
    if (i >= 0 && i < size)
        return i;
    if (mode == PAD_CONSTANT || size == 0)
        return -1;
    if (mode == PAD_EDGE)
        return i < 0 ? 0 : size - 1;
    if (mode == PAD_WRAP)
        return (i % size + size) % size;
    int64_t period = size > 1 ? 2 * (size - 1) : 1, k = (i % period + period) % period;
    return k < size ? k : period - k;
}

/* Padding in front of every axis. */
static enum accel_err pad_begins(int64_t *begin, const struct accel_call *c)
{
    const struct pad *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    const struct accel_array *axes = c->node->n_in > 3 && c->x[3].data ? &c->x[3] : NULL;
    const int64_t *pads = !p->attr && c->node->n_in > 1 ? c->x[1].data : NULL;
    size_t n = p->attr ? 0 : (size_t)c->x[1].n;
    for (int d = 0; d < x->rank; d++)
        begin[d] = 0;
    if (p->attr)
        ACCEL_TRY(accel_attr_ints(&pads, &n, c->node,
                                  accel_attr_find(c->node, "pads") ? "pads" : "paddings"));
    for (size_t i = 0; pads && i < n / 2; i++) {
        int axis = (int)i;
        if (axes)
            ACCEL_TRY(accel_axis_of(&axis, ((const int64_t *)axes->data)[i], x->rank));
        if (axis < x->rank)
            begin[axis] = pads[i];
    }
    return ACCEL_OK;
}

static enum accel_err pad_forward(const struct accel_call *c)
{
    const struct pad *p = c->node->params;
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    const struct accel_array *given = c->node->n_in > 2 && c->x[2].data ? &c->x[2] : NULL;
    int64_t *begin = c->scratch;
    char fill[16] = {0};
    double value = (double)p->value;
    ACCEL_TRY(pad_begins(begin, c));
    if (given && given->n == 1)
        memcpy(fill, given->data, accel_array_width(x));
    else if (p->attr && value != 0)
        accel_dtype_from_f64(x->dtype, &value, 1, fill, 0);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i, at = 0, step = 1;
        for (int d = y->rank - 1; d >= 0 && at >= 0; d--) {
            int64_t k = source(rest % y->dim[d] - begin[d], x->dim[d], p->mode);
            rest /= y->dim[d];
            at = k < 0 ? -1 : at + k * step;
            step *= x->dim[d];
        }
        size_t w = accel_array_width(y);
        memcpy((char *)y->data + (size_t)i * w,
               at < 0 ? fill : (const char *)x->data + (size_t)at * w, w);
    }
    return ACCEL_OK;
}

static size_t pad_scratch(const struct accel_call *c)
{
    return ((size_t)c->x[0].rank + 1) * sizeof(int64_t);
}

/* ------------------------------------------------------------------------------ CenterCropPad */

static enum accel_err crop_infer(struct accel_node *n)
{
    struct accel_list axes;
    struct accel_shape to;
    int rank = accel_operand_rank(n, 0);
    ACCEL_TRY(accel_list_get(&axes, n, "axes", -1));
    ACCEL_TRY(accel_shape_from_input(&to, n, 1));
    ACCEL_TRY(accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0)));
    if (rank < 0 || !n->n_out || !n->out[0])
        return ACCEL_OK;
    int64_t count = axes.given ? axes.n : rank;
    if (to.rank >= 0 && to.rank != count)
        return accel_fail(ACCEL_ESHAPE, "%d sizes for %lld axes", to.rank, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        int axis = (int)i;
        if (axes.given)
            ACCEL_TRY(accel_axis_of(&axis, axes.at[i], rank));
        n->out[0]->shape.dim[axis] = to.rank >= 0 ? to.dim[i] : accel_dim_unknown();
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule pad_attrs[] = {{"mode", ACCEL_ATTR_STRING, 0},
                                                   {"pads", ACCEL_ATTR_INTS, 0},
                                                   {"paddings", ACCEL_ATTR_INTS, 0},
                                                   {"value", ACCEL_ATTR_FLOAT, 0},
                                                   {0}};
static const struct accel_attr_rule crop_attrs[] = {{"axes", ACCEL_ATTR_INTS, 0}, {0}};

const struct accel_op accel_op_pad = {
    .name = "Pad",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 4,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = pad_attrs,
    .parse = pad_parse,
    .infer = pad_infer,
    .forward = pad_forward,
    .scratch = pad_scratch,
    .data_slots = 1 | 4,
    .examples = (const char *const[]){"2x3 [0,1,2,0]", NULL},
};

const struct accel_op accel_op_center_crop_pad = {
    .name = "CenterCropPad",
    .domain = "",
    .since = 18,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = crop_attrs,
    .infer = crop_infer,
    .examples = (const char *const[]){"5x8 [7,3]", NULL},
};
