/* name_pattern.h - regular expressions over names, safe whatever a config holds.
 *
 * A pattern matches from the start of a name, not to its end. POSIX extended syntax (| * + ? {n,m}
 * () [] ^ $ .) plus \d \D \w \W \s \S, escaped punctuation, (?:…) and lazy quantifiers; character
 * classes such as [[:alpha:]]. Everything else (look-around, back-references, \b) is refused. */
#ifndef ACCEL_PRUNE_NAME_PATTERN_H
#define ACCEL_PRUNE_NAME_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ACCEL_NAME_PATTERN_MAX_LEN   1000 /* bytes of a pattern */
#define ACCEL_NAME_PATTERN_MAX_STEPS 1000 /* after repeats are written out */

struct accel_name_pattern;

/* EARG with a text that says what is wrong and what is supported, the pattern not in it. */
enum accel_err accel_name_pattern_new(struct accel_name_pattern **out,
                                      const char *text) ACCEL_CHECKED;
void accel_name_pattern_free(struct accel_name_pattern *p);

/* Whether the pattern matches `name` (UTF-8, `len` bytes) from its start. Cost: length of the name
 * times steps of the pattern, never more; each step is taken from *budget, and when that runs out
 * the answer is EARG: many patterns on very long names would take minutes. */
enum accel_err accel_name_pattern_match(bool *out, struct accel_name_pattern *p, const char *name,
                                        size_t len, int64_t *budget) ACCEL_CHECKED;

#endif
