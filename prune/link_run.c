/* One pass over the nodes in their order, which carries K (graph/links.h) along. What a node says
 * about slots becomes ties and walls over axes. Silence is a wall. */
#include "prune/link_run.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

uint32_t accel_set_find(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

void accel_set_join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = accel_set_find(parent, a);
    b = accel_set_find(parent, b);
    parent[a < b ? b : a] = a < b ? a : b;
}

uint32_t accel_tied_axis(const struct accel_groups *g, uint32_t node, const struct accel_side *s)
{
    return g->operand_axis[g->node_slot[node] + (size_t)s->slot] + (uint32_t)s->axis;
}

bool accel_side_is_whole(const struct accel_groups *g, uint32_t axis, int64_t n,
                         const struct accel_side *s)
{
    return !s->list && s->off == 0 && s->outer == 1 && s->rep == 1 && n == g->size[axis];
}

/* ------------------------------------------------------------------ walls */

static enum accel_err wall_new(int *out, struct accel_groups *g, const struct accel_node *node,
                               const char *why)
{
    if (!ACCEL_GROW(g->wall, g->wall_cap, g->n_wall + 1))
        return accel_fail_nomem();
    *out = (int)g->n_wall;
    g->wall[g->n_wall++] = (struct accel_group_wall){node, why};
    return ACCEL_OK;
}

static enum accel_err wall_axis(struct accel_link_run *r, uint32_t axis,
                                const struct accel_node *node, const char *why)
{
    return r->axis_wall[axis] >= 0 ? ACCEL_OK : wall_new(&r->axis_wall[axis], r->g, node, why);
}

/* All axes of a value, whatever its uses. */
static enum accel_err wall_value(struct accel_link_run *r, const struct accel_value *v,
                                 const struct accel_node *node, const char *why)
{
    for (int axis = 0; axis < v->shape.rank; axis++)
        ACCEL_TRY(wall_axis(r, accel_groups_value(r->g, v, axis), node, why));
    return ACCEL_OK;
}

static const struct accel_node *outside_reader(const struct accel_value *v)
{
    for (size_t i = 0; i < v->n_use; i++)
        if (v->use[i].node->graph != v->graph)
            return v->use[i].node;
    return NULL;
}

/* What the graph itself keeps: its borders, what bodies read, sizes that are data. */
static enum accel_err wall_borders(struct accel_link_run *r)
{
    const struct accel_graph *graph = r->g->m->graph;
    for (size_t i = 0; i < graph->n_output; i++)
        ACCEL_TRY(wall_value(r, graph->output[i], NULL, "feeds a graph output"));
    for (size_t i = 0; i < graph->n_input; i++)
        if (!graph->input[i]->tensor)
            ACCEL_TRY(wall_value(r, graph->input[i], NULL, "is tied to a graph input"));
    for (size_t i = 0; i < graph->n_value; i++) {
        const struct accel_node *reader = outside_reader(graph->value[i]);
        const struct accel_node *outer = reader ? reader->graph->parent_node : NULL;
        if (reader)
            ACCEL_TRY(wall_value(r, graph->value[i], outer ? outer : reader, "a body reads it"));
    }
    for (size_t i = 0; i < r->g->sizes->n_pin; i++) {
        const struct accel_pin *p = &r->g->sizes->pin[i];
        if (p->axis.value->graph == graph)
            ACCEL_TRY(wall_axis(r, accel_groups_value(r->g, p->axis.value, p->axis.axis), p->node,
                                "its size is computed with"));
    }
    return ACCEL_OK;
}

/* An axis keeps one index: those of one have nothing to give. Nor have those of unknown size. */
static enum accel_err wall_short(struct accel_link_run *r)
{
    for (uint32_t a = 0; a < r->g->n_axis; a++)
        if (r->g->size[a] < 2)
            ACCEL_TRY(wall_axis(r, a, NULL, "too few channels"));
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ one node */

static enum accel_err add_ties(struct accel_link_run *r, uint32_t node)
{
    const struct accel_links *l = &r->l;
    if (!ACCEL_GROW(r->tie, r->tie_cap, r->n_tie + l->n_tie))
        return accel_fail_nomem();
    for (size_t i = 0; i < l->n_tie; i++)
        r->tie[r->n_tie++] =
            (struct accel_tied){node, l->tie[i].n, l->tie[i].n_sides, l->tie[i].side};
    return ACCEL_OK;
}

static enum accel_err add_walls(struct accel_link_run *r, const struct accel_node *n)
{
    const struct accel_links *l = &r->l;
    for (size_t i = 0; i < l->n_wall; i++) {
        const struct accel_wall *w = &l->wall[i];
        uint32_t axis = accel_groups_operand(r->g, n, w->slot, w->axis);
        if (w->first == 0 && w->n >= r->g->size[axis]) {
            ACCEL_TRY(wall_axis(r, axis, n, w->why));
            continue;
        }
        if (!ACCEL_GROW(r->unit_wall, r->unit_wall_cap, r->n_unit_wall + 1))
            return accel_fail_nomem();
        struct accel_unit_wall *u = &r->unit_wall[r->n_unit_wall++];
        *u = (struct accel_unit_wall){axis, w->first, w->n, -1};
        ACCEL_TRY(wall_new(&u->wall, r->g, n, w->why));
    }
    for (int s = 0; s < n->n_in + n->n_out; s++)
        for (int axis = 0; axis < accel_slot_rank(n, s); axis++)
            if (!accel_links_mentions(l, s, axis))
                ACCEL_TRY(wall_axis(r, accel_groups_operand(r->g, n, s, axis), n,
                                    n->op && n->op->links ? "" : "no rule for it"));
    return ACCEL_OK;
}

/* Sums over an axis hold only if one factor is 0 where the others are anything. */
static void check_needs(struct accel_link_run *r, const struct accel_node *n)
{
    for (size_t i = 0; i < r->l.n_need; i++) {
        const struct accel_need *d = &r->l.need[i];
        bool zero = false, constant = false;
        for (int k = 0; k < d->n; k++) {
            uint32_t axis = accel_groups_operand(r->g, n, d->at[k].slot, d->at[k].axis);
            const struct accel_value *v = accel_slot_value(n, d->at[k].slot);
            zero = zero || r->k[axis] == 0;
            constant = constant || v->tensor ||
                       (v->producer && v->producer->op && v->producer->op->carry &&
                        v->producer->in[0] && v->producer->in[0]->tensor);
        }
        for (int k = 0; k < d->n && d->n > 1 && !constant; k++)
            r->product[accel_groups_operand(r->g, n, d->at[k].slot, d->at[k].axis)] = true;
        if (!zero)
            accel_links_wall(&r->l, d->at[0].slot, d->at[0].axis, "it sums what is not zero");
    }
}

static enum accel_err spread_zero(struct accel_link_run *r, const struct accel_node *n)
{
    int slots = n->n_in + n->n_out;
    float **k = ACCEL_NEW(&r->l.arena, float *, slots + 1);
    if (!k)
        return accel_fail_nomem();
    for (int s = 0; s < slots; s++)
        if (accel_slot_rank(n, s) >= 0)
            k[s] = r->k + accel_groups_operand(r->g, n, s, 0);
    struct accel_zero z = {&r->l, k};
    if (n->op->zero)
        n->op->zero(n, &z);
    return r->l.err;
}

static enum accel_err add_offers(struct accel_link_run *r, uint32_t node)
{
    if (!ACCEL_GROW(r->offer, r->offer_cap, r->n_offer + r->l.n_candidate))
        return accel_fail_nomem();
    for (size_t i = 0; i < r->l.n_candidate; i++)
        r->offer[r->n_offer++] = (struct accel_offer){node, (int)i, r->l.candidate[i]};
    return ACCEL_OK;
}

static enum accel_err ask_node(struct accel_link_run *r, uint32_t i)
{
    const struct accel_node *n = r->g->m->graph->node[i];
    const bool *taken = r->taken ? r->taken + r->offer_at[i] : NULL;
    ACCEL_TRY(accel_links_ask(&r->l, n, taken));
    if (!r->taken)
        ACCEL_TRY(add_offers(r, i));
    check_needs(r, n);
    if (r->l.spoke)
        ACCEL_TRY(spread_zero(r, n));
    ACCEL_TRY(r->l.err);
    ACCEL_TRY(add_ties(r, i));
    return add_walls(r, n);
}

/* Integers behind a scale: what scales them says what they are when masked. */
static bool is_carried(const struct accel_value *v)
{
    for (size_t i = 0; i < v->n_use; i++)
        if (v->use[i].slot == 0 && v->use[i].node->op && v->use[i].node->op->carry &&
            !accel_dtype_is_float(v->tensor->dtype))
            return true;
    return false;
}

/* K of constants: 0 where the masker writes zeros. */
static void start_zero(struct accel_link_run *r)
{
    const struct accel_graph *graph = r->g->m->graph;
    for (uint32_t a = 0; a < r->g->n_axis; a++)
        r->k[a] = NAN;
    for (size_t i = 0; i < graph->n_value; i++) {
        const struct accel_value *v = graph->value[i];
        bool split = accel_groups_is_split(r->g->m, v);
        if (split)
            for (size_t u = 0; u < v->n_use; u++) {
                const struct accel_node *n = v->use[u].node;
                if (!(v->use[u].slot < 32 && n->op && n->op->keep >> v->use[u].slot & 1))
                    r->k[accel_groups_operand(r->g, n, v->use[u].slot, 0)] = 0;
            }
        else if (accel_groups_is_masked(v) && !is_carried(v))
            for (int axis = 0; axis < v->tensor->rank; axis++)
                r->k[accel_groups_value(r->g, v, axis)] = 0;
    }
}

enum accel_err accel_link_run_ask(struct accel_link_run *r)
{
    size_t n_node = r->g->m->graph->n_node;
    r->n_tie = r->n_unit_wall = 0;
    r->g->n_wall = 0;
    if (!r->axis_wall) {
        r->axis_wall = accel_calloc(r->g->n_axis, sizeof *r->axis_wall);
        r->k = accel_calloc(r->g->n_axis, sizeof *r->k);
        r->product = accel_calloc(r->g->n_axis, sizeof *r->product);
        r->offer_at = accel_calloc(n_node + 1, sizeof *r->offer_at);
    }
    if (!r->axis_wall || !r->k || !r->product || !r->offer_at)
        return accel_fail_nomem();
    for (uint32_t a = 0; a < r->g->n_axis; a++)
        r->axis_wall[a] = -1;
    start_zero(r);
    ACCEL_TRY(wall_borders(r));
    ACCEL_TRY(wall_short(r));
    for (uint32_t i = 0; i < n_node; i++) {
        if (!r->taken)
            r->offer_at[i] = r->n_offer;
        ACCEL_TRY(ask_node(r, i));
    }
    if (!r->taken)
        r->offer_at[n_node] = r->n_offer;
    return ACCEL_OK;
}

void accel_link_run_clear(struct accel_link_run *r)
{
    accel_links_clear(&r->l);
    accel_free(r->tie);
    accel_free(r->axis_wall);
    accel_free(r->unit_wall);
    accel_free(r->k);
    accel_free(r->offer);
    accel_free(r->offer_at);
    accel_free(r->taken);
    accel_free(r->product);
}
