/* Tensors: dims and payload are independent fields of the file, so each is proven against the
 * other before anything is allocated. Elements stay where they are, in the model file or a data
 * file; only small ones of the model file are read at once, since shape inference looks at them. */
#include "onnx/read_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 256 /* bytes */

static const char *dims_text(char *buf, size_t size, const int64_t *dim, size_t n)
{
    size_t len = 0;
    buf[0] = '\0';
    for (size_t i = 0; i < n && len + 24 < size; i++)
        len += (size_t)snprintf(buf + len, size - len, "%s%" PRId64, i ? "x" : "", dim[i]);
    return n ? buf : "(scalar)";
}

enum accel_err accel_read_dims(struct accel_tensor *t, struct accel_read *r, const int64_t *dim,
                               size_t n, int dtype)
{
    char text[128];
    const struct accel_dtype_info *type = accel_dtype_find(dtype);
    if (!type || dtype == ACCEL_UNDEFINED)
        return accel_fail(ACCEL_EMODEL, "element type %d is unknown", dtype);
    if (n > 1024)
        return accel_fail(ACCEL_EMODEL, "%zu dims", n);
    uint64_t count = 1;
    bool empty = false, overflow = false;
    for (size_t i = 0; i < n; i++) {
        if (dim[i] < 0)
            return accel_fail(ACCEL_EMODEL, "dims %s: a size cannot be %" PRId64,
                              dims_text(text, sizeof text, dim, n), dim[i]);
        empty |= dim[i] == 0;
        overflow |= __builtin_mul_overflow(count, (uint64_t)dim[i], &count);
    }
    if (empty)
        count = 0;
    t->dtype = (enum accel_dtype)dtype;
    bool fits = !type->bits || accel_dtype_size(t->dtype, count, &t->size);
    if (!empty && (overflow || !fits || count > INT64_MAX || t->size > INT64_MAX))
        return accel_fail(ACCEL_EMODEL, "dims %s are too large to be true",
                          dims_text(text, sizeof text, dim, n));
    int64_t *copy = ACCEL_NEW(&r->m->arena, int64_t, n);
    if (!copy)
        return accel_fail_nomem();
    if (n)
        memcpy(copy, dim, n * sizeof *copy);
    t->dim = copy;
    t->rank = (int)n;
    t->n = count;
    return ACCEL_OK;
}

static enum accel_err raw_range(struct accel_tensor *t, struct accel_read *r,
                                const struct accel_part *p)
{
    char text[128];
    uint64_t have = p->end - p->body;
    if (t->dtype == ACCEL_STRING)
        return accel_fail(ACCEL_EMODEL, "strings cannot be in raw_data");
    if (have != t->size)
        return accel_fail(ACCEL_EMODEL,
                          "dims %s of %s need %" PRIu64 " bytes, raw_data has %" PRIu64,
                          dims_text(text, sizeof text, t->dim, (size_t)t->rank),
                          accel_dtype_find((int)t->dtype)->name, t->size, have);
    t->file = r->x->file;
    t->offset = p->body;
    return ACCEL_OK;
}

/* Elements in the payload parts of p: raw_data or one typed field. */
static enum accel_err inner_data(struct accel_tensor *t, struct accel_read *r,
                                 const struct accel_part *p)
{
    const struct accel_part *first = NULL;
    for (const struct accel_part *c = p->child; c; c = c->next) {
        if (c->kind != ACCEL_PART_PAYLOAD)
            continue;
        if (!first)
            first = c;
        else if (c->field != first->field || c->field == READ_TENSOR_RAW)
            return accel_fail(ACCEL_EMODEL, "its elements are stored twice");
    }
    char text[128];
    if (!first && t->n)
        return accel_fail(ACCEL_EMODEL, "dims %s need %" PRIu64 " elements, it has no data",
                          dims_text(text, sizeof text, t->dim, (size_t)t->rank), t->n);
    if (!first)
        return ACCEL_OK;
    return first->field == READ_TENSOR_RAW ? raw_range(t, r, first)
                                           : accel_read_typed(t, r, p, first->field);
}

/* A decimal number without sign; EMODEL names the key. */
static enum accel_err number(uint64_t *out, const char *key, const char *text)
{
    uint64_t v = 0;
    const char *c = text;
    for (; *c >= '0' && *c <= '9'; c++)
        if (__builtin_mul_overflow(v, UINT64_C(10), &v) ||
            __builtin_add_overflow(v, (uint64_t)(*c - '0'), &v))
            return accel_fail(ACCEL_EMODEL, "external data: %s %.100s is too large", key, text);
    if (*c || c == text)
        return accel_fail(ACCEL_EMODEL, "external data: %s '%.100s' is not a size", key, text);
    *out = v;
    return ACCEL_OK;
}

static enum accel_err external_range(struct accel_tensor *t, struct accel_read *r,
                                     const Onnx__Tensor *msg)
{
    const char *location = NULL;
    uint64_t offset = 0, length = t->size;
    for (size_t i = 0; i < msg->n_external_data; i++) {
        const char *key = msg->external_data[i]->key, *value = msg->external_data[i]->value;
        key = key ? key : "";
        value = value ? value : "";
        if (strcmp(key, "location") == 0)
            location = value;
        else if (strcmp(key, "offset") == 0)
            ACCEL_TRY(number(&offset, key, value));
        else if (strcmp(key, "length") == 0)
            ACCEL_TRY(number(&length, key, value));
        else if (strcmp(key, "checksum") != 0)
            accel_warn(&r->m->log, "tensor '%.200s': key '%.200s' of its external data is ignored",
                       t->name, key);
    }
    if (!location)
        return accel_fail(ACCEL_EMODEL, "external data without a location");
    if (t->dtype == ACCEL_STRING)
        return accel_fail(ACCEL_EMODEL, "strings cannot be external data");
    char text[128];
    if (length != t->size)
        return accel_fail(ACCEL_EMODEL,
                          "dims %s need %" PRIu64
                          " bytes, the length of its external data is %" PRIu64,
                          dims_text(text, sizeof text, t->dim, (size_t)t->rank), t->size, length);
    ACCEL_TRY(accel_external_open(&t->file, r->m, r->x, location, r->opt.allow_linked_data));
    if (offset > t->file->size || length > t->file->size - offset)
        return accel_fail(ACCEL_EMODEL,
                          "needs bytes %" PRIu64 " to %" PRIu64
                          " of data file '%.200s', which has %" PRIu64,
                          offset, offset > UINT64_MAX - length ? UINT64_MAX : offset + length,
                          location, t->file->size);
    t->offset = offset;
    return ACCEL_OK;
}

static bool has_payload(const struct accel_part *p)
{
    for (const struct accel_part *c = p->child; c; c = c->next)
        if (c->kind == ACCEL_PART_PAYLOAD)
            return true;
    return false;
}

/* Small payloads of the model file come into memory. */
static enum accel_err keep_small(struct accel_tensor *t, struct accel_read *r)
{
    if (t->data || t->file != r->x->file || t->size > SMALL)
        return ACCEL_OK;
    uint8_t *bytes = ACCEL_NEW(&r->m->arena, uint8_t, t->size);
    if (!bytes)
        return accel_fail_nomem();
    t->data = bytes;
    return accel_wire_read(r->x, t->offset, t->size, bytes);
}

static enum accel_err unsafe_data(struct accel_tensor *t, struct accel_read *r,
                                  const Onnx__Tensor *msg)
{
    r->x->had_external = true;
    enum accel_err err = external_range(t, r, msg);
    if (err != ACCEL_EMODEL || !r->opt.skip_data)
        return err;
    accel_warn(&r->m->log, "tensor '%.200s': %s", t->name, accel_errmsg());
    t->file = NULL;
    t->offset = 0;
    return ACCEL_OK;
}

enum accel_err accel_read_tensor(struct accel_tensor **out, struct accel_read *r,
                                 struct accel_part *p)
{
    Onnx__Tensor *msg;
    struct accel_tensor *t = ACCEL_NEW(&r->m->arena, struct accel_tensor, 1);
    if (!t)
        return accel_fail_nomem();
    ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__tensor__descriptor));
    ACCEL_TRY(accel_read_string(&t->name, r, msg->name));
    *out = t; /* the caller's error names it */
    if (msg->segment)
        return accel_fail(ACCEL_ENOSUP, "tensors in segments are not supported");
    ACCEL_TRY(accel_read_dims(t, r, msg->dims, msg->n_dims, msg->data_type));
    if (msg->data_location == 0) {
        ACCEL_TRY(inner_data(t, r, p));
        ACCEL_TRY(keep_small(t, r));
    } else if (msg->data_location != 1) {
        return accel_fail(ACCEL_EMODEL, "data_location %d is unknown", msg->data_location);
    } else if (has_payload(p)) {
        return accel_fail(ACCEL_EMODEL, "its elements are stored twice, here and in a data file");
    } else {
        ACCEL_TRY(unsafe_data(t, r, msg));
    }
    t->origin = p;
    p->tensor = t;
    return ACCEL_OK;
}
