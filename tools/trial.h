/* trial.h - how accurate a model is with some channels gone: measured on copies, for sensitivity
 * and for targets of accuracy. */
#ifndef ACCEL_TOOLS_TRIAL_H
#define ACCEL_TOOLS_TRIAL_H

#include "prune/prune.h"
#include "prune/search.h"
#include "tools/evaluate.h"

struct accel_trial {
    struct accel_job *job;
    const char *path;
    struct accel_feed base;
    struct accel_batches data;
    double score; /* of the whole model (accel_evaluation_of()) */
    int64_t samples;
};

/* Opens the model anew and measures it on the data set (split test; 1024 samples where the SPEC
 * says no limit). EARG when the data set has no labels. */
enum accel_err accel_trial_open(struct accel_trial *t, struct accel_job *job, const char *path,
                                const char *spec) ACCEL_CHECKED;
void accel_trial_close(struct accel_trial *t);

/* The score with the groups `gone` cut. */
enum accel_err accel_trial_run(double *score, struct accel_trial *t,
                               const bool *gone) ACCEL_CHECKED;

/* target.accuracy_drop: chooses the most that may go (accel_channels_at()) while the measured drop
 * stays within it; *drop is what it costs. ETARGET when nothing can go. */
enum accel_err accel_trial_search(double *drop, struct accel_trial *t, struct accel_prune_plan *p,
                                  double allowed) ACCEL_CHECKED;

#endif
