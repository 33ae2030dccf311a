/* Strict reading: whatever is no well-formed sequence is one bad byte, so that a reader never runs
 * past the end and never loses its place. */
#include "base/utf8.h"

uint32_t accel_utf8_next(const char **at, const char *end)
{
    const unsigned char *p = (const unsigned char *)*at;
    size_t left = (size_t)(end - *at);
    (*at)++;
    if (p[0] < 0x80)
        return p[0];
    size_t n = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n > left)
        return ACCEL_UTF8_BAD;
    uint32_t c = p[0] & (0x7fu >> n);
    for (size_t i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return ACCEL_UTF8_BAD;
        c = c << 6 | (p[i] & 0x3f);
    }
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return ACCEL_UTF8_BAD;
    *at += n - 1;
    return c;
}
