/* tape_graph.c - which nodes a step runs, and which of them backwards.
 *
 * Needed is what a head depends on. Active is what depends on a parameter through operators that
 * have a derivative; wanted is what is active and reaches a head that way. Only wanted values have
 * gradients. An operator between two wanted values that has no backward kernel is an error, not a
 * weight that stays as it is without a word. */
#include "base/alloc.h"
#include "base/str.h"
#include "exec/tape_int.h"

bool accel_tape_slot_flows(const struct accel_node *n, int i)
{
    const struct accel_value *v = n->in[i];
    if (!v || !accel_tape_is_real(v))
        return false;
    if (!n->op)
        return true;
    return !(n->op->flags & ACCEL_OP_STEPS) && !(i < 32 && n->op->no_gradient >> i & 1u);
}

static bool has_backward(const struct accel_node *n)
{
    return n->op && !n->function && (n->op->backward || n->op->flags & ACCEL_OP_VIEWS);
}

static void mark_needed(struct accel_tape *t)
{
    for (int i = 0; i < t->opt.n_head; i++)
        t->cell[t->head[i]->index].needed = true;
    for (size_t i = t->graph->n_node; i-- > 0;) {
        const struct accel_node *n = t->graph->node[i];
        bool needed = false;
        for (int k = 0; k < n->n_out; k++)
            needed = needed || (n->out[k] && t->cell[n->out[k]->index].needed);
        for (int k = 0; needed && k < n->n_in; k++)
            if (n->in[k])
                t->cell[n->in[k]->index].needed = true;
    }
}

static bool node_is_needed(const struct accel_tape *t, const struct accel_node *n)
{
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] && t->cell[n->out[k]->index].needed)
            return true;
    return false;
}

static bool flows_in(const struct accel_tape *t, const struct accel_node *n)
{
    for (int k = 0; k < n->n_in; k++)
        if (accel_tape_slot_flows(n, k) && t->cell[n->in[k]->index].active)
            return true;
    return false;
}

static void mark_active(struct accel_tape *t)
{
    for (size_t i = 0; i < t->graph->n_node; i++) {
        const struct accel_node *n = t->graph->node[i];
        if (!node_is_needed(t, n) || !flows_in(t, n))
            continue;
        for (int k = 0; k < n->n_out; k++)
            if (n->out[k] && accel_tape_is_real(n->out[k]))
                t->cell[n->out[k]->index].active = true;
    }
}

static void mark_wanted(struct accel_tape *t)
{
    for (int i = 0; i < t->opt.n_head; i++) {
        struct accel_tape_cell *c = &t->cell[t->head[i]->index];
        c->wanted = c->active;
    }
    for (size_t i = t->graph->n_node; i-- > 0;) {
        const struct accel_node *n = t->graph->node[i];
        bool wanted = false;
        for (int k = 0; k < n->n_out; k++)
            wanted = wanted || (n->out[k] && t->cell[n->out[k]->index].wanted);
        for (int k = 0; wanted && k < n->n_in; k++)
            if (accel_tape_slot_flows(n, k)) {
                struct accel_tape_cell *c = &t->cell[n->in[k]->index];
                c->wanted = c->wanted || c->active;
            }
    }
}

/* Names of parameters that a value depends on, each once. */
static void list_weights(struct accel_str *s, int *n_listed, struct accel_tape *t, bool *seen,
                         const struct accel_value *v)
{
    enum { LISTED = 6 };
    if (seen[v->index] || !t->cell[v->index].active)
        return;
    seen[v->index] = true;
    if (!v->producer) {
        if (++*n_listed <= LISTED)
            accel_str_addf(s, "%s'%.100s'", *n_listed > 1 ? ", " : "", v->name);
        else if (*n_listed == LISTED + 1)
            accel_str_addf(s, ", ...");
    }
}

/* "Op ('node')" for every operator on the way that has no gradient, each once, then the weights
 * behind them: those of the nodes before the last one named. */
static enum accel_err check_backward(struct accel_tape *t)
{
    struct accel_str ops = {0}, weights = {0};
    struct accel_map seen = {0};
    bool *listed = accel_calloc(t->graph->n_value, sizeof *listed);
    bool *before = accel_calloc(t->graph->n_value, sizeof *before);
    enum accel_err err = listed && before ? ACCEL_OK : accel_fail_nomem();
    int n_listed = 0;
    for (size_t i = t->graph->n_node; !err && i-- > 0;) {
        const struct accel_node *n = t->graph->node[i];
        bool wanted = false, cut = false;
        for (int k = 0; k < n->n_out; k++) {
            wanted = wanted || (n->out[k] && t->cell[n->out[k]->index].wanted);
            cut = cut || (n->out[k] && before[n->out[k]->index]);
        }
        if (wanted && flows_in(t, n) && !has_backward(n)) {
            if (!accel_map_find(&seen, n->op_type)) {
                ops.failed = ops.failed || !accel_map_put(&seen, n->op_type, (void *)n);
                accel_str_addf(&ops, "%s%s ('%.100s')", ops.len ? ", " : "", n->op_type, n->label);
            }
            cut = true;
        }
        for (int k = 0; cut && k < n->n_in; k++)
            if (accel_tape_slot_flows(n, k)) {
                before[n->in[k]->index] = true;
                list_weights(&weights, &n_listed, t, listed, n->in[k]);
            }
    }
    if (!err && (ops.failed || weights.failed))
        err = accel_fail_nomem();
    if (!err && ops.len)
        err = accel_fail(ACCEL_ENOSUP,
                         "no gradient through %s: %d weights behind cannot be trained (%s)",
                         accel_str_get(&ops), n_listed, accel_str_get(&weights));
    accel_str_clear(&ops);
    accel_str_clear(&weights);
    accel_map_clear(&seen);
    accel_free(listed);
    accel_free(before);
    return err;
}

static enum accel_err add_statistics(struct accel_tape *t, const struct accel_node *n)
{
    for (int k = 0; n->op && n->op->updates && k < n->n_in && k < 32; k++) {
        struct accel_value *v = n->in[k];
        if (!(n->op->updates >> k & 1u) || !v || !v->tensor || t->cell[v->index].is_statistic)
            continue;
        t->cell[v->index].is_statistic = true;
        t->statistic[t->n_statistic++] = v;
    }
    return ACCEL_OK;
}

static enum accel_err find_statistics(struct accel_tape *t)
{
    t->statistic = accel_calloc(t->graph->n_value, sizeof(struct accel_value *));
    if (!t->statistic)
        return accel_fail_nomem();
    for (size_t i = 0; !t->opt.frozen_norms && i < t->graph->n_node; i++)
        if (node_is_needed(t, t->graph->node[i]))
            ACCEL_TRY(add_statistics(t, t->graph->node[i]));
    return ACCEL_OK;
}

static bool is_candidate(const struct accel_tape *t, const struct accel_value *v)
{
    const struct accel_tape_cell *c = &t->cell[v->index];
    return v->tensor && c->needed && !c->is_statistic && accel_tape_is_real(v) &&
           accel_dtype_is_float(v->tensor->dtype) && v->tensor->n > 0 &&
           t->opt.trains(t->opt.trains_ctx, v);
}

enum { FLAT_ALIGN = 16 };

/* Parameters that gradients reach get their places in the flat buffers. */
static enum accel_err lay_flat(struct accel_tape *t)
{
    struct accel_flat *f = &t->flat;
    size_t n = 0;
    for (size_t i = 0; i < t->graph->n_value; i++)
        n += t->graph->value[i]->tensor && t->cell[i].wanted;
    if (n == 0)
        return accel_fail(ACCEL_EARG, "no weight is left to train");
    f->parameter = accel_calloc(n, sizeof *f->parameter);
    if (!f->parameter)
        return accel_fail_nomem();
    for (size_t i = 0; i < t->graph->n_value; i++) {
        const struct accel_value *v = t->graph->value[i];
        if (!v->tensor || !t->cell[i].wanted)
            continue;
        enum accel_dtype dtype = accel_tape_wide(v->tensor->dtype);
        if (f->n_parameter && dtype != f->dtype)
            return accel_fail(ACCEL_ENOSUP,
                              "'%.200s' is %s, '%.200s' %s: weights of one precision can be "
                              "trained together",
                              v->name, accel_dtype_find((int)v->tensor->dtype)->name,
                              f->parameter[0].value->name,
                              accel_dtype_find((int)f->parameter[0].value->tensor->dtype)->name);
        f->dtype = dtype;
        t->cell[i].parameter = (int64_t)f->n_parameter;
        f->parameter[f->n_parameter++] = (struct accel_parameter){v, f->n, (int64_t)v->tensor->n};
        f->n += ((int64_t)v->tensor->n + FLAT_ALIGN - 1) / FLAT_ALIGN * FLAT_ALIGN;
    }
    size_t width = accel_tape_width(f->dtype);
    f->weight = accel_alloc_pages((size_t)f->n * width);
    f->grad = accel_alloc_pages((size_t)f->n * width);
    if (!f->weight || !f->grad)
        return accel_fail_nomem();
    for (int64_t i = 0; i < f->n * (int64_t)width; i++)
        ((char *)f->weight)[i] = ((char *)f->grad)[i] = 0;
    return ACCEL_OK;
}

enum accel_err accel_tape_analyse(struct accel_tape *t)
{
    mark_needed(t);
    ACCEL_TRY(find_statistics(t));
    for (size_t i = 0; i < t->graph->n_value; i++)
        t->cell[i].active = is_candidate(t, t->graph->value[i]);
    mark_active(t);
    mark_wanted(t);
    ACCEL_TRY(check_backward(t));
    return lay_flat(t);
}
