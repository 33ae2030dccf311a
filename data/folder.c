/* folder.c - one sub-folder per class; their sorted names are the labels. Files are listed when the
 * set is opened and decoded one by one when they are read. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/data_int.h"

struct names {
    const char **at;
    size_t n, cap;
};

struct folder {
    struct names file;                   /* paths in the order of their classes */
    struct accel_image_room bytes, room; /* of one file, and its pixels */
};

static bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool is_image(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot &&
           (!strcasecmp(dot, ".jpg") || !strcasecmp(dot, ".jpeg") || !strcasecmp(dot, ".png"));
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static enum accel_err add(struct names *list, const char *name)
{
    if (!name || !ACCEL_GROW(list->at, list->cap, list->n + 1))
        return accel_fail_nomem();
    list->at[list->n++] = name;
    return ACCEL_OK;
}

/* Names in a folder, sorted: sub-folders, or images. Hidden ones are left out. */
static enum accel_err list(struct names *out, struct accel_dataset *d, const char *path,
                           bool folders)
{
    DIR *dir = opendir(path);
    if (!dir)
        return accel_fail(ACCEL_EMODEL, "cannot read folder '%.1000s': %s", path, strerror(errno));
    enum accel_err err = ACCEL_OK;
    size_t from = out->n;
    for (struct dirent *e; !err && (e = readdir(dir));) {
        const char *full;
        if (e->d_name[0] == '.')
            continue;
        err = accel_dataset_path(&full, d, path, e->d_name);
        if (!err && (folders ? is_folder(full) : is_image(e->d_name)))
            err = add(out, folders ? accel_arena_strndup(&d->arena, e->d_name, strlen(e->d_name))
                                   : full);
    }
    closedir(dir);
    if (!err && out->n > from)
        qsort(out->at + from, out->n - from, sizeof *out->at, by_name);
    return err;
}

/* PATH/train and PATH/test (or val) where both are there, else PATH. */
static enum accel_err choose_split(const char **out, struct accel_dataset *d,
                                   enum accel_split split)
{
    const char *train, *test;
    ACCEL_TRY(accel_dataset_path(&train, d, d->spec->path, "train"));
    ACCEL_TRY(accel_dataset_path(&test, d, d->spec->path, "test"));
    if (!is_folder(test))
        ACCEL_TRY(accel_dataset_path(&test, d, d->spec->path, "val"));
    *out = split == ACCEL_SPLIT_TEST ? test : train;
    if (is_folder(train) && is_folder(test))
        return ACCEL_OK;
    if (d->spec->split != ACCEL_SPLIT_DEFAULT)
        return accel_fail(ACCEL_EARG,
                          "split: '%.1000s' has no folders 'train' and 'test' (or "
                          "'val')",
                          d->spec->path);
    *out = d->spec->path;
    return ACCEL_OK;
}

static enum accel_err fill(struct accel_dataset *d, const char *path, const struct names *classes)
{
    struct folder *f = d->state;
    size_t *end = accel_calloc(classes->n, sizeof *end);
    enum accel_err err = end ? ACCEL_OK : accel_fail_nomem();
    for (size_t c = 0; !err && c < classes->n; c++) {
        const char *sub;
        err = accel_dataset_path(&sub, d, path, classes->at[c]);
        if (!err)
            err = list(&f->file, d, sub, false);
        if (!err && f->file.n == (c ? end[c - 1] : 0))
            accel_warn(d->log, "data set: folder '%.1000s' holds no JPEG or PNG files", sub);
        end[c] = f->file.n;
    }
    d->n_all = (int64_t)f->file.n;
    if (!err && d->n_all)
        err = accel_dataset_new_labels(d, ACCEL_LABEL_CLASS, 1);
    for (size_t c = 0, i = 0; !err && d->n_all && c < classes->n; c++)
        for (; i < end[c]; i++)
            ((int64_t *)d->label)[i] = (int64_t)c;
    accel_free(end);
    return err;
}

static enum accel_err open_folder(struct accel_dataset *d, enum accel_split split)
{
    const char *path;
    struct names classes = {0};
    if (!d->spec->path)
        return accel_fail(ACCEL_EARG, "folder:PATH: the path is missing");
    d->state = ACCEL_NEW(&d->arena, struct folder, 1);
    if (!d->state)
        return accel_fail_nomem();
    ACCEL_TRY(choose_split(&path, d, split));
    enum accel_err err = list(&classes, d, path, true);
    if (!err && !classes.n)
        err =
            accel_fail(ACCEL_EMODEL, "'%.1000s' has no sub-folders: one per class is needed", path);
    if (!err)
        err = fill(d, path, &classes);
    const char **kept = err ? NULL : ACCEL_NEW(&d->arena, const char *, classes.n);
    if (kept) {
        memcpy(kept, classes.at, classes.n * sizeof *kept);
        d->class_name = kept;
        d->n_class_name = (int64_t)classes.n;
    }
    accel_free(classes.at);
    return err || kept ? err : accel_fail_nomem();
}

static enum accel_err read_file(struct folder *f, struct accel_image *im, struct accel_file *in)
{
    if (in->size > f->bytes.cap || !f->bytes.at) {
        unsigned char *more = accel_alloc_pages(in->size);
        if (!more)
            return accel_fail_nomem();
        accel_free(f->bytes.at);
        f->bytes = (struct accel_image_room){more, in->size};
    }
    ACCEL_TRY(accel_file_read(in, 0, in->size, f->bytes.at));
    return accel_image_decode(im, &f->room, f->bytes.at, in->size);
}

static enum accel_err image(struct accel_dataset *d, int64_t sample, struct accel_image *im)
{
    struct folder *f = d->state;
    struct accel_file *in;
    ACCEL_TRY(accel_file_open(&in, f->file.at[sample]));
    enum accel_err err = read_file(f, im, in);
    accel_file_close(in);
    return err ? accel_fail_in(err, "%.1000s", f->file.at[sample]) : ACCEL_OK;
}

static void close_set(struct accel_dataset *d)
{
    struct folder *f = d->state;
    if (!f)
        return;
    accel_free(f->file.at);
    accel_free(f->bytes.at);
    accel_free(f->room.at);
}

const struct accel_source accel_source_folder = {"folder", accel_image_keys, open_folder, image,
                                                 close_set};
