/* Linear probing over a power of two, at most two thirds full. The hash is FNV-1a from a start
 * value that differs from process to process and a final mix. */
#include "base/map.h"

#include "base/alloc.h"

#include <stdint.h>
#include <string.h>
#include <sys/random.h>

struct accel_map_slot {
    const char *key;
    void *value;
    uint64_t hash;
};

static uint64_t hash_of(const char *s)
{
    static uint64_t start; /* a race writes some random number twice: set before threads exist */
    if (!start) {
        if (getrandom(&start, sizeof start, GRND_NONBLOCK) != sizeof start)
            start = (uintptr_t)&start;
        start |= 1;
    }
    uint64_t h = start;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static struct accel_map_slot *locate(const struct accel_map *m, const char *key, uint64_t h)
{
    size_t i = h & (m->cap - 1);
    while (m->slot[i].key && (m->slot[i].hash != h || strcmp(m->slot[i].key, key) != 0))
        i = (i + 1) & (m->cap - 1);
    return &m->slot[i];
}

void *accel_map_find(const struct accel_map *m, const char *key)
{
    return m->n ? locate(m, key, hash_of(key))->value : NULL;
}

static bool grow(struct accel_map *m)
{
    struct accel_map bigger = {NULL, m->n, m->cap ? m->cap * 2 : 16};
    bigger.slot = accel_calloc(bigger.cap, sizeof *bigger.slot);
    if (!bigger.slot)
        return false;
    for (size_t i = 0; i < m->cap; i++)
        if (m->slot[i].key)
            *locate(&bigger, m->slot[i].key, m->slot[i].hash) = m->slot[i];
    accel_free(m->slot);
    *m = bigger;
    return true;
}

bool accel_map_put(struct accel_map *m, const char *key, void *value)
{
    if (3 * (m->n + 1) > 2 * m->cap && !grow(m))
        return false;
    uint64_t h = hash_of(key);
    struct accel_map_slot *s = locate(m, key, h);
    m->n += s->key == NULL;
    *s = (struct accel_map_slot){s->key ? s->key : key, value, h};
    return true;
}

void accel_map_clear(struct accel_map *m)
{
    accel_free(m->slot);
    *m = (struct accel_map){0};
}
