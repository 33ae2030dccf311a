/* tape.h - running a model forwards and backwards: what a training step needs of it.
 *
 *     accel_tape_new(&t, model, &options);
 *     accel_tape_set_input(t, 0, &x);            // copied
 *     accel_tape_forward(t);                     // statistics of the batch, dropout
 *     loss(accel_tape_head(t, 0), accel_tape_head_gradient(t, 0).data);
 *     accel_tape_backward(t, false);             // flat->grad = dL/dw
 *     ... flat->weight -= ...
 *     accel_tape_store(t);                       // weights and statistics back into the model
 *
 * Everything is settled when the inputs have their sizes: later steps of the same sizes allocate
 * nothing. Real values are float while the tape runs, or double in models of float64; whole numbers
 * are int64_t. */
#ifndef ACCEL_EXEC_TAPE_H
#define ACCEL_EXEC_TAPE_H

#include "device/device.h"
#include "graph/graph.h"
#include "graph/op.h"

struct accel_tape;

/* A trainable weight: elements at … at + n - 1 of the flat buffers, row-major. */
struct accel_parameter {
    const struct accel_value *value;
    int64_t at, n;
};

/* All trainable weights behind each other, so that one pass updates them. */
struct accel_flat {
    enum accel_dtype dtype; /* ACCEL_F32 or ACCEL_F64 */
    int64_t n;              /* elements; each parameter begins at a multiple of 16, what lies
                               between is zero */
    void *weight, *grad;    /* [n] */
    struct accel_parameter *parameter; /* [n_parameter] in the order of the graph's values */
    size_t n_parameter;
};

struct accel_tape_options {
    struct accel_device *device; /* for fast kernels, outlives the tape; NULL: plain kernels only */
    bool bf16;                   /* products read their operands as bfloat16 */
    const struct accel_value *const *head; /* [n_head] what the loss reads; NULL: the outputs */
    int n_head;
    /* Whether a constant is to be trained; asked for constants of real numbers of the main graph.
     */
    bool (*trains)(void *ctx, const struct accel_value *v);
    void *trains_ctx;
    bool frozen_norms; /* batch norms use their running statistics */
    uint64_t seed;     /* of what RANDOM operators draw */
};

/* Errors: ENOSUP lists all operators without a gradient on the way from a weight to a head, and the
 * weights they cut off; EARG when no weight is left to train. Cost: the weights' bytes. */
enum accel_err accel_tape_new(struct accel_tape **out, struct accel_model *m,
                              const struct accel_tape_options *opt) ACCEL_CHECKED;
void accel_tape_free(struct accel_tape *t);

/* Inputs are those of the graph that are no constants, in its order. */
int accel_tape_n_inputs(const struct accel_tape *t);
const struct accel_value *accel_tape_input(const struct accel_tape *t, int i);
/* Copies the data. EARG names the input and both sides when type or shape do not fit the model. */
enum accel_err accel_tape_set_input(struct accel_tape *t, int i,
                                    const struct accel_array *a) ACCEL_CHECKED;

/* The forward half of a step. Errors as accel_plan_run(). */
enum accel_err accel_tape_forward(struct accel_tape *t) ACCEL_CHECKED;

/* What a head is; row-major, float or double. Borrowed until the next forward. */
const struct accel_array *accel_tape_head(const struct accel_tape *t, int i);
/* Where the caller writes dL/dhead before backward, of the head's type and size. All zero after
 * each forward. */
struct accel_array accel_tape_head_gradient(const struct accel_tape *t, int i);

/* The backward half: flat->grad becomes the gradients, or grows by them. */
enum accel_err accel_tape_backward(struct accel_tape *t, bool add) ACCEL_CHECKED;

struct accel_flat *accel_tape_flat(struct accel_tape *t);

/* Dropout and the like draw from this step on as in the run that counted to `step`. */
void accel_tape_set_step(struct accel_tape *t, uint64_t step);

/* Running statistics that forward changes: [*n] values and their elements. */
size_t accel_tape_n_statistics(const struct accel_tape *t);
const struct accel_value *accel_tape_statistic(const struct accel_tape *t, size_t i,
                                               struct accel_array *a);

/* Runs the last forward again, with a look at every result: the first node that makes something
 * else than numbers (NaN or infinity); NULL: none. For messages: running statistics move on. */
enum accel_err accel_tape_find_nan(struct accel_tape *t,
                                   const struct accel_node **node) ACCEL_CHECKED;

/* Writes weights and statistics into the model's tensors, rounded to their types. */
enum accel_err accel_tape_store(struct accel_tape *t) ACCEL_CHECKED;

/* Bytes: the block of values and gradients, and the flat buffers. */
uint64_t accel_tape_block_size(const struct accel_tape *t);

#endif
