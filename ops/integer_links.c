/* Scales and zero points lie along the output channels, or there is one of each. */
#include "ops/integer_links.h"

#include "ops/link_util.h"

/* Ties (slot, axis) of weight, bias and output with scales that have one entry for each. */
static void tie_outputs(struct accel_links *l, int64_t n, int w_axis, int y_axis,
                        const struct accel_side *more)
{
    const struct accel_node *node = l->node;
    int bias = accel_link_in(node, ACCEL_Q_BIAS);
    struct accel_side side[6] = {accel_side_whole(ACCEL_Q_W, w_axis),
                                 accel_side_whole(accel_link_out(node, 0), y_axis),
                                 accel_side_whole(bias, 0)};
    int count = 3;
    for (int i = ACCEL_Q_W_SCALE; i <= ACCEL_Q_W_ZERO; i++) {
        if (accel_slot_rank(node, i) != 1)
            continue;
        if (accel_slot_size(node, i, 0) == 1)
            accel_links_seen(l, i, 0);
        else
            side[count++] = accel_side_whole(i, 0);
    }
    if (more)
        side[count++] = *more;
    accel_links_tie(l, n, count, side);
}

static void see_scalars(struct accel_links *l)
{
    static const int slots[] = {ACCEL_Q_X_SCALE, ACCEL_Q_X_ZERO, ACCEL_Q_Y_SCALE, ACCEL_Q_Y_ZERO};
    for (int i = 0; i < 4; i++)
        if (accel_slot_rank(l->node, slots[i]) == 1 && accel_slot_size(l->node, slots[i], 0) == 1)
            accel_links_seen(l, slots[i], 0);
}

void accel_q_conv_links(struct accel_links *l, int64_t group)
{
    const struct accel_node *n = l->node;
    int y = accel_link_out(n, 0);
    int64_t out = accel_slot_size(n, ACCEL_Q_W, 0), in = accel_slot_size(n, ACCEL_Q_X, 1);
    if (accel_slot_rank(n, ACCEL_Q_W) < 3 || accel_slot_rank(n, y) < 3)
        return;
    bool depthwise = group > 1 && group == in && group == out;
    if (group != 1 && !depthwise)
        return;
    see_scalars(l);
    accel_links_pair(l, ACCEL_Q_X, 0, y, 0);
    if (depthwise) {
        struct accel_side x = accel_side_whole(ACCEL_Q_X, 1);
        tie_outputs(l, out, 0, 1, &x);
        return;
    }
    accel_links_pair(l, ACCEL_Q_X, 1, ACCEL_Q_W, 1);
    accel_links_need0(l, 2, (const struct accel_axis[]){{ACCEL_Q_X, 1}, {ACCEL_Q_W, 1}});
    tie_outputs(l, out, 0, 1, NULL);
}

void accel_q_conv_zero(struct accel_zero *z)
{
    const struct accel_node *n = z->links->node;
    bool bias = !accel_operand(n, ACCEL_Q_BIAS) || accel_zero_get(z, ACCEL_Q_BIAS, 0) == 0;
    if (bias && accel_zero_get(z, ACCEL_Q_W, 0) == 0)
        accel_zero_set(z, accel_link_out(n, 0), 1, 0);
}

void accel_q_matmul_links(struct accel_links *l)
{
    const struct accel_node *n = l->node;
    int y = accel_link_out(n, 0), rank = accel_slot_rank(n, ACCEL_Q_X);
    if (rank < 2 || accel_slot_rank(n, ACCEL_Q_W) != 2 || accel_slot_rank(n, y) != rank)
        return;
    see_scalars(l);
    for (int axis = 0; axis < rank - 1; axis++)
        accel_links_pair(l, ACCEL_Q_X, axis, y, axis);
    accel_links_pair(l, ACCEL_Q_X, rank - 1, ACCEL_Q_W, 0);
    accel_links_need0(l, 2, (const struct accel_axis[]){{ACCEL_Q_X, rank - 1}, {ACCEL_Q_W, 0}});
    tie_outputs(l, accel_slot_size(n, ACCEL_Q_W, 1), 1, rank - 1, NULL);
}

void accel_q_matmul_zero(struct accel_zero *z)
{
    const struct accel_node *n = z->links->node;
    int rank = accel_slot_rank(n, ACCEL_Q_X);
    if (accel_zero_get(z, ACCEL_Q_W, 1) == 0)
        accel_zero_set(z, accel_link_out(n, 0), rank - 1, 0);
}
