/* The cut of one axis class is computed once and shared by all its axes. Slicing goes through the
 * nodes for their repairs first, while the model still shows the old sizes, then through the
 * constants, then through what is declared; the model is inferred anew in the end, which is also
 * the proof that everything fits. */
#include "prune/cut.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/infer.h"
#include "prune/cut_node.h"

static enum accel_err plan_axes(struct accel_cut_plan *c, const bool *gone)
{
    const struct accel_groups *g = c->g;
    struct accel_cut *cls = accel_calloc(g->n_class, sizeof *cls);
    c->axis = ACCEL_NEW(&c->arena, struct accel_cut, g->n_axis + 1);
    if (!cls || !c->axis) {
        accel_free(cls);
        return accel_fail_nomem();
    }
    for (size_t i = 0; i < g->n_class; i++) {
        const struct accel_axis_class *k = &g->cls[i];
        int64_t now = k->n, at = 0;
        for (int64_t u = 0; k->wall < 0 && u < k->n; u++)
            now -= g->group[k->first + (size_t)u] >= 0 && gone[g->group[k->first + (size_t)u]];
        cls[i] = (struct accel_cut){k->n, now, NULL};
        if (now == k->n)
            continue;
        int64_t *kept = ACCEL_NEW(&c->arena, int64_t, now + 1);
        if (!kept) {
            accel_free(cls);
            return accel_fail_nomem();
        }
        for (int64_t u = 0; u < k->n; u++) {
            int32_t i_group = g->group[k->first + (size_t)u];
            if (i_group < 0 || !gone[i_group])
                kept[at++] = u;
        }
        cls[i].kept = kept;
    }
    for (size_t a = 0; a < g->n_axis; a++) {
        c->axis[a] = cls[g->class_of[a]];
        c->axis[a].was = g->size[a];
        if (!c->axis[a].kept)
            c->axis[a].now = g->size[a];
    }
    accel_free(cls);
    return ACCEL_OK;
}

enum accel_err accel_cut_plan_new(struct accel_cut_plan **out, const struct accel_groups *g,
                                  const bool *gone)
{
    struct accel_cut_plan *c = accel_calloc(1, sizeof *c);
    if (!c)
        return accel_fail_nomem();
    c->g = g;
    enum accel_err err = plan_axes(c, gone);
    if (err)
        accel_cut_plan_free(c);
    else
        *out = c;
    return err;
}

void accel_cut_plan_free(struct accel_cut_plan *c)
{
    if (!c)
        return;
    accel_free(c->tensor);
    accel_arena_clear(&c->arena);
    accel_free(c);
}

/* ------------------------------------------------------------------ constants */

static bool any_cut(const struct accel_cut *axis, int rank)
{
    for (int a = 0; a < rank; a++)
        if (axis[a].kept)
            return true;
    return false;
}

static enum accel_err note(struct accel_cut_plan *c, struct accel_value *v,
                           const struct accel_cut *axis)
{
    if (!ACCEL_GROW(c->tensor, c->tensor_cap, c->n_tensor + 1))
        return accel_fail_nomem();
    c->tensor[c->n_tensor++] = (struct accel_cut_tensor){v->tensor, v, *v->tensor, axis};
    return ACCEL_OK;
}

static int order_cuts(const struct accel_cut *a, const struct accel_cut *b)
{
    if (a->kept == b->kept)
        return 0;
    if (!a->kept || !b->kept)
        return a->kept ? 1 : -1;
    if (a->now != b->now)
        return a->now < b->now ? -1 : 1;
    return memcmp(a->kept, b->kept, (size_t)a->now * sizeof *a->kept);
}

static bool use_is_kept(const struct accel_use *u)
{
    return u->slot < 32 && u->node->op && u->node->op->keep >> u->slot & 1;
}

/* A use of a vector, and what becomes of it there. */
struct split_use {
    struct accel_use use;
    const struct accel_cut *cut;
    size_t at;
    bool spared; /* cut, but not to be zeroed there */
};

static int order_fates(const struct split_use *a, const struct split_use *b)
{
    return a->spared != b->spared ? (a->spared ? 1 : -1) : order_cuts(a->cut, b->cut);
}

static int by_fate(const void *x, const void *y)
{
    const struct split_use *a = x, *b = y;
    int order = order_fates(a, b);
    return order ? order : (a->at > b->at) - (a->at < b->at);
}

/* lead[i]: the first use that is cut (and masked) like use i. */
static void find_leads(size_t *lead, struct split_use *sorted, size_t n)
{
    qsort(sorted, n, sizeof *sorted, by_fate);
    for (size_t i = 0; i < n; i++)
        lead[sorted[i].at] =
            i && !order_fates(&sorted[i - 1], &sorted[i]) ? lead[sorted[i - 1].at] : sorted[i].at;
}

/* Uses of a vector that are cut alike (and masked alike) share a constant; the first ones keep the
 * one that is there. A use's axis is found by its node: repairs may have taken uses away. */
static enum accel_err split_uses(struct accel_cut_plan *c, struct accel_model *m,
                                 struct accel_value *v, bool masked)
{
    size_t n = v->n_use;
    struct split_use *use = accel_calloc(2 * n, sizeof *use);
    struct accel_value **of = accel_calloc(n, sizeof(*of));
    size_t *lead = accel_calloc(n, sizeof *lead);
    enum accel_err err = use && of && lead ? ACCEL_OK : accel_fail_nomem();
    for (size_t i = 0; !err && i < n; i++) {
        struct accel_use u = v->use[i];
        const struct accel_cut *cut = &c->axis[accel_groups_operand(c->g, u.node, u.slot, 0)];
        use[i] = use[n + i] = (struct split_use){u, cut, i, masked && cut->kept && use_is_kept(&u)};
    }
    if (!err && n)
        find_leads(lead, use + n, n);
    for (size_t i = 0; !err && i < n; i++) {
        of[i] = i ? of[lead[i]] : v;
        if (lead[i] == i) {
            if (i)
                ACCEL_GOTO(err, accel_cut_copy(&of[i], m, v));
            if (use[i].cut->kept && !use[i].spared)
                ACCEL_GOTO(err, note(c, of[i], use[i].cut));
        }
        if (of[i] != v)
            ACCEL_GOTO(err, accel_edit_input(use[i].use.node, use[i].use.slot, of[i]));
    }
done:
    accel_free(use);
    accel_free(of);
    accel_free(lead);
    return err;
}

/* Lists the constants that change, and gives uses that are cut differently their own. */
static enum accel_err find_constants(struct accel_cut_plan *c, struct accel_model *m,
                                     struct accel_value **value, size_t n_value, const bool *split,
                                     bool masked)
{
    for (size_t i = 0; i < n_value; i++) {
        struct accel_value *v = value[i];
        if (!v->tensor || v->dropped)
            continue;
        const struct accel_cut *axis = c->axis + c->g->value_axis[v->index];
        if (split[i])
            ACCEL_TRY(split_uses(c, m, v, masked));
        else if (any_cut(axis, v->tensor->rank) && (!masked || accel_groups_is_masked(v)))
            ACCEL_TRY(note(c, v, axis));
    }
    return ACCEL_OK;
}

/* Values as they are before anything is edited. */
static enum accel_err list_values(struct accel_value ***out, bool **split, size_t *n,
                                  const struct accel_model *m)
{
    const struct accel_graph *graph = m->graph;
    *n = graph->n_value;
    *out = accel_calloc(*n, sizeof(**out));
    *split = accel_calloc(*n, sizeof(**split));
    if (!*out || !*split)
        return accel_fail_nomem();
    for (size_t i = 0; i < *n; i++) {
        (*out)[i] = graph->value[i];
        (*split)[i] = accel_groups_is_split(m, graph->value[i]);
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ what is declared */

static enum accel_err declare(struct accel_value *v, const struct accel_cut *axis)
{
    struct accel_shape *s = &v->declared;
    bool wrong = false;
    for (int a = 0; a < s->rank && s->rank == v->shape.rank; a++)
        wrong = wrong || (axis[a].kept && accel_dim_known(s->dim[a]));
    if (!wrong)
        return ACCEL_OK;
    struct accel_dim *dim = ACCEL_NEW(&v->graph->model->arena, struct accel_dim, s->rank + 1);
    if (!dim)
        return accel_fail_nomem();
    for (int a = 0; a < s->rank; a++)
        dim[a] = axis[a].kept && accel_dim_known(s->dim[a]) ? accel_dim_of(axis[a].now) : s->dim[a];
    s->dim = dim;
    v->changed = true;
    return ACCEL_OK;
}

static enum accel_err select_all(struct accel_cut_plan *c, struct accel_model *m)
{
    for (size_t i = 0; i < c->n_tensor; i++) {
        struct accel_cut_tensor *t = &c->tensor[i];
        int rank = t->tensor->rank;
        const int64_t **kept = ACCEL_NEW(&c->arena, const int64_t *, rank + 1);
        int64_t *n = ACCEL_NEW(&c->arena, int64_t, rank + 1);
        if (!kept || !n)
            return accel_fail_nomem();
        for (int a = 0; a < rank; a++) {
            kept[a] = t->axis[a].kept;
            n[a] = t->axis[a].now;
        }
        ACCEL_TRY(accel_tensor_select(t->tensor, &c->arena, kept, n));
        ACCEL_TRY(declare(t->value, t->axis)); /* split ones were not declared yet */
        if (t->value->is_input)
            accel_warn(
                &m->log,
                "'%.200s' is a graph input too: a caller who overrides it must give its new shape",
                t->value->name);
    }
    return ACCEL_OK;
}

enum accel_err accel_cut_slice(struct accel_cut_plan *c, struct accel_model *m)
{
    struct accel_value **value = NULL;
    bool *split = NULL;
    size_t n;
    enum accel_err err;
    ACCEL_GOTO(err, list_values(&value, &split, &n, m));
    for (size_t i = 0; i < n; i++)
        if (!split[i])
            ACCEL_GOTO(err, declare(value[i], c->axis + c->g->value_axis[i]));
    struct accel_cut_nodes nodes = {.c = c, .m = m};
    err = accel_cut_nodes_repair(&nodes);
    if (!err)
        err = find_constants(c, m, value, n, split, false);
    if (!err)
        err = select_all(c, m);
    if (!err)
        err = accel_cut_nodes_settle(&nodes);
    accel_cut_nodes_clear(&nodes);
    if (!err)
        err = accel_model_infer(m);
done:
    accel_free(value);
    accel_free(split);
    return err;
}

enum accel_err accel_cut_mask(struct accel_cut_plan *c, struct accel_model *m)
{
    struct accel_value **value = NULL;
    bool *split = NULL;
    size_t n;
    enum accel_err err;
    ACCEL_GOTO(err, list_values(&value, &split, &n, m));
    ACCEL_GOTO(err, find_constants(c, m, value, n, split, true));
    for (size_t i = 0; i < c->n_tensor; i++) {
        struct accel_cut_tensor *t = &c->tensor[i];
        struct accel_edit *edit;
        struct accel_scaling by;
        bool scaled = !accel_dtype_is_float(t->tensor->dtype) && accel_scaling_find(&by, t->value);
        ACCEL_GOTO(err, accel_blank_new(&edit, t->tensor, t->axis, scaled ? &by : NULL));
        accel_tensor_set_edit(t->tensor, edit);
    }
done:
    accel_free(value);
    accel_free(split);
    return err;
}
