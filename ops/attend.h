/* attend.h - scaled dot products of queries and keys, for every operator of attention.
 *
 *     Y[b h s] = sum over t of softmax_t(scale * Q[b h s] K[b h t] + bias[b h s t]) V[b h t] */
#ifndef ACCEL_OPS_ATTEND_H
#define ACCEL_OPS_ATTEND_H

#include "graph/op.h"
#include "ops/real.h"

/* [B heads steps size] over elements that lie in steps; the last axis is contiguous. */
struct accel_heads {
    real *at;
    int64_t batch, head, step; /* elements from one to the next */
};

static inline real *accel_heads_at(const struct accel_heads *h, int64_t b, int64_t head, int64_t s)
{
    return h->at + b * h->batch + head * h->head + s * h->step;
}

struct accel_attend {
    int64_t batch, heads, kv_heads; /* kv_heads divides heads */
    int64_t steps, past, fresh;     /* queries; keys of the past, and those behind them */
    int64_t size, v_size;
    double scale, softcap;         /* softcap 0: none */
    double sink;                   /* one more score in the denominator; -INFINITY: none */
    struct accel_heads q, k, v, y; /* k and v: fresh ones */
    struct accel_heads past_k, past_v;
    /* Added to a score; -INFINITY: the key is not looked at, and a row of these gives 0. */
    double (*bias)(const void *ctx, int64_t b, int64_t h, int64_t s, int64_t t);
    const void *ctx;
    real *scores; /* [B heads steps past + fresh], or NULL */
    int stage;    /* of scores: 0 products, 1 after softcap, 2 after bias, 3 after softmax */
    double *row;  /* scratch: batch * heads * (past + fresh) numbers */
};

void accel_attend(const struct accel_attend *a);

/* Bytes of accel_attend.row; SIZE_MAX, which nobody has, when that overflows. */
size_t accel_attend_scratch(int64_t batch, int64_t heads, int64_t total);

/* Writes past and fresh keys (or values) behind each other: [B kv_heads total size]. */
void accel_attend_present(real *to, const struct accel_attend *a, const struct accel_heads *past,
                          const struct accel_heads *fresh, int64_t size);

/* [B heads steps size] with the axes in this order, or folded: [B steps heads*size]. */
struct accel_heads accel_heads_of(real *at, bool folded, int64_t heads, int64_t steps,
                                  int64_t size);

#endif
