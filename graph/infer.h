/* infer.h - shapes and types of every value, with constant propagation. */
#ifndef ACCEL_GRAPH_INFER_H
#define ACCEL_GRAPH_INFER_H

#include "graph/graph.h"

/* Infers all graphs of the model anew: resets every value to what the file declares for inputs and
 * constants, then goes through the nodes in order. Declared shapes of other values fill in what
 * inference leaves open and are never believed against it (a contradiction is a warning in
 * model->log). A node whose infer fails is an error only when both sides are numbers: text "node
 * 'NAME' (OP): …". Cost: linear in nodes and their operands. */
enum accel_err accel_model_infer(struct accel_model *m) ACCEL_CHECKED;

/* The nodes of one graph; its inputs have been given shapes. For operators with bodies (If, Loop,
 * Scan). Leaves the outputs unknown when bodies are inferred over and over (nested loops and calls
 * of a hostile file). */
enum accel_err accel_graph_infer(struct accel_graph *g) ACCEL_CHECKED;

/* Gives a body's input the type, shape and contents of a value from outside; NULL: unknown. */
enum accel_err accel_infer_bind(struct accel_value *inner, struct accel_value *outer) ACCEL_CHECKED;

/* Before a function's body is run for a call: its nodes get the attributes of this call. */
enum accel_err accel_infer_enter(const struct accel_node *call) ACCEL_CHECKED;

/* Multiply-adds of the nodes of a graph as it was inferred last; -1 when a shape is unknown. */
int64_t accel_graph_macs(const struct accel_graph *g);

/* Multiply-adds of a node, bodies and function calls included; -1 when a shape is unknown. */
int64_t accel_node_macs(const struct accel_node *n);

/* Multiply-adds of one sample: infers with batch symbols (symbolic first axis of graph inputs)
 * bound to 1, divides by a fixed batch, and restores the inference. -1 when a shape stays unknown.
 */
enum accel_err accel_model_macs(int64_t *out, struct accel_model *m) ACCEL_CHECKED;

/* The same, calling visit(ctx, batch) while the shapes are those that were counted: there
 * accel_node_macs(n) / batch is a node's share of one sample. Not called when inference fails with
 * the symbols bound. */
enum accel_err accel_model_macs_visit(int64_t *out, struct accel_model *m,
                                      void (*visit)(void *ctx, int64_t batch),
                                      void *ctx) ACCEL_CHECKED;

#endif
