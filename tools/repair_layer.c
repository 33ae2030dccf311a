/* repair_layer.c - a walk through the nodes in order. Each node knows whether what it reads changed
 * and how many repaired layers lie before it; layers of one depth do not wait for each other and
 * are fitted in one pass over the data. */
#include "tools/repair_layer.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "graph/tensor_values.h"

struct walk {
    struct accel_repair_layers *l;
    struct accel_repair *r;
    struct accel_model *m;
    const struct accel_model *was;
    const struct accel_cut_plan *cut;
    bool *changed; /* [n_node] what it makes is not what it was */
    int *depth;    /* [n_node] */
    int most;
};

enum accel_err accel_repair_row_add(size_t *index, struct accel_repair *r,
                                    const struct accel_node *n, const char *weight,
                                    const char *reason)
{
    if (!ACCEL_GROW(r->row, r->row_cap, r->n_row + 1))
        return accel_fail_nomem();
    *index = r->n_row;
    r->row[r->n_row++] = (struct accel_repair_row){.node = n->label,
                                                   .op_type = n->op_type,
                                                   .weight = weight,
                                                   .reason = reason,
                                                   .before = NAN,
                                                   .after = NAN,
                                                   .lambda = NAN};
    return ACCEL_OK;
}

void accel_repair_layers_clear(struct accel_repair_layers *l)
{
    for (size_t i = 0; i < l->n; i++)
        accel_gram_clear(&l->at[i].gram);
    accel_free(l->at);
    *l = (struct accel_repair_layers){0};
}

static bool is_op(const struct accel_node *n, const char *name)
{
    return n->op && !*n->op->domain && !strcmp(n->op->name, name);
}

static bool constant_changed(const struct accel_value *v)
{
    return v->tensor && (v->tensor->edit || v->tensor->changed || v->tensor->selection);
}

static bool is_changed(const bool *changed, const struct accel_value *v)
{
    return v && ((v->producer && changed[v->producer->index]) || constant_changed(v));
}

static bool value_changed(const struct walk *w, const struct accel_value *v)
{
    return is_changed(w->changed, v);
}

static bool has_body(const struct accel_node *n)
{
    bool any = n->function != NULL;
    for (size_t i = 0; i < n->n_attr; i++)
        any = any || n->attr[i].graphs;
    return any;
}

/* A body may read anything that was made before. */
enum accel_err accel_repair_changes(bool **out, const struct accel_graph *g)
{
    bool *changed = *out = accel_calloc(g->n_node, sizeof *changed), any = false;
    if (!changed)
        return accel_fail_nomem();
    for (size_t i = 0; i < g->n_node; i++) {
        const struct accel_node *n = g->node[i];
        changed[i] = any && has_body(n);
        for (int k = 0; k < n->n_in; k++)
            changed[i] = changed[i] || is_changed(changed, n->in[k]);
        any = any || changed[i];
    }
    return ACCEL_OK;
}

static int value_depth(const struct walk *w, const struct accel_value *v)
{
    return v && v->producer ? w->depth[v->producer->index] : 0;
}

/* The one node that reads v; NULL: none, several, or it is a result of the model. */
static struct accel_node *only_reader(const struct accel_value *v)
{
    return v->n_use == 1 && !v->is_output && v->use[0].node->graph == v->graph ? v->use[0].node
                                                                               : NULL;
}

static bool has_floats(const struct accel_value *v, int64_t n)
{
    return v && v->tensor && v->tensor->n == (uint64_t)n && accel_dtype_is_float(v->tensor->dtype);
}

/* A constant of n floats that only this node reads. */
static bool is_own(const struct accel_value *v, int64_t n)
{
    return has_floats(v, n) && v->n_use == 1 && !v->is_output;
}

/* ------------------------------------------------------------------ what belongs to a layer */

const char *accel_repair_find_weight(struct accel_repair_layer *l)
{
    struct accel_value *v = l->node->in[l->u.w_slot];
    struct accel_node *by = v->producer;
    if (!v->tensor && by && is_op(by, "Transpose") && by->n_in == 1 && by->in[0]->tensor &&
        l->u.kind == ACCEL_UNFOLD_ROWS && only_reader(v)) {
        v = by->in[0];
        l->u.by_output = !l->u.by_output;
    }
    if (!v->tensor)
        return v->producer ? "its weight is computed" : "its weight is an input";
    if (v->n_use != 1 || v->is_output)
        return "its weight has several readers";
    if (!accel_dtype_is_float(v->tensor->dtype))
        return "its weight does not hold floats";
    l->weight = v;
    return NULL;
}

static enum accel_err read_bias(const char **why, struct walk *w, struct accel_repair_layer *l)
{
    const struct accel_node *n = l->node;
    const struct accel_value *b =
        l->u.b_slot >= 0 && l->u.b_slot < n->n_in ? n->in[l->u.b_slot] : NULL;
    double *value;
    *why = NULL;
    l->bias = ACCEL_NEW(&w->r->arena, double, l->n_out);
    if (!l->bias)
        return accel_fail_nomem();
    if (!b)
        return ACCEL_OK;
    if (!has_floats(b, l->n_out) && !has_floats(b, 1)) {
        *why = "its bias is no constant of one number per output";
        return ACCEL_OK;
    }
    ACCEL_TRY(accel_tensor_values(&value, b->tensor));
    for (int64_t i = 0; i < l->n_out; i++)
        l->bias[i] = l->u.beta * value[b->tensor->n == 1 ? 0 : i];
    accel_free(value);
    if (is_own(b, l->n_out) && l->u.beta != 0) {
        l->home = ACCEL_BIAS_OWN;
        l->home_value = n->in[l->u.b_slot];
    }
    return ACCEL_OK;
}

/* A batch norm behind v that works with fixed statistics. */
static struct accel_node *norm_behind(const struct accel_value *v)
{
    struct accel_node *n = only_reader(v);
    int64_t training = 0;
    bool ok = n && is_op(n, "BatchNormalization") && n->n_in == 5 && n->in[0] == v &&
              !accel_attr_int(&training, n, "training_mode", 0) && !training;
    return ok ? n : NULL;
}

static void find_home(struct accel_repair_layer *l)
{
    struct accel_value *y = l->node->out[0];
    struct accel_node *norm = norm_behind(y), *next = only_reader(y);
    if (l->home != ACCEL_BIAS_NOWHERE)
        return;
    if (norm && is_own(norm->in[3], l->n_out)) {
        l->home = ACCEL_BIAS_MEAN;
        l->home_value = norm->in[3];
    } else if (next && is_op(next, "Add") && l->u.kind == ACCEL_UNFOLD_ROWS) {
        struct accel_value *other = next->in[next->in[0] == y];
        if (is_own(other, l->n_out) && other->tensor->rank == 1) {
            l->home = ACCEL_BIAS_ADDED;
            l->home_value = other;
        }
    }
}

/* gain[i] = 1 / (scale / sqrt(variance + epsilon)); 0 where the norm shuts the channel. */
static enum accel_err norm_gain(double *gain, bool *ok, const struct accel_node *norm, int64_t n)
{
    double *scale = NULL, *variance = NULL;
    float epsilon = 1e-5f;
    *ok = has_floats(norm->in[1], n) && has_floats(norm->in[4], n) &&
          !accel_attr_float(&epsilon, norm, "epsilon", 1e-5f);
    if (!*ok)
        return ACCEL_OK;
    enum accel_err err = accel_tensor_values(&scale, norm->in[1]->tensor);
    if (!err)
        err = accel_tensor_values(&variance, norm->in[4]->tensor);
    for (int64_t i = 0; !err && i < n; i++) {
        double g = sqrt(variance[i] + (double)epsilon) / scale[i];
        gain[i] = fabs(g) < 1e4 ? g : 0;
    }
    accel_free(scale);
    accel_free(variance);
    return err;
}

static const struct accel_node *node_of(const struct accel_model *was, const struct accel_node *n)
{
    const struct accel_value *v = accel_value_find(was->graph, n->out[0]->name);
    const struct accel_node *old = v ? v->producer : NULL;
    return old && old->n_out >= 1 && !strcmp(old->op_type, n->op_type) && old->n_in == n->n_in
               ? old
               : NULL;
}

/* An Add behind the layer whose other operand is there before the layer runs. */
static enum accel_err find_skip(struct walk *w, struct accel_repair_layer *l)
{
    struct accel_node *norm = norm_behind(l->node->out[0]);
    const struct accel_value *y = norm ? norm->out[0] : l->node->out[0];
    const struct accel_node *add = only_reader(y), *old;
    bool ok = true;
    if (!add || !is_op(add, "Add") || !(old = node_of(w->was, add)))
        return ACCEL_OK;
    int other = add->in[0] == y;
    const struct accel_value *skip = add->in[other];
    if (skip == y || skip->tensor || !skip->producer || skip->producer->index >= l->node->index ||
        !value_changed(w, skip))
        return ACCEL_OK;
    l->skip_gain = ACCEL_NEW(&w->r->arena, double, l->n_out);
    if (!l->skip_gain)
        return accel_fail_nomem();
    for (int64_t i = 0; i < l->n_out; i++)
        l->skip_gain[i] = 1;
    if (norm)
        ACCEL_TRY(norm_gain(l->skip_gain, &ok, norm, l->n_out));
    if (ok) {
        l->skip_new = skip;
        l->skip_old = old->in[other];
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ the walk */

/* The outputs that are left, as indices into those of the unpruned node. */
static const char *find_kept(struct walk *w, struct accel_repair_layer *l)
{
    const struct accel_value *y = l->node->out[0];
    int axis = l->u.kind == ACCEL_UNFOLD_ROWS ? y->shape.rank - 1 : 1;
    if (y->shape.rank < 2)
        return "its output has no channels";
    if (!w->cut)
        return NULL;
    if (y->index >= w->cut->g->n_value)
        return "its output is new";
    const struct accel_cut *c = &w->cut->axis[accel_groups_value(w->cut->g, y, axis)];
    l->kept = c->kept;
    if (c->kept && c->now != l->n_out)
        return "its outputs cannot be matched";
    return NULL;
}

/* v, or what it is passed on from, is a constant. */
static bool is_constant(const struct accel_value *v)
{
    while (v && !v->tensor && v->producer && v->producer->op && v->producer->op->carry &&
           v->producer->n_in)
        v = v->producer->in[0];
    return v && v->tensor;
}

static enum accel_err look_at(struct walk *w, struct accel_node *n)
{
    struct accel_repair_layer l = {.node = n};
    const char *why;
    bool known = accel_unfold_init(&l.u, &why, n);
    if ((!known && !why) || !(is_constant(n->in[l.u.w_slot]) || is_constant(n->in[0])))
        return ACCEL_OK; /* no layer: a product of two results */
    const struct accel_value *stored = n->in[l.u.w_slot];
    bool masked = stored->tensor ? stored->tensor->edit != NULL
                                 : stored->producer && value_changed(w, stored);
    if (!value_changed(w, n->in[0]) && !masked)
        return ACCEL_OK;
    l.n_out = l.u.n_group * l.u.n_y;
    if (!why)
        why = accel_repair_find_weight(&l);
    if (!why && !(l.was = node_of(w->was, n)))
        why = "it has no counterpart in the unpruned model";
    if (!why)
        why = find_kept(w, &l);
    if (!why)
        ACCEL_TRY(read_bias(&why, w, &l));
    if (!why) {
        find_home(&l);
        ACCEL_TRY(find_skip(w, &l));
    }
    const char *name = l.weight ? l.weight->tensor->name : n->in[l.u.w_slot]->name;
    ACCEL_TRY(accel_repair_row_add(&l.row, w->r, n, name, why ? why : "least squares"));
    if (why)
        return ACCEL_OK;
    int x = value_depth(w, n->in[0]), skip = l.skip_new ? value_depth(w, l.skip_new) : 0;
    l.depth = x > skip ? x : skip;
    w->depth[n->index] = l.depth + 1;
    if (!ACCEL_GROW(w->l->at, w->l->cap, w->l->n + 1))
        return accel_fail_nomem();
    w->l->at[w->l->n++] = l;
    w->l->max_depth = l.depth > w->l->max_depth ? l.depth : w->l->max_depth;
    return ACCEL_OK;
}

static enum accel_err walk_node(struct walk *w, struct accel_node *n)
{
    int depth = has_body(n) ? w->most : 0;
    for (int i = 0; i < n->n_in; i++) {
        int d = value_depth(w, n->in[i]);
        depth = d > depth ? d : depth;
    }
    w->depth[n->index] = depth;
    ACCEL_TRY(look_at(w, n));
    w->most = w->depth[n->index] > w->most ? w->depth[n->index] : w->most;
    return ACCEL_OK;
}

enum accel_err accel_repair_layers_find(struct accel_repair_layers *l, struct accel_repair *r,
                                        struct accel_model *m, const struct accel_model *was,
                                        const struct accel_cut_plan *cut)
{
    struct accel_graph *g = m->graph;
    struct walk w = {.l = l, .r = r, .m = m, .was = was, .cut = cut};
    *l = (struct accel_repair_layers){0};
    w.depth = accel_calloc(g->n_node, sizeof *w.depth);
    enum accel_err err = w.depth ? accel_repair_changes(&w.changed, g) : accel_fail_nomem();
    for (size_t i = 0; !err && i < g->n_node; i++)
        err = walk_node(&w, g->node[i]);
    accel_free(w.changed);
    accel_free(w.depth);
    if (err)
        accel_repair_layers_clear(l);
    return err;
}
