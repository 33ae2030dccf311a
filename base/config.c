/* libfyaml's events become our tree.
 *
 * Why events and not its documents: nothing recurses, aliases stay aliases until we copy what they
 * stand for (and count the copies, so that an alias bomb ends at the cap), duplicate keys are found
 * by our hash table, and depth is capped before anything is built. JSON goes through the same
 * parser in its strict mode; what that mode lets through is checked here. */
#include "base/config_int.h"

#include "base/alloc.h"
#include "base/map.h"

#include <libfyaml.h>
#include <string.h>

struct level {
    struct accel_config *node;
    struct accel_config **tail; /* where the next child is linked */
    bool has_key;               /* a map's key was read, its value comes next */
    const char *key;
    int key_line, key_col;
};

struct builder {
    struct accel_config_parse *p;
    struct fy_parser *parser;
    struct fy_diag *diag;
    struct accel_map anchors;
    struct accel_config *root;
    struct level level[ACCEL_CONFIG_MAX_DEPTH];
    int depth;
    int n_docs;
    int line, col; /* of the event in hand */
};

static enum accel_err fail(const struct builder *b, const char *text)
{
    return accel_config_fail_at(b->p, b->line, b->col, "%s", text);
}

static enum accel_err node_new(struct accel_config **out, struct builder *b)
{
    if (++b->p->n_items > ACCEL_CONFIG_MAX_ITEMS)
        return accel_config_fail_at(b->p, b->line, b->col, "the config has more than %d items",
                                    ACCEL_CONFIG_MAX_ITEMS);
    struct accel_config *c = ACCEL_NEW(&b->p->file->arena, struct accel_config, 1);
    if (!c)
        return accel_fail_nomem();
    c->file = b->p->file;
    c->set = b->p->set;
    if (!c->set) {
        c->line = b->line;
        c->col = b->col;
    }
    *out = c;
    return ACCEL_OK;
}

/* Links a finished or opened node into the innermost list or map. */
static void attach(struct builder *b, struct accel_config *c)
{
    if (!b->depth) {
        b->root = c;
        return;
    }
    struct level *l = &b->level[b->depth - 1];
    if (l->node->kind == ACCEL_CONFIG_MAP) {
        c->key = l->key;
        c->key_line = c->set ? 0 : l->key_line;
        c->key_col = c->set ? 0 : l->key_col;
        l->has_key = false;
    }
    *l->tail = c;
    l->tail = &c->next;
    l->node->n++;
}

static bool wants_key(const struct builder *b)
{
    const struct level *l = b->depth ? &b->level[b->depth - 1] : NULL;
    return l && l->node->kind == ACCEL_CONFIG_MAP && !l->has_key;
}

/* The token's text in the arena, checked for NULs (which escapes can make). */
static enum accel_err token_text(const char **out, struct builder *b, struct fy_token *t)
{
    size_t len = 0;
    const char *s = t ? fy_token_get_text(t, &len) : "";
    if (!s)
        return accel_fail_nomem();
    if (memchr(s, '\0', len))
        return fail(b, "a text holds a NUL character");
    char *copy = accel_arena_strndup(&b->p->file->arena, s, len);
    if (!copy)
        return accel_fail_nomem();
    *out = copy;
    return ACCEL_OK;
}

/* Remembers what an anchor stands for; a name may be given again. */
static enum accel_err anchor_put(struct builder *b, struct fy_token *t, struct accel_config *c)
{
    const char *name;
    if (!t)
        return ACCEL_OK;
    ACCEL_TRY(token_text(&name, b, t));
    return accel_map_put(&b->anchors, name, c) ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err take_key(struct builder *b, struct fy_token *t)
{
    struct level *l = &b->level[b->depth - 1];
    ACCEL_TRY(token_text(&l->key, b, t));
    l->has_key = true;
    l->key_line = b->line;
    l->key_col = b->col;
    if (b->p->json && fy_token_scalar_style(t) != FYSS_DOUBLE_QUOTED)
        return accel_config_fail_at(b->p, b->line, b->col,
                                    "JSON wants double quotes around the key '%.100s'", l->key);
    return ACCEL_OK;
}

/* A quoted style or a string tag makes it a string whatever it looks like. */
static enum accel_err take_scalar(struct builder *b, struct fy_event *e)
{
    struct fy_token *t = e->scalar.value;
    if (wants_key(b))
        return take_key(b, t);
    struct accel_config *c;
    const char *text, *tag = "";
    ACCEL_TRY(node_new(&c, b));
    ACCEL_TRY(token_text(&text, b, t));
    if (e->scalar.tag)
        ACCEL_TRY(token_text(&tag, b, e->scalar.tag));
    enum fy_scalar_style style = t ? fy_token_scalar_style(t) : FYSS_PLAIN;
    size_t n = strlen(tag);
    bool plain = style == FYSS_PLAIN && !(n >= 3 && strcmp(tag + n - 3, "str") == 0);
    bool ok = accel_config_scalar(c, text, plain, b->p->json);
    if (b->p->json && (!ok || (style != FYSS_PLAIN && style != FYSS_DOUBLE_QUOTED)))
        return accel_config_fail_at(b->p, b->line, b->col,
                                    *text ? "'%.100s' is no JSON value; texts want double quotes"
                                          : "a value is missing%.1s",
                                    text);
    attach(b, c);
    return anchor_put(b, e->scalar.anchor, c);
}

static enum accel_err open_level(struct builder *b, enum accel_config_kind kind,
                                 struct fy_token *anchor)
{
    struct accel_config *c;
    if (wants_key(b))
        return fail(b, "a list or map cannot be a key");
    if (b->depth == ACCEL_CONFIG_MAX_DEPTH)
        return accel_config_fail_at(b->p, b->line, b->col, "nested deeper than %d levels",
                                    ACCEL_CONFIG_MAX_DEPTH);
    ACCEL_TRY(node_new(&c, b));
    c->kind = kind;
    attach(b, c);
    ACCEL_TRY(anchor_put(b, anchor, c));
    b->level[b->depth++] = (struct level){.node = c, .tail = &c->child};
    return ACCEL_OK;
}

static enum accel_err check_duplicates(const struct builder *b, struct accel_config *map)
{
    struct accel_map seen = {0};
    enum accel_err err = ACCEL_OK;
    for (struct accel_config *c = map->child; c && !err; c = c->next) {
        const struct accel_config *old = accel_map_find(&seen, c->key);
        if (old)
            err = accel_config_fail_at(b->p, c->key_line, c->key_col,
                                       "key '%.100s' is given twice, first at line %d column %d",
                                       c->key, old->key_line, old->key_col);
        else if (!accel_map_put(&seen, c->key, c))
            err = accel_fail_nomem();
    }
    accel_map_clear(&seen);
    return err;
}

static enum accel_err close_level(struct builder *b)
{
    struct accel_config *c = b->level[--b->depth].node;
    return c->kind == ACCEL_CONFIG_MAP ? check_duplicates(b, c) : ACCEL_OK;
}

/* Copies a subtree below `depth` open levels: at most MAX_DEPTH deep, so recursion is bounded. The
 * copies keep the positions of what was written. */
static enum accel_err copy_tree(struct accel_config **out, struct builder *b,
                                const struct accel_config *from, int depth)
{
    if (from->child && depth == ACCEL_CONFIG_MAX_DEPTH)
        return accel_config_fail_at(b->p, b->line, b->col, "nested deeper than %d levels",
                                    ACCEL_CONFIG_MAX_DEPTH);
    struct accel_config *c;
    ACCEL_TRY(node_new(&c, b));
    *c = *from;
    c->child = c->next = NULL;
    struct accel_config **tail = &c->child;
    for (const struct accel_config *k = from->child; k; k = k->next) {
        ACCEL_TRY(copy_tree(tail, b, k, depth + 1));
        tail = &(*tail)->next;
    }
    *out = c;
    return ACCEL_OK;
}

static enum accel_err take_alias(struct builder *b, struct fy_event *e)
{
    const char *name;
    struct accel_config *c;
    ACCEL_TRY(token_text(&name, b, e->alias.anchor));
    if (b->p->json)
        return fail(b, "JSON has no aliases");
    const struct accel_config *from = accel_map_find(&b->anchors, name);
    if (!from)
        return accel_config_fail_at(b->p, b->line, b->col, "no anchor is named '%.100s'", name);
    for (int i = 0; i < b->depth; i++)
        if (b->level[i].node == from)
            return accel_config_fail_at(b->p, b->line, b->col, "alias '%.100s' contains itself",
                                        name);
    if (wants_key(b))
        return fail(b, "an alias cannot be a key");
    ACCEL_TRY(copy_tree(&c, b, from, b->depth));
    c->key = NULL;
    attach(b, c);
    return ACCEL_OK;
}

/* The marks of quoted scalars and aliases stand behind their first character. */
static bool is_inside(struct fy_event *e)
{
    if (e->type != FYET_SCALAR || !e->scalar.value)
        return e->type == FYET_ALIAS;
    enum fy_scalar_style style = fy_token_scalar_style(e->scalar.value);
    return style == FYSS_DOUBLE_QUOTED || style == FYSS_SINGLE_QUOTED;
}

static enum accel_err take_event(struct builder *b, struct fy_event *e)
{
    const struct fy_mark *mark = fy_event_start_mark(e);
    if (mark) {
        b->line = mark->line + 1;
        b->col = mark->column + 1 - (int)is_inside(e);
    }
    switch (e->type) {
    case FYET_DOCUMENT_START:
        return b->n_docs++ ? fail(b, "the file holds more than one document") : ACCEL_OK;
    case FYET_MAPPING_START:
        return open_level(b, ACCEL_CONFIG_MAP, e->mapping_start.anchor);
    case FYET_SEQUENCE_START:
        return open_level(b, ACCEL_CONFIG_LIST, e->sequence_start.anchor);
    case FYET_MAPPING_END:
    case FYET_SEQUENCE_END:
        return close_level(b);
    case FYET_SCALAR:
        return take_scalar(b, e);
    case FYET_ALIAS:
        return take_alias(b, e);
    default:
        return ACCEL_OK;
    }
}

/* The parser's own complaint. It counts a line too many at the end of the text, and stands behind
 * the quote where a comma is missing before a quoted text. */
static enum accel_err syntax_error(struct builder *b, const char *text, size_t len)
{
    void *iter = NULL;
    const struct fy_diag_error *d = fy_diag_errors_iterate(b->diag, &iter);
    const char *msg = d && d->msg ? d->msg : "syntax error", *start = text, *end = text + len;
    int line = 1, col;
    for (const char *s = text; s + 1 < end && (!d || line < d->line); s++)
        if (*s == '\n') {
            line++;
            start = s + 1;
        }
    if (d && line == d->line) {
        col = d->column;
        const char *before = start + col - 2;
        if (strncmp(msg, "missing comma", 13) == 0 && col > 1 && before < end && *before == '"')
            col--;
    } else {
        const char *stop = memchr(start, '\n', (size_t)(end - start));
        col = (int)((stop ? stop : end) - start) + 1;
    }
    return accel_config_fail_at(b->p, line, col, "%.300s", msg);
}

static enum accel_err run(struct builder *b, const char *text, size_t len)
{
    enum accel_err err = ACCEL_OK;
    struct fy_event *e;
    if (fy_parser_set_string(b->parser, text, len))
        return accel_fail_nomem();
    while (!err && (e = fy_parser_parse(b->parser)) != NULL) {
        err = take_event(b, e);
        fy_parser_event_free(b->parser, e);
    }
    if (!err && fy_parser_get_stream_error(b->parser))
        err = syntax_error(b, text, len);
    if (!err && !b->root)
        err = accel_config_fail_at(b->p, 1, 1, "the config is empty");
    return err;
}

enum accel_err accel_config_build(struct accel_config **out, struct accel_config_parse *p,
                                  const char *text, size_t len)
{
    struct builder *b = accel_calloc(1, sizeof *b);
    if (!b)
        return accel_fail_nomem();
    enum accel_err err = ACCEL_ENOMEM;
    struct fy_diag_cfg quiet;
    fy_diag_cfg_default(&quiet);
    quiet.fp = NULL;
    b->p = p;
    b->diag = fy_diag_create(&quiet);
    if (b->diag) {
        fy_diag_set_collect_errors(b->diag, true);
        struct fy_parse_cfg cfg = {.flags = FYPCF_QUIET | FYPCF_COLLECT_DIAG |
                                            (p->json ? FYPCF_JSON_FORCE : FYPCF_JSON_NONE),
                                   .diag = b->diag};
        b->parser = fy_parser_create(&cfg);
    }
    err = b->parser ? run(b, text, len) : accel_fail_nomem();
    if (!err)
        *out = b->root;
    if (b->parser)
        fy_parser_destroy(b->parser);
    if (b->diag)
        fy_diag_destroy(b->diag);
    accel_map_clear(&b->anchors);
    accel_free(b);
    return err;
}
