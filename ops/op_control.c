/* If, Loop, Scan: their bodies are graphs, inferred with what the node gives them.
 *
 * A value that a loop carries may change its shape from turn to turn. The body is inferred with the
 * shapes before the first turn; axes that come out different are then left open and the body is
 * inferred once more, so that its inner shapes hold in every turn. What a loop carries has no known
 * contents inside. A branch that is never taken is not looked at: its shapes may contradict. */
#include <limits.h>

#include "graph/infer.h"
#include "ops/op_util.h"
#include "ops/scan.h"

#define ACCEL_MAX_EMPTY_RANK 16

static struct accel_graph *body_of(const struct accel_node *n, const char *name)
{
    const struct accel_attr *a = accel_attr_find(n, name);
    return a && a->kind == ACCEL_ATTR_GRAPH && a->n == 1 && a->graphs ? a->graphs[0] : NULL;
}

static enum accel_err missing(const char *name)
{
    return accel_fail(ACCEL_EMODEL, "attribute '%s' is missing", name);
}

/* Sets output `slot` to what holds for both values. */
static enum accel_err merge(struct accel_node *n, int slot, const struct accel_value *a,
                            const struct accel_value *b)
{
    struct accel_value *y = n->out[slot];
    struct accel_shape out = {-1, NULL};
    if (a->shape.rank >= 0 && a->shape.rank == b->shape.rank) {
        ACCEL_TRY(accel_shape_copy(&out, n, &a->shape));
        for (int i = 0; i < out.rank; i++)
            if (!accel_dim_same(a->shape.dim[i], b->shape.dim[i]))
                out.dim[i] = accel_dim_unknown();
    }
    y->is_tensor = a->is_tensor && b->is_tensor;
    accel_result_set(n, slot, a->dtype == b->dtype ? a->dtype : ACCEL_UNDEFINED, out);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ If */

/* A branch whose shapes contradict cannot be the one that is taken: the other one then stands for
 * both. */
static enum accel_err infer_branches(struct accel_graph **yes, struct accel_graph **no)
{
    enum accel_err err = accel_graph_infer(*yes);
    if (*no == *yes || (err && err != ACCEL_ESHAPE))
        return err;
    enum accel_err other = accel_graph_infer(*no);
    if (other && (other != ACCEL_ESHAPE || err))
        return other;
    if (err)
        *yes = *no;
    else if (other)
        *no = *yes;
    return ACCEL_OK;
}

static enum accel_err if_infer(struct accel_node *n)
{
    struct accel_graph *yes = body_of(n, "then_branch"), *no = body_of(n, "else_branch");
    if (!yes || !no)
        return missing(yes ? "else_branch" : "then_branch");
    bool known;
    int64_t cond[ACCEL_N_PROBES];
    accel_scalar_get(&known, cond, n, 0);
    if (known && (cond[0] != 0) == (cond[1] != 0) && (cond[0] != 0) == (cond[2] != 0))
        *(cond[0] ? &no : &yes) = cond[0] ? yes : no;
    ACCEL_TRY(infer_branches(&yes, &no));
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] && (size_t)i < yes->n_output && (size_t)i < no->n_output)
            ACCEL_TRY(merge(n, i, yes->output[i], no->output[i]));
    return ACCEL_OK;
}

/* The dearer branch. */
static void if_cost(const struct accel_node *n, struct accel_cost *cost)
{
    const struct accel_graph *yes = body_of(n, "then_branch"), *no = body_of(n, "else_branch");
    int64_t a = yes ? accel_graph_macs(yes) : 0, b = no ? accel_graph_macs(no) : 0;
    cost->macs = a < 0 || b < 0 ? -1 : a > b ? a : b;
}

/* ------------------------------------------------------------------------------ loops */

/* Gives a body's input the shape of `outer` without its contents. */
static enum accel_err carry_in(struct accel_value *inner, struct accel_value *outer)
{
    ACCEL_TRY(accel_infer_bind(inner, outer));
    if (!inner->tensor)
        inner->known = NULL;
    return ACCEL_OK;
}

/* Opens the axes of `in` that `out` has otherwise; true when something changed. */
static bool widen(struct accel_value *in, const struct accel_value *out)
{
    if (in->tensor || in->shape.rank < 0)
        return false;
    if (out->shape.rank != in->shape.rank) {
        in->shape = (struct accel_shape){-1, NULL};
        return true;
    }
    bool changed = false;
    for (int i = 0; i < in->shape.rank; i++)
        if (!accel_dim_same(in->shape.dim[i], out->shape.dim[i])) {
            changed = changed || in->shape.dim[i].n >= 0 || in->shape.dim[i].sym >= 0;
            in->shape.dim[i] = accel_dim_unknown();
        }
    return changed;
}

/* Infers the body; `n_state` inputs from `first_in` on are carried to the outputs from `first_out`
 * on. */
static enum accel_err infer_turns(struct accel_graph *body, size_t first_in, size_t first_out,
                                  size_t n_state)
{
    struct accel_symbols *s = &body->model->symbols;
    ACCEL_TRY(accel_graph_infer(body));
    bool again = false;
    for (size_t i = 0; i < n_state; i++)
        if (widen(body->input[first_in + i], body->output[first_out + i]))
            again = true;
    for (size_t i = 0; again && i < n_state; i++) {
        struct accel_shape *sh = &body->input[first_in + i]->shape;
        for (int k = 0; k < sh->rank; k++)
            if (sh->dim[k].n < 0 && sh->dim[k].sym < 0)
                ACCEL_TRY(accel_dim_fresh(&sh->dim[k], s));
    }
    if (!again)
        return ACCEL_OK;
    ACCEL_TRY(accel_graph_infer(body));
    for (size_t i = 0; i < n_state; i++)
        (void)widen(body->input[first_in + i], body->output[first_out + i]);
    return ACCEL_OK;
}

/* A stack of what the body gives in each turn: the body's shape with one axis more. */
static enum accel_err stack_out(struct accel_node *n, int slot, const struct accel_value *each,
                                struct accel_dim turns, int64_t axis)
{
    struct accel_shape out = {-1, NULL};
    int at = 0;
    if (each->shape.rank >= 0) {
        ACCEL_TRY(accel_axis_of(&at, axis, each->shape.rank + 1));
        ACCEL_TRY(accel_shape_new(&out, n, each->shape.rank + 1));
        for (int i = 0; i < out.rank; i++)
            out.dim[i] = i == at ? turns : each->shape.dim[i - (i > at)];
    }
    accel_result_set(n, slot, each->dtype, out);
    return ACCEL_OK;
}

static enum accel_err loop_infer(struct accel_node *n)
{
    struct accel_graph *body = body_of(n, "body");
    if (!body)
        return missing("body");
    size_t n_state = n->n_in > 2 ? (size_t)n->n_in - 2 : 0;
    if (body->n_input != n_state + 2 || body->n_output < n_state + 1)
        return accel_fail(ACCEL_EMODEL,
                          "body has %zu inputs and %zu outputs for %zu carried values",
                          body->n_input, body->n_output, n_state);
    for (size_t i = 0; i < n_state; i++)
        ACCEL_TRY(carry_in(body->input[i + 2], n->in[i + 2]));
    ACCEL_TRY(infer_turns(body, 2, 1, n_state));
    for (int i = 0; i < n->n_out && (size_t)i + 1 < body->n_output; i++) {
        if (!n->out[i])
            continue;
        if ((size_t)i < n_state)
            ACCEL_TRY(merge(n, i, body->input[i + 2], body->output[i + 1]));
        else
            ACCEL_TRY(stack_out(n, i, body->output[i + 1], accel_dim_unknown(), 0));
    }
    return ACCEL_OK;
}

static void times(struct accel_cost *cost, const struct accel_graph *body, int64_t turns)
{
    int64_t macs = body ? accel_graph_macs(body) : 0;
    if (macs == 0)
        cost->macs = 0;
    else if (macs < 0 || turns < 0 || __builtin_mul_overflow(macs, turns, &cost->macs))
        cost->macs = -1;
}

static void loop_cost(const struct accel_node *n, struct accel_cost *cost)
{
    bool known;
    int64_t turns[ACCEL_N_PROBES];
    accel_scalar_get(&known, turns, n, 0);
    known = known && turns[0] == turns[1] && turns[0] == turns[2];
    times(cost, body_of(n, "body"), known ? turns[0] : -1);
}

/* ------------------------------------------------------------------------------ Scan */

static enum accel_err scan_parse(struct accel_node *n, int opset)
{
    struct accel_scan *p = accel_op_params(n, sizeof *p);
    if (!p)
        return ACCEL_ENOMEM;
    p->old = opset < 9;
    ACCEL_TRY(accel_attr_int(&p->n_scan, n, "num_scan_inputs", 0));
    ACCEL_TRY(accel_attr_ints(&p->in_axis, &p->n_in_axis, n, "scan_input_axes"));
    ACCEL_TRY(accel_attr_ints(&p->in_back, &p->n_in_back, n,
                              p->old ? "directions" : "scan_input_directions"));
    ACCEL_TRY(accel_attr_ints(&p->out_back, &p->n_out_back, n, "scan_output_directions"));
    return accel_attr_ints(&p->out_axis, &p->n_out_axis, n, "scan_output_axes");
}

/* Removes an axis of a body's input: in opset 8 the batch, then the sequence. */
static enum accel_err drop_axis(struct accel_value *inner, int64_t axis, struct accel_dim *size)
{
    int at;
    if (inner->tensor || inner->shape.rank < 0)
        return ACCEL_OK;
    ACCEL_TRY(accel_axis_of(&at, axis, inner->shape.rank));
    struct accel_dim d = inner->shape.dim[at];
    if (!accel_dim_join(size, *size, d))
        return accel_fail(ACCEL_ESHAPE, "sequences of %lld and %lld", (long long)size->n,
                          (long long)d.n);
    for (int i = at; i + 1 < inner->shape.rank; i++)
        inner->shape.dim[i] = inner->shape.dim[i + 1];
    inner->shape.rank--;
    return ACCEL_OK;
}

static enum accel_err scan_inputs(struct accel_node *n, struct accel_graph *body, size_t n_state,
                                  struct accel_dim *turns, struct accel_dim *batch)
{
    const struct accel_scan *p = n->params;
    for (size_t i = 0; i < body->n_input; i++) {
        struct accel_value *inner = body->input[i];
        ACCEL_TRY(carry_in(inner, n->in[i + (size_t)p->old]));
        if (p->old)
            ACCEL_TRY(drop_axis(inner, 0, batch));
        if (i >= n_state)
            ACCEL_TRY(
                drop_axis(inner, i - n_state < p->n_in_axis ? p->in_axis[i - n_state] : 0, turns));
    }
    return ACCEL_OK;
}

/* Opset 8: the batch comes back in front. */
static enum accel_err add_batch(struct accel_node *n, int slot, struct accel_dim batch)
{
    struct accel_value *y = n->out[slot];
    struct accel_value each = *y;
    return stack_out(n, slot, &each, batch, 0);
}

static enum accel_err scan_infer(struct accel_node *n)
{
    const struct accel_scan *p = n->params;
    struct accel_graph *body = body_of(n, "body");
    struct accel_dim turns = accel_dim_unknown(), batch = accel_dim_unknown();
    if (!body)
        return missing("body");
    int64_t n_in = n->n_in - p->old;
    if (p->n_scan < 1 || p->n_scan > n_in || body->n_input != (size_t)n_in ||
        body->n_output < (size_t)(n_in - p->n_scan))
        return accel_fail(ACCEL_EMODEL, "%lld scan inputs of %lld, body has %zu and %zu outputs",
                          (long long)p->n_scan, (long long)n_in, body->n_input, body->n_output);
    size_t n_state = (size_t)(n_in - p->n_scan);
    ACCEL_TRY(scan_inputs(n, body, n_state, &turns, &batch));
    ACCEL_TRY(infer_turns(body, 0, 0, n_state));
    for (int i = 0; i < n->n_out && (size_t)i < body->n_output; i++) {
        if (!n->out[i])
            continue;
        size_t k = (size_t)i - n_state;
        if ((size_t)i < n_state)
            ACCEL_TRY(merge(n, i, body->input[i], body->output[i]));
        else
            ACCEL_TRY(
                stack_out(n, i, body->output[i], turns, k < p->n_out_axis ? p->out_axis[k] : 0));
        if (p->old)
            ACCEL_TRY(add_batch(n, i, batch));
    }
    return ACCEL_OK;
}

static void scan_cost(const struct accel_node *n, struct accel_cost *cost)
{
    const struct accel_scan *p = n->params;
    int slot = n->n_in - (int)p->n_scan;
    struct accel_dim turns = accel_operand_dim(n, slot,
                                               p->old         ? 1
                                               : p->n_in_axis ? (int)p->in_axis[0]
                                                              : 0);
    times(cost, body_of(n, "body"), turns.n);
}

/* ------------------------------------------------------------------------------ kernels */

static bool truth(const struct accel_array *a)
{
    return a->data && a->n > 0 && *(const unsigned char *)a->data != 0;
}

static enum accel_err if_forward(const struct accel_call *c)
{
    const struct accel_array *out;
    struct accel_graph *g = body_of(c->node, truth(&c->x[0]) ? "then_branch" : "else_branch");
    ACCEL_TRY(c->bodies->run(c->bodies, g, NULL, 0, &out));
    for (int i = 0; i < c->node->n_out && (size_t)i < g->n_output; i++)
        ACCEL_TRY(c->bodies->set(c->bodies, i, &out[i]));
    return ACCEL_OK;
}

/* State of a loop: what the next turn gets. */
struct turns {
    const struct accel_array **in; /* [n_in] of the body */
    size_t n_in, first, n_state;   /* carried ones begin at `first` */
};

/* After a turn: carried values are kept for the next one, the rest is collected. */
static enum accel_err take(const struct accel_call *c, struct turns *t,
                           const struct accel_array *out, size_t n_out)
{
    for (size_t i = 0; i < n_out; i++)
        if (i < t->n_state)
            ACCEL_TRY(c->bodies->keep(c->bodies, i, &out[i], &t->in[t->first + i]));
        else
            ACCEL_TRY(c->bodies->append(c->bodies, (int)i, &out[i]));
    return ACCEL_OK;
}

/* Collected outputs of no turns are empty. */
static enum accel_err finish(const struct accel_call *c, const struct turns *t,
                             const struct accel_graph *body, size_t first_out, int64_t n_turns)
{
    for (size_t i = 0; i < t->n_state; i++)
        ACCEL_TRY(c->bodies->set(c->bodies, (int)i, t->in[t->first + i]));
    for (int i = (int)t->n_state; n_turns == 0 && i < c->node->n_out; i++) {
        const struct accel_value *v = body->output[first_out + (size_t)i];
        int64_t dim[ACCEL_MAX_EMPTY_RANK] = {0};
        int rank = v->shape.rank >= 0 ? v->shape.rank + 1 : 1;
        if (rank > ACCEL_MAX_EMPTY_RANK || v->dtype == ACCEL_UNDEFINED)
            return accel_fail(ACCEL_ENOSUP, "no turn was taken and output %d has no type", i);
        for (int d = 1; d < rank; d++)
            dim[d] = v->shape.dim[d - 1].n >= 0 ? v->shape.dim[d - 1].n : 0;
        ACCEL_TRY(c->bodies->set(c->bodies, i, &(struct accel_array){v->dtype, rank, dim, 0, ""}));
    }
    return ACCEL_OK;
}

static enum accel_err loop_turns(const struct accel_call *c, struct turns *t,
                                 struct accel_graph *body)
{
    const struct accel_array *limit = &c->x[0], *cond = &c->x[1], *out;
    int64_t most = limit->data && limit->n ? *(const int64_t *)limit->data : INT64_MAX, i = 0;
    unsigned char go = !cond->data || truth(cond);
    for (; go && i < most; i++) {
        t->in[0] = &(struct accel_array){ACCEL_I64, 0, NULL, 1, &i};
        t->in[1] = &(struct accel_array){ACCEL_BOOL, 0, NULL, 1, &go};
        ACCEL_TRY(c->bodies->turn(c->bodies));
        ACCEL_TRY(c->bodies->run(c->bodies, body, t->in, t->n_in, &out));
        go = truth(&out[0]);
        ACCEL_TRY(take(c, t, out + 1, body->n_output - 1));
    }
    return finish(c, t, body, 1, i);
}

static size_t turns_scratch(const struct accel_call *c)
{
    return ((size_t)c->node->n_in + 2) * sizeof(struct accel_array *);
}

static enum accel_err loop_forward(const struct accel_call *c)
{
    size_t n_state = c->node->n_in > 2 ? (size_t)c->node->n_in - 2 : 0;
    struct turns t = {c->scratch, n_state + 2, 2, n_state};
    for (size_t i = 0; i < n_state; i++)
        t.in[i + 2] = &c->x[i + 2];
    return loop_turns(c, &t, body_of(c->node, "body"));
}

/* ------------------------------------------------------------------------------ rows */

static const struct accel_attr_rule if_attrs[] = {{"then_branch", ACCEL_ATTR_GRAPH, ACCEL_REQUIRED},
                                                  {"else_branch", ACCEL_ATTR_GRAPH, ACCEL_REQUIRED},
                                                  {0}};
static const struct accel_attr_rule loop_attrs[] = {{"body", ACCEL_ATTR_GRAPH, ACCEL_REQUIRED},
                                                    {0}};
static const struct accel_attr_rule scan_attrs[] = {
    {"body", ACCEL_ATTR_GRAPH, ACCEL_REQUIRED},
    {"num_scan_inputs", ACCEL_ATTR_INT, ACCEL_REQUIRED},
    {"directions", ACCEL_ATTR_INTS, 0},
    {"scan_input_axes", ACCEL_ATTR_INTS, 0},
    {"scan_input_directions", ACCEL_ATTR_INTS, 0},
    {"scan_output_axes", ACCEL_ATTR_INTS, 0},
    {"scan_output_directions", ACCEL_ATTR_INTS, 0},
    {0}};

#define ROW(op_name, first, n_min, n_max, o_min, rules, prs, inf, cst, fwd, room)                  \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_min), .max_in = (n_max),   \
        .min_out = (o_min), .max_out = INT_MAX, .attrs = (rules), .parse = (prs), .infer = (inf),  \
        .flags = ACCEL_OP_BODIES, .scratch = (room), .cost = (cst), .forward = (fwd),              \
    }

const struct accel_op accel_op_if =
    ROW("If", 1, 1, 1, 1, if_attrs, NULL, if_infer, if_cost, if_forward, turns_scratch);
const struct accel_op accel_op_loop = ROW("Loop", 1, 2, INT_MAX, 1, loop_attrs, NULL, loop_infer,
                                          loop_cost, loop_forward, turns_scratch);
const struct accel_op accel_op_scan =
    ROW("Scan", 8, 1, INT_MAX, 1, scan_attrs, scan_parse, scan_infer, scan_cost, accel_scan_forward,
        accel_scan_scratch);
