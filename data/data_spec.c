/* data_spec.c - both forms end in the same place: a key and its items, set by a table. The text
 * form splits at commas; the object form brings lists along, so that its items may hold commas. */
#include "data/data_spec.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

struct items {
    const char **at;
    size_t n, cap;
};

enum kind { SPLIT, COUNT, SWITCH, NUMBERS, TEXT, TEXTS };

#define AT(field) offsetof(struct accel_data_spec, field)

static const struct {
    const char *name;
    enum kind kind;
    size_t at, n_at; /* of the field, and of its count */
} keys[] = {
    {"split", SPLIT, AT(split), 0},          {"limit", COUNT, AT(limit), 0},
    {"mean", NUMBERS, AT(mean), AT(n_mean)}, {"std", NUMBERS, AT(std), AT(n_std)},
    {"resize", COUNT, AT(resize), 0},        {"crop", COUNT, AT(crop), 0},
    {"shuffle", SWITCH, AT(shuffle), 0},     {"batch", COUNT, AT(batch), 0},
    {"label", TEXT, AT(label), 0},           {"features", TEXTS, AT(feature), AT(n_feature)},
    {"header", SWITCH, AT(header), 0},       {"types", TEXT, AT(types), 0},
};
#define N_KEYS (sizeof keys / sizeof *keys)
#define MOST   1000000000 /* of a count: samples, pixels */

static enum accel_err set_count(int64_t *out, const char *name, const char *text)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (errno || end == text || *end || v < 1 || v > MOST)
        return accel_fail(ACCEL_EARG, "key '%s' needs a whole number from 1 to %d, not '%.100s'",
                          name, MOST, text);
    *out = v;
    return ACCEL_OK;
}

static enum accel_err set_switch(int *out, const char *name, const char *text)
{
    bool on = strcmp(text, "1") == 0 || strcmp(text, "true") == 0;
    if (!on && strcmp(text, "0") != 0 && strcmp(text, "false") != 0)
        return accel_fail(ACCEL_EARG, "key '%s' is 0 or 1, not '%.100s'", name, text);
    *out = on;
    return ACCEL_OK;
}

static enum accel_err set_split(enum accel_split *out, const char *text)
{
    *out = strcmp(text, "train") == 0  ? ACCEL_SPLIT_TRAIN
           : strcmp(text, "test") == 0 ? ACCEL_SPLIT_TEST
                                       : ACCEL_SPLIT_DEFAULT;
    if (*out == ACCEL_SPLIT_DEFAULT)
        return accel_fail(ACCEL_EARG, "key 'split' is train or test, not '%.100s'", text);
    return ACCEL_OK;
}

static enum accel_err set_numbers(struct accel_data_spec *s, const double **out, const char *name,
                                  const struct items *it)
{
    double *v = ACCEL_NEW(&s->arena, double, it->n);
    if (!v)
        return accel_fail_nomem();
    for (size_t i = 0; i < it->n; i++) {
        char *end;
        v[i] = strtod(it->at[i], &end);
        if (end == it->at[i] || *end || !isfinite(v[i]))
            return accel_fail(ACCEL_EARG, "key '%s' needs numbers, not '%.100s'", name, it->at[i]);
        if (strcmp(name, "std") == 0 && !(v[i] > 0))
            return accel_fail(ACCEL_EARG, "key 'std' needs numbers above 0, not '%.100s'",
                              it->at[i]);
    }
    *out = v;
    return ACCEL_OK;
}

static enum accel_err set_texts(struct accel_data_spec *s, const char *const **out,
                                const struct items *it)
{
    const char **v = ACCEL_NEW(&s->arena, const char *, it->n);
    if (!v)
        return accel_fail_nomem();
    memcpy(v, it->at, it->n * sizeof *v);
    *out = v;
    return ACCEL_OK;
}

/* The row of this key; EARG with a near name. */
static enum accel_err find_key(size_t *out, const char *name)
{
    struct accel_near near = accel_near_begin(name);
    for (size_t i = 0; i < N_KEYS; i++) {
        if (strcmp(keys[i].name, name) == 0) {
            *out = i;
            return ACCEL_OK;
        }
        accel_near_try(&near, keys[i].name);
    }
    return near.best ? accel_fail(ACCEL_EARG, "a data set has no key '%.100s', did you mean '%s'?",
                                  name, near.best)
                     : accel_fail(ACCEL_EARG, "a data set has no key '%.100s'", name);
}

static enum accel_err set(struct accel_data_spec *s, const char *name, const struct items *it)
{
    size_t k;
    ACCEL_TRY(find_key(&k, name));
    void *at = (char *)s + keys[k].at;
    enum kind kind = keys[k].kind;
    if (s->given >> k & 1)
        return accel_fail(ACCEL_EARG, "key '%s' is given twice", keys[k].name);
    s->given |= 1u << k;
    for (size_t i = 0; i < it->n; i++)
        if (!*it->at[i])
            return accel_fail(ACCEL_EARG, "key '%s' has an empty value", keys[k].name);
    if (it->n == 0 || (it->n > 1 && kind != NUMBERS && kind != TEXTS))
        return accel_fail(ACCEL_EARG, "key '%s' needs one value, not %zu", keys[k].name, it->n);
    if (keys[k].n_at)
        *(size_t *)((char *)s + keys[k].n_at) = it->n;
    switch (kind) {
    case SPLIT:
        return set_split(at, it->at[0]);
    case COUNT:
        return set_count(at, keys[k].name, it->at[0]);
    case SWITCH:
        return set_switch(at, keys[k].name, it->at[0]);
    case NUMBERS:
        return set_numbers(s, at, keys[k].name, it);
    case TEXTS:
        return set_texts(s, at, it);
    case TEXT:
        break;
    }
    *(const char **)at = it->at[0];
    return ACCEL_OK;
}

static enum accel_err add(struct items *it, const char *text)
{
    if (!text || !ACCEL_GROW(it->at, it->cap, it->n + 1))
        return accel_fail_nomem();
    it->at[it->n++] = text;
    return ACCEL_OK;
}

/* "a,b,c" cut up in place. A column's name may hold a comma in the object form only. */
static enum accel_err split(struct items *it, char *text)
{
    for (char *p = text, *next; p; p = next) {
        next = strchr(p, ',');
        if (next)
            *next++ = '\0';
        ACCEL_TRY(add(it, p));
    }
    return ACCEL_OK;
}

static struct accel_data_spec *spec_new(void)
{
    struct accel_data_spec *s = accel_calloc(1, sizeof *s);
    if (s)
        s->shuffle = s->header = -1;
    return s;
}

void accel_data_spec_free(struct accel_data_spec *s)
{
    if (!s)
        return;
    accel_arena_clear(&s->arena);
    accel_free(s);
}

/* Where the options begin: behind the last '?' that "key=" follows; so that a glob may hold '?'. */
static char *find_options(char *text)
{
    char *at = strrchr(text, '?');
    if (!at)
        return NULL;
    size_t n = strspn(at + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_");
    return n && at[1 + n] == '=' ? at : NULL;
}

static enum accel_err parse_options(struct accel_data_spec *s, char *text)
{
    struct items it = {0};
    enum accel_err err = ACCEL_OK;
    for (char *p = text, *next; !err && p; p = next) {
        next = strchr(p, '&');
        if (next)
            *next++ = '\0';
        char *eq = strchr(p, '=');
        if (!eq || eq == p) {
            err =
                accel_fail(ACCEL_EARG, "the options of a data set are key=value, not '%.100s'", p);
            break;
        }
        *eq = '\0';
        it.n = 0;
        err = split(&it, eq + 1);
        if (!err)
            err = set(s, p, &it);
    }
    accel_free(it.at);
    return err;
}

static enum accel_err parse(struct accel_data_spec *s, const char *text)
{
    char *copy = accel_arena_strndup(&s->arena, text, strlen(text));
    if (!copy)
        return accel_fail_nomem();
    char *options = find_options(copy);
    if (options)
        *options++ = '\0';
    char *colon = strchr(copy, ':');
    if (colon)
        *colon++ = '\0';
    s->kind = copy;
    s->path = colon;
    if (!*copy || (colon && !*colon))
        return accel_fail(ACCEL_EARG, "a data set is KIND[:PATH][?key=value&...], not '%.200s'",
                          text);
    return options ? parse_options(s, options) : ACCEL_OK;
}

enum accel_err accel_data_spec_parse(struct accel_data_spec **out, const char *text)
{
    *out = spec_new();
    if (!*out)
        return accel_fail_nomem();
    enum accel_err err = parse(*out, text);
    if (err) {
        accel_data_spec_free(*out);
        *out = NULL;
    }
    return err;
}

/* A scalar as text, or the scalars of a list. */
static enum accel_err read_items(struct accel_data_spec *s, struct items *it,
                                 const struct accel_config *c)
{
    it->n = 0;
    if (c->kind == ACCEL_CONFIG_MAP || c->kind == ACCEL_CONFIG_NULL)
        return accel_fail(ACCEL_EARG, "key '%.100s' needs a value, not %s", c->key,
                          accel_config_kind_name(c->kind));
    if (c->kind != ACCEL_CONFIG_LIST)
        return add(it, accel_arena_strndup(&s->arena, c->text, strlen(c->text)));
    for (const struct accel_config *k = c->child; k; k = k->next) {
        if (k->kind == ACCEL_CONFIG_MAP || k->kind == ACCEL_CONFIG_LIST)
            return accel_fail(ACCEL_EARG, "key '%.100s' takes a list of numbers or texts", c->key);
        ACCEL_TRY(add(it, accel_arena_strndup(&s->arena, k->text, strlen(k->text))));
    }
    return ACCEL_OK;
}

static enum accel_err read_member(struct accel_data_spec *s, const struct accel_config *c)
{
    struct items it = {0};
    bool kind = strcmp(c->key, "kind") == 0, path = strcmp(c->key, "path") == 0;
    enum accel_err err = read_items(s, &it, c);
    if (!err && (kind || path) && (it.n != 1 || !*it.at[0]))
        err = accel_fail(ACCEL_EARG, "key '%s' needs a text", c->key);
    else if (!err && kind)
        s->kind = it.at[0];
    else if (!err && path)
        s->path = it.at[0];
    else if (!err)
        err = set(s, c->key, &it);
    accel_free(it.at);
    return err;
}

/* Puts the position in front of an error of the user's. */
static enum accel_err place(enum accel_err err, const struct accel_config *c, bool at_key)
{
    char text[1024] = "";
    if (err != ACCEL_EARG)
        return err;
    strncat(text, accel_errmsg(), sizeof text - 1);
    return accel_config_fail(c, at_key, "%s", text);
}

static enum accel_err read_config(struct accel_data_spec *s, const struct accel_config *c)
{
    if (c->kind == ACCEL_CONFIG_STRING)
        return place(parse(s, c->text), c, false);
    if (c->kind != ACCEL_CONFIG_MAP)
        return accel_config_fail(c, false, "a data set is a text or a map, not %s",
                                 accel_config_kind_name(c->kind));
    for (const struct accel_config *k = c->child; k; k = k->next)
        ACCEL_TRY(place(read_member(s, k), k, true));
    return s->kind ? ACCEL_OK : accel_config_fail(c, false, "key 'kind' is missing");
}

enum accel_err accel_data_spec_read(struct accel_data_spec **out, const struct accel_config *c)
{
    *out = spec_new();
    if (!*out)
        return accel_fail_nomem();
    enum accel_err err = read_config(*out, c);
    if (err) {
        accel_data_spec_free(*out);
        *out = NULL;
    }
    return err;
}

const char *accel_data_spec_beyond(const struct accel_data_spec *s, const char *const *names)
{
    for (size_t k = 0; k < N_KEYS; k++) {
        size_t i = 0;
        while (names[i] && strcmp(names[i], keys[k].name) != 0)
            i++;
        if (s->given >> k & 1 && !names[i])
            return keys[k].name;
    }
    return NULL;
}
