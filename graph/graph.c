/* Everything lives in the model's arena but the lists that grow while a file is read (values, uses,
 * tensors): these are doubled on the heap and freed with the model. Graphs are found for that
 * through the values and the model's own list. */
#include "graph/graph.h"

#include <string.h>

#include "base/alloc.h"

enum accel_err accel_graph_new(struct accel_graph **out, struct accel_model *m,
                               struct accel_graph *parent)
{
    struct accel_graph *g = ACCEL_NEW(&m->arena, struct accel_graph, 1);
    if (!g || !ACCEL_GROW(m->all_graph, m->all_graph_cap, m->n_all_graph + 1))
        return accel_fail_nomem();
    g->name = "";
    g->parent_attr = "";
    g->model = m;
    g->parent = parent;
    g->opset = parent ? parent->opset : 0;
    m->all_graph[m->n_all_graph++] = g;
    *out = g;
    return ACCEL_OK;
}

enum accel_err accel_model_new(struct accel_model **out, int opset)
{
    struct accel_model *m = accel_calloc(1, sizeof *m);
    if (!m)
        return accel_fail_nomem();
    m->path = m->producer = "";
    enum accel_err err = accel_graph_new(&m->graph, m, NULL);
    if (!err) {
        m->opset = ACCEL_NEW(&m->arena, struct accel_opset, 1);
        err = m->opset ? ACCEL_OK : accel_fail_nomem();
    }
    if (err) {
        accel_model_free(m);
        return err;
    }
    m->opset[0] = (struct accel_opset){"", opset};
    m->n_opset = 1;
    m->graph->opset = opset;
    *out = m;
    return ACCEL_OK;
}

void accel_model_free(struct accel_model *m)
{
    if (!m)
        return;
    if (m->free_origin)
        m->free_origin(m->origin);
    for (size_t i = 0; i < m->n_tensor; i++)
        accel_tensor_set_edit(m->tensor[i], NULL);
    for (size_t i = 0; i < m->n_all_graph; i++) {
        struct accel_graph *g = m->all_graph[i];
        for (size_t k = 0; k < g->n_value; k++)
            accel_free(g->value[k]->use);
        accel_free(g->value);
        accel_free(g->node);
        accel_map_clear(&g->by_name);
    }
    accel_free(m->all_graph);
    accel_free(m->tensor);
    accel_symbols_clear(&m->symbols);
    accel_log_clear(&m->log);
    accel_arena_clear(&m->arena);
    accel_free(m);
}

enum accel_err accel_value_new(struct accel_value **out, struct accel_graph *g, const char *name)
{
    if (accel_map_find(&g->by_name, name))
        return accel_fail(ACCEL_EMODEL, "value '%s' is defined twice", name);
    struct accel_arena *a = &g->model->arena;
    struct accel_value *v = ACCEL_NEW(a, struct accel_value, 1);
    char *copy = accel_arena_strndup(a, name, strlen(name));
    if (!v || !copy || !ACCEL_GROW(g->value, g->value_cap, g->n_value + 1) ||
        !accel_map_put(&g->by_name, copy, v))
        return accel_fail_nomem();
    v->name = copy;
    v->graph = g;
    v->index = g->n_value;
    v->is_tensor = true;
    v->shape.rank = v->declared.rank = -1;
    g->value[g->n_value++] = v;
    *out = v;
    return ACCEL_OK;
}

struct accel_value *accel_value_find(const struct accel_graph *g, const char *name)
{
    struct accel_value *v = NULL;
    for (; g && !v; g = g->parent)
        v = accel_map_find(&g->by_name, name);
    return v;
}

enum accel_err accel_value_add_use(struct accel_value *v, struct accel_node *node, int slot)
{
    if (!v->use_cap) { /* most values are read once */
        v->use = accel_calloc(1, sizeof *v->use);
        v->use_cap = v->use ? 1 : 0;
    }
    if (!v->use_cap || !ACCEL_GROW(v->use, v->use_cap, v->n_use + 1))
        return accel_fail_nomem();
    v->use[v->n_use++] = (struct accel_use){node, slot};
    return ACCEL_OK;
}

static struct accel_value **copy_values(struct accel_arena *a, struct accel_value *const *v, int n)
{
    struct accel_value **copy = ACCEL_NEW(a, struct accel_value *, n);
    if (copy && n)
        memcpy(copy, v, (size_t)n * sizeof(*copy));
    return copy;
}

enum accel_err accel_node_new(struct accel_node **out, struct accel_graph *g,
                              const struct accel_op *op, const char *op_type, const char *domain,
                              const char *name, struct accel_value *const *in, int n_in,
                              struct accel_value *const *out_values, int n_out)
{
    struct accel_arena *a = &g->model->arena;
    struct accel_node *n = ACCEL_NEW(a, struct accel_node, 1);
    if (!n || !ACCEL_GROW(g->node, g->node_cap, g->n_node + 1))
        return accel_fail_nomem();
    n->op = op;
    n->op_type = accel_arena_strndup(a, op_type, strlen(op_type));
    n->domain = accel_arena_strndup(a, domain, strlen(domain));
    n->name = accel_arena_strndup(a, name, strlen(name));
    n->in = copy_values(a, in, n_in);
    n->out = copy_values(a, out_values, n_out);
    if (!n->op_type || !n->domain || !n->name || !n->in || !n->out)
        return accel_fail_nomem();
    n->label = n->name;
    n->module = "";
    n->graph = g;
    n->index = (int)g->n_node;
    n->n_in = n_in;
    n->n_out = n_out;
    for (int i = 0; i < n_in; i++)
        if (in[i])
            ACCEL_TRY(accel_value_add_use(in[i], n, i));
    for (int i = 0; i < n_out; i++)
        if (out_values[i]) {
            out_values[i]->producer = n;
            out_values[i]->producer_slot = i;
        }
    g->node[g->n_node++] = n;
    *out = n;
    return ACCEL_OK;
}

enum accel_err accel_model_add_tensor(struct accel_model *m, struct accel_tensor *t)
{
    if (!ACCEL_GROW(m->tensor, m->tensor_cap, m->n_tensor + 1))
        return accel_fail_nomem();
    m->tensor[m->n_tensor++] = t;
    return ACCEL_OK;
}

int accel_graph_opset(const struct accel_graph *g, const char *domain)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    const struct accel_opset *set = g->model->opset;
    size_t n = g->model->n_opset;
    const struct accel_graph *top = g;
    while (top->parent)
        top = top->parent;
    if (top->function) {
        set = top->function->opset;
        n = top->function->n_opset;
    }
    for (size_t i = 0; i < n; i++)
        if (strcmp(strcmp(set[i].domain, "ai.onnx") == 0 ? "" : set[i].domain, domain) == 0)
            return (int)set[i].version;
    return 0;
}
