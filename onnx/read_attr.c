/* Attributes. Those with tensors or graphs inside are parts of their own: their message is unpacked
 * without what is inside, which is then read part by part. Files before IR 2 leave the kind out: it
 * is told from the field that is there. */
#include "onnx/read_int.h"

#include "base/str.h"
#include "graph/attr.h"
#include "graph/op.h"

#include <string.h>

static size_t children(const struct accel_part *p, enum accel_part_kind kind)
{
    size_t n = 0;
    for (const struct accel_part *c = p ? p->child : NULL; c; c = c->next)
        n += c->kind == kind;
    return n;
}

static size_t children_in(const struct accel_part *p, int field)
{
    size_t n = 0;
    for (const struct accel_part *c = p ? p->child : NULL; c; c = c->next)
        n += c->field == field;
    return n;
}

/* Which kinds of value the message holds, as bits. Scalars that are 0 do not count: some writers
 * spell them out. */
static unsigned kinds_held(const Onnx__Attribute *a, const struct accel_part *p)
{
    unsigned held = 0;
    held |= (unsigned)(a->has_f && a->f != 0) << ACCEL_ATTR_FLOAT;
    held |= (unsigned)(a->has_i && a->i != 0) << ACCEL_ATTR_INT;
    held |= (unsigned)(a->has_s && a->s.len != 0) << ACCEL_ATTR_STRING;
    held |= (unsigned)(a->n_floats != 0) << ACCEL_ATTR_FLOATS;
    held |= (unsigned)(a->n_ints != 0) << ACCEL_ATTR_INTS;
    held |= (unsigned)(a->n_strings != 0) << ACCEL_ATTR_STRINGS;
    held |= (unsigned)(a->tp != NULL) << ACCEL_ATTR_TYPE_PROTO;
    held |= (unsigned)(a->n_type_protos != 0) << ACCEL_ATTR_TYPE_PROTOS;
    held |= (unsigned)(children_in(p, 5) != 0) << ACCEL_ATTR_TENSOR;
    held |= (unsigned)(children_in(p, 10) != 0) << ACCEL_ATTR_TENSORS;
    held |= (unsigned)(children_in(p, 6) != 0) << ACCEL_ATTR_GRAPH;
    held |= (unsigned)(children_in(p, 11) != 0) << ACCEL_ATTR_GRAPHS;
    held |= (unsigned)(children_in(p, 22) != 0) << ACCEL_ATTR_SPARSE_TENSOR;
    held |= (unsigned)(children_in(p, 23) != 0) << ACCEL_ATTR_SPARSE_TENSORS;
    return held;
}

static enum accel_err settle_kind(struct accel_attr *a, const Onnx__Attribute *msg,
                                  const struct accel_part *p)
{
    unsigned held = kinds_held(msg, p);
    int kind = msg->type;
    if (!kind && held)
        kind = __builtin_ctz(held);
    else if (!kind)
        kind = msg->has_f   ? ACCEL_ATTR_FLOAT
               : msg->has_i ? ACCEL_ATTR_INT
               : msg->has_s ? ACCEL_ATTR_STRING
                            : 0;
    if (kind < ACCEL_ATTR_FLOAT || kind > ACCEL_ATTR_TYPE_PROTOS)
        return accel_fail(ACCEL_EMODEL, "its kind %d is unknown", kind);
    a->kind = (enum accel_attr_kind)kind;
    unsigned other = held & ~(1u << kind);
    if (other)
        return accel_fail(ACCEL_EMODEL, "it is %s, but holds %s", accel_attr_kind_name(a->kind),
                          accel_attr_kind_name((enum accel_attr_kind)__builtin_ctz(other)));
    const unsigned inside =
        1u << ACCEL_ATTR_TENSOR | 1u << ACCEL_ATTR_GRAPH | 1u << ACCEL_ATTR_SPARSE_TENSOR;
    if (!a->ref && (inside & 1u << kind) && !held)
        return accel_fail(ACCEL_EMODEL, "it is %s, but holds none", accel_attr_kind_name(a->kind));
    return ACCEL_OK;
}

static enum accel_err copy_bytes(struct accel_bytes *out, struct accel_read *r,
                                 const ProtobufCBinaryData *s)
{
    out->len = s->len;
    out->at = accel_arena_strndup(&r->m->arena, (const char *)s->data, s->len);
    return out->at ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err copy_array(const void **out, struct accel_read *r, const void *from, size_t n,
                                 size_t size)
{
    void *to = accel_arena_new(&r->m->arena, n, size);
    if (!to)
        return accel_fail_nomem();
    if (n)
        memcpy(to, from, n * size);
    *out = to;
    return ACCEL_OK;
}

static enum accel_err copy_strings(struct accel_attr *a, struct accel_read *r,
                                   const Onnx__Attribute *msg)
{
    struct accel_bytes *list = ACCEL_NEW(&r->m->arena, struct accel_bytes, msg->n_strings);
    if (!list)
        return accel_fail_nomem();
    for (size_t i = 0; i < msg->n_strings; i++)
        ACCEL_TRY(copy_bytes(&list[i], r, &msg->strings[i]));
    a->strings = list;
    a->n = msg->n_strings;
    return ACCEL_OK;
}

/* Everything but what is in parts. */
static enum accel_err copy_attr(struct accel_attr *a, struct accel_read *r,
                                const Onnx__Attribute *msg, const struct accel_part *p)
{
    ACCEL_TRY(accel_read_string(&a->name, r, msg->name));
    if (msg->ref_attr_name && *msg->ref_attr_name)
        ACCEL_TRY(accel_read_string(&a->ref, r, msg->ref_attr_name));
    if (!*a->name)
        return accel_fail(ACCEL_EMODEL, "it has no name");
    ACCEL_TRY(settle_kind(a, msg, p));
    a->i = msg->i;
    a->f = msg->f;
    ACCEL_TRY(copy_bytes(&a->s, r, &msg->s));
    switch (a->kind) {
    case ACCEL_ATTR_FLOATS:
        a->n = msg->n_floats;
        return copy_array((const void **)&a->floats, r, msg->floats, a->n, sizeof(float));
    case ACCEL_ATTR_INTS:
        a->n = msg->n_ints;
        return copy_array((const void **)&a->ints, r, msg->ints, a->n, sizeof(int64_t));
    case ACCEL_ATTR_STRINGS:
        return copy_strings(a, r, msg);
    default:
        return ACCEL_OK;
    }
}

static enum accel_err read_tensors(struct accel_attr *a, struct accel_read *r, struct accel_part *p)
{
    size_t i = 0;
    for (struct accel_part *c = p->child; c; c = c->next)
        if (c->kind == ACCEL_PART_TENSOR)
            ACCEL_TRY(accel_read_tensor(&a->tensors[i++], r, c));
        else if (c->kind == ACCEL_PART_SPARSE)
            ACCEL_TRY(accel_read_sparse(&a->tensors[i++], r, c));
    return ACCEL_OK;
}

static enum accel_err read_graphs(struct accel_attr *a, struct accel_node *n, struct accel_read *r,
                                  struct accel_part *p)
{
    size_t i = 0;
    for (struct accel_part *c = p->child; c; c = c->next) {
        if (c->kind != ACCEL_PART_GRAPH)
            continue;
        struct accel_graph *g;
        ACCEL_TRY(accel_graph_new(&g, r->m, n->graph));
        g->parent_node = n;
        g->parent_attr = a->name;
        a->graphs[i++] = g;
        ACCEL_TRY(accel_read_graph(g, r, c));
    }
    return ACCEL_OK;
}

static enum accel_err read_inside(struct accel_attr *a, struct accel_node *n, struct accel_read *r,
                                  struct accel_part *p)
{
    size_t graphs = children(p, ACCEL_PART_GRAPH);
    size_t tensors = children(p, ACCEL_PART_TENSOR) + children(p, ACCEL_PART_SPARSE);
    if (graphs) {
        a->n = graphs;
        a->graphs = ACCEL_NEW(&r->m->arena, struct accel_graph *, graphs);
        return a->graphs ? read_graphs(a, n, r, p) : accel_fail_nomem();
    }
    if (!tensors)
        return ACCEL_OK;
    a->n = tensors;
    a->tensors = ACCEL_NEW(&r->m->arena, struct accel_tensor *, tensors);
    if (!a->tensors)
        return accel_fail_nomem();
    enum accel_err err = read_tensors(a, r, p);
    return err ? accel_fail_in(err, "attribute '%.200s'", a->name) : ACCEL_OK;
}

static enum accel_err add_attr(struct accel_node *n, struct accel_read *r, struct accel_map *seen,
                               const Onnx__Attribute *msg, struct accel_part *p)
{
    struct accel_attr *a = &n->attr[n->n_attr];
    enum accel_err err = copy_attr(a, r, msg, p);
    if (err)
        return accel_fail_in(err, "attribute '%.200s'", a->name ? a->name : "");
    if (accel_map_find(seen, a->name))
        return accel_fail(ACCEL_EMODEL, "attribute '%.200s' comes twice", a->name);
    if (!accel_map_put(seen, a->name, a))
        return accel_fail_nomem();
    n->n_attr++;
    return ACCEL_OK;
}

enum accel_err accel_read_attrs(struct accel_node *n, struct accel_read *r, const Onnx__Node *msg,
                                struct accel_part *p)
{
    enum accel_err err = ACCEL_OK;
    struct accel_map seen = {0};
    size_t total = msg->n_attribute + children(p, ACCEL_PART_ATTR);
    if (!total)
        return ACCEL_OK;
    n->attr = ACCEL_NEW(&r->m->arena, struct accel_attr, total);
    if (!n->attr)
        return accel_fail_nomem();
    for (size_t i = 0; i < msg->n_attribute; i++)
        ACCEL_GOTO(err, add_attr(n, r, &seen, msg->attribute[i], NULL));
    for (struct accel_part *c = p->child; c; c = c->next) {
        if (c->kind != ACCEL_PART_ATTR)
            continue;
        Onnx__Attribute *attr;
        ACCEL_GOTO(err, accel_read_message(&attr, r, c, &onnx__attribute__descriptor));
        ACCEL_GOTO(err, add_attr(n, r, &seen, attr, c));
        ACCEL_GOTO(err, read_inside(&n->attr[n->n_attr - 1], n, r, c));
    }
done:
    accel_map_clear(&seen);
    return err;
}

static enum accel_err check_one(const struct accel_attr *a, const struct accel_attr_rule *rules)
{
    const struct accel_attr_rule *k = rules;
    while (k->name && strcmp(k->name, a->name) != 0)
        k++;
    if (k->name && k->kind != a->kind)
        return accel_fail(ACCEL_EMODEL, "attribute '%s' is %s, must be %s", k->name,
                          accel_attr_kind_name(a->kind), accel_attr_kind_name(k->kind));
    if (k->name || strncmp(a->name, "__", 2) == 0)
        return ACCEL_OK;
    struct accel_near near = accel_near_begin(a->name);
    for (k = rules; k->name; k++)
        accel_near_try(&near, k->name);
    if (near.best)
        return accel_fail(ACCEL_EMODEL,
                          "attribute '%.200s' is none of this operator; did you mean '%s'?",
                          a->name, near.best);
    return accel_fail(ACCEL_EMODEL, "attribute '%.200s' is none of this operator", a->name);
}

enum accel_err accel_read_check_attrs(const struct accel_node *n)
{
    static const struct accel_attr_rule none[1];
    if (!n->op->attrs && accel_op_is_wall(n->op))
        return ACCEL_OK; /* known by name only */
    const struct accel_attr_rule *rules = n->op->attrs ? n->op->attrs : none;
    for (size_t i = 0; i < n->n_attr; i++)
        ACCEL_TRY(check_one(&n->attr[i], rules));
    for (const struct accel_attr_rule *k = rules; k->name; k++)
        if ((k->flags & ACCEL_REQUIRED) && !accel_attr_find(n, k->name))
            return accel_fail(ACCEL_EMODEL, "attribute '%s' is required", k->name);
    return ACCEL_OK;
}
