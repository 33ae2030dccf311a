/* How long something takes decides whether a line is worth showing: short jobs show none at all. */
#include "tools/progress.h"

#include "tools/table.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * SECOND + t.tv_nsec;
}

/* While files are being written a signal only sets this: they are removed on the way out. A second
 * one of the same kind kills at once. */
static volatile sig_atomic_t caught;
static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

static void on_signal(int number)
{
    caught = number;
}

int accel_progress_signal(void)
{
    return caught;
}

void accel_progress_begin(struct accel_progress *p, const char *program, const char *what,
                          bool quiet)
{
    *p = (struct accel_progress){.program = program, .what = what, .quiet = quiet};
    p->terminal = isatty(STDERR_FILENO);
    p->begin_ns = p->last_ns = now();
    struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
    for (int i = 0; i < 3; i++)
        if (!sigaction(signals[i], NULL, &p->old[i]) && p->old[i].sa_handler == SIG_DFL)
            sigaction(signals[i], &act, NULL);
}

enum accel_err accel_progress_step(void *ctx, uint64_t done, uint64_t total)
{
    struct accel_progress *p = ctx;
    if (caught)
        return accel_fail(ACCEL_EIO, "interrupted by a signal (%s)", strsignal(caught));
    int64_t t = p->quiet ? 0 : now();
    if (p->quiet || !total || t - p->begin_ns < SECOND / 2 ||
        t - p->last_ns < (p->terminal ? SECOND / 10 : 5 * SECOND))
        return ACCEL_OK;
    p->last_ns = t;
    double seconds = (double)(t - p->begin_ns) / 1e9, rate = (double)done / seconds;
    double left = rate > 0 ? (double)(total > done ? total - done : 0) / rate : 0;
    char a[32], b[32], c[32];
    const char *unit = p->unit ? p->unit : "";
    if (p->unit) {
        accel_text_count(a, (int64_t)done);
        accel_text_count(b, (int64_t)total);
        accel_text_count(c, (int64_t)rate);
    } else {
        accel_text_size(a, done);
        accel_text_size(b, total);
        accel_text_size(c, (uint64_t)rate);
    }
    fprintf(stderr, "%s%s: %s %s of %s%s%s (%.0f %%), %s/s, %.0f s left%s", p->terminal ? "\r" : "",
            p->program, p->what, a, b, *unit ? " " : "", unit, 100.0 * (double)done / (double)total,
            c, left, p->terminal ? "\033[K" : "\n");
    fflush(stderr);
    p->drawn = p->terminal;
    return ACCEL_OK;
}

void accel_progress_end(struct accel_progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->drawn = false;
    for (int i = 0; i < 3; i++)
        if (p->old[i].sa_handler == SIG_DFL)
            sigaction(signals[i], &p->old[i], NULL);
}
