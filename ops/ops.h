/* ops.h - the operator table, generated from the files op_*.c. */
#ifndef ACCEL_OPS_OPS_H
#define ACCEL_OPS_OPS_H

#include "graph/op.h"

/* Every operator, ended by NULL, walls included. */
extern const struct accel_op *const accel_op_table[];
int accel_op_count(void);

/* The operator of this op_type and domain ("" and "ai.onnx" are the same), or NULL. Constant time.
 */
const struct accel_op *accel_op_find(const char *name, const char *domain);

#endif
