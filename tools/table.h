/* table.h - tables for people: aligned text, CSV, Markdown. */
#ifndef ACCEL_TOOLS_TABLE_H
#define ACCEL_TOOLS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

struct accel_column {
    const char *title; /* NULL ends the list */
    bool right;        /* numbers */
    bool elastic;      /* may be shortened in the middle when the terminal is too narrow */
};

struct accel_table {
    const struct accel_column *column;
    size_t n_column;
    const char **cell; /* row after row */
    size_t n_cell, cap;
    struct accel_arena arena;
    bool failed; /* memory ran out */
};

void accel_table_init(struct accel_table *t, const struct accel_column *columns);

/* The next cell. Text as it is: escaping is done by the writers below. */
void accel_table_add(struct accel_table *t, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends the table. width: columns of the terminal, 0: no limit. color: bold titles. Names are
 * escaped for terminals. A memory failure shows in out->failed. */
void accel_table_text(struct accel_str *out, const struct accel_table *t, int width, bool color);

/* RFC 4180 with lower-case titles; for_terminal: control characters are escaped. */
void accel_table_csv(struct accel_str *out, const struct accel_table *t, bool for_terminal);
void accel_table_markdown(struct accel_str *out, const struct accel_table *t);

void accel_table_clear(struct accel_table *t);

/* 1234567 as "1,234,567"; negative: "?". Returns buf. */
const char *accel_text_count(char buf[32], int64_t n);

/* 1234567 as "1.18 MiB". Returns buf. */
const char *accel_text_size(char buf[32], uint64_t n);

/* A share as "30 %", "33.3 %", "0.04 %": three digits, never "100 %" for less, nor "0 %" for more
 * than nothing. NAN: "-". Returns buf. */
const char *accel_text_share(char buf[32], double share);

#endif
