/* link_util.h - rules about cutting that many operators share (graph/links.h): element-wise work,
 * and axes that go from an input to an output as they are. */
#ifndef ACCEL_OPS_LINK_UTIL_H
#define ACCEL_OPS_LINK_UTIL_H

#include "graph/links.h"
#include "graph/resize.h"
#include "ops/operand.h"

/* Slot of output i. */
static inline int accel_link_out(const struct accel_node *n, int i)
{
    return n->n_in + i;
}

/* Slot of input i, -1 when it is left out: behind the last input begin the outputs. */
static inline int accel_link_in(const struct accel_node *n, int i)
{
    return accel_operand(n, i) ? i : -1;
}

/* An output that somebody may see. */
static inline bool accel_link_has_out(const struct accel_node *n, int i)
{
    return i < n->n_out && n->out[i] && (n->out[i]->n_use || n->out[i]->is_output);
}

/* Ties axes [from, to) of two slots, each with its equal. */
void accel_link_range(struct accel_links *l, int slot_a, int slot_b, int from, int to);

/* Copies K along axes [from, to); with only0 only where it is 0. */
void accel_zero_range(struct accel_zero *z, int from_slot, int to_slot, int from, int to,
                      bool only0);

/* ------------------------------------------------------------------ whole rows of a table */

/* Input 0 and all outputs have the same axes. */
void accel_link_unary(const struct accel_node *n, struct accel_links *l);
/* K goes through the kernel, as one element. */
void accel_zero_unary(const struct accel_node *n, struct accel_zero *z);
/* Elements are copied: K stays. */
void accel_zero_moved(const struct accel_node *n, struct accel_zero *z);

/* All inputs are stretched to output 0 by NumPy's rule; an operand of size 1 is not a side. */
void accel_link_broadcast(const struct accel_node *n, struct accel_links *l);
/* K of the operands through the kernel. */
void accel_zero_broadcast(const struct accel_node *n, struct accel_zero *z);

/* ------------------------------------------------------------------ pieces */

/* The axis of input `slot` that is tied to `axis` of output 0 when inputs are stretched; -1: it is
 * stretched along it, or has no such axis. */
int accel_link_stretched(const struct accel_node *n, int slot, int axis);

/* K of input `slot` along `axis` of output 0: of its own axis, or the one number it consists of. */
float accel_zero_stretched(const struct accel_zero *z, int slot, int axis);

/* K of output 0 along `axis` from k[n_in] by the kernel: nothing is set when one is unknown, an
 * operand is no float, or the result jumps near them. With a slot of the bits `absorbs` at 0 it is
 * 0 whatever the others are. */
void accel_zero_compute(struct accel_zero *z, int axis, const float *k, unsigned absorbs);

/* accel_zero_compute() for all axes of output 0. */
void accel_zero_absorb(const struct accel_node *n, struct accel_zero *z, unsigned absorbs);

#endif
