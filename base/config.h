/* config.h - a JSON or YAML text as a tree with positions. The only user of libfyaml. */
#ifndef ACCEL_BASE_CONFIG_H
#define ACCEL_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

enum accel_config_kind {
    ACCEL_CONFIG_NULL,
    ACCEL_CONFIG_BOOL,
    ACCEL_CONFIG_INT,
    ACCEL_CONFIG_FLOAT,
    ACCEL_CONFIG_STRING,
    ACCEL_CONFIG_LIST,
    ACCEL_CONFIG_MAP
};

struct accel_config {
    enum accel_config_kind kind;
    int line, col;         /* 1-based, of the value's first character; 0 for values set by --set */
    const char *set;       /* the dotted path when --set made or replaced it, else NULL */
    const char *key;       /* in a map, else NULL */
    int key_line, key_col; /* 0 when --set made it */
    bool boolean;
    int64_t integer;
    double number;              /* INT and FLOAT */
    const char *text;           /* STRING; for scalars the text as written */
    struct accel_config *child; /* first item of a LIST or MAP */
    struct accel_config *next;  /* next sibling */
    int n;                      /* children */
    struct accel_config_file *file;
};

/* The file a tree came from. */
struct accel_config_file {
    const char *name; /* shown in errors: the path, "<stdin>", "--config" */
    const char *text; /* as read, NUL-terminated */
    size_t len;
    struct accel_arena arena;
    struct accel_config *root;
    size_t n_items; /* in the tree; capped */
};

/* Reads a file ("-": standard input; text that starts with { or [ : itself). Limits: 4 MiB, depth
 * 64, 100,000 items after aliases are expanded, no duplicate keys, no NUL, UTF-8. JSON may hold //
 * and / * * / comments. Plain scalars of YAML 1.2 core schema; quoted ones are strings. Errors:
 * EARG, "FILE:LINE:COL: text" (syntax errors too). An empty text is an error. */
enum accel_err accel_config_read(struct accel_config_file **out, const char *source) ACCEL_CHECKED;
void accel_config_free(struct accel_config_file *f);

/* --set KEY=VALUE with a dotted path (list items by index): replaces or adds. VALUE is read as JSON
 * when it is some, else as a string. */
enum accel_err accel_config_set(struct accel_config_file *f, const char *assignment) ACCEL_CHECKED;

/* The child of this key, or NULL. */
const struct accel_config *accel_config_find(const struct accel_config *map, const char *key);

/* EARG with "FILE:LINE:COL: " in front (position of the value, or of its key when at_key), or
 * "--set PATH: " for what --set made. */
enum accel_err accel_config_fail(const struct accel_config *at, bool at_key, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

const char *accel_config_kind_name(enum accel_config_kind kind); /* "a number", "a list", … */

#endif
