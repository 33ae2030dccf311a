/* threads.h - how many threads compute, where they run, and loops over independent items.
 *
 * One thread unless the program or OMP_NUM_THREADS says more: the same bytes on every machine.
 * The threads are those of libgomp, which oneDNN uses too; it is opened when a second thread is
 * first wanted, so that OMP_PROC_BIND and OMP_WAIT_POLICY mean what they always do. */
#ifndef ACCEL_BASE_THREADS_H
#define ACCEL_BASE_THREADS_H

#include <stdint.h>

#include "base/err.h"

#define ACCEL_THREADS_MAX 65536

/* The number for everything that starts later; 0: OMP_NUM_THREADS, else 1. Call it before the first
 * model is planned. */
void accel_threads_set(int n);
int accel_threads_get(void);

/**
 * Binds the process to processors. To be called before there are other threads.
 *
 * @param[out] n  how many they are
 * @param list    "0-3,5"
 * @return EARG: not such a list, or a processor that is not there or not ours; nothing is changed
 */
enum accel_err accel_threads_pin(int *n, const char *list) ACCEL_CHECKED;

/* Does the items from … to - 1. */
typedef void (*accel_work)(void *ctx, int64_t from, int64_t to);

/**
 * Does items 0 … n - 1, which must not depend on each other: the result is the same for any number
 * of threads. Small work, and work inside of such work, is done by the caller alone.
 *
 * @param cost  operations per item, roughly
 */
void accel_threads_run(accel_work work, void *ctx, int64_t n, int64_t cost);

#endif
