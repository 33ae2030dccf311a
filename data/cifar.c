/* cifar.c - the binary version of CIFAR-10 and CIFAR-100: records of one or two label bytes and
 * 3072 bytes of red, green and blue planes.
 *
 * Source: A. Krizhevsky, "The CIFAR-10 dataset" and "The CIFAR-100 dataset" (binary version). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "data/data_int.h"

enum { SIDE = 32, PIXELS = 3 * SIDE * SIDE };

struct cifar {
    unsigned char *at; /* [n_all * record] */
    size_t record;
    uint64_t size;
};

/* Appends a file's records. */
static enum accel_err add_file(struct accel_dataset *d, const char *folder, const char *name)
{
    struct cifar *c = d->state;
    struct accel_file *f;
    const char *path;
    ACCEL_TRY(accel_dataset_path(&path, d, folder, name));
    ACCEL_TRY(accel_file_open(&f, path));
    enum accel_err err = ACCEL_OK;
    unsigned char *more = NULL;
    if (f->size == 0 || f->size % c->record)
        err = accel_fail(ACCEL_EMODEL,
                         "%.1000s: %" PRIu64 " bytes are no whole number of images "
                         "of %zu bytes",
                         path, f->size, c->record);
    else if (!(more = accel_realloc(c->at, 1, c->size + f->size)))
        err = accel_fail_nomem();
    if (!err) {
        c->at = more;
        err = accel_file_read(f, 0, f->size, c->at + c->size);
        c->size += f->size;
    }
    accel_file_close(f);
    return err;
}

static enum accel_err take_labels(struct accel_dataset *d, int n_class)
{
    const struct cifar *c = d->state;
    d->n_all = (int64_t)(c->size / c->record);
    ACCEL_TRY(accel_dataset_new_labels(d, ACCEL_LABEL_CLASS, 1));
    for (int64_t i = 0; i < d->n_all; i++) {
        int label = c->at[(size_t)i * c->record + c->record - PIXELS - 1];
        if (label >= n_class)
            return accel_fail(ACCEL_EMODEL, "image %" PRId64 " has label %d of %d", i, label,
                              n_class);
        ((int64_t *)d->label)[i] = label;
    }
    return ACCEL_OK;
}

static enum accel_err begin(struct accel_dataset *d, size_t n_label)
{
    struct cifar *c = ACCEL_NEW(&d->arena, struct cifar, 1);
    if (!c)
        return accel_fail_nomem();
    c->record = n_label + PIXELS;
    d->state = c;
    if (!d->spec->path)
        return accel_fail(ACCEL_EARG, "%s:FOLDER: the folder is missing", d->spec->kind);
    return ACCEL_OK;
}

static enum accel_err open_cifar10(struct accel_dataset *d, enum accel_split split)
{
    char name[32];
    ACCEL_TRY(begin(d, 1));
    if (split == ACCEL_SPLIT_TEST)
        ACCEL_TRY(add_file(d, d->spec->path, "test_batch.bin"));
    for (int i = 1; split != ACCEL_SPLIT_TEST && i <= 5; i++) {
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        ACCEL_TRY(add_file(d, d->spec->path, name));
    }
    return take_labels(d, 10);
}

static enum accel_err open_cifar100(struct accel_dataset *d, enum accel_split split)
{
    ACCEL_TRY(begin(d, 2)); /* the coarse label stands before the fine one */
    ACCEL_TRY(add_file(d, d->spec->path, split == ACCEL_SPLIT_TEST ? "test.bin" : "train.bin"));
    return take_labels(d, 100);
}

static enum accel_err image(struct accel_dataset *d, int64_t sample, struct accel_image *im)
{
    const struct cifar *c = d->state;
    *im = (struct accel_image){SIDE, SIDE, 3, 1, SIDE, SIDE * SIDE, NULL};
    im->at = c->at + (size_t)(sample + 1) * c->record - PIXELS;
    return ACCEL_OK;
}

static void close_set(struct accel_dataset *d)
{
    struct cifar *c = d->state;
    if (c)
        accel_free(c->at);
}

const struct accel_source accel_source_cifar10 = {"cifar10", accel_image_keys, open_cifar10, image,
                                                  close_set};
const struct accel_source accel_source_cifar100 = {"cifar100", accel_image_keys, open_cifar100,
                                                   image, close_set};
