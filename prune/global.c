/* One ranking over several tensors, with bounds for each.
 *
 * The wanted key is built from its upper digits down, as in a single selection, but every member
 * keeps its own table: what a member gives below some key is its count there, held between its
 * bounds, and the sum of that over all members grows with the key. So the digit at which the sum
 * reaches the target is the right one, with bounds and without, and no round of "clamp and try
 * again" is needed. The width of a digit follows from the number of members: all tables together
 * take 32 MiB at most.
 *
 * Afterwards a member whose bound holds knows its count and selects by itself while it is written;
 * the others share the key. */
#include "prune/mask.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

static const uint64_t table_room = (uint64_t)32 << 20;

struct ranking {
    struct accel_member *at;
    size_t n;
    struct accel_spectrum s;
    uint64_t target; /* elements that go */
    int width;       /* bits of a digit */
    uint64_t *table; /* [n][1 << width] */
    uint64_t key;    /* upper digits found so far */
};

static uint64_t held(const struct accel_member *m, uint64_t entries)
{
    return entries < m->choice->low    ? m->choice->low
           : entries > m->choice->high ? m->choice->high
                                       : entries;
}

static enum accel_err spectrum_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    const struct accel_member *m = ((void **)ctx)[0];
    accel_spectrum_add(((void **)ctx)[1], &m->key, elem, first, count);
    return ACCEL_OK;
}

/* The first pass over one member: its numbers, and its table of the first digit. */
static enum accel_err member_begin(struct ranking *r, struct accel_member *m)
{
    void *ctx[2] = {m, &r->s};
    bool own_keys = !m->entries && m->key.bits == m->mask->key.bits;
    if (own_keys) {
        ACCEL_TRY(accel_mask_survey(m->mask, &r->s, &m->src));
    } else {
        if (!m->entries)
            ACCEL_TRY(accel_mask_survey(m->mask, &r->s, &m->src));
        accel_spectrum_reset(&r->s);
        ACCEL_TRY(accel_source_pass(&m->src, spectrum_sink, ctx));
        accel_spectrum_end(&r->s);
    }
    if (m->mask->left)
        return ACCEL_OK;
    int top = r->width < ACCEL_SPECTRUM_BITS ? r->width : ACCEL_SPECTRUM_BITS;
    for (uint64_t b = 0; b < (uint64_t)1 << ACCEL_SPECTRUM_BITS; b++)
        m->table[b >> (ACCEL_SPECTRUM_BITS - top)] += r->s.bin[b];
    return ACCEL_OK;
}

/* Chooses the digit among n at which the members' sum reaches the target. */
static void digit_choose(struct ranking *r, uint64_t n, int bits)
{
    uint64_t d = 0;
    for (;; d++) {
        uint64_t sum = 0;
        for (size_t i = 0; i < r->n; i++) {
            struct accel_member *m = &r->at[i];
            if (!m->mask->left)
                sum += held(m, m->below + m->table[d]) * m->weight;
        }
        if (sum >= r->target || d + 1 == n)
            break;
        for (size_t i = 0; i < r->n; i++)
            r->at[i].below += r->at[i].table[d];
    }
    for (size_t i = 0; i < r->n; i++)
        r->at[i].equal = r->at[i].table[d];
    r->key = r->key << bits | d;
}

struct digit_pass {
    struct accel_digit d;
    const struct accel_key *k;
};

static enum accel_err digit_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct digit_pass *p = ctx;
    accel_digit_add(&p->d, p->k, elem, first, count);
    return ACCEL_OK;
}

static enum accel_err key_find(struct ranking *r)
{
    int bits = r->at[0].key.bits;
    int high = bits - (r->width < ACCEL_SPECTRUM_BITS ? r->width : ACCEL_SPECTRUM_BITS);
    digit_choose(r, (uint64_t)1 << (bits - high), bits - high);
    while (high > 0) {
        int low = high > r->width ? high - r->width : 0;
        uint64_t n = (uint64_t)1 << (high - low);
        for (size_t i = 0; i < r->n; i++) {
            struct accel_member *m = &r->at[i];
            memset(m->table, 0, n * sizeof *m->table);
            struct digit_pass p = {{r->key, high, low, m->table}, &m->key};
            if (!m->mask->left)
                ACCEL_TRY(accel_source_pass(&m->src, digit_sink, &p));
        }
        digit_choose(r, n, high - low);
        high = low;
    }
    return ACCEL_OK;
}

/* A number of entries becomes a choice: by the shared key, or, where a bound holds, by count. */
static void member_settle(const struct ranking *r, struct accel_member *m, uint64_t count)
{
    struct accel_choice *c = m->choice;
    c->count = count;
    c->largest = count ? accel_key_value(&m->key, r->key) : NAN;
    if (m->key.bits != m->mask->key.bits && !m->entries) {
        c->rule = ACCEL_RULE_COUNT; /* ranked by other keys than it is cut by */
    } else if (count < m->below || count > m->below + m->equal) {
        c->rule = ACCEL_RULE_COUNT;
    } else {
        c->rule = ACCEL_RULE_CUT;
        c->cut.key = r->key;
        c->ties = count - m->below;
        c->equal = m->equal;
    }
}

/* Ties at the key: in order, as far as target and bounds allow. */
static void settle(struct ranking *r)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < r->n; i++)
        if (!r->at[i].mask->left)
            sum += held(&r->at[i], r->at[i].below) * r->at[i].weight;
    for (size_t i = 0; i < r->n; i++) {
        struct accel_member *m = &r->at[i];
        if (m->mask->left)
            continue;
        uint64_t least = held(m, m->below), most = held(m, m->below + m->equal);
        uint64_t room = sum < r->target ? (r->target - sum) / m->weight : 0;
        uint64_t more = most - least < room ? most - least : room;
        sum += more * m->weight;
        member_settle(r, m, least + more);
    }
}

/* NNI: bounds hold only where the whole group is at them, else one threshold; what equals it stays.
 * Its threshold is the entry behind the last one that would go. */
static enum accel_err settle_strict(struct ranking *r)
{
    uint64_t low = 0, high = 0;
    for (size_t i = 0; i < r->n; i++) {
        low += r->at[i].choice->low * r->at[i].weight;
        high += r->at[i].choice->high * r->at[i].weight;
    }
    bool at_low = r->target <= low, at_high = r->target >= high;
    for (size_t i = 0; i < r->n && (at_low || at_high); i++) {
        r->at[i].choice->rule = ACCEL_RULE_COUNT;
        r->at[i].choice->count = at_low ? r->at[i].choice->low : r->at[i].choice->high;
    }
    if (at_low || at_high)
        return ACCEL_OK;
    for (size_t i = 0; i < r->n; i++) {
        r->at[i].choice->low = 0;
        r->at[i].choice->high = r->at[i].src.n;
    }
    r->target++;
    ACCEL_TRY(key_find(r));
    for (size_t i = 0; i < r->n; i++)
        if (!r->at[i].mask->left)
            member_settle(r, &r->at[i], r->at[i].below);
    return ACCEL_OK;
}

/* Elements that go, over the members that can be ranked. Equal ratios are applied to the sum. */
static void target_set(struct ranking *r, bool strict)
{
    uint64_t n = 0;
    double sum = 0, ratio = NAN;
    bool same = true;
    for (size_t i = 0; i < r->n; i++) {
        const struct accel_member *m = &r->at[i];
        if (m->mask->left)
            continue;
        same = same && (isnan(ratio) || ratio == m->ratio);
        ratio = m->ratio;
        n += m->src.n * m->weight;
        sum += (double)(m->src.n * m->weight) * m->ratio;
    }
    r->target = same && n ? accel_choice_count(n, ratio, strict)
                          : accel_choice_count(n, n ? sum / (double)n : 0, strict);
}

enum accel_err accel_global_rank(struct accel_member *member, size_t n, bool strict)
{
    enum accel_err err = ACCEL_OK;
    struct ranking r = {.at = member, .n = n, .width = 16};
    while (r.width > 4 && ((uint64_t)n << r.width) * sizeof *r.table > table_room)
        r.width--;
    if (!n)
        return ACCEL_OK;
    ACCEL_TRY(accel_spectrum_init(&r.s));
    r.table = accel_calloc(n, sizeof *r.table << r.width);
    if (!r.table) {
        err = accel_fail_nomem();
        goto done;
    }
    for (size_t i = 0; i < n; i++) {
        member[i].table = r.table + (i << r.width);
        member[i].below = member[i].equal = 0;
        ACCEL_GOTO(err, member_begin(&r, &member[i]));
    }
    target_set(&r, strict);
    if (strict) {
        err = settle_strict(&r);
    } else {
        ACCEL_GOTO(err, key_find(&r));
        settle(&r);
    }
done:
    accel_free(r.table);
    accel_spectrum_clear(&r.s);
    return err;
}
