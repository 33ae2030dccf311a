/* bench_run.c - CPU time of one forward pass, lowest hundredth and median of many, fast kernels
 * against plain.
 *
 *     bench_run MODEL BATCH SECONDS [plain]
 *
 * Unknown sizes become BATCH. One JSON line: CPU milliseconds of the process (stolen time is not in
 * them), the first result's, and what runs fast. The smallest time of thousands is no measure: the
 * clock now and then gives one of half the others; the hundredth part is left out. bench/run_ort.py
 * puts onnxruntime beside it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "exec/plan.h"
#include "graph/infer.h"
#include "onnx/onnx.h"

static double cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void stop_on(enum accel_err err)
{
    if (!err)
        return;
    fprintf(stderr, "%s\n", accel_errmsg());
    exit(1);
}

static void feed(struct accel_plan *p, int64_t batch)
{
    for (int i = 0; i < accel_plan_n_inputs(p); i++) {
        const struct accel_value *v = accel_plan_input(p, i);
        int64_t dim[8], n = 1;
        int rank = v->declared.rank;
        if (rank < 0 || rank > 8)
            stop_on(accel_fail(ACCEL_ENOSUP, "input '%s' of rank %d", v->name, rank));
        for (int d = 0; d < rank; d++)
            n *= dim[d] = v->declared.dim[d].n >= 0 ? v->declared.dim[d].n : batch;
        double *wide = calloc((size_t)n, sizeof *wide);
        void *data = aligned_alloc(64, ((size_t)n * 8 + 63) / 64 * 64); /* until the process ends */
        for (int64_t k = 0; k < n; k++)
            wide[k] = (double)(k * 2654435761u % 1024) / 1024;
        accel_dtype_from_f64(v->declared_dtype, wide, (size_t)n, data, 0);
        free(wide);
        stop_on(accel_plan_set_input(p, i,
                                     &(struct accel_array){v->declared_dtype, rank, dim, n, data}));
    }
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double t[1 << 20];
    if (argc < 4)
        return fprintf(stderr, "usage: bench_run MODEL BATCH SECONDS [plain]\n"), 2;
    double start = cpu_ms(), seconds = atof(argv[3]);
    struct accel_device *d = NULL;
    struct accel_model *m;
    struct accel_plan *p;
    size_t n = 0;
    stop_on(accel_onnx_read(&m, argv[1], &(struct accel_onnx_read_options){0}));
    stop_on(accel_model_infer(m));
    if (argc < 5)
        stop_on(accel_device_cpu(&d));
    stop_on(accel_plan_new(&p, m, &(struct accel_plan_options){.device = d}));
    feed(p, atoll(argv[2]));
    stop_on(accel_plan_run(p));
    double first = cpu_ms() - start;
    for (double begin = cpu_ms(); n < 5 || (n < 1 << 20 && cpu_ms() - begin < seconds * 1e3); n++) {
        double at = cpu_ms();
        stop_on(accel_plan_run(p));
        t[n] = cpu_ms() - at;
    }
    qsort(t, n, sizeof *t, by_value);
    printf("{\"device\": \"%s\", \"low_ms\": %.4f, \"median_ms\": %.4f, \"runs\": %zu, "
           "\"first_ms\": %.2f, \"fast\": %zu, \"nodes\": %zu, \"block\": %llu, \"constants\": "
           "%llu}\n",
           d ? d->name : "plain", t[n / 100], t[n / 2], n, first, accel_plan_n_fast(p),
           m->graph->n_node, (unsigned long long)accel_plan_block_size(p),
           (unsigned long long)accel_plan_constant_size(p));
    accel_plan_free(p);
    accel_model_free(m);
    if (d)
        d->free(d);
    return 0;
}
