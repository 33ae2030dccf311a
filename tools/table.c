/* Cells are kept as they came; what a cell may hold depends on where the table goes, so escaping
 * and measuring happen when it is written. */
#include "tools/table.h"

#include "base/alloc.h"
#include "tools/escape.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GAP   2
#define MOST  100 /* … and never exceeds: a file may hold names of a million characters */
#define LEAST 14  /* columns that an elastic column keeps */

void accel_table_init(struct accel_table *t, const struct accel_column *columns)
{
    *t = (struct accel_table){.column = columns};
    while (columns[t->n_column].title)
        t->n_column++;
}

void accel_table_add(struct accel_table *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    char *text = n < 0 ? NULL : accel_arena_new(&t->arena, (size_t)n + 1, 1);
    if (text && ACCEL_GROW(t->cell, t->cap, t->n_cell + 1)) {
        vsnprintf(text, (size_t)n + 1, fmt, again);
        t->cell[t->n_cell++] = text;
    } else {
        t->failed = true;
    }
    va_end(again);
    va_end(ap);
}

void accel_table_clear(struct accel_table *t)
{
    accel_free(t->cell);
    accel_arena_clear(&t->arena);
    *t = (struct accel_table){0};
}

/* Bytes of the longest beginning (or, from the back, ending) of text within `columns`. */
static size_t fit(const char *text, size_t len, size_t columns, bool back)
{
    size_t best = 0;
    for (size_t n = 1; n <= len && n <= columns * 4 + 4; n++) {
        size_t cut = back ? len - n : n;
        if (cut < len && ((unsigned char)text[cut] & 0xc0) == 0x80)
            continue; /* inside a character */
        if (accel_text_columns(back ? text + cut : text, n) <= columns)
            best = n;
    }
    return best;
}

/* One cell, padded to its column; what does not fit loses its middle. The end is worth more than
 * the beginning: paths differ there. */
static void put_cell(struct accel_str *out, const char *text, size_t width, bool right, bool last)
{
    size_t len = strlen(text), columns = accel_text_columns(text, len);
    if (columns > width) {
        size_t head = fit(text, len, (width - 1) / 3, false);
        size_t used = accel_text_columns(text, head);
        size_t tail = fit(text, len, width - 1 - used, true);
        used += 1 + accel_text_columns(text + len - tail, tail);
        accel_str_addn(out, text, head);
        accel_str_add(out, "…");
        accel_str_addn(out, text + len - tail, tail);
        columns = used;
    } else {
        if (right)
            accel_str_addf(out, "%*s", (int)(width - columns), "");
        accel_str_addn(out, text, len);
    }
    if (!last)
        accel_str_addf(out, "%*s", (int)((right ? 0 : width - columns) + GAP), "");
}

/* Takes columns from the widest elastic ones until the table fits or all are at their least. */
static void squeeze(const struct accel_table *t, size_t *width, size_t limit)
{
    for (;;) {
        size_t total = GAP * (t->n_column - 1), widest = t->n_column;
        for (size_t c = 0; c < t->n_column; c++) {
            total += width[c];
            if (t->column[c].elastic && width[c] > LEAST &&
                (widest == t->n_column || width[c] > width[widest]))
                widest = c;
        }
        if (total <= limit || widest == t->n_column)
            return;
        size_t next = LEAST; /* down to the next elastic one, then step by step */
        for (size_t c = 0; c < t->n_column; c++)
            if (t->column[c].elastic && width[c] < width[widest] && width[c] > next)
                next = width[c];
        size_t take = width[widest] - next, over = total - limit;
        width[widest] -= take < over ? (take ? take : 1) : over;
    }
}

static void text_rows(struct accel_str *out, const struct accel_table *t, char **cell,
                      const size_t *width, bool color)
{
    for (size_t i = 0; i < t->n_cell + t->n_column; i++) {
        size_t c = i % t->n_column;
        bool last = c + 1 == t->n_column;
        if (i < t->n_column && color && !c)
            accel_str_add(out, "\033[1m");
        put_cell(out, i < t->n_column ? t->column[c].title : cell[i - t->n_column], width[c],
                 t->column[c].right, last);
        if (!last)
            continue;
        while (out->len && out->at[out->len - 1] == ' ') /* an empty last cell */
            out->len--;
        accel_str_add(out, i < t->n_column && color ? "\033[0m\n" : "\n");
    }
}

void accel_table_text(struct accel_str *out, const struct accel_table *t, int width, bool color)
{
    struct accel_arena arena = {0};
    size_t *columns = ACCEL_NEW(&arena, size_t, t->n_column);
    char **cell = ACCEL_NEW(&arena, char *, t->n_cell + 1);
    struct accel_str s = {0};
    bool ok = columns && cell && !t->failed;
    for (size_t c = 0; ok && c < t->n_column; c++)
        columns[c] = strlen(t->column[c].title);
    for (size_t i = 0; ok && i < t->n_cell; i++) {
        s.len = 0;
        accel_escape_terminal(&s, t->cell[i]);
        cell[i] = accel_arena_strndup(&arena, accel_str_get(&s), s.len);
        ok = cell[i] && !s.failed;
        size_t w = ok ? accel_text_columns(cell[i], s.len) : 0;
        if (w > MOST && t->column[i % t->n_column].elastic)
            w = MOST;
        if (ok && w > columns[i % t->n_column])
            columns[i % t->n_column] = w;
    }
    if (ok) {
        if (width > 0)
            squeeze(t, columns, (size_t)width);
        text_rows(out, t, cell, columns, color);
    } else {
        out->failed = true;
    }
    accel_str_clear(&s);
    accel_arena_clear(&arena);
}

static void csv_cell(struct accel_str *out, const char *text, bool for_terminal)
{
    struct accel_str safe = {0};
    if (for_terminal) {
        accel_escape_terminal(&safe, text);
        text = accel_str_get(&safe);
        out->failed |= safe.failed;
    }
    bool quoted = strpbrk(text, ",\"\r\n") || *text == ' ';
    if (quoted)
        accel_str_add(out, "\"");
    for (const char *p = text; *p; p++)
        accel_str_addn(out, *p == '"' ? "\"\"" : p, *p == '"' ? 2 : 1);
    if (quoted)
        accel_str_add(out, "\"");
    accel_str_clear(&safe);
}

void accel_table_csv(struct accel_str *out, const struct accel_table *t, bool for_terminal)
{
    out->failed |= t->failed;
    for (size_t c = 0; c < t->n_column; c++) {
        for (const char *p = t->column[c].title; *p; p++)
            accel_str_addf(out, "%c", *p == ' ' ? '_' : tolower((unsigned char)*p));
        accel_str_add(out, c + 1 < t->n_column ? "," : "\r\n");
    }
    for (size_t i = 0; i < t->n_cell; i++) {
        csv_cell(out, t->cell[i], for_terminal);
        accel_str_add(out, (i + 1) % t->n_column ? "," : "\r\n");
    }
}

static void markdown_cell(struct accel_str *out, const char *text)
{
    struct accel_str safe = {0};
    accel_escape_terminal(&safe, text);
    accel_str_add(out, " ");
    for (const char *p = accel_str_get(&safe); *p; p++) {
        if (strchr("|\\`*_[]<>&", *p))
            accel_str_add(out, "\\");
        accel_str_addn(out, p, 1);
    }
    accel_str_add(out, " |");
    out->failed |= safe.failed;
    accel_str_clear(&safe);
}

void accel_table_markdown(struct accel_str *out, const struct accel_table *t)
{
    out->failed |= t->failed;
    accel_str_add(out, "|");
    for (size_t c = 0; c < t->n_column; c++)
        markdown_cell(out, t->column[c].title);
    accel_str_add(out, "\n|");
    for (size_t c = 0; c < t->n_column; c++)
        accel_str_add(out, t->column[c].right ? " ---: |" : " --- |");
    for (size_t i = 0; i < t->n_cell; i++) {
        if (i % t->n_column == 0)
            accel_str_add(out, "\n|");
        markdown_cell(out, t->cell[i]);
    }
    accel_str_add(out, "\n");
}

const char *accel_text_count(char buf[32], int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRId64, n), o = 0;
    if (n < 0)
        return strcpy(buf, "?");
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            buf[o++] = ',';
        buf[o++] = digits[i];
    }
    buf[o] = '\0';
    return buf;
}

const char *accel_text_size(char buf[32], uint64_t n)
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)n;
    int u = 0;
    for (; v >= 1023.95 && u < 6; u++)
        v /= 1024;
    snprintf(buf, 32, "%.*f %s", !u ? 0 : v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, unit[u]);
    return buf;
}

const char *accel_text_share(char buf[32], double share)
{
    double v = share * 100;
    if (isnan(v))
        return strcpy(buf, "-");
    if (v > 0 && v < 0.01)
        return strcpy(buf, "<0.01 %");
    if (v < 100 && v >= 99.95)
        return strcpy(buf, ">99.9 %");
    if (fabs(v - round(v)) < 1e-9)
        snprintf(buf, 32, "%.0f %%", v);
    else
        snprintf(buf, 32, v < 1 ? "%.2f %%" : "%.1f %%", v);
    return buf;
}
