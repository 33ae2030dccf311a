/* NonMaxSuppression: boxes [N B 4], scores [N C B] -> picks [K 3] of batch, class and box. For each
 * batch and class the boxes are taken best score first, unless one that was taken covers them. How
 * many there are only the contents tell, so that the work is done twice: for the size and for the
 * rows. */
#include <stdlib.h>

#include "ops/arith.h"
#include "ops/op_util.h"
#include "ops/real.h"

static enum accel_err nms_infer(struct accel_node *n)
{
    struct accel_dim d[2] = {accel_dim_unknown(), accel_dim_of(3)};
    ACCEL_TRY(accel_operand_check_rank(n, 0, 3));
    ACCEL_TRY(accel_operand_check_rank(n, 1, 3));
    return accel_result_dims(n, 0, ACCEL_I64, 2, d);
}

struct suppress {
    const struct accel_call *c;
    bool center; /* boxes are center, width, height */
    int64_t boxes, classes, most;
    double iou, score;
    bool has_score;
};

/* The best score first, equal ones by their place. */
static int by_score(const void *a, const void *b, void *ctx)
{
    const real *score = ctx;
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    if (score[i] < score[k] || score[i] > score[k])
        return score[i] > score[k] ? -1 : 1;
    return i < k ? -1 : i > k;
}

static double scalar(const struct accel_call *c, int slot, double otherwise)
{
    return slot < c->node->n_in && c->x[slot].data && c->x[slot].n
               ? accel_op_is_int(&c->x[slot]) ? (double)*(const int64_t *)c->x[slot].data
                                              : (double)*(const real *)c->x[slot].data
               : otherwise;
}

static enum accel_err suppress_read(struct suppress *s, const struct accel_call *c)
{
    int64_t center;
    ACCEL_TRY(accel_attr_int(&center, c->node, "center_point_box", 0));
    *s = (struct suppress){c, center != 0, c->x[0].dim[1], c->x[1].dim[1], 0, 0, 0, false};
    double most = scalar(c, 2, 0);
    s->most = most > 0 ? most < 1e15 ? (int64_t)most : INT64_MAX : 0;
    s->iou = scalar(c, 3, 0);
    s->has_score = c->node->n_in > 4 && c->x[4].data && c->x[4].n;
    s->score = scalar(c, 4, 0);
    if (c->x[0].dim[2] != 4 || c->x[1].dim[2] != s->boxes || c->x[1].dim[0] != c->x[0].dim[0])
        return accel_fail(ACCEL_ESHAPE, "boxes %lldx%lldx%lld for %lld scores",
                          (long long)c->x[0].dim[0], (long long)s->boxes, (long long)c->x[0].dim[2],
                          (long long)c->x[1].dim[2]);
    return ACCEL_OK;
}

/* Corners of box k: low and high along both axes. */
static void corners(double b[4], const struct suppress *s, int64_t batch, int64_t k)
{
    double v[4];
    for (int i = 0; i < 4; i++)
        v[i] = (double)((const real *)s->c->x[0].data)[(batch * s->boxes + k) * 4 + i];
    for (int i = 0; i < 2; i++) {
        b[i] = s->center ? v[i] - v[i + 2] / 2 : v[i] < v[i + 2] ? v[i] : v[i + 2];
        b[i + 2] = s->center ? v[i] + v[i + 2] / 2 : v[i] < v[i + 2] ? v[i + 2] : v[i];
    }
}

static double overlap(const double a[4], const double b[4])
{
    double inside = 1, area_a = 1, area_b = 1;
    for (int i = 0; i < 2; i++) {
        double lo = a[i] > b[i] ? a[i] : b[i], hi = a[i + 2] < b[i + 2] ? a[i + 2] : b[i + 2];
        inside *= hi > lo ? hi - lo : 0;
        area_a *= a[i + 2] - a[i];
        area_b *= b[i + 2] - b[i];
    }
    return inside > 0 ? inside / (area_a + area_b - inside) : 0;
}

/* Picks boxes of one class of one batch into rank[0 … n), best first; returns n. */
static int64_t pick(const struct suppress *s, int64_t batch, int64_t class, int64_t *rank)
{
    const real *score = (const real *)s->c->x[1].data + (batch * s->classes + class) * s->boxes;
    int64_t n = 0;
    for (int64_t k = 0; k < s->boxes; k++)
        rank[k] = k;
    qsort_r(rank, (size_t)s->boxes, sizeof *rank, by_score, (void *)score);
    for (int64_t i = 0; i < s->boxes && n < s->most; i++) {
        double a[4], b[4];
        bool keep = !s->has_score || (double)score[rank[i]] > s->score;
        corners(a, s, batch, rank[i]);
        for (int64_t k = 0; keep && k < n; k++) {
            corners(b, s, batch, rank[k]);
            keep = !(overlap(a, b) > s->iou);
        }
        if (keep)
            rank[n++] = rank[i];
    }
    return n;
}

static size_t nms_scratch(const struct accel_call *c)
{
    return c->x[0].rank == 3 ? (size_t)(c->x[0].dim[1] + 1) * sizeof(int64_t) : 8;
}

/* All picks; rows [batch, class, box] go to `out` unless it is NULL. */
static enum accel_err suppress(int64_t *n, const struct accel_call *c, int64_t *out, int64_t room)
{
    struct suppress s;
    *n = 0;
    ACCEL_TRY(suppress_read(&s, c));
    for (int64_t b = 0; b < c->x[0].dim[0]; b++)
        for (int64_t k = 0; k < s.classes; k++) {
            int64_t *rank = c->scratch, count = pick(&s, b, k, rank);
            for (int64_t i = 0; out && i < count && *n + i < room; i++) {
                out[(*n + i) * 3] = b;
                out[(*n + i) * 3 + 1] = k;
                out[(*n + i) * 3 + 2] = rank[i];
            }
            *n += count;
        }
    return ACCEL_OK;
}

static enum accel_err nms_size(const struct accel_call *c, int slot, int64_t *dim)
{
    (void)slot;
    return suppress(&dim[0], c, NULL, 0);
}

static enum accel_err nms_forward(const struct accel_call *c)
{
    int64_t n;
    return suppress(&n, c, c->y[0].data, c->y[0].dim[0]);
}

static const struct accel_attr_rule nms_attrs[] = {{"center_point_box", ACCEL_ATTR_INT, 0}, {0}};

const struct accel_op accel_op_non_max_suppression = {
    .name = "NonMaxSuppression",
    .domain = "",
    .since = 10,
    .min_in = 2,
    .max_in = 5,
    .min_out = 1,
    .max_out = 1,
    .attrs = nms_attrs,
    .infer = nms_infer,
    .forward = nms_forward,
    .size = nms_size,
    .scratch = nms_scratch,
    .examples = (const char *const[]){"1x6x4 1x2x6", NULL},
};
