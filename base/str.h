/* str.h - growable text, and the nearest of several names. */
#ifndef ACCEL_BASE_STR_H
#define ACCEL_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

/* Text under construction. Zero-initialise; `failed` sticks when memory ran out, so that callers
 * check once at the end. `at` is NUL-terminated whenever len > 0. */
struct accel_str {
    char *at;
    size_t len, cap;
    bool failed;
};

void accel_str_add(struct accel_str *s, const char *text);
void accel_str_addn(struct accel_str *s, const char *bytes, size_t n);
void accel_str_addf(struct accel_str *s, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void accel_str_clear(struct accel_str *s);
/* The text, "" when empty. Borrowed until the next change. */
const char *accel_str_get(const struct accel_str *s);

/* Edit distance with transpositions (Damerau, optimal string alignment), case-blind; at most
 * `limit`
 * + 1. Cost: len(a) * len(b), both cut at 128 bytes. */
int accel_str_distance(const char *a, const char *b, int limit);

/* Keeps the nearest name seen to a misspelt one:
 *     struct accel_near near = accel_near_begin(word);
 *     for (…) accel_near_try(&near, name[i]);
 *     near.best   NULL when nothing is close enough   */
struct accel_near {
    const char *word, *best;
    int distance;
};
struct accel_near accel_near_begin(const char *word);
void accel_near_try(struct accel_near *near, const char *name);

#endif
