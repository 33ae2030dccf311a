/* fused.h - the activation that ONNX Runtime's optimizers put behind another operator. */
#ifndef ACCEL_OPS_FUSED_H
#define ACCEL_OPS_FUSED_H

#include "graph/op.h"

struct accel_fused {
    double (*f)(double x, double a, double b);
    double a, b;
};

/* From the attributes `activation` and `activation_params` (FusedConv) or `activation_alpha`,
 * `activation_beta` (FusedGemm). EMODEL for a name that is no activation, and for numbers that are
 * missing. */
enum accel_err accel_fused_read(struct accel_fused *out, const struct accel_node *n) ACCEL_CHECKED;

#endif
