/* Messages from the C graph: a whole model that was built in memory, as a tree of added parts; and
 * single nodes and values, which an edit that changes them puts in place of the file's. Repeated
 * integers are written unpacked, as ONNX's own schema (proto2) has them. */
#include "onnx/write_int.h"

#include <string.h>

static void put_attr_head(struct accel_str *s, const struct accel_attr *a)
{
    accel_put_string(s, ATTR_NAME, a->name);
    if (a->ref)
        accel_put_string(s, ATTR_REF_NAME, a->ref);
    accel_put_int(s, ATTR_TYPE, (int64_t)a->kind);
}

/* The attribute's value is a message of its own, or several: a part of the tree. */
static bool is_part(const struct accel_attr *a)
{
    return a->kind == ACCEL_ATTR_TENSOR || a->kind == ACCEL_ATTR_GRAPH ||
           a->kind >= ACCEL_ATTR_TENSORS;
}

static void put_attr(struct accel_str *s, const struct accel_attr *a)
{
    struct accel_str c = {0};
    put_attr_head(&c, a);
    if (a->kind == ACCEL_ATTR_FLOAT)
        accel_put_float(&c, ATTR_F, a->f);
    else if (a->kind == ACCEL_ATTR_INT)
        accel_put_int(&c, ATTR_I, a->i);
    else if (a->kind == ACCEL_ATTR_STRING)
        accel_put_bytes(&c, ATTR_S, a->s.at, a->s.len);
    for (size_t i = 0; i < a->n && a->kind == ACCEL_ATTR_FLOATS; i++)
        accel_put_float(&c, ATTR_FLOATS, a->floats[i]);
    for (size_t i = 0; i < a->n && a->kind == ACCEL_ATTR_INTS; i++)
        accel_put_int(&c, ATTR_INTS, a->ints[i]);
    for (size_t i = 0; i < a->n && a->kind == ACCEL_ATTR_STRINGS; i++)
        accel_put_bytes(&c, ATTR_STRINGS, a->strings[i].at, a->strings[i].len);
    accel_put_bytes(s, NODE_ATTRIBUTE, accel_str_get(&c), c.len);
    s->failed |= c.failed;
    accel_str_clear(&c);
}

void accel_put_node(struct accel_str *s, const struct accel_node *n, const uint8_t *origin,
                    size_t n_origin)
{
    for (int i = 0; i < n->n_in; i++)
        accel_put_string(s, NODE_INPUT, n->in[i] ? n->in[i]->name : "");
    for (int i = 0; i < n->n_out; i++)
        accel_put_string(s, NODE_OUTPUT, n->out[i] ? n->out[i]->name : "");
    if (*n->name)
        accel_put_string(s, NODE_NAME, n->name);
    accel_put_string(s, NODE_OP_TYPE, n->op_type);
    for (size_t i = 0; i < n->n_attr; i++)
        if (!is_part(&n->attr[i]))
            put_attr(s, &n->attr[i]);
    if (*n->domain)
        accel_put_string(s, NODE_DOMAIN, n->domain);
    accel_put_others(s, origin, n_origin,
                     1u << NODE_INPUT | 1u << NODE_OUTPUT | 1u << NODE_NAME | 1u << NODE_OP_TYPE |
                         1u << NODE_ATTRIBUTE | 1u << NODE_DOMAIN);
}

/* A sub-message that was built in `c`, which is cleared. */
static void put_message(struct accel_str *s, int field, struct accel_str *c)
{
    accel_put_bytes(s, field, accel_str_get(c), c->len);
    s->failed |= c->failed;
    accel_str_clear(c);
}

void accel_put_value(struct accel_str *s, const struct accel_value *v)
{
    enum { VALUE_NAME = 1, VALUE_TYPE = 2, TYPE_TENSOR = 1, ELEM_TYPE = 1, SHAPE = 2, DIM = 1 };
    enum { DIM_VALUE = 1, DIM_PARAM = 2 };
    const struct accel_shape *sh = v->declared.rank >= 0 ? &v->declared : &v->shape;
    const struct accel_symbols *symbols = &v->graph->model->symbols;
    struct accel_str shape = {0}, tensor = {0}, type = {0};
    accel_put_string(s, VALUE_NAME, v->name);
    for (int i = 0; i < sh->rank; i++) {
        struct accel_str dim = {0};
        int sym = sh->dim[i].sym;
        if (accel_dim_known(sh->dim[i]))
            accel_put_int(&dim, DIM_VALUE, sh->dim[i].n);
        else if (sym >= 0 && (size_t)sym < symbols->n && symbols->at[sym].name)
            accel_put_string(&dim, DIM_PARAM, symbols->at[sym].name);
        put_message(&shape, DIM, &dim);
    }
    accel_put_int(&tensor, ELEM_TYPE, v->declared_dtype ? v->declared_dtype : v->dtype);
    if (sh->rank >= 0)
        put_message(&tensor, SHAPE, &shape);
    put_message(&type, TYPE_TENSOR, &tensor);
    put_message(s, VALUE_TYPE, &type);
}

/* An added part whose own bytes are `s`, taken over. */
static enum accel_err add(struct accel_part **out, struct accel_write *w, struct accel_part *parent,
                          enum accel_part_kind kind, int field, struct accel_str *s)
{
    struct accel_part *p = accel_part_add(w, parent, kind, field);
    *out = p;
    if (!p) {
        accel_str_clear(s);
        return accel_fail_nomem();
    }
    return accel_part_set(w, p, s);
}

enum accel_err accel_build_tensor(struct accel_write *w, struct accel_part *parent, int field,
                                  struct accel_tensor *t, const char *name)
{
    const struct accel_dtype_info *d = accel_dtype_find((int)t->dtype);
    struct accel_str s = {0};
    struct accel_part *p;
    if (!d || !d->bits)
        return accel_fail(ACCEL_ENOSUP, "tensor '%.200s' of %s cannot be written", name,
                          d ? d->name : "an unknown type");
    for (int i = 0; i < t->rank; i++)
        accel_put_int(&s, TENSOR_DIMS, t->dim[i]);
    accel_put_int(&s, TENSOR_DATA_TYPE, t->dtype);
    if (*name)
        accel_put_string(&s, TENSOR_NAME, name);
    ACCEL_TRY(add(&p, w, parent, ACCEL_PART_TENSOR, field, &s));
    p->tensor = t;
    return accel_payload_add(w, p, t, ACCEL_FORM_STORED);
}

static enum accel_err add_graph(struct accel_write *w, struct accel_part *parent, int field,
                                struct accel_graph *g);

static enum accel_err add_attr(struct accel_write *w, struct accel_part *node,
                               const struct accel_attr *a)
{
    struct accel_str s = {0};
    struct accel_part *p;
    if (a->kind != ACCEL_ATTR_TENSOR && a->kind != ACCEL_ATTR_GRAPH)
        return accel_fail(ACCEL_ENOSUP, "attribute '%.200s' of kind %d cannot be written", a->name,
                          (int)a->kind);
    put_attr_head(&s, a);
    ACCEL_TRY(add(&p, w, node, ACCEL_PART_ATTR, NODE_ATTRIBUTE, &s));
    return a->kind == ACCEL_ATTR_GRAPH
               ? add_graph(w, p, ATTR_G, a->graphs[0])
               : accel_build_tensor(w, p, ATTR_T, a->tensors[0],
                                    a->tensors[0]->name ? a->tensors[0]->name : "");
}

enum accel_err accel_build_node(struct accel_part **out, struct accel_write *w,
                                struct accel_part *graph, const struct accel_node *n)
{
    struct accel_str s = {0};
    accel_put_node(&s, n, NULL, 0);
    ACCEL_TRY(add(out, w, graph, ACCEL_PART_NODE, GRAPH_NODE, &s));
    for (size_t i = 0; i < n->n_attr; i++)
        if (is_part(&n->attr[i]))
            ACCEL_TRY(add_attr(w, *out, &n->attr[i]));
    return ACCEL_OK;
}

enum accel_err accel_build_value(struct accel_write *w, struct accel_part *graph, int field,
                                 const struct accel_value *v)
{
    struct accel_str s = {0};
    struct accel_part *p;
    accel_put_value(&s, v);
    return add(&p, w, graph, ACCEL_PART_VALUE, field, &s);
}

static enum accel_err add_graph(struct accel_write *w, struct accel_part *parent, int field,
                                struct accel_graph *g)
{
    struct accel_str s = {0};
    struct accel_part *p;
    accel_put_string(&s, GRAPH_NAME, g->name && *g->name ? g->name : "graph");
    ACCEL_TRY(add(&p, w, parent, ACCEL_PART_GRAPH, field, &s));
    p->graph = g;
    struct accel_part *node;
    for (size_t i = 0; i < g->n_node; i++)
        ACCEL_TRY(accel_build_node(&node, w, p, g->node[i]));
    for (size_t i = 0; i < g->n_value; i++)
        if (g->value[i]->tensor && !g->value[i]->producer)
            ACCEL_TRY(accel_build_tensor(w, p, GRAPH_INITIALIZER, g->value[i]->tensor,
                                         g->value[i]->name));
    for (size_t i = 0; i < g->n_input; i++)
        ACCEL_TRY(accel_build_value(w, p, GRAPH_INPUT, g->input[i]));
    for (size_t i = 0; i < g->n_output; i++)
        ACCEL_TRY(accel_build_value(w, p, GRAPH_OUTPUT, g->output[i]));
    return ACCEL_OK;
}

static enum accel_err add_pair(struct accel_write *w, enum accel_part_kind kind, int field,
                               const char *text, const char *value, int64_t number)
{
    struct accel_str s = {0};
    struct accel_part *p;
    accel_put_string(&s, 1, text);
    if (value)
        accel_put_string(&s, 2, value);
    else
        accel_put_int(&s, 2, number);
    return add(&p, w, w->x->root, kind, field, &s);
}

enum accel_err accel_tree_build(struct accel_write *w)
{
    struct accel_model *m = w->m;
    struct accel_str s = {0};
    struct accel_part *root = w->x->root = ACCEL_NEW(&w->arena, struct accel_part, 1);
    if (!root)
        return accel_fail_nomem();
    if (m->n_function)
        return accel_fail(ACCEL_ENOSUP, "a model built in memory cannot have functions");
    accel_put_int(&s, MODEL_IR_VERSION, m->ir_version);
    if (m->producer && *m->producer) {
        const char *space = strrchr(m->producer, ' ');
        size_t n = space ? (size_t)(space - m->producer) : strlen(m->producer);
        accel_put_bytes(&s, MODEL_PRODUCER_NAME, m->producer, n);
        if (space)
            accel_put_string(&s, MODEL_PRODUCER_VERSION, space + 1);
    }
    ACCEL_TRY(accel_part_set(w, root, &s));
    ACCEL_TRY(add_graph(w, root, MODEL_GRAPH, m->graph));
    for (size_t i = 0; i < m->n_opset; i++)
        ACCEL_TRY(add_pair(w, ACCEL_PART_OPSET, MODEL_OPSET_IMPORT, m->opset[i].domain, NULL,
                           m->opset[i].version));
    for (size_t i = 0; i < m->n_meta; i++)
        ACCEL_TRY(add_pair(w, ACCEL_PART_META, MODEL_METADATA_PROPS, m->meta[i].key,
                           m->meta[i].value, 0));
    return ACCEL_OK;
}
