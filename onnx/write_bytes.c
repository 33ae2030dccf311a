/* Encoding by hand: the writer only ever appends fields to a message that it copies otherwise, and
 * a field is two lines. Packing through generated structs would need every message unpacked first
 * and would put fields into an order of its own. */
#include "onnx/write_int.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

size_t accel_varint_encode(uint8_t *to, uint64_t v)
{
    size_t n = 0;
    for (; v >= 0x80; v >>= 7)
        to[n++] = (uint8_t)(v | 0x80);
    to[n++] = (uint8_t)v;
    return n;
}

size_t accel_varint_size(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

void accel_put_varint(struct accel_str *s, uint64_t v)
{
    uint8_t b[10];
    accel_str_addn(s, (const char *)b, accel_varint_encode(b, v));
}

void accel_put_tag(struct accel_str *s, int field, int wire_type)
{
    accel_put_varint(s, (uint64_t)field << 3 | (unsigned)wire_type);
}

void accel_put_int(struct accel_str *s, int field, int64_t v)
{
    accel_put_tag(s, field, VARINT);
    accel_put_varint(s, (uint64_t)v);
}

void accel_put_float(struct accel_str *s, int field, float v)
{
    accel_put_tag(s, field, FIXED32);
    accel_str_addn(s, (const char *)&v, sizeof v);
}

void accel_put_bytes(struct accel_str *s, int field, const void *bytes, size_t n)
{
    accel_put_tag(s, field, BYTES);
    accel_put_varint(s, n);
    accel_str_addn(s, bytes, n);
}

void accel_put_string(struct accel_str *s, int field, const char *text)
{
    accel_put_bytes(s, field, text, strlen(text));
}

static bool varint_next(uint64_t *v, const uint8_t **at, const uint8_t *end)
{
    *v = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t b = *(*at)++;
        *v |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            return true;
    }
    return false;
}

/* Moves behind the group that was opened with `number`. */
static bool group_skip(const uint8_t **at, const uint8_t *end, uint64_t number)
{
    int depth = 1;
    while (depth > 0) {
        uint64_t tag, v;
        if (!varint_next(&tag, at, end))
            return false;
        switch (tag & 7) {
        case VARINT:
            if (!varint_next(&v, at, end))
                return false;
            continue;
        case 3:
            depth++;
            continue;
        case 4:
            if (--depth == 0 && tag >> 3 != number)
                return false;
            continue;
        case FIXED64:
            v = 8;
            break;
        case FIXED32:
            v = 4;
            break;
        case BYTES:
            if (!varint_next(&v, at, end))
                return false;
            break;
        default:
            return false;
        }
        if (v > (uint64_t)(end - *at))
            return false;
        *at += v;
    }
    return true;
}

bool accel_field_next(struct accel_field *f, const uint8_t **at, const uint8_t *end)
{
    uint64_t tag, n = 0;
    f->start = *at;
    if (*at >= end || !varint_next(&tag, at, end) || tag >> 3 == 0 || tag >> 3 > INT32_MAX)
        return false;
    f->number = (int)(tag >> 3);
    f->wire_type = (int)(tag & 7);
    f->body = *at;
    bool ok = true;
    switch (f->wire_type) {
    case VARINT:
        ok = varint_next(&tag, at, end);
        break;
    case FIXED64:
        n = 8;
        break;
    case FIXED32:
        n = 4;
        break;
    case BYTES:
        ok = varint_next(&n, at, end);
        f->body = *at;
        break;
    case 3:
        ok = group_skip(at, end, tag >> 3);
        break;
    default:
        return false;
    }
    if (!ok || n > (uint64_t)(end - *at))
        return false;
    *at += n;
    f->end = *at;
    return true;
}

void accel_put_others(struct accel_str *s, const uint8_t *bytes, size_t n, uint32_t drop)
{
    const uint8_t *at = bytes;
    struct accel_field f;
    while (accel_field_next(&f, &at, bytes + n))
        if (f.number > 31 || !(drop >> f.number & 1))
            accel_str_addn(s, (const char *)f.start, (size_t)(f.end - f.start));
}
