/* npz.c - sets of arrays: an .npz archive, one .npy file, or a folder of them. The first axis of
 * every array counts the samples; the array called "label" holds the labels.
 *
 * A ZIP file is read from its end: the directory there tells every member's place and size. Each
 * number is checked against the file before it is used, and a member's size against what deflate
 * can make of its bytes.
 *
 * Source: PKWARE, .ZIP File Format Specification, sections 4.3.7, 4.3.12, 4.3.14 to 4.3.16, 4.5.3.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/data_int.h"
#include "data/stream.h"

struct arrays {
    struct accel_npy *at;
    size_t n, cap;
};

enum { END_SIZE = 22, ENTRY_SIZE = 46, LOCAL_SIZE = 30, END64_SIZE = 56, LOCATOR_SIZE = 20 };
#define MAX_DIRECTORY ((uint64_t)16 << 20)

static uint64_t little(const unsigned char *p, int n)
{
    uint64_t v = 0;
    for (int i = n - 1; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

static enum accel_err damaged(const char *what)
{
    return accel_fail(ACCEL_EMODEL, "its ZIP %s is damaged", what);
}

/* Labels: whole numbers are classes, floats are values. */
static enum accel_err take_labels(struct accel_dataset *d, const struct accel_array *a)
{
    const struct accel_dtype_info *info = accel_dtype_find((int)a->dtype);
    int64_t width = a->dim[0] ? a->n / a->dim[0] : 1;
    bool whole = info->cls == ACCEL_CLASS_INT && width == 1;
    ACCEL_TRY(accel_dataset_new_labels(d, whole ? ACCEL_LABEL_CLASS : ACCEL_LABEL_VALUE, width));
    if (whole)
        accel_dtype_to_i64(a->dtype, a->data, 0, (size_t)a->n, d->label);
    for (int64_t i = 0; !whole && i < a->n; i++) {
        double v;
        accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &v);
        ((float *)d->label)[i] = (float)v;
    }
    return ACCEL_OK;
}

static enum accel_err add_array(struct accel_dataset *d, const char *name,
                                const struct accel_npy *array)
{
    const struct accel_array *a = &array->a;
    if (a->rank < 1)
        return accel_fail(ACCEL_EMODEL,
                          "array '%.200s' is a single number, its first axis must be "
                          "the samples",
                          name);
    if (d->n_all && d->n_all != a->dim[0])
        return accel_fail(ACCEL_EMODEL,
                          "array '%.200s' has %" PRId64 " samples, the others %" PRId64, name,
                          a->dim[0], d->n_all);
    d->n_all = a->dim[0];
    if (!d->n_all)
        return accel_fail(ACCEL_EMODEL, "array '%.200s' has no samples", name);
    if (strcmp(name, "label") == 0)
        return take_labels(d, a);
    struct accel_field *more = ACCEL_NEW(&d->arena, struct accel_field, d->n_input + 1);
    char *copy = accel_arena_strndup(&d->arena, name, strlen(name));
    if (!more || !copy)
        return accel_fail_nomem();
    if (d->n_input)
        memcpy(more, d->input, d->n_input * sizeof *more);
    uint64_t size;
    if (!accel_dtype_size(a->dtype, (uint64_t)(a->n / d->n_all), &size))
        return accel_fail(ACCEL_EMODEL, "array '%.200s' is too large", name);
    more[d->n_input++] =
        (struct accel_field){copy, a->dtype, a->rank - 1, a->dim + 1, (size_t)size, a->data};
    d->input = more;
    return ACCEL_OK;
}

static enum accel_err check_arrays(struct accel_dataset *d)
{
    return d->n_input ? ACCEL_OK : accel_fail(ACCEL_EMODEL, "it has no array but 'label'");
}

static struct accel_npy *array_new(struct accel_dataset *d)
{
    struct arrays *s = d->state;
    if (!s)
        s = d->state = ACCEL_NEW(&d->arena, struct arrays, 1);
    if (!s || !ACCEL_GROW(s->at, s->cap, s->n + 1))
        return NULL;
    s->at[s->n] = (struct accel_npy){0};
    return &s->at[s->n++];
}

static void close_set(struct accel_dataset *d)
{
    struct arrays *s = d->state;
    for (size_t i = 0; s && i < s->n; i++)
        accel_npy_clear(&s->at[i]);
    if (s)
        accel_free(s->at);
}

/* One member as the directory tells it. */
struct member {
    const char *name; /* with .npy */
    size_t name_len;
    int method; /* 0: stored, 8: deflate */
    uint64_t packed, size, offset;
};

static enum accel_err read_member(struct accel_dataset *d, struct accel_file *f,
                                  const struct member *m)
{
    unsigned char head[LOCAL_SIZE];
    uint64_t at, end;
    if (__builtin_add_overflow(m->offset, (uint64_t)LOCAL_SIZE, &at) || at > f->size)
        return damaged("directory");
    ACCEL_TRY(accel_file_read(f, m->offset, sizeof head, head));
    if (memcmp(head, "PK\3\4", 4) != 0)
        return damaged("directory");
    at += little(head + 26, 2) + little(head + 28, 2);
    if (__builtin_add_overflow(at, m->packed, &end) || end > f->size)
        return damaged("directory");
    if (m->method ? m->method != 8 || m->size / ACCEL_UNPACK_MOST > m->packed
                  : m->packed != m->size)
        return accel_fail(ACCEL_EMODEL,
                          "method %d with %" PRIu64 " bytes for %" PRIu64 " is none of .npz files",
                          m->method, m->packed, m->size);
    unsigned char *packed = accel_alloc_pages(m->packed);
    unsigned char *whole = m->method ? accel_alloc_pages(m->size) : packed;
    enum accel_err err = packed && whole ? ACCEL_OK : accel_fail_nomem();
    if (!err)
        err = accel_file_read(f, at, m->packed, packed);
    if (!err && m->method)
        err = accel_unpack(whole, m->size, packed, m->packed);
    struct accel_npy *array = err ? NULL : array_new(d);
    if (!err)
        err = array ? accel_npy_parse(array, whole, m->size) : accel_fail_nomem();
    if (whole != packed)
        accel_free(whole);
    accel_free(packed);
    if (err)
        return err;
    char *name = accel_arena_strndup(&d->arena, m->name, m->name_len - 4);
    return name ? add_array(d, name, array) : accel_fail_nomem();
}

/* Sizes of 2^32 - 1 stand for 64-bit ones in the extra field of id 1. */
static void read_extra(struct member *m, const unsigned char *p, size_t n)
{
    while (n >= 4) {
        size_t id = little(p, 2), len = little(p + 2, 2);
        p += 4;
        n -= 4;
        if (len > n)
            return;
        const unsigned char *at = p;
        uint64_t *const wide[] = {&m->size, &m->packed, &m->offset};
        for (int i = 0; id == 1 && i < 3; i++)
            if (*wide[i] == UINT32_MAX && at + 8 <= p + len) {
                *wide[i] = little(at, 8);
                at += 8;
            }
        p += len;
        n -= len;
    }
}

static enum accel_err walk_directory(struct accel_dataset *d, struct accel_file *f,
                                     const unsigned char *p, uint64_t n)
{
    while (n) {
        if (n < ENTRY_SIZE || memcmp(p, "PK\1\2", 4) != 0)
            return damaged("directory");
        size_t name = little(p + 28, 2), extra = little(p + 30, 2), text = little(p + 32, 2);
        if (n - ENTRY_SIZE < name + extra + text)
            return damaged("directory");
        struct member m = {(const char *)p + ENTRY_SIZE,
                           name,
                           (int)little(p + 10, 2),
                           little(p + 20, 4),
                           little(p + 24, 4),
                           little(p + 42, 4)};
        read_extra(&m, p + ENTRY_SIZE + name, extra);
        if (p[8] & 1)
            return accel_fail(ACCEL_EMODEL, "it is encrypted");
        if (name > 4 && !memchr(m.name, 0, name) && memcmp(m.name + name - 4, ".npy", 4) == 0) {
            enum accel_err err = read_member(d, f, &m);
            if (err)
                return accel_fail_in(err, "member '%.*s'", (int)(name < 200 ? name : 200), m.name);
        }
        p += ENTRY_SIZE + name + extra + text;
        n -= ENTRY_SIZE + name + extra + text;
    }
    return ACCEL_OK;
}

/* Where the directory is: from the end record, or the 64-bit one before it. */
static enum accel_err find_directory(struct accel_file *f, uint64_t *at, uint64_t *size)
{
    unsigned char buf[END_SIZE + 65535 + LOCATOR_SIZE], wide[END64_SIZE];
    uint64_t n = f->size < sizeof buf ? f->size : sizeof buf, from = f->size - n, i;
    if (n < END_SIZE)
        return accel_fail(ACCEL_EMODEL, "it is no ZIP file");
    ACCEL_TRY(accel_file_read(f, from, n, buf));
    for (i = n - END_SIZE;; i--) {
        if (memcmp(buf + i, "PK\5\6", 4) == 0 && i + END_SIZE + little(buf + i + 20, 2) == n)
            break;
        if (i == 0)
            return accel_fail(ACCEL_EMODEL, "it is no ZIP file");
    }
    *size = little(buf + i + 12, 4);
    *at = little(buf + i + 16, 4);
    if (*at == UINT32_MAX || *size == UINT32_MAX) {
        if (i < LOCATOR_SIZE || memcmp(buf + i - LOCATOR_SIZE, "PK\6\7", 4) != 0)
            return damaged("end");
        uint64_t end64 = little(buf + i - LOCATOR_SIZE + 8, 8);
        if (end64 > f->size || f->size - end64 < END64_SIZE)
            return damaged("end");
        ACCEL_TRY(accel_file_read(f, end64, sizeof wide, wide));
        if (memcmp(wide, "PK\6\6", 4) != 0)
            return damaged("end");
        *size = little(wide + 40, 8);
        *at = little(wide + 48, 8);
    }
    if (*at > f->size || *size > f->size - *at || *size > MAX_DIRECTORY)
        return damaged("end");
    return ACCEL_OK;
}

static enum accel_err read_archive(struct accel_dataset *d, struct accel_file *f)
{
    uint64_t at, size;
    ACCEL_TRY(find_directory(f, &at, &size));
    unsigned char *p = accel_calloc(size, 1);
    if (!p)
        return accel_fail_nomem();
    enum accel_err err = accel_file_read(f, at, size, p);
    if (!err)
        err = walk_directory(d, f, p, size);
    accel_free(p);
    return err ? err : check_arrays(d);
}

static enum accel_err open_npz(struct accel_dataset *d, enum accel_split split)
{
    (void)split;
    struct accel_file *f;
    if (!d->spec->path)
        return accel_fail(ACCEL_EARG, "npz:FILE: the file is missing");
    ACCEL_TRY(accel_file_open(&f, d->spec->path));
    enum accel_err err = read_archive(d, f);
    accel_file_close(f);
    return err == ACCEL_EMODEL ? accel_fail_in(err, "%.1000s", d->spec->path) : err;
}

static enum accel_err add_file(struct accel_dataset *d, const char *path, const char *name)
{
    struct accel_npy *array = array_new(d);
    if (!array)
        return accel_fail_nomem();
    ACCEL_TRY(accel_npy_read(array, path));
    return add_array(d, name, array);
}

static int is_npy(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return n > 4 && strcmp(e->d_name + n - 4, ".npy") == 0;
}

static enum accel_err read_folder(struct accel_dataset *d, DIR *dir)
{
    const char *path;
    errno = 0;
    for (struct dirent *e; (e = readdir(dir)); errno = 0) {
        if (!is_npy(e))
            continue;
        char *name = accel_arena_strndup(&d->arena, e->d_name, strlen(e->d_name) - 4);
        if (!name)
            return accel_fail_nomem();
        ACCEL_TRY(accel_dataset_path(&path, d, d->spec->path, e->d_name));
        ACCEL_TRY(add_file(d, path, name));
    }
    if (errno)
        return accel_fail(ACCEL_EIO, "%.1000s: %s", d->spec->path, strerror(errno));
    return check_arrays(d);
}

static enum accel_err open_npy(struct accel_dataset *d, enum accel_split split)
{
    (void)split;
    struct stat st;
    const char *path = d->spec->path;
    if (!path)
        return accel_fail(ACCEL_EARG, "npy:FILE or npy:FOLDER: the path is missing");
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return add_file(d, path, "");
    DIR *dir = opendir(path);
    if (!dir)
        return accel_fail(ACCEL_EMODEL, "cannot read folder '%.1000s': %s", path, strerror(errno));
    enum accel_err err = read_folder(d, dir);
    closedir(dir);
    return err;
}

const struct accel_source accel_source_npz = {"npz", accel_array_keys, open_npz, NULL, close_set};
const struct accel_source accel_source_npy = {"npy", accel_array_keys, open_npy, NULL, close_set};
