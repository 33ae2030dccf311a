/* Sequences: lists of tensors, whose element types and shapes are not followed. What comes out of
 * one has an unknown shape, unless the file declares it. */
#include <limits.h>

#include "ops/op_util.h"

/* Output 0 is a sequence. */
static enum accel_err list_infer(struct accel_node *n)
{
    if (n->n_out && n->out[0])
        n->out[0]->is_tensor = false;
    return ACCEL_OK;
}

static enum accel_err item_infer(struct accel_node *n)
{
    (void)n;
    return ACCEL_OK;
}

static enum accel_err length_infer(struct accel_node *n)
{
    return accel_result_dims(n, 0, ACCEL_I64, 0, NULL);
}

static const struct accel_attr_rule empty_attrs[] = {{"dtype", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule split_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"keepdims", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule concat_attrs[] = {
    {"axis", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {"new_axis", ACCEL_ATTR_INT, 0}, {0}};

#define ROW(op_name, n_min, n_max, rules, inf)                                                     \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = 11, .min_in = (n_min), .max_in = (n_max),        \
        .min_out = 1, .max_out = 1, .attrs = (rules), .infer = (inf),                              \
    }

const struct accel_op accel_op_sequence_construct =
    ROW("SequenceConstruct", 1, INT_MAX, NULL, list_infer);
const struct accel_op accel_op_sequence_empty = ROW("SequenceEmpty", 0, 0, empty_attrs, list_infer);
const struct accel_op accel_op_sequence_insert = ROW("SequenceInsert", 2, 3, NULL, list_infer);
const struct accel_op accel_op_sequence_erase = ROW("SequenceErase", 1, 2, NULL, list_infer);
const struct accel_op accel_op_split_to_sequence =
    ROW("SplitToSequence", 1, 2, split_attrs, list_infer);
const struct accel_op accel_op_sequence_at = ROW("SequenceAt", 2, 2, NULL, item_infer);
const struct accel_op accel_op_concat_from_sequence =
    ROW("ConcatFromSequence", 1, 1, concat_attrs, item_infer);
const struct accel_op accel_op_sequence_length = ROW("SequenceLength", 1, 1, NULL, length_infer);
