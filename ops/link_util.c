/* The value at zero of an element-wise operator is its own kernel run on one element, so that no
 * operator has its function written a second time.
 *
 * A K that is computed carries rounding of its own (sigmoid(0) - 0.5 need not be 0 in every
 * runtime). Where the function jumps near its operands (Round, Sign, ThresholdedRelu) that could
 * change the result: there it stays unknown. */
#include "ops/link_util.h"

#include <math.h>

#include "ops/real.h"

void accel_link_range(struct accel_links *l, int slot_a, int slot_b, int from, int to)
{
    for (int axis = from; axis < to; axis++)
        accel_links_pair(l, slot_a, axis, slot_b, axis);
}

void accel_zero_range(struct accel_zero *z, int from_slot, int to_slot, int from, int to,
                      bool only0)
{
    for (int axis = from; axis < to; axis++) {
        if (only0)
            accel_zero_copy0(z, from_slot, axis, to_slot, axis);
        else
            accel_zero_copy(z, from_slot, axis, to_slot, axis);
    }
}

/* ------------------------------------------------------------------ one element */

static bool is_real(const struct accel_value *v)
{
    const struct accel_dtype_info *t = v ? accel_dtype_find((int)v->dtype) : NULL;
    return t && t->cls == ACCEL_CLASS_REAL && v->dtype != ACCEL_UNDEFINED;
}

/* Operands of one element each. */
struct element {
    struct accel_call call;
    struct accel_array *x, y;
    real *value, result;
};

/* False: the operator or its operands are not of the kind that computes with reals. */
static bool element_init(struct element *e, struct accel_links *l, const float *k)
{
    const struct accel_node *n = l->node;
    const unsigned other = ACCEL_OP_RANDOM | ACCEL_OP_MOVES | ACCEL_OP_BODIES;
    if (!n->op->forward || n->op->scratch || (n->op->flags & other) || n->n_out < 1 ||
        !is_real(n->out[0]))
        return false;
    e->x = ACCEL_NEW(&l->arena, struct accel_array, n->n_in);
    e->value = ACCEL_NEW(&l->arena, real, n->n_in);
    if (!e->x || !e->value) {
        l->err = accel_fail_nomem();
        return false;
    }
    for (int i = 0; i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        if (!is_real(n->in[i]) || isnan(k[i]))
            return false;
        e->value[i] = (real)k[i];
        e->x[i] = (struct accel_array){.dtype = n->in[i]->dtype, .n = 1, .data = &e->value[i]};
    }
    e->y = (struct accel_array){.dtype = n->out[0]->dtype, .n = 1, .data = &e->result};
    e->call = (struct accel_call){.node = n, .x = e->x, .y = &e->y};
    return true;
}

/* The kernel's result; false when it refuses. */
static bool element_run(struct element *e, double *out)
{
    e->y.data = &e->result;
    bool good = e->call.node->op->forward(&e->call) == ACCEL_OK;
    *out = (double)e->result;
    return good;
}

/* A small change of one operand makes a large one of the result. */
static bool jumps(struct element *e, double at)
{
    for (int i = 0; i < e->call.node->n_in; i++) {
        real own = e->value[i];
        for (int side = -1; side <= 1; side += 2) {
            double near;
            e->value[i] = own + (real)(side * 1e-5) * (1 + (real)fabs((double)own));
            bool good = element_run(e, &near);
            e->value[i] = own;
            if (good && fabs(near - at) > 1e-2 * (1 + fabs(at)))
                return true;
        }
    }
    return false;
}

void accel_zero_compute(struct accel_zero *z, int axis, const float *k, unsigned absorbs)
{
    const struct accel_node *n = z->links->node;
    struct element e = {.value = NULL};
    double result;
    for (int i = 0; i < n->n_in && i < 32; i++)
        if (absorbs >> i & 1 && k[i] == 0) {
            accel_zero_set(z, accel_link_out(n, 0), axis, 0);
            return;
        }
    if (!element_init(&e, z->links, k) || !element_run(&e, &result))
        return;
    if ((n->op->flags & ACCEL_OP_COMPARES) && isfinite(result) && jumps(&e, result))
        return;
    accel_zero_set(z, accel_link_out(n, 0), axis, (float)result);
}

/* ------------------------------------------------------------------ one input */

void accel_link_unary(const struct accel_node *n, struct accel_links *l)
{
    int rank = accel_slot_rank(n, 0);
    for (int axis = 0; axis < rank; axis++)
        for (int o = 0; o < n->n_out; o++)
            if (n->out[o])
                accel_links_pair(l, 0, axis, accel_link_out(n, o), axis);
}

void accel_zero_unary(const struct accel_node *n, struct accel_zero *z)
{
    for (int axis = 0; axis < accel_slot_rank(n, 0); axis++) {
        float k = accel_zero_get(z, 0, axis);
        if (!isnan(k) && n->n_in == 1)
            accel_zero_compute(z, axis, &k, 0);
    }
}

void accel_zero_moved(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0), false);
}

/* ------------------------------------------------------------------ several inputs */

int accel_link_stretched(const struct accel_node *n, int slot, int axis)
{
    int y_rank = accel_slot_rank(n, accel_link_out(n, 0)), rank = accel_slot_rank(n, slot);
    int own = axis - (y_rank - rank);
    if (rank < 0 || own < 0 || own >= rank)
        return -1;
    struct accel_dim x = accel_operand_dim(n, slot, own);
    return x.n != 1 && accel_dim_same(x, n->out[0]->shape.dim[axis]) ? own : -1;
}

/* One axis of the output: the operands that have it, and a word for those of size 1. With an
 * operand that is neither (a size that only the run tells) the axis stays silent. */
static void link_axis(struct accel_links *l, int axis, struct accel_axis *at)
{
    const struct accel_node *n = l->node;
    int y = accel_link_out(n, 0), y_rank = accel_slot_rank(n, y), count = 0;
    for (int i = 0; i < n->n_in; i++) {
        int lies = axis - (y_rank - accel_slot_rank(n, i)), own = accel_link_stretched(n, i, axis);
        if (!n->in[i] || lies < 0)
            continue;
        if (own >= 0)
            at[count++] = (struct accel_axis){i, own};
        else if (n->in[i]->shape.dim[lies].n != 1)
            return;
    }
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i] && accel_link_stretched(n, i, axis) < 0)
            accel_links_seen(l, i, axis - (y_rank - accel_slot_rank(n, i)));
    at[count++] = (struct accel_axis){y, axis};
    if (count > 1)
        accel_links_axes(l, count, at);
    else
        accel_links_seen(l, y, axis);
}

void accel_link_broadcast(const struct accel_node *n, struct accel_links *l)
{
    struct accel_axis *at = ACCEL_NEW(&l->arena, struct accel_axis, n->n_in + 1);
    if (!at) {
        l->err = accel_fail_nomem();
        return;
    }
    for (int axis = 0; n->n_out && n->out[0] && axis < n->out[0]->shape.rank; axis++)
        link_axis(l, axis, at);
}

float accel_zero_stretched(const struct accel_zero *z, int slot, int axis)
{
    int own = accel_link_stretched(z->links->node, slot, axis);
    return own >= 0 ? accel_zero_get(z, slot, own) : accel_zero_number(z, slot);
}

void accel_zero_absorb(const struct accel_node *n, struct accel_zero *z, unsigned absorbs)
{
    float *k = ACCEL_NEW(&z->links->arena, float, n->n_in);
    if (!k) {
        z->links->err = accel_fail_nomem();
        return;
    }
    for (int axis = 0; n->n_out && n->out[0] && axis < n->out[0]->shape.rank; axis++) {
        for (int i = 0; i < n->n_in; i++)
            k[i] = accel_zero_stretched(z, i, axis);
        accel_zero_compute(z, axis, k, absorbs);
    }
}

void accel_zero_broadcast(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_absorb(n, z, 0);
}
