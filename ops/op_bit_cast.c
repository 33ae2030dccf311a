/* BitCast: the same bits read as another type of the same width. */
#include "ops/op_util.h"

static enum accel_err infer(struct accel_node *n)
{
    int64_t to;
    ACCEL_TRY(accel_attr_int(&to, n, "to", 0));
    const struct accel_dtype_info *out =
        to > 0 && to < ACCEL_N_DTYPES ? accel_dtype_find((int)to) : NULL;
    const struct accel_dtype_info *in = accel_dtype_find((int)accel_operand_dtype(n, 0));
    if (!out || out->bits < 1)
        return accel_fail(ACCEL_EMODEL, "attribute 'to' is %lld", (long long)to);
    if (accel_operand_dtype(n, 0) != ACCEL_UNDEFINED && in && in->bits != out->bits)
        return accel_fail(ACCEL_ESHAPE, "%s has %d bits, %s has %d", in->name, in->bits, out->name,
                          out->bits);
    return accel_result_like(n, 0, (enum accel_dtype)to, accel_operand(n, 0));
}

static const struct accel_attr_rule attrs[] = {{"to", ACCEL_ATTR_INT, ACCEL_REQUIRED}, {0}};
static const char *const examples[] = {"2x3 | to=6", "i64:4 | to=11", NULL};

const struct accel_op accel_op_bit_cast = {
    .name = "BitCast",
    .domain = "",
    .since = 26,
    .min_in = 1,
    .max_in = 1,
    .min_out = 1,
    .max_out = 1,
    .flags = ACCEL_OP_MOVES | ACCEL_OP_RANDOM, /* constants are known as numbers, not as bits */
    .attrs = attrs,
    .infer = infer,
    .forward = accel_kernel_copy,
    .examples = examples,
};
