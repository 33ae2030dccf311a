/* reshape_links.h - cutting through operators that give the same elements another shape. */
#ifndef ACCEL_OPS_RESHAPE_LINKS_H
#define ACCEL_OPS_RESHAPE_LINKS_H

#include "graph/links.h"

/* Input 0 and output 0 hold the same elements in the same order. Axes that stay are tied; an axis
 * that is split or merged offers its factors, of which one can be taken. `open`: axis of the output
 * whose size is written as -1, or -1; a symbolic size that is made of several factors must be able
 * to become -1. */
void accel_reshape_links(struct accel_links *l, int open);
void accel_reshape_zero(struct accel_zero *z, int open);

#endif
