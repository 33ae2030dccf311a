/* chain.h - which operator combines two tensors, and how. */
#ifndef ACCEL_OPS_ONEDNN_CHAIN_H
#define ACCEL_OPS_ONEDNN_CHAIN_H

#include "graph/op.h"
#include "ops/onednn/dnnl_shim.h"

/* True for Add, Mul, Sub, Div and Sum of two; *swaps: a op b = b op a. */
bool accel_dn_arithmetic(enum accel_dn_algo *algo, bool *swaps, const struct accel_node *n);

/* x algo c, or c algo x when !first, as alpha x + beta; false: not of that form. */
bool accel_dn_with_number(struct accel_dn_post *post, enum accel_dn_algo algo, bool first, float c);

/* The shapes are numbers and equal. */
bool accel_dn_same_sizes(const struct accel_value *a, const struct accel_value *b);

#endif
