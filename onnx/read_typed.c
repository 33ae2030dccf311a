/* Typed data fields. float_data and double_data in one packed piece are little-endian arrays in
 * the file: the tensor points at them. The others are varints, one per element or (below 8 bits)
 * per byte of packed elements; and protobuf lets any repeated field come unpacked and in several
 * pieces. These are counted first, compared with the dims, and then decoded into memory. */
#include "onnx/read_int.h"

#include <inttypes.h>
#include <string.h>

/* Walks the entries of all pieces of one field. */
struct entries {
    struct accel_read *r;
    const struct accel_part *piece;
    int field;
    uint64_t at, segment_end; /* in a packed segment: its end; else 0 */
};

static const char *field_name(int field)
{
    switch (field) {
    case READ_TENSOR_FLOAT:
        return "float_data";
    case READ_TENSOR_INT32:
        return "int32_data";
    case READ_TENSOR_STRING:
        return "string_data";
    case READ_TENSOR_INT64:
        return "int64_data";
    case READ_TENSOR_DOUBLE:
        return "double_data";
    default:
        return "uint64_data";
    }
}

/* The field that holds elements of this type when they are not raw. */
static int field_of(enum accel_dtype dtype)
{
    switch (dtype) {
    case ACCEL_F32:
    case ACCEL_C64:
        return READ_TENSOR_FLOAT;
    case ACCEL_F64:
    case ACCEL_C128:
        return READ_TENSOR_DOUBLE;
    case ACCEL_I64:
        return READ_TENSOR_INT64;
    case ACCEL_U32:
    case ACCEL_U64:
        return READ_TENSOR_UINT64;
    case ACCEL_STRING:
        return READ_TENSOR_STRING;
    default:
        return READ_TENSOR_INT32;
    }
}

static int fixed_width(int field)
{
    return field == READ_TENSOR_FLOAT ? 4 : field == READ_TENSOR_DOUBLE ? 8 : 0;
}

static enum accel_err varint(uint64_t *out, struct entries *e, uint64_t end)
{
    uint8_t b[10];
    size_t n = end - e->at < sizeof b ? (size_t)(end - e->at) : sizeof b;
    ACCEL_TRY(accel_wire_read(e->r->x, e->at, n, b));
    uint64_t v = 0;
    for (size_t i = 0; i < n; i++) {
        v |= (uint64_t)(b[i] & 0x7f) << 7 * i;
        if (b[i] < 0x80) {
            e->at += i + 1;
            *out = v;
            return ACCEL_OK;
        }
    }
    return accel_fail(ACCEL_EMODEL, "%s: a number at byte %" PRIu64 " does not end",
                      field_name(e->field), e->at);
}

static void next_piece(struct entries *e)
{
    do
        e->piece = e->piece->next;
    while (e->piece && e->piece->kind != ACCEL_PART_PAYLOAD);
    e->segment_end = 0;
    if (e->piece) {
        e->at = e->piece->run ? e->piece->start : e->piece->body;
        if (!e->piece->run)
            e->segment_end = e->piece->end;
    }
}

static struct entries begin(struct accel_read *r, const struct accel_part *tensor, int field)
{
    struct accel_part before = {.next = tensor->child};
    struct entries e = {.r = r, .piece = &before, .field = field};
    next_piece(&e);
    return e;
}

/* Puts e->at on an entry; *more false at the end. The scan has proven tags and lengths. */
static enum accel_err find_entry(bool *more, struct entries *e)
{
    uint64_t v;
    while (e->piece) {
        if (e->segment_end && e->at < e->segment_end)
            break;
        e->segment_end = 0;
        if (e->at >= e->piece->end) {
            next_piece(e);
            continue;
        }
        ACCEL_TRY(varint(&v, e, e->piece->end)); /* the tag */
        if ((v & 7) != 2)
            break;
        ACCEL_TRY(varint(&v, e, e->piece->end));
        e->segment_end = e->at + v;
    }
    *more = e->piece != NULL;
    return ACCEL_OK;
}

/* The bits of the entry at e->at, which is stepped over. */
static enum accel_err read_entry(uint64_t *bits, struct entries *e)
{
    uint64_t end = e->segment_end ? e->segment_end : e->piece->end;
    int width = fixed_width(e->field);
    if (!width)
        return varint(bits, e, end);
    if (end - e->at < (uint64_t)width)
        return accel_fail(ACCEL_EMODEL, "%s: its bytes are no multiple of %d", field_name(e->field),
                          width);
    *bits = 0;
    ACCEL_TRY(accel_wire_read(e->r->x, e->at, (uint64_t)width, bits));
    e->at += (uint64_t)width;
    return ACCEL_OK;
}

static enum accel_err count_entries(uint64_t *n, struct accel_read *r, const struct accel_part *p,
                                    int field)
{
    struct entries e = begin(r, p, field);
    uint64_t bits;
    bool more;
    for (*n = 0;; ++*n) {
        ACCEL_TRY(find_entry(&more, &e));
        if (!more)
            return ACCEL_OK;
        ACCEL_TRY(read_entry(&bits, &e));
    }
}

/* The stored form of one entry: the low `width` bytes, when nothing is lost above them. */
static enum accel_err store(uint8_t *to, int width, enum accel_dtype dtype, uint64_t bits,
                            int field)
{
    if (field == READ_TENSOR_INT32)
        bits = (uint64_t)(int64_t)(int32_t)(uint32_t)bits;
    int64_t v = (int64_t)bits;
    bool fits = width == 8 || fixed_width(field) ||
                (v >= -(INT64_C(1) << (8 * width - 1)) && v < INT64_C(1) << 8 * width);
    if (!fits)
        return accel_fail(ACCEL_EMODEL, "%s holds %" PRId64 ", which is no %s", field_name(field),
                          v, accel_dtype_find((int)dtype)->name);
    if (dtype == ACCEL_BOOL)
        bits = bits != 0;
    memcpy(to, &bits, (size_t)width);
    return ACCEL_OK;
}

static enum accel_err decode(struct accel_tensor *t, struct accel_read *r,
                             const struct accel_part *p, int field, uint64_t n)
{
    if (!n)
        return ACCEL_OK;
    int width = (int)(t->size / n);
    uint8_t *bytes = ACCEL_NEW(&r->m->arena, uint8_t, t->size);
    if (!bytes)
        return accel_fail_nomem();
    struct entries e = begin(r, p, field);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t bits;
        bool more;
        ACCEL_TRY(find_entry(&more, &e));
        if (!more)
            return accel_fail(ACCEL_EMODEL, "the file has changed while it was read");
        ACCEL_TRY(read_entry(&bits, &e));
        ACCEL_TRY(store(bytes + i * (uint64_t)width, width, t->dtype, bits, field));
    }
    t->data = bytes;
    return ACCEL_OK;
}

enum accel_err accel_read_typed(struct accel_tensor *t, struct accel_read *r,
                                const struct accel_part *p, int field)
{
    const struct accel_dtype_info *type = accel_dtype_find((int)t->dtype);
    if (field != field_of(t->dtype))
        return accel_fail(ACCEL_EMODEL, "elements of type %s cannot be in %s", type->name,
                          field_name(field));
    struct entries first = begin(r, p, field), second = first;
    next_piece(&second);
    uint64_t want = t->n, have;
    int width = fixed_width(field);
    if (width)
        want = t->size / (uint64_t)width;
    else if (type->bits && type->bits < 8)
        want = t->size;
    bool in_file = width && !second.piece && !first.piece->run;
    if (in_file) {
        have = (first.piece->end - first.piece->body) / (uint64_t)width;
        if ((first.piece->end - first.piece->body) % (uint64_t)width)
            return accel_fail(ACCEL_EMODEL, "%s: its bytes are no multiple of %d",
                              field_name(field), width);
    } else if (field == READ_TENSOR_STRING) {
        have = 0;
        for (struct entries e = first; e.piece; next_piece(&e))
            have += e.piece->n_field;
    } else {
        ACCEL_TRY(count_entries(&have, r, p, field));
    }
    if (have != want)
        return accel_fail(ACCEL_EMODEL, "dims need %" PRIu64 " elements, %s has %" PRIu64, want,
                          field_name(field), have);
    if (field == READ_TENSOR_STRING)
        return ACCEL_OK;
    if (!in_file)
        return decode(t, r, p, field, have);
    t->file = r->x->file;
    t->offset = first.piece->body;
    return ACCEL_OK;
}
