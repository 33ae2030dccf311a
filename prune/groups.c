/* From ties to groups, in two rounds: the first with all choices open, to see what can be cut at
 * all; the second with the choice made.
 *
 * In each, axes tied one to one become classes; a class that stays as a whole has one unit, which
 * stands for all of its positions. Then the other ties join units. Why a unit stays goes with the
 * joins, so that the report can name the operator in the way. */
#include "prune/groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "prune/link_run.h"
#include "prune/target.h"

/* Units of one class at most; a longer axis stays. */
#define LONGEST_AXIS ((int64_t)1 << 24)
#define MOST_UNITS   ((size_t)1 << 28)

/* ------------------------------------------------------------------ constants */

bool accel_groups_is_split(const struct accel_model *m, const struct accel_value *v)
{
    if (!v->tensor || v->tensor->rank != 1 || v->n_use < 2 || v->is_input || v->is_output ||
        v->producer || !accel_dtype_is_float(v->tensor->dtype))
        return false;
    for (size_t i = 0; i < v->n_use; i++)
        if (v->use[i].node->graph != m->graph)
            return false;
    return true;
}

static const struct accel_tensor *tensor_at(const struct accel_node *n, int slot)
{
    return slot > 0 && slot < n->n_in && n->in[slot] ? n->in[slot]->tensor : NULL;
}

/* By an operator that takes integers with their scales as they are. */
static bool scaled_in_place(struct accel_scaling *out, const struct accel_use *u)
{
    struct accel_weight w[4];
    int n = u->node->op && u->node->op->weights ? u->node->op->weights(u->node, w) : 0;
    for (int i = 0; i < n; i++) {
        if (!w[i].scale_slot)
            continue;
        *out = (struct accel_scaling){NULL, NULL, -1};
        if (w[i].bias_slot == u->slot)
            return true;
        out->scale = tensor_at(u->node, w[i].scale_slot);
        out->zero = tensor_at(u->node, w[i].zero_slot);
        out->axis = out->scale && out->scale->n > 1 ? w[i].out_axis : -1;
        if (w[i].slot == u->slot && out->scale)
            return true;
    }
    return false;
}

bool accel_scaling_find(struct accel_scaling *out, const struct accel_value *v)
{
    for (size_t i = 0; v->tensor && i < v->n_use; i++) {
        const struct accel_node *n = v->use[i].node;
        const struct accel_tensor *scale = tensor_at(n, 1);
        bool carried = v->use[i].slot == 0 && n->op && n->op->carry && scale &&
                       accel_dtype_is_float(scale->dtype);
        if (carried) {
            *out = (struct accel_scaling){scale, tensor_at(n, 2),
                                          accel_scale_axis(n, scale, v->tensor->rank)};
            return true;
        }
        if (scaled_in_place(out, &v->use[i]))
            return true;
    }
    return false;
}

bool accel_groups_is_weight(const struct accel_value *v)
{
    struct accel_scaling s;
    return v->tensor && (accel_dtype_is_float(v->tensor->dtype) || accel_scaling_find(&s, v));
}

bool accel_groups_is_masked(const struct accel_value *v)
{
    if (!accel_groups_is_weight(v))
        return false;
    for (size_t i = 0; i < v->n_use; i++) {
        const struct accel_node *n = v->use[i].node;
        if (v->use[i].slot < 32 && n->op && n->op->keep >> v->use[i].slot & 1)
            return false;
    }
    return true;
}

/* ------------------------------------------------------------------ axes */

static int rank_of(const struct accel_value *v)
{
    return v->shape.rank > 0 ? v->shape.rank : 0;
}

static enum accel_err number_axes(struct accel_groups *g)
{
    const struct accel_graph *graph = g->m->graph;
    size_t n = 0, n_slot = 0;
    for (size_t i = 0; i < graph->n_value; i++) {
        const struct accel_value *v = graph->value[i];
        n += accel_groups_is_split(g->m, v) ? v->n_use : (size_t)rank_of(v);
    }
    for (size_t i = 0; i < graph->n_node; i++)
        n_slot += (size_t)graph->node[i]->n_in + (size_t)graph->node[i]->n_out;
    if (n >= UINT32_MAX)
        return accel_fail(ACCEL_ENOSUP, "the model has %zu axes", n);
    g->value_axis = accel_calloc(graph->n_value, sizeof *g->value_axis);
    g->node_slot = accel_calloc(graph->n_node + 1, sizeof *g->node_slot);
    g->operand_axis = accel_calloc(n_slot, sizeof *g->operand_axis);
    g->size = accel_calloc(n, sizeof *g->size);
    g->class_of = accel_calloc(n, sizeof *g->class_of);
    return g->value_axis && g->node_slot && g->operand_axis && g->size && g->class_of
               ? ACCEL_OK
               : accel_fail_nomem();
}

static void fill_axes(struct accel_groups *g)
{
    const struct accel_graph *graph = g->m->graph;
    for (size_t i = 0; i < graph->n_value; i++) {
        const struct accel_value *v = graph->value[i];
        bool split = accel_groups_is_split(g->m, v);
        size_t count = split ? v->n_use : (size_t)rank_of(v);
        g->value_axis[i] = (uint32_t)g->n_axis;
        for (size_t a = 0; a < count; a++)
            g->size[g->n_axis++] =
                accel_dim_probe(v->shape.dim[split ? 0 : a], &g->m->symbols, ACCEL_LINKS_PROBE);
    }
    for (size_t i = 0; i < graph->n_node; i++) {
        const struct accel_node *n = graph->node[i];
        g->node_slot[i + 1] = g->node_slot[i] + (size_t)n->n_in + (size_t)n->n_out;
        for (int s = 0; s < n->n_in + n->n_out; s++) {
            const struct accel_value *v = accel_slot_value(n, s);
            g->operand_axis[g->node_slot[i] + (size_t)s] = v ? g->value_axis[v->index] : 0;
        }
    }
    for (size_t i = 0; i < graph->n_value; i++) {
        const struct accel_value *v = graph->value[i];
        if (accel_groups_is_split(g->m, v))
            for (size_t u = 0; u < v->n_use; u++)
                g->operand_axis[g->node_slot[v->use[u].node->index] + (size_t)v->use[u].slot] =
                    g->value_axis[i] + (uint32_t)u;
    }
}

uint32_t accel_groups_operand(const struct accel_groups *g, const struct accel_node *n, int slot,
                              int axis)
{
    return g->operand_axis[g->node_slot[n->index] + (size_t)slot] + (uint32_t)axis;
}

/* ------------------------------------------------------------------ classes of axes */

/* Joins the sides of a tie that cover their axes one to one. */
static void join_axes(uint32_t *parent, const struct accel_groups *g, const struct accel_tied *t)
{
    uint32_t first = UINT32_MAX;
    for (int s = 0; s < t->n_sides; s++) {
        uint32_t axis = accel_tied_axis(g, t->node, &t->side[s]);
        if (!accel_side_is_whole(g, axis, t->n, &t->side[s]))
            continue;
        if (first != UINT32_MAX)
            accel_set_join(parent, first, axis);
        first = axis;
    }
}

/* The class says it all. */
static bool is_joined(const struct accel_groups *g, const struct accel_tied *t)
{
    for (int s = 0; s < t->n_sides; s++)
        if (!accel_side_is_whole(g, accel_tied_axis(g, t->node, &t->side[s]), t->n, &t->side[s]))
            return false;
    return true;
}

static enum accel_err wall_long(struct accel_groups *g, struct accel_axis_class *c)
{
    if (!ACCEL_GROW(g->wall, g->wall_cap, g->n_wall + 1))
        return accel_fail_nomem();
    g->wall[g->n_wall] = (struct accel_group_wall){NULL, "too many channels to tell apart"};
    c->wall = (int)g->n_wall++;
    return ACCEL_OK;
}

static enum accel_err make_classes(struct accel_groups *g, struct accel_link_run *r)
{
    uint32_t *parent = accel_calloc(g->n_axis, sizeof *parent);
    if (!parent)
        return accel_fail_nomem();
    for (uint32_t a = 0; a < g->n_axis; a++)
        parent[a] = a;
    for (size_t i = 0; i < r->n_tie; i++)
        join_axes(parent, g, &r->tie[i]);
    accel_free(g->cls);
    g->n_class = g->n_unit = 0;
    for (uint32_t a = 0; a < g->n_axis; a++) /* a parent comes first */
        g->class_of[a] =
            parent[a] == a ? (uint32_t)g->n_class++ : g->class_of[accel_set_find(parent, a)];
    accel_free(parent);
    g->cls = accel_calloc(g->n_class, sizeof *g->cls);
    if (!g->cls)
        return accel_fail_nomem();
    for (size_t i = 0; i < g->n_class; i++)
        g->cls[i].wall = -1;
    for (uint32_t a = 0; a < g->n_axis; a++) {
        struct accel_axis_class *c = &g->cls[g->class_of[a]];
        c->n = g->size[a];
        if (r->axis_wall[a] >= 0 && (c->wall < 0 || r->axis_wall[a] < c->wall))
            c->wall = r->axis_wall[a];
    }
    for (size_t i = 0; i < g->n_class; i++) {
        struct accel_axis_class *c = &g->cls[i];
        if (c->wall < 0 && (c->n > LONGEST_AXIS || g->n_unit + (size_t)c->n > MOST_UNITS))
            ACCEL_TRY(wall_long(g, c));
        c->first = g->n_unit;
        g->n_unit += c->wall < 0 ? (size_t)c->n : 1;
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ units */

static size_t unit_of(const struct accel_groups *g, uint32_t axis, int64_t i)
{
    const struct accel_axis_class *c = &g->cls[g->class_of[axis]];
    return c->first + (c->wall < 0 ? (size_t)i : 0);
}

static void join_units(uint32_t *parent, const struct accel_groups *g, const struct accel_tied *t)
{
    uint32_t anchor_axis = accel_tied_axis(g, t->node, &t->side[0]);
    for (int s = 0; s < t->n_sides; s++) {
        uint32_t axis = accel_tied_axis(g, t->node, &t->side[s]);
        int64_t width = accel_side_width(&t->side[s]);
        for (int64_t c = 0; c < t->n; c++) {
            uint32_t anchor = (uint32_t)unit_of(g, anchor_axis, accel_side_at(&t->side[0], c, 0));
            for (int64_t i = 0; i < width; i++)
                accel_set_join(parent, anchor,
                               (uint32_t)unit_of(g, axis, accel_side_at(&t->side[s], c, i)));
        }
    }
}

/* A unit's reason to stay moves to the root of its set; the first one holds. */
static void set_wall(struct accel_groups *g, uint32_t *parent, size_t unit, int wall)
{
    uint32_t root = accel_set_find(parent, (uint32_t)unit);
    if (g->unit_wall[root] < 0 || wall < g->unit_wall[root])
        g->unit_wall[root] = wall;
}

static enum accel_err make_units(struct accel_groups *g, const struct accel_link_run *r)
{
    accel_free(g->group);
    accel_free(g->unit_wall);
    g->group = accel_calloc(g->n_unit, sizeof *g->group);
    g->unit_wall = accel_calloc(g->n_unit, sizeof *g->unit_wall);
    if (!g->group || !g->unit_wall)
        return accel_fail_nomem();
    uint32_t *parent = (uint32_t *)g->group; /* becomes the groups' numbers in the end */
    for (size_t u = 0; u < g->n_unit; u++) {
        parent[u] = (uint32_t)u;
        g->unit_wall[u] = -1;
    }
    for (size_t i = 0; i < r->n_tie; i++)
        if (!is_joined(g, &r->tie[i]))
            join_units(parent, g, &r->tie[i]);
    for (size_t i = 0; i < g->n_class; i++)
        if (g->cls[i].wall >= 0)
            set_wall(g, parent, g->cls[i].first, g->cls[i].wall);
    for (size_t i = 0; i < r->n_unit_wall; i++) {
        const struct accel_unit_wall *w = &r->unit_wall[i];
        for (int64_t k = 0; k < w->n; k++)
            set_wall(g, parent, unit_of(g, w->axis, w->first + k), w->wall);
    }
    for (size_t u = 0; u < g->n_unit; u++)
        parent[u] = accel_set_find(parent, (uint32_t)u);
    for (size_t u = 0; u < g->n_unit; u++)
        g->unit_wall[u] = g->unit_wall[parent[u]];
    return ACCEL_OK;
}

static bool is_frozen(const struct accel_groups *g, uint32_t axis)
{
    const struct accel_axis_class *c = &g->cls[g->class_of[axis]];
    for (int64_t i = 0; c->wall < 0 && i < c->n; i++)
        if (g->unit_wall[c->first + (size_t)i] < 0)
            return false;
    return true;
}

/* ------------------------------------------------------------------ groups */

/* Sets that hold a constant's unit. */
static enum accel_err mark_weighted(bool *weighted, const struct accel_groups *g)
{
    const struct accel_graph *graph = g->m->graph;
    bool *done = accel_calloc(g->n_class, sizeof *done);
    if (!done)
        return accel_fail_nomem();
    for (size_t i = 0; i < graph->n_value; i++) {
        const struct accel_value *v = graph->value[i];
        if (!accel_groups_is_weight(v))
            continue;
        size_t n = accel_groups_is_split(g->m, v) ? v->n_use : (size_t)rank_of(v);
        for (size_t a = 0; a < n; a++) {
            uint32_t k = g->class_of[g->value_axis[i] + a];
            const struct accel_axis_class *c = &g->cls[k];
            for (int64_t u = 0; !done[k] && c->wall < 0 && u < c->n; u++)
                weighted[(uint32_t)g->group[c->first + (size_t)u]] = true;
            done[k] = true;
        }
    }
    accel_free(done);
    return ACCEL_OK;
}

/* Roots become numbers of groups. */
static enum accel_err number_groups(struct accel_groups *g)
{
    bool *weighted = accel_calloc(g->n_unit, sizeof *weighted);
    int32_t *number = accel_calloc(g->n_unit, sizeof *number);
    enum accel_err err = weighted && number ? mark_weighted(weighted, g) : accel_fail_nomem();
    for (size_t u = 0; !err && u < g->n_unit; u++) {
        size_t root = (size_t)g->group[u];
        if (root == u)
            number[u] = weighted[u] && g->unit_wall[u] < 0 ? g->n_group++ : -1;
    }
    for (size_t u = 0; !err && u < g->n_unit; u++)
        g->group[u] = number[g->group[u]];
    accel_free(weighted);
    accel_free(number);
    return err;
}

/* Units of each group by class. */
static enum accel_err list_parts(struct accel_groups *g)
{
    size_t *at = g->part_at = accel_calloc((size_t)g->n_group + 2, sizeof *at);
    uint32_t *last = accel_calloc((size_t)g->n_group, sizeof *last);
    enum accel_err err = at && last ? ACCEL_OK : accel_fail_nomem();
    for (int pass = 0; !err && pass < 2; pass++) {
        for (int32_t i = 0; i < g->n_group; i++)
            last[i] = UINT32_MAX;
        for (uint32_t k = 0; k < g->n_class; k++)
            for (int64_t u = 0; g->cls[k].wall < 0 && u < g->cls[k].n; u++) {
                int32_t i = g->group[g->cls[k].first + (size_t)u];
                if (i < 0)
                    continue;
                bool new = last[i] != k;
                last[i] = k;
                if (pass == 0)
                    at[i + 2] += new;
                else if (new)
                    g->part[at[i + 1]++] = (struct accel_group_part){k, 1};
                else
                    g->part[at[i + 1] - 1].count++;
            }
        if (pass == 0) {
            for (int32_t i = 0; i < g->n_group; i++)
                at[i + 2] += at[i + 1];
            g->part = accel_calloc(at[g->n_group + 1], sizeof *g->part);
            err = g->part ? ACCEL_OK : accel_fail_nomem();
        }
    }
    accel_free(last);
    return err;
}

static enum accel_err build(struct accel_groups *g, struct accel_link_run *r,
                            const struct accel_groups_options *opt)
{
    ACCEL_TRY(accel_provenance_build(&g->sizes, g->m));
    ACCEL_TRY(number_axes(g));
    fill_axes(g);
    ACCEL_TRY(accel_link_run_ask(r));
    for (int round = 0;; round++) {
        ACCEL_TRY(make_classes(g, r));
        ACCEL_TRY(make_units(g, r));
        if (round || !r->n_offer)
            break;
        ACCEL_TRY(accel_link_run_choose(r, opt && opt->dims_first, is_frozen));
        ACCEL_TRY(accel_link_run_ask(r));
    }
    ACCEL_TRY(number_groups(g));
    return list_parts(g);
}

enum accel_err accel_groups_build(struct accel_groups **out, const struct accel_model *m,
                                  const struct accel_groups_options *opt)
{
    struct accel_groups *g = accel_calloc(1, sizeof *g);
    if (!g)
        return accel_fail_nomem();
    struct accel_link_run r = {.g = g};
    g->m = m;
    g->n_value = m->graph->n_value;
    enum accel_err err = build(g, &r, opt);
    accel_link_run_clear(&r);
    if (err)
        accel_groups_free(g);
    else
        *out = g;
    return err;
}

void accel_groups_free(struct accel_groups *g)
{
    if (!g)
        return;
    accel_provenance_free(g->sizes);
    accel_free(g->value_axis);
    accel_free(g->node_slot);
    accel_free(g->operand_axis);
    accel_free(g->size);
    accel_free(g->class_of);
    accel_free(g->cls);
    accel_free(g->group);
    accel_free(g->unit_wall);
    accel_free(g->part_at);
    accel_free(g->part);
    accel_free(g->wall);
    accel_free(g);
}

int32_t accel_groups_at(const struct accel_groups *g, uint32_t axis, int64_t i,
                        const struct accel_group_wall **why)
{
    size_t u = unit_of(g, axis, i);
    if (why)
        *why = g->unit_wall[u] < 0 ? NULL : &g->wall[g->unit_wall[u]];
    return g->group[u];
}
