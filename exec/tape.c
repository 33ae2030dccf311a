/* tape.c - a tape's life: what trains is found, inputs are set, sizes settled, weights stored. */
#include "exec/tape.h"

#include <inttypes.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/tape_int.h"
#include "graph/infer.h"

static enum accel_err take_heads(struct accel_tape *t)
{
    if (!t->opt.head) {
        t->opt.head = (const struct accel_value *const *)t->graph->output;
        t->opt.n_head = (int)t->graph->n_output;
    }
    t->head = accel_calloc((size_t)t->opt.n_head + 1, sizeof(struct accel_value *));
    if (!t->head)
        return accel_fail_nomem();
    for (int i = 0; i < t->opt.n_head; i++) {
        const struct accel_value *v = t->opt.head[i];
        if (!v->producer || v->tensor || !v->is_tensor || !accel_tape_is_real(v))
            return accel_fail(ACCEL_ENOSUP, "'%.200s' is no result of real numbers: no loss of it",
                              v->name);
        t->head[i] = v;
        t->cell[v->index].is_head = true;
    }
    t->opt.head = NULL;
    return ACCEL_OK;
}

static enum accel_err take_inputs(struct accel_tape *t)
{
    t->input = accel_calloc(t->graph->n_input + 1, sizeof(struct accel_value *));
    if (!t->input)
        return accel_fail_nomem();
    for (size_t i = 0; i < t->graph->n_input; i++)
        if (!t->graph->input[i]->tensor)
            t->input[t->n_input++] = t->graph->input[i];
    return ACCEL_OK;
}

static enum accel_err load_constants(struct accel_tape *t)
{
    for (size_t i = 0; i < t->graph->n_value; i++)
        if (t->graph->value[i]->tensor && t->cell[i].needed)
            ACCEL_TRY(accel_tape_load(t, t->graph->value[i]));
    return ACCEL_OK;
}

static enum accel_err build(struct accel_tape *t)
{
    size_t n_value = t->graph->n_value;
    t->cell = accel_calloc(n_value, sizeof *t->cell);
    t->step = accel_calloc(t->graph->n_node, sizeof *t->step);
    if (!t->cell || !t->step)
        return accel_fail_nomem();
    for (size_t i = 0; i < n_value; i++)
        t->cell[i].parameter = -1;
    ACCEL_TRY(accel_model_infer(t->model));
    ACCEL_TRY(take_heads(t));
    ACCEL_TRY(take_inputs(t));
    ACCEL_TRY(accel_tape_analyse(t));
    t->stored = accel_calloc(t->flat.n_parameter + t->n_statistic, sizeof *t->stored);
    if (!t->stored)
        return accel_fail_nomem();
    return load_constants(t);
}

enum accel_err accel_tape_new(struct accel_tape **out, struct accel_model *m,
                              const struct accel_tape_options *opt)
{
    *out = NULL;
    struct accel_tape *t = accel_calloc(1, sizeof *t);
    if (!t)
        return accel_fail_nomem();
    t->model = m;
    t->graph = m->graph;
    t->opt = *opt;
    enum accel_err err = build(t);
    if (err)
        accel_tape_free(t);
    else
        *out = t;
    return err;
}

void accel_tape_free(struct accel_tape *t)
{
    if (!t)
        return;
    accel_tape_release(t);
    for (size_t i = 0; t->cell && i < t->graph->n_value; i++) {
        accel_free(t->cell[i].own);
        accel_free(t->cell[i].dim);
    }
    accel_free(t->cell);
    accel_free(t->step);
    accel_free(t->head);
    accel_free(t->input);
    accel_free(t->statistic);
    accel_free(t->stored);
    accel_free(t->flat.parameter);
    accel_free(t->flat.weight);
    accel_free(t->flat.grad);
    accel_free(t->block);
    accel_free(t->room);
    accel_free(t);
}

int accel_tape_n_inputs(const struct accel_tape *t)
{
    return t->n_input;
}

const struct accel_value *accel_tape_input(const struct accel_tape *t, int i)
{
    return t->input[i];
}

/* The file's own words about an input: type, rank, sizes. */
static enum accel_err check_input(const struct accel_tape *t, const struct accel_value *v,
                                  const struct accel_array *a)
{
    char want[128];
    if (v->declared_dtype != ACCEL_UNDEFINED && v->declared_dtype != a->dtype)
        return accel_fail(ACCEL_EARG, "input '%.200s' is %s, the model wants %s", v->name,
                          accel_dtype_find((int)a->dtype)->name,
                          accel_dtype_find((int)v->declared_dtype)->name);
    accel_shape_text(&v->declared, &t->model->symbols, want, sizeof want);
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

static bool same_sizes(const struct accel_array *a, const struct accel_array *b)
{
    if (!a->data || a->rank != b->rank || a->dtype != b->dtype)
        return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

enum accel_err accel_tape_set_input(struct accel_tape *t, int i, const struct accel_array *a)
{
    const struct accel_value *v = t->input[i];
    struct accel_tape_cell *c = &t->cell[v->index];
    ACCEL_TRY(check_input(t, v, a));
    if (!same_sizes(&c->a, a)) {
        ACCEL_TRY(accel_tape_set_dims(c, a->dtype, a->rank, a->dim));
        accel_free(c->own);
        c->own = accel_alloc_pages((size_t)c->a.n * accel_tape_width(a->dtype) + 64);
        if (!c->own)
            return accel_fail_nomem();
        c->a.data = c->own;
        t->settled = false;
    }
    accel_tape_widen(c->own, a->dtype, a->data, a->n);
    return ACCEL_OK;
}

static enum accel_err settle(struct accel_tape *t)
{
    for (int i = 0; i < t->n_input; i++) {
        struct accel_value *v = t->input[i];
        const struct accel_array *a = &t->cell[v->index].a;
        if (!a->data)
            return accel_fail(ACCEL_EARG, "input '%.200s' was not given", v->name);
        v->given = a->dim;
        v->given_rank = a->rank;
    }
    enum accel_err err = accel_model_infer(t->model);
    for (int i = 0; i < t->n_input; i++)
        t->input[i]->given = NULL;
    ACCEL_TRY(err);
    accel_tape_release(t);
    ACCEL_TRY(accel_tape_settle_values(t));
    ACCEL_TRY(accel_tape_choose(t));
    ACCEL_TRY(accel_tape_join(t));
    ACCEL_TRY(accel_tape_lay_out(t));
    t->settled = true;
    return ACCEL_OK;
}

enum accel_err accel_tape_forward(struct accel_tape *t)
{
    if (!t->settled)
        ACCEL_TRY(settle(t));
    ACCEL_TRY(accel_tape_run_forward(t, NULL));
    t->count++;
    return ACCEL_OK;
}

const struct accel_array *accel_tape_head(const struct accel_tape *t, int i)
{
    return &t->cell[t->head[i]->index].a;
}

struct accel_array accel_tape_head_gradient(const struct accel_tape *t, int i)
{
    const struct accel_tape_cell *c = &t->cell[t->head[i]->index];
    struct accel_array a = c->a;
    a.data = c->grad;
    return a;
}

enum accel_err accel_tape_backward(struct accel_tape *t, bool add)
{
    t->adds = add;
    return accel_tape_run_backward(t);
}

struct accel_flat *accel_tape_flat(struct accel_tape *t)
{
    return &t->flat;
}

void accel_tape_set_step(struct accel_tape *t, uint64_t step)
{
    t->count = step;
}

size_t accel_tape_n_statistics(const struct accel_tape *t)
{
    return t->n_statistic;
}

const struct accel_value *accel_tape_statistic(const struct accel_tape *t, size_t i,
                                               struct accel_array *a)
{
    *a = t->cell[t->statistic[i]->index].a;
    return t->statistic[i];
}

enum accel_err accel_tape_find_nan(struct accel_tape *t, const struct accel_node **node)
{
    *node = NULL;
    t->count--;
    enum accel_err err = accel_tape_run_forward(t, node);
    t->count++;
    return err;
}

/* The tensor borrows memory of the model's arena, which later calls write anew. */
static enum accel_err store(struct accel_tape *t, size_t k, const struct accel_value *v)
{
    struct accel_tensor *to = v->tensor;
    const struct accel_tape_cell *c = &t->cell[v->index];
    if (!t->stored[k]) {
        t->stored[k] = accel_arena_new(&t->model->arena, to->size + 1, 1);
        if (!t->stored[k])
            return accel_fail_nomem();
    }
    if (to->dtype == ACCEL_F32 || to->dtype == ACCEL_F64) {
        memcpy(t->stored[k], c->a.data, (size_t)to->size);
    } else {
        for (int64_t i = 0; i < c->a.n; i++) {
            double x = (double)((const float *)c->a.data)[i];
            accel_dtype_from_f64(to->dtype, &x, 1, t->stored[k], (size_t)i);
        }
    }
    accel_tensor_set_edit(to, NULL);
    accel_tensor_replace(to, t->stored[k]);
    return ACCEL_OK;
}

enum accel_err accel_tape_store(struct accel_tape *t)
{
    for (size_t i = 0; i < t->flat.n_parameter; i++)
        ACCEL_TRY(store(t, i, t->flat.parameter[i].value));
    for (size_t i = 0; i < t->n_statistic; i++)
        ACCEL_TRY(store(t, t->flat.n_parameter + i, t->statistic[i]));
    return ACCEL_OK;
}

uint64_t accel_tape_block_size(const struct accel_tape *t)
{
    return t->block_size + t->room_size;
}
