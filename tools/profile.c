/* profile.c - the plan says when a node's outputs are there; the time since the one before is the
 * node's. A clock read costs some 20 ns per node. */
#include "tools/profile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "graph/infer.h"
#include "tools/table.h"

enum { SLOWEST = 10 };

int64_t accel_clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

enum accel_err accel_profile_begin(struct accel_profile *p, const struct accel_graph *g)
{
    *p = (struct accel_profile){.graph = g};
    p->ns = accel_calloc(g->n_node, sizeof *p->ns);
    p->begin = accel_calloc(g->n_node, sizeof *p->begin);
    p->end = accel_calloc(g->n_node, sizeof *p->end);
    if (p->ns && p->begin && p->end)
        return ACCEL_OK;
    accel_profile_clear(p);
    return accel_fail_nomem();
}

void accel_profile_clear(struct accel_profile *p)
{
    accel_free(p->ns);
    accel_free(p->begin);
    accel_free(p->end);
    *p = (struct accel_profile){0};
}

void accel_profile_start(struct accel_profile *p)
{
    memset(p->begin, 0, p->graph->n_node * sizeof *p->begin);
    memset(p->end, 0, p->graph->n_node * sizeof *p->end);
    p->on = true;
    p->step_ns = p->last_ns = accel_clock_ns();
}

void accel_profile_stop(struct accel_profile *p)
{
    p->on = false;
    p->steps++;
}

enum accel_err accel_profile_watch(void *ctx, const struct accel_value *v,
                                   const struct accel_array *a)
{
    struct accel_profile *p = ctx;
    (void)a;
    if (!p->on)
        return ACCEL_OK;
    int64_t t = accel_clock_ns();
    int i = v->producer->index;
    if (!p->end[i]) /* else another output of the same node */
        p->begin[i] = p->last_ns - p->step_ns;
    p->end[i] = t - p->step_ns;
    p->ns[i] += t - p->last_ns;
    p->sum += t - p->last_ns;
    p->last_ns = t;
    return ACCEL_OK;
}

/* Nodes of one operator type, or one node. */
struct share {
    const struct accel_node *node; /* the first one */
    int64_t ns, n, macs;           /* macs -1: unknown for one of them */
};

static int by_time(const void *a, const void *b)
{
    const struct share *x = a, *y = b;
    int c = (x->ns < y->ns) - (x->ns > y->ns);
    return c ? c : (x->node->index > y->node->index) - (x->node->index < y->node->index);
}

static const struct accel_column type_columns[] = {{"op", false, true},      {"nodes", true, false},
                                                   {"ms", true, false},      {"share", true, false},
                                                   {"GFLOP/s", true, false}, {0}};
static const struct accel_column node_columns[] = {
    {"slowest nodes", false, true}, {"op", false, false},     {"ms", true, false},
    {"share", true, false},         {"GFLOP/s", true, false}, {0}};

static void add_times(struct accel_table *t, const struct accel_profile *p, const struct share *s)
{
    char text[32];
    accel_table_add(t, "%.3f", (double)s->ns / (double)p->steps / 1e6);
    accel_table_add(t, "%s", accel_text_share(text, p->sum ? (double)s->ns / (double)p->sum : 0));
    if (s->macs > 0 && s->ns)
        accel_table_add(t, "%.2f", 2.0 * (double)s->macs * (double)p->steps / (double)s->ns);
    else
        accel_table_add(t, "-");
}

static void finish_table(struct accel_job *job, struct accel_table *t)
{
    accel_str_add(&job->out, "\n");
    accel_table_text(&job->out, t, job->width, job->color);
    job->out.failed = job->out.failed || t->failed;
    accel_table_clear(t);
}

/* Sums up the nodes by operator type in type[]; returns how many types. */
static bool sum_types(size_t *n_type, struct share *type, const struct share *node, size_t n)
{
    struct accel_map seen = {0};
    bool whole = true;
    *n_type = 0;
    for (size_t i = 0; whole && i < n; i++) {
        struct share *s = accel_map_find(&seen, node[i].node->op_type);
        if (!s) {
            s = &type[(*n_type)++];
            s->node = node[i].node;
            whole = accel_map_put(&seen, s->node->op_type, s);
        }
        s->n++;
        s->ns += node[i].ns;
        s->macs = s->macs < 0 || node[i].macs < 0 ? -1 : s->macs + node[i].macs;
    }
    accel_map_clear(&seen);
    return whole;
}

enum accel_err accel_profile_text(struct accel_job *job, const struct accel_profile *p)
{
    size_t n = p->graph->n_node, n_type;
    struct share *node = accel_calloc(n, sizeof *node), *type = accel_calloc(n, sizeof *type);
    struct accel_table t;
    for (size_t i = 0; node && i < n; i++)
        node[i] =
            (struct share){p->graph->node[i], p->ns[i], 1, accel_node_macs(p->graph->node[i])};
    if (!node || !type || !sum_types(&n_type, type, node, n)) {
        accel_free(node);
        accel_free(type);
        return accel_fail_nomem();
    }
    qsort(type, n_type, sizeof *type, by_time);
    qsort(node, n, sizeof *node, by_time);
    accel_table_init(&t, type_columns);
    for (size_t i = 0; i < n_type; i++) {
        accel_table_add(&t, "%s", type[i].node->op_type);
        accel_table_add(&t, "%lld", (long long)type[i].n);
        add_times(&t, p, &type[i]);
    }
    finish_table(job, &t);
    accel_table_init(&t, node_columns);
    for (size_t i = 0; i < n && i < SLOWEST; i++) {
        accel_table_add(&t, "%s", node[i].node->label);
        accel_table_add(&t, "%s", node[i].node->op_type);
        add_times(&t, p, &node[i]);
    }
    finish_table(job, &t);
    accel_free(node);
    accel_free(type);
    return ACCEL_OK;
}

static void trace_text(struct accel_json *j, const struct accel_profile *p)
{
    accel_json_object(j, NULL);
    accel_json_text(j, "displayTimeUnit", "ms");
    accel_json_array(j, "traceEvents");
    for (size_t i = 0; i < p->graph->n_node; i++) {
        const struct accel_node *n = p->graph->node[i];
        if (!p->end[i])
            continue;
        accel_json_object(j, NULL);
        accel_json_text(j, "name", n->label);
        accel_json_text(j, "cat", n->op_type);
        accel_json_text(j, "ph", "X");
        accel_json_number(j, "ts", (double)p->begin[i] / 1e3);
        accel_json_number(j, "dur", (double)(p->end[i] - p->begin[i]) / 1e3);
        accel_json_int(j, "pid", 1);
        accel_json_int(j, "tid", 1);
        accel_json_end(j, '}');
    }
    accel_json_end(j, ']');
    accel_json_end(j, '}');
    accel_str_add(&j->out, "\n");
}

enum accel_err accel_profile_trace(const struct accel_profile *p, const char *path)
{
    struct accel_json j = {0};
    struct accel_out *o = NULL;
    trace_text(&j, p);
    enum accel_err err = j.out.failed ? accel_fail_nomem() : accel_out_open(&o, path);
    if (!err)
        err = accel_out_write(o, accel_str_get(&j.out), j.out.len);
    if (!err)
        err = accel_out_finish(o);
    if (!err)
        err = accel_out_commit(o);
    accel_out_close(o);
    accel_json_clear(&j);
    return err;
}
