/* log.h - warnings: things a user should read that stop nothing. */
#ifndef ACCEL_BASE_LOG_H
#define ACCEL_BASE_LOG_H

#include <stddef.h>

#include "base/map.h"

/* Warnings in the order they came, each once. Zero-initialise. The library never prints them. */
struct accel_log {
    char **text;
    size_t n, cap;
    struct accel_map seen;
};

/* Adds a warning unless an equal one is there. When memory is short the warning is dropped: it
 * stops nothing. `log` may be NULL. */
void accel_warn(struct accel_log *log, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void accel_log_clear(struct accel_log *log);

#endif
