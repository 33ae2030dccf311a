/* What an edit did to the main graph (graph/edit.h), as changes of the tree: changed nodes are
 * packed anew, with the attributes that are parts left where they are; new ones stand in front of
 * the node that follows them; new initializers come behind the others; what was dropped is taken
 * out; a value whose declaration became wrong is declared anew. */
#include "onnx/write_int.h"

#include "base/alloc.h"

#define INITIALIZERS_ALONE 4 /* IR version from which initializers need not be graph inputs too */

static enum accel_err renew_node(struct accel_write *w, const struct accel_node *n)
{
    struct accel_part *p = n->origin;
    struct accel_str s = {0};
    uint8_t *bytes;
    size_t size;
    ACCEL_TRY(accel_part_read(&bytes, &size, w->x, p, true));
    accel_put_node(&s, n, bytes, size);
    accel_free(bytes);
    p->keeps_children = true;
    return accel_part_set(w, p, &s);
}

/* A new node's part, and the old node in front of which it belongs (NULL: behind all). */
struct new_part {
    struct accel_part *part, *next;
};

/* Puts new parts, which stand behind `tail`, in their places: one walk over the parts of `graph`.
 * The list is in reverse order, as it was made. */
static void place(struct accel_part *graph, struct accel_part *tail, const struct new_part *list,
                  size_t n)
{
    struct accel_part **link = &graph->child;
    if (tail)
        tail->next = NULL;
    else
        graph->child = NULL;
    for (; *link; link = &(*link)->next)
        for (; n && list[n - 1].next == *link; n--, link = &(*link)->next) {
            struct accel_part *p = list[n - 1].part;
            p->start = p->body = p->end = (*link)->start;
            p->next = *link;
            *link = p;
        }
    graph->last = tail;
    for (; n; n--) {
        struct accel_part *p = list[n - 1].part;
        p->next = NULL;
        *link = graph->last = p;
        link = &p->next;
    }
}

static enum accel_err plan_nodes(struct accel_write *w, struct accel_graph *g)
{
    struct accel_part *graph = g->origin, *next = NULL, *tail = graph->last;
    struct new_part *list = accel_calloc(g->n_node, sizeof *list);
    size_t n_new = 0;
    enum accel_err err = list ? ACCEL_OK : accel_fail_nomem();
    for (size_t i = g->n_node; !err && i-- > 0;) { /* from behind, so that the next one is known */
        struct accel_node *n = g->node[i];
        if (n->origin) {
            next = n->origin;
            if (n->changed)
                err = renew_node(w, n);
            continue;
        }
        list[n_new].next = next;
        err = accel_build_node(&list[n_new++].part, w, graph, n);
    }
    if (!err && n_new)
        place(graph, tail, list, n_new);
    accel_free(list);
    return err;
}

static enum accel_err renew_value(struct accel_write *w, const struct accel_value *v)
{
    enum { VALUE_NAME = 1, VALUE_TYPE = 2 };
    struct accel_str s = {0};
    accel_put_value(&s, v);
    enum accel_err err = accel_part_others(&s, w, v->origin, 1u << VALUE_NAME | 1u << VALUE_TYPE);
    if (!err)
        err = accel_part_set(w, v->origin, &s);
    accel_str_clear(&s);
    return err;
}

static enum accel_err plan_values(struct accel_write *w, struct accel_graph *g)
{
    for (size_t i = 0; i < g->n_value; i++) {
        struct accel_value *v = g->value[i];
        struct accel_part *p = v->origin;
        if (p && v->dropped)
            p->removed = true;
        else if (p && v->changed)
            ACCEL_TRY(renew_value(w, v));
        if (!v->tensor || v->tensor->origin || v->producer || !v->tensor->changed)
            continue;
        ACCEL_TRY(accel_build_tensor(w, g->origin, GRAPH_INITIALIZER, v->tensor, v->name));
        if (w->m->ir_version < INITIALIZERS_ALONE)
            ACCEL_TRY(accel_build_value(w, g->origin, GRAPH_INPUT, v));
    }
    return ACCEL_OK;
}

/* Nodes that were dropped are in no list any more: their parts know them. */
static void remove_dropped(struct accel_write *w)
{
    for (struct accel_part *p = w->x->root; p; p = accel_part_next(p))
        if (p->kind == ACCEL_PART_NODE && p->node && p->node->dropped)
            p->removed = true;
}

enum accel_err accel_graph_plan(struct accel_write *w)
{
    remove_dropped(w);
    ACCEL_TRY(plan_values(w, w->m->graph));
    return plan_nodes(w, w->m->graph);
}
