/* operand.h - what infer functions do with the inputs and outputs of a node. */
#ifndef ACCEL_OPS_OPERAND_H
#define ACCEL_OPS_OPERAND_H

#include "graph/op.h"

/* Input i, or NULL when it is left out. */
static inline struct accel_value *accel_operand(const struct accel_node *n, int i)
{
    return i >= 0 && i < n->n_in ? n->in[i] : NULL;
}

/* Rank of input i; -1 when it is unknown or the input is left out. */
static inline int accel_operand_rank(const struct accel_node *n, int i)
{
    const struct accel_value *v = accel_operand(n, i);
    return v ? v->shape.rank : -1;
}

/* Type of input i; UNDEFINED when it is unknown or the input is left out. */
static inline enum accel_dtype accel_operand_dtype(const struct accel_node *n, int i)
{
    const struct accel_value *v = accel_operand(n, i);
    return v ? v->dtype : ACCEL_UNDEFINED;
}

/* Dim of an axis, counted from the end when negative; unknown when there is no such axis. */
struct accel_dim accel_operand_dim(const struct accel_node *n, int i, int axis);

/* The symbols that dims of this node's operands belong to. */
static inline struct accel_symbols *accel_operand_symbols(const struct accel_node *n)
{
    return &n->graph->model->symbols;
}

/* A shape of `rank` unknown dims, in the arena of the model. Rank -1: the unknown shape. */
enum accel_err accel_shape_new(struct accel_shape *out, const struct accel_node *n,
                               int rank) ACCEL_CHECKED;
enum accel_err accel_shape_copy(struct accel_shape *out, const struct accel_node *n,
                                const struct accel_shape *from) ACCEL_CHECKED;

/* Sets type and shape of an output; nothing when the node has no such output. accel_result_like()
 * copies the shape of a value; NULL: unknown. */
void accel_result_set(struct accel_node *n, int slot, enum accel_dtype dtype,
                      struct accel_shape shape);
enum accel_err accel_result_like(struct accel_node *n, int slot, enum accel_dtype dtype,
                                 const struct accel_value *like) ACCEL_CHECKED;
/* A rank of up to 4 given by its dims. */
enum accel_err accel_result_dims(struct accel_node *n, int slot, enum accel_dtype dtype, int rank,
                                 const struct accel_dim *dim) ACCEL_CHECKED;

/* Shape that inputs first … first + count - 1 stretch to by NumPy's rule; of unknown rank when one
 * of them is. ESHAPE names axis and sizes. */
enum accel_err accel_operands_broadcast(struct accel_shape *out, const struct accel_node *n,
                                        int first, int count) ACCEL_CHECKED;
/* The same for two dims; false when they contradict each other. */
bool accel_dim_stretch(struct accel_dim *out, struct accel_dim a, struct accel_dim b);

/* The better known one of two dims that must be equal; false when they contradict each other. */
bool accel_dim_join(struct accel_dim *out, struct accel_dim a, struct accel_dim b);

/* An axis attribute counted from the end when negative: 0 <= *out < rank. ESHAPE otherwise. */
enum accel_err accel_axis_of(int *out, int64_t axis, int rank) ACCEL_CHECKED;

/* ESHAPE unless the input is left out, or its rank is unknown or `rank`. */
enum accel_err accel_operand_check_rank(const struct accel_node *n, int i, int rank) ACCEL_CHECKED;

/* ESHAPE when a 1-D parameter of `of` channels has another length; knows nothing, says nothing.
 * `what` names the parameter. */
enum accel_err accel_operand_check_vector(const struct accel_node *n, int i, struct accel_dim of,
                                          const char *what) ACCEL_CHECKED;

/* a * b, -1 when one of them is (unknown) or the product overflows. */
static inline int64_t accel_macs_mul(int64_t a, int64_t b)
{
    int64_t r;
    return a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r) ? -1 : r;
}
static inline int64_t accel_macs_add(int64_t a, int64_t b)
{
    int64_t r;
    return a < 0 || b < 0 || __builtin_add_overflow(a, b, &r) ? -1 : r;
}

/* Elements of an input or output, -1 when not known. */
int64_t accel_operand_count(const struct accel_node *n, int i);
int64_t accel_result_count(const struct accel_node *n, int slot);

#endif
