/* From the model to the list of constants that could be pruned.
 *
 * Each operator says which inputs it holds weights in (op->weights). From there the way goes up
 * through the operators that only pass a constant on (op->carry) to the stored tensor, and the axes
 * go with it. What was found are holdings, several for a shared tensor; select.c judges them; then
 * every stored tensor gets one row, in the model's order. */
#include "prune/target_int.h"

#include "base/alloc.h"
#include "base/str.h"
#include "graph/attr.h"

#include <stdlib.h>
#include <string.h>

#define MAX_CARRIERS 100 /* hops between a constant and its reader; longer chains are no weight */

#define PREFIX_MAX 512 /* longer outer labels are not repeated for every tensor inside */

struct place {
    const struct accel_tensor *tensor;
    size_t index;
    const struct accel_value *value; /* that holds it, NULL when nothing reads it */
    const char *name, *module;       /* made when first asked for */
};

struct builder {
    struct accel_model *m;
    struct accel_targets *t;
    struct accel_holdings h;
    struct place *place; /* [n_tensor] sorted by address */
    struct accel_verdict *verdict;
    size_t *order; /* [h.n] holdings by tensor, then as found */
};

/* -------------------------------------------------------------------------------------- holdings
 */

static int by_address(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

static struct place *place_of(const struct builder *b, const struct accel_tensor *t)
{
    struct place key = {.tensor = t};
    return t ? bsearch(&key, b->place, b->m->n_tensor, sizeof key, by_address) : NULL;
}

int accel_scale_axis(const struct accel_node *n, const struct accel_tensor *scale, int rank)
{
    const struct accel_attr *a = accel_attr_find(n, "axis");
    int64_t axis = a && a->kind == ACCEL_ATTR_INT ? a->i : 1;
    axis += axis < 0 ? rank : 0;
    return scale->n > 1 && scale->rank == 1 && axis >= 0 && axis < rank ? (int)axis : -1;
}

static enum accel_err note_axis(struct builder *b, struct accel_holding *h,
                                const struct accel_node *carrier)
{
    struct accel_str s = {0};
    if (h->axis_note)
        return ACCEL_OK;
    accel_str_addf(&s, "%s '%.200s'", carrier->op_type, carrier->label);
    if (!s.failed)
        h->axis_note = accel_arena_strndup(&b->t->arena, accel_str_get(&s), s.len);
    accel_str_clear(&s);
    return h->axis_note ? ACCEL_OK : accel_fail_nomem();
}

/* Takes an axis of the carrier's output to its input. */
static enum accel_err carry_axis(struct builder *b, struct accel_holding *h,
                                 const struct accel_node *carrier, int *axis)
{
    if (*axis < 0)
        return ACCEL_OK;
    *axis = carrier->op->carry(carrier, *axis);
    return *axis < 0 ? note_axis(b, h, carrier) : ACCEL_OK;
}

/* One hop up. A carrier whose second input is a floating-point constant scales stored integers. */
static enum accel_err hop(struct builder *b, struct accel_holding *h, const struct accel_node *c)
{
    ACCEL_TRY(carry_axis(b, h, c, &h->weight.out_axis));
    ACCEL_TRY(carry_axis(b, h, c, &h->weight.in_axis));
    ACCEL_TRY(carry_axis(b, h, c, &h->weight.in_axis2));
    if (h->scale && h->scale_axis >= 0)
        h->scale_axis = c->op->carry(c, h->scale_axis);
    struct accel_tensor *scale = c->n_in > 1 && c->in[1] ? c->in[1]->tensor : NULL;
    if (!scale || !accel_dtype_is_float(scale->dtype))
        return ACCEL_OK;
    h->scale = scale;
    h->zero_point = c->n_in > 2 && c->in[2] ? c->in[2]->tensor : NULL;
    int rank = c->in[0] ? (c->in[0]->tensor ? c->in[0]->tensor->rank : c->in[0]->shape.rank) : -1;
    h->scale_axis = accel_scale_axis(c, scale, rank);
    h->block_scales = scale->n > 1 && h->scale_axis < 0;
    return ACCEL_OK;
}

/* The operator takes integers with their scales as they are. */
static void take_scale(struct accel_holding *h)
{
    const struct accel_node *n = h->node;
    int scale = h->weight.scale_slot, zero = h->weight.zero_slot;
    h->scale = scale < n->n_in && n->in[scale] ? n->in[scale]->tensor : NULL;
    h->zero_point = zero < n->n_in && n->in[zero] ? n->in[zero]->tensor : NULL;
    h->scale_axis = h->scale && h->scale->n > 1 ? h->weight.out_axis : -1;
}

/* Finds the stored constant behind input `slot` of h->node; *out NULL when there is none that could
 * be pruned. */
static enum accel_err trace(struct place **out, struct builder *b, struct accel_holding *h,
                            int slot)
{
    const struct accel_value *v = slot >= 0 && slot < h->node->n_in ? h->node->in[slot] : NULL;
    *out = NULL;
    h->scale_axis = -1;
    for (int hops = 0; v && !v->tensor; hops++) {
        const struct accel_node *c = v->producer;
        if (!c || !c->op || !c->op->carry || c->n_in < 1 || v->producer_slot != 0 ||
            hops == MAX_CARRIERS)
            return ACCEL_OK;
        ACCEL_TRY(hop(b, h, c));
        v = c->in[0];
    }
    struct place *p = v ? place_of(b, v->tensor) : NULL;
    if (!p)
        return ACCEL_OK;
    bool is_float = accel_dtype_is_float(v->tensor->dtype);
    if (is_float)
        h->scale = h->zero_point = NULL;
    else if (!h->scale && h->weight.scale_slot)
        take_scale(h);
    if (is_float || h->scale)
        *out = p;
    return ACCEL_OK;
}

/* The tensor as reported, as nodes are called in the same place, and "layer4" of "layer4.weight".
 */
static enum accel_err name_place(struct builder *b, struct place *p)
{
    const struct accel_graph *g = p->value->graph;
    const struct accel_node *outer = g ? g->parent_node : NULL;
    const char *name = p->tensor->name, *dot = strrchr(name, '.');
    struct accel_str s = {0};
    if (p->name)
        return ACCEL_OK;
    if (g && g->function)
        accel_str_addf(&s, "%.*s/", PREFIX_MAX, g->function->name);
    else if (outer && strlen(outer->label) <= PREFIX_MAX)
        accel_str_addf(&s, "%s/%.64s/", outer->label, g->parent_attr);
    else if (outer)
        accel_str_addf(&s, "%.64s@%d/%.64s/", outer->op_type, outer->index, g->parent_attr);
    if (s.len)
        accel_str_add(&s, name);
    p->module = accel_arena_strndup(&b->t->arena, name, dot ? (size_t)(dot - name) : 0);
    if (p->module && !s.failed)
        p->name = s.len ? accel_arena_strndup(&b->t->arena, s.at, s.len) : name;
    accel_str_clear(&s);
    return p->name ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err add(struct builder *b, struct accel_holding *h, struct place *p)
{
    h->tensor = p->index;
    ACCEL_TRY(name_place(b, p));
    h->name = p->name;
    h->module = p->module;
    if (!ACCEL_GROW(b->h.at, b->h.cap, b->h.n + 1))
        return accel_fail_nomem();
    b->h.at[b->h.n++] = *h;
    return ACCEL_OK;
}

/* Bias axes: it has one, that of the output channels. */
static enum accel_err hold_bias(struct builder *b, const struct accel_holding *weight)
{
    struct accel_holding h = {.node = weight->node, .kind = ACCEL_TARGET_BIAS};
    struct place *p;
    h.owner = weight->tensor;
    h.weight = (struct accel_weight){.slot = weight->weight.bias_slot,
                                     .rank = 1,
                                     .in_axis = -1,
                                     .in_axis2 = -1,
                                     .type = weight->weight.type,
                                     .bias_slot = -1};
    ACCEL_TRY(trace(&p, b, &h, h.weight.slot));
    return p ? add(b, &h, p) : ACCEL_OK;
}

static enum accel_err hold(struct builder *b, const struct accel_node *n)
{
    struct accel_weight w[4];
    int count = n->op && n->op->weights ? n->op->weights(n, w) : 0;
    for (int i = 0; i < count; i++) {
        struct accel_holding h = {.node = n, .weight = w[i], .owner = SIZE_MAX};
        struct place *p;
        h.kind = w[i].norm ? ACCEL_TARGET_NORM : ACCEL_TARGET_WEIGHT;
        ACCEL_TRY(trace(&p, b, &h, w[i].slot));
        if (!p)
            continue;
        h.weight.rank = p->tensor->rank;
        ACCEL_TRY(add(b, &h, p));
        if (w[i].bias_slot >= 0)
            ACCEL_TRY(hold_bias(b, &b->h.at[b->h.n - 1]));
    }
    return ACCEL_OK;
}

/* Which value holds each tensor, for those that no operator holds as a weight. */
static void find_values(struct builder *b, const struct accel_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        struct place *p = n->in[i] ? place_of(b, n->in[i]->tensor) : NULL;
        if (p && !p->value)
            p->value = n->in[i];
    }
}

static enum accel_err collect(struct builder *b)
{
    size_t n = b->m->n_tensor;
    b->place = accel_calloc(n, sizeof *b->place);
    b->verdict = accel_calloc(n, sizeof *b->verdict);
    if (!b->place || !b->verdict)
        return accel_fail_nomem();
    for (size_t i = 0; i < n; i++)
        b->place[i] = (struct place){.tensor = b->m->tensor[i], .index = i};
    qsort(b->place, n, sizeof *b->place, by_address);
    for (size_t g = 0; g < b->m->n_all_graph; g++)
        for (size_t i = 0; i < b->m->all_graph[g]->n_node; i++)
            find_values(b, b->m->all_graph[g]->node[i]);
    for (size_t g = 0; g < b->m->n_all_graph; g++)
        for (size_t i = 0; i < b->m->all_graph[g]->n_node; i++)
            ACCEL_TRY(hold(b, b->m->all_graph[g]->node[i]));
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------------------ rows
 */

static int by_tensor(const void *a, const void *b, void *ctx)
{
    const struct accel_holding *h = ctx;
    size_t x = *(const size_t *)a, y = *(const size_t *)b;
    if (h[x].tensor != h[y].tensor)
        return h[x].tensor < h[y].tensor ? -1 : 1;
    bool bx = h[x].kind == ACCEL_TARGET_BIAS, by = h[y].kind == ACCEL_TARGET_BIAS;
    return bx != by ? bx - by : (x > y) - (x < y);
}

/* Readers that see other axes than the first make an axis untraceable. */
static void merge_axis(struct accel_target *r, int *axis, int other)
{
    if (*axis == other)
        return;
    *axis = -1;
    r->axis_note = r->axis_note ? r->axis_note : "its readers see different axes";
}

/* A row from all holdings of one tensor: weights come before biases. */
static enum accel_err fill_row(struct builder *b, struct accel_target *r, const size_t *list,
                               size_t n)
{
    const struct accel_holding *h = &b->h.at[list[0]];
    r->name = h->name;
    r->node = h->node;
    r->kind = h->kind;
    r->weight = h->weight;
    r->axis_note = h->axis_note;
    r->scale = h->scale;
    r->zero_point = h->zero_point;
    r->scale_axis = h->scale_axis;
    r->block_scales = h->scale && h->block_scales;
    r->reader = ACCEL_NEW(&b->t->arena, const struct accel_node *, n);
    if (!r->reader)
        return accel_fail_nomem();
    for (size_t i = 0; i < n; i++) {
        const struct accel_holding *o = &b->h.at[list[i]];
        if (!r->n_reader || r->reader[r->n_reader - 1] != o->node)
            r->reader[r->n_reader++] = o->node;
        if (o->kind != h->kind)
            continue;
        merge_axis(r, &r->weight.out_axis, o->weight.out_axis);
        merge_axis(r, &r->weight.in_axis, o->weight.in_axis);
        merge_axis(r, &r->weight.in_axis2, o->weight.in_axis2);
    }
    return ACCEL_OK;
}

/* A bias goes with its weights: all of them must be selected, by entries that name "bias". */
static const struct accel_sub_config *sub_of_bias(const struct builder *b, const size_t *list,
                                                  size_t n, bool *excluded)
{
    const struct accel_sub_config *sub = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct accel_holding *h = &b->h.at[list[i]];
        const struct accel_verdict *owner = &b->verdict[h->owner];
        *excluded = *excluded || b->verdict[h->tensor].excluded || (owner->excluded && !owner->sub);
        if (!owner->sub || !owner->sub->bias.on)
            return NULL;
        sub = sub ? sub : owner->sub;
    }
    return *excluded ? NULL : sub;
}

static void decide(struct builder *b, struct accel_target *r, const size_t *list, size_t n)
{
    const struct accel_holding *h = &b->h.at[list[0]];
    const struct accel_verdict *v = &b->verdict[h->tensor];
    bool excluded = v->excluded && !v->sub;
    const struct accel_sub_config *sub = v->sub;
    if (r->kind == ACCEL_TARGET_BIAS)
        sub = sub_of_bias(b, list, n, &excluded);
    else if (sub && !sub->weight.on)
        sub = NULL;
    r->sub = sub;
    r->setting = !sub ? NULL : r->kind == ACCEL_TARGET_BIAS ? &sub->bias : &sub->weight;
    r->excluded = !sub && excluded;
    r->reason = sub ? "selected" : excluded ? "excluded" : "not selected";
}

/* A constant that is no weight: it has a row when it is a floating-point matrix that is read. */
static bool is_other_row(const struct place *p)
{
    return p->value && p->value->n_use && p->tensor->rank >= 2 &&
           accel_dtype_is_float(p->tensor->dtype);
}

static enum accel_err other_row(struct builder *b, struct accel_target *r, struct place *p)
{
    ACCEL_TRY(name_place(b, p));
    r->name = p->name;
    r->node = p->value->use[0].node;
    r->kind = ACCEL_TARGET_OTHER;
    r->weight = (struct accel_weight){.slot = p->value->use[0].slot,
                                      .rank = p->tensor->rank,
                                      .out_axis = -1,
                                      .in_axis = -1,
                                      .in_axis2 = -1,
                                      .type = "",
                                      .bias_slot = -1};
    r->scale_axis = -1;
    r->reason = "not selected";
    r->reader = ACCEL_NEW(&b->t->arena, const struct accel_node *, 1);
    if (!r->reader)
        return accel_fail_nomem();
    r->reader[r->n_reader++] = r->node;
    return ACCEL_OK;
}

/* The row of tensor i from its holdings list[n]; not kept when nobody asked for a small one. */
static enum accel_err add_row(struct builder *b, const size_t *list, size_t n, struct place *p)
{
    struct accel_target *r = &b->t->at[b->t->n];
    *r = (struct accel_target){.tensor = b->m->tensor[p->index]};
    if (n) {
        ACCEL_TRY(fill_row(b, r, list, n));
        decide(b, r, list, n);
        b->t->n += r->sub || is_other_row(p) || (r->scale && p->tensor->rank >= 2);
    } else if (is_other_row(p)) {
        ACCEL_TRY(other_row(b, r, p));
        b->t->n++;
    }
    return ACCEL_OK;
}

/* The row of the weight of each bias, through an index from tensors to rows. */
static enum accel_err link_biases(struct builder *b, const size_t *first)
{
    struct accel_target **row = accel_calloc(b->m->n_tensor, sizeof *row);
    if (!row)
        return accel_fail_nomem();
    for (int i = 0; i < b->t->n; i++)
        row[place_of(b, b->t->at[i].tensor)->index] = &b->t->at[i];
    for (int i = 0; i < b->t->n; i++) {
        struct accel_target *r = &b->t->at[i];
        if (r->kind != ACCEL_TARGET_BIAS)
            continue;
        size_t t = place_of(b, r->tensor)->index;
        r->weight_of_bias = row[b->h.at[b->order[first[t]]].owner];
    }
    accel_free(row);
    return ACCEL_OK;
}

static enum accel_err build_rows(struct builder *b)
{
    size_t n_tensor = b->m->n_tensor, *first = accel_calloc(n_tensor + 1, sizeof *first);
    struct place **at = accel_calloc(n_tensor, sizeof *at);
    enum accel_err err = ACCEL_OK;
    b->order = accel_calloc(b->h.n, sizeof *b->order);
    b->t->at = ACCEL_NEW(&b->t->arena, struct accel_target, n_tensor);
    if (!first || !at || !b->order || !b->t->at) {
        err = accel_fail_nomem();
        goto done;
    }
    for (size_t i = 0; i < b->h.n; i++)
        b->order[i] = i;
    qsort_r(b->order, b->h.n, sizeof *b->order, by_tensor, b->h.at);
    for (size_t i = 0; i < b->h.n; i++)
        first[b->h.at[b->order[i]].tensor + 1] = i + 1;
    for (size_t i = 0; i < n_tensor; i++) {
        first[i + 1] = first[i + 1] ? first[i + 1] : first[i];
        at[b->place[i].index] = &b->place[i];
    }
    for (size_t i = 0; i < n_tensor && !err; i++)
        err = add_row(b, b->order + first[i], first[i + 1] - first[i], at[i]);
    if (!err)
        err = link_biases(b, first);
done:
    accel_free(first);
    accel_free(at);
    return err;
}

enum accel_err accel_targets_build(struct accel_targets **out, struct accel_model *m,
                                   const struct accel_prune_config *c, struct accel_log *log)
{
    struct builder b = {.m = m};
    enum accel_err err;
    b.t = accel_calloc(1, sizeof *b.t);
    if (!b.t)
        return accel_fail_nomem();
    ACCEL_GOTO(err, collect(&b));
    ACCEL_GOTO(err, accel_targets_select(b.verdict, &b.h, m, c, log));
    ACCEL_GOTO(err, build_rows(&b));
done:
    accel_free(b.h.at);
    accel_free(b.place);
    accel_free(b.verdict);
    accel_free(b.order);
    if (err)
        accel_targets_free(b.t);
    else
        *out = b.t;
    return err;
}

void accel_targets_free(struct accel_targets *t)
{
    if (!t)
        return;
    accel_arena_clear(&t->arena);
    accel_free(t);
}
