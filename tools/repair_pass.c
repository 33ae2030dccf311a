/* repair_pass.c - one pass over the data per depth. In a pass both models run in lock step up to
 * what the layers of that depth need; rows of inputs (pruned model) and outputs (unpruned one) at a
 * few random positions of each sample go into each layer's sums, every fifth sample into those that
 * are held back. */
#include "tools/repair_int.h"

#include "base/alloc.h"
#include "base/rng.h"

enum {
    HELD = 5,       /* one of so many samples is held back */
    MOST = 64,      /* positions of one sample at most */
    PIECE = 1 << 20 /* floats of inputs gathered at a time */
};
#define ROWS_COST 4e10              /* multiply-adds for the sums of one layer */
#define SUMS_SIZE ((size_t)1 << 30) /* bytes of the sums in one pass */

bool accel_repair_is_held(int64_t sample)
{
    return sample % HELD == HELD - 1;
}

/* ------------------------------------------------------------------ rows */

struct rows {
    float *x, *y, *skip; /* [most, …] */
    int64_t *pos;
    int64_t n, most;
};

static void rows_clear(struct rows *r)
{
    accel_free(r->x);
    accel_free(r->y);
    accel_free(r->skip);
    accel_free(r->pos);
}

static enum accel_err rows_init(struct rows *r, const struct accel_repair_layer *l, int64_t each)
{
    int64_t width = l->u.n_group * l->u.n_x;
    r->most = PIECE / width > each ? PIECE / width : each;
    r->n = 0;
    r->x = accel_calloc((size_t)r->most, (size_t)width * sizeof(float));
    r->y = accel_calloc((size_t)r->most, (size_t)l->n_out * sizeof(float));
    r->skip = accel_calloc((size_t)r->most, 2 * (size_t)l->n_out * sizeof(float));
    r->pos = accel_calloc((size_t)each, sizeof *r->pos);
    return r->x && r->y && r->skip && r->pos ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err rows_flush(struct rows *r, struct accel_repair_layer *l, bool held)
{
    enum accel_err err =
        accel_gram_add(&l->gram, held ? ACCEL_GRAM_HELD : ACCEL_GRAM_FIT, r->x, r->y, (size_t)r->n);
    r->n = 0;
    return err;
}

/* `each` of n positions, ascending. */
static void choose(int64_t *pos, int64_t n, int64_t each, struct accel_rng *rng)
{
    int64_t have = 0;
    for (int64_t i = 0; have < each; i++)
        if ((double)(n - i) * accel_rng_uniform(rng) < (double)(each - have))
            pos[have++] = i;
}

/* Positions of a sample that go into the sums: few of large layers with many samples. */
static int64_t positions_each(const struct accel_repair_layer *l, int64_t positions,
                              int64_t samples)
{
    double x = (double)l->u.n_x, y = (double)l->u.n_y;
    double rows = ROWS_COST / ((double)l->u.n_group * x * (x / 2 + y));
    int64_t each = (int64_t)(rows / (double)samples);
    each = each < 1 ? 1 : each > MOST ? MOST : each;
    return each > positions ? positions : each;
}

/* What the two operands of the addition behind the layer lack of each other. */
static void add_skip(struct rows *r, const struct accel_repair_layer *l, float *y,
                     const struct accel_array *old, const struct accel_array *now, int64_t sample,
                     int64_t each)
{
    float *a = r->skip, *b = r->skip + each * l->n_out;
    accel_unfold_y(&l->u, old, sample, r->pos, each, l->kept, l->n_out, a);
    accel_unfold_y(&l->u, now, sample, r->pos, each, NULL, l->n_out, b);
    for (int64_t i = 0; i < each * l->n_out; i++)
        y[i] += (a[i] - b[i]) * (float)l->skip_gain[i % l->n_out];
}

static bool same_dims(const struct accel_array *a, const struct accel_array *b, int channel)
{
    bool same = a && b && a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = i == channel || a->dim[i] == b->dim[i];
    return same;
}

struct batch {
    const struct accel_array *x, *y, *skip_old, *skip_new;
    int64_t first, n, n_all; /* samples of the set: this batch's first, how many, all */
};

/* What there is of the layer in this batch; false: sizes do not fit. */
static bool batch_find(struct batch *b, const struct accel_twin *t,
                       const struct accel_repair_layer *l)
{
    int channel = 0;
    b->x = accel_twin_seen(t, ACCEL_TWIN_NEW, l->node->in[0]);
    b->y = l->was ? accel_twin_seen(t, ACCEL_TWIN_OLD, l->was->out[0])
                  : accel_twin_seen(t, ACCEL_TWIN_NEW, l->node->out[0]);
    if (!b->x || !b->y || b->y->rank < 2 || b->x->rank != b->y->rank || b->y->dim[0] < 1 ||
        b->x->dim[0] != b->y->dim[0])
        return false;
    channel = l->u.kind == ACCEL_UNFOLD_ROWS ? b->y->rank - 1 : 1;
    int64_t width = l->u.n_group * (l->u.n_x / l->u.taps);
    if (b->x->dim[channel] != width || (!l->kept && b->y->dim[channel] != l->n_out))
        return false;
    b->skip_old = l->skip_old ? accel_twin_seen(t, ACCEL_TWIN_OLD, l->skip_old) : NULL;
    b->skip_new = l->skip_new ? accel_twin_seen(t, ACCEL_TWIN_NEW, l->skip_new) : NULL;
    if (!same_dims(b->skip_old, b->y, -1) || !same_dims(b->skip_new, b->y, channel) ||
        b->skip_new->dim[channel] != l->n_out)
        b->skip_old = b->skip_new = NULL;
    return true;
}

/* Adds the samples of this batch that are held back, or those that are not. */
static enum accel_err add_part(struct rows *r, struct accel_repair_layer *l, const struct batch *b,
                               int64_t each, uint64_t seed, bool held)
{
    int64_t positions = accel_unfold_positions(&l->u, b->y), rows = b->y->dim[0];
    for (int64_t i = 0; i < rows; i++) {
        int64_t sample = b->first + i * b->n / rows; /* the first axis may be finer than samples */
        if (accel_repair_is_held(sample) != held)
            continue;
        struct accel_rng rng =
            accel_rng_init(seed + (uint64_t)(b->first * rows + i) * UINT64_C(0x9e3779b97f4a7c15));
        choose(r->pos, positions, each, &rng);
        if (r->n + each > r->most)
            ACCEL_TRY(rows_flush(r, l, held));
        float *y = r->y + r->n * l->n_out;
        ACCEL_TRY(accel_unfold_x(&l->u, b->x, b->y, i, r->pos, each,
                                 r->x + r->n * l->u.n_group * l->u.n_x));
        accel_unfold_y(&l->u, b->y, i, r->pos, each, l->kept, l->n_out, y);
        if (b->skip_old)
            add_skip(r, l, y, b->skip_old, b->skip_new, i, each);
        r->n += each;
    }
    return rows_flush(r, l, held);
}

static enum accel_err add_batch(struct accel_repair_layer *l, const struct accel_twin *t,
                                uint64_t seed)
{
    struct batch b = {.n = t->data.n, .n_all = t->data.set->n};
    struct rows r = {0};
    b.first = t->data.next - t->data.n;
    if (!batch_find(&b, t, l))
        return ACCEL_OK;
    int64_t each = positions_each(l, accel_unfold_positions(&l->u, b.y), b.n_all);
    seed = (seed + 1) * UINT64_C(0xd1342543de82ef95) + (uint64_t)l->node->index;
    enum accel_err err = rows_init(&r, l, each);
    for (int held = 0; !err && held < 2; held++)
        err = add_part(&r, l, &b, each, seed, held);
    rows_clear(&r);
    return err;
}

/* ------------------------------------------------------------------ passes */

static enum accel_err pass(struct accel_twin *t, struct accel_repair_layers *l, size_t from,
                           size_t to, int depth, uint64_t seed)
{
    accel_twin_forget(t);
    for (size_t i = from; i < to; i++) {
        const struct accel_repair_layer *k = &l->at[i];
        if (k->depth != depth)
            continue;
        accel_twin_want(t, ACCEL_TWIN_NEW, k->node->in[0]);
        if (k->was)
            accel_twin_want(t, ACCEL_TWIN_OLD, k->was->out[0]);
        else
            accel_twin_want(t, ACCEL_TWIN_NEW, k->node->out[0]);
        if (k->skip_old) {
            accel_twin_want(t, ACCEL_TWIN_OLD, k->skip_old);
            accel_twin_want(t, ACCEL_TWIN_NEW, k->skip_new);
        }
    }
    accel_twin_rewind(t);
    for (;;) {
        ACCEL_TRY(accel_twin_next(t));
        if (!t->data.n)
            return ACCEL_OK;
        for (size_t i = from; i < to; i++)
            if (l->at[i].depth == depth)
                ACCEL_TRY(add_batch(&l->at[i], t, seed));
    }
}

/* The layers of one depth, as many in a pass as there is room for sums. */
static enum accel_err depth_run(struct accel_twin *t, struct accel_repair_layers *l, int depth,
                                uint64_t seed, accel_repair_solve solve, void *ctx)
{
    for (size_t from = 0, to; from < l->n; from = to) {
        size_t size = 0;
        for (to = from; to < l->n; to++) {
            const struct accel_unfold *u = &l->at[to].u;
            if (l->at[to].depth != depth)
                continue;
            size_t more = accel_gram_size((size_t)u->n_group, (size_t)u->n_x, (size_t)u->n_y);
            if (more > SUMS_SIZE) {
                l->at[to].depth = -1;
                ACCEL_TRY(solve(ctx, t, &l->at[to]));
                continue;
            }
            if (size && more > SUMS_SIZE - size)
                break;
            size += more;
            ACCEL_TRY(accel_gram_init(&l->at[to].gram, (size_t)u->n_group, (size_t)u->n_x,
                                      (size_t)u->n_y));
        }
        if (!size)
            continue;
        ACCEL_TRY(pass(t, l, from, to, depth, seed));
        for (size_t i = from; i < to; i++)
            if (l->at[i].depth == depth) {
                ACCEL_TRY(solve(ctx, t, &l->at[i]));
                accel_gram_clear(&l->at[i].gram);
            }
    }
    return ACCEL_OK;
}

enum accel_err accel_repair_each(struct accel_twin *t, struct accel_repair_layers *l, uint64_t seed,
                                 struct accel_progress *progress, accel_repair_solve solve,
                                 void *ctx)
{
    for (int d = 0; l->n && d <= l->max_depth; d++) {
        ACCEL_TRY(depth_run(t, l, d, seed, solve, ctx));
        ACCEL_TRY(accel_progress_step(progress, (uint64_t)d + 1, (uint64_t)l->max_depth + 1));
    }
    return ACCEL_OK;
}
