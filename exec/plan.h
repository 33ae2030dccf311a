/* plan.h - running a model: memory and shapes are settled once, then it runs many times.
 *
 *     struct accel_plan *plan;
 *     accel_plan_new(&plan, model, &(struct accel_plan_options){0});
 *     accel_plan_set_input(plan, 0, &x);      // dims and data; the data are borrowed until the run
 *     accel_plan_run(plan);
 *     accel_plan_output(plan, 0)->data
 *
 * Values lie in memory in the types that the model declares. Kernels that compute get float or
 * int64_t (graph/op.h); where the stored type is another one, the runner converts at the node's
 * border. One plan may exist per model at a time: it uses the model's inference. */
#ifndef ACCEL_EXEC_PLAN_H
#define ACCEL_EXEC_PLAN_H

#include "device/device.h"
#include "graph/graph.h"
#include "graph/op.h"

struct accel_plan;

/* Called after a node of the main graph ran, with the value it made; borrowed until the next node.
 */
typedef enum accel_err (*accel_watch)(void *ctx, const struct accel_value *v,
                                      const struct accel_array *a);

struct accel_plan_options {
    int64_t max_steps; /* turns that all loops may take together; 0: 10 million */
    accel_watch watch; /* or NULL */
    /* Whether the watcher wants to see a value; NULL: all of them, and nodes are then not joined to
     * chains. Asked when kernels are chosen and after each node. */
    bool (*wants)(void *watch_ctx, const struct accel_value *v);
    void *watch_ctx;
    bool bf16;                   /* the device computes products from bfloat16 operands */
    bool tune;                   /* the device chooses kernels by timing them */
    struct accel_device *device; /* for fast kernels, outlives the plan; NULL: plain kernels only */
};

/* Reads the constants (edits that are to be written applied) and finds a kernel for every node.
 * ENOSUP names all operators without one; "node 'NAME' (OP)" of the first. Cost: the weights'
 * bytes. */
enum accel_err accel_plan_new(struct accel_plan **out, struct accel_model *m,
                              const struct accel_plan_options *opt) ACCEL_CHECKED;
void accel_plan_free(struct accel_plan *p);

/* Inputs are those of the graph that are no constants, in its order. */
int accel_plan_n_inputs(const struct accel_plan *p);
const struct accel_value *accel_plan_input(const struct accel_plan *p, int i);

/* Sets input i for all later runs. EARG names the input and both sides when type or shape do not
 * fit the model; a size that differs from the last run's lets the next one settle the shapes anew.
 */
enum accel_err accel_plan_set_input(struct accel_plan *p, int i,
                                    const struct accel_array *a) ACCEL_CHECKED;

/* Runs all nodes. Errors: EARG (an input was not set), ESHAPE or EMODEL with the node in front (an
 * index out of range, a division by zero, shapes that do not fit), ENOMEM. */
enum accel_err accel_plan_run(struct accel_plan *p) ACCEL_CHECKED;

/* Later runs end after the node with this index of the main graph (outputs behind it are then not
 * there); -1: after the last. What the watcher wants may be another set from now on. */
void accel_plan_stop_after(struct accel_plan *p, int index);

/* Reads a constant of the main graph anew, whose elements changed. */
enum accel_err accel_plan_reload(struct accel_plan *p, const struct accel_value *v) ACCEL_CHECKED;

/* Results of the last run; borrowed until the next. */
int accel_plan_n_outputs(const struct accel_plan *p);
const struct accel_value *accel_plan_output_value(const struct accel_plan *p, int i);
const struct accel_array *accel_plan_output(const struct accel_plan *p, int i);

/* True when the last runs computed float64 values in float32. */
bool accel_plan_in_float(const struct accel_plan *p);

/* Nodes of the main graph that fast kernels run, as of the last run. */
size_t accel_plan_n_fast(const struct accel_plan *p);

/* Bytes of the block that holds the values of known size, and of the constants. */
uint64_t accel_plan_block_size(const struct accel_plan *p);
uint64_t accel_plan_constant_size(const struct accel_plan *p);

#endif
