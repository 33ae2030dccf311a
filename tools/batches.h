/* batches.h - a data set on its way into a model: batch after batch, field by field. */
#ifndef ACCEL_TOOLS_BATCHES_H
#define ACCEL_TOOLS_BATCHES_H

#include "data/dataset.h"
#include "tools/feed.h"

struct accel_batches {
    struct accel_dataset *set;
    int64_t size; /* samples of a batch */
    int64_t next; /* sample that the next batch begins with */
    int64_t n;    /* samples of the batch that was read; what a model with a fixed batch gets beyond
                     them repeats the last one */
    void **to;    /* [set->n_input] stored elements of the batch */
    void *label;  /* [n * label_width] int64_t or float */
    struct accel_npy *array; /* [n_array] as the model of the last _feed() got them */
    int n_array;
    bool fixed; /* the model takes no other batch */
    struct accel_data_spec *spec;
    struct accel_config_file *config;
};

/* Opens the data set that --data names: a SPEC, or an object that starts with '{'. The batch is the
 * model's where that is fixed, else the SPEC's, else `batch`. Errors: EARG and EMODEL of the data
 * set; EARG when an input of the model gets nothing from it. */
enum accel_err accel_batches_open(struct accel_batches *b, struct accel_job *job, const char *text,
                                  enum accel_split split, const struct accel_feed *f,
                                  int64_t batch) ACCEL_CHECKED;
void accel_batches_close(struct accel_batches *b);

/* Reads the next batch; b->n is 0 when there is none. */
enum accel_err accel_batches_next(struct accel_batches *b) ACCEL_CHECKED;

/* The first batch comes next again. */
void accel_batches_rewind(struct accel_batches *b);

/* Sets the inputs of a model to the batch. They are borrowed until the next call of this for the
 * same batches. Types of real numbers are converted; axes of size 1 may be missing or more, and
 * samples may be flat. */
enum accel_err accel_batches_feed(struct accel_batches *b, struct accel_feed *f) ACCEL_CHECKED;

#endif
