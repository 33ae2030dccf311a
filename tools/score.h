/* score.h - how good outputs are against labels. */
#ifndef ACCEL_TOOLS_SCORE_H
#define ACCEL_TOOLS_SCORE_H

#include "graph/op.h"

/* Sums over samples; zero-initialise. Classifiers: outputs [N, classes] (further axes of size 1),
 * labels int64_t. Regression: labels float, as many as a sample's outputs. */
struct accel_evaluation {
    int64_t n; /* samples */
    /* classifiers */
    int64_t n_class, n_top1, n_top5;
    double log_loss;    /* sum of -log softmax(y)[label] */
    double prob_loss;   /* sum of -log y[label] */
    bool not_probs;     /* some row was no distribution: then log_loss is the loss */
    int64_t *confusion; /* [n_class * n_class] label, prediction; NULL: not wanted */
    bool want_confusion;
    /* regression */
    int64_t n_value;
    double squares, gaps; /* sums of squared and of absolute differences */
    int64_t n_nan;        /* outputs that are no numbers */
};

/* Adds the first n samples of an output. Errors: EMODEL for a label outside of the classes (sample
 * `first` + i is named), ESHAPE when output and labels do not fit; the text names both. */
enum accel_err accel_score_classes(struct accel_evaluation *s, const struct accel_array *y,
                                   int64_t n, const int64_t *label, int64_t first) ACCEL_CHECKED;
enum accel_err accel_score_values(struct accel_evaluation *s, const struct accel_array *y,
                                  int64_t n, const float *label, int64_t width) ACCEL_CHECKED;

/* Mean cross-entropy: of probabilities when all rows were some, else of logits. */
double accel_score_loss(const struct accel_evaluation *s);
void accel_score_clear(struct accel_evaluation *s);

#endif
