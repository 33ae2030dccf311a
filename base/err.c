/* The text lives in a thread-local buffer, so that failing needs no memory. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char text[4096];

enum accel_err accel_fail(enum accel_err code, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return code;
}

enum accel_err accel_fail_in(enum accel_err code, const char *fmt, ...)
{
    char old[sizeof text];
    memcpy(old, text, sizeof old);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n + 3 < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ": %.*s", (int)(sizeof text - (size_t)n - 3),
                 old);
    return code;
}

enum accel_err accel_fail_nomem(void)
{
    return accel_fail(ACCEL_ENOMEM, "out of memory");
}

const char *accel_errmsg(void)
{
    return text;
}
