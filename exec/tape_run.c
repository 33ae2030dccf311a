/* tape_run.c - one step: all nodes forward, then those with gradients backward. Nothing is decided
 * here. */
#include <math.h>
#include <string.h>

#include "exec/tape_int.h"

static uint64_t seed_of(const struct accel_tape *t, const struct accel_tape_step *s)
{
    uint64_t h = t->opt.seed * 0x9E3779B97F4A7C15u + t->count;
    h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9u + (uint64_t)s->node->index;
    h = (h ^ h >> 27) * 0x94D049BB133111EBu;
    return h ^ h >> 31;
}

static enum accel_err fail_at(enum accel_err err, const struct accel_tape_step *s)
{
    return accel_fail_in(err, "node '%.200s' (%.100s)", s->node->label, s->node->op_type);
}

static bool is_finite(const struct accel_array *a)
{
    bool good = true;
    if (!a->data || accel_dtype_find((int)a->dtype)->cls != ACCEL_CLASS_REAL)
        return true;
    for (int64_t i = 0; i < a->n; i++)
        good &= isfinite(a->dtype == ACCEL_F64 ? ((const double *)a->data)[i]
                                               : (double)((const float *)a->data)[i]) != 0;
    return good;
}

/* Whether what the step made is all numbers. Values in a device's layout are looked at through
 * their elements, which are float or bfloat16: the exponent's bits are all set where it is no
 * number, and fillings are zero. */
static bool makes_numbers(const struct accel_tape *t, const struct accel_tape_step *s)
{
    if (!s->fast) {
        for (int k = 0; k < s->node->n_out; k++)
            if (!is_finite(&s->call.y[k]))
                return false;
        return true;
    }
    const struct accel_tape_cell *c = &t->cell[s->y->index];
    struct accel_array a = c->a;
    if (c->layout.kind == ACCEL_OPAQUE && c->layout.size < (size_t)a.n * sizeof(float)) {
        const uint16_t *half = a.data;
        bool good = true;
        for (int64_t i = 0; i < a.n; i++)
            good &= (half[i] & 0x7F80u) != 0x7F80u;
        return good;
    }
    return is_finite(&a);
}

enum accel_err accel_tape_run_forward(struct accel_tape *t, const struct accel_node **bad)
{
    for (size_t i = 0; i < t->graph->n_node; i++) {
        struct accel_tape_step *s = &t->step[i];
        enum accel_err err = ACCEL_OK;
        if (!s->runs || s->is_view)
            continue;
        s->call.seed = seed_of(t, s);
        err = s->fast ? s->fast->forward(&s->run) : s->op->forward(&s->call);
        if (err)
            return fail_at(err, s);
        if (bad && !makes_numbers(t, s)) {
            *bad = s->node;
            return ACCEL_OK;
        }
    }
    for (int i = 0; i < t->opt.n_head; i++) {
        const struct accel_tape_cell *c = &t->cell[t->head[i]->index];
        memset(c->grad, 0, (size_t)c->a.n * accel_tape_width(c->a.dtype));
    }
    return ACCEL_OK;
}

/* gx += gy, or = for the first. */
static void back_view(struct accel_tape_step *s, bool adds)
{
    const struct accel_array *gx = &s->call.gx[0], *gy = &s->call.gy[0];
    size_t size = (size_t)gx->n * accel_tape_width(gx->dtype);
    if (s->first[0] && !adds) {
        memcpy(gx->data, gy->data, size);
        return;
    }
    for (int64_t i = 0; i < gx->n; i++)
        if (gx->dtype == ACCEL_F64)
            ((double *)gx->data)[i] += ((const double *)gy->data)[i];
        else
            ((float *)gx->data)[i] += ((const float *)gy->data)[i];
}

static bool is_parameter(const struct accel_tape *t, const struct accel_value *v)
{
    return t->cell[v->index].parameter >= 0;
}

static enum accel_err back_plain(struct accel_tape *t, struct accel_tape_step *s)
{
    const struct accel_node *n = s->node;
    if (s->is_view) {
        if (!s->aliased)
            back_view(s, is_parameter(t, n->in[0]) && t->adds);
        return ACCEL_OK;
    }
    for (int i = 0; i < n->n_in; i++) {
        const struct accel_array *gx = &s->call.gx[i];
        if (gx->data && s->first[i] && !(is_parameter(t, n->in[i]) && t->adds))
            memset(gx->data, 0, (size_t)gx->n * accel_tape_width(gx->dtype));
    }
    return s->op->backward(&s->call);
}

enum accel_err accel_tape_run_backward(struct accel_tape *t)
{
    for (size_t i = t->graph->n_node; i-- > 0;) {
        struct accel_tape_step *s = &t->step[i];
        enum accel_err err;
        if (!s->runs || !s->back)
            continue;
        if (s->fast) {
            uint64_t add = s->back_run.add;
            s->back_run.add |= t->adds ? s->weights_first : 0;
            err = s->fast->backward(&s->back_run);
            s->back_run.add = add;
        } else {
            err = back_plain(t, s);
        }
        if (err)
            return fail_at(err, s);
    }
    return ACCEL_OK;
}
