/* Dropout and the operators that draw random numbers. Dropout only passes its input on when nothing
 * is trained; none of them is propagated.
 *
 * Numbers come from the attribute `seed`, or from the output's name where there is none: a run can
 * be repeated. They are not those of other runtimes, which ONNX leaves open. */
#include <math.h>

#include "base/rng.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/op_util.h"
#include "ops/real.h"

#define TWO_PI 6.28318530717958647692

struct dropout {
    enum accel_dtype mask; /* type of output 1; UNDEFINED: that of the input (opset < 10) */
};

static enum accel_err dropout_parse(struct accel_node *n, int opset)
{
    struct dropout *p = accel_op_params(n, sizeof *p);
    float ratio;
    if (!p)
        return ACCEL_ENOMEM;
    p->mask = opset < 10 ? ACCEL_UNDEFINED : ACCEL_BOOL;
    ACCEL_TRY(accel_attr_float(&ratio, n, "ratio", 0.5f));
    if (!(ratio >= 0 && ratio <= 1))
        return accel_fail(ACCEL_EMODEL, "ratio is %g", (double)ratio);
    return ACCEL_OK;
}

static enum accel_err dropout_infer(struct accel_node *n)
{
    const struct dropout *p = n->params;
    enum accel_dtype dtype = accel_operand_dtype(n, 0);
    ACCEL_TRY(accel_result_like(n, 0, dtype, accel_operand(n, 0)));
    return accel_result_like(n, 1, p->mask ? p->mask : dtype, accel_operand(n, 0));
}

/* Inference: the input, and a mask that keeps everything. */
static enum accel_err dropout_forward(const struct accel_call *c)
{
    if (c->node->n_in > 2 && c->x[2].data && c->x[2].n && *(const int64_t *)c->x[2].data)
        return accel_fail(ACCEL_ENOSUP, "training_mode is set: a run is not training");
    accel_array_copy(&c->y[0], 0, &c->x[0], 0, c->x[0].n);
    if (c->node->n_out > 1 && c->y[1].data) {
        const double one = 1; /* old opsets: a mask of the input's type */
        for (int64_t i = 0; i < c->y[1].n; i++)
            accel_dtype_from_f64(c->y[1].dtype, &one, 1, c->y[1].data, (size_t)i);
    }
    return ACCEL_OK;
}

/* The mask is of ones wherever it is looked at; a run that trains is a wall. */
static void dropout_links(const struct accel_node *n, struct accel_links *l)
{
    if (!accel_operand(n, 2) || accel_operand(n, 2)->tensor)
        accel_link_unary(n, l);
}

struct draw {
    enum accel_dtype dtype; /* UNDEFINED: that of the input, else F32 */
    int64_t samples;        /* Multinomial: number of draws */
    bool seeded;
    float seed;
    float a, b; /* low and high, or mean and deviation */
};

enum draw_kind { DRAW_UNIFORM, DRAW_NORMAL, DRAW_BERNOULLI, DRAW_MULTINOMIAL };

static enum accel_err draw_parse(struct accel_node *n, int opset)
{
    struct draw *p = accel_op_params(n, sizeof *p);
    int64_t dtype;
    (void)opset;
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_int(&dtype, n, "dtype", 0));
    if (dtype < 0 || dtype >= ACCEL_N_DTYPES)
        return accel_fail(ACCEL_EMODEL, "dtype is %lld", (long long)dtype);
    p->dtype = (enum accel_dtype)dtype;
    p->seeded = accel_attr_find(n, "seed") != NULL;
    ACCEL_TRY(accel_attr_float(&p->seed, n, "seed", 0));
    if (*(const enum draw_kind *)n->op->family == DRAW_UNIFORM) {
        ACCEL_TRY(accel_attr_float(&p->a, n, "low", 0));
        ACCEL_TRY(accel_attr_float(&p->b, n, "high", 1));
    } else {
        ACCEL_TRY(accel_attr_float(&p->a, n, "mean", 0));
        ACCEL_TRY(accel_attr_float(&p->b, n, "scale", 1));
    }
    return accel_attr_int(&p->samples, n, "sample_size", 1);
}

static enum accel_err like_infer(struct accel_node *n)
{
    const struct draw *p = n->params;
    return accel_result_like(n, 0, p->dtype ? p->dtype : accel_operand_dtype(n, 0),
                             accel_operand(n, 0));
}

static enum accel_err shape_infer(struct accel_node *n)
{
    const struct draw *p = n->params;
    struct accel_list list;
    struct accel_shape out;
    ACCEL_TRY(accel_list_get(&list, n, "shape", -1));
    if (list.n > ACCEL_KNOWN_MAX)
        return accel_fail(ACCEL_EMODEL, "shape has %lld axes", (long long)list.n);
    ACCEL_TRY(accel_shape_new(&out, n, (int)list.n));
    for (int i = 0; i < out.rank; i++) {
        if (list.at[i] < 0)
            return accel_fail(ACCEL_EMODEL, "shape has the size %lld", (long long)list.at[i]);
        out.dim[i] = accel_dim_of(list.at[i]);
    }
    accel_result_set(n, 0, p->dtype ? p->dtype : ACCEL_F32, out);
    return ACCEL_OK;
}

static enum accel_err multinomial_infer(struct accel_node *n)
{
    const struct draw *p = n->params;
    ACCEL_TRY(accel_operand_check_rank(n, 0, 2));
    if (p->samples < 0)
        return accel_fail(ACCEL_EMODEL, "sample_size is %lld", (long long)p->samples);
    struct accel_dim d[2] = {accel_operand_dim(n, 0, 0), accel_dim_of(p->samples)};
    return accel_result_dims(n, 0, p->dtype ? p->dtype : ACCEL_I32, 2, d);
}

/* ------------------------------------------------------------------ kernels */

static struct accel_rng stream(const struct accel_call *c)
{
    const struct draw *p = c->node->params;
    uint64_t h = 14695981039346656037u; /* FNV-1a */
    uint32_t bits;
    memcpy(&bits, &p->seed, sizeof bits);
    if (p->seeded)
        return accel_rng_init(bits);
    for (const char *s = c->node->out[0]->name; *s; s++)
        h = (h ^ (unsigned char)*s) * 1099511628211u;
    return accel_rng_init(h);
}

static void put(const struct accel_array *y, int64_t i, double v)
{
    if (accel_op_is_int(y))
        ((int64_t *)y->data)[i] = fabs(v) < 9e18 ? (int64_t)v : 0;
    else
        ((real *)y->data)[i] = (real)v;
}

/* Mean 0, variance 1: Box and Muller's transform, one of its two numbers. */
static double normal(struct accel_rng *r)
{
    double u = 1 - accel_rng_uniform(r), v = accel_rng_uniform(r);
    return sqrt(-2 * log(u)) * cos(TWO_PI * v);
}

static enum accel_err draw_forward(const struct accel_call *c)
{
    const struct draw *p = c->node->params;
    const struct accel_array *y = &c->y[0];
    bool gauss = *(const enum draw_kind *)c->node->op->family == DRAW_NORMAL;
    struct accel_rng r = stream(c);
    double a = (double)p->a, b = (double)p->b;
    for (int64_t i = 0; i < y->n; i++)
        put(y, i, gauss ? a + b * normal(&r) : a + (b - a) * accel_rng_uniform(&r));
    return ACCEL_OK;
}

/* 1 with the probability that the input says. */
static enum accel_err bernoulli_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    struct accel_rng r = stream(c);
    if (accel_op_is_int(x))
        return accel_fail(ACCEL_ENOSUP, "probabilities that are integers");
    for (int64_t i = 0; i < x->n; i++)
        put(&c->y[0], i, accel_rng_uniform(&r) < (double)((const real *)x->data)[i]);
    return ACCEL_OK;
}

/* Classes drawn by their logarithms x [B K]: the first whose sum of weights exceeds the number. */
static enum accel_err multinomial_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    struct accel_rng r = stream(c);
    int64_t K = x->dim[1], draws = y->dim[1];
    if (accel_op_is_int(x))
        return accel_fail(ACCEL_ENOSUP, "logarithms that are integers");
    if (y->n && K < 1)
        return accel_fail(ACCEL_ESHAPE, "no classes to draw from");
    for (int64_t b = 0; b < y->dim[0] && draws; b++) {
        const real *row = (const real *)x->data + b * K;
        double most = -INFINITY, total = 0;
        for (int64_t k = 0; k < K; k++)
            most = fmax(most, (double)row[k]);
        for (int64_t k = 0; k < K; k++)
            total += exp((double)row[k] - most);
        for (int64_t i = 0; i < draws; i++) {
            double left = accel_rng_uniform(&r) * total;
            int64_t k = 0;
            while (k < K - 1 && (left -= exp((double)row[k] - most)) >= 0)
                k++;
            put(y, b * draws + i, (double)k);
        }
    }
    return ACCEL_OK;
}

static const enum draw_kind is_uniform = DRAW_UNIFORM, is_normal = DRAW_NORMAL,
                            is_bernoulli = DRAW_BERNOULLI, is_multinomial = DRAW_MULTINOMIAL;

static const struct accel_attr_rule dropout_attrs[] = {{"ratio", ACCEL_ATTR_FLOAT, 0},
                                                       {"seed", ACCEL_ATTR_INT, 0},
                                                       {"is_test", ACCEL_ATTR_INT, 0},
                                                       {"consumed_inputs", ACCEL_ATTR_INTS, 0},
                                                       {0}};
static const struct accel_attr_rule normal_attrs[] = {{"dtype", ACCEL_ATTR_INT, 0},
                                                      {"mean", ACCEL_ATTR_FLOAT, 0},
                                                      {"scale", ACCEL_ATTR_FLOAT, 0},
                                                      {"seed", ACCEL_ATTR_FLOAT, 0},
                                                      {"shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
                                                      {0}};
static const struct accel_attr_rule normal_like_attrs[] = {{"dtype", ACCEL_ATTR_INT, 0},
                                                           {"mean", ACCEL_ATTR_FLOAT, 0},
                                                           {"scale", ACCEL_ATTR_FLOAT, 0},
                                                           {"seed", ACCEL_ATTR_FLOAT, 0},
                                                           {0}};
static const struct accel_attr_rule uniform_attrs[] = {{"dtype", ACCEL_ATTR_INT, 0},
                                                       {"high", ACCEL_ATTR_FLOAT, 0},
                                                       {"low", ACCEL_ATTR_FLOAT, 0},
                                                       {"seed", ACCEL_ATTR_FLOAT, 0},
                                                       {"shape", ACCEL_ATTR_INTS, ACCEL_REQUIRED},
                                                       {0}};
static const struct accel_attr_rule uniform_like_attrs[] = {{"dtype", ACCEL_ATTR_INT, 0},
                                                            {"high", ACCEL_ATTR_FLOAT, 0},
                                                            {"low", ACCEL_ATTR_FLOAT, 0},
                                                            {"seed", ACCEL_ATTR_FLOAT, 0},
                                                            {0}};
static const struct accel_attr_rule multinomial_attrs[] = {{"dtype", ACCEL_ATTR_INT, 0},
                                                           {"sample_size", ACCEL_ATTR_INT, 0},
                                                           {"seed", ACCEL_ATTR_FLOAT, 0},
                                                           {0}};
static const struct accel_attr_rule bernoulli_attrs[] = {
    {"dtype", ACCEL_ATTR_INT, 0}, {"seed", ACCEL_ATTR_FLOAT, 0}, {0}};

#define ROW(op_name, first, n_in, rules, inf, eg, fwd, what)                                       \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_in), .max_in = (n_in),     \
        .min_out = 1, .max_out = 1, .flags = ACCEL_OP_RANDOM, .attrs = (rules),                    \
        .parse = draw_parse, .infer = (inf), .examples = (const char *const[]){(eg), NULL},        \
        .forward = (fwd), .family = (what),                                                        \
    }

const struct accel_op accel_op_dropout = {
    .name = "Dropout",
    .domain = "",
    .since = 1,
    .min_in = 1,
    .max_in = 3,
    .min_out = 1,
    .max_out = 2,
    .flags = ACCEL_OP_RANDOM | ACCEL_OP_MOVES,
    .attrs = dropout_attrs,
    .parse = dropout_parse,
    .infer = dropout_infer,
    .links = dropout_links,
    .zero = accel_zero_moved,
    .forward = dropout_forward,
    .examples = (const char *const[]){"2x3", NULL},
};
const struct accel_op accel_op_random_normal =
    ROW("RandomNormal", 1, 0, normal_attrs, shape_infer, "| shape=2,3", draw_forward, &is_normal);
const struct accel_op accel_op_random_normal_like =
    ROW("RandomNormalLike", 1, 1, normal_like_attrs, like_infer, "2x3", draw_forward, &is_normal);
const struct accel_op accel_op_random_uniform = ROW(
    "RandomUniform", 1, 0, uniform_attrs, shape_infer, "| shape=2,3", draw_forward, &is_uniform);
const struct accel_op accel_op_random_uniform_like = ROW(
    "RandomUniformLike", 1, 1, uniform_like_attrs, like_infer, "2x3", draw_forward, &is_uniform);
const struct accel_op accel_op_multinomial =
    ROW("Multinomial", 7, 1, multinomial_attrs, multinomial_infer, "2x5 | sample_size=3",
        multinomial_forward, &is_multinomial);
const struct accel_op accel_op_bernoulli =
    ROW("Bernoulli", 15, 1, bernoulli_attrs, like_infer, "2x3", bernoulli_forward, &is_bernoulli);
