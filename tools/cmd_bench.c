/* cmd_bench.c - accel-bench: how long a forward pass takes.
 *
 * The first run settles shapes and memory and is told apart. The timed runs come next, without
 * looking into them; the profile is made in runs of its own, so that clock reads do not count. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/alloc.h"
#include "base/json.h"
#include "base/threads.h"
#include "graph/infer.h"
#include "tools/feed.h"
#include "tools/profile.h"
#include "tools/progress.h"
#include "tools/table.h"

#define AT(field) offsetof(struct accel_options, field)

static const struct accel_option options[] = {
    {"batch", 0, ACCEL_OPTION_NUMBER, AT(batch), "N",
     "samples per run: the size of the inputs' first axis where the model leaves it open", 1,
     1000000},
    {"seconds", 0, ACCEL_OPTION_TEXT, AT(seconds), "S", "time to measure for (default 3)", 0, 0},
    {"profile", 0, ACCEL_OPTION_FLAG, AT(profile), NULL,
     "share of every operator type, and the slowest nodes", 0, 0},
    {"trace", 0, ACCEL_OPTION_TEXT, AT(trace), "FILE",
     "write one run as a Chrome trace (chrome://tracing, Perfetto)", 0, 0},
    {"precision", 0, ACCEL_OPTION_CHOICE, AT(precision), "f32|bf16|fp16",
     "type that products read: bf16 is refused where it is slower", 0, 0},
    {"max-steps", 0, ACCEL_OPTION_NUMBER, AT(max_steps), "N",
     "turns that all loops may take together (default 10 million)", 1, INT64_MAX},
    {"allow-linked-data", 0, ACCEL_OPTION_FLAG, AT(allow_linked_data), NULL,
     "follow the symbolic links of model caches to external data", 0, 0},
    ACCEL_OPTION_OPTIMIZE,
    ACCEL_OPTION_CPUS,
    {0},
};
static const char *const unused[] = {"output", "config", "set", "report", "dry-run", NULL};
static const char *const later[] = {"train", "training", "optimizer", "training", NULL};

enum { LEAST_STEPS = 3, PROFILE_STEPS = 5 };

struct times {
    int64_t *wall, *cpu; /* [n] ns of each run; sorted after the last */
    size_t n, wall_cap, cpu_cap;
};

struct bench {
    struct accel_job *job;
    struct accel_feed feed;
    struct accel_profile profile;
    struct times times;
    int64_t open_ns, first_ns; /* model read and planned; first run */
    int64_t batch, macs;       /* macs of a run; -1: unknown */
};

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static enum accel_err read_seconds(double *out, const char *text)
{
    char *end;
    *out = text ? strtod(text, &end) : 3;
    if (text && (end == text || *end || !(*out >= 0 && *out <= 86400)))
        return accel_fail(ACCEL_EARG,
                          "option '--seconds' needs a number from 0 to 86400, not '%.100s'", text);
    return ACCEL_OK;
}

static enum accel_err time_one(struct bench *b)
{
    struct times *t = &b->times;
    if (!ACCEL_GROW(t->wall, t->wall_cap, t->n + 1) || !ACCEL_GROW(t->cpu, t->cpu_cap, t->n + 1))
        return accel_fail_nomem();
    int64_t cpu = cpu_ns(), wall = accel_clock_ns();
    ACCEL_TRY(accel_plan_run(b->feed.plan));
    t->wall[t->n] = accel_clock_ns() - wall;
    t->cpu[t->n++] = cpu_ns() - cpu;
    return ACCEL_OK;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum accel_err time_all(struct bench *b, double seconds)
{
    struct accel_progress progress;
    enum accel_err err = ACCEL_OK;
    int64_t begin = accel_clock_ns(), most = (int64_t)(seconds * 1e9), spent = 0;
    accel_progress_begin(&progress, "accel-bench", "measuring", b->job->opt.quiet);
    progress.unit = "ms";
    while (!err && (spent < most || b->times.n < LEAST_STEPS)) {
        err = time_one(b);
        spent = accel_clock_ns() - begin;
        if (!err)
            err = accel_progress_step(&progress, (uint64_t)(spent < most ? spent : most) / 1000000,
                                      (uint64_t)most / 1000000);
    }
    accel_progress_end(&progress);
    if (err)
        return err;
    qsort(b->times.wall, b->times.n, sizeof(int64_t), by_number);
    qsort(b->times.cpu, b->times.n, sizeof(int64_t), by_number);
    return ACCEL_OK;
}

static enum accel_err make_profile(struct bench *b)
{
    for (int i = 0; i < PROFILE_STEPS; i++) {
        accel_profile_start(&b->profile);
        ACCEL_TRY(accel_plan_run(b->feed.plan));
        accel_profile_stop(&b->profile);
    }
    return ACCEL_OK;
}

/* Samples of a run: the first axis of the first input. */
static int64_t batch_of(const struct accel_feed *f)
{
    return f->n_in && f->in[0].a.rank ? f->in[0].a.dim[0] : 1;
}

static double ms(const int64_t *sorted, size_t n, double share)
{
    size_t i = (size_t)((double)n * share);
    return (double)sorted[i < n ? i : n - 1] / 1e6;
}

static int64_t peak_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (u.ru_maxrss + 1023) / 1024;
}

static const char *precision_of(const struct accel_job *job)
{
    return job->opt.precision ? job->opt.precision : "f32";
}

static const struct accel_column columns[] = {
    {"ms", false, false}, {"min", true, false}, {"median", true, false}, {"p99", true, false}, {0}};

static void add_times(struct accel_table *t, const char *what, const int64_t *sorted, size_t n)
{
    accel_table_add(t, "%s", what);
    accel_table_add(t, "%.3f", ms(sorted, n, 0));
    accel_table_add(t, "%.3f", ms(sorted, n, 0.5));
    accel_table_add(t, "%.3f", ms(sorted, n, 0.99));
}

static enum accel_err show_text(struct bench *b)
{
    struct accel_str *out = &b->job->out;
    const struct times *t = &b->times;
    struct accel_table table;
    char a[32], c[32];
    accel_str_addf(out, "forward, batch %lld, %s, %d thread%s: %zu runs\n\n", (long long)b->batch,
                   precision_of(b->job), accel_threads_get(), accel_threads_get() > 1 ? "s" : "",
                   t->n);
    accel_table_init(&table, columns);
    add_times(&table, "wall", t->wall, t->n);
    add_times(&table, "cpu", t->cpu, t->n);
    accel_table_text(out, &table, b->job->width, b->job->color);
    out->failed = out->failed || table.failed;
    accel_table_clear(&table);
    accel_str_addf(out, "\nread and planned in %.1f ms, first run %.1f ms\n",
                   (double)b->open_ns / 1e6, (double)b->first_ns / 1e6);
    if (b->macs > 0)
        accel_str_addf(out, "%s MACs, %.2f GFLOP/s at the median\n", accel_text_count(a, b->macs),
                       2.0 * (double)b->macs / ms(t->wall, t->n, 0.5) / 1e6);
    accel_str_addf(out, "memory: values %s, constants %s, peak of the process %lld MB\n",
                   accel_text_size(a, accel_plan_block_size(b->feed.plan)),
                   accel_text_size(c, accel_plan_constant_size(b->feed.plan)),
                   (long long)peak_mb());
    return b->job->opt.profile ? accel_profile_text(b->job, &b->profile) : ACCEL_OK;
}

static void json_profile(struct accel_json *j, const struct accel_profile *p)
{
    accel_json_array(j, "profile");
    for (size_t i = 0; i < p->graph->n_node; i++) {
        accel_json_object(j, NULL);
        accel_json_text(j, "node", p->graph->node[i]->label);
        accel_json_text(j, "op_type", p->graph->node[i]->op_type);
        accel_json_number(j, "ms", (double)p->ns[i] / (double)p->steps / 1e6);
        accel_json_number(j, "share", p->sum ? (double)p->ns[i] / (double)p->sum : 0);
        accel_json_end(j, '}');
    }
    accel_json_end(j, ']');
}

static void show_json(struct bench *b)
{
    struct accel_json j = {.out = b->job->out};
    const struct times *t = &b->times;
    accel_json_object(&j, NULL);
    accel_json_text(&j, "command", "bench");
    accel_json_text(&j, "version", ACCEL_VERSION);
    accel_json_text(&j, "mode", "forward");
    accel_json_int(&j, "batch", b->batch);
    accel_json_text(&j, "precision", precision_of(b->job));
    accel_json_int(&j, "threads", accel_threads_get());
    accel_json_object(&j, "cpu_ms");
    accel_json_number(&j, "min", ms(t->cpu, t->n, 0));
    accel_json_number(&j, "median", ms(t->cpu, t->n, 0.5));
    accel_json_end(&j, '}');
    accel_json_object(&j, "wall_ms");
    accel_json_number(&j, "min", ms(t->wall, t->n, 0));
    accel_json_number(&j, "median", ms(t->wall, t->n, 0.5));
    accel_json_number(&j, "p99", ms(t->wall, t->n, 0.99));
    accel_json_end(&j, '}');
    accel_json_number(&j, "open_ms", (double)b->open_ns / 1e6);
    accel_json_number(&j, "first_ms", (double)b->first_ns / 1e6);
    accel_json_uint(&j, "steps", t->n);
    if (b->macs >= 0)
        accel_json_int(&j, "macs", b->macs);
    else
        accel_json_null(&j, "macs");
    accel_json_int(&j, "peak_mb", peak_mb());
    accel_json_uint(&j, "plan_bytes", accel_plan_block_size(b->feed.plan));
    accel_json_uint(&j, "constant_bytes", accel_plan_constant_size(b->feed.plan));
    if (b->job->opt.profile)
        json_profile(&j, &b->profile);
    accel_json_array(&j, "warnings");
    for (size_t i = 0; i < b->job->log.n; i++)
        accel_json_text(&j, NULL, b->job->log.text[i]);
    accel_json_end(&j, ']');
    accel_json_end(&j, '}');
    accel_str_add(&j.out, "\n");
    b->job->out = j.out;
}

static enum accel_err bench(struct bench *b)
{
    struct accel_job *job = b->job;
    double seconds;
    ACCEL_TRY(read_seconds(&seconds, job->opt.seconds));
    bool looks = job->opt.profile || job->opt.trace;
    const struct accel_plan_options opt = {.max_steps = job->opt.max_steps,
                                           .watch = looks ? accel_profile_watch : NULL,
                                           .watch_ctx = &b->profile};
    int64_t begin = accel_clock_ns();
    ACCEL_TRY(accel_feed_open(&b->feed, job, job->opt.arg.at[0], &opt));
    b->open_ns = accel_clock_ns() - begin;
    ACCEL_TRY(accel_feed_random(&b->feed, (uint64_t)job->opt.seed));
    b->batch = batch_of(&b->feed);
    begin = accel_clock_ns();
    ACCEL_TRY(accel_feed_run(&b->feed, &job->log));
    b->first_ns = accel_clock_ns() - begin;
    b->macs = accel_graph_macs(b->feed.m->graph);
    ACCEL_TRY(time_all(b, seconds));
    if (looks) {
        ACCEL_TRY(accel_profile_begin(&b->profile, b->feed.m->graph));
        ACCEL_TRY(make_profile(b));
    }
    if (job->opt.trace)
        ACCEL_TRY(accel_profile_trace(&b->profile, job->opt.trace));
    if (!job->opt.json)
        return show_text(b);
    show_json(b);
    return ACCEL_OK;
}

static enum accel_err run(struct accel_job *job)
{
    struct bench b = {.job = job};
    enum accel_err err = bench(&b);
    accel_profile_clear(&b.profile);
    accel_free(b.times.wall);
    accel_free(b.times.cpu);
    accel_feed_close(&b.feed);
    return err;
}

const struct accel_command accel_command_bench = {
    .name = "bench",
    .usage = "MODEL [--batch N] [--seconds S] [--profile] [options]",
    .summary =
        "Times the forward pass of a model on random inputs: the fastest, the median and the "
        "slowest of a hundred runs, arithmetic per second, memory; with --profile what "
        "each operator type takes.",
    .options = options,
    .unused = unused,
    .later = later,
    .min_args = 1,
    .max_args = 1,
    .run = run,
};
