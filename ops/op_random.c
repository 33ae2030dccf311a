/* Dropout and the operators that draw random numbers. Dropout only passes its input on when nothing
 * is trained; none of them is propagated. */
#include "ops/link_util.h"
#include "ops/op_util.h"

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
};

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

#define ROW(op_name, first, n_in, rules, inf, eg)                                                  \
    {                                                                                              \
        .name = (op_name), .domain = "", .since = (first), .min_in = (n_in), .max_in = (n_in),     \
        .min_out = 1, .max_out = 1, .flags = ACCEL_OP_RANDOM, .attrs = (rules),                    \
        .parse = draw_parse, .infer = (inf), .examples = (const char *const[]){(eg), NULL},        \
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
    ROW("RandomNormal", 1, 0, normal_attrs, shape_infer, "| shape=2,3");
const struct accel_op accel_op_random_normal_like =
    ROW("RandomNormalLike", 1, 1, normal_like_attrs, like_infer, "2x3");
const struct accel_op accel_op_random_uniform =
    ROW("RandomUniform", 1, 0, uniform_attrs, shape_infer, "| shape=2,3");
const struct accel_op accel_op_random_uniform_like =
    ROW("RandomUniformLike", 1, 1, uniform_like_attrs, like_infer, "2x3");
const struct accel_op accel_op_multinomial =
    ROW("Multinomial", 7, 1, multinomial_attrs, multinomial_infer, "2x5 | sample_size=3");
const struct accel_op accel_op_bernoulli =
    ROW("Bernoulli", 15, 1, bernoulli_attrs, like_infer, "2x3");
