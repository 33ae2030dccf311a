/* rnn.h - what recurrent operators share: parameters, gate activations, the cells. */
#ifndef ACCEL_OPS_RNN_H
#define ACCEL_OPS_RNN_H

#include "graph/op.h"
#include "ops/real.h"

struct accel_rnn {
    int gates; /* 4 LSTM, 3 GRU, 1 RNN */
    bool transposed;
    const char *type; /* NNI's name */
};

/* One activation of a gate, with its two numbers. */
struct accel_rnn_gate {
    double (*f)(double x, double alpha, double beta);
    double alpha, beta;
};

struct accel_rnn_params {
    int64_t hidden;     /* 0: not said */
    int64_t directions; /* 1 or 2 */
    bool reverse, batch_first, input_forget, linear_before_reset;
    double clip;                      /* INFINITY: none */
    struct accel_rnn_gate gate[2][3]; /* f, g, h of each direction */
};

/* Reads activations, activation_alpha, activation_beta, clip and the flags. EMODEL for names that
 * ONNX does not have. */
enum accel_err accel_rnn_read(struct accel_rnn_params *p, const struct accel_node *n,
                              int gates) ACCEL_CHECKED;

enum accel_err accel_rnn_forward(const struct accel_call *c);
size_t accel_rnn_scratch(const struct accel_call *c);
/* With quantised weights (rnn_quantized.c). */
enum accel_err accel_rnn_q_forward(const struct accel_call *c);
size_t accel_rnn_q_scratch(const struct accel_call *c);

#endif
