/* cut_random.c - the law of structured pruning on one model, by hand and for check_law.py: cuts
 * random free groups out of it, and writes zeros in the same places.
 *
 *     cut_random MODEL SEED RATIO SLICED MASKED [--dims]
 *
 * Prints "free N cut N share X": free groups, groups cut, and the share of parameters that has a
 * free axis. Exit status 0 also when nothing can be cut (no files then). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "prune/cut.h"

static void stop_on(enum accel_err err, const char *what)
{
    if (!err)
        return;
    fprintf(stderr, "%s: %s\n", what, accel_errmsg());
    exit(1);
}

/* Groups in random order, as many as asked for, as far as every axis keeps an index. */
static int32_t choose(bool *gone, const struct accel_groups *g, uint64_t seed, double ratio)
{
    struct accel_rng rng = accel_rng_init(seed);
    int32_t *order = calloc((size_t)g->n_group + 1, sizeof *order), n = 0;
    int64_t *left = calloc(g->n_class + 1, sizeof *left);
    for (size_t i = 0; i < g->n_class; i++)
        left[i] = g->cls[i].n;
    for (int32_t i = 0; i < g->n_group; i++) {
        int32_t k = (int32_t)(accel_rng_next(&rng) % (uint64_t)(i + 1));
        order[i] = order[k];
        order[k] = i;
    }
    for (int32_t i = 0; i < g->n_group && n < ratio * g->n_group; i++) {
        bool good = true;
        for (size_t p = g->part_at[order[i]]; p < g->part_at[order[i] + 1]; p++)
            good = good && left[g->part[p].cls] > g->part[p].count;
        for (size_t p = g->part_at[order[i]]; good && p < g->part_at[order[i] + 1]; p++)
            left[g->part[p].cls] -= g->part[p].count;
        gone[order[i]] = good;
        n += good;
    }
    free(order);
    free(left);
    return n;
}

static double share(const struct accel_groups *g)
{
    double all = 0, touched = 0;
    for (size_t i = 0; i < g->m->graph->n_value; i++) {
        const struct accel_value *v = g->m->graph->value[i];
        if (!accel_groups_is_weight(v))
            continue;
        double kept = 1;
        for (int a = 0; a < v->tensor->rank; a++) {
            int64_t n = 0;
            for (int64_t u = 0; u < v->tensor->dim[a]; u++)
                n += accel_groups_at(g, accel_groups_value(g, v, a), u, NULL) < 0;
            kept *= v->tensor->dim[a] ? (double)n / (double)v->tensor->dim[a] : 1;
        }
        all += (double)v->tensor->n;
        touched += (1 - kept) * (double)v->tensor->n;
    }
    return all > 0 ? touched / all : 0;
}

int main(int argc, char **argv)
{
    const struct accel_onnx_write_options how = {0};
    bool dims = argc == 7 && strcmp(argv[6], "--dims") == 0;
    if (argc != 6 && !dims) {
        fprintf(stderr, "usage: cut_random MODEL SEED RATIO SLICED MASKED [--dims]\n");
        return 2;
    }
    for (int masked = 0; masked < 2; masked++) {
        struct accel_model *m;
        struct accel_groups *g;
        struct accel_cut_plan *c;
        struct accel_onnx_written w;
        const char *out = argv[4 + masked];
        stop_on(accel_onnx_read(&m, argv[1], &(struct accel_onnx_read_options){0}), argv[1]);
        stop_on(accel_model_infer(m), argv[1]);
        stop_on(accel_groups_build(&g, m, &(struct accel_groups_options){dims}), argv[1]);
        bool *gone = calloc((size_t)g->n_group + 1, sizeof *gone);
        int32_t n = choose(gone, g, strtoull(argv[2], NULL, 10), atof(argv[3]));
        if (!masked)
            printf("free %d cut %d share %.4f\n", g->n_group, n, share(g));
        stop_on(accel_cut_plan_new(&c, g, gone), "plan");
        stop_on(masked ? accel_cut_mask(c, m) : accel_cut_slice(c, m), masked ? "mask" : "slice");
        if (n)
            stop_on(accel_onnx_write(&w, m, out, &how), out);
        accel_cut_plan_free(c);
        accel_groups_free(g);
        accel_model_free(m);
        free(gone);
    }
    return 0;
}
