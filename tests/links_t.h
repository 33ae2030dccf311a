/* links_t.h - what an operator says about cutting, as text; one node's K pass and choice. */
#ifndef ACCEL_TESTS_LINKS_T_H
#define ACCEL_TESTS_LINKS_T_H

#include "base/str.h"
#include "graph/links.h"
#include "tests/op_t.h"

/* "0.1" is axis 1 of input 0, "y.1" of output 0, "y2.1" of output 2. */
static inline void links_axis(struct accel_str *s, const struct accel_node *n, int slot, int axis)
{
    int out = slot - n->n_in;
    if (out < 0)
        accel_str_addf(s, "%d.%d", slot, axis);
    else if (out == 0)
        accel_str_addf(s, "y.%d", axis);
    else
        accel_str_addf(s, "y%d.%d", out, axis);
}

/* A side that is not a whole axis in order adds its map: +off, *outer:stride, xrep, or the list. */
static inline void links_side(struct accel_str *s, const struct accel_node *n, int64_t rows,
                              const struct accel_side *e)
{
    links_axis(s, n, e->slot, e->axis);
    if (e->list) {
        for (int64_t i = 0; i < rows; i++)
            accel_str_addf(s, "%s%lld", i ? "," : "[", (long long)e->list[i]);
        accel_str_add(s, "]");
        return;
    }
    if (e->off)
        accel_str_addf(s, "+%lld", (long long)e->off);
    if (e->outer > 1)
        accel_str_addf(s, "*%lld:%lld", (long long)e->outer, (long long)e->stride);
    if (e->rep > 1)
        accel_str_addf(s, "x%lld", (long long)e->rep);
}

static inline void links_tie(struct accel_str *s, const struct accel_node *n,
                             const struct accel_tie *t)
{
    accel_str_addf(s, "%lld:", (long long)t->n);
    for (int i = 0; i < t->n_sides; i++) {
        accel_str_add(s, i ? "/" : "");
        links_side(s, n, t->n, &t->side[i]);
    }
    accel_str_add(s, " ");
}

/* Ties "3:0.1/1.1", candidates "?(...)" ("!" preferred), sums "sum(0.1,1.1)", walls "wall(0.0)" or
 * "wall(0.0@2)", and silent axes "-0.2", in this order, with blanks between. */
static inline void links_text(struct accel_str *s, const struct accel_links *l)
{
    const struct accel_node *n = l->node;
    for (size_t i = 0; i < l->n_tie; i++)
        links_tie(s, n, &l->tie[i]);
    for (size_t i = 0; i < l->n_candidate; i++) {
        accel_str_add(s, l->candidate[i].preferred ? "!(" : "?(");
        for (int k = 0; k < l->candidate[i].n_ties; k++)
            links_tie(s, n, &l->candidate[i].tie[k]);
        accel_str_add(s, ") ");
    }
    for (size_t i = 0; i < l->n_need; i++) {
        for (int k = 0; k < l->need[i].n; k++) {
            accel_str_add(s, k ? "," : "sum(");
            links_axis(s, n, l->need[i].at[k].slot, l->need[i].at[k].axis);
        }
        accel_str_add(s, ") ");
    }
    for (size_t i = 0; i < l->n_wall; i++) {
        const struct accel_wall *w = &l->wall[i];
        accel_str_add(s, "wall(");
        links_axis(s, n, w->slot, w->axis);
        if (w->n != accel_slot_size(n, w->slot, w->axis))
            accel_str_addf(s, "@%lld", (long long)w->first);
        accel_str_add(s, ") ");
    }
    for (int slot = 0; slot < n->n_in + n->n_out; slot++)
        for (int axis = 0; axis < accel_slot_rank(n, slot); axis++)
            if (!accel_links_mentions(l, slot, axis)) {
                accel_str_add(s, "-");
                links_axis(s, n, slot, axis);
                accel_str_add(s, " ");
            }
}

/* One line says `want`. `taken`: the choice, "10" takes the first of two candidates; NULL: none
 * yet. */
static inline void links_are(const char *op, int opset, const char *line, const char *taken,
                             const char *want)
{
    struct op_run r = op_begin_outs(op, opset, line, 1);
    struct accel_links l = {0};
    struct accel_str s = {0};
    bool choice[16] = {false};
    ck_assert_msg(r.err == ACCEL_OK, "%s %s: %s", op, line, accel_errmsg());
    for (size_t i = 0; taken && taken[i]; i++)
        choice[i] = taken[i] == '1';
    ck_ok(accel_links_ask(&l, r.n, taken ? choice : NULL));
    links_text(&s, &l);
    const char *got = accel_str_get(&s);
    size_t len = strlen(got);
    while (len && got[len - 1] == ' ')
        len--;
    ck_assert_msg(len == strlen(want) && strncmp(got, want, len) == 0,
                  "%s %s:\n  says %s\n  want %s", op, line, got, want);
    accel_str_clear(&s);
    accel_links_clear(&l);
    op_end(&r);
}

#endif
