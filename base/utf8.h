/* utf8.h - reading UTF-8 that may be wrong. */
#ifndef ACCEL_BASE_UTF8_H
#define ACCEL_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

#define ACCEL_UTF8_BAD UINT32_MAX

/* The code point at *at, which moves behind it. An invalid sequence (overlong, surrogate, cut off,
 * above U+10FFFF) gives ACCEL_UTF8_BAD and moves by one byte. *at < end. */
uint32_t accel_utf8_next(const char **at, const char *end);

#endif
