/* Pad and CenterCropPad: sizes along some axes change by given numbers. */
#include <math.h>

#include "ops/link_util.h"
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

/* The lists of a node: pads [2 * half], and the axes they are for (not given: all). */
static enum accel_err pad_lists(struct accel_list *pads, struct accel_list *axes,
                                const struct accel_node *n)
{
    const struct pad *p = n->params;
    bool old_name = p->attr && !accel_attr_find(n, "pads");
    ACCEL_TRY(
        accel_list_get(pads, n, p->attr ? old_name ? "paddings" : "pads" : NULL, p->attr ? -1 : 1));
    return accel_list_get(axes, n, NULL, p->attr ? -1 : 3);
}

static enum accel_err pad_infer(struct accel_node *n)
{
    const struct pad *p = n->params;
    struct accel_list pads, axes;
    struct accel_value *v = p->attr ? NULL : accel_operand(n, 1);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    int rank = accel_operand_rank(n, 0);
    ACCEL_TRY(pad_lists(&pads, &axes, n));
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

/* ------------------------------------------------------------------------------ links */

/* Padding of every axis, begins and then ends; NULL when it is not known. */
static const int64_t *pad_sizes(struct accel_links *l)
{
    const struct accel_node *n = l->node;
    struct accel_list pads, axes;
    int rank = accel_slot_rank(n, 0);
    if (rank < 0 || !accel_links_ok(l, pad_lists(&pads, &axes, n)) || !pads.known ||
        (axes.given && !axes.known))
        return NULL;
    int64_t half = axes.given ? axes.n : rank;
    int64_t *size = accel_links_list(l, 2 * (int64_t)rank + 1);
    for (int64_t i = 0; size && i < half && half + i < pads.n; i++) {
        int axis = (int)i;
        if (axes.given ? accel_axis_of(&axis, axes.at[i], rank) != ACCEL_OK : i >= rank)
            return NULL;
        size[axis] = pads.at[i];
        size[rank + axis] = pads.at[half + i];
    }
    return size;
}

static void pad_links(const struct accel_node *n, struct accel_links *l)
{
    const struct pad *p = n->params;
    const int64_t *pad = pad_sizes(l);
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    for (int k = 0; pad && k < rank; k++) {
        int64_t before = pad[k], behind = pad[rank + k];
        if (before == 0 && behind == 0)
            accel_links_pair(l, 0, k, y, k);
        else if (p->mode == PAD_CONSTANT && before >= 0 && behind >= 0 &&
                 accel_operand_dim(n, 0, k).n > 0)
            accel_links_tie(l, n->in[0]->shape.dim[k].n, 2,
                            (const struct accel_side[]){accel_side_whole(0, k),
                                                        accel_side_of(y, k, before, 1, 0, 1)});
    }
}

/* A padded unit is filled with the padding too; zeros of quantised integers are no zeros of it. */
static void pad_zero(const struct accel_node *n, struct accel_zero *z)
{
    const struct pad *p = n->params;
    const int64_t *pad = pad_sizes(z->links);
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0), padded = 0;
    float value = accel_operand(n, 2) && !p->attr ? accel_zero_number(z, 2) : p->value;
    if (!pad || !accel_dtype_is_float(accel_operand_dtype(n, 0)))
        return;
    for (int k = 0; k < rank; k++)
        padded += pad[k] != 0 || pad[rank + k] != 0;
    for (int k = 0; k < rank; k++) {
        float own = accel_zero_get(z, 0, k);
        bool here = pad[k] != 0 || pad[rank + k] != 0;
        bool filled = here || (padded && p->mode == PAD_CONSTANT);
        if (!isnan(own) && (!filled || (!(own < value) && !(own > value) && !isnan(value))))
            accel_zero_set(z, y, k, own);
    }
}

/* What is kept of the padding before and behind. */
static enum accel_err pad_resize(struct accel_node *n, struct accel_resize *r)
{
    const struct pad *p = n->params;
    struct accel_list pads, axes;
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    ACCEL_TRY(pad_lists(&pads, &axes, n));
    if (rank < 0 || !pads.known || (axes.given && !axes.known))
        return ACCEL_OK;
    int64_t half = axes.given ? axes.n : rank;
    int64_t *want = ACCEL_NEW(&n->graph->model->arena, int64_t, pads.n);
    if (!want)
        return accel_fail_nomem();
    for (int64_t i = 0; i < pads.n; i++)
        want[i] = pads.at[i];
    for (int64_t i = 0; i < half && half + i < pads.n; i++) {
        int axis = (int)i;
        if (axes.given)
            ACCEL_TRY(accel_axis_of(&axis, axes.at[i], rank));
        if ((pads.at[i] == 0 && pads.at[half + i] == 0) || !accel_resize_hit(r, y, axis))
            continue;
        int64_t inner = pads.at[i] + accel_resize_was(r, 0, axis);
        want[i] = accel_resize_before(r, y, axis, pads.at[i]);
        want[half + i] = accel_resize_now(r, y, axis) - accel_resize_before(r, y, axis, inner);
    }
    if (p->attr)
        return accel_resize_attr_ints(r, accel_attr_find(n, "pads") ? "pads" : "paddings", want,
                                      (size_t)pads.n);
    return accel_resize_ints(r, 1, want, pads.n, ACCEL_SIZE_VARIES);
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

/* Each axis is cut or padded alike on both sides; what is over goes to the end. */
static enum accel_err crop_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    size_t width = accel_array_width(y);
    memset(y->data, 0, (size_t)y->n * width);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i, from = 0, step = 1;
        bool in = true;
        for (int d = y->rank - 1; d >= 0; d--) {
            int64_t more = y->dim[d] - x->dim[d], at = rest % y->dim[d];
            at += more > 0 ? -(more / 2) : -more / 2;
            in = in && at >= 0 && at < x->dim[d];
            from += at * step;
            step *= x->dim[d];
            rest /= y->dim[d];
        }
        if (in)
            accel_array_copy(y, i, x, from, 1);
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
    .links = pad_links,
    .zero = pad_zero,
    .resize = pad_resize,
    .sizes = 1u << 1,
    .forward = pad_forward,
    .scratch = pad_scratch,
    .data_slots = 1 | 4,
    .examples =
        (const char *const[]){"2x3 [0,1,2,0]", "2x4x3 [0,2,0,0,1,0]", "3x4 [2,0,1,0] f[1.5]", NULL},
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
    .forward = crop_forward,
    .examples = (const char *const[]){"5x8 [7,3]", "2x5x4 [3,6] | axes=1,2", NULL},
};
