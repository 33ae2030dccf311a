/* span.h - places for values in one block: values that live at the same time do not overlap. */
#ifndef ACCEL_EXEC_SPAN_H
#define ACCEL_EXEC_SPAN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ACCEL_SPAN_ALIGN ((uint64_t)64)

struct accel_span {
    uint64_t size;   /* bytes, > 0, a multiple of ACCEL_SPAN_ALIGN */
    size_t from, to; /* steps of its life, both included */
    uint64_t offset; /* the result, a multiple of ACCEL_SPAN_ALIGN */
    void *owner;     /* the caller's */
};

/**
 * Gives every span its offset. The spans change their order.
 *
 * @param[out] size  bytes of the block
 * @param span       [n]
 * @return ENOMEM also when the sizes add up to more than 64 bits hold
 * @cost n log n; up to ACCEL_SPAN_EXACT spans: n^2, and a tighter block
 */
enum accel_err accel_spans_place(uint64_t *size, struct accel_span *span, size_t n) ACCEL_CHECKED;

#define ACCEL_SPAN_EXACT 2000

#endif
