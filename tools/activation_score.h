/* activation_score.h - scores of channels from what they give out on calibration data.
 *
 *   mean_activation  mean magnitude of the channel's output: what is nearly silent goes
 *                    (Molchanov et al. 2017, "Pruning Convolutional Neural Networks for Resource
 *                    Efficient Inference", arXiv:1611.06440, section 2.2)
 *   apoz             share of its outputs that are above zero; the channels with the largest
 *                    average percentage of zeros go (Hu et al. 2016, "Network Trimming",
 *                    arXiv:1607.03250)
 *   wanda            norm of its filter, each weight times the norm of the input that it meets
 *                    (Sun et al. 2023, arXiv:2306.11695, here summed over the channel)
 *
 * A channel's output is taken behind the normalisation and activation function that follow it, when
 * nothing else reads what lies between. */
#ifndef ACCEL_TOOLS_ACTIVATION_SCORE_H
#define ACCEL_TOOLS_ACTIVATION_SCORE_H

#include "prune/channel.h"
#include "tools/twin.h"

/* Sums over one axis of one value. */
struct accel_activation {
    double *sum; /* [n] of magnitudes, of elements above zero, or of squares */
    int64_t n;
    double count; /* elements of each index so far */
};

struct accel_activation_score {
    struct accel_channel_statistics by; /* hand this to accel_prune_choose() */
    enum accel_score kind;
    struct accel_activation *at; /* [n_node] of each node's weight */
    size_t n_node;
    struct accel_buffer room;
};

/* Runs the model at `path` on the data set (split train) once. Memory does not depend on the number
 * of samples. Errors of running and of the data set. */
enum accel_err accel_activation_score_run(struct accel_activation_score *s, struct accel_job *job,
                                          const char *path, const char *data,
                                          enum accel_score kind) ACCEL_CHECKED;
void accel_activation_score_clear(struct accel_activation_score *s);

#endif
