/* MatMulNBits, domain com.microsoft: Y [… N] = A [… K] times the transpose of B, whose rows are
 * packed to few bits.
 *
 * Row n of B is ceil(K / block) blocks of block * bits / 8 bytes, the first element in the lowest
 * bits; every block has a scale and a zero point. Zero points are packed like elements, a row on
 * whole bytes, or are floats; without them they are 2^(bits - 1). g_idx names the block of scales
 * of every k. Source: the operator's page. */
#include "base/threads.h"
#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/real.h"

struct nbits_params {
    int64_t k, cols, bits, block;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct nbits_params *p = ACCEL_NEW(&n->graph->model->arena, struct nbits_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&p->k, n, "K", 0));
    ACCEL_TRY(accel_attr_int(&p->cols, n, "N", 0));
    ACCEL_TRY(accel_attr_int(&p->bits, n, "bits", 4));
    ACCEL_TRY(accel_attr_int(&p->block, n, "block_size", 0));
    if (p->bits != 2 && p->bits != 4 && p->bits != 8)
        return accel_fail(ACCEL_EMODEL, "attribute 'bits' is %lld", (long long)p->bits);
    if (p->block < 1 || p->block > (int64_t)1 << 31 || p->block * p->bits % 8)
        return accel_fail(ACCEL_EMODEL, "attribute 'block_size' is %lld", (long long)p->block);
    if (p->k < 1 || p->cols < 1)
        return accel_fail(ACCEL_EMODEL, "attributes K and N are %lld and %lld", (long long)p->k,
                          (long long)p->cols);
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct nbits_params *p = n->params;
    struct accel_dim k = accel_operand_dim(n, 0, -1);
    struct accel_shape y = {-1, NULL};
    if (accel_dim_differs(k, accel_dim_of(p->k)))
        return accel_fail(ACCEL_ESHAPE, "input has %lld columns, attribute K is %lld",
                          (long long)k.n, (long long)p->k);
    if (accel_operand_rank(n, 0) > 0) {
        ACCEL_TRY(accel_shape_copy(&y, n, &n->in[0]->shape));
        y.dim[y.rank - 1] = accel_dim_of(p->cols);
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

static void cost(const struct accel_node *n, struct accel_cost *c)
{
    const struct nbits_params *p = n->params;
    c->macs = accel_macs_mul(accel_result_count(n, 0), p->k);
}

/* The rows of A and Y; what the packed weight holds stays. */
static void links(const struct accel_node *n, struct accel_links *l)
{
    accel_link_range(l, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0) - 1);
}

/* A row of zeros gives zeros, unless there is a bias. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    if (!accel_operand(n, 5))
        accel_zero_range(z, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0) - 1, true);
}

/* ------------------------------------------------------------------ kernel */

enum { A, B, SCALES, ZEROS, GROUPS, BIAS };

static const struct accel_array *operand(const struct accel_call *c, int i)
{
    return i < c->node->n_in && c->x[i].data ? &c->x[i] : NULL;
}

/* Element i of packed ones, from byte `base` of an operand on. */
static int64_t unpack(const struct accel_array *a, int64_t base, int64_t i, int64_t bits)
{
    int64_t byte = ((const int64_t *)a->data)[base + i * bits / 8];
    return byte >> i * bits % 8 & (((int64_t)1 << bits) - 1);
}

static void run_elements(void *ctx, int64_t from, int64_t to)
{
    const struct accel_call *c = ctx;
    const struct nbits_params *p = c->node->params;
    const struct accel_array *zeros = operand(c, ZEROS), *bias = operand(c, BIAS);
    const struct accel_array *groups = operand(c, GROUPS);
    int64_t blocks = (p->k - 1) / p->block + 1, blob = p->block * p->bits / 8;
    int64_t zero_row = (blocks * p->bits + 7) / 8;
    for (int64_t i = from; i < to; i++) {
        int64_t col = i % p->cols;
        const real *a = (const real *)c->x[A].data + i / p->cols * p->k;
        double sum = bias ? (double)((const real *)bias->data)[col] : 0;
        for (int64_t k = 0; k < p->k; k++) {
            int64_t g = groups ? ((const int64_t *)groups->data)[k] : k / p->block;
            int64_t q =
                unpack(&c->x[B], (col * blocks + k / p->block) * blob, k % p->block, p->bits);
            double zero = (double)((int64_t)1 << (p->bits - 1));
            if (zeros)
                zero = accel_op_is_int(zeros)
                           ? (double)unpack(zeros, col * zero_row, g, p->bits)
                           : (double)((const real *)zeros->data)[col * blocks + g];
            double scale = (double)((const real *)c->x[SCALES].data)[col * blocks + g];
            sum += (double)a[k] * ((double)q - zero) * scale;
        }
        ((real *)c->y[0].data)[i] = (real)sum;
    }
}

/* Operand `slot`, when it is there, is whole or real and has n elements; n -1: too many to count.
 */
static enum accel_err check(const struct accel_call *c, int slot, bool whole, int64_t n)
{
    const struct accel_array *a = operand(c, slot);
    if (a && accel_op_is_int(a) != whole)
        return accel_fail(ACCEL_ENOSUP, "'%.200s' is of another type", c->node->in[slot]->name);
    if (a && a->n != n)
        return accel_fail(ACCEL_ESHAPE, "'%.200s' has %lld elements instead of %lld",
                          c->node->in[slot]->name, (long long)a->n, (long long)n);
    return ACCEL_OK;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct nbits_params *p = c->node->params;
    const struct accel_array *zeros = operand(c, ZEROS), *groups = operand(c, GROUPS);
    int64_t blocks = (p->k - 1) / p->block + 1, all = accel_macs_mul(p->cols, blocks);
    bool packed = zeros && accel_op_is_int(zeros);
    if (accel_op_is_int(&c->x[A]))
        return accel_fail(ACCEL_ENOSUP, "an input of integers");
    ACCEL_TRY(check(c, B, true, accel_macs_mul(all, p->block * p->bits / 8)));
    ACCEL_TRY(check(c, SCALES, false, all));
    ACCEL_TRY(check(c, ZEROS, packed,
                    packed ? accel_macs_mul(p->cols, (blocks * p->bits + 7) / 8) : all));
    ACCEL_TRY(check(c, BIAS, false, p->cols));
    if (groups && (!accel_op_is_int(groups) || groups->n < p->k))
        return accel_fail(ACCEL_ESHAPE, "g_idx has %lld elements for K = %lld",
                          (long long)groups->n, (long long)p->k);
    for (int64_t k = 0; groups && k < p->k; k++) {
        int64_t g = ((const int64_t *)groups->data)[k];
        if (g < 0 || g >= blocks)
            return accel_fail(ACCEL_ESHAPE, "g_idx holds %lld of %lld blocks", (long long)g,
                              (long long)blocks);
    }
    struct accel_call call = *c;
    accel_threads_run(run_elements, &call, c->y[0].n, p->k);
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"K", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                               {"N", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                               {"accuracy_level", ACCEL_ATTR_INT, 0},
                                               {"bits", ACCEL_ATTR_INT, 0},
                                               {"block_size", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                               {"weight_prepacked", ACCEL_ATTR_INT, 0},
                                               {0}};
static const char *const examples[] = {"2x3x32 u8:8x1x16 8 | K=32 N=8 block_size=32",
                                       "3x40 u8:8x2x32 16 u8:16 | K=40 N=8 block_size=32 bits=8",
                                       NULL};

const struct accel_op accel_op_ms_matmulnbits = {
    .name = "MatMulNBits",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 3,
    .max_in = 6,
    .min_out = 1,
    .max_out = 1,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .cost = cost,
    .links = links,
    .zero = zero,
    .forward = forward,
    .keep = 1u << SCALES | 1u << ZEROS,
    .examples = examples,
};
