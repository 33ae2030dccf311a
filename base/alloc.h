/* alloc.h - the only door to the heap, with a hook that lets tests fail the n-th allocation. */
#ifndef ACCEL_BASE_ALLOC_H
#define ACCEL_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* Memory for n items of `size` bytes, zeroed; NULL when the product overflows or memory is short.
 * n or size 0 gives a pointer that may only be freed. Free with accel_free(). */
void *accel_calloc(size_t n, size_t size);

/* Resizes to n items of `size` bytes (new ones not zeroed); NULL leaves `old` as it was. */
void *accel_realloc(void *old, size_t n, size_t size);

/* 4096-byte aligned block for I/O, not zeroed; NULL when memory is short. Free with accel_free().
 */
void *accel_alloc_pages(size_t size);

void accel_free(void *p);

/* For tests: the allocation number `nth` (1, 2, …) from now fails, and when `forever` is set all
 * after it too. 0 switches the hook off. Not thread-safe. */
void accel_alloc_fail_at(long nth, bool forever);

/* Allocations since the last accel_alloc_fail_at(). */
long accel_alloc_count(void);

/* Grows a typed array to hold at least `need` items, doubling; evaluates to false when memory is
 * short. if (!ACCEL_GROW(list, cap, n + 1)) return accel_fail_nomem();   */
#define ACCEL_GROW(ptr, cap, need) accel_grow((void **)&(ptr), &(cap), (need), sizeof *(ptr))
bool accel_grow(void **ptr, size_t *cap, size_t need, size_t size);

#endif
