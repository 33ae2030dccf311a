/* The tree of parts with its changes, measured and sent.
 *
 * Only parts that changed, and those around them, are dirty. Sending walks the dirty ones and keeps
 * one position in the origin file: everything up to a dirty part is copied in one run, so a model
 * of ten thousand nodes with one pruned weight is three copies. The length in front of a dirty part
 * is written anew; so is its tag, in the shortest form. */
#include "onnx/write_int.h"

#include "base/alloc.h"

#include <string.h>

struct accel_part *accel_part_add(struct accel_write *w, struct accel_part *parent,
                                  enum accel_part_kind kind, int field)
{
    struct accel_part *p = ACCEL_NEW(&w->arena, struct accel_part, 1);
    if (!p)
        return NULL;
    p->kind = kind;
    p->field = field;
    p->start = p->body = p->end = parent->end;
    p->parent = parent;
    if (parent->last)
        parent->last->next = p;
    else
        parent->child = p;
    parent->last = p;
    return p;
}

struct accel_part *accel_part_next(const struct accel_part *p)
{
    if (p->child)
        return p->child;
    while (p && !p->next)
        p = p->parent;
    return p ? p->next : NULL;
}

enum accel_err accel_part_set(struct accel_write *w, struct accel_part *p, struct accel_str *s)
{
    char *copy = s->failed ? NULL : accel_arena_strndup(&w->arena, accel_str_get(s), s->len);
    p->n_bytes = s->len;
    p->bytes = (const uint8_t *)copy;
    p->replaced = true;
    accel_str_clear(s);
    return copy ? ACCEL_OK : accel_fail_nomem();
}

void accel_tree_reset(struct accel_onnx *x)
{
    for (struct accel_part *p = x->root; p; p = accel_part_next(p)) {
        p->removed = p->replaced = p->dirty = p->keeps_children = false;
        p->bytes = NULL;
        p->n_bytes = p->new_size = 0;
        if (p->kind == ACCEL_PART_PAYLOAD)
            p->tensor = NULL;
        struct accel_part **link = &p->child, *last = NULL;
        while (*link) {
            if ((*link)->in_file) {
                last = *link;
                link = &last->next;
            } else {
                *link = (*link)->next;
            }
        }
        p->last = last;
    }
}

/* The content is not that of the file with changes inside, but all new. */
static bool is_new(const struct accel_part *p)
{
    return p->replaced || !p->in_file;
}

static uint64_t field_size(const struct accel_part *p)
{
    return accel_varint_size((uint64_t)p->field << 3) + accel_varint_size(p->new_size) +
           p->new_size;
}

/* Depth is at most the nesting that the scan allows. A payload's new_size is known beforehand. */
static void measure(struct accel_part *p)
{
    p->dirty = is_new(p) || p->removed;
    if (p->kind == ACCEL_PART_PAYLOAD || p->removed)
        return;
    p->new_size = is_new(p) ? p->n_bytes : p->end - p->body;
    for (struct accel_part *c = p->child; c; c = c->next) {
        bool all_new = is_new(p); /* nothing of the file counts but what is kept */
        if (all_new && c->in_file && !p->keeps_children)
            continue;
        measure(c);
        if (!c->dirty) {
            p->new_size += all_new ? c->end - c->start : 0;
            continue;
        }
        p->dirty = true;
        p->new_size -= c->in_file && !all_new ? c->end - c->start : 0;
        p->new_size += c->removed ? 0 : field_size(c);
    }
}

uint64_t accel_tree_measure(struct accel_write *w)
{
    measure(w->x->root);
    return w->x->root->new_size;
}

enum accel_err accel_emit_bytes(struct accel_write *w, const void *bytes, uint64_t n)
{
    w->n_out += n;
    return w->out && n ? accel_out_write(w->out, bytes, n) : ACCEL_OK;
}

static enum accel_err copy_until(struct accel_write *w, uint64_t position)
{
    uint64_t from = w->copied, n = position - from;
    w->copied = position;
    w->n_out += n;
    return w->out && n ? accel_out_copy(w->out, w->x->file, from, n) : ACCEL_OK;
}

static enum accel_err emit_field(struct accel_write *w, const struct accel_part *p);

static enum accel_err emit_content(struct accel_write *w, const struct accel_part *p)
{
    if (is_new(p)) {
        ACCEL_TRY(accel_emit_bytes(w, p->bytes, p->n_bytes));
        if (p->kind == ACCEL_PART_PAYLOAD)
            return accel_payload_emit(w, p);
        for (const struct accel_part *c = p->child; c; c = c->next) {
            if (c->removed || (c->in_file && !p->keeps_children))
                continue;
            w->copied = c->start;
            ACCEL_TRY(c->dirty ? emit_field(w, c) : copy_until(w, c->end));
        }
        return ACCEL_OK;
    }
    w->copied = p->body;
    for (const struct accel_part *c = p->child; c; c = c->next) {
        if (!c->dirty)
            continue;
        ACCEL_TRY(copy_until(w, c->start));
        if (!c->removed)
            ACCEL_TRY(emit_field(w, c));
        w->copied = c->end;
    }
    return copy_until(w, p->end);
}

static enum accel_err emit_field(struct accel_write *w, const struct accel_part *p)
{
    uint8_t head[20];
    size_t n = accel_varint_encode(head, (uint64_t)p->field << 3 | 2);
    n += accel_varint_encode(head + n, p->new_size);
    ACCEL_TRY(accel_emit_bytes(w, head, n));
    return emit_content(w, p);
}

enum accel_err accel_tree_emit(struct accel_write *w)
{
    w->n_out = 0;
    return emit_content(w, w->x->root);
}
