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

int accel_err_status(enum accel_err code)
{
    switch (code) {
    case ACCEL_OK:
        return 0;
    case ACCEL_EARG:
        return 1;
    case ACCEL_EMODEL:
    case ACCEL_ESHAPE:
    case ACCEL_ENOSUP:
        return 2;
    case ACCEL_ETARGET:
        return 3;
    case ACCEL_EDEVICE:
        return 4;
    case ACCEL_ENOMEM:
    case ACCEL_EIO:
        break;
    }
    return 5;
}
