/* data_spec.h - how a user names a data set: KIND[:PATH][?key=value&key=value], or an object with
 * the same keys. docs/data.md has the list. */
#ifndef ACCEL_DATA_DATA_SPEC_H
#define ACCEL_DATA_DATA_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/config.h"
#include "base/err.h"

enum accel_split { ACCEL_SPLIT_DEFAULT, ACCEL_SPLIT_TRAIN, ACCEL_SPLIT_TEST };

struct accel_data_spec {
    const char *kind, *path; /* path NULL: not given */
    enum accel_split split;
    int64_t limit;      /* samples; 0: all */
    const double *mean; /* [n_mean] one number, or one per channel or feature */
    const double *std;  /* [n_std]  > 0 */
    size_t n_mean, n_std;
    int64_t resize, crop;       /* pixels; 0: not asked for */
    int64_t batch;              /* samples; 0: the command's choice */
    int shuffle;                /* 0, 1; -1: the command's choice */
    const char *label;          /* csv: column */
    const char *const *feature; /* [n_feature] csv: columns; 0: all but the label */
    size_t n_feature;
    int header;        /* csv: 0, 1; -1: not given */
    const char *types; /* csv: element type of the features, or NULL */
    unsigned given;    /* bit i: key i of the table in data_spec.c was given */
    uint64_t seed;     /* of limit and shuffle; set by the caller */
    struct accel_arena arena;
};

/* Reads the text form. The options begin behind the last '?' that a key and '=' follow. Errors:
 * EARG names the kind, key or value, and a near name. Free with accel_data_spec_free(). */
enum accel_err accel_data_spec_parse(struct accel_data_spec **out, const char *text) ACCEL_CHECKED;

/* The same from a config: a text, or a map with "kind", "path" and the keys. Errors: EARG with the
 * position. */
enum accel_err accel_data_spec_read(struct accel_data_spec **out,
                                    const struct accel_config *c) ACCEL_CHECKED;
void accel_data_spec_free(struct accel_data_spec *s);

/* The first key that was given and is not one of `names` (ended by NULL); NULL when all are. */
const char *accel_data_spec_beyond(const struct accel_data_spec *s, const char *const *names);

#endif
