#include "base/log.h"

#include "base/alloc.h"
#include "base/str.h"

#include <stdio.h>
#include <string.h>

void accel_warn(struct accel_log *log, const char *fmt, ...)
{
    char line[2048];
    if (!log)
        return;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < log->n; i++)
        if (strcmp(log->text[i], line) == 0)
            return;
    char *copy = accel_calloc(strlen(line) + 1, 1);
    if (!copy || !ACCEL_GROW(log->text, log->cap, log->n + 1)) {
        accel_free(copy);
        return;
    }
    log->text[log->n++] = strcpy(copy, line);
}

void accel_log_clear(struct accel_log *log)
{
    for (size_t i = 0; i < log->n; i++)
        accel_free(log->text[i]);
    accel_free(log->text);
    *log = (struct accel_log){0};
}
