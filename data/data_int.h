/* data_int.h - what the kinds of data sets are made of. */
#ifndef ACCEL_DATA_DATA_INT_H
#define ACCEL_DATA_DATA_INT_H

#include "data/dataset.h"
#include "data/image.h"
#include "data/npy.h"

/* One kind. It fills in n_all, the label fields and state; sets of arrays fill in `input` too, sets
 * of images have `image` instead and get theirs from the first one. */
struct accel_source {
    const char *kind;
    const char *const *keys; /* of the spec that it takes, ended by NULL */
    enum accel_err (*open)(struct accel_dataset *, enum accel_split);
    /* Borrowed until the next call. */
    enum accel_err (*image)(struct accel_dataset *, int64_t sample, struct accel_image *);
    void (*close)(struct accel_dataset *);
};

extern const struct accel_source accel_source_fashion_mnist, accel_source_mnist, accel_source_idx,
    accel_source_cifar10, accel_source_cifar100, accel_source_folder, accel_source_npz,
    accel_source_npy, accel_source_csv, accel_source_tar;

/* Keys of every set of images, and of every set of arrays. */
extern const char *const accel_image_keys[], *const accel_array_keys[];

/* Room for the labels of all n_all samples. EMODEL when there are labels already. */
enum accel_err accel_dataset_new_labels(struct accel_dataset *d, enum accel_label_kind kind,
                                        int64_t width) ACCEL_CHECKED;

/* "FOLDER/NAME" in the arena. */
enum accel_err accel_dataset_path(const char **out, struct accel_dataset *d, const char *folder,
                                  const char *name) ACCEL_CHECKED;

/* The samples to take: `limit` of all, each class with its share, and their order. */
enum accel_err accel_dataset_order(struct accel_dataset *d) ACCEL_CHECKED;

#endif
