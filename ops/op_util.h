/* op_util.h - what the operators that move data share: lists that are an attribute in one opset and
 * an input in another, marks on axes, and copying of elements whatever their type. */
#ifndef ACCEL_OPS_OP_UTIL_H
#define ACCEL_OPS_OP_UTIL_H

#include <string.h>

#include "graph/attr.h"
#include "graph/constprop.h"
#include "graph/op.h"
#include "ops/operand.h"

/* Room for the parameters of a node, zeroed; sets node->params. NULL: no memory (recorded). */
void *accel_op_params(struct accel_node *n, size_t size);

/* Zeroed room that lives as long as the inference; NULL: no memory (recorded). */
void *accel_op_scratch(const struct accel_node *n, int64_t count, size_t size);

/* A list of integers, from an attribute or an input. */
struct accel_list {
    bool given;        /* there is one */
    bool known;        /* … and its contents are */
    int64_t n;         /* length; -1: not known */
    const int64_t *at; /* [n] when known */
};

/* Input `slot` when the node has it, else the attribute `attr` (NULL: none). */
enum accel_err accel_list_get(struct accel_list *out, const struct accel_node *n, const char *attr,
                              int slot) ACCEL_CHECKED;

/* One integer from an input, as it is in every trial: *known false when it is not known or real. */
void accel_scalar_get(bool *known, int64_t probe[ACCEL_N_PROBES], const struct accel_node *n,
                      int slot);

/* mark[axis] = true for each axis of the list, counted from the end when negative. ESHAPE when one
 * lies outside of the rank or comes twice. */
enum accel_err accel_axes_mark(bool *mark, const struct accel_list *axes, int rank) ACCEL_CHECKED;

/* Dims from a vector of sizes (input `slot`): its length is the rank. Elements that are not known
 * or negative become unknown dims. */
enum accel_err accel_shape_from_input(struct accel_shape *out, const struct accel_node *n,
                                      int slot) ACCEL_CHECKED;

/* a + b, with symbols where numbers are not known. */
enum accel_err accel_dim_add(struct accel_dim *out, struct accel_symbols *s, struct accel_dim a,
                             struct accel_dim b) ACCEL_CHECKED;

/* Bytes of one stored element as kernels that move data see it. */
static inline size_t accel_array_width(const struct accel_array *a)
{
    const struct accel_dtype_info *t = accel_dtype_find(a->dtype);
    return t && t->bits > 8 ? (size_t)t->bits / 8 : 1;
}

/* Copies `count` elements of `width` bytes between two arrays. */
static inline void accel_array_copy(const struct accel_array *y, int64_t to,
                                    const struct accel_array *x, int64_t from, int64_t count)
{
    size_t w = accel_array_width(y);
    if (count > 0)
        memcpy((char *)y->data + (size_t)to * w, (const char *)x->data + (size_t)from * w,
               (size_t)count * w);
}

/* Product of dims [from, to). */
static inline int64_t accel_array_span(const struct accel_array *a, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n = (int64_t)((uint64_t)n * (uint64_t)a->dim[i]);
    return n;
}

/* The kernel of operators whose output is input 0 in another shape. */
enum accel_err accel_kernel_copy(const struct accel_call *c);

/* carry of such operators: the input axis of the same size with as many elements before it. */
int accel_carry_by_position(const struct accel_node *n, int axis);

#endif
