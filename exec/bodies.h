/* bodies.h - running the graphs of a node's attributes. */
#ifndef ACCEL_EXEC_BODIES_H
#define ACCEL_EXEC_BODIES_H

#include "exec/plan_int.h"

/* Calls the operator's kernel with callbacks that run its bodies in frames below f. */
enum accel_err accel_bodies_run(struct accel_plan *p, struct accel_frame *f,
                                struct accel_call *call) ACCEL_CHECKED;

#endif
