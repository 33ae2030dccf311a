/* Sparse tensors in coordinate form: a values tensor of the elements that are not zero, and an
 * int64 tensor of their flattened indices, ascending. An element counts as zero when all its bits
 * are, so that expanding gives back the same bits. The elements are streamed once to count and once
 * for each of the two payloads; memory stays the buffer. */
#include "onnx/write_int.h"

#include "base/alloc.h"

#define ZEROS_MIN      5  /* one in so many elements may be other than zero: 80 % zeros */
#define FIRST_IR       5  /* IR version that brought sparse_initializer */
#define MESSAGE_MARGIN 64 /* tags, lengths and dims that the sparse form needs more */

/* `values` and `indices`: the fields to keep of the two tensors, taken over. */
static enum accel_err add_pair(struct accel_write *w, struct accel_part *sparse,
                               struct accel_tensor *t, struct accel_str *values,
                               struct accel_str *indices, uint64_t n)
{
    struct accel_part *v = accel_part_add(w, sparse, ACCEL_PART_TENSOR, SPARSE_VALUES);
    struct accel_part *i = accel_part_add(w, sparse, ACCEL_PART_TENSOR, SPARSE_INDICES);
    if (!v || !i)
        return accel_fail_nomem();
    accel_put_int(values, TENSOR_DIMS, (int64_t)n);
    accel_put_int(indices, TENSOR_DIMS, (int64_t)n);
    ACCEL_TRY(accel_part_set(w, v, values));
    ACCEL_TRY(accel_part_set(w, i, indices));
    ACCEL_TRY(accel_payload_add(w, v, t, ACCEL_FORM_NONZERO));
    return accel_payload_add(w, i, t, ACCEL_FORM_INDEX);
}

enum accel_err accel_sparse_rewrite(struct accel_write *w, struct accel_part *p)
{
    const uint32_t drop = TENSOR_DATA_FIELDS | 1u << TENSOR_DIMS;
    struct accel_str s = {0}, values = {0}, indices = {0};
    enum accel_err err;
    uint64_t n;
    ACCEL_GOTO(err, accel_part_others(
                        &s, w, p, 1u << SPARSE_VALUES | 1u << SPARSE_INDICES | 1u << SPARSE_DIMS));
    for (int i = 0; i < p->tensor->rank; i++)
        accel_put_int(&s, SPARSE_DIMS, p->tensor->dim[i]);
    for (struct accel_part *c = p->child; c; c = c->next)
        if (c->kind == ACCEL_PART_TENSOR)
            ACCEL_GOTO(
                err, accel_part_others(c->field == SPARSE_VALUES ? &values : &indices, w, c, drop));
    ACCEL_GOTO(err, accel_nonzero_count(&n, w, p->tensor));
    ACCEL_GOTO(err, accel_part_set(w, p, &s));
    err = add_pair(w, p, p->tensor, &values, &indices, n);
done:
    accel_str_clear(&s);
    accel_str_clear(&values);
    accel_str_clear(&indices);
    return err;
}

/* A tensor that is also a graph input can be overridden by the caller: it stays as it is. */
static bool may_convert(const struct accel_write *w, const struct accel_part *p)
{
    const struct accel_tensor *t = p->tensor;
    const struct accel_graph *g = p->parent->graph;
    const struct accel_value *v = g ? accel_value_find(g, t->name) : NULL;
    return w->m->ir_version >= FIRST_IR && accel_dtype_is_float(t->dtype) && t->rank > 0 && t->n &&
           !(v && v->is_input);
}

enum accel_err accel_sparse_convert(bool *done, struct accel_write *w, struct accel_part *p)
{
    const uint32_t drop = TENSOR_DATA_FIELDS | 1u << TENSOR_DIMS;
    struct accel_tensor *t = p->tensor;
    struct accel_str s = {0}, values = {0}, indices = {0};
    uint64_t n;
    *done = false;
    if (!may_convert(w, p))
        return ACCEL_OK;
    ACCEL_TRY(accel_nonzero_count(&n, w, t));
    uint64_t width = t->size / t->n;
    if (n > t->n / ZEROS_MIN || n * (width + sizeof(int64_t)) + MESSAGE_MARGIN >= t->size)
        return ACCEL_OK;
    struct accel_part *sparse =
        accel_part_add(w, p->parent, ACCEL_PART_SPARSE, GRAPH_SPARSE_INITIALIZER);
    if (!sparse)
        return accel_fail_nomem();
    enum accel_err err;
    for (int i = 0; i < t->rank; i++)
        accel_put_int(&s, SPARSE_DIMS, t->dim[i]);
    ACCEL_GOTO(err, accel_part_set(w, sparse, &s));
    ACCEL_GOTO(err, accel_part_others(&values, w, p, drop));
    accel_put_int(&indices, TENSOR_DATA_TYPE, ACCEL_I64);
    ACCEL_GOTO(err, add_pair(w, sparse, t, &values, &indices, n));
    p->removed = true;
    *done = true;
done:
    accel_str_clear(&s);
    accel_str_clear(&values);
    accel_str_clear(&indices);
    return err;
}
