/* Text grows by doubling. The edit distance keeps three rows of the usual table, which is what
 * transpositions need. */
#include "base/str.h"

#include "base/alloc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void accel_str_addn(struct accel_str *s, const char *bytes, size_t n)
{
    if (s->failed || n > (size_t)-1 - s->len - 1 || !ACCEL_GROW(s->at, s->cap, s->len + n + 1)) {
        s->failed = true;
        return;
    }
    if (n)
        memcpy(s->at + s->len, bytes, n);
    s->len += n;
    s->at[s->len] = '\0';
}

void accel_str_add(struct accel_str *s, const char *text)
{
    accel_str_addn(s, text, strlen(text));
}

void accel_str_addf(struct accel_str *s, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    va_list again;
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    if (s->failed || n < 0 || !ACCEL_GROW(s->at, s->cap, s->len + (size_t)n + 1)) {
        s->failed = true;
    } else {
        vsnprintf(s->at + s->len, (size_t)n + 1, fmt, again);
        s->len += (size_t)n;
    }
    va_end(again);
}

void accel_str_clear(struct accel_str *s)
{
    accel_free(s->at);
    *s = (struct accel_str){0};
}

const char *accel_str_get(const struct accel_str *s)
{
    return s->len ? s->at : "";
}

#define MAX_LEN 128

int accel_str_distance(const char *a, const char *b, int limit)
{
    int na = (int)strnlen(a, MAX_LEN), nb = (int)strnlen(b, MAX_LEN);
    if (na - nb > limit || nb - na > limit)
        return limit + 1;
    int row[3][MAX_LEN + 1];
    for (int j = 0; j <= nb; j++)
        row[0][j] = j;
    for (int i = 1; i <= na; i++) {
        int *now = row[i % 3], *up = row[(i + 2) % 3], *upup = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= nb; j++) {
            int ca = tolower((unsigned char)a[i - 1]), cb = tolower((unsigned char)b[j - 1]);
            int d = up[j - 1] + (ca != cb);
            d = up[j] + 1 < d ? up[j] + 1 : d;
            d = now[j - 1] + 1 < d ? now[j - 1] + 1 : d;
            if (i > 1 && j > 1 && ca == tolower((unsigned char)b[j - 2]) &&
                cb == tolower((unsigned char)a[i - 2]) && upup[j - 2] + 1 < d)
                d = upup[j - 2] + 1;
            now[j] = d;
        }
    }
    int d = row[na % 3][nb];
    return d > limit ? limit + 1 : d;
}

struct accel_near accel_near_begin(const char *word)
{
    int limit = (int)strnlen(word, MAX_LEN) / 3;
    return (struct accel_near){word, NULL, limit < 2 ? 3 : limit + 1};
}

void accel_near_try(struct accel_near *near, const char *name)
{
    int d = accel_str_distance(near->word, name, near->distance - 1);
    if (d < near->distance) {
        near->distance = d;
        near->best = name;
    }
}
