/* dataset.h - a data set: samples by number, as a model takes them.
 *
 *     struct accel_dataset *d;
 *     accel_dataset_open(&d, spec, &log);
 *     accel_dataset_read(d, 0, 64, to, label);     // samples 0 to 63
 *     accel_dataset_close(d);
 *
 * Images come as float32 [C,H,W] in 0 to 1, or normalised by the spec's mean and std; arrays and
 * tables come in their own types. Which samples there are, and in which order, is settled when the
 * set is opened and depends on the spec and its seed alone. */
#ifndef ACCEL_DATA_DATASET_H
#define ACCEL_DATA_DATASET_H

#include "base/log.h"
#include "data/data_spec.h"
#include "data/image.h"
#include "graph/dtype.h"

/* One of the things that a sample consists of. */
struct accel_field {
    const char *name; /* of the model input it is for; "": any */
    enum accel_dtype dtype;
    int rank;
    const int64_t *dim; /* [rank] of one sample */
    size_t size;        /* bytes of one sample */
    const void *all;    /* stored elements of all samples, or NULL: made when read */
};

enum accel_label_kind {
    ACCEL_LABEL_NONE,
    ACCEL_LABEL_CLASS, /* int64_t, 1 per sample, from 0 */
    ACCEL_LABEL_VALUE, /* float, `width` per sample: regression */
};

struct accel_dataset {
    const struct accel_data_spec *spec; /* borrowed */
    int64_t n;                          /* samples of this set, the limit applied */
    struct accel_field *input;          /* [n_input] */
    size_t n_input;
    enum accel_label_kind label_kind;
    int64_t label_width;
    const char *const *class_name; /* [n_class_name], or NULL */
    int64_t n_class_name;
    /* private */
    const struct accel_source *source;
    void *state;    /* the source's */
    int64_t n_all;  /* samples that the source has */
    void *label;    /* [n_all * label_width] int64_t or float */
    int64_t *order; /* [n] sample of the source, or NULL: as they are */
    struct accel_arena arena;
    struct accel_log *log;
    struct accel_image_room room; /* a resized image */
};

/**
 * Opens what the spec names. Files are checked; images in folders are decoded when they are read,
 * everything else is held in memory.
 *
 * @param spec  borrowed until the set is closed
 * @param split the part to take where the spec does not say
 * @param log   gets warnings; may be NULL
 * @return EARG for what is wrong in the spec, EMODEL for files that cannot be used; the text names
 *         the file and both sides
 */
enum accel_err accel_dataset_open(struct accel_dataset **out, const struct accel_data_spec *spec,
                                  enum accel_split split, struct accel_log *log) ACCEL_CHECKED;
void accel_dataset_close(struct accel_dataset *d);

/* Samples first … first + n - 1.
 * to     [n_input] room for n samples of each field
 * label  room for n * label_width int64_t or float, or NULL */
enum accel_err accel_dataset_read(struct accel_dataset *d, int64_t first, int64_t n,
                                  void *const *to, void *label) ACCEL_CHECKED;

#endif
