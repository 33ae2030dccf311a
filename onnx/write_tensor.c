/* What becomes of each stored tensor: left alone, its payload streamed through the edit in the
 * field it has, moved to the data file, brought home from one, or written as a sparse initializer.
 * A tensor message keeps all fields that do not hold or locate its elements. */
#include "onnx/write_int.h"

#include "base/alloc.h"

#include <string.h>

/* Smaller tensors stay in the model file. */
#define EXTERNAL_MIN 1024

static bool is_payload(const struct accel_part *p)
{
    return p->in_file && p->kind == ACCEL_PART_PAYLOAD;
}

enum accel_err accel_part_load(uint8_t **out, size_t *n, struct accel_write *w,
                               const struct accel_part *p)
{
    bool in_file = p->in_file && !p->replaced;
    uint64_t size = in_file ? p->end - p->body : p->n_bytes, at = p->body, done = 0;
    for (const struct accel_part *c = in_file ? p->child : NULL; c; c = c->next)
        size -= is_payload(c) ? c->end - c->start : 0;
    uint8_t *to = *out = accel_calloc((size_t)size, 1);
    *n = (size_t)size;
    if (!to)
        return accel_fail_nomem();
    if (!in_file) {
        if (size)
            memcpy(to, p->bytes, (size_t)size);
        return ACCEL_OK;
    }
    enum accel_err err = ACCEL_OK;
    for (const struct accel_part *c = p->child; c && !err; c = c->next)
        if (is_payload(c)) {
            err = accel_file_read(w->x->file, at, c->start - at, to + done);
            done += c->start - at;
            at = c->end;
        }
    if (!err)
        err = accel_file_read(w->x->file, at, size - done, to + done);
    if (err)
        accel_free(to);
    return err;
}

enum accel_err accel_part_others(struct accel_str *s, struct accel_write *w,
                                 const struct accel_part *p, uint32_t drop)
{
    uint8_t *bytes;
    size_t n;
    ACCEL_TRY(accel_part_load(&bytes, &n, w, p));
    accel_put_others(s, bytes, n, drop);
    accel_free(bytes);
    return ACCEL_OK;
}

static struct accel_part *payload_of(const struct accel_part *p)
{
    struct accel_part *c = p->child;
    while (c && c->kind != ACCEL_PART_PAYLOAD)
        c = c->next;
    return c;
}

/* Whether the message says that its data are in another file. */
static enum accel_err was_external(bool *out, struct accel_write *w, const struct accel_part *p)
{
    *out = false;
    if (!w->x->had_external || !p->in_file || payload_of(p))
        return ACCEL_OK;
    uint8_t *bytes;
    size_t n;
    struct accel_field f;
    ACCEL_TRY(accel_part_load(&bytes, &n, w, p));
    const uint8_t *at = bytes;
    while (accel_field_next(&f, &at, bytes + n))
        if (f.number == TENSOR_DATA_LOCATION)
            *out = f.end - f.body == 1 && *f.body == 1;
    accel_free(bytes);
    return ACCEL_OK;
}

enum accel_err accel_payload_add(struct accel_write *w, struct accel_part *parent,
                                 struct accel_tensor *t, enum accel_part_form form)
{
    struct accel_part *c = accel_part_add(w, parent, ACCEL_PART_PAYLOAD, TENSOR_RAW_DATA);
    if (!c)
        return accel_fail_nomem();
    c->tensor = t;
    c->form = form;
    return accel_payload_measure(w, c);
}

/* The edited elements go into the first payload field, in its encoding; further ones (a packed
 * field may come in pieces) are taken out. */
static enum accel_err replace_payload(struct accel_write *w, struct accel_part *p)
{
    struct accel_part *c = payload_of(p);
    if (!c)
        return accel_fail(ACCEL_ENOSUP, "tensor '%.200s' has no data field to rewrite",
                          p->tensor->name);
    bool fixed = c->field == TENSOR_RAW_DATA || c->field == TENSOR_FLOAT_DATA ||
                 c->field == TENSOR_DOUBLE_DATA;
    c->replaced = true;
    c->tensor = p->tensor;
    c->form = fixed ? ACCEL_FORM_STORED : ACCEL_FORM_VARINT;
    ACCEL_TRY(accel_payload_measure(w, c));
    while ((c = c->next))
        if (c->kind == ACCEL_PART_PAYLOAD)
            c->removed = true;
    return ACCEL_OK;
}

static enum accel_err append(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    (void)first;
    accel_str_addn(ctx, elem, count * sizeof(float));
    return ACCEL_OK;
}

/* A Constant node's value_float or value_floats: the attribute itself holds the elements, which are
 * in memory anyway. */
static enum accel_err rewrite_attr(struct accel_write *w, struct accel_part *p)
{
    uint8_t *bytes = NULL;
    size_t n;
    struct accel_str s = {0}, elements = {0};
    struct accel_tensor *t = p->tensor;
    if (t->dtype != ACCEL_F32)
        return accel_fail(ACCEL_ENOSUP, "constant '%.200s' cannot be rewritten", t->name);
    enum accel_err err;
    ACCEL_GOTO(err, accel_part_load(&bytes, &n, w, p));
    ACCEL_GOTO(err, accel_tensor_stream(t, &w->buffer, append, &elements));
    bool one = false;
    const uint8_t *at = bytes;
    for (struct accel_field f; accel_field_next(&f, &at, bytes + n);)
        one |= f.number == ATTR_F;
    accel_put_others(&s, bytes, n, 1u << ATTR_F | 1u << ATTR_FLOATS);
    if (one && elements.len == sizeof(float)) {
        accel_put_tag(&s, ATTR_F, 5);
        accel_str_addn(&s, elements.at, elements.len);
    } else {
        accel_put_bytes(&s, ATTR_FLOATS, accel_str_get(&elements), elements.len);
    }
    s.failed |= elements.failed;
    err = accel_part_set(w, p, &s);
done:
    accel_free(bytes);
    accel_str_clear(&s);
    accel_str_clear(&elements);
    return err;
}

/* The message without what holds or locates elements, with the dims as they are now. */
static enum accel_err renew_head(struct accel_write *w, struct accel_part *p)
{
    struct accel_str s = {0};
    const struct accel_tensor *t = p->tensor;
    bool dims = t->changed && p->in_file;
    for (int i = 0; i < t->rank && dims; i++)
        accel_put_int(&s, TENSOR_DIMS, t->dim[i]);
    enum accel_err err =
        accel_part_others(&s, w, p, TENSOR_DATA_FIELDS | (dims ? 1u << TENSOR_DIMS : 0));
    if (!err)
        err = accel_part_set(w, p, &s);
    accel_str_clear(&s);
    return err;
}

/* From a data file back into the model, or from where it was to other elements. */
static enum accel_err bring_home(struct accel_write *w, struct accel_part *p)
{
    ACCEL_TRY(renew_head(w, p));
    return accel_payload_add(w, p, p->tensor, ACCEL_FORM_STORED);
}

static bool is_initializer(const struct accel_part *p)
{
    return p->field == GRAPH_INITIALIZER && p->parent && p->parent->kind == ACCEL_PART_GRAPH;
}

static enum accel_err plan_tensor(struct accel_write *w, struct accel_part *p)
{
    struct accel_tensor *t = p->tensor;
    bool external, sparse = false;
    const struct accel_dtype_info *d = accel_dtype_find((int)t->dtype);
    bool movable = d && d->bits;
    ACCEL_TRY(was_external(&external, w, p));
    bool changed = t->changed && p->in_file;
    w->n_edited += t->edit || t->changed;
    if (w->opt->sparse_initializers && is_initializer(p))
        ACCEL_TRY(accel_sparse_convert(&sparse, w, p));
    if (sparse)
        return ACCEL_OK;
    if (w->external && movable && t->size >= EXTERNAL_MIN && (is_initializer(p) || external)) {
        if (!ACCEL_GROW(w->placed, w->placed_cap, w->n_placed + 1))
            return accel_fail_nomem();
        w->placed[w->n_placed++] = p;
        w->total += t->size;
        return changed ? renew_head(w, p) : ACCEL_OK;
    }
    if (external || changed || t->edit)
        w->total += t->size;
    if (external || changed)
        return bring_home(w, p);
    return t->edit && p->in_file ? replace_payload(w, p) : ACCEL_OK;
}

/* Values or indices of a sparse tensor that is not rewritten. */
static enum accel_err plan_sparse_half(struct accel_write *w, struct accel_part *p)
{
    bool external = false;
    if (!p->parent->replaced)
        ACCEL_TRY(was_external(&external, w, p));
    return external ? bring_home(w, p) : ACCEL_OK;
}

enum accel_err accel_tensors_plan(struct accel_write *w)
{
    w->n_placed = w->n_edited = 0;
    w->total = w->done = 0;
    for (struct accel_part *p = w->x->root, *next; p; p = next) {
        next = accel_part_next(p); /* before children are added */
        enum accel_err err = ACCEL_OK;
        if (!p->tensor || p->removed)
            continue;
        if (p->tensor->dropped) {
            p->removed = true;
            continue;
        }
        if (p->kind == ACCEL_PART_TENSOR) {
            bool of_sparse = p->parent && p->parent->kind == ACCEL_PART_SPARSE;
            err = of_sparse ? plan_sparse_half(w, p) : plan_tensor(w, p);
        } else if ((p->tensor->edit || p->tensor->changed) && p->kind == ACCEL_PART_SPARSE) {
            w->n_edited++;
            err = accel_sparse_rewrite(w, p);
        } else if ((p->tensor->edit || p->tensor->changed) && p->kind == ACCEL_PART_ATTR) {
            w->n_edited++;
            err = rewrite_attr(w, p);
        }
        if (err)
            return err;
    }
    return ACCEL_OK;
}
