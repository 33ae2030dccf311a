/* fast_conv.c - Conv and ConvTranspose. A BatchNormalization of constants behind a Conv of
 * constants goes into weights and bias, computed in double; further nodes become post-ops. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"
#include "ops/onednn/dn_job.h"
#include "ops/window.h"

/* X, W and Y of a convolution as numbers. */
struct shapes {
    int rank;
    int64_t x[ACCEL_DN_MAX_RANK], w[ACCEL_DN_MAX_RANK], y[ACCEL_DN_MAX_RANK];
    struct accel_window window;
};

static enum accel_err read_shapes(struct shapes *s, const struct accel_dn_job *j,
                                  const struct accel_value *x, const struct accel_value *w)
{
    const struct accel_node *n = j->ask->chain[0];
    int w_rank = 0, y_rank = 0;
    ACCEL_TRY(accel_dn_sizes(&s->rank, s->x, x));
    ACCEL_TRY(accel_dn_sizes(&w_rank, s->w, w));
    ACCEL_TRY(accel_dn_sizes(&y_rank, s->y, n->out[0]));
    if (s->rank < 3 || s->rank > 5 || w_rank != s->rank || y_rank != s->rank)
        return accel_fail(ACCEL_ENOSUP, "a convolution of rank %d", s->rank);
    return accel_window_read(&s->window, n);
}

/* Steps and padding of the spatial axes. A transposed window is described by the convolution that
 * goes back, from y to x. */
static enum accel_err set_window(struct accel_dn_spec *spec, const struct shapes *s,
                                 bool transposed)
{
    const struct accel_array x = {.rank = s->rank, .dim = s->x}, y = {.rank = s->rank, .dim = s->y};
    struct accel_window_axis a[3];
    spec->n_axes = s->rank - 2;
    ACCEL_TRY(accel_window_axes(a, &s->window, &x, &y, s->w + 2, transposed));
    for (int i = 0; i < spec->n_axes; i++) {
        const struct accel_window_axis *at = &a[3 - spec->n_axes + i];
        int64_t extent = (at->k - 1) * at->dilation + 1;
        spec->stride[i] = at->stride;
        spec->dilation[i] = at->dilation;
        spec->begin[i] = at->begin;
        spec->end[i] = transposed ? (at->in - 1) * at->stride + extent - at->begin - at->out
                                  : (at->out - 1) * at->stride + extent - at->in - at->begin;
        if (!transposed && spec->end[i] < 0)
            spec->end[i] = 0; /* the last window does not reach the end */
        if (spec->begin[i] < 0 || spec->end[i] < 0)
            return accel_fail(ACCEL_ENOSUP, "negative padding");
    }
    return ACCEL_OK;
}

/* Sizes and strides of stored weights [a, b/group, k…] as [group, to, from, k…]. `swapped`: the
 * first axis is that of the inputs. */
static int weight_view(int64_t dim[ACCEL_DN_MAX_RANK], int64_t stride[ACCEL_DN_MAX_RANK],
                       const struct shapes *s, bool swapped)
{
    int64_t group = s->window.group, taps = 1, a = s->w[0] / group, b = s->w[1];
    int first = group > 1, rank = s->rank + first;
    for (int i = s->rank - 1; i >= 2; i--) {
        dim[first + i] = s->w[i];
        stride[first + i] = taps;
        taps *= s->w[i];
    }
    dim[0] = group;
    stride[0] = a * b * taps;
    dim[first + swapped] = a;
    stride[first + swapped] = b * taps;
    dim[first + !swapped] = b;
    stride[first + !swapped] = taps;
    return rank;
}

/* ------------------------------------------------------------------ BatchNormalization behind it
 */

struct fold {
    const float *scale, *shift, *mean, *var, *w, *bias;
    float epsilon;
};

/* Node 1 of the chain is a BatchNormalization over constants, and so are weights and bias. */
static bool can_fold(struct fold *f, const struct accel_dn_job *j, int64_t M, int64_t w_size)
{
    const struct accel_node *conv = j->ask->chain[0], *n;
    const float **part[] = {&f->scale, &f->shift, &f->mean, &f->var};
    int64_t training, spatial;
    if (j->limit < 2)
        return false;
    n = j->ask->chain[1];
    if (strcmp(n->op->name, "BatchNormalization") != 0 || *n->op->domain || n->n_in != 5 ||
        n->in[0] != conv->out[0])
        return false;
    if (accel_attr_int(&training, n, "training_mode", 0) || training ||
        accel_attr_int(&spatial, n, "spatial", 1) || !spatial ||
        accel_attr_float(&f->epsilon, n, "epsilon", 1e-5f) ||
        accel_dn_constant(&f->w, j, 1, w_size))
        return false;
    f->bias = NULL;
    if (conv->n_in > 2 && conv->in[2] && accel_dn_constant(&f->bias, j, 2, M))
        return false;
    for (int i = 0; i < 4; i++)
        if (accel_dn_constant(part[i], j, accel_dn_first_operand(j, 1) + i, M))
            return false;
    return true;
}

/* w' = w * a, b' = (b - mean) * a + shift with a = scale / sqrt(var + epsilon), per output channel.
 */
static void fold(float *w, float *bias, const struct fold *f, int64_t M, int64_t per)
{
    for (int64_t m = 0; m < M; m++) {
        double a = (double)f->scale[m] / sqrt((double)f->var[m] + (double)f->epsilon);
        double b = f->bias ? (double)f->bias[m] : 0;
        for (int64_t i = 0; i < per; i++)
            w[m * per + i] = (float)((double)f->w[m * per + i] * a);
        bias[m] = (float)((b - (double)f->mean[m]) * a + (double)f->shift[m]);
    }
}

static enum accel_err add_folded(struct accel_dn_job *j, const struct fold *f, int rank,
                                 const int64_t *dim, int64_t M, int64_t per)
{
    float *w = accel_calloc((size_t)(M * per), sizeof *w);
    float *bias = accel_calloc((size_t)M, sizeof *bias);
    if (!w || !bias) {
        accel_free(w);
        accel_free(bias);
        return accel_fail_nomem();
    }
    fold(w, bias, f, M, per);
    enum accel_err err = accel_dn_add_own(j, w, ACCEL_DN_F32, rank, dim);
    if (!err)
        err = accel_dn_format_any(&j->arg[1].want, rank, dim);
    if (err) {
        accel_free(bias);
        return err;
    }
    return accel_dn_add_own(j, bias, ACCEL_DN_F32, 1, &M);
}

static enum accel_err add_bias(struct accel_dn_job *j, int64_t M)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t dim[ACCEL_DN_MAX_RANK];
    int rank = 0;
    if (n->n_in < 3 || !n->in[2])
        return ACCEL_OK;
    ACCEL_TRY(accel_dn_dims(&rank, dim, n->in[2]));
    if (rank != 1 || dim[0] != M)
        return accel_fail(ACCEL_ENOSUP, "bias of another size");
    return accel_dn_add(j, 2, false);
}

enum accel_err accel_dn_conv_window(struct accel_dn_conv_shape *c, struct accel_dn_job *j,
                                    const struct accel_value *x, const struct accel_value *w)
{
    struct shapes s;
    ACCEL_TRY(read_shapes(&s, j, x, w));
    j->spec.kind = ACCEL_DN_CONV;
    ACCEL_TRY(set_window(&j->spec, &s, false));
    c->w_rank = weight_view(c->w, c->w_step, &s, false);
    c->M = s.w[0];
    c->per = 1;
    for (int i = 1; i < s.rank; i++)
        c->per *= s.w[i];
    return ACCEL_OK;
}

enum accel_err accel_dn_conv(struct accel_dn_job *j)
{
    int64_t dim[ACCEL_DN_MAX_RANK], stride[ACCEL_DN_MAX_RANK], per = 1;
    struct shapes s;
    struct fold f;
    if (j->int8)
        return accel_dn_conv_of_dequantized(j);
    ACCEL_TRY(read_shapes(&s, j, j->ask->operand[0], j->ask->operand[1]));
    j->spec.kind = ACCEL_DN_CONV;
    ACCEL_TRY(set_window(&j->spec, &s, false));
    for (int i = 1; i < s.rank; i++)
        per *= s.w[i];
    int rank = weight_view(dim, stride, &s, false);
    bool folds = can_fold(&f, j, s.w[0], s.w[0] * per);
    ACCEL_TRY(accel_dn_add(j, 0, true));
    if (folds) {
        ACCEL_TRY(add_folded(j, &f, rank, dim, s.w[0], per));
    } else {
        ACCEL_TRY(accel_dn_add_view(j, 1, rank, dim, stride, true));
        ACCEL_TRY(add_bias(j, s.w[0]));
    }
    accel_dn_narrow(j);
    ACCEL_TRY(accel_dn_set_out(j, j->ask->chain[0]->out[0], true));
    return accel_dn_chain(j, folds ? 2 : 1);
}

enum accel_err accel_dn_conv_transpose(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t dim[ACCEL_DN_MAX_RANK], stride[ACCEL_DN_MAX_RANK];
    const int64_t *said;
    size_t n_said;
    struct shapes s;
    ACCEL_TRY(read_shapes(&s, j, j->ask->operand[0], j->ask->operand[1]));
    ACCEL_TRY(accel_attr_ints(&said, &n_said, n, "output_shape"));
    if (n_said || s.window.auto_pad == ACCEL_PAD_SAME_UPPER ||
        s.window.auto_pad == ACCEL_PAD_SAME_LOWER)
        return accel_fail(ACCEL_ENOSUP, "padding that follows from the output");
    j->spec.kind = ACCEL_DN_DECONV;
    ACCEL_TRY(set_window(&j->spec, &s, true));
    int rank = weight_view(dim, stride, &s, true);
    ACCEL_TRY(accel_dn_add(j, 0, true));
    ACCEL_TRY(accel_dn_add_view(j, 1, rank, dim, stride, true));
    ACCEL_TRY(add_bias(j, s.y[1]));
    ACCEL_TRY(accel_dn_set_out(j, n->out[0], true));
    return accel_dn_chain(j, 1);
}
