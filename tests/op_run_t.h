/* op_run_t.h - runs one operator by the plain kernels of exec/, for those that constant propagation
 * leaves alone. */
#ifndef ACCEL_TESTS_OP_RUN_T_H
#define ACCEL_TESTS_OP_RUN_T_H

#include "exec/plan.h"
#include "tests/op_t.h"

/* Runs the node by itself: elements of output 0, within 1e-4; integers within 1. */
static inline void op_runs(const char *op, int opset, const char *line, const char *want)
{
    struct op_run r = op_begin_outs(op, opset, line, 1);
    ck_assert_msg(r.err == ACCEL_OK, "%s %s: %s", op, line, accel_errmsg());
    struct accel_graph *g = r.m->graph;
    struct accel_plan *p;
    g->output = r.n->out;
    g->n_output = 1;
    r.n->out[0]->is_output = true;
    r.n->label = "node";
    ck_assert_msg(!accel_plan_new(&p, r.m, &(struct accel_plan_options){0}), "%s", accel_errmsg());
    ck_assert_msg(!accel_plan_run(p), "%s %s: %s", op, line, accel_errmsg());
    const struct accel_array *a = accel_plan_output(p, 0);
    bool real = accel_dtype_find((int)a->dtype)->cls == ACCEL_CLASS_REAL;
    char *copy = strdup(want), *save, *e = strtok_r(copy, ",", &save);
    int64_t i = 0;
    for (; e && i < a->n; e = strtok_r(NULL, ",", &save), i++) {
        double got, w = strtod(e, NULL);
        accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &got);
        ck_assert_msg(fabs(got - w) <= (real ? 1e-4 * (1 + fabs(w)) : 1),
                      "%s %s: element %lld is %.9g, want %s", op, line, (long long)i, got, e);
    }
    ck_assert_msg(!e && i == a->n, "%s %s gives %lld elements", op, line, (long long)a->n);
    free(copy);
    accel_plan_free(p);
    op_end(&r);
}

#endif
