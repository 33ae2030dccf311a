/* A model file chooses its names. On a terminal a name could move the cursor, change colours or
 * reverse the reading order of the line; in HTML it could become markup. Both are shown for what
 * they are. */
#include "tools/escape.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

static bool within(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n && r[i].first <= c; i++)
        if (c <= r[i].last)
            return true;
    return false;
}
#define WITHIN(table, c) within(table, sizeof(table) / sizeof *(table), c)

/* Controls, soft hyphen, Arabic letter mark, zero width and direction marks, line and paragraph
 * separators, overrides and isolates, invisible operators, byte order mark, tags. */
static const struct range unsafe[] = {{0x00, 0x1f},     {0x7f, 0x9f},      {0xad, 0xad},
                                      {0x61c, 0x61c},   {0x180e, 0x180e},  {0x200b, 0x200f},
                                      {0x2028, 0x202e}, {0x2060, 0x206f},  {0xfeff, 0xfeff},
                                      {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}};

/* Unicode's general categories Mn and Me in the scripts that names use, roughly. */
static const struct range combining[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x900, 0x902},   {0x93c, 0x93c},   {0x941, 0x948},   {0xe31, 0xe31},   {0xe34, 0xe3a},
    {0xe47, 0xe4e},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x20d0, 0x20f0}, {0x302a, 0x302d},
    {0x3099, 0x309a}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}};

/* East Asian Width W and F, emoji included. */
static const struct range wide[] = {{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2e80, 0x303e},
                                    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},
                                    {0xa000, 0xa4cf},   {0xa960, 0xa97f},   {0xac00, 0xd7a3},
                                    {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
                                    {0xffe0, 0xffe6},   {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
                                    {0x1f900, 0x1f9ff}, {0x20000, 0x2fffd}, {0x30000, 0x3fffd}};

void accel_escape_terminal(struct accel_str *out, const char *text)
{
    const char *end = text + strlen(text), *clean = text;
    for (const char *p = text; p < end;) {
        const char *from = p;
        uint32_t c = accel_utf8_next(&p, end);
        if (c != ACCEL_UTF8_BAD && !WITHIN(unsafe, c))
            continue;
        accel_str_addn(out, clean, (size_t)(from - clean));
        clean = p;
        if (c == '\n')
            accel_str_add(out, "\\n");
        else if (c == ACCEL_UTF8_BAD || c < 0x80)
            accel_str_addf(out, "\\x%02x", (unsigned char)*from);
        else
            accel_str_addf(out, "\\u%04x", (unsigned)c);
    }
    accel_str_addn(out, clean, (size_t)(end - clean));
}

void accel_escape_html(struct accel_str *out, const char *text)
{
    const char *end = text + strlen(text);
    for (const char *p = text; p < end;) {
        const char *from = p;
        uint32_t c = accel_utf8_next(&p, end);
        if (c == '&')
            accel_str_add(out, "&amp;");
        else if (c == '<')
            accel_str_add(out, "&lt;");
        else if (c == '>')
            accel_str_add(out, "&gt;");
        else if (c == '"')
            accel_str_add(out, "&quot;");
        else if (c == '\'')
            accel_str_add(out, "&#39;");
        else if (c == '\n' || c == '\t')
            accel_str_addn(out, from, 1);
        else if (c == ACCEL_UTF8_BAD || c < 0x20)
            accel_str_add(out, "\xef\xbf\xbd");
        else if (WITHIN(unsafe, c))
            accel_str_addf(out, "[U+%04X]", (unsigned)c);
        else
            accel_str_addn(out, from, (size_t)(p - from));
    }
}

size_t accel_text_columns(const char *text, size_t len)
{
    size_t n = 0;
    for (const char *p = text, *end = text + len; p < end;) {
        uint32_t c = accel_utf8_next(&p, end);
        n += c < 0x300 ? 1 : WITHIN(combining, c) ? 0 : WITHIN(wide, c) ? 2 : 1;
    }
    return n;
}
