/* tar.c - WebDataset shards: tar files in which members that share a name up to its first dot are a
 * sample: NAME.jpg (jpeg, png) the image, NAME.cls its class.
 *
 * The shards are walked once, header by header; images are decoded when they are read, from the
 * shard that is open. PATH may hold one range in braces, name-{000000..000146}.tar.
 *
 * Source: IEEE Std 1003.1-2017, pax, "ustar Interchange Format"; the WebDataset format description.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/data_int.h"

enum { BLOCK = 512, NAME_MOST = 256, CLASS_MOST = 32, SHARDS_MOST = 100000 };

struct sample {
    size_t shard;
    uint64_t offset, size; /* of the image */
    int64_t label;
    bool has_image, has_label;
};

struct tar {
    const char **path; /* [n_path] */
    size_t n_path, path_cap;
    struct sample *at; /* [n] */
    size_t n, cap;
    char key[NAME_MOST + 1]; /* of the newest sample */
    struct accel_file *open; /* shard `opened` */
    size_t opened;
    struct accel_image_room bytes, room;
};

static enum accel_err add_path(struct accel_dataset *d, const char *path)
{
    struct tar *t = d->state;
    const char *copy = accel_arena_strndup(&d->arena, path, strlen(path));
    if (!copy || !ACCEL_GROW(t->path, t->path_cap, t->n_path + 1))
        return accel_fail_nomem();
    t->path[t->n_path++] = copy;
    return ACCEL_OK;
}

/* "a-{000..146}.tar" → a-000.tar, a-001.tar, … */
static enum accel_err expand(struct accel_dataset *d, const char *path)
{
    const char *open = strchr(path, '{'), *dots = open ? strstr(open, "..") : NULL;
    const char *close = dots ? strchr(dots, '}') : NULL;
    if (!close)
        return add_path(d, path);
    char *end;
    long from = strtol(open + 1, &end, 10), to = strtol(dots + 2, NULL, 10);
    if (end != dots || strspn(dots + 2, "0123456789") != (size_t)(close - dots - 2) || from < 0 ||
        to < from || to - from >= SHARDS_MOST)
        return accel_fail(ACCEL_EARG, "tar: the range in '%.500s' is none, or has over %d shards",
                          path, SHARDS_MOST);
    for (long i = from; i <= to; i++) {
        struct accel_str s = {0};
        accel_str_addf(&s, "%.*s%0*ld%s", (int)(open - path), path, (int)(dots - open - 1), i,
                       close + 1);
        enum accel_err err = s.failed ? accel_fail_nomem() : add_path(d, accel_str_get(&s));
        accel_str_clear(&s);
        ACCEL_TRY(err);
    }
    return ACCEL_OK;
}

/* An octal number, or GNU's binary form; false when it is neither. */
static bool read_octal(uint64_t *out, const unsigned char *p, size_t n)
{
    *out = 0;
    if (*p & 0x80) {
        for (size_t i = n - 8; i < n; i++)
            *out = *out << 8 | p[i];
        return true;
    }
    for (size_t i = 0; i < n && p[i] && p[i] != ' '; i++) {
        if (p[i] < '0' || p[i] > '7')
            return false;
        *out = *out << 3 | (uint64_t)(p[i] - '0');
    }
    return true;
}

static bool checks_out(const unsigned char *h)
{
    uint64_t want, sum = 0;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= 148 && i < 156 ? ' ' : h[i];
    return read_octal(&want, h + 148, 8) && want == sum;
}

static void read_name(char name[NAME_MOST + 1], const unsigned char *h)
{
    bool ustar = memcmp(h + 257, "ustar", 6) == 0;
    snprintf(name, NAME_MOST + 1, "%.*s%s%.*s", ustar ? 155 : 0, (const char *)h + 345,
             ustar && h[345] ? "/" : "", 100, (const char *)h);
}

/* The sample that a member belongs to: the newest, or a new one. */
static enum accel_err find_sample(struct sample **out, struct tar *t, const char *name, size_t n,
                                  size_t shard)
{
    bool same = t->n && strlen(t->key) == n && memcmp(t->key, name, n) == 0;
    if (!same || t->at[t->n - 1].shard != shard) {
        if (!ACCEL_GROW(t->at, t->cap, t->n + 1))
            return accel_fail_nomem();
        t->at[t->n++] = (struct sample){.shard = shard};
        memcpy(t->key, name, n);
        t->key[n] = '\0';
    }
    *out = &t->at[t->n - 1];
    return ACCEL_OK;
}

static enum accel_err read_class(struct sample *s, struct accel_file *f, uint64_t at, uint64_t size)
{
    char text[CLASS_MOST + 1] = "", *end;
    if (size > CLASS_MOST)
        return accel_fail(ACCEL_EMODEL, "a class of %" PRIu64 " bytes", size);
    ACCEL_TRY(accel_file_read(f, at, size, text));
    s->label = strtoll(text, &end, 10);
    if (end == text || end[strspn(end, " \r\n")] || s->label < 0)
        return accel_fail(ACCEL_EMODEL, "'%s' is no class", text);
    s->has_label = true;
    return ACCEL_OK;
}

static enum accel_err take_member(struct tar *t, struct accel_file *f, size_t shard,
                                  const char *name, uint64_t at, uint64_t size)
{
    const char *slash = strrchr(name, '/'), *base = slash ? slash + 1 : name;
    const char *dot = strchr(base, '.');
    struct sample *s;
    if (!dot || dot == base)
        return ACCEL_OK;
    ACCEL_TRY(find_sample(&s, t, name, (size_t)(dot - name), shard));
    if (!strcasecmp(dot, ".cls"))
        return read_class(s, f, at, size);
    if (strcasecmp(dot, ".jpg") && strcasecmp(dot, ".jpeg") && strcasecmp(dot, ".png"))
        return ACCEL_OK;
    s->offset = at;
    s->size = size;
    s->has_image = true;
    return ACCEL_OK;
}

/* A long name stands in a member of type L before the one it belongs to; other special members are
 * passed over. */
static enum accel_err walk(struct tar *t, struct accel_file *f, size_t shard)
{
    unsigned char h[BLOCK];
    char name[NAME_MOST + 1], longer[NAME_MOST + 1] = "";
    for (uint64_t at = 0; at + BLOCK <= f->size;) {
        uint64_t size;
        ACCEL_TRY(accel_file_read(f, at, BLOCK, h));
        if (!h[0])
            return ACCEL_OK; /* the end: blocks of zeros */
        if (!checks_out(h) || !read_octal(&size, h + 124, 12) || size > f->size - at - BLOCK)
            return accel_fail(ACCEL_EMODEL, "the tar header at byte %" PRIu64 " is damaged", at);
        at += BLOCK;
        read_name(name, h);
        if (h[156] == 'L') {
            uint64_t n = size < NAME_MOST ? size : NAME_MOST;
            memset(longer, 0, sizeof longer);
            ACCEL_TRY(accel_file_read(f, at, n, longer));
        } else if (h[156] == '0' || !h[156]) {
            const char *shown = *longer ? longer : name;
            enum accel_err err = take_member(t, f, shard, shown, at, size);
            if (err)
                return accel_fail_in(err, "member '%.200s'", shown);
            *longer = '\0';
        }
        at += (size + BLOCK - 1) / BLOCK * BLOCK;
    }
    return ACCEL_OK;
}

/* Samples with an image and a class stay; others are counted in a warning. */
static enum accel_err settle(struct accel_dataset *d)
{
    struct tar *t = d->state;
    size_t n = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->at[i].has_image && t->at[i].has_label)
            t->at[n++] = t->at[i];
    if (n < t->n)
        accel_warn(d->log, "data set: %zu samples without an image or a class are left out",
                   t->n - n);
    d->n_all = (int64_t)(t->n = n);
    if (!n)
        return ACCEL_OK;
    ACCEL_TRY(accel_dataset_new_labels(d, ACCEL_LABEL_CLASS, 1));
    for (size_t i = 0; i < n; i++)
        ((int64_t *)d->label)[i] = t->at[i].label;
    return ACCEL_OK;
}

static enum accel_err open_shard(struct tar *t, size_t shard)
{
    if (t->open && t->opened == shard)
        return ACCEL_OK;
    accel_file_close(t->open);
    t->open = NULL;
    t->opened = shard;
    return accel_file_open(&t->open, t->path[shard]);
}

static enum accel_err open_tar(struct accel_dataset *d, enum accel_split split)
{
    (void)split;
    struct tar *t = d->state = ACCEL_NEW(&d->arena, struct tar, 1);
    if (!t)
        return accel_fail_nomem();
    if (!d->spec->path)
        return accel_fail(ACCEL_EARG, "tar:FILES: the files are missing");
    ACCEL_TRY(expand(d, d->spec->path));
    for (size_t i = 0; i < t->n_path; i++) {
        ACCEL_TRY(open_shard(t, i));
        enum accel_err err = walk(t, t->open, i);
        if (err)
            return accel_fail_in(err, "%.1000s", t->path[i]);
    }
    return settle(d);
}

static enum accel_err image(struct accel_dataset *d, int64_t sample, struct accel_image *im)
{
    struct tar *t = d->state;
    const struct sample *s = &t->at[sample];
    ACCEL_TRY(open_shard(t, s->shard));
    if (s->size > t->bytes.cap || !t->bytes.at) {
        unsigned char *more = accel_alloc_pages((size_t)s->size);
        if (!more)
            return accel_fail_nomem();
        accel_free(t->bytes.at);
        t->bytes = (struct accel_image_room){more, (size_t)s->size};
    }
    ACCEL_TRY(accel_file_read(t->open, s->offset, s->size, t->bytes.at));
    enum accel_err err = accel_image_decode(im, &t->room, t->bytes.at, (size_t)s->size);
    return err ? accel_fail_in(err, "%.1000s: image %" PRId64, t->path[s->shard], sample)
               : ACCEL_OK;
}

static void close_set(struct accel_dataset *d)
{
    struct tar *t = d->state;
    if (!t)
        return;
    accel_file_close(t->open);
    accel_free(t->path);
    accel_free(t->at);
    accel_free(t->bytes.at);
    accel_free(t->room.at);
}

static const char *const tar_keys[] = {"limit", "mean",    "std",   "resize",
                                       "crop",  "shuffle", "batch", NULL};

const struct accel_source accel_source_tar = {"tar", tar_keys, open_tar, image, close_set};
