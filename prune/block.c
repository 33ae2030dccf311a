/* Blocks: a grid over the tensor, each block scored by the mean of |w| and removed whole.
 *
 * One pass sums |w| into one double per block, in the order of the elements, so that the scores do
 * not depend on how the tensor is cut into pieces. The scores are then ranked like weights: as
 * doubles in memory. They take 8 bytes per block, for one tensor at a time (for all members of a
 * global group while it is ranked), and are computed anew if the tensor is written again. */
#include "prune/mask.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

struct block {
    struct accel_mask m;
    struct accel_choice choice;
    struct accel_key score_key;
    uint64_t n, each;      /* blocks; elements in one */
    double *score;         /* [n] or NULL */
    uint64_t row, wide;    /* elements of the last dim; of a block along it */
    int rank;              /* dims before the last one */
    uint64_t *dim, *block; /* [rank] sizes of the tensor and of a block */
};

/* Elements `index` and on that lie in one row of the last dim: at most `most`. *base: block of the
 * row's first column. */
static uint64_t row_piece(const struct block *b, uint64_t index, uint64_t most, uint64_t *base,
                          uint64_t *column)
{
    uint64_t r = index / b->row, stride = b->row / b->wide;
    *column = index % b->row;
    *base = 0;
    for (int d = b->rank; d-- > 0;) {
        *base += r % b->dim[d] / b->block[d] * stride;
        r /= b->dim[d];
        stride *= b->dim[d] / b->block[d];
    }
    return b->row - *column < most ? b->row - *column : most;
}

struct score_pass {
    struct block *b;
    struct accel_spectrum *s;
};

static enum accel_err score_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct score_pass *p = ctx;
    struct block *b = p->b;
    double v[ACCEL_KEY_BLOCK];
    accel_spectrum_add(p->s, &b->m.key, elem, first, count);
    for (uint64_t i = 0; i < count;) {
        uint64_t base, column, n = count - i < ACCEL_KEY_BLOCK ? count - i : ACCEL_KEY_BLOCK;
        n = row_piece(b, first + i, n, &base, &column);
        accel_key_magnitudes(&b->m.key, elem, (size_t)i, first + i, (size_t)n, v);
        for (uint64_t j = 0; j < n && b->wide == 1; j++)
            b->score[base + column + j] += v[j];
        for (uint64_t j = 0; j < n && b->wide > 1;) {
            uint64_t span = b->wide - (column + j) % b->wide, end = j + span < n ? j + span : n;
            double *score = &b->score[base + (column + j) / b->wide];
            for (; j < end; j++)
                *score += v[j];
        }
        i += n;
    }
    return ACCEL_OK;
}

enum accel_err accel_block_measure(struct accel_mask *m, struct accel_source *src)
{
    struct block *b = (struct block *)m;
    enum accel_err err = ACCEL_OK;
    struct accel_spectrum own = {0}, *s;
    accel_free(b->score);
    if (b->n > SIZE_MAX || !(b->score = accel_calloc((size_t)b->n, sizeof *b->score)))
        return accel_fail_nomem();
    ACCEL_TRY(accel_mask_room(&s, m, &own));
    struct score_pass p = {b, s};
    ACCEL_GOTO(err, accel_source_pass(src, score_sink, &p));
    accel_spectrum_end(s);
    accel_mask_surveyed(m, s);
    for (uint64_t i = 0; i < b->n; i++)
        b->score[i] /= (double)b->each;
done:
    accel_spectrum_clear(&own);
    return err;
}

uint64_t accel_block_count(const struct accel_mask *m)
{
    return ((const struct block *)m)->n;
}

void accel_block_drop(struct accel_mask *m)
{
    struct block *b = (struct block *)m;
    accel_free(b->score);
    b->score = NULL;
    m->edit.prepared = false;
}

void accel_block_member(struct accel_mask *m, struct accel_member *member)
{
    struct block *b = (struct block *)m;
    member->src = (struct accel_source){NULL, b->score, b->n, {0}};
    member->key = b->score_key;
    member->weight = b->each;
    member->entries = true;
}

static enum accel_err block_prepare(struct accel_edit *e, const struct accel_tensor *t,
                                    const void *whole, void *scratch, size_t scratch_size)
{
    struct block *b = (struct block *)e;
    if (e->prepared)
        return ACCEL_OK;
    enum accel_err err = ACCEL_OK;
    struct accel_source src = accel_mask_source(t, whole, scratch, scratch_size);
    struct accel_source scores = {NULL, NULL, b->n, {0}};
    struct accel_spectrum own = {0}, *s;
    ACCEL_GOTO(err, accel_block_measure(&b->m, &src));
    if (!b->m.left) {
        scores.whole = b->score;
        ACCEL_GOTO(err, accel_mask_room(&s, &b->m, &own));
        accel_spectrum_add(s, &b->score_key, b->score, 0, b->n);
        accel_spectrum_end(s);
        ACCEL_GOTO(err, accel_choice_make(&b->choice, &scores, &b->score_key, s));
        b->m.row->threshold = b->choice.largest;
    }
    e->prepared = true;
done:
    accel_spectrum_clear(&own);
    accel_buffer_clear(&src.room);
    return err;
}

static bool is_gone(const struct block *b, uint64_t index)
{
    uint64_t key;
    memcpy(&key, &b->score[index], sizeof key);
    return key < b->choice.cut.key || (key == b->choice.cut.key && index < b->choice.cut.tie_end);
}

/* Columns of one row whose blocks are one column wide: neighbours that stay or go together. */
static uint64_t span_of(const struct block *b, uint64_t block, uint64_t most, bool gone)
{
    uint64_t n = 1;
    while (n < most && is_gone(b, block + n) == gone)
        n++;
    return n;
}

static enum accel_err block_apply(struct accel_edit *e, uint64_t first, uint64_t count, void *elem)
{
    struct block *b = (struct block *)e;
    for (uint64_t i = 0; i < count && !b->m.left;) {
        uint64_t base, column, n = row_piece(b, first + i, count - i, &base, &column);
        for (uint64_t j = 0; j < n;) {
            uint64_t block = base + (column + j) / b->wide;
            uint64_t span = b->wide - (column + j) % b->wide;
            bool gone = is_gone(b, block);
            if (b->wide == 1)
                span = span_of(b, block, n - j, gone);
            if (span > n - j)
                span = n - j;
            if (gone && span == 1)
                accel_key_clear(&b->m.key, elem, (size_t)(i + j), first + i + j);
            else if (gone)
                accel_key_cut(&b->m.key, elem, i + j, first + i + j, span, ACCEL_KEY_ALL);
            j += span;
        }
        i += n;
    }
    if (first + count == b->m.row->n) /* a second pass measures again */
        accel_block_drop(&b->m);
    return accel_mask_note(&b->m, first, count, elem,
                           accel_key_below(&b->m.key, elem, first, count, 1));
}

static void block_free(struct accel_edit *e)
{
    struct block *b = (struct block *)e;
    accel_free(b->score);
    accel_free(b->dim);
    accel_mask_free(&b->m);
}

static const struct accel_edit_ops block_ops = {block_prepare, block_apply, block_free};

enum accel_err accel_block_new(struct accel_mask **out, struct accel_choice **choice,
                               struct accel_prune_row *row, const int64_t *block,
                               struct accel_log *log)
{
    const struct accel_tensor *t = row->target->tensor;
    for (int d = 0; d < t->rank; d++)
        if (block[d] < 1 || t->dim[d] % block[d])
            return accel_fail(ACCEL_EARG,
                              "granularity: blocks of %lld do not divide dim %d of '%.200s', "
                              "which is %lld",
                              (long long)block[d], d, row->target->name, (long long)t->dim[d]);
    struct accel_mask *m;
    ACCEL_TRY(accel_mask_new(&m, sizeof(struct block), &block_ops, row, log));
    struct block *b = (struct block *)m;
    b->rank = t->rank ? t->rank - 1 : 0;
    b->dim = accel_calloc((size_t)b->rank, 2 * sizeof *b->dim);
    if (!b->dim) {
        accel_mask_free(m);
        return accel_fail_nomem();
    }
    b->block = b->dim + b->rank;
    b->row = t->rank ? (uint64_t)t->dim[t->rank - 1] : 1;
    b->wide = t->rank ? (uint64_t)block[t->rank - 1] : 1;
    b->each = b->wide;
    for (int d = 0; d < b->rank; d++) {
        b->dim[d] = (uint64_t)t->dim[d];
        b->block[d] = (uint64_t)block[d];
        b->each *= (uint64_t)block[d];
    }
    b->n = t->n / b->each;
    b->score_key = accel_key_of(ACCEL_F64, true);
    m->count_all = true;
    *choice = &b->choice;
    *out = m;
    return ACCEL_OK;
}
