/* What people call a node: its name; without one OP_INDEX, the index counting the nodes of that
 * operator in the graph; inside a body OUTERLABEL/BODY/ in front. Outer labels longer than a line
 * are not repeated for every node inside: there the node's OP_INDEX stands for them, or a file of
 * one megabyte could ask for labels of many gigabytes.
 *
 * The module is what exporters leave of the source in a name: /layer3/layer3.0/conv1/Conv is the
 * operator Conv of module layer3.0.conv1. */
#include "onnx/read_int.h"

#include "base/alloc.h"

#include <stdio.h>
#include <string.h>

#define PREFIX_MAX 512

/* Nodes of one operator in a graph. */
struct kind {
    size_t n;    /* seen so far */
    size_t next; /* where to look for a free index when the right one is taken */
};

struct labels {
    struct accel_map taken, kind;
    struct accel_arena arena; /* kinds */
    struct accel_arena *to;
};

static struct kind *kind_of(struct labels *l, const char *op_type)
{
    struct kind *k = accel_map_find(&l->kind, op_type);
    if (k)
        return k;
    k = ACCEL_NEW(&l->arena, struct kind, 1);
    return k && accel_map_put(&l->kind, op_type, k) ? k : NULL;
}

/* OP_INDEX, or the next index whose label no node has. */
static const char *free_label(struct labels *l, const struct accel_node *n, struct kind *k,
                              size_t index)
{
    size_t size = strlen(n->op_type) + 24;
    char *label = accel_arena_new(l->to, size, 1);
    if (!label)
        return NULL;
    snprintf(label, size, "%s_%zu", n->op_type, index);
    if (accel_map_find(&l->taken, label)) {
        if (k->next < index)
            k->next = index;
        do
            snprintf(label, size, "%s_%zu", n->op_type, ++k->next);
        while (accel_map_find(&l->taken, label));
    }
    return accel_map_put(&l->taken, label, (void *)n) ? label : NULL;
}

static enum accel_err short_labels(struct labels *l, struct accel_graph *g)
{
    for (size_t i = 0; i < g->n_node; i++)
        if (*g->node[i]->name && !accel_map_put(&l->taken, g->node[i]->name, g->node[i]))
            return accel_fail_nomem();
    for (size_t i = 0; i < g->n_node; i++) {
        struct accel_node *n = g->node[i];
        struct kind *k = kind_of(l, n->op_type);
        if (!k)
            return accel_fail_nomem();
        size_t index = k->n++;
        n->label = *n->name ? n->name : free_label(l, n, k, index);
        if (!n->label)
            return accel_fail_nomem();
    }
    return ACCEL_OK;
}

/* "OUTERLABEL/BODY/" or "FUNCTION/"; "" for the main graph. */
static enum accel_err prefix_of(const char **out, const struct accel_graph *g,
                                struct accel_arena *a)
{
    const struct accel_node *n = g->parent_node;
    char buf[2 * PREFIX_MAX + 64];
    buf[0] = '\0';
    if (g->function)
        snprintf(buf, sizeof buf, "%.*s/", PREFIX_MAX, g->function->name);
    else if (n && strlen(n->label) <= PREFIX_MAX)
        snprintf(buf, sizeof buf, "%s/%.64s/", n->label, g->parent_attr);
    else if (n)
        snprintf(buf, sizeof buf, "%.64s@%d/%.64s/", n->op_type, n->index, g->parent_attr);
    *out = accel_arena_strndup(a, buf, strlen(buf));
    return *out ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err long_labels(struct labels *l, struct accel_graph *g)
{
    const char *prefix;
    ACCEL_TRY(prefix_of(&prefix, g, &l->arena));
    size_t n_prefix = strlen(prefix);
    for (size_t i = 0; n_prefix && i < g->n_node; i++) {
        size_t size = n_prefix + strlen(g->node[i]->label) + 1;
        char *label = accel_arena_new(l->to, size, 1);
        if (!label)
            return accel_fail_nomem();
        memcpy(label, prefix, n_prefix);
        memcpy(label + n_prefix, g->node[i]->label, size - n_prefix);
        g->node[i]->label = label;
    }
    return ACCEL_OK;
}

/* Components are joined by dots; one that begins with the component before it and a dot stands for
 * both. The last one is the operator. */
static enum accel_err module_of(const char **out, struct accel_arena *a, const char *name)
{
    *out = "";
    const char *end = strrchr(name, '/');
    if (!end || end == name)
        return ACCEL_OK;
    char *to = accel_arena_new(a, (size_t)(end - name) + 2, 1);
    if (!to)
        return accel_fail_nomem();
    size_t len = 0, last = 0; /* of the path so far; where its last component begins */
    for (const char *c = name; c < end;) {
        size_t n = strcspn(c, "/");
        size_t n_last = len - last;
        if (n && len && n > n_last && c[n_last] == '.' && memcmp(c, to + last, n_last) == 0) {
            len = last;
        } else if (n && len) {
            to[len++] = '.';
            last = len;
        }
        memcpy(to + len, c, n);
        len += n;
        c += n + 1;
    }
    to[len] = '\0';
    *out = to;
    return ACCEL_OK;
}

enum accel_err accel_read_labels(struct accel_model *m)
{
    for (size_t i = 0; i < m->n_all_graph; i++) { /* outer graphs come before inner ones */
        struct accel_graph *g = m->all_graph[i];
        struct labels l = {.to = &m->arena};
        enum accel_err err = short_labels(&l, g);
        if (!err)
            err = long_labels(&l, g);
        for (size_t k = 0; k < g->n_node && !err; k++)
            err = module_of(&g->node[k]->module, &m->arena, g->node[k]->name);
        accel_map_clear(&l.taken);
        accel_map_clear(&l.kind);
        accel_arena_clear(&l.arena);
        if (err)
            return err;
    }
    return ACCEL_OK;
}
