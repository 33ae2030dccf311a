/* threads.c - libgomp by its own entry point, so that gcc and clang builds use the same library as
 * oneDNN does and a program that computes with one thread never loads it.
 *
 * Each thread gets one piece of the items, of equal sizes; with OMP_SCHEDULE set to dynamic or
 * guided, all take pieces of that size from a counter until none is left. */
#include "base/threads.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Below this many operations a second thread costs more than it saves (about 20 us). */
#define WORTH_A_THREAD 40000

static struct {
    void (*parallel)(void (*f)(void *), void *data, unsigned n, unsigned flags);
    int (*number)(void); /* of the calling thread */
    int (*count)(void);
    void (*schedule)(int *kind, int *chunk);
} gomp;

static atomic_int wanted; /* 0: not said */
static bool is_there;
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static _Thread_local bool is_busy;

static void open_library(void)
{
    const struct {
        const char *name;
        void *to;
    } entries[] = {{"GOMP_parallel", &gomp.parallel},
                   {"omp_get_thread_num", &gomp.number},
                   {"omp_get_num_threads", &gomp.count},
                   {"omp_get_schedule", &gomp.schedule}};
    void *so = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; so && i < sizeof entries / sizeof *entries; i++) {
        void *f = dlsym(so, entries[i].name);
        if (!f)
            return;
        memcpy(entries[i].to, &f, sizeof f);
    }
    is_there = so != NULL;
}

void accel_threads_set(int n)
{
    atomic_store(&wanted, n < ACCEL_THREADS_MAX ? n : ACCEL_THREADS_MAX);
}

/* The first number of OMP_NUM_THREADS ("4" or "4,2"). */
static int of_environment(void)
{
    const char *text = getenv("OMP_NUM_THREADS");
    long n = text ? strtol(text, NULL, 10) : 1;
    return n < 1 ? 1 : n < ACCEL_THREADS_MAX ? (int)n : ACCEL_THREADS_MAX;
}

int accel_threads_get(void)
{
    int n = atomic_load(&wanted);
    return n > 0 ? n : of_environment();
}

/* ------------------------------------------------------------------ processors */

static enum accel_err read_number(int *out, const char **at, const char *list)
{
    char *end;
    long n = **at >= '0' && **at <= '9' ? strtol(*at, &end, 10) : -1;
    if (n < 0)
        return accel_fail(ACCEL_EARG, "a list of processors looks like 0-3,5, not '%.100s'", list);
    if (n >= CPU_SETSIZE)
        return accel_fail(ACCEL_EARG, "processor %ld of '%.100s' is not there", n, list);
    *at = end;
    *out = (int)n;
    return ACCEL_OK;
}

static enum accel_err read_list(cpu_set_t *set, const char *list)
{
    CPU_ZERO(set);
    for (const char *at = list;; at++) {
        int from, to;
        ACCEL_TRY(read_number(&from, &at, list));
        to = from;
        if (*at == '-') {
            at++;
            ACCEL_TRY(read_number(&to, &at, list));
        }
        if (to < from || (*at && *at != ','))
            return accel_fail(ACCEL_EARG, "a list of processors looks like 0-3,5, not '%.100s'",
                              list);
        for (int i = from; i <= to; i++)
            CPU_SET(i, set);
        if (!*at)
            return ACCEL_OK;
    }
}

enum accel_err accel_threads_pin(int *n, const char *list)
{
    cpu_set_t want, old, got;
    ACCEL_TRY(read_list(&want, list));
    if (sched_getaffinity(0, sizeof old, &old))
        return accel_fail(ACCEL_EDEVICE, "the system does not tell its processors");
    bool bound = sched_setaffinity(0, sizeof want, &want) == 0;
    if (bound && !sched_getaffinity(0, sizeof got, &got) && CPU_EQUAL(&want, &got)) {
        *n = CPU_COUNT(&want);
        return ACCEL_OK;
    }
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &want) && !(bound && CPU_ISSET(i, &got))) {
            (void)sched_setaffinity(0, sizeof old, &old);
            return accel_fail(ACCEL_EARG, "processor %d of '%.100s' is not there", i, list);
        }
    return accel_fail(ACCEL_EDEVICE, "the system does not bind to processors '%.100s'", list);
}

/* ------------------------------------------------------------------ loops */

struct loop {
    accel_work work;
    void *ctx;
    int64_t n, chunk; /* chunk 0: equal pieces */
    _Atomic int64_t next;
};

static void run_part(void *data)
{
    struct loop *l = data;
    is_busy = true;
    if (l->chunk > 0) {
        int64_t from;
        while ((from = atomic_fetch_add(&l->next, l->chunk)) < l->n)
            l->work(l->ctx, from, from + l->chunk < l->n ? from + l->chunk : l->n);
    } else {
        int64_t i = gomp.number(), parts = gomp.count();
        int64_t each = l->n / parts, more = l->n % parts;
        int64_t from = i * each + (i < more ? i : more), to = from + each + (i < more);
        if (from < to)
            l->work(l->ctx, from, to);
    }
    is_busy = false;
}

/* The piece size that OMP_SCHEDULE asks for. */
static int64_t chunk_wanted(void)
{
    enum { DYNAMIC = 2, GUIDED = 3 }; /* omp_sched_t */
    int kind, chunk;
    if (!getenv("OMP_SCHEDULE"))
        return 0;
    gomp.schedule(&kind, &chunk);
    kind &= 0x7fffffff;
    return kind == DYNAMIC || kind == GUIDED ? (chunk > 0 ? chunk : 1) : 0;
}

void accel_threads_run(accel_work work, void *ctx, int64_t n, int64_t cost)
{
    int64_t all, most = accel_threads_get();
    if (n <= 0)
        return;
    if (__builtin_mul_overflow(n, cost, &all))
        all = INT64_MAX;
    most = most < n ? most : n;
    most = most < all / WORTH_A_THREAD ? most : all / WORTH_A_THREAD;
    if (most > 1 && !is_busy)
        pthread_once(&opened, open_library);
    if (most <= 1 || is_busy || !is_there) {
        work(ctx, 0, n);
        return;
    }
    struct loop l = {work, ctx, n, chunk_wanted(), 0};
    gomp.parallel(run_part, &l, (unsigned)most, 0);
}
