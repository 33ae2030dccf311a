/* real.h - the type that plain kernels compute with. They are written once over `real`; a build
 * that defines ACCEL_REAL_IS_DOUBLE has them for double graphs. */
#ifndef ACCEL_OPS_REAL_H
#define ACCEL_OPS_REAL_H

#ifdef ACCEL_REAL_IS_DOUBLE
typedef double real;
#else
typedef float real;
#endif

#endif
