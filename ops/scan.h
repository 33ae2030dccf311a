/* scan.h - Scan: its parameters, and the kernel. */
#ifndef ACCEL_OPS_SCAN_H
#define ACCEL_OPS_SCAN_H

#include "graph/op.h"

struct accel_scan {
    int64_t n_scan;
    int old; /* 1 in opset 8: input 0 is sequence_lens, axis 0 the batch, axis 1 the sequence */
    const int64_t *in_axis, *out_axis, *in_back, *out_back; /* back: 1 from the end */
    size_t n_in_axis, n_out_axis, n_in_back, n_out_back;
};

enum accel_err accel_scan_forward(const struct accel_call *c);
size_t accel_scan_scratch(const struct accel_call *c);

#endif
