/* The data file beside the model.
 *
 * Two files cannot be swapped in one step. So the model on disk must at every moment name a data
 * file that is complete and belongs to it: the new data go under a name that no file has yet, the
 * model is renamed over the old one, and only then the old data file goes. The name is OUT.data
 * when it is free, else OUT.XXXXXXXX.data with a hash of the content. A file that has the right
 * content already keeps its place: writing the same thing twice gives the same bytes and no second
 * data file.
 *
 * Content is compared while the tensors stream, piece by piece, and only with the few files that
 * may be meant: OUT.data, and those that the model at OUT names. */
#include "onnx/write_int.h"

#include "base/alloc.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN   4096u
#define COMPARE ((size_t)1 << 18) /* bytes compared at a time */
#define MAX_OLD 16                /* data files of the replaced model that are looked at */

/* A data file that is there before we write. */
struct accel_old_data {
    const char *name, *path;
    bool named;    /* by the model that OUT replaces */
    bool is_input; /* the model being written reads from it */
    bool same;     /* equal to what was streamed so far; false for links */
    struct accel_file *file;
};

static const char *base_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *accel_path_beside(struct accel_write *w, const char *name)
{
    size_t n = (size_t)(base_of(w->path) - w->path), m = strlen(name);
    char *s = ACCEL_NEW(&w->arena, char, n + m + 1);
    if (s) {
        memcpy(s, w->path, n);
        memcpy(s + n, name, m);
    }
    return s;
}

/* OUT.data, or OUT.XXXXXXXX.data. */
static const char *name_make(struct accel_write *w, const char *middle)
{
    const char *base = base_of(w->path);
    size_t size = strlen(base) + strlen(middle) + sizeof ".data";
    char *s = ACCEL_NEW(&w->arena, char, size);
    if (s)
        snprintf(s, size, "%s%s.data", base, middle);
    return s;
}

/* Whether a location is a name that we give to data files of OUT. */
static bool is_ours(const struct accel_write *w, const char *name, size_t n)
{
    const char *base = base_of(w->path);
    size_t b = strlen(base);
    if (n < b || memcmp(name, base, b) != 0)
        return false;
    name += b;
    n -= b;
    if (n == 14 && *name == '.') {
        for (int i = 1; i <= 8; i++)
            if (!isdigit((unsigned char)name[i]) && !(name[i] >= 'a' && name[i] <= 'f'))
                return false;
        name += 9;
        n -= 9;
    }
    return n == 5 && memcmp(name, ".data", 5) == 0;
}

/* Adds a file of this name if there is one. */
static enum accel_err old_add(struct accel_write *w, const char *name, size_t len, bool named)
{
    for (size_t i = 0; i < w->n_old; i++)
        if (strlen(w->old[i].name) == len && memcmp(w->old[i].name, name, len) == 0) {
            w->old[i].named |= named;
            return ACCEL_OK;
        }
    if (w->n_old >= MAX_OLD)
        return ACCEL_OK;
    char *copy = accel_arena_strndup(&w->arena, name, len);
    char *path = copy ? accel_path_beside(w, copy) : NULL;
    struct stat st;
    if (!path || !ACCEL_GROW(w->old, w->old_cap, w->n_old + 1))
        return accel_fail_nomem();
    if (lstat(path, &st))
        return ACCEL_OK;
    struct accel_old_data *o = &w->old[w->n_old++];
    *o = (struct accel_old_data){.name = copy, .path = path, .named = named};
    for (size_t i = 0; i < w->x->n_data; i++)
        o->is_input |=
            w->x->data[i]->file->dev == st.st_dev && w->x->data[i]->file->ino == st.st_ino;
    if (S_ISREG(st.st_mode) && st.st_nlink == 1) {
        enum accel_err err = accel_file_open(&o->file, path);
        if (err == ACCEL_ENOMEM)
            return err;
        o->same = !err;
    }
    return ACCEL_OK;
}

/* The locations of ours that one tensor of the replaced model names. */
static enum accel_err old_add_tensor(struct accel_write *w, const struct accel_onnx *x,
                                     const struct accel_part *p)
{
    uint8_t *bytes;
    size_t n;
    ACCEL_TRY(accel_part_read(&bytes, &n, x, p, false));
    enum accel_err err = ACCEL_OK;
    const uint8_t *at = bytes;
    for (struct accel_field f; !err && accel_field_next(&f, &at, bytes + n);) {
        if (f.number != TENSOR_EXTERNAL_DATA || f.wire_type != 2)
            continue;
        const uint8_t *inner = f.body;
        for (struct accel_field e; !err && accel_field_next(&e, &inner, f.end);) {
            size_t len = (size_t)(e.end - e.body);
            if (e.number == ENTRY_VALUE && is_ours(w, (const char *)e.body, len))
                err = old_add(w, (const char *)e.body, len, true);
        }
    }
    accel_free(bytes);
    return err;
}

/* What the model at OUT names. A file that is no model names nothing. */
static enum accel_err old_scan(struct accel_write *w)
{
    struct accel_onnx x = {0};
    enum accel_err err = accel_file_open(&x.file, w->path);
    if (!err)
        err = accel_wire_scan(&x);
    for (struct accel_part *p = err ? NULL : x.root; p && !err; p = accel_part_next(p))
        if (p->kind == ACCEL_PART_TENSOR && (!p->child || p->child->kind != ACCEL_PART_PAYLOAD))
            err = old_add_tensor(w, &x, p);
    accel_file_close(x.file);
    accel_arena_clear(&x.arena);
    accel_free(x.window);
    return err == ACCEL_ENOMEM ? err : ACCEL_OK;
}

enum accel_err accel_old_data_find(struct accel_write *w)
{
    struct stat st;
    const char *plain = name_make(w, "");
    if (!plain)
        return accel_fail_nomem();
    ACCEL_TRY(old_add(w, plain, strlen(plain), false));
    /* A link is replaced, its target and that target's data stay; so does another hard link. */
    if (lstat(w->path, &st) || !S_ISREG(st.st_mode) || st.st_nlink > 1)
        return ACCEL_OK;
    const struct accel_file *f = w->x->file;
    w->in_place = f && f->dev == st.st_dev && f->ino == st.st_ino;
    return old_scan(w);
}

static void entry_put(struct accel_str *s, const char *key, const char *value)
{
    struct accel_str e = {0};
    accel_put_string(&e, ENTRY_KEY, key);
    accel_put_string(&e, ENTRY_VALUE, value);
    accel_put_bytes(s, TENSOR_EXTERNAL_DATA, accel_str_get(&e), e.len);
    s->failed |= e.failed;
    accel_str_clear(&e);
}

enum accel_err accel_external_point(struct accel_write *w)
{
    if (!w->location && !(w->location = name_make(w, "")))
        return accel_fail_nomem();
    w->data_size = 0;
    for (size_t i = 0; i < w->n_placed; i++) {
        struct accel_part *p = w->placed[i];
        struct accel_str s = {0};
        char number[32];
        uint64_t offset = (w->data_size + ALIGN - 1) / ALIGN * ALIGN;
        w->data_size = offset + p->tensor->size;
        enum accel_err err = accel_part_others(&s, w, p, TENSOR_DATA_FIELDS);
        entry_put(&s, "location", w->location);
        snprintf(number, sizeof number, "%llu", (unsigned long long)offset);
        entry_put(&s, "offset", number);
        snprintf(number, sizeof number, "%llu", (unsigned long long)p->tensor->size);
        entry_put(&s, "length", number);
        accel_put_int(&s, TENSOR_DATA_LOCATION, 1);
        if (!err)
            err = accel_part_set(w, p, &s);
        accel_str_clear(&s);
        for (struct accel_part *c = p->child; c; c = c->next)
            c->removed |= !c->in_file; /* the payload of a tensor built in memory */
        if (err)
            return err;
    }
    return ACCEL_OK;
}

struct stream {
    struct accel_write *w;
    uint64_t at; /* position in the data file */
    enum accel_dtype dtype;
    char *block; /* [COMPARE] */
};

static enum accel_err compare(struct stream *s, struct accel_old_data *o, const char *bytes,
                              uint64_t size)
{
    for (uint64_t i = 0; i < size && o->same; i += COMPARE) {
        uint64_t n = size - i < COMPARE ? size - i : COMPARE;
        enum accel_err err = accel_file_read(o->file, s->at + i, n, s->block);
        o->same = !err && memcmp(s->block, bytes + i, n) == 0;
    }
    return ACCEL_OK;
}

static enum accel_err take(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct stream *s = ctx;
    uint64_t size = 0;
    (void)first;
    (void)accel_dtype_size(s->dtype, count, &size);
    for (size_t i = 0; i < s->w->n_old; i++)
        ACCEL_TRY(compare(s, &s->w->old[i], elem, size));
    s->at += size;
    return s->w->data_out ? accel_out_write(s->w->data_out, elem, size) : ACCEL_OK;
}

static enum accel_err stream_tensors(struct accel_write *w, struct stream *s)
{
    bool candidates = false;
    for (size_t i = 0; i < w->n_old; i++) {
        w->old[i].same &= w->old[i].file && w->old[i].file->size == w->data_size;
        candidates |= w->old[i].same;
    }
    for (size_t i = 0; i < w->n_placed; i++) {
        const struct accel_tensor *t = w->placed[i]->tensor;
        if (w->data_out)
            ACCEL_TRY(accel_out_pad(w->data_out, ALIGN));
        s->at = (s->at + ALIGN - 1) / ALIGN * ALIGN;
        s->dtype = t->dtype;
        if (w->data_out || t->edit || candidates)
            ACCEL_TRY(accel_tensor_stream(t, &w->buffer, take, s));
        else
            s->at += t->size;
        w->done += t->size;
        if (w->opt->progress)
            ACCEL_TRY(w->opt->progress(w->opt->ctx, w->done, w->total));
    }
    return ACCEL_OK;
}

static enum accel_err hash_file(uint64_t *out, const char *path)
{
    struct accel_file *f;
    ACCEL_TRY(accel_file_open(&f, path));
    uint64_t h = 0xcbf29ce484222325u, *block = accel_alloc_pages((size_t)1 << 20);
    enum accel_err err = block ? ACCEL_OK : accel_fail_nomem();
    for (uint64_t at = 0; !err && at < f->size;) {
        uint64_t n = f->size - at < (1 << 20) ? f->size - at : 1 << 20;
        memset((char *)block + n / 8 * 8, 0, n % 8 ? 8 : 0);
        err = accel_file_read(f, at, n, block);
        for (uint64_t i = 0; i < (n + 7) / 8; i++) {
            h = (h ^ block[i]) * 0x9e3779b97f4a7c15u;
            h ^= h >> 32;
        }
        at += n;
    }
    *out = h ^ f->size;
    accel_free(block);
    accel_file_close(f);
    return err;
}

static enum accel_err same_content(bool *same, struct accel_write *w, const char *name)
{
    struct stat st;
    const char *path = accel_path_beside(w, name), *temp = accel_out_temp_path(w->data_out);
    struct accel_file *a = NULL, *b = NULL;
    char *block = accel_calloc(2, COMPARE);
    enum accel_err err = path && block ? ACCEL_OK : accel_fail_nomem();
    *same = !err && lstat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink == 1;
    if (!err && *same && !(err = accel_file_open(&a, path)))
        err = accel_file_open(&b, temp);
    *same = *same && !err && a->size == b->size;
    for (uint64_t at = 0; !err && *same && at < a->size; at += COMPARE) {
        uint64_t n = a->size - at < COMPARE ? a->size - at : COMPARE;
        ACCEL_GOTO(err, accel_file_read(a, at, n, block));
        ACCEL_GOTO(err, accel_file_read(b, at, n, block + COMPARE));
        *same = memcmp(block, block + COMPARE, n) == 0;
    }
done:
    accel_file_close(a);
    accel_file_close(b);
    accel_free(block);
    return err;
}

/* OUT.XXXXXXXX.data: the first one from the hash on that is free, or holds the same already. */
static enum accel_err name_by_hash(struct accel_write *w)
{
    uint64_t h = 0;
    if (!w->dry)
        ACCEL_TRY(hash_file(&h, accel_out_temp_path(w->data_out)));
    for (;; h = (h + 1) * 0x9e3779b97f4a7c15u) {
        char middle[16];
        struct stat st;
        snprintf(middle, sizeof middle, ".%08x", (unsigned)(h >> 32));
        w->location = name_make(w, middle);
        char *path = w->location ? accel_path_beside(w, w->location) : NULL;
        if (!path)
            return accel_fail_nomem();
        if (w->dry || lstat(path, &st))
            return ACCEL_OK;
        ACCEL_TRY(same_content(&w->data_is_there, w, w->location));
        if (w->data_is_there)
            return ACCEL_OK;
    }
}

static enum accel_err name_settle(struct accel_write *w)
{
    bool taken = false;
    const char *plain = w->location;
    for (size_t i = 0; i < w->n_old; i++) {
        taken |= strcmp(w->old[i].name, plain) == 0;
        if (w->old[i].same && !w->data_is_there) {
            w->location = w->old[i].name;
            w->data_is_there = true;
        }
    }
    return taken && !w->data_is_there ? name_by_hash(w) : ACCEL_OK;
}

enum accel_err accel_external_write(struct accel_write *w)
{
    struct stream s = {.w = w, .block = accel_calloc(COMPARE, 1)};
    enum accel_err err = s.block ? ACCEL_OK : accel_fail_nomem();
    const char *path = accel_path_beside(w, w->location);
    if (!err && !w->dry)
        err = path ? accel_out_open(&w->data_out, path) : accel_fail_nomem();
    if (!err)
        err = stream_tensors(w, &s);
    if (!err && w->data_out)
        err = accel_out_finish(w->data_out);
    if (!err && w->data_out && accel_out_position(w->data_out) != w->data_size)
        err = accel_fail(ACCEL_EIO, "'%s' got %llu bytes instead of %llu", path,
                         (unsigned long long)accel_out_position(w->data_out),
                         (unsigned long long)w->data_size);
    if (!err)
        err = name_settle(w);
    accel_free(s.block);
    return err;
}

enum accel_err accel_external_commit(struct accel_write *w)
{
    if (!w->data_out || w->data_is_there)
        return ACCEL_OK;
    char *path = accel_path_beside(w, w->location);
    if (!path)
        return accel_fail_nomem();
    ACCEL_TRY(accel_out_retarget(w->data_out, path));
    ACCEL_TRY(accel_out_commit(w->data_out));
    w->data_committed = path;
    return ACCEL_OK;
}

void accel_external_undo(struct accel_write *w)
{
    if (w->data_committed)
        unlink(w->data_committed);
}

void accel_old_data_remove(struct accel_write *w)
{
    for (size_t i = 0; i < w->n_old; i++) {
        const struct accel_old_data *o = &w->old[i];
        bool used = w->n_placed && strcmp(o->name, w->location) == 0;
        if (o->named && !used && (w->in_place || !o->is_input))
            unlink(o->path);
    }
}

void accel_external_clear(struct accel_write *w)
{
    accel_out_close(w->data_out);
    for (size_t i = 0; i < w->n_old; i++)
        accel_file_close(w->old[i].file);
    accel_free(w->old);
    accel_free(w->placed);
}
