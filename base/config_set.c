/* --set PATH=VALUE: walks the dotted path through the tree, making maps where keys are missing.
 * Keys are not judged here: whoever reads the tree names unknown ones, with the path as their
 * place. */
#include "base/config_int.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

struct walk {
    struct accel_config_file *file;
    const char *path; /* whole, in the arena */
};

static enum accel_err fail(const struct walk *w, const char *text, const char *name)
{
    return accel_fail(ACCEL_EARG, "--set %.500s: '%.200s' %s", w->path, name, text);
}

static struct accel_config *node_new(const struct walk *w, enum accel_config_kind kind)
{
    struct accel_config *c = ACCEL_NEW(&w->file->arena, struct accel_config, 1);
    if (c) {
        c->kind = kind;
        c->file = w->file;
        c->set = w->path;
    }
    return c;
}

static void append(struct accel_config *parent, struct accel_config *c)
{
    struct accel_config **tail = &parent->child;
    while (*tail)
        tail = &(*tail)->next;
    *tail = c;
    parent->n++;
}

/* The child of `at` that a path component names; a new NULL one when there is none. */
static enum accel_err step(struct accel_config **out, const struct walk *w, struct accel_config *at,
                           const char *name)
{
    struct accel_config *c = at->child;
    if (at->kind == ACCEL_CONFIG_NULL)
        at->kind = ACCEL_CONFIG_MAP;
    if (at->kind == ACCEL_CONFIG_MAP) {
        while (c && strcmp(c->key, name) != 0)
            c = c->next;
    } else if (at->kind == ACCEL_CONFIG_LIST) {
        size_t n = strlen(name);
        if (n == 0 || n > 6 || strspn(name, "0123456789") != n || atoi(name) > at->n)
            return fail(w, "is no place in the list (counted from 0)", name);
        for (int i = atoi(name); c && i > 0; i--)
            c = c->next;
    } else {
        return fail(w, "lies below a value that is no map or list", name);
    }
    if (!c) {
        c = node_new(w, ACCEL_CONFIG_NULL);
        if (!c)
            return accel_fail_nomem();
        c->key = at->kind == ACCEL_CONFIG_MAP ? name : NULL;
        append(at, c);
    }
    *out = c;
    return ACCEL_OK;
}

/* A bare list is the config_list of an object: paths may name it by that. */
static enum accel_err wrap_list(const struct walk *w, const char *first)
{
    struct accel_config *root = w->file->root;
    if (root->kind != ACCEL_CONFIG_LIST || strspn(first, "0123456789") == strlen(first))
        return ACCEL_OK;
    struct accel_config *map = node_new(w, ACCEL_CONFIG_MAP);
    if (!map)
        return accel_fail_nomem();
    map->line = root->line;
    map->col = root->col;
    map->set = NULL;
    root->key = "config_list";
    append(map, root);
    w->file->root = map;
    return ACCEL_OK;
}

/* JSON, or else the text itself; a list or map must be JSON. */
static enum accel_err parse_value(struct accel_config **out, const struct walk *w,
                                  const char *value)
{
    struct accel_config_parse p = {w->file, true, w->path, w->file->n_items};
    enum accel_err err = *value ? accel_config_build(out, &p, value, strlen(value)) : ACCEL_EARG;
    w->file->n_items = p.n_items;
    if (err != ACCEL_EARG || *value == '[' || *value == '{')
        return err;
    struct accel_config *c = node_new(w, ACCEL_CONFIG_STRING);
    if (!c)
        return accel_fail_nomem();
    c->text = value;
    *out = c;
    return ACCEL_OK;
}

enum accel_err accel_config_set(struct accel_config_file *f, const char *assignment)
{
    const char *eq = strchr(assignment, '=');
    if (!eq || eq == assignment)
        return accel_fail(ACCEL_EARG, "--set %.200s: wants KEY=VALUE", assignment);
    struct walk w = {f, accel_arena_strndup(&f->arena, assignment, (size_t)(eq - assignment))};
    char *names = accel_arena_strndup(&f->arena, assignment, (size_t)(eq - assignment));
    char *value = accel_arena_strndup(&f->arena, eq + 1, strlen(eq + 1));
    if (!w.path || !names || !value)
        return accel_fail_nomem();
    char *name = names, *next = names;
    struct accel_config *at = NULL, *from;
    for (int depth = 0; next; name = next, depth++) {
        next = strchr(name, '.');
        if (next)
            *next++ = '\0';
        if (!*name || depth == ACCEL_CONFIG_MAX_DEPTH)
            return accel_fail(ACCEL_EARG,
                              "--set %.500s: wants a path of 1 to %d names with dots "
                              "between them",
                              w.path, ACCEL_CONFIG_MAX_DEPTH);
        if (!at) {
            ACCEL_TRY(wrap_list(&w, name));
            at = f->root;
        }
        ACCEL_TRY(step(&at, &w, at, name));
    }
    ACCEL_TRY(parse_value(&from, &w, value));
    from->key = at->key;
    from->key_line = at->key_line;
    from->key_col = at->key_col;
    from->next = at->next;
    *at = *from;
    return ACCEL_OK;
}
