/* One walk over the units of all constants. */
#include "prune/coupled.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct walk {
    struct accel_coupled *c;
    const struct accel_prune_plan *p;
    const struct accel_value *value;
    uint32_t first; /* id of its axis 0 */
};

static enum accel_err add_unit(struct accel_coupled_set *s, const char *name, int axis, bool gone)
{
    struct accel_coupled_axis *last = s->n_axis ? &s->axis[s->n_axis - 1] : NULL;
    if (!last || last->name != name || last->axis != axis) {
        if (!ACCEL_GROW(s->axis, s->axis_cap, s->n_axis + 1))
            return accel_fail_nomem();
        last = &s->axis[s->n_axis++];
        *last = (struct accel_coupled_axis){name, axis, 0, 0};
    }
    last->n++;
    last->cut += gone;
    return ACCEL_OK;
}

static enum accel_err add_wall(struct accel_coupled *c, const struct accel_group_wall *w, double n)
{
    struct accel_coupled_wall *last = c->n_wall ? &c->wall[c->n_wall - 1] : NULL;
    if (last && last->node == w->node && last->why == w->why) {
        last->elements += n;
        return ACCEL_OK;
    }
    if (!ACCEL_GROW(c->wall, c->wall_cap, c->n_wall + 1))
        return accel_fail_nomem();
    c->wall[c->n_wall++] = (struct accel_coupled_wall){w->node, w->why, n};
    return ACCEL_OK;
}

/* The operator whose own weight this is keeps its kernel axes: that is no wall to tell of. */
static bool is_reader(const struct walk *w, const struct accel_node *n)
{
    for (size_t i = 0; i < w->value->n_use; i++)
        if (w->value->use[i].node == n)
            return true;
    return false;
}

/* The axes of a constant as they were before the cut: `elements` of them all. */
static enum accel_err walk_axis(struct walk *w, int axis, double elements)
{
    const struct accel_groups *g = w->p->groups;
    const struct accel_channels *ch = w->p->channels;
    uint32_t id = w->first + (uint32_t)axis;
    for (int64_t u = 0; u < g->size[id]; u++) {
        const struct accel_group_wall *why;
        int32_t group = accel_groups_at(g, id, u, &why);
        int32_t set = group < 0 ? -1 : ch->set_of[group];
        if (set >= 0)
            ACCEL_TRY(add_unit(&w->c->set[set], w->value->name, axis, ch->gone[group]));
        else if (group < 0 && why && g->size[id] > 1 && !(!*why->why && is_reader(w, why->node)))
            ACCEL_TRY(add_wall(w->c, why, elements / (double)g->size[id]));
    }
    return ACCEL_OK;
}

static double elements_before(const struct accel_groups *g, uint32_t first, int rank)
{
    double n = 1;
    for (int a = 0; a < rank; a++)
        n *= (double)g->size[first + (uint32_t)a];
    return n;
}

static enum accel_err walk_values(struct accel_coupled *c, const struct accel_prune_plan *p)
{
    const struct accel_graph *graph = p->groups->m->graph;
    for (size_t i = 0; i < p->groups->n_value; i++) {
        const struct accel_value *v = graph->value[i];
        if (!accel_groups_is_weight(v))
            continue;
        struct walk w = {c, p, v, p->groups->value_axis[i]};
        double elements = elements_before(p->groups, w.first, v->tensor->rank);
        for (int a = 0; a < v->tensor->rank; a++)
            ACCEL_TRY(walk_axis(&w, a, elements));
    }
    return ACCEL_OK;
}

static int by_node(const void *x, const void *y)
{
    const struct accel_coupled_wall *a = x, *b = y;
    if (a->node != b->node)
        return (uintptr_t)a->node < (uintptr_t)b->node ? -1 : 1;
    return strcmp(a->why, b->why);
}

static int by_elements(const void *x, const void *y)
{
    const struct accel_coupled_wall *a = x, *b = y;
    if (a->elements < b->elements || a->elements > b->elements)
        return a->elements > b->elements ? -1 : 1;
    int i = a->node ? a->node->index : -1, k = b->node ? b->node->index : -1;
    return i != k ? (i > k) - (i < k) : strcmp(a->why, b->why);
}

/* Walls of one node and reason become one. */
static void join_walls(struct accel_coupled *c)
{
    size_t n = 0;
    if (c->n_wall)
        qsort(c->wall, c->n_wall, sizeof *c->wall, by_node);
    for (size_t i = 0; i < c->n_wall; i++) {
        if (n && !by_node(&c->wall[n - 1], &c->wall[i]))
            c->wall[n - 1].elements += c->wall[i].elements;
        else
            c->wall[n++] = c->wall[i];
    }
    c->n_wall = n;
    if (n)
        qsort(c->wall, n, sizeof *c->wall, by_elements);
}

enum accel_err accel_coupled_build(struct accel_coupled **out, const struct accel_prune_plan *p)
{
    const struct accel_channels *ch = p->channels;
    struct accel_coupled *c = accel_calloc(1, sizeof *c);
    enum accel_err err = ACCEL_OK;
    if (!c)
        return accel_fail_nomem();
    c->n_group = p->groups->n_group;
    c->set = accel_calloc((size_t)ch->n_set, sizeof *c->set);
    c->n_set = c->set ? ch->n_set : 0;
    if (!c->set)
        err = accel_fail_nomem();
    for (int i = 0; i < c->n_set; i++) {
        const struct accel_channel_set *s = &ch->set[i];
        c->set[i].n = s->n;
        c->set[i].cut = s->cut;
        c->set[i].requested = s->ratio;
        c->set[i].kept_for = s->kept_for < 0 ? NULL : ch->member[s->kept_for].target->name;
    }
    if (!err)
        err = walk_values(c, p);
    join_walls(c);
    if (err)
        accel_coupled_free(c);
    else
        *out = c;
    return err;
}

void accel_coupled_free(struct accel_coupled *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n_set; i++)
        accel_free(c->set[i].axis);
    accel_free(c->set);
    accel_free(c->wall);
    accel_free(c);
}
