/* attention_links.h - what fused attention says about cutting: whole heads. */
#ifndef ACCEL_OPS_ATTENTION_LINKS_H
#define ACCEL_OPS_ATTENTION_LINKS_H

#include "graph/links.h"
#include "graph/resize.h"

/* One weight for Q, K and V: columns [q, q, v]; slots X, weight, bias; Y is output 0. */
struct accel_packed_heads {
    int64_t heads, q, v;
};
void accel_packed_links(struct accel_links *l, const struct accel_packed_heads *h);
void accel_packed_zero(struct accel_zero *z);
/* Heads that are left. */
int64_t accel_packed_left(const struct accel_resize *r, const struct accel_packed_heads *h);

/* Q, K, V as operands 0, 1, 2 [B S width]; `heads` of Q for kv_heads of K and V. bias: the slot of
 * one for all three behind each other, -1: none. past: slot of past keys, the values' is next; -1:
 * none. */
struct accel_split_heads {
    int64_t heads, kv_heads;
    int bias, past;
};
void accel_split_links(struct accel_links *l, const struct accel_split_heads *h);
void accel_split_zero(struct accel_zero *z, const struct accel_split_heads *h);
/* Heads of K and V that are left. */
int64_t accel_split_left(const struct accel_resize *r, const struct accel_split_heads *h);

#endif
