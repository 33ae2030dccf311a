/* span.c - the places of values in the block.
 *
 * Few spans: largest first, each at the lowest offset where it meets no placed one that lives at
 * the same time. Placed spans are kept in the order of their offsets, so that one walk over those
 * alive finds the gap. This gives the smallest blocks, in quadratic time.
 *
 * Many spans: in the order of time, as a memory allocator would. The block is a list of pieces,
 * used or free, in the order of their offsets; free neighbours are joined. Free pieces hang in
 * lists by size, eight per power of two: a span takes the first piece of its own list if that is
 * large enough, else one of the next list that is not empty, which is always large enough.
 * Source: Masmano, Ripoll, Crespo and Real, "TLSF: a new dynamic memory allocator for real-time
 * systems", ECRTS 2004. */
#include "exec/span.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"

static int by_size(const void *a, const void *b)
{
    const struct accel_span *x = a, *y = b;
    if (x->size != y->size)
        return x->size < y->size ? 1 : -1;
    return x->from < y->from ? -1 : x->from > y->from;
}

/* The lowest free offset for s among the placed spans, which are sorted by offset. */
static size_t find_gap(struct accel_span *const *placed, size_t n, struct accel_span *s)
{
    uint64_t at = 0;
    size_t where = 0;
    for (size_t i = 0; i < n; i++) {
        const struct accel_span *o = placed[i];
        if (o->to < s->from || o->from > s->to)
            continue;
        if (o->offset >= at + s->size)
            break;
        uint64_t end = o->offset + o->size;
        at = end > at ? end : at;
    }
    s->offset = at;
    while (where < n && placed[where]->offset <= at)
        where++;
    return where;
}

static enum accel_err place_by_size(uint64_t *size, struct accel_span *span, size_t n)
{
    struct accel_span **placed = accel_calloc(n, sizeof(struct accel_span *));
    if (!placed)
        return accel_fail_nomem();
    qsort(span, n, sizeof *span, by_size);
    for (size_t i = 0; i < n; i++) {
        size_t where = find_gap(placed, i, &span[i]);
        for (size_t k = i; k > where; k--)
            placed[k] = placed[k - 1];
        placed[where] = &span[i];
        uint64_t end = span[i].offset + span[i].size;
        *size = end > *size ? end : *size;
    }
    accel_free(placed);
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ in the order of time */

enum { N_LISTS = 64 * 8, NONE = -1 };

struct piece {
    uint64_t offset, size;
    ptrdiff_t before, after; /* in the order of offsets */
    ptrdiff_t newer, older;  /* in its list while it is free */
    bool is_free;
};

struct heap {
    struct piece *piece; /* [n span + 1]: placing one splits at most one */
    ptrdiff_t n, spare;  /* spare: list of records no longer in use, linked by `older` */
    ptrdiff_t last;      /* the piece with the highest offset */
    ptrdiff_t list[N_LISTS];
    uint64_t size;
};

/* Sizes of a list: the power of two, and the three bits behind the leading one. */
static int list_of(uint64_t size)
{
    uint64_t units = size / ACCEL_SPAN_ALIGN;
    int log = 63 - __builtin_clzll(units);
    int low = log >= 3 ? (int)(units >> (log - 3) & 7) : (int)(units << (3 - log) & 7);
    return log * 8 + low;
}

static void push(struct heap *h, ptrdiff_t i)
{
    struct piece *p = &h->piece[i];
    ptrdiff_t *head = &h->list[list_of(p->size)];
    p->is_free = true;
    p->newer = NONE;
    p->older = *head;
    if (*head != NONE)
        h->piece[*head].newer = i;
    *head = i;
}

static void unlink_free(struct heap *h, ptrdiff_t i)
{
    struct piece *p = &h->piece[i];
    if (p->newer != NONE)
        h->piece[p->newer].older = p->older;
    else
        h->list[list_of(p->size)] = p->older;
    if (p->older != NONE)
        h->piece[p->older].newer = p->newer;
    p->is_free = false;
}

static ptrdiff_t new_piece(struct heap *h, uint64_t offset, uint64_t size, ptrdiff_t before)
{
    ptrdiff_t i = h->spare != NONE ? h->spare : h->n++;
    if (i == h->spare)
        h->spare = h->piece[i].older;
    struct piece *p = &h->piece[i];
    *p = (struct piece){.offset = offset, .size = size, .before = before, .after = NONE};
    if (before != NONE) {
        p->after = h->piece[before].after;
        h->piece[before].after = i;
    }
    if (p->after != NONE)
        h->piece[p->after].before = i;
    else
        h->last = i;
    return i;
}

/* A free piece of that size at least, taken out of its list; NONE when there is none. */
static ptrdiff_t find_free(struct heap *h, uint64_t size)
{
    int own = list_of(size);
    ptrdiff_t i = h->list[own];
    if (i == NONE || h->piece[i].size < size)
        for (int l = own + 1; (i = NONE, l < N_LISTS) && (i = h->list[l]) == NONE;)
            l++;
    if (i != NONE)
        unlink_free(h, i);
    return i;
}

static ptrdiff_t take(struct heap *h, uint64_t size)
{
    ptrdiff_t i = find_free(h, size);
    if (i == NONE && h->last != NONE && h->piece[h->last].is_free) {
        i = h->last; /* too small, but the block can grow behind it */
        unlink_free(h, i);
        h->size += size - h->piece[i].size;
        h->piece[i].size = size;
    } else if (i == NONE) {
        i = new_piece(h, h->size, size, h->last);
        h->size += size;
    }
    if (h->piece[i].size > size) {
        uint64_t rest = h->piece[i].size - size;
        h->piece[i].size = size;
        push(h, new_piece(h, h->piece[i].offset + size, rest, i));
    }
    return i;
}

/* The piece behind i becomes part of it. */
static void join(struct heap *h, ptrdiff_t i)
{
    ptrdiff_t k = h->piece[i].after;
    h->piece[i].size += h->piece[k].size;
    h->piece[i].after = h->piece[k].after;
    if (h->piece[k].after != NONE)
        h->piece[h->piece[k].after].before = i;
    else
        h->last = i;
    h->piece[k].older = h->spare;
    h->spare = k;
}

static void give_back(struct heap *h, ptrdiff_t i)
{
    ptrdiff_t before = h->piece[i].before, after = h->piece[i].after;
    if (after != NONE && h->piece[after].is_free) {
        unlink_free(h, after);
        join(h, i);
    }
    if (before != NONE && h->piece[before].is_free) {
        unlink_free(h, before);
        join(h, before);
        i = before;
    }
    push(h, i);
}

/* The end of a life: when, and of which span. */
struct end {
    size_t to, span;
};

static int by_birth(const void *a, const void *b)
{
    const struct accel_span *x = a, *y = b;
    return x->from != y->from ? (x->from < y->from ? -1 : 1) : by_size(a, b);
}

static int by_end(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->span < y->span ? -1 : x->span > y->span;
}

static enum accel_err place_in_time(uint64_t *size, struct accel_span *span, size_t n)
{
    struct heap h = {.spare = NONE, .last = NONE};
    struct end *end = accel_calloc(n, sizeof *end);
    ptrdiff_t *place = accel_calloc(n, sizeof *place);
    size_t n_ended = 0;
    h.piece = accel_calloc(2 * n + 1, sizeof *h.piece);
    enum accel_err err = end && place && h.piece ? ACCEL_OK : accel_fail_nomem();
    for (int i = 0; i < N_LISTS; i++)
        h.list[i] = NONE;
    if (!err) {
        qsort(span, n, sizeof *span, by_birth);
        for (size_t i = 0; i < n; i++)
            end[i] = (struct end){span[i].to, i};
        qsort(end, n, sizeof *end, by_end);
    }
    for (size_t i = 0; !err && i < n; i++) {
        for (; end[n_ended].to < span[i].from; n_ended++)
            give_back(&h, place[end[n_ended].span]);
        place[i] = take(&h, span[i].size);
        span[i].offset = h.piece[place[i]].offset;
    }
    *size = h.size;
    accel_free(end);
    accel_free(place);
    accel_free(h.piece);
    return err;
}

enum accel_err accel_spans_place(uint64_t *size, struct accel_span *span, size_t n)
{
    uint64_t sum = 0;
    *size = 0;
    for (size_t i = 0; i < n; i++)
        if (__builtin_add_overflow(sum, span[i].size, &sum))
            return accel_fail(ACCEL_ENOMEM, "no memory for the model's values");
    if (n == 0)
        return ACCEL_OK;
    return n <= ACCEL_SPAN_EXACT ? place_by_size(size, span, n) : place_in_time(size, span, n);
}
