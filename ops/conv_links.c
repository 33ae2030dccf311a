/* What convolutions say about cutting, plain and transposed.
 *
 * Of X.1 and Y.1 a group owns a run of channels, and so of W.0 and B.0; W.1 has the channels of one
 * group. A unit of "whole groups" is such a run; one of "inner" is the j-th channel of every run.
 * Both are exact, together they would tie everything to everything. */
#include <math.h>

#include "ops/conv.h"
#include "ops/link_util.h"

/* Sizes per group. */
struct channels {
    int64_t group, in, out;
    int y; /* slot of the output */
};

static void offer_whole(struct accel_links *l, const struct channels *c, bool transposed,
                        bool preferred, bool only)
{
    const struct accel_side side[4] = {
        accel_side_rep(0, 1, c->in), accel_side_rep(1, 0, transposed ? c->in : c->out),
        accel_side_rep(accel_link_in(l->node, 2), 0, c->out), accel_side_rep(c->y, 1, c->out)};
    const struct accel_tie tie = {c->group, 4, side};
    if (only)
        accel_links_tie(l, c->group, 4, side);
    else
        (void)accel_links_offer(l, 1, &tie, preferred);
}

static void offer_inner(struct accel_links *l, const struct channels *c, bool transposed,
                        bool preferred)
{
    const struct accel_side in[2] = {accel_side_of(0, 1, 0, c->group, c->in, 1),
                                     transposed ? accel_side_of(1, 0, 0, c->group, c->in, 1)
                                                : accel_side_whole(1, 1)};
    const struct accel_side out[3] = {
        transposed ? accel_side_whole(1, 1) : accel_side_of(1, 0, 0, c->group, c->out, 1),
        accel_side_of(accel_link_in(l->node, 2), 0, 0, c->group, c->out, 1),
        accel_side_of(c->y, 1, 0, c->group, c->out, 1)};
    const struct accel_tie tie[2] = {{c->in, 2, in}, {c->out, 3, out}};
    if (accel_links_offer(l, 2, tie, preferred))
        accel_links_need0(l, 2, (const struct accel_axis[]){{0, 1}, {1, !transposed}});
}

void accel_conv_links(struct accel_links *l, int64_t group, bool transposed)
{
    const struct accel_node *n = l->node;
    struct channels c = {group, accel_operand_dim(n, 0, 1).n, -1, accel_link_out(n, 0)};
    int in = transposed ? 0 : 1, out = transposed ? 1 : 0;
    if (accel_slot_rank(n, 0) < 2 || accel_slot_rank(n, 1) < 2 || accel_slot_rank(n, c.y) < 2)
        return;
    accel_links_pair(l, 0, 0, c.y, 0);
    if (group == 1) {
        accel_links_pair(l, 0, 1, 1, in);
        accel_links_need0(l, 2, (const struct accel_axis[]){{0, 1}, {1, in}});
        accel_links_axes(l, 3,
                         (const struct accel_axis[]){{1, out}, {accel_link_in(n, 2), 0}, {c.y, 1}});
        return;
    }
    c.out = n->out[0]->shape.dim[1].n;
    if (c.in < group || c.out < group || c.in % group || c.out % group)
        return;
    c.in /= group;
    c.out /= group;
    bool whole = group > (c.in > c.out ? c.in : c.out) / 2 || (c.out == 1 && !transposed);
    offer_whole(l, &c, transposed, whole, c.in == 1);
    if (c.in > 1)
        offer_inner(l, &c, transposed, !whole);
}

/* Without its weights a channel is its bias. The weight's axis that goes with Y.1 is that of the
 * outputs, but axis 0 of a transposed one when whole groups are cut. */
void accel_conv_zero(struct accel_zero *z, int64_t group, bool transposed)
{
    const struct accel_node *n = z->links->node;
    int axis = transposed && (group == 1 || accel_zero_taken(z, 1, false));
    float bias = accel_operand(n, 2) ? accel_zero_get(z, 2, 0) : 0;
    if (accel_zero_get(z, 1, axis) == 0 && !isnan(bias))
        accel_zero_set(z, accel_link_out(n, 0), 1, bias);
}

enum accel_err accel_conv_resize(struct accel_resize *r, int64_t group, int slot)
{
    int64_t per = accel_resize_now(r, 1, 1), all = accel_resize_now(r, slot, 1);
    if (group == 1 || per < 1 || all < per || accel_slot_rank(r->node, slot) < 2)
        return ACCEL_OK;
    return accel_resize_attr_int(r, "group", all / per);
}
