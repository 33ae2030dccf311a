/* progress.h - how far a long job is, on standard error. */
#ifndef ACCEL_TOOLS_PROGRESS_H
#define ACCEL_TOOLS_PROGRESS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* On a terminal one line that is redrawn (not before half a second has passed); elsewhere a plain
 * line every five seconds. Nothing when quiet. */
struct accel_progress {
    const char *program, *what; /* "accel-prune", "writing" */
    const char *unit;           /* of what is counted, set after begin; NULL: bytes */
    bool quiet, terminal, drawn;
    int64_t begin_ns, last_ns;
    struct sigaction old[3];
};

void accel_progress_begin(struct accel_progress *p, const char *program, const char *what,
                          bool quiet);

/* Fits accel_onnx_write_options.progress; ctx: the progress. Bytes. EIO when SIGINT, SIGTERM or
 * SIGHUP came since begin: the writer then removes what it began. */
enum accel_err accel_progress_step(void *ctx, uint64_t done, uint64_t total);

/* Removes the redrawn line; signals mean again what they meant. */
void accel_progress_end(struct accel_progress *p);

/* The signal that ended a job, or 0: main dies of it after everything was cleaned up. */
int accel_progress_signal(void);

#endif
