/* Where a config's text comes from, what it may not hold, and what its scalars mean.
 *
 * A text is JSON when its first character behind blanks and comments is { or [ and its name does
 * not end in .yaml or .yml; anything else is YAML. JSON's comments are blanked out before parsing,
 * so that every position stays what the user sees. */
#include "base/config_int.h"

#include "base/alloc.h"
#include "base/utf8.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* "--set PATH: text" or "FILE:LINE:COL: text". */
static enum accel_err fail_text(const struct accel_config_file *f, const char *set, int line,
                                int col, const char *fmt, va_list ap)
{
    char text[2048];
    vsnprintf(text, sizeof text, fmt, ap);
    if (set)
        return accel_fail(ACCEL_EARG, "--set %.1000s: %s", set, text);
    return accel_fail(ACCEL_EARG, "%.1900s:%d:%d: %s", f->name, line, col, text);
}

enum accel_err accel_config_fail_at(const struct accel_config_parse *p, int line, int col,
                                    const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum accel_err err = fail_text(p->file, p->set, line, col, fmt, ap);
    va_end(ap);
    return err;
}

enum accel_err accel_config_fail(const struct accel_config *at, bool at_key, const char *fmt, ...)
{
    at_key = at_key && at->key && at->key_line > 0;
    va_list ap;
    va_start(ap, fmt);
    enum accel_err err =
        fail_text(at->file, at_key ? NULL : at->set, at_key ? at->key_line : at->line,
                  at_key ? at->key_col : at->col, fmt, ap);
    va_end(ap);
    return err;
}

const struct accel_config *accel_config_find(const struct accel_config *map, const char *key)
{
    if (map->kind != ACCEL_CONFIG_MAP)
        return NULL;
    for (const struct accel_config *c = map->child; c; c = c->next)
        if (strcmp(c->key, key) == 0)
            return c;
    return NULL;
}

const char *accel_config_kind_name(enum accel_config_kind kind)
{
    static const char *const name[] = {"null",   "true or false", "a number", "a number",
                                       "a text", "a list",        "a map"};
    return name[kind];
}

/* --------------------------------------------------------------------------------------- scalars
 */

static size_t digits(const char *s)
{
    return strspn(s, "0123456789");
}

/* [sign] digits [. digits] [e [sign] digits], the whole of s. JSON wants a digit on both sides of
 * the point, no plus and no leading zero. */
static bool is_number(const char *s, bool json, bool *whole)
{
    *whole = true;
    s += *s == '-' || (*s == '+' && !json);
    size_t a = digits(s), b = 0;
    if (json && a > 1 && *s == '0')
        return false;
    s += a;
    if (*s == '.') {
        *whole = false;
        b = digits(++s);
        s += b;
        if (json && !b)
            return false;
    }
    if (json ? !a : !a && !b)
        return false;
    if (*s == 'e' || *s == 'E') {
        *whole = false;
        s++;
        s += *s == '-' || *s == '+';
        size_t e = digits(s);
        if (!e)
            return false;
        s += e;
    }
    return *s == '\0';
}

/* strtod() in the C locale whatever the program's is: a point is a point. */
static double to_double(const char *s)
{
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double v = c ? strtod_l(s, NULL, c) : strtod(s, NULL);
    if (c)
        freelocale(c);
    return v;
}

static bool one_of(const char *s, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(s, *list) == 0)
            return true;
    return false;
}

static void set_integer(struct accel_config *c, const char *s, int base)
{
    errno = 0;
    c->integer = strtoll(s, NULL, base);
    c->kind = errno == ERANGE ? ACCEL_CONFIG_FLOAT : ACCEL_CONFIG_INT;
    c->number = c->kind == ACCEL_CONFIG_INT ? (double)c->integer : to_double(s);
}

/* Hexadecimal, octal, infinity and the like. */
static bool yaml_number(struct accel_config *c, const char *s)
{
    static const char *const inf[] = {".inf", ".Inf", ".INF", NULL};
    static const char *const nan[] = {".nan", ".NaN", ".NAN", NULL};
    bool hex = strncmp(s, "0x", 2) == 0, oct = strncmp(s, "0o", 2) == 0;
    const char *set = hex ? "0123456789abcdefABCDEF" : "01234567";
    if ((hex || oct) && s[2] && strspn(s + 2, set) == strlen(s + 2)) {
        set_integer(c, s + 2, hex ? 16 : 8);
        return true;
    }
    const char *u = s + (*s == '-' || *s == '+');
    if (!one_of(u, inf) && !one_of(s, nan))
        return false;
    c->kind = ACCEL_CONFIG_FLOAT;
    c->number = to_double(one_of(s, nan) ? "nan" : *s == '-' ? "-inf" : "inf");
    return true;
}

bool accel_config_scalar(struct accel_config *c, const char *text, bool plain, bool json)
{
    static const char *const nulls[] = {"null", "~", "Null", "NULL", "", NULL};
    static const char *const yes[] = {"true", "True", "TRUE", NULL};
    static const char *const no[] = {"false", "False", "FALSE", NULL};
    bool whole;
    c->text = text;
    c->kind = ACCEL_CONFIG_STRING;
    if (!plain)
        return true;
    if (json ? strcmp(text, "null") == 0 : one_of(text, nulls)) {
        c->kind = ACCEL_CONFIG_NULL;
    } else if (json ? strcmp(text, "true") == 0 : one_of(text, yes)) {
        c->kind = ACCEL_CONFIG_BOOL;
        c->boolean = true;
    } else if (json ? strcmp(text, "false") == 0 : one_of(text, no)) {
        c->kind = ACCEL_CONFIG_BOOL;
    } else if (is_number(text, json, &whole)) {
        if (whole) {
            set_integer(c, text, 10);
        } else {
            c->kind = ACCEL_CONFIG_FLOAT;
            c->number = to_double(text);
        }
    } else if (json || !yaml_number(c, text)) {
        return !json;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------ text
 */

static enum accel_err check_text(const struct accel_config_parse *p)
{
    const char *s = p->file->text, *end = s + p->file->len;
    for (int line = 1, col = 1; s < end; col++) {
        const char *at = s;
        uint32_t c = accel_utf8_next(&s, end);
        if (c == 0)
            return accel_config_fail_at(p, line, col, "the config holds a NUL character");
        if (c == ACCEL_UTF8_BAD)
            return accel_config_fail_at(p, line, col, "the config is not UTF-8 (byte 0x%02x)",
                                        (unsigned char)*at);
        if (c == '\n') {
            line++;
            col = 0;
        }
    }
    return ACCEL_OK;
}

/* Blanks the comment at s[i]; returns the place behind it, or 0 when it does not end. */
static size_t blank_comment(char *s, size_t i)
{
    bool block = s[i + 1] == '*';
    const char *end = block ? strstr(s + i + 2, "*/") : strchr(s + i, '\n');
    if (!end && block)
        return 0;
    size_t stop = end ? (size_t)(end - s) + (block ? 2 : 0) : strlen(s);
    for (; i < stop; i++)
        if (s[i] != '\n')
            s[i] = ' ';
    return stop;
}

/* Blanks // and block comments outside of strings. */
static enum accel_err blank_comments(const struct accel_config_parse *p, char *s)
{
    int line = 1, col = 1;
    for (size_t i = 0, next; s[i]; i = next) {
        next = i + 1;
        if (s[i] == '"') {
            for (; s[next] && s[next] != '"' && s[next] != '\n'; next++)
                next += s[next] == '\\' && s[next + 1];
            next += s[next] == '"';
        } else if (s[i] == '/' && (s[i + 1] == '/' || s[i + 1] == '*')) {
            next = blank_comment(s, i);
            if (!next)
                return accel_config_fail_at(p, line, col, "comment without an end");
        }
        for (; i < next; i++) {
            col = s[i] == '\n' ? 1 : col + 1;
            line += s[i] == '\n';
        }
    }
    return ACCEL_OK;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && strcasecmp(s + n - k, end) == 0;
}

static bool looks_like_json(const char *name, const char *s)
{
    if (ends_with(name, ".yaml") || ends_with(name, ".yml"))
        return false;
    for (;;) {
        s += strspn(s, " \t\r\n");
        const char *end = s[0] != '/'   ? NULL
                          : s[1] == '/' ? strchr(s, '\n')
                          : s[1] == '*' ? strstr(s + 2, "*/")
                                        : NULL;
        if (!end)
            return *s == '{' || *s == '[' || *s == '/' || ends_with(name, ".json");
        s = end + (s[1] == '*' ? 2 : 1);
    }
}

static enum accel_err parse_text(struct accel_config_file *f)
{
    struct accel_config_parse p = {.file = f};
    ACCEL_TRY(check_text(&p));
    size_t bom = strncmp(f->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0, len = f->len - bom;
    if (strspn(f->text + bom, " \t\r\n") == len)
        return accel_config_fail_at(&p, 1, 1, "the config is empty");
    p.json = looks_like_json(f->name, f->text + bom);
    char *copy = accel_calloc(len + 1, 1);
    if (!copy)
        return accel_fail_nomem();
    memcpy(copy, f->text + bom, len);
    enum accel_err err = p.json ? blank_comments(&p, copy) : ACCEL_OK;
    if (!err)
        err = accel_config_build(&f->root, &p, copy, len);
    accel_free(copy);
    f->n_items = p.n_items;
    return err;
}

/* Reads to the end, at most one byte more than is allowed. */
static enum accel_err read_all(struct accel_config_file *f, int fd)
{
    char *buf = NULL;
    size_t cap = 0, len = 0;
    enum accel_err err = ACCEL_OK;
    while (!err) {
        if (!ACCEL_GROW(buf, cap, len + 4096)) {
            err = accel_fail_nomem();
            break;
        }
        ssize_t got = read(fd, buf + len, cap - len);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            err = accel_fail(errno == EISDIR ? ACCEL_EARG : ACCEL_EIO, "%.2000s: cannot read: %s",
                             f->name, strerror(errno));
        if (got <= 0)
            break;
        len += (size_t)got;
        if (len > ACCEL_CONFIG_MAX_SIZE)
            err = accel_fail(ACCEL_EARG, "%.2000s: a config may have %zu bytes at most", f->name,
                             ACCEL_CONFIG_MAX_SIZE);
    }
    f->text = err ? NULL : accel_arena_strndup(&f->arena, buf, len);
    f->len = len;
    accel_free(buf);
    return err ? err : f->text ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err load(struct accel_config_file *f, const char *source)
{
    bool is_stdin = strcmp(source, "-") == 0, is_text = *source == '{' || *source == '[';
    const char *name = is_stdin ? "<stdin>" : is_text ? "--config" : source;
    f->name = accel_arena_strndup(&f->arena, name, strlen(name));
    if (!f->name)
        return accel_fail_nomem();
    if (is_text) {
        f->len = strlen(source);
        if (f->len > ACCEL_CONFIG_MAX_SIZE)
            return accel_fail(ACCEL_EARG, "--config: a config may have %zu bytes at most",
                              ACCEL_CONFIG_MAX_SIZE);
        f->text = accel_arena_strndup(&f->arena, source, f->len);
        return f->text ? ACCEL_OK : accel_fail_nomem();
    }
    int fd = is_stdin ? STDIN_FILENO : open(source, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return accel_fail(ACCEL_EARG, "%.2000s: cannot open the config: %s", source,
                          strerror(errno));
    enum accel_err err = read_all(f, fd);
    if (!is_stdin)
        close(fd);
    return err;
}

enum accel_err accel_config_read(struct accel_config_file **out, const char *source)
{
    struct accel_config_file *f = accel_calloc(1, sizeof *f);
    if (!f)
        return accel_fail_nomem();
    enum accel_err err = load(f, source);
    if (!err)
        err = parse_text(f);
    if (err)
        accel_config_free(f);
    else
        *out = f;
    return err;
}

void accel_config_free(struct accel_config_file *f)
{
    if (!f)
        return;
    accel_arena_clear(&f->arena);
    accel_free(f);
}
