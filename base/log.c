/* A map from text to entry tells whether a warning is there already, so that a file with a million
 * faults costs no more than linear time. */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

void accel_warn(struct accel_log *log, const char *fmt, ...)
{
    char line[2048];
    if (!log)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    if (accel_map_find(&log->seen, line))
        return;
    char *copy = accel_calloc(strlen(line) + 1, 1);
    if (!copy || !ACCEL_GROW(log->text, log->cap, log->n + 1) ||
        !accel_map_put(&log->seen, strcpy(copy, line), copy)) {
        accel_free(copy);
        return;
    }
    log->text[log->n++] = copy;
}

void accel_log_clear(struct accel_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        accel_free(log->text[i]);
    accel_free(log->text);
    accel_map_clear(&log->seen);
    *log = (struct accel_log){0};
}
