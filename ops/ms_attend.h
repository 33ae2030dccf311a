/* ms_attend.h - kernels of com.microsoft's attention, and what they share with its shapes. */
#ifndef ACCEL_OPS_MS_ATTEND_H
#define ACCEL_OPS_MS_ATTEND_H

#include "graph/op.h"

struct accel_ms_attention_params {
    int64_t heads, kv_heads;
    const int64_t *sizes; /* qkv_hidden_sizes [3], or NULL */
};

struct accel_ms_attention {
    int past;       /* slot of the past state; -1: none */
    bool quantised; /* QAttention */
};

/* Attention and QAttention. */
enum accel_err accel_ms_attention(const struct accel_call *c);
size_t accel_ms_attention_scratch(const struct accel_call *c);

/* MultiHeadAttention. */
enum accel_err accel_ms_multi(const struct accel_call *c);
size_t accel_ms_multi_scratch(const struct accel_call *c);

/* GroupQueryAttention. */
enum accel_err accel_ms_group(const struct accel_call *c);
size_t accel_ms_group_scratch(const struct accel_call *c);

#endif
