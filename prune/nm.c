/* n:m: the tensor is seen as [outer, D, inner] with D the input axis. A group is m consecutive
 * positions of D for one (outer, inner); the last group of D may be shorter. An element goes when
 * at least n others of its group beat it: by magnitude, or, equal, by a higher index. Groups lie
 * whole in a run of the grain, so nothing but NaN need be known before. */
#include "prune/mask.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

/* Keys held; groups up to COMPARE_MOST are compared in pairs, WIDE of them at a time. */
enum { ROOM = 4096, COMPARE_MOST = 16, WIDE = ROOM / COMPARE_MOST };

struct nm {
    struct accel_mask m;
    uint64_t keep, group; /* n, m */
    uint64_t axis, inner; /* D, elements per step of D */
    uint64_t *key;        /* [ROOM] key j of group q: key[j * width + q] */
    bool *gone;           /* [ROOM] */
};

static enum accel_err nm_prepare(struct accel_edit *e, const struct accel_tensor *t,
                                 const void *whole, void *scratch, size_t scratch_size)
{
    struct nm *x = (struct nm *)e;
    if (e->prepared)
        return ACCEL_OK;
    enum accel_err err;
    struct accel_source src = accel_mask_source(t, whole, scratch, scratch_size);
    struct accel_spectrum own = {0}, *s;
    ACCEL_GOTO(err, accel_mask_room(&s, &x->m, &own));
    ACCEL_GOTO(err, accel_mask_survey(&x->m, s, &src));
    e->prepared = true;
done:
    accel_spectrum_clear(&own);
    accel_buffer_clear(&src.room);
    return err;
}

/* Marks what goes in `width` groups of g elements by comparing each pair. */
static void mark_pairs(struct nm *x, uint64_t g, uint64_t width)
{
    unsigned char beaten[ROOM];
    for (uint64_t j = 0; j < g; j++) {
        const uint64_t *a = x->key + j * width;
        memset(beaten, 0, width);
        for (uint64_t i = 0; i < g; i++) {
            const uint64_t *b = x->key + i * width;
            if (i > j)
                for (uint64_t q = 0; q < width; q++)
                    beaten[q] += b[q] >= a[q];
            else if (i < j)
                for (uint64_t q = 0; q < width; q++)
                    beaten[q] += b[q] > a[q];
        }
        for (uint64_t q = 0; q < width; q++)
            x->gone[j * width + q] = beaten[q] >= x->keep;
    }
}

/* The same for one large group: finds the largest key that goes bit by bit. */
static void mark_bits(struct nm *x, uint64_t g, uint64_t width, uint64_t q)
{
    uint64_t cut = 0, count = g - x->keep, below = 0;
    for (int bit = x->m.key.bits - 1; bit >= 0; bit--) {
        uint64_t with = cut | (uint64_t)1 << bit, n = 0;
        for (uint64_t j = 0; j < g; j++)
            n += x->key[j * width + q] < with;
        if (n < count) {
            cut = with;
            below = n;
        }
    }
    if (!cut)
        below = 0;
    for (uint64_t j = 0, ties = count - below; j < g; j++) {
        uint64_t key = x->key[j * width + q];
        bool tie = key == cut && ties;
        ties -= tie;
        x->gone[j * width + q] = key < cut || tie;
    }
}

/* --------------------------------------------------------------- small groups of f32, f16, bf16 */

typedef uint32_t loose32 __attribute__((aligned(1), may_alias));
typedef uint16_t loose16 __attribute__((aligned(1), may_alias));

/* The stored bits of `width` groups, element j of group q at bits[j * width + q]; and back. */
static void bits_load(uint32_t *bits, const struct accel_key *k, const void *elem, uint64_t at,
                      uint64_t g, uint64_t width, uint64_t step, uint64_t jump)
{
    const loose32 *p = (const loose32 *)elem + (k->bits == 31 ? at : 0);
    const loose16 *h = (const loose16 *)elem + (k->bits == 15 ? at : 0);
    for (uint64_t j = 0; j < g; j++)
        if (k->bits == 31)
            for (uint64_t q = 0; q < width; q++)
                bits[j * width + q] = p[j * step + q * jump];
        else
            for (uint64_t q = 0; q < width; q++)
                bits[j * width + q] = h[j * step + q * jump];
}

static void bits_store(const uint32_t *bits, const struct accel_key *k, void *elem, uint64_t at,
                       uint64_t g, uint64_t width, uint64_t step, uint64_t jump)
{
    loose32 *p = (loose32 *)elem + (k->bits == 31 ? at : 0);
    loose16 *h = (loose16 *)elem + (k->bits == 15 ? at : 0);
    for (uint64_t j = 0; j < g; j++)
        if (k->bits == 31)
            for (uint64_t q = 0; q < width; q++)
                p[j * step + q * jump] = bits[j * width + q];
        else
            for (uint64_t q = 0; q < width; q++)
                h[j * step + q * jump] = (uint16_t)bits[j * width + q];
}

/* out = in, but zero where `keep` others of the group win. One body, compiled twice. */
static inline __attribute__((always_inline)) void small_body(uint32_t *restrict out,
                                                             const uint32_t *restrict in,
                                                             uint32_t mask, uint32_t keep,
                                                             uint64_t g, uint64_t width)
{
    uint32_t beaten[WIDE];
    for (uint64_t j = 0; j < g; j++) {
        const uint32_t *a = in + j * width;
        memset(beaten, 0, width * sizeof *beaten);
        for (uint64_t i = 0; i < j; i++)
            for (uint64_t q = 0; q < width; q++)
                beaten[q] += (int32_t)(in[i * width + q] & mask) > (int32_t)(a[q] & mask);
        for (uint64_t i = j + 1; i < g; i++)
            for (uint64_t q = 0; q < width; q++)
                beaten[q] += (int32_t)(in[i * width + q] & mask) >= (int32_t)(a[q] & mask);
        for (uint64_t q = 0; q < width; q++)
            out[j * width + q] = beaten[q] >= keep ? 0 : a[q];
    }
}

static void small_plain(uint32_t *out, const uint32_t *in, uint32_t mask, uint32_t keep, uint64_t g,
                        uint64_t width)
{
    small_body(out, in, mask, keep, g, width);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void small_avx2(uint32_t *out, const uint32_t *in,
                                                       uint32_t mask, uint32_t keep, uint64_t g,
                                                       uint64_t width)
{
    small_body(out, in, mask, keep, g, width);
}
#endif

static void small_cut(const struct nm *x, void *elem, uint64_t at, uint64_t g, uint64_t width,
                      uint64_t step, uint64_t jump)
{
    uint32_t in[WIDE * COMPARE_MOST], out[WIDE * COMPARE_MOST];
    const struct accel_key *k = &x->m.key;
    uint32_t mask = k->bits == 31 ? 0x7fffffff : 0x7fff;
    bits_load(in, k, elem, at, g, width, step, jump);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        small_avx2(out, in, mask, (uint32_t)x->keep, g, width);
    else
#endif
        small_plain(out, in, mask, (uint32_t)x->keep, g, width);
    bits_store(out, k, elem, at, g, width, step, jump);
}

/* `width` groups of g elements; element j of group q is element at + j * step + q * jump of
 * `elem`. One of step and jump is 1. */
static void groups_cut(struct nm *x, void *elem, uint64_t first, uint64_t at, uint64_t g,
                       uint64_t width, uint64_t step, uint64_t jump)
{
    const struct accel_key *k = &x->m.key;
    if (g <= COMPARE_MOST && k->bits < 63) {
        small_cut(x, elem, at, g, width, step, jump);
        return;
    }
    if (jump == 1) {
        for (uint64_t j = 0; j < g; j++)
            accel_key_load(k, elem, (size_t)(at + j * step), first + at + j * step, (size_t)width,
                           x->key + j * width);
    } else {
        uint64_t flat[ROOM];
        accel_key_load(k, elem, (size_t)at, first + at, (size_t)(g * width), flat);
        for (uint64_t q = 0; q < width; q++)
            for (uint64_t j = 0; j < g; j++)
                x->key[j * width + q] = flat[q * g + j];
    }
    if (g <= COMPARE_MOST)
        mark_pairs(x, g, width);
    else
        for (uint64_t q = 0; q < width; q++)
            mark_bits(x, g, width, q);
    for (uint64_t j = 0; j < g; j++)
        for (uint64_t q = 0; q < width; q++)
            if (x->gone[j * width + q]) {
                uint64_t i = at + j * step + q * jump;
                accel_key_clear(k, elem, (size_t)i, first + i);
            }
}

static enum accel_err nm_apply(struct accel_edit *e, uint64_t first, uint64_t count, void *elem)
{
    struct nm *x = (struct nm *)e;
    uint64_t most = x->group <= COMPARE_MOST ? WIDE : ROOM / x->group;
    for (uint64_t at = 0; at < count && !x->m.left;) {
        uint64_t d = (first + at) / x->inner % x->axis;
        uint64_t g = x->axis - d < x->group ? x->axis - d : x->group;
        if (x->inner > 1 || g < x->group || most == 1) {
            for (uint64_t q = 0; q < x->inner && g > x->keep; q += most) {
                uint64_t width = x->inner - q < most ? x->inner - q : most;
                groups_cut(x, elem, first, at + q, g, width, x->inner, 1);
            }
            at += g * x->inner;
        } else { /* neighbours in memory: many groups at once */
            uint64_t width = (x->axis - d) / g, here = (count - at) / g;
            width = width < here ? width : here;
            width = width < most ? width : most;
            groups_cut(x, elem, first, at, g, width, 1, g);
            at += g * width;
        }
    }
    return accel_mask_note(&x->m, first, count, elem,
                           accel_key_below(&x->m.key, elem, first, count, 1));
}

static void nm_free(struct accel_edit *e)
{
    struct nm *x = (struct nm *)e;
    accel_free(x->key);
    accel_free(x->gone);
    accel_mask_free(&x->m);
}

static const struct accel_edit_ops nm_ops = {nm_prepare, nm_apply, nm_free};

enum accel_err accel_nm_new(struct accel_mask **out, struct accel_prune_row *row, int axis,
                            int64_t n, int64_t m, struct accel_log *log)
{
    const struct accel_tensor *t = row->target->tensor;
    struct accel_mask *mask;
    ACCEL_TRY(accel_mask_new(&mask, sizeof(struct nm), &nm_ops, row, log));
    struct nm *x = (struct nm *)mask;
    x->key = accel_calloc(ROOM, sizeof *x->key);
    x->gone = accel_calloc(ROOM, sizeof *x->gone);
    if (!x->key || !x->gone) {
        nm_free(&mask->edit);
        return accel_fail_nomem();
    }
    x->keep = (uint64_t)n;
    x->group = (uint64_t)m;
    x->axis = (uint64_t)t->dim[axis];
    x->inner = 1;
    for (int d = axis + 1; d < t->rank; d++)
        x->inner *= (uint64_t)t->dim[d];
    uint64_t outer = t->n / (x->axis * x->inner);
    bool aligned = outer == 1 || x->axis % x->group == 0;
    mask->edit.grain = (aligned && x->group < x->axis ? x->group : x->axis) * x->inner;
    mask->count_all = true;
    row->threshold = NAN;
    *out = mask;
    return ACCEL_OK;
}
