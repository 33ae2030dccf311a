/* latency.h - how long a model takes: the best of many runs on random inputs. */
#ifndef ACCEL_TOOLS_LATENCY_H
#define ACCEL_TOOLS_LATENCY_H

#include "tools/feed.h"

/* Milliseconds of process CPU time of one run at the model's own batch, 1 where that is open. Takes
 * half a second. */
enum accel_err accel_latency_measure(double *ms, struct accel_job *job,
                                     struct accel_feed *f) ACCEL_CHECKED;

#endif
