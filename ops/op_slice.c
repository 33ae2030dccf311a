/* Slice: the same rule for numbers and symbols. Starts, ends and steps have one value for each
 * trial of the symbols, so the size along an axis is computed in every trial, and what comes out is
 * a number or the symbol of these values. */
#include "ops/link_util.h"
#include "ops/op_util.h"

struct slice {
    bool attr; /* opset < 10: starts, ends, axes are attributes */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct slice *p = accel_op_params(n, sizeof *p);
    if (!p)
        return ACCEL_ENOMEM;
    p->attr = opset < 10;
    return ACCEL_OK;
}

/* A list in every trial: from an attribute or from an input. probe[p] NULL: not known. */
struct series {
    bool given;
    int64_t n;
    const int64_t *probe[ACCEL_N_PROBES];
};

static enum accel_err series_get(struct series *out, const struct accel_node *n, const char *attr,
                                 int slot)
{
    const struct slice *p = n->params;
    struct accel_list list;
    ACCEL_TRY(accel_list_get(&list, n, p->attr ? attr : NULL, p->attr ? -1 : slot));
    *out = (struct series){.given = list.given, .n = list.n};
    struct accel_value *v = p->attr ? NULL : accel_operand(n, slot);
    const struct accel_known *k = v ? accel_known_get(v) : NULL;
    for (int t = 0; t < ACCEL_N_PROBES; t++)
        out->probe[t] = list.known ? list.at : k && !k->real ? k->probe[t] : NULL;
    if (k && !list.known)
        out->n = k->n;
    return ACCEL_OK;
}

/* First index and number of elements; step != 0. */
static int64_t cut(int64_t *first, int64_t size, int64_t start, int64_t end, int64_t step)
{
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
    if (start < 0)
        start += size;
    if (end < 0)
        end += size;
    start = start < 0 ? 0 : start > high ? high : start;
    end = end < low ? low : end > size ? size : end;
    *first = start;
    if (step > 0)
        return end > start ? (end - start - 1) / step + 1 : 0;
    if (step == INT64_MIN)
        return start > end;
    return start > end ? (start - end - 1) / -step + 1 : 0;
}

static enum accel_err cut_axis(struct accel_dim *d, struct accel_symbols *s,
                               const struct series part[4], int64_t i)
{
    int64_t probe[ACCEL_N_PROBES];
    const struct accel_dim in = *d;
    *d = accel_dim_unknown();
    for (int t = 0; t < ACCEL_N_PROBES; t++) {
        int64_t size = accel_dim_probe(in, s, t), first;
        int64_t step = part[3].given ? part[3].probe[t] ? part[3].probe[t][i] : 0 : 1;
        if (step == 0 && part[3].probe[t])
            return accel_fail(ACCEL_ESHAPE, "a step is 0");
        if (step == 0 || size < 0 || !part[0].probe[t] || !part[1].probe[t])
            return ACCEL_OK;
        probe[t] = cut(&first, size, part[0].probe[t][i], part[1].probe[t][i], step);
    }
    return accel_dim_of_probes(d, s, probe);
}

/* part: starts, ends, axes, steps. */
static enum accel_err read_parts(struct series part[4], const struct accel_node *n)
{
    static const char *const name[] = {"starts", "ends", "axes", NULL};
    for (int i = 0; i < 4; i++)
        ACCEL_TRY(series_get(&part[i], n, name[i], i + 1));
    for (int i = 1; i < 4; i++)
        if (part[i].given && part[i].n >= 0 && part[0].n >= 0 && part[i].n != part[0].n)
            return accel_fail(ACCEL_ESHAPE, "%lld starts and %lld %s", (long long)part[0].n,
                              (long long)part[i].n,
                              i == 1   ? "ends"
                              : i == 2 ? "axes"
                                       : "steps");
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    struct series part[4];
    struct accel_value *x = accel_operand(n, 0);
    int rank = accel_operand_rank(n, 0);
    ACCEL_TRY(read_parts(part, n));
    ACCEL_TRY(accel_result_like(n, 0, accel_operand_dtype(n, 0), x));
    if (rank < 0 || !n->n_out || !n->out[0])
        return ACCEL_OK;
    struct accel_shape *y = &n->out[0]->shape;
    int64_t count = part[0].n >= 0 ? part[0].n : part[2].n;
    if (count < 0 || (part[2].given && !part[2].probe[0])) {
        for (int i = 0; i < rank; i++)
            y->dim[i] = accel_dim_unknown();
        return ACCEL_OK;
    }
    bool *mark = accel_op_scratch(n, rank, sizeof *mark);
    if (!mark)
        return ACCEL_ENOMEM;
    for (int64_t i = 0; i < count; i++) {
        int axis;
        ACCEL_TRY(accel_axis_of(&axis, part[2].given ? part[2].probe[0][i] : i, rank));
        if (mark[axis])
            return accel_fail(ACCEL_ESHAPE, "axis %d is listed twice", axis);
        mark[axis] = true;
        ACCEL_TRY(cut_axis(&y->dim[axis], accel_operand_symbols(n), part, i));
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------------------ links */

/* Entry i of a list as a number; `otherwise` when there is no list. False: not a constant. */
static bool number_at(int64_t *out, const struct series *s, int64_t i, int64_t otherwise)
{
    *out = otherwise;
    if (!s->given)
        return true;
    for (int t = 0; t < ACCEL_N_PROBES; t++)
        if (!s->probe[t] || i >= s->n || s->probe[t][i] != s->probe[0][i])
            return false;
    *out = s->probe[0][i];
    return true;
}

/* One entry of the lists, all of its numbers known. */
struct entry {
    int axis;
    int64_t start, end, step, size, first, count; /* size of the axis; first index, elements */
};

/* False: a number is not known, or the axis has no size in numbers. */
static bool entry_at(struct entry *e, const struct accel_node *n, const struct series part[4],
                     int64_t i)
{
    int64_t axis;
    if (!number_at(&axis, &part[2], i, i) || accel_axis_of(&e->axis, axis, accel_slot_rank(n, 0)) ||
        !number_at(&e->start, &part[0], i, 0) || !number_at(&e->end, &part[1], i, 0) ||
        !number_at(&e->step, &part[3], i, 1) || e->step == 0)
        return false;
    e->size = accel_operand_dim(n, 0, e->axis).n;
    if (e->size < 0)
        return false;
    e->count = cut(&e->first, e->size, e->start, e->end, e->step);
    return true;
}

static void link_entry(struct accel_links *l, const struct entry *e)
{
    int y = accel_link_out(l->node, 0);
    struct accel_side to = accel_side_whole(y, e->axis);
    if (e->count < 1 || e->count != accel_slot_size(l->node, y, e->axis))
        return;
    if (e->step == 1)
        accel_links_tie(
            l, e->count, 2,
            (const struct accel_side[]){accel_side_of(0, e->axis, e->first, 1, 0, 1), to});
    else if (e->step > 1 && e->size % e->step == 0 && e->count == e->size / e->step)
        accel_links_tie(l, e->count, 2,
                        (const struct accel_side[]){accel_side_rep(0, e->axis, e->step), to});
    if (e->step != -1 || e->count != e->size)
        return;
    int64_t *list = accel_links_list(l, e->size);
    for (int64_t c = 0; list && c < e->size; c++)
        list[c] = e->size - 1 - c;
    if (list)
        accel_links_tie(l, e->size, 2,
                        (const struct accel_side[]){accel_side_list(0, e->axis, list), to});
}

/* An axis of a symbolic size that is taken whole. */
static void link_whole(struct accel_links *l, const struct series part[4], int64_t i)
{
    const struct accel_node *n = l->node;
    int y = accel_link_out(n, 0), axis;
    int64_t at, start, end, step;
    if (number_at(&at, &part[2], i, i) && !accel_axis_of(&axis, at, accel_slot_rank(n, 0)) &&
        number_at(&start, &part[0], i, 0) && number_at(&end, &part[1], i, 0) &&
        number_at(&step, &part[3], i, 1) && start == 0 && step == 1 && end >= INT32_MAX &&
        !accel_dim_known(accel_operand_dim(n, 0, axis)))
        accel_links_pair(l, 0, axis, y, axis);
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    struct series part[4];
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    if (rank < 0 || !accel_slot_value(n, y) || !accel_links_ok(l, read_parts(part, n)))
        return;
    int64_t count = part[0].n >= 0 ? part[0].n : part[2].n, axis;
    bool *listed = ACCEL_NEW(&l->arena, bool, rank);
    if (!listed) {
        l->err = accel_fail_nomem();
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        int at;
        if (!number_at(&axis, &part[2], i, i) || accel_axis_of(&at, axis, rank))
            return;
        listed[at] = true;
    }
    for (int k = 0; count >= 0 && k < rank; k++)
        if (!listed[k])
            accel_links_pair(l, 0, k, y, k);
    for (int64_t i = 0; i < count; i++) {
        struct entry e;
        if (entry_at(&e, n, part, i))
            link_entry(l, &e);
        else
            link_whole(l, part, i);
    }
}

/* Start and end of an entry after the cut. An end at or behind the end of the axis stays. */
static void cut_entry(int64_t *start, int64_t *end, const struct accel_resize *r,
                      const struct entry *e)
{
    int64_t now = accel_resize_now(r, 0, e->axis);
    if (e->step == 1) {
        *start = accel_resize_before(r, 0, e->axis, e->first);
        if (e->end < e->size)
            *end = *start + accel_resize_now(r, accel_link_out(r->node, 0), e->axis);
    } else if (e->step > 1) {
        *start = e->first;
        if (e->end < e->size)
            *end = now;
    } else {
        *start = now - 1;
        *end = INT32_MIN;
    }
}

static enum accel_err resize(struct accel_node *n, struct accel_resize *r)
{
    const struct slice *p = n->params;
    struct series part[4];
    ACCEL_TRY(read_parts(part, n));
    int64_t count = part[0].n;
    if (count < 0)
        return ACCEL_OK;
    int64_t *start = ACCEL_NEW(&n->graph->model->arena, int64_t, count);
    int64_t *end = ACCEL_NEW(&n->graph->model->arena, int64_t, count);
    if (!start || !end)
        return accel_fail_nomem();
    for (int64_t i = 0; i < count; i++) {
        struct entry e;
        if (!number_at(&start[i], &part[0], i, 0))
            start[i] = ACCEL_SIZE_VARIES;
        if (!number_at(&end[i], &part[1], i, 0))
            end[i] = ACCEL_SIZE_VARIES;
        if (entry_at(&e, n, part, i) && accel_resize_hit(r, 0, e.axis))
            cut_entry(&start[i], &end[i], r, &e);
    }
    if (p->attr) {
        ACCEL_TRY(accel_resize_attr_ints(r, "starts", start, (size_t)count));
        return accel_resize_attr_ints(r, "ends", end, (size_t)count);
    }
    ACCEL_TRY(accel_resize_ints(r, 1, start, count, ACCEL_SIZE_VARIES));
    return accel_resize_ints(r, 2, end, count, ACCEL_SIZE_VARIES);
}

/* ------------------------------------------------------------------------------ kernel */

/* The lists of a call: attributes, or inputs. */
struct lists {
    const int64_t *start, *end, *axis, *step;
    int64_t n;
};

static enum accel_err lists_of(struct lists *out, const struct accel_call *c)
{
    const struct slice *p = c->node->params;
    *out = (struct lists){.n = 0};
    if (p->attr) {
        size_t n;
        ACCEL_TRY(accel_attr_ints(&out->start, &n, c->node, "starts"));
        out->n = (int64_t)n;
        ACCEL_TRY(accel_attr_ints(&out->end, &n, c->node, "ends"));
        return accel_attr_ints(&out->axis, &n, c->node, "axes");
    }
    int n_in = c->node->n_in;
    out->start = c->x[1].data;
    out->n = c->x[1].n;
    out->end = c->x[2].data;
    out->axis = n_in > 3 ? c->x[3].data : NULL;
    out->step = n_in > 4 ? c->x[4].data : NULL;
    return ACCEL_OK;
}

/* Start and step along an axis, found in the lists. */
static void along(int64_t *first, int64_t *step, const struct lists *l, const struct accel_array *x,
                  int axis)
{
    *first = 0;
    *step = 1;
    for (int64_t i = 0; i < l->n; i++) {
        int64_t a = l->axis ? l->axis[i] : i;
        if ((a < 0 ? a + x->rank : a) != axis)
            continue;
        *step = l->step ? l->step[i] : 1;
        (void)cut(first, x->dim[axis], l->start[i], l->end[i], *step);
    }
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct lists l;
    ACCEL_TRY(lists_of(&l, c));
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i, at = 0, span = 1;
        for (int k = y->rank - 1; k >= 0; k--) {
            int64_t first, step, index = rest % y->dim[k];
            along(&first, &step, &l, x, k);
            at += (index ? first + index * step : first) * span;
            span *= x->dim[k];
            rest /= y->dim[k];
        }
        if (at < 0 || at >= x->n)
            return accel_fail(ACCEL_ESHAPE, "an element outside of the input");
        accel_array_copy(y, i, x, at, 1);
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"starts", ACCEL_ATTR_INTS, 0},
                                               {"ends", ACCEL_ATTR_INTS, 0},
                                               {"axes", ACCEL_ATTR_INTS, 0},
                                               {0}};

const struct accel_op accel_op_slice = {
    .name = "Slice",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 5,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .links = links,
    .zero = accel_zero_moved,
    .resize = resize,
    .sizes = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
    .forward = forward,
    .examples =
        (const char *const[]){"5x6 [1,0] [4,6]", "5x6 [-1] [-9] [1] [-2]", "5x6 [-1] [-9] [1] [-1]",
                              "4x6 [1,1] [9,-1] [1,0] [2,1]", NULL},
};
