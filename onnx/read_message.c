/* Unpacking through protobuf-c. Its many small allocations come from one block that is used again
 * for every message (larger ones from an arena that is then cleared), so that nothing leaks when
 * it gives up half way and a model of a million nodes costs no million frees. */
#include "onnx/read_int.h"

#include "base/alloc.h"

#include <string.h>

#define ROOM_SIZE ((size_t)1 << 16)

static void *take(void *ctx, size_t size)
{
    struct accel_read *r = ctx;
    size = (size + 15) / 16 * 16;
    if (size <= ROOM_SIZE - r->used) {
        r->used += size;
        return r->room + r->used - size;
    }
    void *p = accel_arena_new(&r->overflow, size, 1);
    r->no_memory |= p == NULL;
    return p;
}

static void keep(void *ctx, void *p)
{
    (void)ctx;
    (void)p;
}

enum accel_err accel_read_message(void *msg, struct accel_read *r, const struct accel_part *p,
                                  const ProtobufCMessageDescriptor *d)
{
    ProtobufCAllocator alloc = {take, keep, r};
    accel_arena_clear(&r->overflow);
    r->used = 0;
    if (!r->room && !(r->room = accel_alloc_pages(ROOM_SIZE)))
        return accel_fail_nomem();
    uint8_t *bytes;
    size_t n;
    ACCEL_TRY(accel_part_read(&bytes, &n, r->x, p, true));
    r->no_memory = false;
    ProtobufCMessage *m = protobuf_c_message_unpack(d, &alloc, n, bytes);
    accel_free(bytes);
    memcpy(msg, &m, sizeof m);
    if (!m && r->no_memory)
        return accel_fail_nomem();
    if (!m)
        return accel_fail(ACCEL_EMODEL, "not an ONNX model, or damaged: the %s at byte %llu",
                          d->short_name, (unsigned long long)p->start);
    return ACCEL_OK;
}

void accel_read_message_clear(struct accel_read *r)
{
    accel_arena_clear(&r->overflow);
    accel_free(r->room);
    r->room = NULL;
}

enum accel_err accel_read_string(const char **out, struct accel_read *r, const char *s)
{
    *out = s ? accel_arena_strndup(&r->m->arena, s, strlen(s)) : "";
    return *out ? ACCEL_OK : accel_fail_nomem();
}
