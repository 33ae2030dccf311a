/* Normalisations: Y has shape and type of X; scale and shift must fit the channels (axis 1) or the
 * axes that are normalised. Some also give the statistics. */
#include <math.h>

#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct norm_params {
    bool spatial;       /* BatchNormalization: one scale per channel (below opset 9 maybe not) */
    int64_t axis;       /* LayerNormalization */
    int64_t groups;     /* GroupNormalization; 0: not one */
    bool group_vectors; /* scale and shift have one element per group (opset 18) */
    enum accel_dtype stash;
    float epsilon, momentum;
    bool training; /* BatchNormalization: statistics of the batch */
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct norm_params *p = ACCEL_NEW(&n->graph->model->arena, struct norm_params, 1);
    int64_t spatial, stash, training;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&spatial, n, "spatial", 1));
    ACCEL_TRY(accel_attr_int(&stash, n, "stash_type", ACCEL_F32));
    ACCEL_TRY(accel_attr_int(&p->groups, n, "num_groups", 1));
    ACCEL_TRY(accel_attr_int(&p->axis, n, "axis", -1));
    if (p->groups < 1)
        return accel_fail(ACCEL_EMODEL, "attribute 'num_groups' is %lld", (long long)p->groups);
    ACCEL_TRY(accel_attr_float(&p->epsilon, n, "epsilon", 1e-5f));
    ACCEL_TRY(accel_attr_float(&p->momentum, n, "momentum", 0.9f));
    ACCEL_TRY(accel_attr_int(&training, n, "training_mode", 0));
    p->training = training != 0;
    p->spatial = spatial != 0;
    p->group_vectors = opset < 21;
    p->stash = stash == ACCEL_F64 || stash == ACCEL_F16 || stash == ACCEL_BF16
                   ? (enum accel_dtype)stash
                   : ACCEL_F32;
    n->params = p;
    return ACCEL_OK;
}

static enum accel_err like_input(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

/* ------------------------------------------------------------------ by channel */

/* The number of channels, from the input or from one of `count` parameters behind it. */
static enum accel_err channels(struct accel_dim *c, const struct accel_node *n, int count)
{
    static const char *const what[] = {"", "scale", "shift", "mean", "variance"};
    int rank = accel_operand_rank(n, 0);
    *c = rank == 1 ? accel_dim_of(1) : accel_operand_dim(n, 0, 1);
    for (int i = 1; i <= count; i++) {
        ACCEL_TRY(accel_operand_check_vector(n, i, *c, what[i]));
        if (!accel_dim_known(*c) && accel_operand_rank(n, i) == 1 &&
            accel_dim_known(accel_operand_dim(n, i, 0)))
            *c = accel_operand_dim(n, i, 0);
    }
    return ACCEL_OK;
}

static enum accel_err batch_infer(struct accel_node *n)
{
    const struct norm_params *p = n->params;
    struct accel_dim c = accel_dim_unknown();
    if (p->spatial)
        ACCEL_TRY(channels(&c, n, 4));
    ACCEL_TRY(like_input(n));
    for (int i = 1; i < n->n_out; i++)
        ACCEL_TRY(accel_result_dims(n, i, accel_operand_dtype(n, i < 3 ? i + 2 : i), 1, &c));
    return ACCEL_OK;
}

static int batch_weights(const struct accel_node *n, struct accel_weight w[4])
{
    static const char *const types[] = {"BatchNorm1d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d"};
    int rank = accel_operand_rank(n, 0);
    w[0] = (struct accel_weight){
        1, 1, 0, -1, -1, rank >= 2 && rank <= 5 ? types[rank - 2] : "BatchNorm", true, 2, 0, 0};
    return 1;
}

static enum accel_err instance_infer(struct accel_node *n)
{
    struct accel_dim c;
    ACCEL_TRY(channels(&c, n, 2));
    return like_input(n);
}

static enum accel_err group_infer(struct accel_node *n)
{
    const struct norm_params *p = n->params;
    struct accel_dim c = accel_operand_dim(n, 0, 1);
    if (accel_dim_known(c) && c.n % p->groups != 0)
        return accel_fail(ACCEL_ESHAPE, "input has %lld channels in %lld groups", (long long)c.n,
                          (long long)p->groups);
    struct accel_dim of = p->group_vectors ? accel_dim_of(p->groups) : c;
    ACCEL_TRY(accel_operand_check_vector(n, 1, of, "scale"));
    ACCEL_TRY(accel_operand_check_vector(n, 2, of, "shift"));
    return like_input(n);
}

/* ------------------------------------------------------------------ from an axis on */

/* Scale and shift are laid onto the last axes of the input. */
static enum accel_err check_tail(const struct accel_node *n, int slot)
{
    int rank = accel_operand_rank(n, 0), tail = accel_operand_rank(n, slot);
    if (rank < 0 || tail < 0)
        return ACCEL_OK;
    if (tail > rank)
        return accel_fail(ACCEL_ESHAPE, "'%.200s' of rank %d for an input of rank %d",
                          n->in[slot]->name, tail, rank);
    for (int i = 0; i < tail; i++) {
        struct accel_dim x = accel_operand_dim(n, 0, rank - tail + i);
        struct accel_dim s = accel_operand_dim(n, slot, i);
        if (s.n != 1 && accel_dim_differs(x, s))
            return accel_fail(ACCEL_ESHAPE, "axis %d of the input is %lld, of '%.200s' %lld",
                              rank - tail + i, (long long)x.n, n->in[slot]->name, (long long)s.n);
    }
    return ACCEL_OK;
}

static enum accel_err layer_infer(struct accel_node *n)
{
    const struct norm_params *p = n->params;
    int rank = accel_operand_rank(n, 0), axis = 0;
    if (rank < 0) {
        for (int i = 1; i < n->n_out; i++)
            ACCEL_TRY(accel_result_like(n, i, p->stash, NULL));
        return like_input(n);
    }
    ACCEL_TRY(accel_axis_of(&axis, p->axis, rank));
    ACCEL_TRY(check_tail(n, 1));
    ACCEL_TRY(check_tail(n, 2));
    for (int i = 1; i < n->n_out; i++) {
        struct accel_shape s;
        ACCEL_TRY(accel_shape_copy(&s, n, &n->in[0]->shape));
        for (int k = axis; k < rank; k++)
            s.dim[k] = accel_dim_of(1);
        accel_result_set(n, i, p->stash, s);
    }
    return like_input(n);
}

/* ------------------------------------------------------------------ links */

/* Outputs behind the first are statistics: where they are looked at, nothing is said. */
static bool has_statistics(const struct accel_node *n)
{
    for (int i = 1; i < n->n_out; i++)
        if (accel_link_has_out(n, i))
            return true;
    return false;
}

/* A channel without its scale is its shift. */
static void channel_zero(const struct accel_node *n, struct accel_zero *z)
{
    if (accel_zero_get(z, 1, 0) == 0)
        accel_zero_copy(z, 2, 0, accel_link_out(n, 0), 1);
}

static void batch_links(const struct accel_node *n, struct accel_links *l)
{
    const struct norm_params *p = n->params;
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    if (p->training || !p->spatial || has_statistics(n) || rank < 2)
        return;
    accel_links_axes(l, 6,
                     (const struct accel_axis[]){{0, 1}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {y, 1}});
    accel_links_pair(l, 0, 0, y, 0);
    accel_link_range(l, 0, y, 2, rank);
}

static void instance_links(const struct accel_node *n, struct accel_links *l)
{
    int y = accel_link_out(n, 0);
    if (accel_slot_rank(n, 0) < 2)
        return;
    accel_links_pair(l, 0, 0, y, 0);
    accel_links_axes(l, 4, (const struct accel_axis[]){{0, 1}, {1, 0}, {2, 0}, {y, 1}});
}

/* Zeros take part in the statistics of a group: only whole groups go. */
static void group_links(const struct accel_node *n, struct accel_links *l)
{
    const struct norm_params *p = n->params;
    int64_t C = accel_operand_dim(n, 0, 1).n, scales = accel_operand_dim(n, 1, 0).n;
    int y = accel_link_out(n, 0);
    if (accel_slot_rank(n, 0) < 2 || C < 1 || scales < 1 || C % p->groups || scales % p->groups)
        return;
    accel_links_pair(l, 0, 0, y, 0);
    accel_links_tie(l, p->groups, 4,
                    (const struct accel_side[]){accel_side_rep(0, 1, C / p->groups),
                                                accel_side_rep(1, 0, scales / p->groups),
                                                accel_side_rep(2, 0, scales / p->groups),
                                                accel_side_rep(y, 1, C / p->groups)});
}

static enum accel_err group_resize(struct accel_node *n, struct accel_resize *r)
{
    const struct norm_params *p = n->params;
    int64_t was = accel_resize_was(r, 0, 1);
    if (was < 1 || was % p->groups || !accel_resize_hit(r, 0, 1))
        return ACCEL_OK;
    return accel_resize_attr_int(r, "num_groups", accel_resize_now(r, 0, 1) / (was / p->groups));
}

static void layer_links(const struct accel_node *n, struct accel_links *l)
{
    const struct norm_params *p = n->params;
    int rank = accel_slot_rank(n, 0);
    int64_t axis = p->axis < 0 ? p->axis + rank : p->axis;
    if (!has_statistics(n) && axis >= 0 && axis < rank)
        accel_link_range(l, 0, accel_link_out(n, 0), 0, (int)axis);
}

static void lrn_links(const struct accel_node *n, struct accel_links *l)
{
    int rank = accel_slot_rank(n, 0), y = accel_link_out(n, 0);
    accel_link_range(l, 0, y, 0, rank < 1 ? rank : 1);
    accel_link_range(l, 0, y, 2, rank);
}

static void lrn_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_range(z, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0), true);
}

/* The axis of LpNormalization, -1 when there is no such axis. */
static int lp_axis(const struct accel_node *n)
{
    int64_t axis;
    int rank = accel_slot_rank(n, 0);
    if (accel_attr_int(&axis, n, "axis", -1))
        return -1;
    axis = axis < 0 ? axis + rank : axis;
    return axis >= 0 && axis < rank ? (int)axis : -1;
}

static void lp_links(const struct accel_node *n, struct accel_links *l)
{
    int axis = lp_axis(n);
    if (axis < 0)
        return;
    accel_link_range(l, 0, accel_link_out(n, 0), 0, accel_slot_rank(n, 0));
    accel_links_need0(l, 1, &(const struct accel_axis){0, axis});
}

/* Along the other axes a cut unit is 0 / 0. */
static void lp_zero(const struct accel_node *n, struct accel_zero *z)
{
    int axis = lp_axis(n);
    if (axis >= 0)
        accel_zero_copy0(z, 0, axis, accel_link_out(n, 0), axis);
}

/* ------------------------------------------------------------------ kernels */

static real *reals(const struct accel_array *a)
{
    return a->data;
}

/* Mean and variance of `count` runs of `size` elements, `stride` apart. */
static void moments(double *mean, double *var, const real *x, int64_t count, int64_t stride,
                    int64_t size)
{
    double sum = 0, square = 0, n = (double)count * (double)size;
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < size; i++)
            sum += (double)x[r * stride + i];
    *mean = sum / n;
    for (int64_t r = 0; r < count; r++)
        for (int64_t i = 0; i < size; i++) {
            double d = (double)x[r * stride + i] - *mean;
            square += d * d;
        }
    *var = square / n;
}

/* y = x * a + b over one run. */
static void affine(real *y, const real *x, int64_t size, double a, double b)
{
    for (int64_t i = 0; i < size; i++)
        y[i] = (real)((double)x[i] * a + b);
}

static enum accel_err batch_forward(const struct accel_call *c)
{
    const struct norm_params *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    int64_t C = x->rank > 1 ? x->dim[1] : 1, N = x->rank ? x->dim[0] : 1;
    int64_t plane = N > 0 && C > 0 ? x->n / (N * C) : 0;
    if (!p->spatial || (c->node->n_out > 1 && !p->training && c->y[1].data))
        return accel_fail(ACCEL_ENOSUP, "training form of an old opset");
    for (int64_t ch = 0; ch < C && plane; ch++) {
        double mean = (double)reals(&c->x[3])[ch], var = (double)reals(&c->x[4])[ch];
        if (p->training) {
            double old_mean = mean, old_var = var, m = (double)p->momentum;
            moments(&mean, &var, reals(x) + ch * plane, N, C * plane, plane);
            if (c->node->n_out > 1 && c->y[1].data)
                reals(&c->y[1])[ch] = (real)(old_mean * m + mean * (1 - m));
            if (c->node->n_out > 2 && c->y[2].data)
                reals(&c->y[2])[ch] = (real)(old_var * m + var * (1 - m));
        }
        double a = (double)reals(&c->x[1])[ch] / sqrt(var + (double)p->epsilon);
        double b = (double)reals(&c->x[2])[ch] - mean * a;
        for (int64_t n = 0; n < N; n++)
            affine(reals(&c->y[0]) + (n * C + ch) * plane, reals(x) + (n * C + ch) * plane, plane,
                   a, b);
    }
    return ACCEL_OK;
}

/* Instance and group normalisation: statistics over the planes of C / groups channels. */
static enum accel_err group_forward(const struct accel_call *c)
{
    const struct norm_params *p = c->node->params;
    const struct accel_array *x = &c->x[0];
    int64_t C = x->dim[1], N = x->dim[0], plane = N > 0 && C > 0 ? x->n / (N * C) : 0;
    bool instance = c->node->op->family != NULL;
    int64_t groups = instance ? C : p->groups, per = groups ? C / groups : 0;
    for (int64_t g = 0; g < N * groups && plane; g++) {
        double mean, var;
        moments(&mean, &var, reals(x) + g * per * plane, 1, 0, per * plane);
        for (int64_t k = 0; k < per; k++) {
            int64_t ch = g % groups * per + k, at = (g * per + k) * plane;
            int64_t v = !instance && p->group_vectors ? g % groups : ch;
            double a = (double)reals(&c->x[1])[v] / sqrt(var + (double)p->epsilon);
            affine(reals(&c->y[0]) + at, reals(x) + at, plane, a,
                   (double)reals(&c->x[2])[v] - mean * a);
        }
    }
    return ACCEL_OK;
}

/* LayerNormalization; with family set RMS normalisation, which has no mean and no shift. */
static enum accel_err layer_forward(const struct accel_call *c)
{
    const struct norm_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *s = &c->x[1];
    const struct accel_array *b = c->node->n_in > 2 && c->x[2].data ? &c->x[2] : NULL;
    bool rms = c->node->op->family != NULL;
    int axis;
    ACCEL_TRY(accel_axis_of(&axis, p->axis, x->rank));
    int64_t size = 1;
    for (int i = axis; i < x->rank; i++)
        size *= x->dim[i];
    for (int64_t r = 0; size && r < x->n / size; r++) {
        const real *v = reals(x) + r * size;
        double mean, var;
        moments(&mean, &var, v, 1, 0, size);
        if (rms) {
            var += mean * mean;
            mean = 0;
        }
        double scale = 1 / sqrt(var + (double)p->epsilon);
        for (int64_t i = 0; i < size; i++) {
            int64_t at = r * size + i;
            double shift =
                b ? (double)reals(b)[accel_op_meet(b, &c->y[0], x->rank - b->rank, at)] : 0;
            double by = (double)reals(s)[accel_op_meet(s, &c->y[0], x->rank - s->rank, at)];
            reals(&c->y[0])[at] = (real)(((double)v[i] - mean) * scale * by + shift);
        }
        for (int o = 1; o < c->node->n_out; o++)
            if (c->y[o].data)
                reals(&c->y[o])[r] = (real)(o == 1 && !rms ? mean : scale);
    }
    return ACCEL_OK;
}

/* x / (bias + alpha / size * sum of squares over `size` channels around)^beta */
static enum accel_err lrn_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    float alpha, beta, bias;
    int64_t size;
    ACCEL_TRY(accel_attr_float(&alpha, c->node, "alpha", 1e-4f));
    ACCEL_TRY(accel_attr_float(&beta, c->node, "beta", 0.75f));
    ACCEL_TRY(accel_attr_float(&bias, c->node, "bias", 1.0f));
    ACCEL_TRY(accel_attr_int(&size, c->node, "size", 1));
    if (x->rank < 2 || size < 1)
        return accel_fail(ACCEL_ESHAPE, "rank %d, size %lld", x->rank, (long long)size);
    int64_t C = x->dim[1], N = x->dim[0], plane = N > 0 && C > 0 ? x->n / (N * C) : 0;
    int64_t before = (size - 1) / 2, after = size - 1 - before;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t ch = i / plane % C;
        int64_t lo = ch > before ? ch - before : 0, hi = after < C - 1 - ch ? ch + after : C - 1;
        double sum = 0;
        for (int64_t k = lo; k <= hi; k++) {
            double v = (double)reals(x)[i + (k - ch) * plane];
            sum += v * v;
        }
        double by = (double)bias + (double)alpha / (double)size * sum;
        reals(&c->y[0])[i] = (real)((double)reals(x)[i] / pow(by, (double)beta));
    }
    return ACCEL_OK;
}

static enum accel_err lp_forward(const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0];
    int64_t at, p;
    int axis;
    ACCEL_TRY(accel_attr_int(&at, c->node, "axis", -1));
    ACCEL_TRY(accel_attr_int(&p, c->node, "p", 2));
    ACCEL_TRY(accel_axis_of(&axis, at, x->rank));
    int64_t step = 1, size = x->dim[axis];
    for (int d = axis + 1; d < x->rank; d++)
        step *= x->dim[d];
    for (int64_t i = 0; i < x->n; i++) {
        if (i / step % size != 0)
            continue;
        double sum = 0;
        for (int64_t k = 0; k < size; k++) {
            double v = (double)reals(x)[i + k * step];
            sum += p == 1 ? fabs(v) : v * v;
        }
        double norm = p == 1 ? sum : sqrt(sum);
        for (int64_t k = 0; k < size; k++)
            reals(&c->y[0])[i + k * step] =
                (real)(norm != 0 ? (double)reals(x)[i + k * step] / norm : 0);
    }
    return ACCEL_OK;
}

/* (x - mean) / (std + 1e-9) over the axes (default all but the channels). */
static enum accel_err mean_forward(const struct accel_call *c)
{
    static const int64_t all[] = {0, 2, 3};
    const struct accel_array *x = &c->x[0];
    const int64_t *axes;
    size_t count;
    uint64_t reduced = 0;
    ACCEL_TRY(accel_attr_ints(&axes, &count, c->node, "axes"));
    if (!axes) {
        axes = all;
        count = 3;
    }
    for (size_t k = 0; k < count; k++) {
        int axis;
        ACCEL_TRY(accel_axis_of(&axis, axes[k], x->rank));
        if (axis >= 64)
            return accel_fail(ACCEL_ENOSUP, "axis %d", axis);
        reduced |= (uint64_t)1 << axis;
    }
    double *sum = c->scratch, *square = sum + x->n, *n = square + x->n;
    for (int64_t i = 0; i < 3 * x->n; i++)
        sum[i] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int64_t i = 0; i < x->n; i++) {
            int64_t rest = i, group = 0, step = 1;
            for (int d = x->rank - 1; d >= 0; d--) {
                int64_t at = rest % x->dim[d];
                rest /= x->dim[d];
                if (d < 64 && reduced >> d & 1)
                    continue;
                group += at * step;
                step *= x->dim[d];
            }
            double v = (double)reals(x)[i];
            if (pass == 0) {
                sum[group] += v;
                square[group] += v * v;
                n[group] += 1;
                continue;
            }
            double mean = sum[group] / n[group];
            double var = square[group] / n[group] - mean * mean;
            reals(&c->y[0])[i] = (real)((v - mean) / (sqrt(var > 0 ? var : 0) + 1e-9));
        }
    return ACCEL_OK;
}

static size_t mean_scratch(const struct accel_call *c)
{
    return 3 * (size_t)c->x[0].n * sizeof(double);
}

static const struct accel_attr_rule batch_attrs[] = {{"consumed_inputs", ACCEL_ATTR_INTS, 0},
                                                     {"epsilon", ACCEL_ATTR_FLOAT, 0},
                                                     {"is_test", ACCEL_ATTR_INT, 0},
                                                     {"momentum", ACCEL_ATTR_FLOAT, 0},
                                                     {"spatial", ACCEL_ATTR_INT, 0},
                                                     {"training_mode", ACCEL_ATTR_INT, 0},
                                                     {0}};
static const struct accel_attr_rule instance_attrs[] = {
    {"consumed_inputs", ACCEL_ATTR_INTS, 0}, {"epsilon", ACCEL_ATTR_FLOAT, 0}, {0}};
static const struct accel_attr_rule layer_attrs[] = {{"axis", ACCEL_ATTR_INT, 0},
                                                     {"epsilon", ACCEL_ATTR_FLOAT, 0},
                                                     {"stash_type", ACCEL_ATTR_INT, 0},
                                                     {0}};
static const struct accel_attr_rule group_attrs[] = {{"epsilon", ACCEL_ATTR_FLOAT, 0},
                                                     {"num_groups", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                                     {"stash_type", ACCEL_ATTR_INT, 0},
                                                     {0}};
static const struct accel_attr_rule lrn_attrs[] = {{"alpha", ACCEL_ATTR_FLOAT, 0},
                                                   {"beta", ACCEL_ATTR_FLOAT, 0},
                                                   {"bias", ACCEL_ATTR_FLOAT, 0},
                                                   {"size", ACCEL_ATTR_INT, ACCEL_REQUIRED},
                                                   {0}};
static const struct accel_attr_rule lp_attrs[] = {
    {"axis", ACCEL_ATTR_INT, 0}, {"p", ACCEL_ATTR_INT, 0}, {0}};
static const struct accel_attr_rule mean_attrs[] = {{"axes", ACCEL_ATTR_INTS, 0}, {0}};

static const char *const batch_examples[] = {"2x3x4x4 3 3 3 3", "2x3x5 3 3 3 3", "2x3 3 3 3 3",
                                             NULL};
static const char *const instance_examples[] = {"2x3x4x4 3 3", NULL};
static const char *const layer_examples[] = {"2x3x4 4 4", "2x3x4 3x4 3x4 | axis=1", NULL};
static const char *const rms_examples[] = {"2x3x4 4", NULL};
static const char *const group_examples[] = {"2x4x3x3 2 2 | num_groups=2",
                                             "2x6x3 3 3 | num_groups=3", NULL};
static const char *const lrn_examples[] = {"2x5x3x3 | size=3", NULL};
static const char *const plain_examples[] = {"2x3x4x4", NULL};

#define ROW(onnx, opset, least, most, outs, rules, read, shapes, eg)                               \
    .name = (onnx), .domain = "", .since = (opset), .min_in = (least), .max_in = (most),           \
    .min_out = 1, .max_out = (outs), .attrs = (rules), .parse = (read), .infer = (shapes),         \
    .examples = (eg)

const struct accel_op accel_op_batchnormalization = {
    ROW("BatchNormalization", 1, 5, 5, 5, batch_attrs, parse, batch_infer, batch_examples),
    .weights = batch_weights,
    .links = batch_links,
    .zero = channel_zero,
    .forward = batch_forward,
    .keep = 1u << 3 | 1u << 4,
};
static const bool yes = true;

const struct accel_op accel_op_instancenormalization = {
    ROW("InstanceNormalization", 1, 3, 3, 1, instance_attrs, parse, instance_infer,
        instance_examples),
    .links = instance_links,
    .zero = channel_zero,
    .forward = group_forward,
    .family = &yes,
};
const struct accel_op accel_op_layernormalization = {
    ROW("LayerNormalization", 17, 2, 3, 3, layer_attrs, parse, layer_infer, layer_examples),
    .links = layer_links,
    .forward = layer_forward,
};
/* What ONNX Runtime's optimizer calls RMSNormalization; it stands in the standard domain. */
const struct accel_op accel_op_simplifiedlayernormalization = {
    ROW("SimplifiedLayerNormalization", 1, 2, 2, 2, layer_attrs, parse, layer_infer, rms_examples),
    .links = layer_links,
    .forward = layer_forward,
    .family = &yes,
};
const struct accel_op accel_op_rmsnormalization = {
    ROW("RMSNormalization", 23, 2, 2, 1, layer_attrs, parse, layer_infer, rms_examples),
    .links = layer_links,
    .forward = layer_forward,
    .family = &yes,
};
const struct accel_op accel_op_groupnormalization = {
    ROW("GroupNormalization", 18, 3, 3, 1, group_attrs, parse, group_infer, group_examples),
    .links = group_links,
    .zero = channel_zero,
    .resize = group_resize,
    .forward = group_forward,
};
const struct accel_op accel_op_lrn = {
    ROW("LRN", 1, 1, 1, 1, lrn_attrs, NULL, like_input, lrn_examples),
    .links = lrn_links,
    .zero = lrn_zero,
    .forward = lrn_forward,
};
const struct accel_op accel_op_lpnormalization = {
    ROW("LpNormalization", 1, 1, 1, 1, lp_attrs, NULL, like_input, plain_examples),
    .links = lp_links,
    .zero = lp_zero,
    .forward = lp_forward,
};
const struct accel_op accel_op_meanvariancenormalization = {
    ROW("MeanVarianceNormalization", 9, 1, 1, 1, mean_attrs, NULL, like_input, plain_examples),
    .forward = mean_forward,
    .scratch = mean_scratch,
};
