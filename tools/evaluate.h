/* evaluate.h - a model against the labels of a data set: accel-eval, and what measures accuracy on
 * the way. */
#ifndef ACCEL_TOOLS_EVALUATE_H
#define ACCEL_TOOLS_EVALUATE_H

#include "tools/batches.h"
#include "tools/score.h"

/* Runs all samples from the first on and adds to the score (zero-initialised by the caller); with
 * `show` a progress line. Errors of running, and EARG when the data set has no labels. */
enum accel_err accel_evaluate(struct accel_evaluation *s, struct accel_job *job,
                              struct accel_feed *f, struct accel_batches *b,
                              bool show) ACCEL_CHECKED;

/* The one number to compare by, larger is better: top-1 accuracy, or minus the mean squared error.
 */
double accel_evaluation_of(const struct accel_evaluation *s, const struct accel_dataset *d);

#endif
