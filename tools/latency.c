/* Runs until half a second is over, at least five times after a first one that plans. */
#include "tools/latency.h"

#include <time.h>

static double now_ms(clockid_t which)
{
    struct timespec t;
    clock_gettime(which, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

enum accel_err accel_latency_measure(double *ms, struct accel_job *job, struct accel_feed *f)
{
    enum { LEAST = 5, BUDGET_MS = 500 };
    ACCEL_TRY(accel_feed_random(f, (uint64_t)job->opt.seed));
    ACCEL_TRY(accel_feed_run(f, &job->log));
    double begin = now_ms(CLOCK_MONOTONIC), best = 0;
    for (int i = 0; i < LEAST || now_ms(CLOCK_MONOTONIC) - begin < BUDGET_MS; i++) {
        double at = now_ms(CLOCK_PROCESS_CPUTIME_ID);
        ACCEL_TRY(accel_feed_run(f, &job->log));
        at = now_ms(CLOCK_PROCESS_CPUTIME_ID) - at;
        best = i && best < at ? best : at;
    }
    *ms = best;
    return ACCEL_OK;
}
