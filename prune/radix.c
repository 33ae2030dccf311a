/* Counting instead of sorting. The first pass counts all keys by their upper 15 bits into four
 * tables in turn (a table of 128 KiB each: they stay in the second-level cache, and runs of equal
 * keys do not serialise on one counter). The bin that holds the wanted rank is then counted by the
 * next 16 bits; few keys pass that filter, so the second pass is a vector compare and little else.
 *
 * Ties need one more look only when some, not all, of the equal keys go: the index behind the last
 * one that goes makes the decision for any element a matter of its key and index alone. */
#include "prune/radix.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/alloc.h"

enum { N_TOP = 1 << ACCEL_SPECTRUM_BITS, DIGIT = 16 };

typedef uint32_t loose32 __attribute__((aligned(1), may_alias));
typedef uint16_t loose16 __attribute__((aligned(1), may_alias));

/* ---------------------------------------------------------------------------------- first pass */

enum accel_err accel_spectrum_init(struct accel_spectrum *s)
{
    *s = (struct accel_spectrum){0};
    s->part = accel_calloc(4, sizeof *s->part);
    s->bin = accel_calloc(N_TOP, sizeof *s->bin);
    if (s->part && s->bin)
        return ACCEL_OK;
    accel_spectrum_clear(s);
    return accel_fail_nomem();
}

void accel_spectrum_clear(struct accel_spectrum *s)
{
    accel_free(s->part);
    accel_free(s->bin);
    accel_free(s->digit);
    *s = (struct accel_spectrum){0};
}

void accel_spectrum_reset(struct accel_spectrum *s)
{
    if (s->pending)
        memset(s->part, 0, 4 * sizeof *s->part);
    memset(s->bin, 0, N_TOP * sizeof *s->bin);
    s->pending = s->n = s->zeros = s->max_key = 0;
}

void accel_spectrum_end(struct accel_spectrum *s)
{
    if (!s->pending)
        return;
    for (int b = 0; b < N_TOP; b++)
        s->bin[b] +=
            (uint64_t)s->part[0][b] + s->part[1][b] + (uint64_t)s->part[2][b] + s->part[3][b];
    memset(s->part, 0, 4 * sizeof *s->part);
    s->pending = 0;
}

/* Zeros and the largest of a few elements. One body, compiled twice. */
static inline __attribute__((always_inline)) void tally_body(uint32_t *zeros, uint32_t *max,
                                                             const loose32 *p, size_t n)
{
    uint32_t z = 0, m = *max;
    for (size_t i = 0; i < n; i++) {
        uint32_t a = p[i] & 0x7fffffff;
        z += a == 0;
        m = (int32_t)a > (int32_t)m ? a : m;
    }
    *zeros = z;
    *max = m;
}

static void tally_plain(uint32_t *zeros, uint32_t *max, const loose32 *p, size_t n)
{
    tally_body(zeros, max, p, n);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void tally_avx2(uint32_t *zeros, uint32_t *max,
                                                       const loose32 *p, size_t n)
{
    tally_body(zeros, max, p, n);
}
#endif

static void tally(uint32_t *zeros, uint32_t *max, const loose32 *p, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        tally_avx2(zeros, max, p, n);
        return;
    }
#endif
    tally_plain(zeros, max, p, n);
}

static void count32(struct accel_spectrum *s, const loose32 *p, size_t n)
{
    uint32_t(*t)[N_TOP] = s->part;
    uint32_t max = 0;
    for (size_t at = 0; at < n; at += 4096) { /* stays in the first-level cache for tally() */
        size_t end = n - at < 4096 ? n : at + 4096, i = at;
        for (; i + 4 <= end; i += 4) {
            t[0][(p[i] << 1) >> 17]++;
            t[1][(p[i + 1] << 1) >> 17]++;
            t[2][(p[i + 2] << 1) >> 17]++;
            t[3][(p[i + 3] << 1) >> 17]++;
        }
        for (; i < end; i++)
            t[0][(p[i] << 1) >> 17]++;
        uint32_t zeros;
        tally(&zeros, &max, p + at, end - at);
        s->zeros += zeros;
    }
    if (max > s->max_key)
        s->max_key = max;
}

static void count16(struct accel_spectrum *s, const loose16 *p, size_t n)
{
    uint32_t(*t)[N_TOP] = s->part;
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        t[0][p[i] & 0x7fff]++;
        t[1][p[i + 1] & 0x7fff]++;
        t[2][p[i + 2] & 0x7fff]++;
        t[3][p[i + 3] & 0x7fff]++;
    }
    for (; i < n; i++)
        t[0][p[i] & 0x7fff]++;
    uint32_t zeros = 0;
    uint16_t max = 0;
    for (i = 0; i < n; i++) {
        uint16_t a = p[i] & 0x7fff;
        zeros += a == 0;
        max = a > max ? a : max;
    }
    s->zeros += zeros;
    if (max > s->max_key)
        s->max_key = max;
}

static void count_wide(struct accel_spectrum *s, const struct accel_key *k, const void *elem,
                       uint64_t at, uint64_t first, size_t n)
{
    uint64_t key[ACCEL_KEY_BLOCK];
    for (size_t i = 0; i < n; i += ACCEL_KEY_BLOCK) {
        size_t m = n - i < ACCEL_KEY_BLOCK ? n - i : ACCEL_KEY_BLOCK;
        accel_key_load(k, elem, at + i, first + i, m, key);
        for (size_t j = 0; j < m; j++) {
            s->part[j & 3][key[j] >> (k->bits - ACCEL_SPECTRUM_BITS)]++;
            s->zeros += !key[j];
            s->max_key = key[j] > s->max_key ? key[j] : s->max_key;
        }
    }
}

void accel_spectrum_add(struct accel_spectrum *s, const struct accel_key *k, const void *elem,
                        uint64_t first, uint64_t count)
{
    const uint64_t most = (uint64_t)1 << 30; /* 32-bit counters */
    for (uint64_t i = 0; i < count;) {
        if (s->pending >= most)
            accel_spectrum_end(s);
        size_t n =
            count - i < most - s->pending ? (size_t)(count - i) : (size_t)(most - s->pending);
        if (k->bits == 31)
            count32(s, (const loose32 *)elem + i, n);
        else if (k->bits == 15)
            count16(s, (const loose16 *)elem + i, n);
        else
            count_wide(s, k, elem, i, first + i, n);
        s->pending += n;
        s->n += n;
        i += n;
    }
}

void accel_spectrum_fold(const struct accel_spectrum *s, const struct accel_key *k, double max,
                         uint64_t *bin, int n_bin)
{
    memset(bin, 0, (size_t)n_bin * sizeof *bin);
    int shift = k->bits - ACCEL_SPECTRUM_BITS;
    for (uint64_t b = 0; b < N_TOP && max > 0; b++) {
        uint64_t n = s->bin[b] - (b ? 0 : s->zeros);
        if (!n)
            continue;
        double v = accel_key_value(k, shift ? b << shift | (uint64_t)1 << (shift - 1) : b);
        double at = v / max * n_bin;
        if (at >= 0) /* no NaN */
            bin[at < n_bin ? (int)at : n_bin - 1] += n;
    }
}

double accel_spectrum_largest(const struct accel_spectrum *s, const struct accel_key *k)
{
    uint64_t infinity = accel_key_infinity(k);
    if (s->max_key < infinity)
        return accel_key_value(k, s->max_key);
    int shift = k->bits - ACCEL_SPECTRUM_BITS;
    for (uint64_t b = infinity >> shift; b-- > 0;)
        if (s->bin[b])
            return accel_key_value(k, (b + 1) << shift) < INFINITY
                       ? accel_key_value(k, (b + 1) << shift)
                       : accel_key_value(k, b << shift);
    return 0;
}

/* -------------------------------------------------------------------------------- later passes */

static inline void digit_one(const struct accel_digit *d, uint64_t key)
{
    d->table[key >> d->low & (((uint64_t)1 << (d->high - d->low)) - 1)]++;
}

static void digits32(const struct accel_digit *d, const loose32 *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t a = p[i] & 0x7fffffff;
        if ((uint64_t)a >> d->high == d->prefix)
            digit_one(d, a);
    }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void digits32_avx2(const struct accel_digit *d,
                                                          const loose32 *p, size_t n)
{
    const __m256i abs = _mm256_set1_epi32(0x7fffffff), want = _mm256_set1_epi32((int)d->prefix);
    const __m128i shift = _mm_cvtsi32_si128(d->high);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i a =
            _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)(p + i)), abs);
        __m256i b =
            _mm256_and_si256(_mm256_loadu_si256((const __m256i *)(const void *)(p + i + 8)), abs);
        __m256i ha = _mm256_cmpeq_epi32(_mm256_srl_epi32(a, shift), want);
        __m256i hb = _mm256_cmpeq_epi32(_mm256_srl_epi32(b, shift), want);
        unsigned hit = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(ha)) |
                       (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(hb)) << 8;
        for (; hit; hit &= hit - 1)
            digit_one(d, p[i + (size_t)__builtin_ctz(hit)] & 0x7fffffff);
    }
    digits32(d, p + i, n - i);
}
#endif

void accel_digit_add(const struct accel_digit *d, const struct accel_key *k, const void *elem,
                     uint64_t first, uint64_t count)
{
    if (k->bits == 31) {
#if defined(__x86_64__)
        if (__builtin_cpu_supports("avx2")) {
            digits32_avx2(d, elem, (size_t)count);
            return;
        }
#endif
        digits32(d, elem, (size_t)count);
        return;
    }
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(k, elem, i, first + i, n, key);
        for (size_t j = 0; j < n; j++)
            if (key[j] >> d->high == d->prefix)
                digit_one(d, key[j]);
    }
}

enum accel_err accel_source_pass(struct accel_source *s, accel_sink sink, void *ctx)
{
    if (s->whole || !s->n)
        return s->n ? sink(ctx, 0, s->n, s->whole) : ACCEL_OK;
    return accel_tensor_scan(s->tensor, &s->room, sink, ctx);
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

/* The first of n bins with which the sum reaches `rank` (1-based); *rank becomes the rank inside
 * it. */
static uint64_t bin_find(const uint64_t *bin, uint64_t n, uint64_t *rank)
{
    uint64_t b = 0;
    for (; b + 1 < n && bin[b] < *rank; b++)
        *rank -= bin[b];
    return b;
}

enum accel_err accel_select(struct accel_key_cut *out, struct accel_source *src,
                            const struct accel_key *k, struct accel_spectrum *s, uint64_t count)
{
    *out = (struct accel_key_cut){count ? ACCEL_KEY_ALL : 0, 0};
    if (!count || count >= src->n)
        return ACCEL_OK;
    uint64_t rank = count, prefix = bin_find(s->bin, N_TOP, &rank), equal = s->bin[prefix];
    for (int high = k->bits - ACCEL_SPECTRUM_BITS; high > 0;) {
        int low = high > DIGIT ? high - DIGIT : 0;
        uint64_t n = (uint64_t)1 << (high - low);
        if (!s->digit && !(s->digit = accel_calloc((size_t)1 << DIGIT, sizeof *s->digit)))
            return accel_fail_nomem();
        memset(s->digit, 0, n * sizeof *s->digit);
        struct digit_pass p = {{prefix, high, low, s->digit}, k};
        ACCEL_TRY(accel_source_pass(src, digit_sink, &p));
        uint64_t digit = bin_find(s->digit, n, &rank);
        prefix = prefix << (high - low) | digit;
        equal = s->digit[digit];
        high = low;
    }
    *out = (struct accel_key_cut){prefix, UINT64_MAX};
    return rank < equal ? accel_select_tie_end(&out->tie_end, src, k, prefix, rank) : ACCEL_OK;
}

struct tie_pass {
    const struct accel_key *k;
    uint64_t key, left, end;
};

static enum accel_err tie_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct tie_pass *p = ctx;
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count && p->left; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(p->k, elem, i, first + i, n, key);
        for (size_t j = 0; j < n && p->left; j++)
            if (key[j] == p->key && !--p->left)
                p->end = first + i + j + 1;
    }
    return ACCEL_OK;
}

enum accel_err accel_select_tie_end(uint64_t *out, struct accel_source *src,
                                    const struct accel_key *k, uint64_t key, uint64_t ties)
{
    struct tie_pass p = {k, key, ties, 0};
    ACCEL_TRY(accel_source_pass(src, tie_sink, &p));
    *out = p.end;
    return ACCEL_OK;
}
