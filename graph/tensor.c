/* Every pass over a tensor is one loop: read a piece into the buffer, let the edit change it there,
 * hand it on. A file range is read with the pages around it, so that the read can go around the
 * page cache whatever the payload's offset is; the elements then begin `slip` bytes into the
 * buffer, which is why nobody may count on their alignment.
 *
 * An edit that must see everything before its first change (a threshold) gets the whole payload
 * when it fits in the buffer, and the same bytes are then changed and handed on: one read. Larger
 * tensors are read once more per pass the edit needs; memory stays the buffer. */
#include "graph/tensor.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/selection.h"

enum { PAGE = 4096 };
/* Bytes changed and handed on at a time: small enough to stay in the cache between the two, large
 * enough for a write around the page cache. */
static const uint64_t piece_size = (uint64_t)2 << 20;

enum accel_err accel_buffer_init(struct accel_buffer *b, size_t size)
{
    *b = (struct accel_buffer){0};
    if (!size)
        size = ACCEL_BUFFER_SIZE;
    if (size > SIZE_MAX - PAGE)
        return accel_fail_nomem();
    size = (size + PAGE - 1) / PAGE * PAGE;
    b->data = accel_alloc_pages(size);
    if (!b->data)
        return accel_fail_nomem();
    b->size = size;
    return ACCEL_OK;
}

void accel_buffer_clear(struct accel_buffer *b)
{
    if (!b->borrowed)
        accel_free(b->data);
    *b = (struct accel_buffer){0};
}

void accel_tensor_set_edit(struct accel_tensor *t, struct accel_edit *edit)
{
    if (t->edit && t->edit != edit)
        t->edit->ops->free(t->edit);
    t->edit = edit;
}

/* Elements that share a byte: 1, or 2 and 4 for sub-byte types. */
static uint64_t unit_of(int bits)
{
    return bits < 8 ? 8 / (uint64_t)bits : 1;
}

static uint64_t bytes_of(int bits, uint64_t n)
{
    uint64_t unit = unit_of(bits);
    return bits < 8 ? n / unit + (n % unit != 0) : n * ((uint64_t)bits / 8);
}

static enum accel_err width_get(int *bits, const struct accel_tensor *t)
{
    const struct accel_dtype_info *r = accel_dtype_find((int)t->dtype);
    if (!r || !r->bits)
        return accel_fail(ACCEL_ENOSUP, "'%.200s' has elements without a fixed width (%s)",
                          t->name ? t->name : "", r ? r->name : "unknown type");
    if (t->size && !t->data && !t->file)
        return accel_fail(ACCEL_EMODEL, "the data of '%.200s' were not read",
                          t->name ? t->name : "");
    *bits = r->bits;
    return ACCEL_OK;
}

/* Buffer bytes that `size` payload bytes may need: pages before and behind. */
static uint64_t room_for(uint64_t size)
{
    return size + 2 * (uint64_t)PAGE;
}

/* Makes payload bytes [at, at + size) readable at *elem: in the buffer, or in place when the
 * payload is in memory and `keep` says that nobody will write to it. */
static enum accel_err piece_read(const struct accel_tensor *t, struct accel_buffer *b, uint64_t at,
                                 uint64_t size, bool keep, void **elem)
{
    if (t->selection) {
        *elem = b->data;
        return accel_selection_read(t, at, size, b->data);
    }
    if (t->data) {
        const char *src = (const char *)t->data + at;
        if (keep) {
            *elem = (void *)(uintptr_t)src;
            return ACCEL_OK;
        }
        memcpy(b->data, src, size);
        *elem = b->data;
        return ACCEL_OK;
    }
    uint64_t from = t->offset + at, to = from + size, slip = from % PAGE;
    if (size < ((uint64_t)1 << 20)) {
        *elem = b->data;
        return accel_file_read(t->file, from, size, b->data);
    }
    *elem = (char *)b->data + slip;
    uint64_t end = (to + PAGE - 1) / PAGE * PAGE;
    if (end <= t->file->size)
        return accel_file_read(t->file, from - slip, end - (from - slip), b->data);
    uint64_t whole = to / PAGE * PAGE; /* the file ends inside this page */
    ACCEL_TRY(accel_file_read(t->file, from - slip, whole - (from - slip), b->data));
    return accel_file_read(t->file, whole, to - whole, (char *)b->data + (whole - (from - slip)));
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

/* Elements per piece: as many whole grains as `bytes` holds, at least one. */
static uint64_t piece_count(int bits, uint64_t grain, uint64_t bytes, uint64_t n)
{
    uint64_t unit = unit_of(bits), step;
    if (__builtin_mul_overflow(grain / gcd(grain, unit), unit, &step) || step > n)
        step = n;
    uint64_t fit = bits < 8 ? bytes * unit : bytes / ((uint64_t)bits / 8);
    return fit >= n ? n : fit / step ? fit / step * step : step;
}

static enum accel_err buffer_fit(struct accel_buffer *b, uint64_t need)
{
    if (need <= b->size)
        return ACCEL_OK;
    struct accel_buffer more;
    if (need > SIZE_MAX)
        return accel_fail_nomem();
    ACCEL_TRY(accel_buffer_init(&more, (size_t)need));
    accel_buffer_clear(b);
    *b = more;
    return ACCEL_OK;
}

/* Reads piece after piece; `edit` NULL: as stored. */
static enum accel_err pieces_pass(const struct accel_tensor *t, struct accel_buffer *b, int bits,
                                  struct accel_edit *edit, accel_sink sink, void *ctx)
{
    uint64_t most = b->size > room_for(piece_size) ? piece_size
                    : b->size > room_for(PAGE)     ? b->size - room_for(0)
                                                   : PAGE;
    uint64_t count = piece_count(bits, edit ? edit->grain : 1, most, t->n);
    ACCEL_TRY(buffer_fit(b, room_for(bytes_of(bits, count))));
    for (uint64_t first = 0; first < t->n; first += count) {
        uint64_t n = t->n - first < count ? t->n - first : count;
        void *elem;
        ACCEL_TRY(piece_read(t, b, bytes_of(bits, first), bytes_of(bits, n), !edit, &elem));
        if (edit)
            ACCEL_TRY(edit->ops->apply(edit, first, n, elem));
        ACCEL_TRY(sink(ctx, first, n, elem));
    }
    return ACCEL_OK;
}

/* The whole payload lies in the buffer. */
static enum accel_err whole_pass(const struct accel_tensor *t, int bits, char *elem,
                                 struct accel_edit *edit, accel_sink sink, void *ctx)
{
    uint64_t count = piece_count(bits, edit->grain, piece_size, t->n);
    for (uint64_t first = 0; first < t->n; first += count) {
        uint64_t n = t->n - first < count ? t->n - first : count;
        char *at = elem + bytes_of(bits, first);
        ACCEL_TRY(edit->ops->apply(edit, first, n, at));
        ACCEL_TRY(sink(ctx, first, n, at));
    }
    return ACCEL_OK;
}

enum accel_err accel_tensor_scan(const struct accel_tensor *t, struct accel_buffer *b,
                                 accel_sink sink, void *ctx)
{
    int bits = 0;
    if (!t->n)
        return ACCEL_OK;
    ACCEL_TRY(width_get(&bits, t));
    return pieces_pass(t, b, bits, NULL, sink, ctx);
}

enum accel_err accel_tensor_stream(const struct accel_tensor *t, struct accel_buffer *b,
                                   accel_sink sink, void *ctx)
{
    struct accel_edit *edit = t->edit;
    int bits = 0;
    if (!edit)
        return accel_tensor_scan(t, b, sink, ctx);
    if (!t->n)
        return edit->ops->prepare(edit, t, "", NULL, 0);
    ACCEL_TRY(width_get(&bits, t));
    if (!edit->prepared && t->data && !t->selection) {
        ACCEL_TRY(edit->ops->prepare(edit, t, t->data, NULL, 0));
    } else if (!edit->prepared && room_for(t->size) <= b->size) {
        void *elem;
        ACCEL_TRY(piece_read(t, b, 0, t->size, false, &elem));
        ACCEL_TRY(edit->ops->prepare(edit, t, elem, NULL, 0));
        return whole_pass(t, bits, elem, edit, sink, ctx);
    } else {
        ACCEL_TRY(edit->ops->prepare(edit, t, NULL, b->data, b->size));
    }
    return pieces_pass(t, b, bits, edit, sink, ctx);
}

enum accel_err accel_tensor_read(const struct accel_tensor *t, uint64_t first, uint64_t count,
                                 void *elem)
{
    int bits = 0;
    if (!count)
        return ACCEL_OK;
    ACCEL_TRY(width_get(&bits, t));
    uint64_t at = bytes_of(bits, first), size = bytes_of(bits, count);
    if (t->selection)
        return accel_selection_read(t, at, size, elem);
    if (t->data) {
        memcpy(elem, (const char *)t->data + at, size);
        return ACCEL_OK;
    }
    return accel_file_read(t->file, t->offset + at, size, elem);
}
