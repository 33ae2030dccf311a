/* RotaryEmbedding: pairs of elements of every head are turned by an angle that belongs to the place
 * of the token. X [B H S D], or [B S H*D]; cosines and sines [places D/2], or [B S D/2] when there
 * are no ids. The pairs are (i, i + D/2), or interleaved (2i, 2i + 1); only the first
 * rotary_embedding_dim elements of a head take part. The form of com.microsoft has the ids in front
 * of the tables, and one id alone is the place of the first token. */
#include "graph/attr.h"
#include "ops/arith.h"
#include "ops/link_util.h"
#include "ops/real.h"

struct rotary {
    int ids, cos, sin; /* slots */
    bool first_id;     /* one id may stand for all */
};

/* Sizes of a call. */
struct job {
    const struct accel_array *x, *cos, *sin, *ids;
    int64_t batch, heads, steps, size, turned;
    bool folded, interleaved;
};

static enum accel_err like_input(struct accel_node *n)
{
    return accel_result_like(n, 0, accel_operand_dtype(n, 0), accel_operand(n, 0));
}

static enum accel_err read_heads(struct job *j, const struct accel_node *n)
{
    int64_t heads, turned, interleaved;
    ACCEL_TRY(accel_attr_int(&heads, n, "num_heads", 0));
    ACCEL_TRY(accel_attr_int(&turned, n, "rotary_embedding_dim", 0));
    ACCEL_TRY(accel_attr_int(&interleaved, n, "interleaved", 0));
    j->interleaved = interleaved != 0;
    j->folded = j->x->rank == 3;
    if (j->x->rank != 3 && j->x->rank != 4)
        return accel_fail(ACCEL_ESHAPE, "input has rank %d instead of 3 or 4", j->x->rank);
    int64_t width = j->x->dim[j->x->rank - 1], half = j->cos->dim[j->cos->rank - 1];
    j->batch = j->x->dim[0];
    j->steps = j->x->dim[j->folded ? 1 : 2];
    if (!j->folded)
        heads = j->x->dim[1];
    else if (heads < 1)
        heads = half > 0 && width % (2 * half) == 0 ? width / (2 * half) : 0;
    j->heads = heads;
    j->size = !j->folded ? width : heads > 0 ? width / heads : 0;
    j->turned = turned > 0 ? turned : j->size;
    if (j->folded && (heads < 1 || width % heads != 0))
        return accel_fail(ACCEL_ESHAPE, "%lld columns in %lld heads", (long long)width,
                          (long long)heads);
    if (j->turned > j->size || j->turned % 2 || j->turned / 2 != half)
        return accel_fail(ACCEL_ESHAPE, "%lld of %lld elements of a head are turned by %lld angles",
                          (long long)j->turned, (long long)j->size, (long long)half);
    return ACCEL_OK;
}

static enum accel_err check(const struct job *j, const struct rotary *f)
{
    int64_t tokens = j->batch * j->steps;
    if (accel_op_is_int(j->x) || accel_op_is_int(j->cos) || accel_op_is_int(j->sin) ||
        (j->ids && !accel_op_is_int(j->ids)))
        return accel_fail(ACCEL_ENOSUP, "operands of other types");
    if (j->cos->n != j->sin->n)
        return accel_fail(ACCEL_ESHAPE, "%lld cosines and %lld sines", (long long)j->cos->n,
                          (long long)j->sin->n);
    if (!j->ids && j->cos->n != tokens * (j->turned / 2))
        return accel_fail(ACCEL_ESHAPE, "%lld angles for %lld tokens", (long long)j->cos->n,
                          (long long)tokens);
    if (j->ids && j->ids->n != tokens && !(f->first_id && j->ids->n == 1))
        return accel_fail(ACCEL_ESHAPE, "%lld ids for %lld tokens", (long long)j->ids->n,
                          (long long)tokens);
    return ACCEL_OK;
}

/* Row of the tables for a token. */
static enum accel_err row_of(int64_t *row, const struct job *j, int64_t b, int64_t s)
{
    int64_t half = j->turned / 2, rows = half ? j->cos->n / half : 0, token = b * j->steps + s;
    *row = token;
    if (j->ids && j->ids->n == j->batch * j->steps)
        *row = ((const int64_t *)j->ids->data)[token];
    else if (j->ids)
        *row = accel_int_add(*(const int64_t *)j->ids->data, s);
    if (*row < 0 || *row >= rows)
        return accel_fail(ACCEL_ESHAPE, "place %lld of %lld", (long long)*row, (long long)rows);
    return ACCEL_OK;
}

static void turn(real *y, const real *x, const real *cosine, const real *sine, const struct job *j)
{
    int64_t half = j->turned / 2;
    for (int64_t i = 0; i < half; i++) {
        int64_t a = j->interleaved ? 2 * i : i, b = j->interleaved ? 2 * i + 1 : i + half;
        double u = (double)x[a], v = (double)x[b], co = (double)cosine[i], si = (double)sine[i];
        y[a] = (real)(co * u - si * v);
        y[b] = (real)(si * u + co * v);
    }
    for (int64_t i = j->turned; i < j->size; i++)
        y[i] = x[i];
}

static enum accel_err forward(const struct accel_call *c)
{
    const struct rotary *f = c->node->op->family;
    struct job j = {.x = &c->x[0], .cos = &c->x[f->cos], .sin = &c->x[f->sin]};
    int64_t packed;
    if (f->ids < c->node->n_in && c->x[f->ids].data)
        j.ids = &c->x[f->ids];
    ACCEL_TRY(accel_attr_int(&packed, c->node, "is_packed_batching", 0));
    if (packed || j.cos->rank < 1 || (!j.ids && j.cos->rank != 3))
        return accel_fail(ACCEL_ENOSUP, "this form of %s", c->node->op_type);
    ACCEL_TRY(read_heads(&j, c->node));
    ACCEL_TRY(check(&j, f));
    for (int64_t i = 0; i < j.batch * j.heads * j.steps; i++) {
        int64_t b = i / j.steps / j.heads, h = i / j.steps % j.heads, s = i % j.steps, row;
        int64_t at = (j.folded ? (b * j.steps + s) * j.heads + h : i) * j.size;
        ACCEL_TRY(row_of(&row, &j, b, s));
        turn((real *)c->y[0].data + at, (const real *)j.x->data + at,
             (const real *)j.cos->data + row * (j.turned / 2),
             (const real *)j.sin->data + row * (j.turned / 2), &j);
    }
    return ACCEL_OK;
}

/* Heads of an input of rank 4. Angles may belong to samples and tokens, which stay. */
static void links(const struct accel_node *n, struct accel_links *l)
{
    if (accel_slot_rank(n, 0) == 4)
        accel_links_pair(l, 0, 1, accel_link_out(n, 0), 1);
}

static void zero(const struct accel_node *n, struct accel_zero *z)
{
    accel_zero_copy0(z, 0, 1, accel_link_out(n, 0), 1);
}

static const struct accel_attr_rule attrs[] = {{"interleaved", ACCEL_ATTR_INT, 0},
                                               {"num_heads", ACCEL_ATTR_INT, 0},
                                               {"rotary_embedding_dim", ACCEL_ATTR_INT, 0},
                                               {0}};
static const struct accel_attr_rule ms_attrs[] = {
    {"interleaved", ACCEL_ATTR_INT, 0}, {"is_packed_batching", ACCEL_ATTR_INT, 0},
    {"num_heads", ACCEL_ATTR_INT, 0},   {"rotary_embedding_dim", ACCEL_ATTR_INT, 0},
    {"scale", ACCEL_ATTR_FLOAT, 0},     {0}};
static const char *const examples[] = {"2x3x4x8 2x4x4 2x4x4", NULL};
static const char *const ms_examples[] = {"2x3x4x8 i64:1 16x4 16x4", NULL};

const struct accel_op accel_op_rotaryembedding = {
    .name = "RotaryEmbedding",
    .domain = "",
    .since = 23,
    .min_in = 3,
    .max_in = 4,
    .min_out = 1,
    .max_out = 1,
    .attrs = attrs,
    .infer = like_input,
    .links = links,
    .zero = zero,
    .forward = forward,
    .family = &(const struct rotary){3, 1, 2, false},
    .examples = examples,
};
const struct accel_op accel_op_ms_rotaryembedding = {
    .name = "RotaryEmbedding",
    .domain = "com.microsoft",
    .since = 1,
    .min_in = 4,
    .max_in = 4,
    .min_out = 1,
    .max_out = 1,
    .attrs = ms_attrs,
    .infer = like_input,
    .links = links,
    .zero = zero,
    .forward = forward,
    .family = &(const struct rotary){1, 2, 3, true},
    .examples = ms_examples,
};
