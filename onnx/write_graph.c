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

/* Moves the last part of `graph` in front of `next` (NULL: behind all nodes, where it is). */
static void move_before(struct accel_part *graph, struct accel_part *next)
{
    struct accel_part *p = graph->last, **link = &graph->child, *before = graph->child;
    if (!next)
        return;
    while (before->next != p)
        before = before->next;
    before->next = NULL;
    graph->last = before;
    while (*link != next)
        link = &(*link)->next;
    p->next = next;
    p->start = p->body = p->end = next->start;
    *link = p;
}

static enum accel_err plan_nodes(struct accel_write *w, struct accel_graph *g)
{
    struct accel_part *next = NULL, *p;
    for (size_t i = g->n_node; i-- > 0;) { /* from behind, so that the next one is known */
        struct accel_node *n = g->node[i];
        if (n->origin) {
            next = n->origin;
            if (n->changed)
                ACCEL_TRY(renew_node(w, n));
            continue;
        }
        ACCEL_TRY(accel_build_node(&p, w, g->origin, n));
        move_before(g->origin, next);
        next = p;
    }
    return ACCEL_OK;
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
