/* arith.h - what the arithmetic kernels share: which form an operand is in, integer overflow, and
 * broadcasting of elements. */
#ifndef ACCEL_OPS_ARITH_H
#define ACCEL_OPS_ARITH_H

#include "graph/op.h"

/* True when the operand's elements are int64_t (integers and bool), false when they are real. */
static inline bool accel_op_is_int(const struct accel_array *a)
{
    const struct accel_dtype_info *t = accel_dtype_find(a->dtype);
    return t && t->cls == ACCEL_CLASS_INT;
}

/* The one integer of an operand that may be left out: 0 then. False when it is of another kind. */
static inline bool accel_op_one_int(int64_t *out, const struct accel_call *c, int slot)
{
    const struct accel_array *a = slot < c->node->n_in ? &c->x[slot] : NULL;
    *out = 0;
    if (!a || !a->data)
        return true;
    if (!accel_op_is_int(a) || a->n != 1)
        return false;
    *out = *(const int64_t *)a->data;
    return true;
}

/* What is left of an exact result in an integer type: its low bits, as every runtime computes it.
 * Any non-zero value of bool is 1. */
static inline int64_t accel_int_wrap(int64_t v, enum accel_dtype dtype)
{
    const struct accel_dtype_info *t = accel_dtype_find(dtype);
    if (dtype == ACCEL_BOOL)
        return v != 0;
    if (!t || t->cls != ACCEL_CLASS_INT || t->bits <= 0 || t->bits >= 64)
        return v;
    uint64_t mask = ((uint64_t)1 << t->bits) - 1, low = (uint64_t)v & mask;
    if (t->is_signed && low >> (t->bits - 1))
        low |= ~mask;
    return (int64_t)low;
}

/* Sum, difference and product modulo 2^64, without undefined overflow. */
static inline int64_t accel_int_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}
static inline int64_t accel_int_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}
static inline int64_t accel_int_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* Index of the element of `x` that meets element i of `y` when x's axis 0 lies on y's axis `at` and
 * axes of size 1 are stretched. at = y->rank - x->rank is NumPy's rule. Cost: the rank of x. */
static inline int64_t accel_op_meet(const struct accel_array *x, const struct accel_array *y,
                                    int at, int64_t i)
{
    if (x->n == 1)
        return 0;
    if (x->n == y->n)
        return i;
    int64_t index = 0, step = 1;
    for (int d = y->rank - 1; d >= 0 && d >= at; d--) {
        int64_t c = i % y->dim[d];
        i /= y->dim[d];
        if (d - at >= x->rank)
            continue;
        int64_t size = x->dim[d - at];
        if (size != 1)
            index += c * step;
        step *= size;
    }
    return index;
}

#endif
