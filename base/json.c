/* Commas are the only state: one bit per level says whether the level holds something. */
#include "base/json.h"

#include "base/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Format characters that turn or hide text where the document is shown raw, and C1 controls. */
static bool is_format(uint32_t c)
{
    return (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

static void quote(struct accel_str *s, const char *text)
{
    const char *end = text + strlen(text), *clean = text;
    accel_str_addn(s, "\"", 1);
    for (const char *p = text; p < end;) {
        const char *from = p;
        uint32_t c = accel_utf8_next(&p, end);
        if (c >= 0x20 && c != '"' && c != '\\' && c != ACCEL_UTF8_BAD && !is_format(c))
            continue;
        accel_str_addn(s, clean, (size_t)(from - clean));
        clean = p;
        if (c == ACCEL_UTF8_BAD)
            accel_str_add(s, "\xef\xbf\xbd");
        else if (c == '"' || c == '\\')
            accel_str_addf(s, "\\%c", (int)c);
        else if (c == '\n')
            accel_str_add(s, "\\n");
        else if (c == '\t')
            accel_str_add(s, "\\t");
        else
            accel_str_addf(s, "\\u%04x", (unsigned)c);
    }
    accel_str_addn(s, clean, (size_t)(end - clean));
    accel_str_addn(s, "\"", 1);
}

/* Comma and key before the next item. */
static void begin(struct accel_json *j, const char *key)
{
    uint64_t bit = (uint64_t)1 << j->depth;
    if (j->started & bit)
        accel_str_addn(&j->out, ",", 1);
    j->started |= bit;
    if (key) {
        quote(&j->out, key);
        accel_str_addn(&j->out, ":", 1);
    }
}

static void open_level(struct accel_json *j, const char *key, const char *bracket)
{
    begin(j, key);
    accel_str_add(&j->out, bracket);
    j->depth++;
    assert(j->depth < 61);
    j->started &= ~((uint64_t)1 << j->depth);
}

void accel_json_object(struct accel_json *j, const char *key)
{
    open_level(j, key, "{");
}

void accel_json_array(struct accel_json *j, const char *key)
{
    open_level(j, key, "[");
}

void accel_json_end(struct accel_json *j, char closing)
{
    assert(j->depth > 0);
    j->depth--;
    accel_str_addn(&j->out, &closing, 1);
}

void accel_json_text(struct accel_json *j, const char *key, const char *text)
{
    begin(j, key);
    if (text)
        quote(&j->out, text);
    else
        accel_str_add(&j->out, "null");
}

void accel_json_int(struct accel_json *j, const char *key, int64_t v)
{
    begin(j, key);
    accel_str_addf(&j->out, "%" PRId64, v);
}

void accel_json_uint(struct accel_json *j, const char *key, uint64_t v)
{
    begin(j, key);
    accel_str_addf(&j->out, "%" PRIu64, v);
}

void accel_json_bool(struct accel_json *j, const char *key, bool v)
{
    begin(j, key);
    accel_str_add(&j->out, v ? "true" : "false");
}

void accel_json_null(struct accel_json *j, const char *key)
{
    begin(j, key);
    accel_str_add(&j->out, "null");
}

void accel_json_number(struct accel_json *j, const char *key, double v)
{
    if (!isfinite(v)) {
        accel_json_null(j, key);
        return;
    }
    char text[40];
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    for (char *p = text; *p; p++) /* the decimal separator of the program's locale */
        if (!strchr("+-0123456789eE", *p))
            *p = '.';
    begin(j, key);
    accel_str_add(&j->out, text);
}

void accel_json_clear(struct accel_json *j)
{
    accel_str_clear(&j->out);
    *j = (struct accel_json){0};
}
