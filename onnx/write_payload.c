/* From stored elements to the bytes of a payload field.
 *
 * Fixed-width fields (raw_data, float_data, double_data) are the elements as they are. int32_data
 * and its like hold one varint per element (16-bit floats and bytes as unsigned patterns, signed
 * integers sign-extended), so their size depends on the values: the tensor is streamed once to
 * count, once to send. The two payloads of a sparse tensor are the elements that are not zero, and
 * their indices. */
#include "onnx/write_int.h"

#include "base/alloc.h"

#include <string.h>

#define ROOM ((size_t)1 << 16)

struct stream {
    struct accel_write *w;
    const struct accel_tensor *t;
    enum accel_part_form form;
    size_t width; /* bytes of one entry in the stored payload */
    bool sign;
    uint64_t size; /* bytes made so far */
    bool count_only;
    size_t n;
    uint8_t *room; /* [ROOM + 16] */
};

static enum accel_err flush(struct stream *s)
{
    size_t n = s->n;
    s->n = 0;
    return accel_emit_bytes(s->w, s->room, n);
}

/* One entry of at most 8 bytes, as the integer its field would hold. */
static uint64_t entry(const uint8_t *at, size_t width, bool sign)
{
    uint64_t v = 0;
    memcpy(&v, at, width);
    if (sign && width < 8 && v >> (8 * width - 1))
        v |= UINT64_MAX << (8 * width);
    return v;
}

static bool is_zero(const uint8_t *at, size_t width)
{
    return entry(at, width, false) == 0;
}

/* A piece of the tensor. `first` and `count` are elements; entries are bytes for sub-byte types. */
static enum accel_err take(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct stream *s = ctx;
    const uint8_t *at = elem;
    if (s->form == ACCEL_FORM_STORED) {
        uint64_t size = 0;
        (void)accel_dtype_size(s->t->dtype, count, &size);
        s->size += size;
        return accel_emit_bytes(s->w, elem, size);
    }
    uint64_t n = count;
    if (s->width == 1)
        (void)accel_dtype_size(s->t->dtype, count, &n);
    for (uint64_t i = 0; i < n; i++, at += s->width) {
        size_t made = 0;
        uint8_t one[10];
        uint64_t index = first + i;
        if (s->form == ACCEL_FORM_VARINT) {
            made = accel_varint_encode(one, entry(at, s->width, s->sign));
        } else if (!is_zero(at, s->width)) {
            made = s->form == ACCEL_FORM_NONZERO ? s->width : sizeof index;
            memcpy(one, s->form == ACCEL_FORM_NONZERO ? (const void *)at : &index, made);
        }
        s->size += made;
        if (s->count_only)
            continue;
        memcpy(s->room + s->n, one, sizeof one);
        s->n += made;
        if (s->n >= ROOM)
            ACCEL_TRY(flush(s));
    }
    return ACCEL_OK;
}

static enum accel_err run(uint64_t *size, struct accel_write *w, const struct accel_tensor *t,
                          enum accel_part_form form, bool count_only)
{
    const struct accel_dtype_info *d = accel_dtype_find((int)t->dtype);
    size_t width = d && d->bits > 8 ? (size_t)d->bits / 8 : 1;
    if (form != ACCEL_FORM_STORED && width > 8)
        return accel_fail(ACCEL_ENOSUP, "tensor '%.200s' of %s cannot be rewritten", t->name,
                          d->name);
    struct stream s = {.w = w, .t = t, .form = form, .width = width, .count_only = count_only};
    s.sign = d && d->cls == ACCEL_CLASS_INT && d->is_signed && d->bits >= 8;
    if (form != ACCEL_FORM_STORED && !count_only) {
        s.room = accel_calloc(ROOM + 16, 1);
        if (!s.room)
            return accel_fail_nomem();
    }
    enum accel_err err = accel_tensor_stream(t, &w->buffer, take, &s);
    if (!err && s.n)
        err = flush(&s);
    accel_free(s.room);
    *size = s.size;
    return err;
}

enum accel_err accel_nonzero_count(uint64_t *out, struct accel_write *w,
                                   const struct accel_tensor *t)
{
    uint64_t size;
    ACCEL_TRY(run(&size, w, t, ACCEL_FORM_INDEX, true));
    *out = size / sizeof(int64_t);
    return ACCEL_OK;
}

enum accel_err accel_payload_measure(struct accel_write *w, struct accel_part *payload)
{
    if (payload->form != ACCEL_FORM_STORED)
        return run(&payload->new_size, w, payload->tensor, payload->form, true);
    payload->new_size = payload->tensor->size;
    return ACCEL_OK;
}

enum accel_err accel_payload_emit(struct accel_write *w, const struct accel_part *payload)
{
    const struct accel_tensor *t = payload->tensor;
    uint64_t size = payload->new_size;
    if (w->out || t->edit) /* counted only, and nobody waits for the edit: no need to read */
        ACCEL_TRY(run(&size, w, t, payload->form, false));
    else
        w->n_out += size;
    if (size != payload->new_size)
        return accel_fail(ACCEL_EIO, "tensor '%.200s' gave %llu bytes, then %llu", t->name,
                          (unsigned long long)payload->new_size, (unsigned long long)size);
    w->done += t->size;
    return w->opt->progress ? w->opt->progress(w->opt->ctx, w->done, w->total) : ACCEL_OK;
}
