/* A head stands or falls with its columns of Q, K and V and its part of the output. What a cut head
 * gives out in the masked model is what its values are, since its weights over the positions add up
 * to 1; no sum runs over heads inside. The axis of positions is summed over by the softmax: nothing
 * is said about it. Biases per head, caches that somebody reads: nothing is said at all. */
#include "ops/attention_links.h"

#include <math.h>

#include "ops/link_util.h"

/* No more than `slots` inputs and one output are there. */
static bool is_simple(const struct accel_node *n, int slots)
{
    for (int i = slots; i < n->n_in; i++)
        if (n->in[i])
            return false;
    for (int i = 1; i < n->n_out; i++)
        if (accel_link_has_out(n, i))
            return false;
    return true;
}

/* ------------------------------------------------------------------ one weight for all */

void accel_packed_links(struct accel_links *l, const struct accel_packed_heads *h)
{
    enum { MASK = 4 }; /* inputs up to the mask: X, weight, bias, mask */
    const struct accel_node *n = l->node;
    int y = accel_link_out(n, 0), bias = accel_link_in(n, 2);
    if (!is_simple(n, MASK) || h->heads < 1 || h->q < h->heads || h->v < h->heads ||
        h->q % h->heads || h->v % h->heads || accel_slot_size(n, 1, 1) != 2 * h->q + h->v)
        return;
    int64_t dq = h->q / h->heads, dv = h->v / h->heads;
    accel_links_pair(l, 0, 0, y, 0);
    accel_links_pair(l, 0, 2, 1, 0);
    accel_links_need0(l, 2, (const struct accel_axis[]){{0, 2}, {1, 0}});
    accel_links_tie(l, h->heads, 5,
                    (const struct accel_side[]){accel_side_rep(y, 2, dv),
                                                accel_side_of(1, 1, 0, 2, h->q, dq),
                                                accel_side_of(1, 1, 2 * h->q, 1, 0, dv),
                                                accel_side_of(bias, 0, 0, 2, h->q, dq),
                                                accel_side_of(bias, 0, 2 * h->q, 1, 0, dv)});
}

void accel_packed_zero(struct accel_zero *z)
{
    const struct accel_node *n = z->links->node;
    float bias = accel_operand(n, 2) ? accel_zero_get(z, 2, 0) : 0;
    if (accel_zero_get(z, 1, 1) == 0 && !isnan(bias))
        accel_zero_set(z, accel_link_out(n, 0), 2, bias);
}

int64_t accel_packed_left(const struct accel_resize *r, const struct accel_packed_heads *h)
{
    return accel_resize_now(r, accel_link_out(r->node, 0), 2) / (h->v / h->heads);
}

/* ------------------------------------------------------------------ three operands */

void accel_split_links(struct accel_links *l, const struct accel_split_heads *h)
{
    const struct accel_node *n = l->node;
    int y = accel_link_out(n, 0), past = h->past < 0 ? -1 : accel_link_in(n, h->past);
    if (h->kv_heads < 1 || h->heads % h->kv_heads)
        return;
    for (int i = 0; i < 3; i++)
        if (!accel_operand(n, i) || accel_slot_rank(n, i) != 3)
            return;
    int64_t group = h->heads / h->kv_heads, q = accel_slot_size(n, 0, 2);
    int64_t k = accel_slot_size(n, 1, 2), v = accel_slot_size(n, 2, 2);
    if (q % h->heads || k % h->kv_heads || v % h->kv_heads || q / h->heads != k / h->kv_heads ||
        q < h->heads || v < h->kv_heads)
        return;
    int64_t dq = k / h->kv_heads, dv = v / h->kv_heads;
    int bias = h->bias < 0 ? -1 : accel_link_in(n, h->bias);
    struct accel_side side[11] = {
        accel_side_rep(y, 2, group * dv),
        accel_side_rep(0, 2, group * dq),
        accel_side_rep(1, 2, dq),
        accel_side_rep(2, 2, dv),
        accel_side_of(bias, 0, 0, 1, 0, group * dq),
        accel_side_of(bias, 0, q, 1, 0, dq),
        accel_side_of(bias, 0, q + k, 1, 0, dv),
        accel_side_whole(past, 1),
        accel_side_whole(past < 0 ? -1 : accel_link_in(n, h->past + 1), 1),
        accel_side_whole(n->n_out > 1 && n->out[1] ? y + 1 : -1, 1),
        accel_side_whole(n->n_out > 2 && n->out[2] ? y + 2 : -1, 1)};
    for (int i = 0; i < 3; i++)
        accel_links_pair(l, i, 0, y, 0);
    accel_links_tie(l, h->kv_heads, 11, side);
}

void accel_split_zero(struct accel_zero *z, const struct accel_split_heads *h)
{
    const struct accel_node *n = z->links->node;
    float value = accel_zero_get(z, 2, 2);
    float bias = h->bias >= 0 && accel_operand(n, h->bias) ? accel_zero_get(z, h->bias, 0) : 0;
    bool past = h->past >= 0 && accel_operand(n, h->past);
    if (!past && !isnan(value) && !isnan(bias))
        accel_zero_set(z, accel_link_out(n, 0), 2, value + bias);
}

int64_t accel_split_left(const struct accel_resize *r, const struct accel_split_heads *h)
{
    return accel_resize_now(r, 1, 2) / (accel_resize_was(r, 1, 2) / h->kv_heads);
}
