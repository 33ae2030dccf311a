/* escape.h - names from files, made harmless where people read them. */
#ifndef ACCEL_TOOLS_ESCAPE_H
#define ACCEL_TOOLS_ESCAPE_H

#include <stddef.h>

#include "base/str.h"

/* Appends text for a terminal: control characters, bidirectional overrides, invisible and invalid
 * bytes become \n, \x1b, \u202e; nothing else changes. */
void accel_escape_terminal(struct accel_str *out, const char *text);

/* Appends text for HTML content and quoted attributes. Control characters and invalid bytes show as
 * U+FFFD, bidirectional controls as their number. */
void accel_escape_html(struct accel_str *out, const char *text);

/* Columns that text without control characters takes on a terminal: 2 for East Asian wide and
 * emoji, 0 for combining marks. */
size_t accel_text_columns(const char *text, size_t len);

#endif
