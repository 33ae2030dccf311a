/* One node: its names resolve to values that are known by now, which proves the order. Its outputs
 * become values only after its subgraphs are read, so that no body can read what its own node
 * produces. */
#include "onnx/read_int.h"

#include "base/alloc.h"
#include "graph/op.h"
#include "ops/ops.h"

#include <limits.h>
#include <string.h>

/* Among the nodes from `p` on, the one that produces `name`: says why it cannot be read. */
static enum accel_err unresolved(struct accel_read *r, const struct accel_part *p, const char *name)
{
    const char *copy;
    ACCEL_TRY(accel_read_string(&copy, r, name));
    for (const struct accel_part *c = p; c; c = c->next) {
        Onnx__Node *msg;
        if (c->kind != ACCEL_PART_NODE)
            continue;
        ACCEL_TRY(accel_read_message(&msg, r, c, &onnx__node__descriptor));
        for (size_t i = 0; i < msg->n_output; i++) {
            if (strcmp(msg->output[i], copy) != 0)
                continue;
            if (c == p)
                return accel_fail(ACCEL_EMODEL, "reads its own output '%.200s'", copy);
            return accel_fail(ACCEL_EMODEL,
                              "input '%.200s' comes from node '%.200s' further down: a cycle, or "
                              "nodes not in order",
                              copy, msg->name ? msg->name : "");
        }
    }
    return accel_fail(ACCEL_EMODEL, "input '%.200s' is produced by no node", copy);
}

static enum accel_err find_inputs(struct accel_value **in, const struct accel_graph *g,
                                  struct accel_read *r, const Onnx__Node *msg,
                                  const struct accel_part *p)
{
    for (size_t i = 0; i < msg->n_input; i++) {
        if (!*msg->input[i])
            continue;
        in[i] = accel_value_find(g, msg->input[i]);
        if (!in[i])
            return unresolved(r, p, msg->input[i]);
    }
    return ACCEL_OK;
}

static enum accel_err add_output(struct accel_node *n, const char *name, int slot)
{
    struct accel_graph *g = n->graph;
    struct accel_value *v = accel_map_find(&g->by_name, name);
    if (v && v->producer)
        return accel_fail(ACCEL_EMODEL, "output '%.200s' is already produced by node '%.200s'",
                          name, *v->producer->name ? v->producer->name : v->producer->op_type);
    if (v)
        return accel_fail(ACCEL_EMODEL, "output '%.200s' is already an input or initializer", name);
    ACCEL_TRY(accel_value_new(&v, g, name));
    v->producer = n;
    v->producer_slot = slot;
    n->out[slot] = v;
    return ACCEL_OK;
}

static int trimmed(struct accel_value *const *v, int n)
{
    while (n && !v[n - 1])
        n--;
    return n;
}

static enum accel_err check_count(const char *what, struct accel_value *const *v, int n, int min,
                                  int max)
{
    int given = trimmed(v, n);
    if (given >= min && given <= max)
        return ACCEL_OK;
    if (max == INT_MAX)
        return accel_fail(ACCEL_EMODEL, "has %d %ss, must have at least %d", given, what, min);
    if (min == max)
        return accel_fail(ACCEL_EMODEL, "has %d %ss, must have %d", given, what, min);
    return accel_fail(ACCEL_EMODEL, "has %d %ss, must have %d to %d", given, what, min, max);
}

/* Operators that may leave out an input in front of required ones: those with a body (Loop's count
 * and condition, Scan's lengths in opset 8), and those of other domains (DynamicQuantizeLSTM's bias
 * before its scales). */
static bool has_holes(const struct accel_op *op)
{
    if (*op->domain)
        return true;
    for (const struct accel_attr_rule *k = op->attrs; k && k->name; k++)
        if (k->kind == ACCEL_ATTR_GRAPH)
            return true;
    return false;
}

static bool has_reference(const struct accel_node *n)
{
    for (size_t i = 0; i < n->n_attr; i++)
        if (n->attr[i].ref)
            return true;
    return false;
}

/* Against what the operator table knows, and parses. Inputs of standard operators below min_in are
 * there: no infer and no kernel asks for them again. */
static enum accel_err check_known(struct accel_node *n)
{
    const struct accel_op *op = n->op;
    ACCEL_TRY(check_count("input", n->in, n->n_in, op->min_in, op->max_in));
    for (int i = 0; i < op->min_in && !has_holes(op); i++)
        if (!n->in[i])
            return accel_fail(ACCEL_EMODEL, "input %d is left out, it is required", i);
    ACCEL_TRY(check_count("output", n->out, n->n_out, op->min_out, op->max_out));
    ACCEL_TRY(accel_read_check_attrs(n));
    if (has_reference(n)) { /* what it does is known only where the function is called */
        n->deferred = op;
        n->op = NULL;
        return ACCEL_OK;
    }
    int opset = accel_graph_opset(n->graph, n->domain);
    return op->parse ? op->parse(n, opset ? opset : 1) : ACCEL_OK;
}

static bool is_default(const char *domain)
{
    return !*domain || strcmp(domain, "ai.onnx") == 0;
}

static enum accel_err find_op(struct accel_node *n, struct accel_read *r, const char *overload)
{
    struct accel_function *f;
    ACCEL_TRY(accel_read_find_function(&f, r, n->domain, n->op_type, overload));
    n->function = f;
    if (f)
        return ACCEL_OK;
    if (is_default(n->domain) && n->graph->opset < 1)
        return accel_fail(ACCEL_EMODEL, "no opset is imported for the domain of ONNX's operators");
    n->op = accel_op_find(n->op_type, n->domain);
    if (n->op && is_default(n->domain) && n->op->since > n->graph->opset)
        n->op = NULL; /* an operator of this name from before */
    return ACCEL_OK;
}

static enum accel_err add_constant(struct accel_node *n, struct accel_read *r, struct accel_part *p)
{
    struct accel_tensor *t;
    if (strcmp(n->op_type, "Constant") != 0 || !is_default(n->domain) || n->function ||
        n->n_out != 1 || !n->out[0])
        return ACCEL_OK;
    ACCEL_TRY(accel_read_constant(&t, r, n, p));
    if (!t)
        return ACCEL_OK;
    struct accel_value *v = n->out[0];
    t->name = v->name;
    v->tensor = t;
    return accel_model_add_tensor(r->m, t);
}

/* The rest of a node whose message is unpacked: attributes, outputs, checks. */
static enum accel_err fill_node(struct accel_node *n, struct accel_read *r, const Onnx__Node *msg,
                                struct accel_part *p)
{
    const char **name = ACCEL_NEW(&r->m->arena, const char *, msg->n_output);
    n->out = ACCEL_NEW(&r->m->arena, struct accel_value *, msg->n_output);
    if (!name || !n->out)
        return accel_fail_nomem();
    int n_out = (int)msg->n_output;
    for (int i = 0; i < n_out; i++)
        ACCEL_TRY(accel_read_string(&name[i], r, msg->output[i]));
    ACCEL_TRY(find_op(n, r, msg->overload ? msg->overload : ""));
    ACCEL_TRY(accel_read_attrs(n, r, msg, p)); /* msg is gone behind this */
    n->n_out = n_out;
    for (int i = 0; i < n_out; i++)
        if (*name[i])
            ACCEL_TRY(add_output(n, name[i], i));
    ACCEL_TRY(add_constant(n, r, p));
    return n->op ? check_known(n) : ACCEL_OK;
}

static enum accel_err read_node(struct accel_node **out, struct accel_graph *g,
                                struct accel_read *r, const Onnx__Node *msg, struct accel_part *p)
{
    if (!msg->op_type || !*msg->op_type)
        return accel_fail(ACCEL_EMODEL, "it has no op_type");
    if (msg->n_input > INT_MAX || msg->n_output > INT_MAX)
        return accel_fail(ACCEL_EMODEL, "it has too many inputs or outputs");
    struct accel_value **in = accel_calloc(msg->n_input, sizeof(struct accel_value *));
    if (!in)
        return accel_fail_nomem();
    enum accel_err err = find_inputs(in, g, r, msg, p);
    if (!err)
        err = accel_node_new(out, g, NULL, msg->op_type, msg->domain ? msg->domain : "",
                             msg->name ? msg->name : "", in, (int)msg->n_input, NULL, 0);
    accel_free(in);
    if (err)
        return err;
    (*out)->origin = p;
    p->node = *out;
    return fill_node(*out, r, msg, p);
}

/* Names the node in the error: by its name, or OP_INDEX as it will be called. `n` may be NULL. */
static enum accel_err fail_in_node(enum accel_err err, const struct accel_graph *g,
                                   const struct accel_node *n, const Onnx__Node *msg)
{
    const char *name = n ? n->name : msg->name ? msg->name : "";
    const char *op_type = n ? n->op_type : msg->op_type ? msg->op_type : "";
    if (*name)
        return accel_fail_in(err, "node '%.200s' (%.100s)", name, op_type);
    size_t index = 0, before = n ? (size_t)n->index : g->n_node;
    for (size_t i = 0; i < before; i++)
        index += strcmp(g->node[i]->op_type, op_type) == 0;
    return accel_fail_in(err, "node '%.100s_%zu' (%.100s)", op_type, index, op_type);
}

enum accel_err accel_read_node(struct accel_graph *g, struct accel_read *r, struct accel_part *p)
{
    Onnx__Node *msg;
    struct accel_node *n = NULL;
    ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__node__descriptor));
    enum accel_err err = read_node(&n, g, r, msg, p);
    if (!err || err == ACCEL_ENOMEM)
        return err;
    if (!n) /* the message may have given way to others */
        ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__node__descriptor));
    return fail_in_node(err, g, n, msg);
}
