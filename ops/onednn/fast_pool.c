/* fast_pool.c - pools over windows, over everything, and reductions over axes.
 *
 * What differs between ONNX and the library is refused: windows that hold no element (minus
 * infinity or 0 there, something else here), averages over padding that ceil_mode reached past, and
 * the places of the largest elements. */
#include <string.h>

#include "graph/attr.h"
#include "ops/onednn/dn_job.h"
#include "ops/window.h"

static enum accel_err check_axis(const struct accel_window_axis *a, int64_t end, bool counts_pad)
{
    int64_t extent = (a->k - 1) * a->dilation + 1;
    if (a->begin < 0 || a->begin >= extent || (a->out - 1) * a->stride - a->begin >= a->in)
        return accel_fail(ACCEL_ENOSUP, "a window of padding only");
    if (a->dilation > 1 && a->in < extent)
        return accel_fail(ACCEL_ENOSUP, "taps around the input");
    if (counts_pad && end > (a->end > 0 ? a->end : 0))
        return accel_fail(ACCEL_ENOSUP, "a window past the padding");
    return ACCEL_OK;
}

enum accel_err accel_dn_pool(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t xd[ACCEL_DN_MAX_RANK], yd[ACCEL_DN_MAX_RANK], counts_pad;
    struct accel_dn_spec *s = &j->spec;
    struct accel_array x = {.dim = xd}, y = {.dim = yd};
    struct accel_window_axis a[3];
    struct accel_window w;
    bool max = strcmp(n->op->name, "MaxPool") == 0;
    enum accel_dtype dtype = j->ask->operand[0]->dtype;
    j->integers = max && (dtype == ACCEL_U8 || dtype == ACCEL_I8);
    if (dtype != ACCEL_F32 && !j->integers)
        return accel_fail(ACCEL_ENOSUP, "a pool of another type");
    ACCEL_TRY(accel_dn_sizes(&x.rank, xd, j->ask->operand[0]));
    ACCEL_TRY(accel_dn_sizes(&y.rank, yd, n->out[0]));
    ACCEL_TRY(accel_window_read(&w, n));
    ACCEL_TRY(accel_attr_int(&counts_pad, n, "count_include_pad", 0));
    if (x.rank < 3 || x.rank > 5 || y.rank != x.rank)
        return accel_fail(ACCEL_ENOSUP, "a pool of rank %d", x.rank);
    ACCEL_TRY(accel_window_axes(a, &w, &x, &y, w.kernel, false));
    s->kind = ACCEL_DN_POOL;
    s->algo = max          ? ACCEL_DN_POOL_MAX
              : counts_pad ? ACCEL_DN_POOL_AVERAGE_PADDED
                           : ACCEL_DN_POOL_AVERAGE;
    s->n_axes = x.rank - 2;
    for (int i = 0; i < s->n_axes; i++) {
        const struct accel_window_axis *at = &a[3 - s->n_axes + i];
        int64_t end =
            (at->out - 1) * at->stride + (at->k - 1) * at->dilation + 1 - at->in - at->begin;
        ACCEL_TRY(check_axis(at, end, !max && counts_pad));
        s->taps[i] = at->k;
        s->stride[i] = at->stride;
        s->dilation[i] = at->dilation;
        s->begin[i] = at->begin;
        s->end[i] = end > 0 ? end : 0;
    }
    ACCEL_TRY(accel_dn_add(j, 0, false));
    ACCEL_TRY(accel_dn_set_out(j, n->out[0], true));
    j->takes = 1;
    return j->integers ? ACCEL_OK : accel_dn_chain(j, 1);
}

/* One window over all spatial axes of X [N C D…]. */
static void whole_window(struct accel_dn_spec *s, int rank, const int64_t *dim)
{
    s->kind = ACCEL_DN_POOL;
    s->n_axes = rank - 2;
    for (int i = 0; i < s->n_axes; i++) {
        s->taps[i] = dim[2 + i];
        s->stride[i] = s->dilation[i] = 1;
        s->begin[i] = s->end[i] = 0;
    }
}

enum accel_err accel_dn_global_pool(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t dim[ACCEL_DN_MAX_RANK];
    int rank = 0;
    ACCEL_TRY(accel_dn_dims(&rank, dim, j->ask->operand[0]));
    if (rank < 3 || rank > 5)
        return accel_fail(ACCEL_ENOSUP, "a pool of rank %d", rank);
    whole_window(&j->spec, rank, dim);
    j->spec.algo =
        strcmp(n->op->name, "GlobalMaxPool") == 0 ? ACCEL_DN_POOL_MAX : ACCEL_DN_POOL_AVERAGE;
    ACCEL_TRY(accel_dn_add(j, 0, false));
    ACCEL_TRY(accel_dn_set_out(j, n->out[0], true));
    return accel_dn_chain(j, 1);
}

/* ------------------------------------------------------------------ reductions */

/* Axes that shrink to 1. With keepdims the two shapes tell (an axis of size 1 may be either way);
 * else the axes must be an attribute or a constant. */
static enum accel_err mark_folded(bool *folded, const struct accel_dn_job *j, int rank,
                                  const int64_t *dim)
{
    const struct accel_node *n = j->ask->chain[0];
    const struct accel_shape *y = &n->out[0]->shape;
    const int64_t *axes;
    size_t n_axes;
    int64_t keep;
    ACCEL_TRY(accel_attr_int(&keep, n, "keepdims", 1));
    for (int i = 0; i < rank; i++)
        folded[i] = keep && y->rank == rank && y->dim[i].n != dim[i];
    if (keep)
        return ACCEL_OK;
    ACCEL_TRY(accel_attr_ints(&axes, &n_axes, n, "axes"));
    if (n->n_in > 1 && n->in[1]) {
        int64_t count = accel_shape_count(&n->in[1]->shape);
        axes = n->in[1]->dtype == ACCEL_I64 ? j->ask->constant[1] : NULL;
        if (!axes || count < 1)
            return accel_fail(ACCEL_ENOSUP, "axes that are not known");
        n_axes = (size_t)count;
    }
    if (n_axes == 0 && y->rank != 0)
        return accel_fail(ACCEL_ENOSUP, "no axes");
    for (int i = 0; i < rank; i++)
        folded[i] = n_axes == 0;
    for (size_t i = 0; i < n_axes; i++) {
        int64_t at = axes[i] < 0 ? axes[i] + rank : axes[i];
        if (at < 0 || at >= rank)
            return accel_fail(ACCEL_ENOSUP, "axis %lld", (long long)axes[i]);
        folded[at] = true;
    }
    return ACCEL_OK;
}

/* Not the largest and smallest: of infinities only, the library's are the limits of float. */
static const struct {
    const char *op;
    enum accel_dn_algo algo;
    int pool; /* the pool that does the same over all spatial axes, or -1 */
} reductions[] = {{"ReduceSum", ACCEL_DN_REDUCE_SUM, -1},
                  {"ReduceMean", ACCEL_DN_REDUCE_MEAN, ACCEL_DN_POOL_AVERAGE}};

enum accel_err accel_dn_reduce(struct accel_dn_job *j)
{
    const struct accel_node *n = j->ask->chain[0];
    int64_t dim[ACCEL_DN_MAX_RANK], y[ACCEL_DN_MAX_RANK], count = 1;
    bool folded[ACCEL_DN_MAX_RANK], any = false;
    int rank = 0;
    size_t r = 0;
    while (strcmp(n->op->name, reductions[r].op) != 0)
        r++;
    ACCEL_TRY(accel_dn_dims(&rank, dim, j->ask->operand[0]));
    ACCEL_TRY(mark_folded(folded, j, rank, dim));
    bool spatial = reductions[r].pool >= 0 && rank >= 3 && rank <= 5;
    for (int i = 0; i < rank; i++) {
        y[i] = folded[i] ? 1 : dim[i];
        any = any || y[i] != dim[i];
        count *= y[i];
        spatial = spatial && (dim[i] == 1 || folded[i] == (i >= 2));
    }
    if (!any || n->out[0]->dtype != ACCEL_F32)
        return accel_fail(ACCEL_ENOSUP, "nothing is folded");
    if (count != accel_shape_count(&n->out[0]->shape))
        return accel_fail(ACCEL_ENOSUP, "axes given in the form of another opset");
    j->takes = 1;
    j->spec.kind = ACCEL_DN_REDUCE;
    j->spec.algo = reductions[r].algo;
    if (spatial) {
        whole_window(&j->spec, rank, dim);
        j->spec.algo = (enum accel_dn_algo)reductions[r].pool;
    }
    ACCEL_TRY(accel_dn_add(j, 0, false));
    return accel_dn_set_out_view(j, rank, y);
}
