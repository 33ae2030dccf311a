/* Granularity per_channel: every output channel is ranked by itself. The digits are 8 bits wide
 * here, so that a table per channel stays small (2 KiB); channels are taken 4096 at a time, and
 * memory is 8 MiB and three numbers per channel, whatever the tensor's size. */
#include "prune/mask.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { DIGIT = 8, N_DIGIT = 1 << DIGIT, BATCH = 4096, SHORT_RUN = 64 };

struct channelwise {
    struct accel_mask m;
    struct accel_choice choice;
    uint64_t n, inner; /* channels; neighbours that share one */
    uint64_t *key;     /* [n] the cut of each; while it is sought: its upper digits */
    uint64_t *tie_end; /* [n] while the cut is sought: the rank left */
    uint64_t *equal;   /* [n] entries with the key; then ties left */
};

/* The channel of one element after the other, without a division for each. */
struct spot {
    uint64_t channel, left;
};

static struct spot spot_at(const struct channelwise *c, uint64_t index)
{
    return (struct spot){index / c->inner % c->n, c->inner - index % c->inner};
}

static inline uint64_t spot_step(struct spot *s, const struct channelwise *c)
{
    uint64_t channel = s->channel;
    if (!--s->left) {
        s->left = c->inner;
        s->channel = channel + 1 < c->n ? channel + 1 : 0;
    }
    return channel;
}

/* One pass over the elements of channels [from, to). */
struct digit_pass {
    struct channelwise *c;
    uint64_t from, to, *table;
    int high, low;
};

static enum accel_err digit_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct digit_pass *p = ctx;
    const struct channelwise *c = p->c;
    struct spot spot = spot_at(c, first);
    uint64_t key[ACCEL_KEY_BLOCK], mask = ((uint64_t)1 << (p->high - p->low)) - 1;
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(&c->m.key, elem, i, first + i, n, key);
        for (size_t j = 0; j < n; j++) {
            uint64_t ch = spot_step(&spot, c);
            if (ch >= p->from && ch < p->to && key[j] >> p->high == c->key[ch])
                p->table[(ch - p->from) * N_DIGIT + (key[j] >> p->low & mask)]++;
        }
    }
    return ACCEL_OK;
}

struct walk_pass {
    struct channelwise *c;
    uint64_t limit;
};

/* equal[c] counts keys below the limit. */
static enum accel_err below_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct walk_pass *p = ctx;
    struct spot spot = spot_at(p->c, first);
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(&p->c->m.key, elem, i, first + i, n, key);
        for (size_t j = 0; j < n; j++)
            p->c->equal[spot_step(&spot, p->c)] += key[j] < p->limit;
    }
    return ACCEL_OK;
}

/* Finds the index behind the last tie that goes; equal[c]: how many go. */
static enum accel_err tie_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct channelwise *c = ctx;
    struct spot spot = spot_at(c, first);
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(&c->m.key, elem, i, first + i, n, key);
        for (size_t j = 0; j < n; j++) {
            uint64_t ch = spot_step(&spot, c);
            if (c->equal[ch] && key[j] == c->key[ch] && !--c->equal[ch])
                c->tie_end[ch] = first + i + j + 1;
        }
    }
    return ACCEL_OK;
}

/* How many go in each channel, into tie_end. */
static enum accel_err ranks_set(struct channelwise *c, struct accel_source *src)
{
    const struct accel_choice *r = &c->choice;
    if (r->rule == ACCEL_RULE_THRESHOLD) {
        struct walk_pass p = {c, accel_key_at_least(&c->m.key, r->threshold)};
        ACCEL_TRY(accel_source_pass(src, below_sink, &p));
    }
    for (uint64_t i = 0; i < c->n; i++) {
        uint64_t below = c->equal[i];
        c->tie_end[i] = r->rule == ACCEL_RULE_COUNT ? r->count
                        : below < r->low            ? r->low
                        : below > r->high           ? r->high
                                                    : below;
    }
    return ACCEL_OK;
}

/* Digit by digit, for the channels of one batch. */
static enum accel_err batch_select(struct channelwise *c, struct accel_source *src, uint64_t from,
                                   uint64_t *table)
{
    uint64_t to = c->n - from < BATCH ? c->n : from + BATCH;
    for (int high = c->m.key.bits; high > 0;) {
        int low = high > DIGIT ? high - DIGIT : 0;
        struct digit_pass p = {c, from, to, table, high, low};
        memset(table, 0, (to - from) * N_DIGIT * sizeof *table);
        ACCEL_TRY(accel_source_pass(src, digit_sink, &p));
        for (uint64_t i = from; i < to; i++) {
            const uint64_t *bin = table + (i - from) * N_DIGIT;
            uint64_t d = 0;
            for (; d < N_DIGIT - 1 && bin[d] < c->tie_end[i]; d++)
                c->tie_end[i] -= bin[d];
            c->key[i] = c->key[i] << (high - low) | d;
            c->equal[i] = bin[d];
        }
        high = low;
    }
    return ACCEL_OK;
}

static enum accel_err cuts_find(struct channelwise *c, struct accel_source *src)
{
    enum accel_err err;
    bool ties = false;
    memset(c->key, 0, c->n * sizeof *c->key);
    memset(c->equal, 0, c->n * sizeof *c->equal);
    ACCEL_TRY(ranks_set(c, src));
    uint64_t batch = c->n < BATCH ? c->n : BATCH;
    uint64_t *table = accel_calloc((size_t)batch * N_DIGIT, sizeof *table);
    if (!table)
        return accel_fail_nomem();
    for (uint64_t from = 0; from < c->n; from += BATCH)
        ACCEL_GOTO(err, batch_select(c, src, from, table));
    c->choice.largest = NAN;
    for (uint64_t i = 0; i < c->n; i++) {
        uint64_t go = c->tie_end[i];
        if (!go) {
            c->key[i] = c->equal[i] = 0;
            continue;
        }
        double v = accel_key_value(&c->m.key, c->key[i]);
        if (!(v <= c->choice.largest))
            c->choice.largest = v;
        c->tie_end[i] = go >= c->equal[i] ? UINT64_MAX : 0;
        ties = ties || go < c->equal[i];
        c->equal[i] = go < c->equal[i] ? go : 0;
    }
    err = ties ? accel_source_pass(src, tie_sink, c) : ACCEL_OK;
done:
    accel_free(table);
    return err;
}

static enum accel_err channelwise_prepare(struct accel_edit *e, const struct accel_tensor *t,
                                          const void *whole, void *scratch, size_t scratch_size)
{
    struct channelwise *c = (struct channelwise *)e;
    if (e->prepared)
        return ACCEL_OK;
    enum accel_err err;
    struct accel_source src = accel_mask_source(t, whole, scratch, scratch_size);
    struct accel_spectrum own = {0}, *s;
    ACCEL_GOTO(err, accel_mask_room(&s, &c->m, &own));
    ACCEL_GOTO(err, accel_mask_survey(&c->m, s, &src));
    if (!c->m.left) {
        ACCEL_GOTO(err, cuts_find(c, &src));
        c->m.row->threshold = c->choice.largest;
    }
    e->prepared = true;
done:
    accel_spectrum_clear(&own);
    accel_buffer_clear(&src.room);
    return err;
}

/* A run of elements of one channel. */
static void run_cut(const struct channelwise *c, void *elem, uint64_t at, uint64_t first,
                    uint64_t count, uint64_t ch)
{
    uint64_t head = c->tie_end[ch] <= first ? 0 : c->tie_end[ch] - first;
    if (head > count)
        head = count;
    accel_key_cut(&c->m.key, elem, at, first, head, c->key[ch] + 1);
    accel_key_cut(&c->m.key, elem, at + head, first + head, count - head, c->key[ch]);
}

/* Elements whose neighbours belong to other channels. */
static void mixed_cut(const struct channelwise *c, void *elem, uint64_t first, uint64_t count)
{
    struct spot spot = spot_at(c, first);
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(&c->m.key, elem, i, first + i, n, key);
        for (size_t j = 0; j < n; j++) {
            uint64_t index = first + i + j, ch = spot_step(&spot, c);
            if (key[j] < c->key[ch] || (key[j] == c->key[ch] && index < c->tie_end[ch]))
                accel_key_clear(&c->m.key, elem, i + j, index);
        }
    }
}

static enum accel_err channelwise_apply(struct accel_edit *e, uint64_t first, uint64_t count,
                                        void *elem)
{
    struct channelwise *c = (struct channelwise *)e;
    if (!c->m.left && c->inner < SHORT_RUN)
        mixed_cut(c, elem, first, count);
    for (uint64_t i = 0; i < count && !c->m.left && c->inner >= SHORT_RUN;) {
        uint64_t index = first + i, n = c->inner - index % c->inner;
        if (n > count - i)
            n = count - i;
        run_cut(c, elem, i, index, n, index / c->inner % c->n);
        i += n;
    }
    return accel_mask_note(&c->m, first, count, elem,
                           accel_key_below(&c->m.key, elem, first, count, 1));
}

static void channelwise_free(struct accel_edit *e)
{
    struct channelwise *c = (struct channelwise *)e;
    accel_free(c->key);
    accel_mask_free(&c->m);
}

static const struct accel_edit_ops channelwise_ops = {channelwise_prepare, channelwise_apply,
                                                      channelwise_free};

enum accel_err accel_channel_new(struct accel_mask **out, struct accel_choice **choice,
                                 struct accel_prune_row *row, int axis, struct accel_log *log)
{
    const struct accel_tensor *t = row->target->tensor;
    struct accel_mask *m;
    ACCEL_TRY(accel_mask_new(&m, sizeof(struct channelwise), &channelwise_ops, row, log));
    struct channelwise *c = (struct channelwise *)m;
    c->n = (uint64_t)t->dim[axis];
    c->inner = 1;
    for (int d = axis + 1; d < t->rank; d++)
        c->inner *= (uint64_t)t->dim[d];
    c->key = accel_calloc((size_t)c->n, 3 * sizeof *c->key);
    if (!c->key) {
        channelwise_free(&m->edit);
        return accel_fail_nomem();
    }
    c->tie_end = c->key + c->n;
    c->equal = c->tie_end + c->n;
    m->count_all = true;
    *choice = &c->choice;
    *out = m;
    return ACCEL_OK;
}
