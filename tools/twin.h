/* twin.h - a model and what was made of it, run on the same batches of a data set; chosen values of
 * either are kept for a look after each batch. Only nodes up to the last chosen value run. */
#ifndef ACCEL_TOOLS_TWIN_H
#define ACCEL_TOOLS_TWIN_H

#include "tools/batches.h"

enum { ACCEL_TWIN_OLD, ACCEL_TWIN_NEW, ACCEL_TWIN_SIDES };

/* A value of the last batch. */
struct accel_twin_value {
    struct accel_array a; /* float, row-major */
    int64_t *dim;
    size_t dim_cap, cap;
};

struct accel_twin {
    struct accel_feed feed[ACCEL_TWIN_SIDES];
    struct accel_batches data; /* data.n samples in this batch */
    struct accel_twin_side {
        bool *want;                     /* [n_value] by value->index */
        struct accel_twin_value *value; /* [n_value] */
        size_t n_value;
        int last; /* index of the last node to run; -2: none */
    } side[ACCEL_TWIN_SIDES];
    struct accel_log *log;
};

/* Reads the model at `path` anew and plans both; `now` NULL: there is only the old one. EARG and
 * EMODEL of the data set; ENOSUP when a model cannot be run. */
enum accel_err accel_twin_open(struct accel_twin *t, struct accel_job *job, const char *path,
                               struct accel_model *now, const char *data,
                               int64_t batch) ACCEL_CHECKED;
void accel_twin_close(struct accel_twin *t);

/* Forgets what was wanted. */
void accel_twin_forget(struct accel_twin *t);
/* The value of one side is kept from now on. */
void accel_twin_want(struct accel_twin *t, int side, const struct accel_value *v);

/* Goes back to the first batch. */
void accel_twin_rewind(struct accel_twin *t);
/* Runs the next batch; t->data.n is 0 when there is none. */
enum accel_err accel_twin_next(struct accel_twin *t) ACCEL_CHECKED;

/* What a wanted value was in this batch; NULL when it was not made. */
const struct accel_array *accel_twin_seen(const struct accel_twin *t, int side,
                                          const struct accel_value *v);

#endif
