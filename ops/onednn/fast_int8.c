/* fast_int8.c - products of 8-bit integers: the QLinear and Integer operators, and Conv, MatMul and
 * Gemm between DequantizeLinear and QuantizeLinear.
 *
 * The library multiplies activations of 8 bits, with one zero point, by signed weights without
 * one: weights must be constants, and their zero point is taken off before they are packed. Sums
 * are exact; they are scaled to the output with a float per channel. That can differ from the plain
 * kernels by one step where a result lies between two.
 *
 * Between DequantizeLinear and QuantizeLinear nothing is exact: the kernel reads the integers
 * behind the operands in their place, the bias becomes a float in the scale of the sums, the nodes
 * up to QuantizeLinear follow as floats on the scaled result. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "ops/onednn/dn_job.h"

/* Numbers that never change, one or several: scales or zero points. */
struct numbers {
    const struct accel_value *v;
    const void *at;
    int64_t n; /* 0: left out */
};

static enum accel_err numbers_of(struct numbers *out, const struct accel_dn_job *j,
                                 const struct accel_value *v)
{
    struct accel_layout layout;
    *out = (struct numbers){.v = v};
    if (!v)
        return ACCEL_OK;
    out->n = accel_shape_count(&v->shape);
    ACCEL_TRY(j->ask->look(j->ask->look_ctx, v, &out->at, &layout));
    if (!out->at || out->n < 1)
        return accel_fail(ACCEL_ENOSUP, "'%.100s' is no constant", v->name);
    return ACCEL_OK;
}

static double number(const struct numbers *s, int64_t i, double otherwise)
{
    double v = otherwise;
    if (s->n)
        accel_dtype_to_f64(s->v->dtype, s->at, (size_t)(s->n > 1 ? i : 0), 1, &v);
    return v;
}

static const struct accel_value *input(const struct accel_node *n, int i)
{
    return i >= 0 && i < n->n_in ? n->in[i] : NULL;
}

/* What a product of integers is made of, in any of its forms. */
struct parts {
    const struct accel_value *x, *w; /* integers */
    struct numbers x_scale, x_zero, w_scale, w_zero, y_scale, y_zero, bias, bias_scale;
    bool exact; /* a bias counts as the sums do; else it is worth bias_scale (or 1) each */
};

static bool is_byte(const struct accel_value *v)
{
    return v && (v->dtype == ACCEL_I8 || v->dtype == ACCEL_U8);
}

static enum accel_err check_parts(const struct parts *p, int64_t M)
{
    if (!is_byte(p->x) || !is_byte(p->w) || p->x_scale.n > 1 || p->x_zero.n > 1 ||
        p->y_scale.n > 1 || p->y_zero.n > 1)
        return accel_fail(ACCEL_ENOSUP, "not one scale per tensor of bytes");
    if ((p->w_scale.n > 1 && p->w_scale.n != M) || (p->w_zero.n > 1 && p->w_zero.n != M) ||
        (p->bias.n && p->bias.n != M) || (p->bias_scale.n > 1 && p->bias_scale.n != M))
        return accel_fail(ACCEL_ENOSUP, "not one scale per output channel");
    return ACCEL_OK;
}

/* `without`: an input that is no constant and left to the caller; -2: none.
 * Inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias; or x, w, x_zero, w_zero. */
static enum accel_err read_integer(struct parts *p, const struct accel_dn_job *j, int without)
{
    const struct accel_node *n = j->ask->chain[0];
    bool scaled = n->op->name[0] == 'Q';
    *p = (struct parts){.x = input(n, 0), .w = input(n, scaled ? 3 : 1), .exact = true};
    const struct {
        struct numbers *to;
        int slot;
    } rows[] = {{&p->x_scale, scaled ? 1 : -1}, {&p->x_zero, 2},
                {&p->w_scale, scaled ? 4 : -1}, {&p->w_zero, scaled ? 5 : 3},
                {&p->y_scale, scaled ? 6 : -1}, {&p->y_zero, scaled ? 7 : -1},
                {&p->bias, scaled ? 8 : -1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].slot != without)
            ACCEL_TRY(numbers_of(rows[i].to, j, input(n, rows[i].slot)));
    return ACCEL_OK;
}

/* The DequantizeLinear of one tensor or of axis `axis` that made v. */
static enum accel_err read_dequantized(const struct accel_value **from, struct numbers *scale,
                                       struct numbers *zero, const struct accel_dn_job *j,
                                       const struct accel_value *v, int axis)
{
    const struct accel_node *n = v ? v->producer : NULL;
    int64_t along, block;
    if (!n || !n->op || strcmp(n->op->name, "DequantizeLinear") != 0 || *n->op->domain)
        return accel_fail(ACCEL_ENOSUP, "not made of integers");
    *from = input(n, 0);
    ACCEL_TRY(numbers_of(scale, j, input(n, 1)));
    ACCEL_TRY(numbers_of(zero, j, input(n, 2)));
    ACCEL_TRY(accel_attr_int(&along, n, "axis", 1));
    ACCEL_TRY(accel_attr_int(&block, n, "block_size", 0));
    along += along < 0 ? v->shape.rank : 0;
    if (block || (scale->n > 1 && along != axis))
        return accel_fail(ACCEL_ENOSUP, "scales along another axis");
    return ACCEL_OK;
}

/* x, w and bias of a node whose first two operands are dequantised. */
static enum accel_err read_around(struct parts *p, const struct accel_dn_job *j, int w_axis)
{
    const struct accel_node *n = j->ask->chain[0];
    *p = (struct parts){0};
    ACCEL_TRY(read_dequantized(&p->x, &p->x_scale, &p->x_zero, j, input(n, 0), -1));
    ACCEL_TRY(read_dequantized(&p->w, &p->w_scale, &p->w_zero, j, input(n, 1), w_axis));
    const struct accel_value *bias = input(n, 2);
    struct numbers zero = {0};
    if (bias && bias->producer && !bias->tensor)
        ACCEL_TRY(read_dequantized(&bias, &p->bias_scale, &zero, j, bias, 0));
    for (int64_t i = 0; i < zero.n; i++)
        if (number(&zero, i, 0) != 0)
            return accel_fail(ACCEL_ENOSUP, "a bias with a zero point");
    return numbers_of(&p->bias, j, bias);
}

/* ------------------------------------------------------------------ operands */

/* Weights less their zero points as signed bytes; channel(i) = i / per % M. */
static enum accel_err take_weights(int8_t **out, const struct parts *p,
                                   const struct accel_dn_job *j, int64_t per, int64_t M)
{
    struct numbers w;
    ACCEL_TRY(numbers_of(&w, j, p->w));
    int8_t *to = accel_calloc((size_t)w.n, 1);
    *out = to;
    if (!to)
        return accel_fail_nomem();
    for (int64_t i = 0; i < w.n; i++) {
        int v = p->w->dtype == ACCEL_I8 ? ((const int8_t *)w.at)[i] : ((const uint8_t *)w.at)[i];
        v -= (int)number(&p->w_zero, i / per % M, 0);
        if (v < -128 || v > 127) {
            accel_free(to);
            *out = NULL;
            return accel_fail(ACCEL_ENOSUP, "weights less their zero point are no signed bytes");
        }
        to[i] = (int8_t)v;
    }
    return ACCEL_OK;
}

/* What sums of products are worth: x_scale * w_scale, over y_scale where the result is quantised.
 */
static enum accel_err set_scale(struct accel_dn_job *j, const struct parts *p, int64_t M, int axis)
{
    struct accel_dn_spec *s = &j->spec;
    if (!accel_dn_multiplies_bytes())
        return accel_fail(ACCEL_ENOSUP, "no instructions for products of bytes");
    j->integers = true;
    s->n_scale = p->w_scale.n > 1 ? M : 1;
    s->scale_axis = axis;
    s->zero_in = (int32_t)number(&p->x_zero, 0, 0);
    s->zero_out = (int32_t)number(&p->y_zero, 0, 0);
    if (!p->x_scale.n)
        return ACCEL_OK;
    j->scale = accel_calloc((size_t)s->n_scale, sizeof *j->scale);
    s->scale = j->scale;
    for (int64_t m = 0; j->scale && m < s->n_scale; m++)
        j->scale[m] = (float)(number(&p->x_scale, 0, 1) * number(&p->w_scale, m, 1) /
                              number(&p->y_scale, 0, 1));
    return j->scale ? ACCEL_OK : accel_fail_nomem();
}

/* The bias as the sums are counted, a float: integers as they are, else in units of their scale. */
static enum accel_err add_bias(struct accel_dn_job *j, const struct parts *p, int rank, int64_t M)
{
    int64_t dim[2] = {1, M};
    if (!p->bias.n)
        return ACCEL_OK;
    float *b = accel_calloc((size_t)M, sizeof *b);
    for (int64_t m = 0; b && m < M; m++) {
        double unit = number(&p->x_scale, 0, 1) * number(&p->w_scale, m, 1);
        double v = number(&p->bias, m, 0);
        b[m] = (float)(p->exact ? v : v * number(&p->bias_scale, m, 1) / unit);
        if (!isfinite(b[m])) {
            accel_free(b);
            return accel_fail(ACCEL_ENOSUP, "the bias is too large for its scale");
        }
    }
    return accel_dn_add_own(j, b, ACCEL_DN_F32, rank, dim + 2 - rank);
}

static enum accel_err add_x(struct accel_dn_job *j, const struct parts *p, int rank,
                            const int64_t *dim)
{
    if (p->x != j->ask->operand[0])
        j->instead[0] = p->x;
    for (int i = 1; i < j->ask->chain[0]->n_in; i++)
        j->unread[i] = true; /* constants, copied */
    return rank ? accel_dn_add_view(j, 0, rank, dim, NULL, false) : accel_dn_add(j, 0, true);
}

/* ------------------------------------------------------------------ what follows */

/* The nodes behind as floats, and a QuantizeLinear that ends them. */
static enum accel_err follow(struct accel_dn_job *j)
{
    struct numbers scale, zero;
    ACCEL_TRY(accel_dn_chain(j, 1));
    const struct accel_node *n = j->takes < j->limit ? j->ask->chain[j->takes] : NULL;
    if (!n || strcmp(n->op->name, "QuantizeLinear") != 0 || *n->op->domain || !is_byte(n->out[0]) ||
        n->in[0] != j->ask->chain[j->takes - 1]->out[0] || j->spec.n_post == ACCEL_DN_MAX_POST)
        return ACCEL_OK;
    enum accel_err err = numbers_of(&scale, j, input(n, 1));
    if (!err)
        err = numbers_of(&zero, j, input(n, 2));
    if (err || scale.n != 1 || zero.n > 1)
        return err == ACCEL_ENOSUP ? ACCEL_OK : err;
    double step = 1 / number(&scale, 0, 1);
    if (!isfinite(step))
        return ACCEL_OK;
    j->spec.post[j->spec.n_post++] =
        (struct accel_dn_post){ACCEL_DN_LINEAR, (float)step, (float)number(&zero, 0, 0), -1};
    accel_dn_format_retype(&j->out, n->out[0]->dtype == ACCEL_I8 ? ACCEL_DN_S8 : ACCEL_DN_U8);
    j->takes++;
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ convolutions */

static enum accel_err conv(struct accel_dn_job *j, const struct parts *p)
{
    struct accel_dn_conv_shape s;
    int8_t *w;
    ACCEL_TRY(accel_dn_conv_window(&s, j, p->x, p->w));
    ACCEL_TRY(check_parts(p, s.M));
    ACCEL_TRY(set_scale(j, p, s.M, 1));
    ACCEL_TRY(add_x(j, p, 0, NULL));
    ACCEL_TRY(take_weights(&w, p, j, s.per, s.M));
    ACCEL_TRY(accel_dn_add_own(j, w, ACCEL_DN_S8, s.w_rank, s.w));
    ACCEL_TRY(accel_dn_format_any_like(&j->arg[1].want, s.w_rank, s.w, &j->arg[1].plain));
    ACCEL_TRY(add_bias(j, p, 1, s.M));
    ACCEL_TRY(accel_dn_set_out(j, j->ask->chain[0]->out[0], true));
    j->takes = 1;
    return p->exact ? ACCEL_OK : follow(j);
}

enum accel_err accel_dn_conv_integer(struct accel_dn_job *j)
{
    struct parts p;
    ACCEL_TRY(read_integer(&p, j, -2));
    return conv(j, &p);
}

enum accel_err accel_dn_conv_of_dequantized(struct accel_dn_job *j)
{
    struct parts p;
    ACCEL_TRY(read_around(&p, j, 0));
    return conv(j, &p);
}

/* ------------------------------------------------------------------ matrices */

/* A [… K] seen as rows, W a matrix [K N], or [N K] when it is `turned`. */
static enum accel_err product(struct accel_dn_job *j, const struct parts *p, bool turned)
{
    const struct accel_value *y = j->ask->chain[0]->out[0];
    int64_t x[ACCEL_DN_MAX_RANK], w[ACCEL_DN_MAX_RANK], rows = 1;
    int rank = 0, w_rank = 0;
    enum accel_dn_type type;
    int8_t *own;
    ACCEL_TRY(accel_dn_sizes(&rank, x, p->x));
    ACCEL_TRY(accel_dn_sizes(&w_rank, w, p->w));
    if (w_rank != 2 || rank < 2 || y->shape.rank != rank)
        return accel_fail(ACCEL_ENOSUP, "weights that are no matrix");
    int64_t K = w[turned], N = w[!turned];
    for (int i = 0; i < rank - 1; i++)
        rows *= x[i];
    ACCEL_TRY(check_parts(p, N));
    ACCEL_TRY(set_scale(j, p, N, 1));
    j->spec.kind = ACCEL_DN_MATMUL;
    ACCEL_TRY(add_x(j, p, 2, (int64_t[]){rows, K}));
    ACCEL_TRY(take_weights(&own, p, j, turned ? K : 1, N));
    ACCEL_TRY(accel_dn_add_own(j, own, ACCEL_DN_S8, 2, (int64_t[]){K, N}));
    struct accel_dn_arg *arg = &j->arg[1];
    if (turned) {
        ACCEL_TRY(accel_dn_format_strided(&arg->plain, 2, (int64_t[]){K, N}, (int64_t[]){1, K}));
        accel_dn_format_retype(&arg->plain, ACCEL_DN_S8);
        arg->have = arg->plain;
    }
    ACCEL_TRY(accel_dn_format_any_like(&arg->want, 2, (int64_t[]){K, N}, &arg->plain));
    ACCEL_TRY(add_bias(j, p, 2, N));
    ACCEL_TRY(accel_dn_set_out_view(j, 2, (int64_t[]){rows, N}));
    ACCEL_TRY(accel_dn_type_of(&type, y));
    accel_dn_format_retype(&j->out, type);
    j->viewed = rank != 2;
    j->takes = 1;
    return p->exact ? ACCEL_OK : follow(j);
}

/* MatMulInteger's first zero point is often made while the model runs, by DynamicQuantizeLinear. */
static enum accel_err add_zero(struct accel_dn_job *j)
{
    ACCEL_TRY(accel_dn_add_view(j, 2, 1, (int64_t[]){1}, NULL, false));
    j->spec.zero_at = j->spec.n_in - 1;
    j->spec.n_own--;
    accel_dn_format_retype(&j->arg[j->spec.zero_at].want, ACCEL_DN_S32);
    j->unread[2] = false;
    return ACCEL_OK;
}

enum accel_err accel_dn_matmul_integer(struct accel_dn_job *j)
{
    const struct accel_value *zero = input(j->ask->chain[0], 2);
    struct parts p;
    bool made = strcmp(j->ask->chain[0]->op->name, "MatMulInteger") == 0 && zero && !zero->tensor;
    ACCEL_TRY(read_integer(&p, j, made ? 2 : -2));
    if (made && accel_shape_count(&zero->shape) != 1)
        return accel_fail(ACCEL_ENOSUP, "a zero point per row");
    ACCEL_TRY(product(j, &p, false));
    return made ? add_zero(j) : ACCEL_OK;
}

enum accel_err accel_dn_product_of_dequantized(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    bool is_gemm = strcmp(n->op->name, "Gemm") == 0;
    int64_t trans_a = 0, trans_b = 0;
    float alpha = 1, beta = 1;
    struct parts p;
    if (is_gemm) {
        ACCEL_TRY(accel_attr_int(&trans_a, n, "transA", 0));
        ACCEL_TRY(accel_attr_int(&trans_b, n, "transB", 0));
        ACCEL_TRY(accel_attr_float(&alpha, n, "alpha", 1));
        ACCEL_TRY(accel_attr_float(&beta, n, "beta", 1));
    }
    if (trans_a || alpha != 1 || beta != 1)
        return accel_fail(ACCEL_ENOSUP, "a product with factors");
    ACCEL_TRY(read_around(&p, j, trans_b ? 0 : 1));
    return product(j, &p, trans_b != 0);
}

/* ------------------------------------------------------------------ to integers and back */

enum accel_err accel_dn_quantize(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    bool back = n->op->name[0] == 'D';
    const struct accel_value *bytes = back ? input(n, 0) : n->out[0];
    struct numbers scale, zero;
    int64_t block;
    if (*n->op->domain || !is_byte(bytes) || (back ? n->out[0] : n->in[0])->dtype != ACCEL_F32)
        return accel_fail(ACCEL_ENOSUP, "not bytes and float32");
    ACCEL_TRY(numbers_of(&scale, j, input(n, 1)));
    ACCEL_TRY(numbers_of(&zero, j, input(n, 2)));
    ACCEL_TRY(accel_attr_int(&block, n, "block_size", 0));
    if (scale.n != 1 || zero.n > 1 || block)
        return accel_fail(ACCEL_ENOSUP, "not one scale per tensor");
    j->scale = accel_calloc(1, sizeof *j->scale);
    if (!j->scale)
        return accel_fail_nomem();
    j->scale[0] = (float)(back ? number(&scale, 0, 1) : 1 / number(&scale, 0, 1));
    if (!isfinite(j->scale[0]))
        return accel_fail(ACCEL_ENOSUP, "a scale of 0");
    j->integers = true;
    j->spec.kind = ACCEL_DN_REORDER;
    j->spec.scale = j->scale;
    j->spec.n_scale = 1;
    *(back ? &j->spec.zero_in : &j->spec.zero_out) = (int32_t)number(&zero, 0, 0);
    ACCEL_TRY(accel_dn_add(j, 0, false));
    ACCEL_TRY(accel_dn_set_out(j, n->out[0], false));
    if (!j->ask->row_major) { /* it lies as its operand does */
        enum accel_dn_type type;
        ACCEL_TRY(accel_dn_type_of(&type, n->out[0]));
        j->out = j->arg[0].have;
        accel_dn_format_retype(&j->out, type);
    }
    j->unread[1] = j->unread[2] = true;
    j->takes = 1;
    return ACCEL_OK;
}
