/* The scan of the wire format, and the window through which the model file is read.
 *
 * protobuf-c has no nesting limit, copies payloads and merges what comes twice. So everything is
 * proven here first, driven by the descriptors that protoc-c made from onnx.proto: a known field
 * must have its wire type, a known message is descended into, all else is stepped over by its
 * length. The window keeps 64 KiB; a payload costs one jump. Recursion ends at the nesting cap. */
#include "onnx/onnx_int.h"

#include "base/alloc.h"
#include "onnx/onnx.pb-c.h"

#include <string.h>

#define NESTING_MAX 100
#define WINDOW_SIZE ((size_t)1 << 16)
#define VARINT_MAX  10
#define LONG_FIELD  ((uint64_t)1 << 16) /* from here on a field that nobody reads is a part */

struct accel_window {
    uint64_t at; /* position in the file of bytes[0] */
    size_t n;
    uint8_t bytes[WINDOW_SIZE];
};

struct wire_field {
    int number, type;
    uint64_t start, body, end;
};

struct scan {
    struct accel_onnx *x;
    uint64_t at;
    uint64_t seen;            /* numbers of the fields (bits) in the message that ended last */
    struct accel_part *spare; /* one that was not needed */
};

/* Bytes from `at` on: *p with *n of them, at least `want` unless the file ends. */
static enum accel_err peek(struct accel_onnx *x, uint64_t at, size_t want, const uint8_t **p,
                           size_t *n)
{
    struct accel_window *w = x->window;
    if (at < w->at || at - w->at > w->n || w->n - (at - w->at) < want) {
        uint64_t left = x->file->size - at;
        w->n = 0;
        size_t size = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;
        ACCEL_TRY(accel_file_read(x->file, at, size, w->bytes));
        w->at = at;
        w->n = size;
    }
    *p = w->bytes + (at - w->at);
    *n = w->n - (size_t)(at - w->at);
    return ACCEL_OK;
}

enum accel_err accel_wire_read(struct accel_onnx *x, uint64_t offset, uint64_t size, void *to)
{
    if (size > WINDOW_SIZE)
        return accel_file_read(x->file, offset, size, to);
    const uint8_t *p;
    size_t n;
    if (!size)
        return ACCEL_OK;
    ACCEL_TRY(peek(x, offset, (size_t)size, &p, &n));
    if (n < size)
        return accel_fail(ACCEL_EMODEL, "the file ends at byte %llu",
                          (unsigned long long)(offset + n));
    memcpy(to, p, (size_t)size);
    return ACCEL_OK;
}

static enum accel_err damaged(uint64_t at, const char *what)
{
    return accel_fail(ACCEL_EMODEL, "not an ONNX model, or damaged: %s at byte %llu", what,
                      (unsigned long long)at);
}

/* A varint that ends before `end`. */
static enum accel_err varint(uint64_t *out, struct scan *s, uint64_t end)
{
    const uint8_t *p;
    size_t n;
    ACCEL_TRY(peek(s->x, s->at, VARINT_MAX, &p, &n));
    if (end - s->at < n)
        n = (size_t)(end - s->at);
    uint64_t v = 0;
    for (size_t i = 0; i < n && i < VARINT_MAX; i++) {
        v |= (uint64_t)(p[i] & 0x7f) << 7 * i;
        if (p[i] < 0x80) {
            s->at += i + 1;
            *out = v;
            return ACCEL_OK;
        }
    }
    return damaged(s->at, n < VARINT_MAX ? "a number is cut off" : "a number does not end");
}

/* Reads tag and length at s->at; afterwards s->at is the content's start. */
static enum accel_err next_field(struct wire_field *f, struct scan *s, uint64_t end)
{
    uint64_t tag, size = 0;
    f->start = s->at;
    ACCEL_TRY(varint(&tag, s, end));
    f->type = (int)(tag & 7);
    if (tag >> 3 == 0 || tag >> 32 || s->at - f->start > 5)
        return damaged(f->start, "a field has no valid number");
    f->number = (int)(tag >> 3);
    f->body = s->at;
    switch (f->type) {
    case 0: {
        uint64_t v;
        ACCEL_TRY(varint(&v, s, end));
        size = s->at - f->body;
        s->at = f->body;
        break;
    }
    case 1:
        size = 8;
        break;
    case 2:
        ACCEL_TRY(varint(&size, s, end));
        f->body = s->at;
        break;
    case 5:
        size = 4;
        break;
    default:
        return damaged(f->start, f->type < 5 ? "a group" : "a field of no known form");
    }
    if (size > end - f->body)
        return accel_fail(ACCEL_EMODEL,
                          "not an ONNX model, or damaged: field %d at byte %llu has %llu bytes, "
                          "only %llu are left",
                          f->number, (unsigned long long)f->start, (unsigned long long)size,
                          (unsigned long long)(end - f->body));
    f->end = f->body + size;
    return ACCEL_OK;
}

static bool type_fits(const ProtobufCFieldDescriptor *d, int type)
{
    switch (d->type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return type == 2;
    case PROTOBUF_C_TYPE_FLOAT:
        return type == 5 || (type == 2 && d->label == PROTOBUF_C_LABEL_REPEATED);
    case PROTOBUF_C_TYPE_DOUBLE:
        return type == 1 || (type == 2 && d->label == PROTOBUF_C_LABEL_REPEATED);
    default:
        return type == 0 || (type == 2 && d->label == PROTOBUF_C_LABEL_REPEATED);
    }
}

static enum accel_err check_name(struct scan *s, const struct wire_field *f)
{
    for (uint64_t at = f->body; at < f->end;) {
        const uint8_t *p;
        size_t n;
        ACCEL_TRY(peek(s->x, at, 1, &p, &n));
        if (f->end - at < n)
            n = (size_t)(f->end - at);
        if (!n)
            return damaged(at, "a cut");
        if (memchr(p, 0, n))
            return damaged(f->start, "a name that holds a NUL");
        at += n;
    }
    return ACCEL_OK;
}

/* The kind of part that a field of a part of this kind is; -1: none. */
static int kind_of(const struct accel_part *parent, int number)
{
    static const struct {
        enum accel_part_kind parent, kind;
        int number;
    } row[] = {
        {ACCEL_PART_MODEL, ACCEL_PART_GRAPH, 7},     {ACCEL_PART_MODEL, ACCEL_PART_OPSET, 8},
        {ACCEL_PART_MODEL, ACCEL_PART_META, 14},     {ACCEL_PART_MODEL, ACCEL_PART_OTHER, 20},
        {ACCEL_PART_MODEL, ACCEL_PART_FUNCTION, 25}, {ACCEL_PART_FUNCTION, ACCEL_PART_NODE, 7},
        {ACCEL_PART_FUNCTION, ACCEL_PART_OPSET, 9},  {ACCEL_PART_FUNCTION, ACCEL_PART_ATTR, 11},
        {ACCEL_PART_FUNCTION, ACCEL_PART_VALUE, 12}, {ACCEL_PART_GRAPH, ACCEL_PART_NODE, 1},
        {ACCEL_PART_GRAPH, ACCEL_PART_TENSOR, 5},    {ACCEL_PART_GRAPH, ACCEL_PART_VALUE, 11},
        {ACCEL_PART_GRAPH, ACCEL_PART_VALUE, 12},    {ACCEL_PART_GRAPH, ACCEL_PART_VALUE, 13},
        {ACCEL_PART_GRAPH, ACCEL_PART_SPARSE, 15},   {ACCEL_PART_NODE, ACCEL_PART_ATTR, 5},
        {ACCEL_PART_ATTR, ACCEL_PART_TENSOR, 5},     {ACCEL_PART_ATTR, ACCEL_PART_GRAPH, 6},
        {ACCEL_PART_ATTR, ACCEL_PART_TENSOR, 10},    {ACCEL_PART_ATTR, ACCEL_PART_GRAPH, 11},
        {ACCEL_PART_ATTR, ACCEL_PART_SPARSE, 22},    {ACCEL_PART_ATTR, ACCEL_PART_SPARSE, 23},
        {ACCEL_PART_SPARSE, ACCEL_PART_TENSOR, 1},   {ACCEL_PART_SPARSE, ACCEL_PART_TENSOR, 2},
    };
    for (size_t i = 0; parent && i < sizeof row / sizeof *row; i++)
        if (row[i].parent == parent->kind && row[i].number == number)
            return (int)row[i].kind;
    return -1;
}

static enum accel_err part_new(struct accel_part **out, struct scan *s, struct accel_part *parent,
                               int kind, const struct wire_field *f)
{
    struct accel_part *p = s->spare ? s->spare : ACCEL_NEW(&s->x->arena, struct accel_part, 1);
    if (!p)
        return accel_fail_nomem();
    s->spare = NULL;
    *p = (struct accel_part){.kind = (enum accel_part_kind)kind,
                             .field = f->number,
                             .start = f->start,
                             .body = f->body,
                             .end = f->end,
                             .parent = parent,
                             .n_field = 1,
                             .in_file = true};
    *out = p;
    return ACCEL_OK;
}

static void part_link(struct scan *s, struct accel_part *p)
{
    if (p->parent->last)
        p->parent->last->next = p;
    else
        p->parent->child = p;
    p->parent->last = p;
    s->x->n_part++;
}

static bool is_payload(int number)
{
    return number >= 4 && number <= 11 && number != 8;
}

/* A tensor's data field becomes a part, or longer the one before it. */
static enum accel_err add_payload(struct scan *s, struct accel_part *tensor,
                                  const struct wire_field *f)
{
    struct accel_part *p = tensor->last;
    if (f->body == f->end && f->number != 6)
        return ACCEL_OK;
    if (p && p->kind == ACCEL_PART_PAYLOAD && p->field == f->number && f->number != 9 &&
        p->end == f->start) {
        p->run = true;
        p->body = p->start;
        p->end = f->end;
        p->n_field++;
        return ACCEL_OK;
    }
    ACCEL_TRY(part_new(&p, s, tensor, ACCEL_PART_PAYLOAD, f));
    part_link(s, p);
    return ACCEL_OK;
}

static enum accel_err scan_message(struct scan *s, const ProtobufCMessageDescriptor *d,
                                   struct accel_part *part, int depth, uint64_t end);

static enum accel_err scan_child(struct scan *s, const struct wire_field *f,
                                 const ProtobufCMessageDescriptor *d, struct accel_part *parent,
                                 int depth)
{
    int kind = kind_of(parent, f->number);
    struct accel_part *p = NULL;
    if (kind >= 0)
        ACCEL_TRY(part_new(&p, s, parent, kind, f));
    if (depth >= NESTING_MAX)
        return accel_fail(ACCEL_EMODEL, "messages are nested more than %d deep at byte %llu",
                          NESTING_MAX, (unsigned long long)f->start);
    ACCEL_TRY(scan_message(s, d, kind == ACCEL_PART_OTHER ? NULL : p, depth + 1, f->end));
    if (!p)
        return ACCEL_OK;
    const uint64_t floats = UINT64_C(1) << 2 | UINT64_C(1) << 7;
    if (kind == ACCEL_PART_ATTR && !p->child && !(s->seen & floats))
        s->spare = p;
    else
        part_link(s, p);
    return ACCEL_OK;
}

static enum accel_err scan_field(struct scan *s, const struct wire_field *f,
                                 const ProtobufCMessageDescriptor *d, struct accel_part *part,
                                 int depth, bool again)
{
    const ProtobufCFieldDescriptor *fd =
        protobuf_c_message_descriptor_get_field(d, (unsigned)f->number);
    if (fd && !type_fits(fd, f->type))
        return accel_fail(ACCEL_EMODEL,
                          "not an ONNX model, or damaged: %s.%s at byte %llu has wire type %d",
                          d->short_name, fd->name, (unsigned long long)f->start, f->type);
    if (fd && fd->type == PROTOBUF_C_TYPE_MESSAGE) {
        if (again && fd->label != PROTOBUF_C_LABEL_REPEATED)
            return accel_fail(ACCEL_EMODEL, "%s.%s comes twice, at byte %llu", d->short_name,
                              fd->name, (unsigned long long)f->start);
        return scan_child(s, f, fd->descriptor, part, depth);
    }
    if (part && part->kind == ACCEL_PART_TENSOR && is_payload(f->number))
        return add_payload(s, part, f);
    bool doc = fd && strcmp(fd->name, "doc_string") == 0;
    if (fd && fd->type == PROTOBUF_C_TYPE_STRING && !doc)
        return check_name(s, f);
    if (part && part->kind != ACCEL_PART_ATTR && (!fd || doc) && f->end - f->body >= LONG_FIELD) {
        struct accel_part *p;
        ACCEL_TRY(part_new(&p, s, part, ACCEL_PART_OTHER, f));
        part_link(s, p);
    }
    return ACCEL_OK;
}

static enum accel_err scan_message(struct scan *s, const ProtobufCMessageDescriptor *d,
                                   struct accel_part *part, int depth, uint64_t end)
{
    uint64_t seen = 0;
    while (s->at < end) {
        struct wire_field f;
        ACCEL_TRY(next_field(&f, s, end));
        uint64_t bit = f.number < 64 ? UINT64_C(1) << f.number : 0;
        ACCEL_TRY(scan_field(s, &f, d, part, depth, (seen & bit) != 0));
        seen |= bit;
        s->at = f.end;
    }
    s->seen = seen;
    return ACCEL_OK;
}

enum accel_err accel_wire_scan(struct accel_onnx *x)
{
    struct scan s = {.x = x};
    if (!x->window)
        x->window = accel_calloc(1, sizeof *x->window);
    x->root = ACCEL_NEW(&x->arena, struct accel_part, 1);
    if (!x->window || !x->root)
        return accel_fail_nomem();
    *x->root = (struct accel_part){.kind = ACCEL_PART_MODEL, .end = x->file->size, .in_file = true};
    x->n_part = 1;
    return scan_message(&s, &onnx__model__descriptor, x->root, 1, x->file->size);
}

static bool left_out(const struct accel_part *p, bool skip_children)
{
    return p->in_file &&
           (skip_children || p->kind == ACCEL_PART_PAYLOAD || p->kind == ACCEL_PART_OTHER);
}

enum accel_err accel_part_read(uint8_t **out, size_t *size, const struct accel_onnx *x,
                               const struct accel_part *p, bool skip_children)
{
    uint64_t n = p->end - p->body, at = p->body, done = 0;
    for (const struct accel_part *c = p->child; c; c = c->next)
        n -= left_out(c, skip_children) ? c->end - c->start : 0;
    uint8_t *bytes = accel_calloc((size_t)n, 1);
    if (!bytes)
        return accel_fail_nomem();
    enum accel_err err = ACCEL_OK;
    for (const struct accel_part *c = p->child; c && !err; c = c->next)
        if (left_out(c, skip_children)) {
            err = accel_wire_read((struct accel_onnx *)x, at, c->start - at, bytes + done);
            done += c->start - at;
            at = c->end;
        }
    if (!err)
        err = accel_wire_read((struct accel_onnx *)x, at, p->end - at, bytes + done);
    if (err) {
        accel_free(bytes);
        return err;
    }
    *out = bytes;
    *size = (size_t)n;
    return ACCEL_OK;
}
