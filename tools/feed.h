/* feed.h - a model ready to run, and what goes into it: what accel-run and accel-compare share. */
#ifndef ACCEL_TOOLS_FEED_H
#define ACCEL_TOOLS_FEED_H

#include "base/rng.h"
#include "data/npy.h"
#include "exec/plan.h"
#include "tools/tools.h"

struct accel_feed {
    const char *path;
    struct accel_model *m;
    struct accel_device *device; /* or NULL */
    bool borrowed;               /* m belongs to somebody else */
    struct accel_plan *plan;
    struct accel_npy *in; /* [n_in] in the order of the plan's inputs; data NULL: not given */
    int n_in;
};

/* Reads PATH, binds --dim and --input-shape, infers, plans as --optimize says. Errors carry PATH in
 * front. */
enum accel_err accel_feed_open(struct accel_feed *f, struct accel_job *job, const char *path,
                               const struct accel_plan_options *opt) ACCEL_CHECKED;

/* Plans a model that was read and inferred; it stays the caller's. `path` is for messages. */
enum accel_err accel_feed_borrow(struct accel_feed *f, struct accel_model *m, const char *path,
                                 const struct accel_plan_options *opt) ACCEL_CHECKED;
void accel_feed_close(struct accel_feed *f);

/* Takes the --input NAME=FILE.npy of the job; EARG for names that the model does not have (near
 * ones named). */
enum accel_err accel_feed_read(struct accel_feed *f,
                               const struct accel_text_list *inputs) ACCEL_CHECKED;

/* Fills inputs that are not given: floats from a normal distribution, whole numbers from 0 to 3,
 * truth values; sizes that stay unknown are 1. The same seed gives the same numbers. */
enum accel_err accel_feed_random(struct accel_feed *f, uint64_t seed) ACCEL_CHECKED;

/* Runs; warns when float64 values were computed in float32. */
enum accel_err accel_feed_run(struct accel_feed *f, struct accel_log *log) ACCEL_CHECKED;

/* Smallest, largest and mean of the elements that are numbers, and how many are not. */
struct accel_range {
    double min, max, mean;
    int64_t n_nan;
};
struct accel_range accel_range_of(const struct accel_array *a);

#endif
