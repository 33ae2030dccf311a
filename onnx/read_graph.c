/* A graph's parts come in any order in the file, so they are visited by kind: inputs, initializers,
 * nodes in order, outputs, and what value_info says about values that exist by then. */
#include "onnx/read_int.h"

#include <string.h>

/* dtype and shape of a tensor type; a type of another kind makes a value that is no tensor. */
static enum accel_err read_type(struct accel_value *v, struct accel_read *r, const Onnx__Type *type)
{
    int kinds = !!type->tensor_type + !!type->sequence_type + !!type->map_type +
                !!type->opaque_type + !!type->sparse_tensor_type + !!type->optional_type;
    if (kinds > 1)
        return accel_fail(ACCEL_EMODEL, "its type is of %d kinds at once", kinds);
    if (!type->tensor_type) {
        v->is_tensor = kinds == 0;
        return ACCEL_OK;
    }
    int dtype = type->tensor_type->elem_type;
    if (!accel_dtype_find(dtype))
        return accel_fail(ACCEL_EMODEL, "element type %d is unknown", dtype);
    v->declared_dtype = (enum accel_dtype)dtype;
    const Onnx__TensorShape *sh = type->tensor_type->shape;
    if (!sh)
        return ACCEL_OK;
    if (sh->n_dim > 1024)
        return accel_fail(ACCEL_EMODEL, "its shape has %zu dims", sh->n_dim);
    struct accel_dim *dim = ACCEL_NEW(&r->m->arena, struct accel_dim, sh->n_dim);
    if (!dim)
        return accel_fail_nomem();
    for (size_t i = 0; i < sh->n_dim; i++) {
        const Onnx__TensorShape__Dimension *d = sh->dim[i];
        dim[i] = accel_dim_unknown();
        if (d->has_dim_value && d->dim_value >= 0)
            dim[i] = accel_dim_of(d->dim_value);
        else if (!d->has_dim_value && d->dim_param && *d->dim_param)
            ACCEL_TRY(accel_dim_named(&dim[i], &r->m->symbols, d->dim_param));
    }
    v->declared = (struct accel_shape){(int)sh->n_dim, dim};
    return ACCEL_OK;
}

/* What the message declares, for a value that nothing is declared of yet. */
static enum accel_err declare(struct accel_value *v, struct accel_read *r,
                              const Onnx__ValueInfo *msg, struct accel_part *p)
{
    struct accel_value other = {.is_tensor = true, .declared = {-1, NULL}};
    bool silent = v && v->is_tensor && v->declared.rank < 0 && !v->declared_dtype;
    struct accel_value *to = silent ? v : &other; /* proven all the same */
    p->value = v;
    if (v && !v->origin)
        v->origin = p;
    if (msg->type)
        ACCEL_TRY(read_type(to, r, msg->type));
    if (silent && !v->tensor) {
        v->dtype = v->declared_dtype;
        v->shape = v->declared;
    }
    return ACCEL_OK;
}

static size_t count(const struct accel_part *p, int field)
{
    size_t n = 0;
    for (const struct accel_part *c = p->child; c; c = c->next)
        n += c->kind == ACCEL_PART_VALUE && c->field == field;
    return n;
}

static enum accel_err value_message(Onnx__ValueInfo **msg, struct accel_read *r,
                                    const struct accel_part *c)
{
    return accel_read_message(msg, r, c, &onnx__value_info__descriptor);
}

static enum accel_err read_inputs(struct accel_graph *g, struct accel_read *r, struct accel_part *p)
{
    g->input = ACCEL_NEW(&r->m->arena, struct accel_value *, count(p, READ_GRAPH_INPUT));
    if (!g->input)
        return accel_fail_nomem();
    for (struct accel_part *c = p->child; c; c = c->next) {
        Onnx__ValueInfo *msg;
        struct accel_value *v;
        if (c->kind != ACCEL_PART_VALUE || c->field != READ_GRAPH_INPUT)
            continue;
        ACCEL_TRY(value_message(&msg, r, c));
        if (!msg->name || !*msg->name)
            return accel_fail(ACCEL_EMODEL, "graph input %zu has no name", g->n_input);
        if (accel_map_find(&g->by_name, msg->name))
            return accel_fail(ACCEL_EMODEL, "graph input '%.200s' comes twice", msg->name);
        ACCEL_TRY(accel_value_new(&v, g, msg->name));
        v->is_input = true;
        g->input[g->n_input++] = v;
        enum accel_err err = declare(v, r, msg, c);
        if (err)
            return accel_fail_in(err, "graph input '%.200s'", v->name);
    }
    return ACCEL_OK;
}

static enum accel_err add_initializer(struct accel_graph *g, struct accel_read *r,
                                      struct accel_tensor *t)
{
    struct accel_value *v = accel_map_find(&g->by_name, t->name);
    if (!*t->name)
        return accel_fail(ACCEL_EMODEL, "it has no name");
    if (v && v->tensor)
        return accel_fail(ACCEL_EMODEL, "it comes twice");
    if (!v)
        ACCEL_TRY(accel_value_new(&v, g, t->name));
    struct accel_dim *dim = ACCEL_NEW(&r->m->arena, struct accel_dim, t->rank);
    if (!dim)
        return accel_fail_nomem();
    for (int i = 0; i < t->rank; i++)
        dim[i] = accel_dim_of(t->dim[i]);
    v->tensor = t;
    v->is_tensor = true;
    v->dtype = t->dtype;
    v->shape = (struct accel_shape){t->rank, dim};
    return accel_model_add_tensor(r->m, t);
}

static enum accel_err read_initializers(struct accel_graph *g, struct accel_read *r,
                                        struct accel_part *p)
{
    for (struct accel_part *c = p->child; c; c = c->next) {
        struct accel_tensor *t = NULL;
        enum accel_err err;
        if (c->kind == ACCEL_PART_TENSOR)
            err = accel_read_tensor(&t, r, c);
        else if (c->kind == ACCEL_PART_SPARSE)
            err = accel_read_sparse(&t, r, c);
        else
            continue;
        if (!err)
            err = add_initializer(g, r, t);
        if (err && t && err != ACCEL_ENOMEM)
            return accel_fail_in(err, "initializer '%.200s'", t->name);
        if (err)
            return err;
    }
    return ACCEL_OK;
}

enum accel_err accel_read_nodes(struct accel_graph *g, struct accel_read *r, struct accel_part *p)
{
    for (struct accel_part *c = p->child; c; c = c->next)
        if (c->kind == ACCEL_PART_NODE)
            ACCEL_TRY(accel_read_node(g, r, c));
    return ACCEL_OK;
}

static enum accel_err read_outputs(struct accel_graph *g, struct accel_read *r,
                                   struct accel_part *p)
{
    g->output = ACCEL_NEW(&r->m->arena, struct accel_value *, count(p, READ_GRAPH_OUTPUT));
    if (!g->output)
        return accel_fail_nomem();
    for (struct accel_part *c = p->child; c; c = c->next) {
        Onnx__ValueInfo *msg;
        if (c->kind != ACCEL_PART_VALUE || c->field != READ_GRAPH_OUTPUT)
            continue;
        ACCEL_TRY(value_message(&msg, r, c));
        const char *name = msg->name ? msg->name : "";
        struct accel_value *v = accel_value_find(g, name);
        if (!v)
            return accel_fail(ACCEL_EMODEL, "graph output '%.200s' is produced by no node", name);
        v->is_output = true;
        g->output[g->n_output++] = v;
        enum accel_err err = declare(v, r, msg, c);
        if (err)
            return accel_fail_in(err, "graph output '%.200s'", v->name);
    }
    return ACCEL_OK;
}

enum accel_err accel_read_value_infos(struct accel_graph *g, struct accel_read *r,
                                      struct accel_part *p, int field)
{
    for (struct accel_part *c = p->child; c; c = c->next) {
        Onnx__ValueInfo *msg;
        if (c->kind != ACCEL_PART_VALUE || c->field != field)
            continue;
        ACCEL_TRY(value_message(&msg, r, c));
        const char *name = msg->name ? msg->name : "";
        enum accel_err err = declare(accel_map_find(&g->by_name, name), r, msg, c);
        if (err)
            return accel_fail_in(err, "value_info '%.200s'", msg->name ? msg->name : "");
    }
    return ACCEL_OK;
}

enum accel_err accel_read_graph(struct accel_graph *g, struct accel_read *r, struct accel_part *p)
{
    Onnx__Graph *msg;
    ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__graph__descriptor));
    ACCEL_TRY(accel_read_string(&g->name, r, msg->name));
    g->origin = p;
    p->graph = g;
    ACCEL_TRY(read_inputs(g, r, p));
    ACCEL_TRY(read_initializers(g, r, p));
    ACCEL_TRY(accel_read_nodes(g, r, p));
    ACCEL_TRY(read_outputs(g, r, p));
    return accel_read_value_infos(g, r, p, READ_GRAPH_VALUE_INFO);
}
