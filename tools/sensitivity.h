/* sensitivity.h - accuracy against the share of channels that goes, for each coupled set by itself.
 * The curves show where a network is thick and where it is thin; written as JSON they feed back as
 * "ratios_from". */
#ifndef ACCEL_TOOLS_SENSITIVITY_H
#define ACCEL_TOOLS_SENSITIVITY_H

#include "base/json.h"
#include "tools/trial.h"

enum { ACCEL_SENSITIVITY_POINTS = 9 }; /* 10 % to 90 % */

struct accel_sensitivity_point {
    double ratio;           /* of the set's channels, as they could be cut */
    double score;           /* accel_evaluation_of() */
    struct accel_left left; /* of the whole model */
};

struct accel_sensitivity_curve {
    int set; /* in plan->channels */
    int n;
    struct accel_sensitivity_point point[ACCEL_SENSITIVITY_POINTS];
};

struct accel_sensitivity {
    const struct accel_prune_plan *plan;
    bool classes; /* score is top-1 accuracy; else minus the mean squared error */
    double base;
    int64_t samples;
    const char *data; /* the SPEC */
    struct accel_sensitivity_curve *curve;
    int n_curve;
};

/* Measures all sets of a plan that was chosen but not cut. Cost: one evaluation per point. */
enum accel_err accel_sensitivity_run(struct accel_sensitivity *s, struct accel_job *job,
                                     const char *path, const char *spec, struct accel_prune_plan *p,
                                     struct accel_model *m) ACCEL_CHECKED;
void accel_sensitivity_clear(struct accel_sensitivity *s);

/* The file, the table, and the curves of the HTML report. */
void accel_sensitivity_json(struct accel_json *j, const struct accel_sensitivity *s);
void accel_sensitivity_text(struct accel_str *out, const struct accel_sensitivity *s, int width,
                            bool color);
void accel_sensitivity_page(struct accel_str *out, const struct accel_sensitivity *s,
                            const char *file);

#endif
