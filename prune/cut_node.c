/* What an operator asks for when its operands were cut (graph/resize.h), done on the graph.
 *
 * A size input that is a constant is replaced by a copy of the node's own, since constants are
 * shared. One that is computed keeps what it may: elements that change, or that were read from a
 * cut axis, are written as numbers (never relying on arithmetic to adapt: half of an uneven cut is
 * not the half), the runs between them stay as slices of the old vector. */
#include "prune/cut_node.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "graph/constprop.h"
#include "ops/ops.h"

/* ------------------------------------------------------------------ nodes that are made */

static enum accel_err make(struct accel_value *out, struct accel_cut_nodes *c, const char *op_type,
                           struct accel_value *const *in, int n_in, int before,
                           struct accel_node **node)
{
    struct accel_node *n;
    if (!ACCEL_GROW(c->place, c->place_cap, c->n_place + 1))
        return accel_fail_nomem();
    ACCEL_TRY(accel_node_new(&n, c->m->graph, accel_op_find(op_type, ""), op_type, "", out->name,
                             in, n_in, &out, 1));
    n->changed = true;
    c->place[c->n_place++] = (struct accel_edit_place){n, before};
    if (node)
        *node = n;
    return ACCEL_OK;
}

static enum accel_err vector(struct accel_value **out, struct accel_cut_nodes *c, const char *hint,
                             enum accel_dtype dtype, int rank, const int64_t *at, int64_t n)
{
    uint64_t size;
    const struct accel_dtype_info *d = accel_dtype_find((int)dtype);
    if (!d || d->cls != ACCEL_CLASS_INT || d->bits < 8 ||
        !accel_dtype_size(dtype, (uint64_t)n, &size))
        return accel_fail(ACCEL_ENOSUP, "sizes of type %s", d ? d->name : "?");
    void *raw = accel_calloc(size + 1, 1);
    if (!raw)
        return accel_fail_nomem();
    unsigned width = (unsigned)d->bits / 8; /* little endian: the low bytes come first */
    for (int64_t i = 0; i < n; i++)
        memcpy((char *)raw + (size_t)i * width, &at[i], width);
    enum accel_err err = accel_edit_constant(out, c->m->graph, hint, dtype, rank, &n, raw);
    accel_free(raw);
    return err;
}

/* Elements [from, to) of v. */
static enum accel_err slice(struct accel_value **out, struct accel_cut_nodes *c,
                            struct accel_value *v, int64_t from, int64_t to, int before)
{
    enum { INPUTS_SINCE = 10 };
    struct accel_value *in[3] = {v};
    struct accel_node *n;
    int64_t zero = 0;
    bool inputs = accel_graph_opset(c->m->graph, "") >= INPUTS_SINCE;
    if (inputs) {
        ACCEL_TRY(vector(&in[1], c, v->name, ACCEL_I64, 1, &from, 1));
        ACCEL_TRY(vector(&in[2], c, v->name, ACCEL_I64, 1, &to, 1));
    }
    ACCEL_TRY(accel_edit_value(out, c->m->graph, v->name));
    ACCEL_TRY(make(*out, c, "Slice", in, inputs ? 3 : 1, before, &n));
    if (inputs)
        return ACCEL_OK;
    ACCEL_TRY(accel_attr_set_ints(n, "starts", &from, 1));
    ACCEL_TRY(accel_attr_set_ints(n, "ends", &to, 1));
    return accel_attr_set_ints(n, "axes", &zero, 1);
}

/* ------------------------------------------------------------------ sizes */

/* A size vector on its way to be rewritten. */
struct sizes {
    struct accel_value *v;
    int64_t n;
    const struct accel_known *known;
    int64_t *at;    /* [n] what is written */
    bool *computed; /* [n] stays as it is computed */
};

static bool was_cut(const struct accel_cut_nodes *c, const struct accel_axis_set *s)
{
    for (size_t i = 0; s && i < s->n; i++)
        if (s->at[i].value->graph == c->m->graph &&
            c->c->axis[accel_groups_value(c->c->g, s->at[i].value, s->at[i].axis)].kept)
            return true;
    return false;
}

/* Decides element by element; *touched: something must be written. */
static enum accel_err decide(struct sizes *s, bool *touched, const struct accel_cut_nodes *c,
                             const int64_t *want, int64_t open)
{
    *touched = false;
    for (int64_t i = 0; i < s->n; i++) {
        int64_t old = 0;
        bool fixed = s->known && accel_known_constant(&old, s->known, i);
        bool read = was_cut(c, accel_provenance_of(c->c->g->sizes, s->v, i));
        bool differs = fixed && want[i] != ACCEL_SIZE_VARIES && want[i] != old;
        s->at[i] = fixed ? old : 0;
        s->computed[i] = !fixed;
        if (!read && !differs)
            continue;
        *touched = true;
        s->computed[i] = false;
        s->at[i] = want[i] != ACCEL_SIZE_VARIES ? want[i] : open;
        if (s->at[i] == ACCEL_SIZE_VARIES)
            return accel_fail(ACCEL_ENOSUP,
                              "size %lld of '%.200s' is computed from a size that was cut",
                              (long long)i, s->v->name);
    }
    return ACCEL_OK;
}

static enum accel_err rebuild(struct accel_value **out, struct accel_cut_nodes *c,
                              const struct sizes *s, int before)
{
    struct accel_value **part = accel_calloc((size_t)s->n, sizeof(*part)), *whole;
    int n_part = 0;
    struct accel_node *n;
    enum accel_err err = part ? ACCEL_OK : accel_fail_nomem();
    for (int64_t i = 0, to; !err && i < s->n; i = to) {
        for (to = i + 1; to < s->n && s->computed[to] == s->computed[i]; to++)
            ;
        if (s->computed[i])
            err = slice(&part[n_part++], c, s->v, i, to, before);
        else
            err = vector(&part[n_part++], c, s->v->name, s->v->dtype, 1, s->at + i, to - i);
    }
    if (!err && n_part == 1) {
        *out = part[0];
    } else if (!err) {
        err = accel_edit_value(&whole, c->m->graph, s->v->name);
        if (!err)
            err = make(whole, c, "Concat", part, n_part, before, &n);
        if (!err)
            err = accel_attr_set_int(n, "axis", 0);
        *out = whole;
    }
    accel_free(part);
    return err;
}

static enum accel_err rewrite(struct accel_cut_nodes *c, struct accel_node *n, int slot,
                              struct sizes *s, const int64_t *want, int64_t open)
{
    bool touched, all = true;
    struct accel_value *new;
    ACCEL_TRY(decide(s, &touched, c, want, open));
    if (!touched)
        return ACCEL_OK;
    for (int64_t i = 0; i < s->n; i++)
        all = all && !s->computed[i];
    if (all) {
        int rank = s->v->shape.rank == 0 ? 0 : 1;
        ACCEL_TRY(vector(&new, c, s->v->name, s->v->dtype, rank, s->at, s->n));
    } else if (s->v->shape.rank != 1) {
        return accel_fail(ACCEL_ENOSUP, "'%.200s' holds sizes in %d dims", s->v->name,
                          s->v->shape.rank);
    } else {
        ACCEL_TRY(rebuild(&new, c, s, n->index));
    }
    return accel_edit_input(n, slot, new);
}

static enum accel_err write_ints(struct accel_resize *r, int slot, const int64_t *want, int64_t n,
                                 int64_t open)
{
    struct accel_cut_nodes *c = r->ctx;
    struct accel_node *node = r->node;
    struct accel_value *v = slot < node->n_in ? node->in[slot] : NULL, *new;
    if (!v || v->tensor) {
        const int64_t *old = NULL;
        int64_t *at = accel_calloc((size_t)n + 1, sizeof *at), n_old = 0;
        enum accel_err err = !at ? accel_fail_nomem()
                             : v ? accel_known_ints(&old, &n_old, v)
                                 : ACCEL_OK;
        for (int64_t i = 0; !err && i < n; i++) {
            at[i] = want[i];
            if (at[i] == ACCEL_SIZE_VARIES)
                at[i] = old && i < n_old ? old[i] : open;
        }
        if (!err)
            err = vector(&new, c, v ? v->name : node->label, v ? v->tensor->dtype : ACCEL_I64,
                         v ? v->tensor->rank : 1, at, n);
        accel_free(at);
        return err ? err : accel_edit_input(node, slot, new);
    }
    struct sizes s = {.v = v, .n = n, .known = accel_known_get(v)};
    if (s.known && (s.known->real || s.known->n != n))
        return accel_fail(ACCEL_ENOSUP, "'%.200s' has %lld sizes, %lld are needed", v->name,
                          (long long)s.known->n, (long long)n);
    s.at = accel_calloc((size_t)n + 1, sizeof *s.at);
    s.computed = accel_calloc((size_t)n + 1, sizeof *s.computed);
    enum accel_err err =
        s.at && s.computed ? rewrite(c, node, slot, &s, want, open) : accel_fail_nomem();
    accel_free(s.at);
    accel_free(s.computed);
    return err;
}

/* ------------------------------------------------------------------ factors */

static enum accel_err write_scale(struct accel_resize *r, int slot, double factor)
{
    struct accel_cut_nodes *c = r->ctx;
    struct accel_value *fresh, *old, *by;
    uint8_t raw[16] = {0};
    ACCEL_TRY(accel_edit_output(&fresh, &old, r->node, slot));
    accel_dtype_from_f64(old->dtype, &factor, 1, raw, 0);
    ACCEL_TRY(accel_edit_constant(&by, c->m->graph, old->name, old->dtype, 0, NULL, raw));
    return make(old, c, "Mul", (struct accel_value *const[]){fresh, by}, 2, r->node->index + 1,
                NULL);
}

enum accel_err accel_cut_copy(struct accel_value **out, struct accel_model *m,
                              const struct accel_value *v)
{
    struct accel_tensor *t = ACCEL_NEW(&m->arena, struct accel_tensor, 1);
    struct accel_value *copy;
    if (!t)
        return accel_fail_nomem();
    ACCEL_TRY(accel_edit_value(&copy, m->graph, v->name));
    *t = *v->tensor;
    t->name = copy->name;
    t->origin = NULL;
    t->edit = NULL;
    t->changed = true;
    t->sparse = false;
    copy->tensor = t;
    copy->dtype = v->dtype;
    copy->shape = v->shape;
    *out = copy;
    return accel_model_add_tensor(m, t);
}

/* ------------------------------------------------------------------ all nodes */

static bool concerns(const struct accel_cut_nodes *c, const struct accel_node *n)
{
    const struct accel_groups *g = c->c->g;
    for (int s = 0; s < n->n_in + n->n_out; s++)
        for (int axis = 0; axis < accel_slot_rank(n, s); axis++)
            if (c->c->axis[accel_groups_operand(g, n, s, axis)].kept)
                return true;
    for (int s = 0; s < n->n_in && s < 32; s++)
        if (n->op->sizes >> s & 1 && accel_provenance_any(g->sizes, n->in[s]))
            return true;
    return false;
}

static enum accel_err repair(struct accel_cut_nodes *c, struct accel_node *n)
{
    int slots = n->n_in + n->n_out;
    const struct accel_cut **cut = accel_calloc((size_t)slots, sizeof *cut);
    if (!cut)
        return accel_fail_nomem();
    for (int s = 0; s < slots; s++)
        if (accel_slot_value(n, s))
            cut[s] = c->c->axis + accel_groups_operand(c->c->g, n, s, 0);
    struct accel_resize r = {n, cut, false, write_ints, write_scale, c};
    enum accel_err err = n->op->resize(n, &r);
    n->changed = n->changed || r.changed;
    accel_free(cut);
    return err ? accel_fail_in(err, "node '%.200s' (%.100s)", n->label, n->op_type) : ACCEL_OK;
}

enum accel_err accel_cut_nodes_repair(struct accel_cut_nodes *c)
{
    size_t n = c->m->graph->n_node;
    for (size_t i = 0; i < n; i++) {
        struct accel_node *node = c->m->graph->node[i];
        if (!node->dropped && node->op && node->op->resize && concerns(c, node))
            ACCEL_TRY(repair(c, node));
    }
    return ACCEL_OK;
}

enum accel_err accel_cut_nodes_settle(struct accel_cut_nodes *c)
{
    struct accel_graph *graph = c->m->graph;
    ACCEL_TRY(accel_edit_settle(graph, c->place, c->n_place));
    for (size_t i = 0; i < graph->n_node; i++) {
        struct accel_node *n = graph->node[i];
        if (n->changed && n->op && n->op->parse)
            ACCEL_TRY(n->op->parse(n, accel_graph_opset(graph, n->domain)));
    }
    return ACCEL_OK;
}

void accel_cut_nodes_clear(struct accel_cut_nodes *c)
{
    accel_free(c->place);
}
