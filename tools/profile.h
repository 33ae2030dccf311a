/* profile.h - how long each node of a model takes. */
#ifndef ACCEL_TOOLS_PROFILE_H
#define ACCEL_TOOLS_PROFILE_H

#include "exec/plan.h"
#include "tools/tools.h"

/* Times of the nodes of the main graph; what their bodies and functions do counts as theirs. */
struct accel_profile {
    const struct accel_graph *graph;
    int64_t *ns;          /* [graph->n_node] sum over the steps */
    int64_t *begin, *end; /* [graph->n_node] in the newest step, ns since its start */
    int64_t steps, sum;   /* sum: of ns */
    int64_t step_ns, last_ns;
    bool on;
};

/* Nanoseconds of a clock that only goes on. */
int64_t accel_clock_ns(void);

/* Room for a graph that was read. */
enum accel_err accel_profile_begin(struct accel_profile *p,
                                   const struct accel_graph *g) ACCEL_CHECKED;
void accel_profile_clear(struct accel_profile *p);

/* Before each run that is to be counted, and after it. */
void accel_profile_start(struct accel_profile *p);
void accel_profile_stop(struct accel_profile *p);

/* Fits accel_plan_options.watch; ctx: the profile. */
enum accel_err accel_profile_watch(void *ctx, const struct accel_value *v,
                                   const struct accel_array *a);

/* Appends two tables: operator types by their share, and the slowest nodes. */
enum accel_err accel_profile_text(struct accel_job *job,
                                  const struct accel_profile *p) ACCEL_CHECKED;

/* Writes the newest step as a Chrome trace (chrome://tracing, Perfetto). */
enum accel_err accel_profile_trace(const struct accel_profile *p, const char *path) ACCEL_CHECKED;

#endif
