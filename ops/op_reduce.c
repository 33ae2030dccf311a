/* Reductions over axes: every output element folds the input elements of its group.
 *
 * Axes are an attribute (ReduceSum below opset 13, the others below 18) or input 1; parse() reads
 * the first, infer() asks constant propagation for the second. The kernel walks the input once and
 * keeps the output index beside it, so that it needs no memory. */
#include <math.h>
#include <string.h>

#include "graph/attr.h"
#include "graph/constprop.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/operand.h"
#include "ops/real.h"

struct reduce_params {
    bool keep, noop;     /* keepdims; no axes means no reduction */
    bool from_input;     /* axes are input 1 */
    const int64_t *axes; /* [n_axes] the attribute */
    size_t n_axes;
};

/* What becomes of the result when units that are 0 are cut from a folded axis, and what a unit of
 * another axis is when it is all 0 or all of one number. */
enum reduce_cut {
    CUT_WALL, /* changed; unknown */
    CUT_ZERO, /* changed (a product, a largest element); 0 */
    CUT_SAME, /* changed; that number */
    CUT_SUM,  /* the same; 0 */
    CUT_MEAN, /* too large by what was cut; 0 */
};

struct reduce {
    int input_since; /* opset from which axes are an input */
    double start;    /* the value of an empty group */
    double (*step)(double so_far, double x);
    double (*end)(double folded, double count); /* NULL: as folded */
    int64_t (*step_i)(int64_t so_far, int64_t x);
    int64_t start_i;
    enum reduce_cut cut;
};

static enum accel_err parse(struct accel_node *n, int opset)
{
    const struct reduce *f = n->op->family;
    struct reduce_params *p = ACCEL_NEW(&n->graph->model->arena, struct reduce_params, 1);
    int64_t keep, noop;
    if (!p)
        return accel_fail_nomem();
    ACCEL_TRY(accel_attr_int(&keep, n, "keepdims", 1));
    ACCEL_TRY(accel_attr_int(&noop, n, "noop_with_empty_axes", 0));
    p->keep = keep != 0;
    p->from_input = opset >= f->input_since;
    p->noop = p->from_input && noop != 0;
    if (!p->from_input)
        ACCEL_TRY(accel_attr_ints(&p->axes, &p->n_axes, n, "axes"));
    n->params = p;
    return ACCEL_OK;
}

/* Marks the axes that are folded in mark[rank]. */
static enum accel_err mark_axes(bool *mark, int rank, const int64_t *axes, size_t n_axes, bool noop)
{
    for (int i = 0; i < rank; i++)
        mark[i] = n_axes == 0 && !noop;
    for (size_t i = 0; i < n_axes; i++) {
        int a;
        ACCEL_TRY(accel_axis_of(&a, axes[i], rank));
        mark[a] = true;
    }
    return ACCEL_OK;
}

/* The axes cannot be read: only the rank may be known. */
static enum accel_err infer_unknown(struct accel_node *n, int rank)
{
    const struct reduce_params *p = n->params;
    struct accel_shape y;
    struct accel_dim count = accel_operand_dim(n, 1, 0);
    if (!p->keep)
        rank = accel_operand_rank(n, 1) == 1 && count.n > 0 && count.n <= rank ? rank - (int)count.n
                                                                               : -1;
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    accel_result_set(n, 0, accel_operand_dtype(n, 0), y);
    return ACCEL_OK;
}

static enum accel_err infer(struct accel_node *n)
{
    const struct reduce_params *p = n->params;
    const struct accel_value *x = accel_operand(n, 0);
    int rank = accel_operand_rank(n, 0), left = 0;
    const int64_t *axes = p->axes;
    int64_t n_axes = (int64_t)p->n_axes;
    struct accel_shape y;
    if (rank < 0)
        return accel_result_like(n, 0, accel_operand_dtype(n, 0), NULL);
    if (p->from_input && accel_operand(n, 1)) {
        ACCEL_TRY(accel_known_ints(&axes, &n_axes, n->in[1]));
        if (!axes && accel_operand_count(n, 1) != 0)
            return infer_unknown(n, rank);
        n_axes = axes ? n_axes : 0;
    }
    bool *mark = ACCEL_NEW(&accel_operand_symbols(n)->inferred, bool, rank + 1);
    if (!mark)
        return accel_fail_nomem();
    ACCEL_TRY(mark_axes(mark, rank, axes, (size_t)n_axes, p->noop));
    ACCEL_TRY(accel_shape_new(&y, n, rank));
    for (int i = 0; i < rank; i++) {
        if (!mark[i])
            y.dim[left++] = x->shape.dim[i];
        else if (p->keep)
            y.dim[left++] = accel_dim_of(1);
    }
    y.rank = left;
    accel_result_set(n, 0, x->dtype, y);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ links */

/* Marks of the folded axes; NULL when they are not known. */
static const bool *folded(struct accel_links *l)
{
    const struct accel_node *n = l->node;
    const struct reduce_params *p = n->params;
    int rank = accel_slot_rank(n, 0);
    const int64_t *axes = p->axes;
    int64_t n_axes = (int64_t)p->n_axes;
    bool *mark = ACCEL_NEW(&l->arena, bool, rank + 1);
    if (!mark) {
        l->err = accel_fail_nomem();
        return NULL;
    }
    if (p->from_input && accel_operand(n, 1)) {
        if (!accel_links_ok(l, accel_known_ints(&axes, &n_axes, n->in[1])) ||
            (!axes && accel_operand_count(n, 1) != 0))
            return NULL;
        n_axes = axes ? n_axes : 0;
    }
    return accel_links_ok(l, mark_axes(mark, rank, axes, (size_t)n_axes, p->noop)) ? mark : NULL;
}

static void links(const struct accel_node *n, struct accel_links *l)
{
    const struct reduce_params *p = n->params;
    enum reduce_cut cut = ((const struct reduce *)n->op->family)->cut;
    const bool *mark = folded(l);
    int y = accel_link_out(n, 0), to = 0;
    for (int axis = 0; mark && axis < accel_slot_rank(n, 0); axis++) {
        if (!mark[axis]) {
            accel_links_pair(l, 0, axis, y, to++);
            continue;
        }
        if (cut == CUT_SUM || cut == CUT_MEAN) {
            accel_links_seen(l, 0, axis);
            accel_links_need0(l, 1, &(const struct accel_axis){0, axis});
        }
        if (p->keep)
            accel_links_seen(l, y, to++);
    }
}

/* The mean of equal numbers is not that number when zeros are among them that will be cut: only 0
 * is sure. */
static void zero(const struct accel_node *n, struct accel_zero *z)
{
    const struct reduce_params *p = n->params;
    enum reduce_cut cut = ((const struct reduce *)n->op->family)->cut;
    const bool *mark = folded(z->links);
    int to = 0;
    for (int axis = 0; mark && axis < accel_slot_rank(n, 0); axis++) {
        if (!mark[axis] && cut == CUT_SAME)
            accel_zero_copy(z, 0, axis, accel_link_out(n, 0), to);
        else if (!mark[axis] && cut != CUT_WALL)
            accel_zero_copy0(z, 0, axis, accel_link_out(n, 0), to);
        to += !mark[axis] || p->keep;
    }
}

/* A mean over fewer units, the others being 0, is too large by was / now. */
static enum accel_err resize(struct accel_node *n, struct accel_resize *r)
{
    double factor = 1;
    struct accel_links l = {.node = n};
    if (((const struct reduce *)n->op->family)->cut != CUT_MEAN)
        return ACCEL_OK;
    const bool *mark = folded(&l);
    for (int axis = 0; mark && axis < accel_slot_rank(n, 0); axis++)
        if (mark[axis] && accel_resize_hit(r, 0, axis))
            factor *= (double)accel_resize_now(r, 0, axis) / (double)accel_resize_was(r, 0, axis);
    enum accel_err err = l.err;
    accel_links_clear(&l);
    return err ? err : accel_resize_scale(r, 0, factor);
}

/* ------------------------------------------------------------------ forward */

/* The folded axes as bits. */
static enum accel_err folded_axes(uint64_t *out, const struct accel_call *c)
{
    const struct reduce_params *p = c->node->params;
    const int64_t *axes = p->axes;
    int64_t n_axes = (int64_t)p->n_axes;
    int rank = c->x[0].rank;
    if (p->from_input) {
        bool given = c->node->n_in > 1 && c->x[1].data;
        if (given && !accel_op_is_int(&c->x[1]))
            return accel_fail(ACCEL_ENOSUP, "axes are no integers");
        axes = given ? c->x[1].data : NULL;
        n_axes = given ? c->x[1].n : 0;
    }
    if (rank > 64)
        return accel_fail(ACCEL_ENOSUP, "rank %d", rank);
    *out = n_axes == 0 && !p->noop ? UINT64_MAX : 0;
    for (int64_t i = 0; i < n_axes; i++) {
        int a;
        ACCEL_TRY(accel_axis_of(&a, axes[i], rank));
        *out |= (uint64_t)1 << a;
    }
    return ACCEL_OK;
}

/* Index of the output element that input element i belongs to. */
static int64_t group_of(const struct accel_array *x, uint64_t folded, int64_t i)
{
    int64_t index = 0, step = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t at = i % x->dim[d];
        i /= x->dim[d];
        if (folded >> d & 1)
            continue;
        index += at * step;
        step *= x->dim[d];
    }
    return index;
}

/* The largest or smallest number of an integer type. */
static int64_t limit_of(enum accel_dtype dtype, const struct accel_dtype_info *t, bool largest)
{
    if (dtype == ACCEL_BOOL)
        return largest;
    if (t->bits >= 64)
        return largest ? INT64_MAX : t->is_signed ? INT64_MIN : 0;
    int64_t half = (int64_t)1 << (t->bits - 1);
    return t->is_signed ? (largest ? half - 1 : -half) : (largest ? 2 * half - 1 : 0);
}

static enum accel_err forward_int(const struct accel_call *c, uint64_t folded)
{
    const struct reduce *f = c->node->op->family;
    const struct accel_array *x = &c->x[0];
    int64_t *y = c->y[0].data;
    if (!f->step_i)
        return accel_fail(ACCEL_ENOSUP, "%s of integers", c->node->op_type);
    const struct accel_dtype_info *t = accel_dtype_find(x->dtype);
    int64_t start = f->start_i;
    if (start == INT64_MIN || start == INT64_MAX)
        start = limit_of(x->dtype, t, start > 0);
    for (int64_t i = 0; i < c->y[0].n; i++)
        y[i] = start;
    for (int64_t i = 0; i < x->n; i++) {
        int64_t *r = &y[group_of(x, folded, i)];
        *r = accel_int_wrap(f->step_i(*r, ((const int64_t *)x->data)[i]), c->y[0].dtype);
    }
    return ACCEL_OK;
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct reduce *f = c->node->op->family;
    const struct accel_array *x = &c->x[0];
    uint64_t folded = 0;
    ACCEL_TRY(folded_axes(&folded, c));
    if (accel_op_is_int(x))
        return forward_int(c, folded);
    real *y = c->y[0].data;
    double count = c->y[0].n ? (double)x->n / (double)c->y[0].n : 0;
    for (int64_t i = 0; i < c->y[0].n; i++)
        y[i] = (real)f->start;
    for (int64_t i = 0; i < x->n; i++) {
        real *r = &y[group_of(x, folded, i)];
        *r = (real)f->step((double)*r, (double)((const real *)x->data)[i]);
    }
    for (int64_t i = 0; f->end && i < c->y[0].n; i++)
        y[i] = (real)f->end((double)y[i], count);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ functions */

static double sum(double s, double x)
{
    return s + x;
}
static double mul(double s, double x)
{
    return s * x;
}
static double max_of(double s, double x)
{
    return isnan(s) || s > x ? s : x;
}
static double min_of(double s, double x)
{
    return isnan(s) || s < x ? s : x;
}
static double sum_abs(double s, double x)
{
    return s + fabs(x);
}
static double sum_square(double s, double x)
{
    return s + x * x;
}
static double mean_end(double s, double count)
{
    return s / count;
}
static double root_end(double s, double count)
{
    (void)count;
    return sqrt(s);
}
static double log_end(double s, double count)
{
    (void)count;
    return log(s);
}
/* log(e^s + e^x) with the larger one taken out, so that nothing overflows */
static double log_add(double s, double x)
{
    if (isinf(s) && s < 0)
        return x;
    return (s > x ? s : x) + log1p(exp(-fabs(s - x)));
}
static int64_t max_i(int64_t s, int64_t x)
{
    return s > x ? s : x;
}
static int64_t min_i(int64_t s, int64_t x)
{
    return s < x ? s : x;
}
static int64_t sum_abs_i(int64_t s, int64_t x)
{
    return accel_int_add(s, x < 0 ? accel_int_sub(0, x) : x);
}
static int64_t sum_square_i(int64_t s, int64_t x)
{
    return accel_int_add(s, accel_int_mul(x, x));
}

static const struct accel_attr_rule attrs[] = {{"axes", ACCEL_ATTR_INTS, 0},
                                               {"keepdims", ACCEL_ATTR_INT, 0},
                                               {"noop_with_empty_axes", ACCEL_ATTR_INT, 0},
                                               {0}};
static const char *const examples[] = {"2x3x4", "2x3x4 | keepdims=0", "2x3x4 [1]",
                                       "2x3x4 [-1,1] | keepdims=0", NULL};

#define ROW(onnx, flag, ...)                                                                       \
    {                                                                                              \
        .name = (onnx), .domain = "", .since = 1, .min_in = 1, .max_in = 2, .min_out = 1,          \
        .max_out = 1, .flags = (flag), .attrs = attrs, .parse = parse, .infer = infer,             \
        .links = links, .zero = zero, .resize = resize, .forward = forward,                        \
        .family = &(const struct reduce){__VA_ARGS__}, .examples = examples                        \
    }

const struct accel_op accel_op_reducesum =
    ROW("ReduceSum", 0, .input_since = 13, .step = sum, .step_i = accel_int_add, .cut = CUT_SUM);
const struct accel_op accel_op_reducemean =
    ROW("ReduceMean", 0, .input_since = 18, .step = sum, .end = mean_end, .cut = CUT_MEAN);
const struct accel_op accel_op_reducemax =
    ROW("ReduceMax", ACCEL_OP_COMPARES, .input_since = 18, .start = -INFINITY, .step = max_of,
        .step_i = max_i, .start_i = INT64_MIN, .cut = CUT_SAME);
const struct accel_op accel_op_reducemin =
    ROW("ReduceMin", ACCEL_OP_COMPARES, .input_since = 18, .start = INFINITY, .step = min_of,
        .step_i = min_i, .start_i = INT64_MAX, .cut = CUT_SAME);
const struct accel_op accel_op_reduceprod =
    ROW("ReduceProd", 0, .input_since = 18, .start = 1, .step = mul, .step_i = accel_int_mul,
        .start_i = 1, .cut = CUT_ZERO);
const struct accel_op accel_op_reducel1 =
    ROW("ReduceL1", 0, .input_since = 18, .step = sum_abs, .step_i = sum_abs_i, .cut = CUT_SUM);
const struct accel_op accel_op_reducel2 =
    ROW("ReduceL2", 0, .input_since = 18, .step = sum_square, .end = root_end, .cut = CUT_SUM);
const struct accel_op accel_op_reducesumsquare =
    ROW("ReduceSumSquare", 0, .input_since = 18, .step = sum_square, .step_i = sum_square_i,
        .cut = CUT_SUM);
const struct accel_op accel_op_reducelogsum =
    ROW("ReduceLogSum", 0, .input_since = 18, .step = sum, .end = log_end);
const struct accel_op accel_op_reducelogsumexp =
    ROW("ReduceLogSumExp", 0, .input_since = 18, .start = -INFINITY, .step = log_add);
