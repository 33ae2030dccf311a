/* difference.h - two models on the same inputs: how far what they compute is apart. */
#ifndef ACCEL_TOOLS_DIFFERENCE_H
#define ACCEL_TOOLS_DIFFERENCE_H

#include "base/json.h"
#include "tools/batches.h"
#include "tools/feed.h"

/* One value of A beside B's, over all runs. */
struct accel_difference {
    const char *name;
    double abs, rel;   /* largest; rel over elements where A is not 0 */
    double max_abs;    /* of A */
    int64_t n, n_past; /* elements; those past the tolerance */
    int64_t rows,
        agree;  /* classifiers ([N, classes]): samples, and those with the same largest class */
    bool apart; /* B's has another shape: only counted, for values inside */
};

/* What is compared. Zero-initialise, set the tolerances, clear at the end. */
struct accel_differences {
    double atol, rtol;            /* INFINITY: no limit */
    struct accel_difference *out; /* [n_out] outputs of A */
    int n_out;
    struct accel_difference *layer; /* [n_layer] values of A that B has too, in A's order */
    int n_layer;
    int64_t samples;          /* of a data set; 0: one run */
    struct accel_arena arena; /* names: they outlive the models */
};
void accel_differences_clear(struct accel_differences *d);

/* A model with room for what its nodes make: pass .watch to accel_feed_open() as the plan's watch
 * to compare values inside. */
struct accel_layers;
enum accel_err accel_layers_new(struct accel_layers **out) ACCEL_CHECKED;
void accel_layers_free(struct accel_layers *l);
enum accel_err accel_layers_keep(void *ctx, const struct accel_value *v,
                                 const struct accel_array *a); /* A's watch */
enum accel_err accel_layers_match(void *ctx, const struct accel_value *v,
                                  const struct accel_array *a); /* B's watch */

/**
 * Runs A and B on the same inputs and measures: on the inputs that A has been given, or on all
 * batches of a data set.
 *
 * @param data  batches opened for A, or NULL
 * @param l     layers that both plans watch, or NULL
 * @return EMODEL when B lacks an input or output of A, ESHAPE when an output has another shape
 */
enum accel_err accel_differences_run(struct accel_differences *d, struct accel_log *log,
                                     struct accel_feed *a, struct accel_feed *b,
                                     struct accel_batches *data,
                                     struct accel_layers *l) ACCEL_CHECKED;

/* ETARGET names the output, and how many elements are past the tolerance. */
enum accel_err accel_differences_check(const struct accel_differences *d) ACCEL_CHECKED;

/* The tables for people; members "outputs" and "layers" of an open JSON object. */
void accel_differences_text(struct accel_str *out, const struct accel_differences *d, int width,
                            bool color);
void accel_differences_json(struct accel_json *j, const struct accel_differences *d);

#endif
