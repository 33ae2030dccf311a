/* map.h - a hash table from names to pointers. */
#ifndef ACCEL_BASE_MAP_H
#define ACCEL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>

/* Zero-initialise. Keys are borrowed: they must outlive the map. Open addressing, keyed hash (files
 * cannot choose colliding names), expected constant time. */
struct accel_map {
    struct accel_map_slot *slot;
    size_t n, cap;
};

/* The pointer stored under `key`, or NULL. */
void *accel_map_find(const struct accel_map *m, const char *key);

/* Stores `value` (not NULL) under `key`, replacing; false when memory is short. */
bool accel_map_put(struct accel_map *m, const char *key, void *value);

void accel_map_clear(struct accel_map *m);

#endif
