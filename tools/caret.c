/* caret.c - the line of a config that an error is about, with a caret below the column.
 *
 * The library's text starts with NAME:LINE:COL. The text itself comes from the config that was
 * read; when reading it failed (a syntax error), from the file or the command line once more.
 * Standard input cannot be read twice: then there is no line. */
#include "base/file.h"
#include "base/utf8.h"
#include "tools/escape.h"
#include "tools/tools.h"

#include <stdio.h>
#include <string.h>

enum { MAX_LINE = 400, MAX_FILE = 4 << 20 };

/* Appends line number `line` of the text and the caret. Columns count characters. */
static void show(struct accel_str *out, const char *text, size_t len, int line, int col)
{
    const char *at = text, *end = text + len;
    for (int i = 1; i < line && at < end; i++) {
        const char *nl = memchr(at, '\n', (size_t)(end - at));
        at = nl ? nl + 1 : end;
    }
    const char *nl = memchr(at, '\n', (size_t)(end - at));
    end = nl ? nl : end;
    char raw[MAX_LINE + 1] = "", before[MAX_LINE + 1] = "";
    if (at >= end || end - at > MAX_LINE)
        return;
    for (const char *p = at; p < end; p++)
        raw[p - at] = *p == '\t' || *p == '\r' ? ' ' : *p;
    const char *p = raw;
    for (int i = 1; i < col && *p; i++)
        accel_utf8_next(&p, raw + (end - at));
    memcpy(before, raw, (size_t)(p - raw));
    struct accel_str head = {0};
    accel_escape_terminal(&head, before);
    accel_str_add(out, "    ");
    accel_escape_terminal(out, raw);
    accel_str_addf(out, "\n%*s^\n", (int)(4 + accel_text_columns(accel_str_get(&head), head.len)),
                   "");
    accel_str_clear(&head);
}

static void show_file(struct accel_str *out, const char *path, int line, int col)
{
    struct accel_file *f = NULL;
    struct accel_str text = {0};
    char piece[4096];
    bool ok = !accel_file_open(&f, path) && f->size <= MAX_FILE;
    for (uint64_t at = 0; ok && at < f->size; at += sizeof piece) {
        uint64_t n = f->size - at < sizeof piece ? f->size - at : sizeof piece;
        ok = !accel_file_read(f, at, n, piece);
        accel_str_addn(&text, piece, ok ? n : 0);
    }
    if (ok && !text.failed)
        show(out, accel_str_get(&text), text.len, line, col);
    accel_str_clear(&text);
    accel_file_close(f);
}

void accel_job_caret(struct accel_str *out, const struct accel_job *job, const char *error)
{
    const char *source = job->opt.config;
    if (!source)
        return;
    bool is_text =
        source[strspn(source, " \t\r\n")] == '{' || source[strspn(source, " \t\r\n")] == '[';
    const char *name = job->config ? job->config->name : is_text ? "--config" : source;
    size_t n = strlen(name);
    int line, col;
    if (strncmp(error, name, n) || sscanf(error + n, ":%d:%d:", &line, &col) != 2 || line < 1 ||
        col < 1)
        return;
    if (job->config)
        show(out, job->config->text, job->config->len, line, col);
    else if (is_text)
        show(out, source, strlen(source), line, col);
    else
        show_file(out, source, line, col);
}
