/* A list of chunks; the newest is filled by bumping. A request larger than a chunk gets its own,
 * put behind the newest so that the room left there stays in use. */
#include "base/arena.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>

#define ALIGN      16u
#define CHUNK_SIZE ((size_t)1 << 16)

struct accel_chunk {
    struct accel_chunk *next;
    size_t used, size;
    _Alignas(16) char data[];
};

static struct accel_chunk *chunk_new(size_t bytes)
{
    struct accel_chunk *c = accel_calloc(1, sizeof *c + bytes);
    if (c)
        c->size = bytes;
    return c;
}

void *accel_arena_new(struct accel_arena *a, size_t n, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(n, size, &bytes) || bytes > SIZE_MAX / 2)
        return NULL;
    bytes = bytes ? (bytes + ALIGN - 1) / ALIGN * ALIGN : ALIGN;
    struct accel_chunk *c = a->head;
    if (!c || c->size - c->used < bytes) {
        c = chunk_new(bytes > CHUNK_SIZE ? bytes : CHUNK_SIZE);
        if (!c)
            return NULL;
        if (bytes > CHUNK_SIZE && a->head) {
            c->next = a->head->next;
            a->head->next = c;
        } else {
            c->next = a->head;
            a->head = c;
        }
    }
    void *p = c->data + c->used;
    c->used += bytes;
    return p;
}

char *accel_arena_strndup(struct accel_arena *a, const char *s, size_t len)
{
    if (len == SIZE_MAX)
        return NULL;
    char *p = accel_arena_new(a, len + 1, 1);
    if (p && len)
        memcpy(p, s, len);
    return p;
}

struct accel_arena_mark accel_arena_mark(const struct accel_arena *a)
{
    return (struct accel_arena_mark){a->head, a->head ? a->head->used : 0};
}

void accel_arena_rewind(struct accel_arena *a, struct accel_arena_mark mark)
{
    while (a->head && a->head != mark.head) {
        struct accel_chunk *next = a->head->next;
        accel_free(a->head);
        a->head = next;
    }
    if (!a->head)
        return;
    memset(a->head->data + mark.used, 0, a->head->used - mark.used);
    a->head->used = mark.used;
}

void accel_arena_clear(struct accel_arena *a)
{
    for (struct accel_chunk *c = a->head, *next; c; c = next) {
        next = c->next;
        accel_free(c);
    }
    a->head = NULL;
}
