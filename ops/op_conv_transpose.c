/* ConvTranspose: X [N C D…], W [C M/group k…], B [M]  ->  Y [N M O…]: every input element adds a
 * weighted kernel to the output. O is output_shape when given, else by ops/window.h. */
#include <string.h>

#include "graph/attr.h"
#include "ops/conv.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct transpose_params {
    struct accel_window w;
    const int64_t *extra, *said; /* output_padding, output_shape */
    size_t n_extra, n_said;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    struct transpose_params *p = ACCEL_NEW(&n->graph->model->arena, struct transpose_params, 1);
    (void)opset;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_window_read(&p->w, n));
    ACCEL_TRY(accel_attr_ints(&p->extra, &p->n_extra, n, "output_padding"));
    ACCEL_TRY(accel_attr_ints(&p->said, &p->n_said, n, "output_shape"));
    for (size_t i = 0; i < p->n_extra; i++)
        if (p->extra[i] < 0 || p->extra[i] > INT32_MAX)
            return accel_fail(ACCEL_EMODEL, "attribute 'output_padding' holds %lld",
                              (long long)p->extra[i]);
    for (size_t i = 0; i < p->n_said; i++)
        if (p->said[i] < 0)
            return accel_fail(ACCEL_EMODEL, "attribute 'output_shape' holds %lld",
                              (long long)p->said[i]);
    n->params = p;
    return ACCEL_OK;
}

/* Lists that only this operator has. output_shape may begin with N and M. */
static enum accel_err check_lists(const struct transpose_params *p, int axes)
{
    if (p->n_extra && p->n_extra != (size_t)axes)
        return accel_fail(ACCEL_ESHAPE, "attribute 'output_padding' has %zu entries instead of %d",
                          p->n_extra, axes);
    if (p->n_said && p->n_said != (size_t)axes && p->n_said != (size_t)axes + 2)
        return accel_fail(ACCEL_ESHAPE, "attribute 'output_shape' has %zu entries instead of %d",
                          p->n_said, axes);
    return ACCEL_OK;
}

static enum accel_err axis_size(struct accel_dim *out, const struct accel_node *n, int axes, int i)
{
    const struct transpose_params *p = n->params;
    const struct accel_window *w = &p->w;
    struct accel_dim in = accel_operand_dim(n, 0, i + 2), k;
    int64_t stride = accel_window_stride(w, i), extent, add;
    ACCEL_TRY(accel_conv_kernel(&k, n, 1, w, i));
    if (p->n_said) {
        *out = accel_dim_of(p->said[p->n_said - (size_t)axes + (size_t)i]);
        return ACCEL_OK;
    }
    if (w->auto_pad == ACCEL_PAD_SAME_UPPER || w->auto_pad == ACCEL_PAD_SAME_LOWER)
        return accel_dim_derive(out, accel_operand_symbols(n), in, stride, 0, 1, 0);
    *out = accel_dim_unknown();
    if (!accel_dim_known(k))
        return ACCEL_OK;
    ACCEL_TRY(accel_window_extent(&extent, w, i, k.n));
    add = extent - stride + (p->n_extra ? p->extra[i] : 0);
    if (w->auto_pad == ACCEL_PAD_GIVEN && w->pad)
        add -= w->pad[i] + w->pad[w->n_pad / 2 + (size_t)i];
    return accel_dim_derive(out, accel_operand_symbols(n), in, stride, add, 1, 0);
}

static enum accel_err infer(struct accel_node *n)
{
    const struct transpose_params *p = n->params;
    struct accel_dim c = accel_operand_dim(n, 0, 1), w_in = accel_operand_dim(n, 1, 0);
    struct accel_shape y;
    int rank = -1;
    ACCEL_TRY(accel_conv_rank(&rank, n, 1, &p->w));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    if (rank >= 0) {
        ACCEL_TRY(check_lists(p, rank - 2));
        if (accel_dim_differs(c, w_in))
            return accel_fail(ACCEL_ESHAPE, "input has %lld channels, weight '%.200s' expects %lld",
                              (long long)c.n, n->in[1]->name, (long long)w_in.n);
        if (accel_dim_known(w_in) && w_in.n % p->w.group != 0)
            return accel_fail(ACCEL_ESHAPE,
                              "weight '%.200s' has %lld input channels in %lld groups",
                              n->in[1]->name, (long long)w_in.n, (long long)p->w.group);
        y.dim[0] = accel_operand_dim(n, 0, 0);
        ACCEL_TRY(accel_dim_derive(&y.dim[1], accel_operand_symbols(n), accel_operand_dim(n, 1, 1),
                                   p->w.group, 0, 1, 0));
        ACCEL_TRY(accel_operand_check_vector(n, 2, y.dim[1], "bias"));
        for (int i = 0; i < rank - 2; i++)
            ACCEL_TRY(axis_size(&y.dim[2 + i], n, rank - 2, i));
    }
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

/* N * C * prod(D) * M/group * prod(k) */
static void cost(const struct accel_node *n, struct accel_cost *c)
{
    c->macs = accel_macs_mul(accel_operand_count(n, 0), accel_conv_taps(n, 1));
}

static int weights(const struct accel_node *n, struct accel_weight w[4])
{
    static const char *const types[] = {"ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"};
    int rank = accel_operand_rank(n, 1);
    if (rank < 3)
        return 0;
    w[0] = (struct accel_weight){
        1, rank, 1, 0, -1, rank <= 5 ? types[rank - 3] : "ConvTranspose", false, 2, 0, 0};
    return 1;
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    accel_conv_links(l, ((const struct transpose_params *)n->params)->w.group, true);
}

static void zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_conv_zero(z, ((const struct transpose_params *)n->params)->w.group, true);
}

/* output_shape may begin with N and M, which stand for themselves. */
static enum accel_err resize(struct accel_node *n, struct accel_resize *r)
{
    const struct transpose_params *p = n->params;
    int y = accel_link_out(n, 0), rank = accel_slot_rank(n, y);
    if (rank >= 2 && p->n_said == (size_t)rank && accel_resize_hit(r, y, 1)) {
        int64_t *said = ACCEL_NEW(&n->graph->model->arena, int64_t, rank);
        if (!said)
            return accel_fail_nomem();
        memcpy(said, p->said, (size_t)rank * sizeof *said);
        said[1] = accel_resize_now(r, y, 1);
        ACCEL_TRY(accel_resize_attr_ints(r, "output_shape", said, (size_t)rank));
    }
    return accel_conv_resize(r, p->w.group, y);
}

/* ------------------------------------------------------------------ kernel */

/* Spreads one plane of x over one of y by one tap. The axes are those of the convolution that goes
 * back: its input is y. */
static void spread(real *y, const real *x, real w, const struct accel_window_axis a[3],
                   const int64_t t[3])
{
    int64_t lo[3], hi[3];
    for (int i = 0; i < 3; i++)
        accel_window_range(&lo[i], &hi[i], &a[i], t[i]);
    int64_t step = a[2].stride, off = t[2] * a[2].dilation - a[2].begin;
    for (int64_t d = lo[0]; d < hi[0]; d++)
        for (int64_t h = lo[1]; h < hi[1]; h++) {
            int64_t at_d = d * a[0].stride + t[0] * a[0].dilation - a[0].begin;
            int64_t at_h = h * a[1].stride + t[1] * a[1].dilation - a[1].begin;
            real *to = y + (at_d * a[1].in + at_h) * a[2].in + off;
            const real *from = x + (d * a[1].out + h) * a[2].out;
            for (int64_t i = lo[2]; i < hi[2]; i++)
                to[i * step] += w * from[i];
        }
}

/* Axes seen from y. With output_shape the padding is what is left over: the odd one in front. */
static enum accel_err back_axes(struct accel_window_axis a[3], const struct transpose_params *p,
                                const struct accel_call *c)
{
    const struct accel_array *x = &c->x[0], *y = &c->y[0];
    ACCEL_TRY(accel_window_axes(a, &p->w, x, y, c->x[1].dim + 2, true));
    for (int i = 0; i < 3; i++) {
        int axis = i - (5 - x->rank);
        int64_t extra = axis >= 0 && p->n_extra ? p->extra[axis] : 0;
        int64_t total =
            a[i].stride * (a[i].in - 1) + extra + (a[i].k - 1) * a[i].dilation + 1 - a[i].out;
        if (axis >= 0 && (p->n_said || p->w.auto_pad == ACCEL_PAD_SAME_UPPER ||
                          p->w.auto_pad == ACCEL_PAD_SAME_LOWER)) {
            total = total > 0 ? total : 0;
            a[i].begin = p->w.auto_pad == ACCEL_PAD_SAME_UPPER ? total / 2 : total - total / 2;
        }
        int64_t in = a[i].in;
        a[i].in = a[i].out;
        a[i].out = in;
    }
    return ACCEL_OK;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct transpose_params *p = c->node->params;
    const struct accel_array *x = &c->x[0], *w = &c->x[1], *y = &c->y[0];
    const real *bias = c->node->n_in > 2 ? c->x[2].data : NULL;
    struct accel_window_axis a[3];
    ACCEL_TRY(back_axes(a, p, c));
    int64_t x_size = a[0].out * a[1].out * a[2].out, y_size = a[0].in * a[1].in * a[2].in;
    int64_t C = x->dim[1], M = y->dim[1], per = w->dim[1], of_group = C / p->w.group, t[3];
    for (int64_t i = 0; i < y->n; i++)
        ((real *)y->data)[i] = bias ? bias[i / y_size % M] : 0;
    for (int64_t i = 0; i < x->dim[0] * C; i++) {
        int64_t n = i / C, ch = i % C, first = ch / of_group * per;
        const real *v = (const real *)w->data + ch * per * a[0].k * a[1].k * a[2].k;
        for (int64_t m = 0; m < per; m++) {
            real *to = (real *)y->data + (n * M + first + m) * y_size;
            for (t[0] = 0; t[0] < a[0].k; t[0]++)
                for (t[1] = 0; t[1] < a[1].k; t[1]++)
                    for (t[2] = 0; t[2] < a[2].k; t[2]++, v++)
                        spread(to, (const real *)x->data + i * x_size, *v, a, t);
        }
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule attrs[] = {{"auto_pad", ACCEL_ATTR_STRING, 0},
                                               {"dilations", ACCEL_ATTR_INTS, 0},
                                               {"group", ACCEL_ATTR_INT, 0},
                                               {"kernel_shape", ACCEL_ATTR_INTS, 0},
                                               {"output_padding", ACCEL_ATTR_INTS, 0},
                                               {"output_shape", ACCEL_ATTR_INTS, 0},
                                               {"pads", ACCEL_ATTR_INTS, 0},
                                               {"strides", ACCEL_ATTR_INTS, 0},
                                               {0}};
static const char *const examples[] = {"2x3x4x4 3x5x2x2 5 | strides=2,2",
                                       "1x2x5 2x3x5",
                                       "1x4x3x3 4x2x3x3 4 | group=2 pads=1,1,1,1",
                                       "2x8x2x2 8x3x2x2 6 | group=2",
                                       "2x6x2x2 6x2x2x2 6 | group=3",
                                       "1x1x3x3 1x2x3x3 | strides=3,2 output_shape=10,8",
                                       "1x1x3x3 1x2x3x3 | strides=3,2 output_padding=1,1",
                                       NULL};

const struct accel_op accel_op_convtranspose = {
    .name = "ConvTranspose",
    .domain = "",
    .since = 1,
    .min_in = 2,
    .max_in = 3,
    .min_out = 1,
    .max_out = 1,
    .attrs = attrs,
    .parse = parse,
    .infer = infer,
    .cost = cost,
    .weights = weights,
    .links = links,
    .zero = zero,
    .resize = resize,
    .forward = forward,
    .examples = examples,
};
