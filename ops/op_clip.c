/* Clip and PRelu: the output has the shape of the input, the other inputs are bounds or slopes. */
#include <float.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct clip_params {
    bool from_inputs; /* opset 11 and later */
    float min, max;
};

static enum accel_err clip_parse(struct accel_node *n, int opset)
{
    struct clip_params *p = ACCEL_NEW(&n->graph->model->arena, struct clip_params, 1);
    if (!p)
        return accel_fail_nomem();
    *p = (struct clip_params){opset >= 11, -FLT_MAX, FLT_MAX};
    if (!p->from_inputs) {
        ACCEL_TRY(accel_attr_float(&p->min, n, "min", -FLT_MAX));
        ACCEL_TRY(accel_attr_float(&p->max, n, "max", FLT_MAX));
    }
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err same_as_input(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

/* A bound that is there as an input of one element. */
static const struct accel_array *clip_bound(const struct accel_call *c, int slot)
{
    if (slot >= c->node->n_in || !c->x[slot].data || c->x[slot].n != 1)
        return NULL;
    return accel_op_is_int(&c->x[slot]) == accel_op_is_int(&c->x[0]) ? &c->x[slot] : NULL;
}

static enum accel_err clip_forward(const struct accel_call *c)
{
    const struct clip_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *lo = clip_bound(c, 1), *hi = clip_bound(c, 2);
    if (accel_op_is_int(x)) {
        for (int64_t i = 0; i < x->n; i++) {
            int64_t v = ((const int64_t *)x->data)[i];
            if (lo && v < *(const int64_t *)lo->data)
                v = *(const int64_t *)lo->data;
            if (hi && v > *(const int64_t *)hi->data)
                v = *(const int64_t *)hi->data;
            ((int64_t *)c->y[0].data)[i] = v;
        }
        return ACCEL_OK;
    }
    for (int64_t i = 0; i < x->n; i++) {
        real v = ((const real *)x->data)[i];
        real min = lo ? *(const real *)lo->data : (real)p->min;
        real max = hi ? *(const real *)hi->data : (real)p->max;
        bool below = (lo || !p->from_inputs) && v < min;
        v = below ? min : v;
        bool above = (hi || !p->from_inputs) && v > max;
        ((real *)c->y[0].data)[i] = above ? max : v;
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ PRelu */

/* Since opset 7 the slope is stretched to the input by NumPy's rule; before, a vector of slopes
 * belonged to the channels, axis 1. */
struct prelu_params {
    bool by_channel;
};

static enum accel_err prelu_parse(struct accel_node *n, int opset)
{
    struct prelu_params *p = ACCEL_NEW(&n->graph->model->arena, struct prelu_params, 1);
    if (!p)
        return accel_fail_nomem();
    p->by_channel = opset < 7;
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err prelu_infer(struct accel_node *n)
{
    const struct prelu_params *p = n->params;
    int rank = accel_operand_rank(n, 0), slopes = accel_operand_rank(n, 1);
    if (rank < 0 || slopes < 0)
        return same_as_input(n);
    if (slopes > rank)
        return accel_fail(ACCEL_ESHAPE, "slope of rank %d for an input of rank %d", slopes, rank);
    int at = p->by_channel && slopes == 1 && rank > 1 ? 1 : rank - slopes;
    for (int i = 0; i < slopes; i++) {
        struct accel_dim x = n->in[0]->shape.dim[at + i], s = n->in[1]->shape.dim[i];
        if (s.n != 1 && accel_dim_differs(x, s))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the input is %lld, of slope '%.200s' %lld",
                              at + i, (long long)x.n, n->in[1]->name, (long long)s.n);
    }
    return same_as_input(n);
}

static enum accel_err prelu_forward(const struct accel_call *c)
{
    const struct prelu_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *s = &c->x[1];
    if (accel_op_is_int(x) || accel_op_is_int(s))
        return accel_fail(ACCEL_ENOSUP, "integer PRelu");
    int at = p->by_channel && s->rank == 1 && x->rank > 1 ? 1 : x->rank - s->rank;
    for (int64_t i = 0; i < x->n; i++) {
        real v = ((const real *)x->data)[i];
        real slope = ((const real *)s->data)[accel_op_meet(s, x, at, i)];
        ((real *)c->y[0].data)[i] = v < 0 ? slope * v : v;
    }
    return ACCEL_OK;
}

/* Slopes of an old opset that belong to the channels are a wall. */
static void prelu_links(const struct accel_node *n, struct accel_links *l)
{
    const struct prelu_params *p = n->params;
    if (!p->by_channel)
        accel_link_broadcast(n, l);
}

static void prelu_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_absorb(n, z, 1u << 0);
}

static const struct accel_attr_rule clip_attrs[] = {{"min", ACCEL_ATTR_FLOAT, 0},
                                                    {"max", ACCEL_ATTR_FLOAT, 0},
                                                    {"consumed_inputs", ACCEL_ATTR_INTS, 0},
                                                    {0}};
static const struct accel_attr_rule prelu_attrs[] = {{"consumed_inputs", ACCEL_ATTR_INTS, 0}, {0}};
static const char *const clip_examples[] = {"2x3x4", "2x3x4 scalar scalar", NULL};
static const char *const prelu_examples[] = {"2x3x4 3x1", "2x3 3", NULL};

const struct accel_op accel_op_clip = {
    .name = "Clip",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_COMPARES,
    .attrs = clip_attrs,
    .parse = clip_parse,
    .infer = same_as_input,
    .links = accel_link_broadcast,
    .zero = accel_zero_broadcast,
    .forward = clip_forward,
    .keep = 1u << 1 | 1u << 2,
    .examples = clip_examples,
};

const struct accel_op accel_op_prelu = {
    .name = "PRelu",
    .domain = "",
    .since = 1,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_COMPARES,
    .attrs = prelu_attrs,
    .parse = prelu_parse,
    .infer = prelu_infer,
    .links = prelu_links,
    .zero = prelu_zero,
    .forward = prelu_forward,
    .examples = prelu_examples,
};
