/* GridSample: X [N C D…] looked at where a grid [N O… D] says -> Y [N C O…]. AffineGrid makes such
 * grids.
 *
 * A grid's last axis holds a position, innermost axis of X first, -1 and 1 being the ends of an
 * axis. Each axis has 1, 2 or 4 taps with a weight each; Y is the sum over all their combinations.
 * Positions are brought into the image first, and taps that still lie outside once more, as the
 * ONNX reference does. Source: ONNX operator page GridSample, Keys' cubic with a = -0.75. */
#include <math.h>
#include <string.h>

#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/op_util.h"
#include "ops/real.h"

#define MAX_AXES 6

enum grid_padding { GRID_ZEROS, GRID_BORDER, GRID_REFLECTION };

struct grid {
    int taps;
    enum grid_padding padding;
    bool corners; /* -1 and 1 are the centres of the outermost pixels, not their edges */
};

static enum accel_err grid_parse(struct accel_node *n, int opset)
{
    struct grid *p = accel_op_params(n, sizeof *p);
    const char *mode, *padding;
    int64_t corners;
    (void)opset; /* bilinear became linear, bicubic became cubic in opset 20 */
    if (!p)
        return ACCEL_ENOMEM;
    ACCEL_TRY(accel_attr_string(&mode, n, "mode", "linear"));
    ACCEL_TRY(accel_attr_string(&padding, n, "padding_mode", "zeros"));
    ACCEL_TRY(accel_attr_int(&corners, n, "align_corners", 0));
    p->corners = corners != 0;
    p->taps = strcmp(mode, "nearest") == 0                                   ? 1
              : strcmp(mode, "linear") == 0 || strcmp(mode, "bilinear") == 0 ? 2
              : strcmp(mode, "cubic") == 0 || strcmp(mode, "bicubic") == 0   ? 4
                                                                             : 0;
    if (!p->taps)
        return accel_fail(ACCEL_EMODEL, "attribute 'mode' is '%.100s'", mode);
    if (strcmp(padding, "border") == 0)
        p->padding = GRID_BORDER;
    else if (strcmp(padding, "reflection") == 0)
        p->padding = GRID_REFLECTION;
    else if (strcmp(padding, "zeros") != 0)
        return accel_fail(ACCEL_EMODEL, "attribute 'padding_mode' is '%.100s'", padding);
    return ACCEL_OK;
}

static enum accel_err grid_infer(struct accel_node *n)
{
    int rank = accel_operand_rank(n, 0), grid = accel_operand_rank(n, 1);
    struct accel_dim batch, x = accel_operand_dim(n, 0, 0), g = accel_operand_dim(n, 1, 0);
    struct accel_shape out;
    if (rank >= 0 && grid >= 0 && rank != grid)
        return accel_fail(ACCEL_ESHAPE, "input of rank %d, grid of rank %d", rank, grid);
    if (rank >= 0 && rank < 3)
        return accel_fail(ACCEL_ESHAPE, "input of rank %d", rank);
    if (!accel_dim_join(&batch, x, g))
        return accel_fail(ACCEL_ESHAPE, "a batch of %lld, grids for %lld", (long long)x.n,
                          (long long)g.n);
    ACCEL_TRY(accel_shape_new(&out, n, rank));
    for (int i = 0; i < rank; i++)
        out.dim[i] = i < 2 ? accel_operand_dim(n, 0, i) : accel_operand_dim(n, 1, i - 1);
    accel_result_set(n, 0, accel_operand_dtype(n, 0), out);
    return ACCEL_OK;
}

static void grid_links(const struct accel_node *n, struct accel_links *l)
{
    int y = accel_link_out(n, 0);
    accel_links_axes(l, 3, (const struct accel_axis[]){{0, 0}, {1, 0}, {y, 0}});
    accel_links_pair(l, 0, 1, y, 1);
}

static void grid_zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_copy0(z, 0, 1, accel_link_out(n, 0), 1);
}

/* ------------------------------------------------------------------ kernel */

/* Where one output looks along one axis. */
struct look {
    int64_t at[4]; /* -1: outside, 0 */
    double weight[4];
};

/* Thrown back at the ends [lo, hi] as often as it takes. */
static double reflect(double v, double lo, double hi)
{
    double range = hi - lo;
    if (!(range > 0))
        return lo;
    if (v >= lo && v <= hi)
        return v;
    double beyond = v < lo ? lo - v : v - hi, rest = fmod(beyond, range);
    bool even = fmod(floor(beyond / range), 2) < 1;
    return (v < lo) == even ? lo + rest : hi - rest;
}

/* v within an axis of `size` pixels by the padding mode; unchanged for zeros. */
static double inside(double v, const struct grid *p, int64_t size)
{
    double lo = p->corners ? 0 : -0.5, hi = p->corners ? (double)size - 1 : (double)size - 0.5;
    if (v >= lo && v <= hi)
        return v;
    if (p->padding == GRID_BORDER)
        return fmin(fmax(v, 0), (double)size - 1);
    return p->padding == GRID_REFLECTION ? reflect(v, lo, hi) : v;
}

static int64_t pixel(double v, const struct grid *p, int64_t size)
{
    if (p->padding == GRID_BORDER)
        v = fmin(fmax(v, 0), (double)size - 1);
    else if (p->padding == GRID_REFLECTION)
        v = trunc(inside(v, p, size));
    return v >= 0 && v < (double)size ? (int64_t)v : -1;
}

static void cubic(double w[4], double x)
{
    const double a = -0.75;
    w[0] = ((a * (x + 1) - 5 * a) * (x + 1) + 8 * a) * (x + 1) - 4 * a;
    w[1] = ((a + 2) * x - (a + 3)) * x * x + 1;
    w[2] = ((a + 2) * (1 - x) - (a + 3)) * (1 - x) * (1 - x) + 1;
    w[3] = ((a * (2 - x) - 5 * a) * (2 - x) + 8 * a) * (2 - x) - 4 * a;
}

static void look(struct look *l, double v, const struct grid *p, int64_t size)
{
    v = p->corners ? (v + 1) / 2 * ((double)size - 1) : ((v + 1) * (double)size - 1) / 2;
    v = fmin(fmax(isnan(v) ? -1e15 : v, -1e15), 1e15);
    v = inside(p->taps == 1 ? nearbyint(v) : v, p, size);
    double first = p->taps == 1 ? nearbyint(v) : floor(v), part = v - first;
    l->weight[0] = p->taps == 1 ? 1 : 1 - part;
    l->weight[1] = part;
    if (p->taps == 4) {
        cubic(l->weight, part);
        first--;
    }
    for (int t = 0; t < p->taps; t++)
        l->at[t] = pixel(first + t, p, size);
}

/* Sum over all combinations of taps of one plane. */
static double sample(const real *x, const struct look *l, const int64_t *dim, int axes, int taps)
{
    int t[MAX_AXES] = {0}, a;
    double sum = 0;
    do {
        double w = 1;
        int64_t at = 0;
        for (a = 0; a < axes && at >= 0; a++) {
            w *= l[a].weight[t[a]];
            at = l[a].at[t[a]] < 0 ? -1 : at * dim[a] + l[a].at[t[a]];
        }
        if (at >= 0)
            sum += w * (double)x[at];
        for (a = axes - 1; a >= 0 && ++t[a] == taps; a--)
            t[a] = 0;
    } while (a >= 0);
    return sum;
}

static enum accel_err grid_forward(const struct accel_call *c)
{
    const struct grid *p = c->node->params;
    const struct accel_array *x = &c->x[0], *g = &c->x[1], *y = &c->y[0];
    struct look l[MAX_AXES];
    int axes = x->rank - 2;
    if (accel_op_is_int(x) || accel_op_is_int(g) || axes > MAX_AXES)
        return accel_fail(ACCEL_ENOSUP, "a grid over %d axes, or of integers", axes);
    if (g->dim[axes + 1] != axes || g->dim[0] != x->dim[0])
        return accel_fail(ACCEL_ESHAPE, "a grid of %lld positions of %lld axes for %lld of %d",
                          (long long)g->dim[0], (long long)g->dim[axes + 1], (long long)x->dim[0],
                          axes);
    int64_t points = accel_array_span(y, 2, y->rank), pixels = accel_array_span(x, 2, x->rank);
    int64_t C = x->dim[1];
    if (y->n && !pixels)
        return accel_fail(ACCEL_ESHAPE, "an image of no pixels");
    for (int64_t i = 0; i < y->dim[0] * points && y->n; i++) {
        const real *at = (const real *)g->data + i * axes;
        for (int a = 0; a < axes; a++)
            look(&l[a], (double)at[axes - 1 - a], p, x->dim[2 + a]);
        for (int64_t ch = i / points * C; ch < (i / points + 1) * C; ch++)
            ((real *)y->data)[ch * points + i % points] =
                (real)sample((const real *)x->data + ch * pixels, l, x->dim + 2, axes, p->taps);
    }
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ AffineGrid */

/* Matrices [N D D+1] and a size [N C D…] -> a grid [N D… D]. */
static enum accel_err affine_infer(struct accel_node *n)
{
    struct accel_shape size, y;
    ACCEL_TRY(accel_operand_check_rank(n, 0, 3));
    ACCEL_TRY(accel_shape_from_input(&size, n, 1));
    int rank = size.rank;
    if (rank >= 0 && rank != 4 && rank != 5)
        return accel_fail(ACCEL_ESHAPE, "a size of %d numbers, not 4 or 5", rank);
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++)
        y.dim[i] = i == 0 ? size.dim[0] : i + 1 == rank ? accel_dim_of(rank - 2) : size.dim[i + 1];
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

static enum accel_err affine_forward(const struct accel_call *c)
{
    const struct accel_array *m = &c->x[0], *y = &c->y[0];
    int axes = y->rank - 2;
    int64_t corners;
    ACCEL_TRY(accel_attr_int(&corners, c->node, "align_corners", 0));
    if (accel_op_is_int(m))
        return accel_fail(ACCEL_ENOSUP, "a grid of integers");
    if (m->dim[0] != y->dim[0] || m->dim[1] != axes || m->dim[2] != axes + 1)
        return accel_fail(ACCEL_ESHAPE, "matrices %lldx%lldx%lld for %lld grids over %d axes",
                          (long long)m->dim[0], (long long)m->dim[1], (long long)m->dim[2],
                          (long long)y->dim[0], axes);
    int64_t points = accel_array_span(y, 1, y->rank - 1);
    for (int64_t i = 0; i < y->n; i++) {
        int64_t rest = i / axes % points;
        const real *row =
            (const real *)m->data + (i / axes / points * axes + i % axes) * (axes + 1);
        double sum = (double)row[axes];
        for (int a = axes - 1; a >= 0; a--) {
            int64_t size = y->dim[1 + a], at = rest % size;
            double v = !corners   ? (2 * (double)at + 1) / (double)size - 1
                       : size > 1 ? 2 * (double)at / ((double)size - 1) - 1
                                  : 0;
            sum += (double)row[axes - 1 - a] * v;
            rest /= size;
        }
        ((real *)y->data)[i] = (real)sum;
    }
    return ACCEL_OK;
}

static const struct accel_attr_rule grid_attrs[] = {{"align_corners", ACCEL_ATTR_INT, 0},
                                                    {"mode", ACCEL_ATTR_STRING, 0},
                                                    {"padding_mode", ACCEL_ATTR_STRING, 0},
                                                    {0}};
static const struct accel_attr_rule affine_attrs[] = {{"align_corners", ACCEL_ATTR_INT, 0}, {0}};
static const char *const grid_examples[] = {
    "1x2x4x4 1x6x7x2", "2x3x5x4 2x3x3x2 | mode=cubic padding_mode=reflection",
    "1x2x5x4 1x3x3x2 | mode=nearest padding_mode=border align_corners=1", "1x1x3x4x5 1x2x2x2x3",
    NULL};
static const char *const affine_examples[] = {"2x2x3 [2,3,4,5]", "1x3x4 [1,1,2,3,4]", NULL};

const struct accel_op accel_op_grid_sample = {
    .name = "GridSample",
    .domain = "",
    .since = 16,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .attrs = grid_attrs,
    .parse = grid_parse,
    .infer = grid_infer,
    .links = grid_links,
    .zero = grid_zero,
    .forward = grid_forward,
    .examples = grid_examples,
};
const struct accel_op accel_op_affine_grid = {
    .name = "AffineGrid",
    .domain = "",
    .since = 20,
    .min_in = 2,
    .max_in = 2,
    .min_out = 1,
    .max_out = 1,
    .attrs = affine_attrs,
    .infer = affine_infer,
    .forward = affine_forward,
    .examples = affine_examples,
};
