/* One pass in the order of the nodes, which is topological. Everything that a pass finds lies in
 * the arena `inferred` of the symbols and is dropped by the next pass.
 *
 * A call of a local function infers the function's body with the call's operands; so the body's
 * values hold the shapes of the call that came last. Attributes that refer to the call's are put in
 * place and the node is parsed anew.
 *
 * Bodies are inferred again and again where loops and calls nest, which a file could make grow
 * exponentially. Visits of nodes are therefore counted; when the budget is used up, bodies are left
 * with unknown outputs. */
#include "graph/infer.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "graph/constprop.h"
#include "graph/op.h"

#define MAX_DEPTH 128

static struct accel_symbols *symbols_of(const struct accel_graph *g)
{
    return &g->model->symbols;
}

/* ------------------------------------------------------------------------------ starting anew */

static enum accel_err shape_copy(struct accel_shape *out, struct accel_symbols *s,
                                 const struct accel_shape *from)
{
    *out = (struct accel_shape){from->rank, NULL};
    if (from->rank <= 0)
        return ACCEL_OK;
    out->dim = ACCEL_NEW(&s->inferred, struct accel_dim, from->rank);
    if (!out->dim)
        return accel_fail_nomem();
    for (int i = 0; i < from->rank; i++)
        out->dim[i] = accel_dim_bound(from->dim[i], s);
    return ACCEL_OK;
}

/* Every unknown size becomes a symbol, so that later nodes see where it is the same. */
static enum accel_err give_symbols(struct accel_value *v, struct accel_symbols *s)
{
    for (int i = 0; i < v->shape.rank; i++)
        if (v->shape.dim[i].n < 0 && v->shape.dim[i].sym < 0)
            ACCEL_TRY(accel_dim_fresh(&v->shape.dim[i], s));
    return ACCEL_OK;
}

static void forget(struct accel_value *v)
{
    v->dtype = ACCEL_UNDEFINED;
    v->shape = (struct accel_shape){-1, NULL};
    v->known = NULL;
}

/* What is known of a value before any node is looked at. */
static enum accel_err reset_value(struct accel_value *v)
{
    struct accel_symbols *s = symbols_of(v->graph);
    forget(v);
    if (v->tensor) {
        const struct accel_tensor *t = v->tensor;
        v->dtype = t->dtype;
        v->shape.dim = ACCEL_NEW(&s->inferred, struct accel_dim, t->rank);
        if (!v->shape.dim)
            return accel_fail_nomem();
        v->shape.rank = t->rank;
        for (int i = 0; i < t->rank; i++)
            v->shape.dim[i] = accel_dim_of(t->dim[i]);
        return ACCEL_OK;
    }
    if (v->producer)
        return ACCEL_OK;
    v->dtype = v->declared_dtype;
    if (v->given) {
        v->shape = (struct accel_shape){v->given_rank,
                                        ACCEL_NEW(&s->inferred, struct accel_dim, v->given_rank)};
        if (!v->shape.dim)
            return accel_fail_nomem();
        for (int i = 0; i < v->given_rank; i++)
            v->shape.dim[i] = accel_dim_of(v->given[i]);
        return ACCEL_OK;
    }
    ACCEL_TRY(shape_copy(&v->shape, s, &v->declared));
    return give_symbols(v, s);
}

/* Resets a graph and its bodies, and counts their nodes. */
static enum accel_err reset_graph(struct accel_graph *g, int64_t *n_nodes)
{
    for (size_t i = 0; i < g->n_value; i++)
        ACCEL_TRY(reset_value(g->value[i]));
    for (size_t i = 0; i < g->n_node; i++) {
        const struct accel_node *n = g->node[i];
        ++*n_nodes;
        for (size_t a = 0; a < n->n_attr; a++)
            for (size_t k = 0; n->attr[a].graphs && k < n->attr[a].n; k++)
                ACCEL_TRY(reset_graph(n->attr[a].graphs[k], n_nodes));
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ one node */

static void warn_contradiction(const struct accel_node *n, const struct accel_value *v,
                               const struct accel_shape *found)
{
    char a[256], b[256];
    struct accel_model *m = n->graph->model;
    accel_warn(&m->log, "value '%.200s': the file says shape %s, inference finds %s", v->name,
               accel_shape_text(&v->declared, &m->symbols, a, sizeof a),
               accel_shape_text(found, &m->symbols, b, sizeof b));
}

/* Lets the file's declaration fill in what inference left open. */
static enum accel_err merge_declared(const struct accel_node *n, struct accel_value *v)
{
    struct accel_symbols *s = symbols_of(n->graph);
    if (v->dtype == ACCEL_UNDEFINED)
        v->dtype = v->declared_dtype;
    if (v->declared.rank < 0)
        return ACCEL_OK;
    if (v->shape.rank < 0)
        return shape_copy(&v->shape, s, &v->declared);
    bool fits = v->shape.rank == v->declared.rank;
    for (int i = 0; fits && i < v->shape.rank; i++)
        fits = !accel_dim_differs(v->shape.dim[i], v->declared.dim[i]);
    if (!fits) {
        warn_contradiction(n, v, &v->shape);
        return ACCEL_OK;
    }
    for (int i = 0; i < v->shape.rank; i++)
        if (v->shape.dim[i].n < 0 && v->shape.dim[i].sym < 0)
            v->shape.dim[i] = accel_dim_bound(v->declared.dim[i], s);
    return ACCEL_OK;
}

enum accel_err accel_infer_bind(struct accel_value *inner, struct accel_value *outer)
{
    if (inner->tensor)
        return ACCEL_OK;
    forget(inner);
    if (!outer)
        return ACCEL_OK;
    inner->dtype = outer->dtype;
    inner->is_tensor = outer->is_tensor;
    (void)accel_known_get(outer);
    inner->known = outer->known;
    return shape_copy(&inner->shape, symbols_of(inner->graph), &outer->shape);
}

/* The attribute of the function call whose body is being inferred, or NULL. */
static const struct accel_attr *attr_of_call(const struct accel_node *call, const char *ref)
{
    const struct accel_attr *a = call ? accel_attr_find(call, ref) : NULL;
    return a && !a->ref ? a : NULL;
}

static enum accel_err infer_graph(struct accel_graph *g, const struct accel_node *call);

/* A node whose attributes refer to the call's: parses it with these put in. *known false when the
 * call lacks one: the function may have a default that is not seen here. */
static enum accel_err parse_with_refs(struct accel_node *n, const struct accel_node *call,
                                      bool *known)
{
    struct accel_attr *own = n->attr;
    *known = false;
    n->op = NULL;
    struct accel_attr *full =
        ACCEL_NEW(&symbols_of(n->graph)->inferred, struct accel_attr, n->n_attr);
    if (!full)
        return accel_fail_nomem();
    for (size_t i = 0; i < n->n_attr; i++) {
        const struct accel_attr *given = own[i].ref ? attr_of_call(call, own[i].ref) : &own[i];
        if (!given)
            return ACCEL_OK;
        full[i] = *given;
        full[i].name = own[i].name;
    }
    *known = true;
    n->op = n->deferred;
    n->attr = full;
    enum accel_err err = n->op->parse ? n->op->parse(n, n->graph->opset) : ACCEL_OK;
    n->attr = own;
    return err;
}

enum accel_err accel_infer_enter(const struct accel_node *call)
{
    const struct accel_graph *body = call->function->body;
    for (size_t i = 0; i < body->n_node; i++) {
        bool known;
        if (body->node[i]->deferred)
            ACCEL_TRY(parse_with_refs(body->node[i], call, &known));
    }
    return ACCEL_OK;
}

/* A call: the body with the call's operands, and the results back. */
static enum accel_err infer_call(struct accel_node *n)
{
    struct accel_graph *body = n->function->body;
    for (size_t i = 0; i < body->n_input; i++)
        ACCEL_TRY(accel_infer_bind(body->input[i], i < (size_t)n->n_in ? n->in[i] : NULL));
    ACCEL_TRY(infer_graph(body, n));
    for (size_t i = 0; i < body->n_output && i < (size_t)n->n_out; i++)
        if (n->out[i])
            ACCEL_TRY(accel_infer_bind(n->out[i], body->output[i]));
    return ACCEL_OK;
}

/* A wall: nothing is known of its outputs. Its bodies still have shapes of their own. */
static enum accel_err infer_wall(const struct accel_node *n)
{
    for (size_t a = 0; a < n->n_attr; a++)
        for (size_t k = 0; n->attr[a].graphs && k < n->attr[a].n; k++)
            ACCEL_TRY(infer_graph(n->attr[a].graphs[k], NULL));
    return ACCEL_OK;
}

/* *known: params and shapes are those of this node, so that its kernel may run. */
static enum accel_err infer_kind(struct accel_node *n, const struct accel_node *call, bool *known)
{
    *known = false;
    if (n->function)
        return infer_call(n);
    *known = true;
    if (n->deferred)
        ACCEL_TRY(parse_with_refs(n, call, known));
    if (!*known)
        return ACCEL_OK;
    *known = !accel_op_is_wall(n->op);
    return *known ? n->op->infer(n) : infer_wall(n);
}

static enum accel_err infer_node(struct accel_node *n, const struct accel_node *call)
{
    bool known;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] && !n->out[i]->tensor)
            forget(n->out[i]);
    enum accel_err err = infer_kind(n, call, &known);
    if (symbols_of(n->graph)->failed)
        return symbols_of(n->graph)->failed;
    if (err)
        return accel_fail_in(err, "node '%.200s' (%.100s)", n->label ? n->label : n->name,
                             n->op_type);
    for (int i = 0; i < n->n_out; i++) {
        struct accel_value *v = n->out[i];
        if (!v || v->tensor)
            continue;
        ACCEL_TRY(merge_declared(n, v));
        ACCEL_TRY(give_symbols(v, symbols_of(n->graph)));
    }
    return known ? accel_known_propagate(n) : ACCEL_OK;
}

static enum accel_err infer_graph(struct accel_graph *g, const struct accel_node *call)
{
    struct accel_symbols *s = symbols_of(g);
    enum accel_err err = ACCEL_OK;
    size_t i = 0;
    s->depth++;
    for (; !err && i < g->n_node && s->budget > 0 && s->depth < MAX_DEPTH; i++) {
        s->budget--;
        err = infer_node(g->node[i], call);
    }
    s->depth--;
    for (size_t o = 0; i < g->n_node && o < g->n_output; o++)
        if (g->output[o]->graph == g && g->output[o]->producer)
            forget(g->output[o]);
    return err;
}

enum accel_err accel_graph_infer(struct accel_graph *g)
{
    return infer_graph(g, NULL);
}

enum accel_err accel_model_infer(struct accel_model *m)
{
    int64_t n_nodes = 0;
    ACCEL_TRY(accel_symbols_restart(&m->symbols));
    ACCEL_TRY(reset_graph(m->graph, &n_nodes));
    for (size_t i = 0; i < m->n_function; i++)
        ACCEL_TRY(reset_graph(m->function[i]->body, &n_nodes));
    m->symbols.budget = 4 * n_nodes + 100000;
    m->symbols.depth = 0;
    m->symbols.failed = ACCEL_OK;
    return infer_graph(m->graph, NULL);
}

/* ------------------------------------------------------------------------------ multiply-adds */

int64_t accel_graph_macs(const struct accel_graph *g)
{
    int64_t sum = 0;
    for (size_t i = 0; i < g->n_node; i++) {
        int64_t macs = accel_node_macs(g->node[i]);
        if (macs < 0 || __builtin_add_overflow(sum, macs, &sum))
            return -1;
    }
    return sum;
}

/* The values of a function's body may hold the shapes of another call: this one is inferred again
 * first. */
static int64_t call_macs(const struct accel_node *n)
{
    struct accel_graph *body = n->function->body;
    struct accel_symbols *s = symbols_of(n->graph);
    if (s->budget <= 0 || s->depth >= MAX_DEPTH)
        return -1;
    for (size_t i = 0; i < body->n_input; i++)
        if (accel_infer_bind(body->input[i], i < (size_t)n->n_in ? n->in[i] : NULL))
            return -1;
    if (infer_graph(body, n))
        return -1;
    s->depth++;
    int64_t macs = accel_graph_macs(body);
    s->depth--;
    return macs;
}

int64_t accel_node_macs(const struct accel_node *n)
{
    struct accel_cost cost = {0};
    if (n->function)
        return call_macs(n);
    if (!n->op || !n->op->cost)
        return 0;
    n->op->cost(n, &cost);
    return cost.macs;
}

/* ------------------------------------------------------------------------------ one sample */

/* The symbol of a graph input's first axis that is free; -1 when there is none. */
static int batch_symbol(const struct accel_model *m, const struct accel_value *v)
{
    if (v->tensor || v->declared.rank < 1 || v->declared.dim[0].n >= 0)
        return -1;
    int sym = v->declared.dim[0].sym;
    return sym >= 0 && (size_t)sym < m->symbols.n && m->symbols.at[sym].bound < 0 ? sym : -1;
}

/* Samples in one run, when the file fixes that: first axis of the first input with two axes. */
static int64_t fixed_batch(const struct accel_graph *g)
{
    for (size_t i = 0; i < g->n_input; i++)
        if (!g->input[i]->tensor && g->input[i]->shape.rank > 1)
            return g->input[i]->shape.dim[0].n;
    return -1;
}

/* Infers with the symbols bound to 1, counts, and frees them again. */
static enum accel_err count_bound(int64_t *out, struct accel_model *m, const int *sym, size_t n,
                                  void (*visit)(void *ctx, int64_t batch), void *ctx)
{
    for (size_t i = 0; i < n; i++)
        m->symbols.at[sym[i]].bound = 1;
    enum accel_err err = accel_model_infer(m);
    *out = err ? -1 : accel_graph_macs(m->graph);
    if (!err && visit)
        visit(ctx, 1);
    for (size_t i = 0; i < n; i++)
        m->symbols.at[sym[i]].bound = -1;
    if (err == ACCEL_ENOMEM || err == ACCEL_EIO)
        return err;
    return accel_model_infer(m);
}

enum accel_err accel_model_macs(int64_t *out, struct accel_model *m)
{
    return accel_model_macs_visit(out, m, NULL, NULL);
}

enum accel_err accel_model_macs_visit(int64_t *out, struct accel_model *m,
                                      void (*visit)(void *ctx, int64_t batch), void *ctx)
{
    size_t n = 0;
    *out = -1;
    int *sym = accel_calloc(m->graph->n_input, sizeof *sym);
    if (!sym)
        return accel_fail_nomem();
    for (size_t i = 0; i < m->graph->n_input; i++) {
        int s = batch_symbol(m, m->graph->input[i]);
        if (s >= 0)
            sym[n++] = s;
    }
    enum accel_err err = ACCEL_OK;
    if (n) {
        err = count_bound(out, m, sym, n, visit, ctx);
    } else {
        *out = accel_graph_macs(m->graph);
        int64_t batch = fixed_batch(m->graph);
        if (*out > 0 && batch > 1)
            *out /= batch;
        if (visit)
            visit(ctx, batch > 1 ? batch : 1);
    }
    accel_free(sym);
    return err;
}
