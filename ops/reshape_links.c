/* Both shapes are cut into the shortest blocks of equal products, and each block into the factors
 * ("atoms") that both sides are made of: [6, 4] -> [2, 12] is 2 . 3 . 4. A block of one atom is an
 * axis that stays. In a longer one, row c of an atom is, on each side, a strided run of positions:
 * with `before` the product of the factors in front of it on that axis and `after` that behind it,
 *     P(n; outer = before, stride = n * after, rep = after).
 * Cutting along two atoms of one axis would merge everything, so each is a candidate.
 *
 * Symbols take part by their trial values. Two trials must lead to the same atoms, so that nothing
 * rests on a size that fits by chance; an atom of another size in each is itself symbolic and is
 * never cut. Cost: linear in the axes. */
#include "ops/reshape_links.h"

#include <math.h>

#include "ops/link_util.h"

/* One factor of a block. axis[0] of the input, axis[1] of the output. */
struct atom {
    int64_t n;
    int axis[2];
    bool alone;    /* the only one of its block */
    bool symbolic; /* another size in another trial */
};

struct atoms {
    struct atom *at;
    int n;
};

/* An axis of one shape that is not 1, and what is left of it. */
struct leg {
    int axis;
    int64_t left;
};

static int legs_of(struct leg *leg, const struct accel_node *n, int slot, int probe)
{
    const struct accel_shape *s = &accel_slot_value(n, slot)->shape;
    int count = 0;
    for (int i = 0; i < s->rank; i++) {
        int64_t d = accel_dim_probe(s->dim[i], &n->graph->model->symbols, probe);
        if (d < 1)
            return -1;
        if (s->dim[i].n != 1)
            leg[count++] = (struct leg){i, d};
    }
    return count;
}

/* Legs [*from, *to) of both shapes have the same product; false when there is no such block. */
static bool next_block(const struct leg *const leg[2], const int count[2], int from[2], int to[2])
{
    int64_t product[2];
    for (int s = 0; s < 2; s++) {
        from[s] = to[s];
        if (to[s] >= count[s])
            return false;
        product[s] = leg[s][to[s]++].left;
    }
    while (product[0] != product[1]) {
        int s = product[0] > product[1];
        if (to[s] >= count[s] ||
            __builtin_mul_overflow(product[s], leg[s][to[s]].left, &product[s]))
            return false;
        to[s]++;
    }
    return true;
}

/* The factors of one block, the outer ones first; none when they do not nest. */
static void split_block(struct atoms *a, struct leg *const leg[2], const int from[2],
                        const int to[2])
{
    int at[2] = {from[0], from[1]}, first = a->n;
    while (at[0] < to[0] && at[1] < to[1]) {
        struct leg *x = &leg[0][at[0]], *y = &leg[1][at[1]];
        int64_t n = x->left < y->left ? x->left : y->left;
        if (n < 2 || x->left % n || y->left % n) {
            a->n = first;
            return;
        }
        a->at[a->n++] = (struct atom){n, {x->axis, y->axis}, false, false};
        x->left /= n;
        y->left /= n;
        at[0] += x->left == 1;
        at[1] += y->left == 1;
    }
    a->at[first].alone = a->n == first + 1;
}

/* The atoms at one trial value; room for the axes of both shapes. */
static bool find_atoms(struct atoms *a, struct accel_links *l, int probe)
{
    const struct accel_node *n = l->node;
    int slot[2] = {0, accel_link_out(n, 0)}, count[2], from[2], to[2] = {0, 0};
    int room = accel_slot_rank(n, slot[0]) + accel_slot_rank(n, slot[1]);
    struct leg *leg[2];
    *a = (struct atoms){ACCEL_NEW(&l->arena, struct atom, room + 1), 0};
    for (int s = 0; s < 2; s++)
        leg[s] = ACCEL_NEW(&l->arena, struct leg, room + 1);
    if (!a->at || !leg[0] || !leg[1]) {
        l->err = accel_fail_nomem();
        return false;
    }
    for (int s = 0; s < 2; s++)
        if ((count[s] = legs_of(leg[s], n, slot[s], probe)) < 0)
            return false;
    while (next_block((const struct leg *const[]){leg[0], leg[1]}, count, from, to))
        split_block(a, leg, from, to);
    return true;
}

/* The atoms of two trials, as far as these agree. */
static bool agreed_atoms(struct atoms *a, struct accel_links *l)
{
    struct atoms other;
    if (!accel_slot_value(l->node, 0) || l->node->n_out < 1 || !l->node->out[0] ||
        !find_atoms(a, l, ACCEL_LINKS_PROBE) || !find_atoms(&other, l, ACCEL_N_PROBES - 1))
        return false;
    if (a->n != other.n)
        return false;
    for (int i = 0; i < a->n; i++) {
        const struct atom *o = &other.at[i];
        struct atom *t = &a->at[i];
        if (t->axis[0] != o->axis[0] || t->axis[1] != o->axis[1] || t->alone != o->alone)
            return false;
        t->symbolic = t->n != o->n;
    }
    return true;
}

/* Where atom i lies on its axis of side s. */
static struct accel_side side_of(const struct accel_links *l, const struct atoms *a, int i, int s)
{
    const struct atom *t = &a->at[i];
    int slot = s ? accel_link_out(l->node, 0) : 0, axis = t->axis[s];
    int64_t before = 1, size = accel_slot_size(l->node, slot, axis);
    for (int k = i - 1; k >= 0 && a->at[k].axis[s] == axis; k--)
        before *= a->at[k].n;
    int64_t after = size / before / t->n;
    return accel_side_of(slot, axis, 0, before, before > 1 ? t->n * after : 0, after);
}

/* A symbolic output axis of several factors must be written as -1 after a cut: possible for one. */
static bool can_open(const struct accel_links *l, const struct atom *t, int *open)
{
    if (accel_dim_known(l->node->out[0]->shape.dim[t->axis[1]]))
        return true;
    if (*open < 0)
        *open = t->axis[1];
    return *open == t->axis[1];
}

void accel_reshape_links(struct accel_links *l, int open)
{
    struct atoms a;
    int y = accel_link_out(l->node, 0), slots[2] = {0, y};
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < accel_slot_rank(l->node, slots[s]); i++)
            if (accel_slot_value(l->node, slots[s])->shape.dim[i].n == 1)
                accel_links_seen(l, slots[s], i);
    if (!agreed_atoms(&a, l))
        return;
    for (int i = 0; i < a.n; i++) {
        const struct atom *t = &a.at[i];
        if (t->alone) {
            accel_links_pair(l, 0, t->axis[0], y, t->axis[1]);
            continue;
        }
        if (t->symbolic || !can_open(l, t, &open))
            continue;
        const struct accel_side side[2] = {side_of(l, &a, i, 0), side_of(l, &a, i, 1)};
        const struct accel_tie tie = {t->n, 2, side};
        (void)accel_links_offer(l, 1, &tie, false);
    }
}

/* While there is no choice an axis of several factors passes for 0, so that its candidates are not
 * lost to a sum behind them; the next ask looks again. */
void accel_reshape_zero(struct accel_zero *z, int open)
{
    struct accel_links *l = z->links;
    struct atoms a;
    int y = accel_link_out(l->node, 0);
    size_t candidate = 0;
    if (!agreed_atoms(&a, l))
        return;
    for (int i = 0; i < a.n; i++) {
        const struct atom *t = &a.at[i];
        if (t->alone) {
            accel_zero_copy(z, 0, t->axis[0], y, t->axis[1]);
            continue;
        }
        if (t->symbolic || !can_open(l, t, &open))
            continue;
        if (!accel_zero_taken(z, candidate++, true))
            continue;
        if (l->taken)
            accel_zero_copy(z, 0, t->axis[0], y, t->axis[1]);
        else
            accel_zero_set(z, y, t->axis[1], 0);
    }
}
