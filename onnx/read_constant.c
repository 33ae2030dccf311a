/* Constant nodes: a weight held by one is a weight like any other. Numbers given directly
 * (value_float, value_ints, …) become small tensors in memory. */
#include "onnx/read_int.h"

#include <string.h>

static enum accel_err from_numbers(struct accel_tensor **out, struct accel_read *r,
                                   const struct accel_attr *a)
{
    struct accel_tensor *t = ACCEL_NEW(&r->m->arena, struct accel_tensor, 1);
    if (!t)
        return accel_fail_nomem();
    bool list = a->kind == ACCEL_ATTR_FLOATS || a->kind == ACCEL_ATTR_INTS;
    bool real = a->kind == ACCEL_ATTR_FLOAT || a->kind == ACCEL_ATTR_FLOATS;
    int64_t n = (int64_t)a->n;
    ACCEL_TRY(accel_read_dims(t, r, &n, list, real ? ACCEL_F32 : ACCEL_I64));
    const void *from = list && real ? (const void *)a->floats
                       : list       ? (const void *)a->ints
                       : real       ? (const void *)&a->f
                                    : (const void *)&a->i;
    void *data = ACCEL_NEW(&r->m->arena, uint8_t, t->size);
    if (!data)
        return accel_fail_nomem();
    if (t->size)
        memcpy(data, from, t->size);
    t->data = data;
    *out = t;
    return ACCEL_OK;
}

/* The part of attribute number i of n; NULL for one that is inline. */
static struct accel_part *part_of(const struct accel_node *n, size_t i, struct accel_part *p)
{
    size_t parts = 0;
    for (struct accel_part *c = p->child; c; c = c->next)
        parts += c->kind == ACCEL_PART_ATTR;
    size_t at = n->n_attr - parts;
    for (struct accel_part *c = p->child; c; c = c->next)
        if (c->kind == ACCEL_PART_ATTR && at++ == i)
            return c;
    return NULL;
}

enum accel_err accel_read_constant(struct accel_tensor **out, struct accel_read *r,
                                   const struct accel_node *n, struct accel_part *p)
{
    *out = NULL;
    if (n->n_attr == 0)
        return accel_fail(ACCEL_EMODEL, "it has no value");
    for (size_t i = 0; i < n->n_attr; i++) {
        const struct accel_attr *a = &n->attr[i];
        bool number = a->kind == ACCEL_ATTR_FLOAT || a->kind == ACCEL_ATTR_INT ||
                      a->kind == ACCEL_ATTR_FLOATS || a->kind == ACCEL_ATTR_INTS;
        bool tensor = a->kind == ACCEL_ATTR_TENSOR || a->kind == ACCEL_ATTR_SPARSE_TENSOR;
        if (a->ref || (!number && !tensor) ||
            (strncmp(a->name, "value", 5) != 0 && strcmp(a->name, "sparse_value") != 0))
            continue;
        if (*out)
            return accel_fail(ACCEL_EMODEL, "it has two values");
        if (tensor) {
            *out = a->tensors[0];
            continue;
        }
        ACCEL_TRY(from_numbers(out, r, a));
        struct accel_part *c = part_of(n, i, p);
        if (c)
            c->tensor = *out;
        (*out)->origin = c;
    }
    return ACCEL_OK;
}
