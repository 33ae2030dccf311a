/* json.h - writing JSON. The reader is base/config.h. */
#ifndef ACCEL_BASE_JSON_H
#define ACCEL_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

/* A document under construction. Zero-initialise; text goes to `out` as it comes, nothing is kept.
 * A memory failure shows in out.failed. At most 60 levels deep (asserted: callers' structure). */
struct accel_json {
    struct accel_str out;
    uint64_t started; /* bit d: level d holds something already */
    int depth;
};

/* `key` names the member of an object; NULL inside arrays and at the top. Texts are UTF-8; invalid
 * bytes become U+FFFD, control and invisible format characters are escaped; text NULL gives null.
 */
void accel_json_object(struct accel_json *j, const char *key);
void accel_json_array(struct accel_json *j, const char *key);
void accel_json_end(struct accel_json *j, char closing); /* '}' or ']' */
void accel_json_text(struct accel_json *j, const char *key, const char *text);
void accel_json_int(struct accel_json *j, const char *key, int64_t v);
void accel_json_uint(struct accel_json *j, const char *key, uint64_t v);
void accel_json_bool(struct accel_json *j, const char *key, bool v);
void accel_json_null(struct accel_json *j, const char *key);

/* The shortest digits that read back as the same double; NaN and infinities, which JSON lacks, give
 * null. Whatever the locale. */
void accel_json_number(struct accel_json *j, const char *key, double v);

void accel_json_clear(struct accel_json *j);

#endif
