/* plan.c - a plan's life: constants are read, inputs are set, shapes settled, outputs handed out.
 */
#include "exec/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "exec/plan_int.h"
#include "graph/infer.h"

/* Adds "Op ('node')" for every node without a kernel, each operator once. */
static void list_missing(struct accel_str *list, struct accel_map *seen,
                         const struct accel_graph *g)
{
    for (size_t i = 0; i < g->n_node; i++) {
        struct accel_node *n = g->node[i];
        for (size_t a = 0; a < n->n_attr; a++)
            for (size_t k = 0; n->attr[a].graphs && k < n->attr[a].n; k++)
                list_missing(list, seen, n->attr[a].graphs[k]);
        const struct accel_op *op = n->op ? n->op : n->deferred;
        bool constant = n->n_out == 1 && n->out[0] && n->out[0]->tensor;
        if (n->function || constant || (op && op->forward) || accel_map_find(seen, n->op_type))
            continue;
        list->failed = list->failed || !accel_map_put(seen, n->op_type, n);
        accel_str_addf(list, "%snode '%.200s' (%s%s%.100s)", list->len ? ", " : "", n->label,
                       *n->domain ? n->domain : "", *n->domain ? "::" : "", n->op_type);
    }
}

static enum accel_err check_kernels(const struct accel_model *m)
{
    struct accel_str list = {0};
    struct accel_map seen = {0};
    list_missing(&list, &seen, m->graph);
    for (size_t i = 0; i < m->n_function; i++)
        list_missing(&list, &seen, m->function[i]->body);
    enum accel_err err = list.failed ? accel_fail_nomem() : ACCEL_OK;
    if (!err && list.len)
        err = accel_fail(ACCEL_ENOSUP, "no kernel for %s", accel_str_get(&list));
    accel_str_clear(&list);
    accel_map_clear(&seen);
    return err;
}

enum accel_err accel_plan_new(struct accel_plan **out, struct accel_model *m,
                              const struct accel_plan_options *opt)
{
    *out = NULL;
    ACCEL_TRY(check_kernels(m));
    struct accel_plan *p = accel_calloc(1, sizeof *p);
    if (!p)
        return accel_fail_nomem();
    enum accel_err err = ACCEL_OK;
    p->model = m;
    p->opt = *opt;
    if (p->opt.max_steps <= 0)
        p->opt.max_steps = 10000000;
    p->n_run = m->graph->n_node;
    p->input = accel_calloc(m->graph->n_input, sizeof(struct accel_value *));
    p->given = accel_calloc(m->graph->n_input, sizeof *p->given);
    if (!p->input || !p->given)
        err = accel_fail_nomem();
    for (size_t i = 0; !err && i < m->graph->n_input; i++)
        if (!m->graph->input[i]->tensor)
            p->input[p->n_input++] = m->graph->input[i];
    if (!err)
        err = accel_frame_new(&p->main, m->graph, NULL, NULL);
    if (!err && !p->opt.device)
        err = accel_frame_load(p, p->main);
    if (err) {
        accel_plan_free(p);
        return err;
    }
    *out = p;
    return ACCEL_OK;
}

void accel_plan_free(struct accel_plan *p)
{
    if (!p)
        return;
    accel_steps_free(p);
    accel_frame_free(p->main);
    for (size_t i = 0; i < p->n_room; i++)
        accel_free(p->room[i].at);
    accel_free(p->room);
    accel_free(p->block);
    accel_free(p->workspace);
    accel_free(p->input);
    accel_free(p->given);
    accel_free(p);
}

int accel_plan_n_inputs(const struct accel_plan *p)
{
    return p->n_input;
}

const struct accel_value *accel_plan_input(const struct accel_plan *p, int i)
{
    return p->input[i];
}

/* The file's own words about an input: type, rank, sizes. */
static enum accel_err check_input(const struct accel_plan *p, const struct accel_value *v,
                                  const struct accel_array *a)
{
    char want[128];
    if (!v->is_tensor)
        return accel_fail(ACCEL_ENOSUP, "input '%.200s' is no tensor", v->name);
    if (v->declared_dtype != ACCEL_UNDEFINED && v->declared_dtype != a->dtype)
        return accel_fail(ACCEL_EARG, "input '%.200s' is %s, the model wants %s", v->name,
                          accel_dtype_find((int)a->dtype)->name,
                          accel_dtype_find((int)v->declared_dtype)->name);
    accel_shape_text(&v->declared, &p->model->symbols, want, sizeof want);
    if (v->declared.rank < 0)
        return ACCEL_OK;
    if (v->declared.rank != a->rank)
        return accel_fail(ACCEL_EARG, "input '%.200s' has rank %d, the model wants %s", v->name,
                          a->rank, want);
    for (int i = 0; i < a->rank; i++)
        if (v->declared.dim[i].n >= 0 && v->declared.dim[i].n != a->dim[i])
            return accel_fail(ACCEL_EARG,
                              "input '%.200s' has size %" PRId64 " on axis %d, the model wants %s",
                              v->name, a->dim[i], i, want);
    return ACCEL_OK;
}

enum accel_err accel_plan_set_input(struct accel_plan *p, int i, const struct accel_array *a)
{
    const struct accel_value *v = p->input[i];
    struct accel_cell *c = &p->main->cell[v->index];
    ACCEL_TRY(check_input(p, v, a));
    bool same = p->given[i] && c->a.rank == a->rank && c->a.dtype == a->dtype;
    for (int d = 0; same && d < a->rank; d++)
        same = c->dim[d] == a->dim[d];
    if (!ACCEL_GROW(c->dim, c->dim_cap, (size_t)a->rank + 1))
        return accel_fail_nomem();
    if (a->rank)
        memmove(c->dim, a->dim, (size_t)a->rank * sizeof *a->dim);
    c->a = *a;
    c->a.dim = c->dim;
    p->given[i] = true;
    p->settled = p->settled && same;
    return ACCEL_OK;
}

/* Infers the model with the sizes of the inputs as they are. Symbols stay free: files give one name
 * to axes that turn out different, and other runtimes take them. */
static enum accel_err infer_with_inputs(struct accel_plan *p)
{
    for (int i = 0; i < p->n_input; i++) {
        struct accel_value *v = p->input[i];
        v->given = p->main->cell[v->index].dim;
        v->given_rank = p->main->cell[v->index].a.rank;
    }
    enum accel_err err = accel_model_infer(p->model);
    for (int i = 0; i < p->n_input; i++)
        p->input[i]->given = NULL;
    return err;
}

/* Fast Relu and Clip make a number of NaN; plain kernels pass it on. */
static void find_nan(struct accel_plan *p)
{
    bool has_nan = p->nan_constant;
    for (int i = 0; p->opt.device && !has_nan && i < p->n_input; i++)
        has_nan = accel_array_has_nan(&p->main->cell[p->input[i]->index].a);
    p->settled = p->settled && has_nan == p->has_nan;
    p->has_nan = has_nan;
}

enum accel_err accel_plan_run(struct accel_plan *p)
{
    for (int i = 0; i < p->n_input; i++)
        if (!p->given[i])
            return accel_fail(ACCEL_EARG, "input '%.200s' was not given", p->input[i]->name);
    find_nan(p);
    if (!p->settled) {
        ACCEL_TRY(infer_with_inputs(p));
        ACCEL_TRY(accel_plan_fold(p));
        ACCEL_TRY(accel_steps_choose(p));
        if (p->nan_constant && !p->has_nan) { /* seen when it was read */
            p->has_nan = true;
            ACCEL_TRY(accel_plan_fold(p));
            ACCEL_TRY(accel_steps_choose(p));
        }
        accel_constants_trim(p);
        ACCEL_TRY(accel_plan_lay_out(p));
        p->settled = true;
    }
    p->steps = 0;
    return accel_frame_run(p, p->main);
}

void accel_plan_stop_after(struct accel_plan *p, int index)
{
    size_t all = p->main->graph->n_node;
    p->n_run = index < 0 || (size_t)index >= all ? all : (size_t)index + 1;
    p->settled = false;
}

enum accel_err accel_plan_reload(struct accel_plan *p, const struct accel_value *v)
{
    struct accel_cell *c = &p->main->cell[v->index];
    c->a.data = NULL;
    accel_plan_unfold(p);
    p->settled = false;
    return accel_constant_load(p, v);
}

int accel_plan_n_outputs(const struct accel_plan *p)
{
    return (int)p->model->graph->n_output;
}

const struct accel_value *accel_plan_output_value(const struct accel_plan *p, int i)
{
    return p->model->graph->output[i];
}

const struct accel_array *accel_plan_output(const struct accel_plan *p, int i)
{
    return &p->main->cell[p->model->graph->output[i]->index].a;
}

bool accel_plan_in_float(const struct accel_plan *p)
{
    return p->in_float;
}

size_t accel_plan_n_fast(const struct accel_plan *p)
{
    return p->n_fast;
}

uint64_t accel_plan_block_size(const struct accel_plan *p)
{
    return p->block_size;
}

uint64_t accel_plan_constant_size(const struct accel_plan *p)
{
    uint64_t size = 0;
    for (size_t i = 0; i < p->main->graph->n_value; i++) {
        const struct accel_tensor *t = p->main->graph->value[i]->tensor;
        size += t ? t->size : 0;
    }
    return size;
}
