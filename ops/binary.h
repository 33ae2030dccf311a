/* binary.h - broadcasting of two inputs as every opset has it, for op_binary.c and op_power.c. */
#ifndef ACCEL_OPS_BINARY_H
#define ACCEL_OPS_BINARY_H

#include "graph/op.h"

struct accel_binary_params {
    bool one_way;  /* opset < 7: b is laid onto a */
    bool has_axis; /* … from this axis of a on, else at its end */
    int64_t axis;
    int64_t mode; /* Mod: fmod; BitShift: 1 for LEFT */
};

enum accel_err accel_binary_parse(struct accel_node *n, int opset);

/* Output 0: `dtype`, and the shape that inputs 0 and 1 broadcast to. */
enum accel_err accel_binary_infer(struct accel_node *n, enum accel_dtype dtype);

/* Ties by NumPy's rule; nothing where an old opset's `axis` lays b elsewhere. */
void accel_binary_links(const struct accel_node *n, struct accel_links *l);

/* Where the operands lie on the output, for accel_op_meet(). */
enum accel_err accel_binary_at(int *a_at, int *b_at, const struct accel_call *c);

#endif
