/* scan.c - Scan runs its body once per entry of its sequences.
 *
 * Inputs of the body are the states, then a slice of every sequence; its outputs the states of the
 * next turn, then entries that are collected. Collecting puts them along a new first axis; another
 * axis or order is made at the end. In opset 8 every operand has the batch in front: its samples
 * run one after the other, and what they give is collected too. */
#include "ops/scan.h"

#include "graph/attr.h"
#include "ops/op_util.h"

/* One input of the body. */
struct feed {
    struct accel_array view;  /* of the sample */
    struct accel_array slice; /* of the turn; data in scratch */
    int64_t *dim;             /* of slice */
    int axis;
    bool back;
};

struct scan {
    const struct accel_call *c;
    const struct accel_scan *p;
    struct accel_graph *body;
    struct feed *feed; /* [n_in] */
    const struct accel_array **in;
    size_t n_in, n_state;
    int64_t turns, batch;
};

static int64_t entry(const int64_t *list, size_t n, size_t at)
{
    return at < n ? list[at] : 0;
}

static const struct accel_array *input(const struct scan *s, size_t i)
{
    return &s->c->x[i + (size_t)s->p->old];
}

/* What one sample sees of an operand. */
static void take_sample(struct scan *s, size_t i, int64_t b)
{
    const struct accel_array *x = input(s, i);
    struct accel_array *v = &s->feed[i].view;
    *v = *x;
    if (!s->p->old)
        return;
    v->rank--;
    v->dim++;
    v->n = x->dim[0] ? x->n / x->dim[0] : 0;
    v->data = (char *)x->data + (size_t)(b * v->n) * accel_array_width(x);
}

static void take_slice(struct feed *f, int64_t at)
{
    const struct accel_array *v = &f->view;
    int64_t inner = accel_array_span(v, f->axis + 1, v->rank), size = v->dim[f->axis];
    int64_t outer = accel_array_span(v, 0, f->axis);
    at = f->back ? size - 1 - at : at;
    f->slice = (struct accel_array){v->dtype, v->rank - 1, f->dim, outer * inner, f->slice.data};
    for (int d = 0; d < v->rank - 1; d++)
        f->dim[d] = v->dim[d < f->axis ? d : d + 1];
    for (int64_t i = 0; i < outer; i++)
        accel_array_copy(&f->slice, i * inner, v, (i * size + at) * inner, inner);
}

/* Axes, the number of turns, and room for the slices behind `room`. */
static enum accel_err prepare(struct scan *s, char *room)
{
    for (size_t i = 0; i < s->n_in; i++) {
        struct feed *f = &s->feed[i];
        const struct accel_array *x = input(s, i);
        const struct accel_dtype_info *t = accel_dtype_find((int)x->dtype);
        if (!x->data || !t || t->bits < 8 || (s->p->old && x->rank < 1))
            return accel_fail(ACCEL_ENOSUP, "input %zu of this form", i);
        if (s->p->old && x->dim[0] != s->batch)
            return accel_fail(ACCEL_ESHAPE, "batches of %lld and %lld", (long long)s->batch,
                              (long long)x->dim[0]);
        take_sample(s, i, 0);
        if (i < s->n_state)
            continue;
        size_t k = i - s->n_state;
        ACCEL_TRY(accel_axis_of(&f->axis, entry(s->p->in_axis, s->p->n_in_axis, k), f->view.rank));
        f->back = entry(s->p->in_back, s->p->n_in_back, k) != 0;
        if (k > 0 && f->view.dim[f->axis] != s->turns)
            return accel_fail(ACCEL_ESHAPE, "sequences of %lld and %lld", (long long)s->turns,
                              (long long)f->view.dim[f->axis]);
        s->turns = f->view.dim[f->axis];
        f->slice.data = room;
        room += ((size_t)f->view.n * accel_array_width(x) + 15) / 16 * 16;
    }
    return ACCEL_OK;
}

/* One sample: its states stand in s->in when it is done. */
static enum accel_err run_sample(struct scan *s)
{
    struct accel_bodies *to = s->c->bodies;
    const struct accel_array *out;
    for (size_t i = 0; i < s->n_state; i++)
        s->in[i] = &s->feed[i].view;
    for (int64_t t = 0; t < s->turns; t++) {
        for (size_t i = s->n_state; i < s->n_in; i++) {
            take_slice(&s->feed[i], t);
            s->in[i] = &s->feed[i].slice;
        }
        ACCEL_TRY(to->turn(to));
        ACCEL_TRY(to->run(to, s->body, s->in, s->n_in, &out));
        for (size_t i = 0; i < s->body->n_output; i++)
            if (i < s->n_state)
                ACCEL_TRY(to->keep(to, i, &out[i], &s->in[i]));
            else
                ACCEL_TRY(to->append(to, (int)i, &out[i]));
    }
    for (size_t i = 0; i < s->n_state; i++)
        ACCEL_TRY(s->p->old ? to->append(to, (int)i, s->in[i]) : to->set(to, (int)i, s->in[i]));
    return ACCEL_OK;
}

/* Collected entries [turns …] (or [batch * turns …]) go to their axis and order; `dim` has room for
 * the rank and one more. */
static enum accel_err arrange(struct scan *s, size_t slot, int64_t *dim)
{
    struct accel_bodies *to = s->c->bodies;
    const struct accel_array *all, *copy;
    size_t k = slot - s->n_state;
    bool back = entry(s->p->out_back, s->p->n_out_back, k) != 0;
    int axis;
    ACCEL_TRY(to->collected(to, (int)slot, &all));
    if (!all)
        return ACCEL_OK;
    ACCEL_TRY(accel_axis_of(&axis, entry(s->p->out_axis, s->p->n_out_axis, k), all->rank));
    if (axis == 0 && !back && !s->p->old)
        return ACCEL_OK;
    ACCEL_TRY(to->keep(to, s->n_state, all, &copy));
    struct accel_array y = *all;
    y.dim = dim;
    y.data = all->data;
    if (s->p->old) {
        y.rank++;
        dim[0] = s->batch;
        dim[1] = s->turns;
        for (int d = 1; d < copy->rank; d++)
            dim[d + 1] = copy->dim[d];
        y.data = copy->data;
        return to->set(to, (int)slot, &y);
    }
    for (int d = 0; d < all->rank; d++)
        dim[d] = d < axis ? copy->dim[d + 1] : d == axis ? copy->dim[0] : copy->dim[d];
    int64_t n = copy->dim[0], inner = accel_array_span(&y, axis + 1, y.rank);
    int64_t outer = accel_array_span(&y, 0, axis);
    for (int64_t t = 0; t < n; t++)
        for (int64_t o = 0; o < outer; o++)
            accel_array_copy(&y, (o * n + (back ? n - 1 - t : t)) * inner, copy,
                             (t * outer + o) * inner, inner);
    ACCEL_TRY(to->keep(to, s->n_state, &y, &copy)); /* its own memory cannot be set from itself */
    return to->set(to, (int)slot, copy);
}

/* Outputs of no turns are empty along their axis. */
static enum accel_err empty(struct scan *s, size_t slot, int64_t *dim)
{
    const struct accel_value *v = s->body->output[slot];
    int rank = v->shape.rank + 1, axis;
    if (rank < 1 || v->dtype == ACCEL_UNDEFINED || s->p->old)
        return accel_fail(ACCEL_ENOSUP, "no turn was taken and output %zu has no type", slot);
    ACCEL_TRY(
        accel_axis_of(&axis, entry(s->p->out_axis, s->p->n_out_axis, slot - s->n_state), rank));
    for (int d = 0; d < rank; d++) {
        int64_t size = d == axis ? 0 : v->shape.dim[d < axis ? d : d - 1].n;
        dim[d] = size < 0 ? 0 : size;
    }
    return s->c->bodies->set(s->c->bodies, (int)slot,
                             &(struct accel_array){v->dtype, rank, dim, 0, ""});
}

/* The longest rank that an output may get: that of the body's, one more, and the batch. */
static size_t ranks_of(const struct accel_graph *body)
{
    int most = 16;
    for (size_t i = 0; i < body->n_output; i++)
        most = body->output[i]->shape.rank > most ? body->output[i]->shape.rank : most;
    return (size_t)most + 2;
}

static struct accel_graph *body_of(const struct accel_node *n)
{
    const struct accel_attr *a = accel_attr_find(n, "body");
    return a && a->kind == ACCEL_ATTR_GRAPH && a->n == 1 && a->graphs ? a->graphs[0] : NULL;
}

enum accel_err accel_scan_forward(const struct accel_call *c)
{
    const struct accel_scan *p = c->node->params;
    struct scan s = {.c = c, .p = p, .body = body_of(c->node), .batch = 1};
    size_t dims = 0;
    s.n_in = (size_t)(c->node->n_in - p->old);
    s.n_state = s.n_in - (size_t)p->n_scan;
    if ((size_t)c->node->n_out > s.body->n_output)
        return accel_fail(ACCEL_EMODEL, "%d outputs, the body has %zu", c->node->n_out,
                          s.body->n_output);
    s.feed = c->scratch;
    s.in = (const struct accel_array **)(s.feed + s.n_in);
    int64_t *dim = (int64_t *)(s.in + s.n_in), *of_outputs = dim;
    if (p->old) {
        const struct accel_array *lens = &c->x[0], *first = input(&s, 0);
        if (lens->data || first->rank < 1)
            return accel_fail(ACCEL_ENOSUP, "sequences of different lengths");
        s.batch = first->dim[0];
    }
    dim += ranks_of(s.body);
    for (size_t i = 0; i < s.n_in; i++) {
        s.feed[i] = (struct feed){.dim = dim + dims};
        dims += (size_t)input(&s, i)->rank + 1;
    }
    ACCEL_TRY(prepare(&s, (char *)(dim + dims)));
    for (int64_t b = 0; b < s.batch; b++) {
        for (size_t i = 0; i < s.n_in; i++)
            take_sample(&s, i, b);
        ACCEL_TRY(run_sample(&s));
    }
    for (size_t i = s.n_state; i < (size_t)c->node->n_out; i++)
        if (c->node->out[i])
            ACCEL_TRY(s.turns && s.batch ? arrange(&s, i, of_outputs) : empty(&s, i, of_outputs));
    return ACCEL_OK;
}

size_t accel_scan_scratch(const struct accel_call *c)
{
    const struct accel_node *n = c->node;
    size_t size = (size_t)n->n_in * (sizeof(struct feed) + sizeof(struct accel_array *));
    size += ranks_of(body_of(n)) * sizeof(int64_t);
    for (int i = 0; i < n->n_in; i++) {
        size += ((size_t)c->x[i].rank + 1) * sizeof(int64_t);
        size += ((size_t)c->x[i].n * accel_array_width(&c->x[i]) + 15) / 16 * 16;
    }
    return size;
}
