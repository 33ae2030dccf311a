/* arena.h - memory that is given back all at once. */
#ifndef ACCEL_BASE_ARENA_H
#define ACCEL_BASE_ARENA_H

#include <stddef.h>

struct accel_arena {
    struct accel_chunk *head; /* newest chunk; NULL when empty */
};

/* Zeroed memory for `n` items of `size` bytes, 16-byte aligned; NULL when it cannot be had.
 * Lives until accel_arena_clear(). Cost: a pointer bump; chunks of 64 KiB. */
void *accel_arena_new(struct accel_arena *a, size_t n, size_t size);

/* A copy of `len` bytes with a NUL behind it; NULL when it cannot be had. */
char *accel_arena_strndup(struct accel_arena *a, const char *s, size_t len);

/* Where the arena stands; accel_arena_rewind() gives back what was taken since, but for requests of
 * more than 64 KiB, which stay until the end. */
struct accel_arena_mark {
    struct accel_chunk *head;
    size_t used;
};
struct accel_arena_mark accel_arena_mark(const struct accel_arena *a);
void accel_arena_rewind(struct accel_arena *a, struct accel_arena_mark mark);

/* Gives everything back. Safe on a zeroed arena. */
void accel_arena_clear(struct accel_arena *a);

#define ACCEL_NEW(arena, type, n) ((type *)accel_arena_new((arena), (size_t)(n), sizeof(type)))

#endif
