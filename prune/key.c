/* Keys of elements. f32, f16 and bf16 have loops of their own, compiled for AVX2 beside the plain
 * form and chosen at run time: one body, so that both give the same result. Everything else goes
 * through blocks of 64-bit keys. */
#include <math.h>
#include <string.h>

#include "prune/radix.h"

typedef uint32_t loose32 __attribute__((aligned(1), may_alias));
typedef uint16_t loose16 __attribute__((aligned(1), may_alias));

static bool is_16(const struct accel_key *k)
{
    return !k->wide && (k->dtype == ACCEL_F16 || k->dtype == ACCEL_BF16);
}

static bool is_32(const struct accel_key *k)
{
    return !k->wide && k->dtype == ACCEL_F32;
}

struct accel_key accel_key_of(enum accel_dtype dtype, bool wide)
{
    struct accel_key k = {.dtype = dtype, .wide = wide};
    k.bits = is_16(&k) ? 15 : is_32(&k) ? 31 : 63;
    k.wide = k.bits == 63;
    return k;
}

static uint64_t wide_key(double d)
{
    uint64_t bits;
    memcpy(&bits, &d, 8);
    return bits & (ACCEL_KEY_ALL - 1);
}

static uint64_t channel_of(const struct accel_key *k, uint64_t index)
{
    return k->n_scale > 1 ? index / k->inner % k->n_scale : 0;
}

void accel_key_load(const struct accel_key *k, const void *elem, size_t at, uint64_t first,
                    size_t count, uint64_t *key)
{
    if (is_32(k)) {
        const loose32 *p = (const loose32 *)elem + at;
        for (size_t i = 0; i < count; i++)
            key[i] = p[i] & 0x7fffffff;
        return;
    }
    if (is_16(k)) {
        const loose16 *p = (const loose16 *)elem + at;
        for (size_t i = 0; i < count; i++)
            key[i] = p[i] & 0x7fff;
        return;
    }
    double v[64];
    for (size_t i = 0; i < count; i += 64) {
        size_t n = count - i < 64 ? count - i : 64;
        accel_dtype_to_f64(k->dtype, elem, at + i, n, v);
        for (size_t j = 0; j < n && k->scale; j++) {
            uint64_t c = channel_of(k, first + i + j);
            v[j] = (v[j] - k->zero[c]) * k->scale[c];
        }
        for (size_t j = 0; j < n; j++)
            key[i + j] = wide_key(v[j]);
    }
}

void accel_key_magnitudes(const struct accel_key *k, const void *elem, size_t at, uint64_t first,
                          size_t count, double *magnitude)
{
    struct accel_key wide = *k;
    wide.wide = true;
    uint64_t key[64];
    if (k->dtype == ACCEL_F32) {
        const loose32 *p = (const loose32 *)elem + at;
        for (size_t i = 0; i < count; i++) {
            uint32_t bits = p[i] & 0x7fffffff;
            float f;
            memcpy(&f, &bits, 4);
            magnitude[i] = (double)f;
        }
        return;
    }
    for (size_t i = 0; i < count; i += 64) {
        size_t n = count - i < 64 ? count - i : 64;
        accel_key_load(&wide, elem, at + i, first + i, n, key);
        memcpy(magnitude + i, key, n * sizeof *key);
    }
}

double accel_key_value(const struct accel_key *k, uint64_t key)
{
    if (k->wide) {
        double d;
        memcpy(&d, &key, 8);
        return d;
    }
    double d;
    accel_dtype_to_f64(k->dtype, &key, 0, 1, &d); /* little endian: the low bytes come first */
    return d;
}

uint64_t accel_key_infinity(const struct accel_key *k)
{
    return k->wide                 ? (uint64_t)0x7ff << 52
           : k->dtype == ACCEL_F32 ? 0x7f800000
           : k->dtype == ACCEL_F16 ? 0x7c00
                                   : 0x7f80;
}

uint64_t accel_key_at_least(const struct accel_key *k, double v)
{
    if (k->wide)
        return wide_key(v);
    uint64_t key = 0;
    accel_dtype_from_f64(k->dtype, &v, 1, &key, 0);
    key &= ((uint64_t)1 << k->bits) - 1;
    return accel_key_value(k, key) < v ? key + 1 : key; /* rounding went down */
}

void accel_key_clear(const struct accel_key *k, void *elem, size_t at, uint64_t index)
{
    if (k->scale) {
        accel_dtype_from_f64(k->dtype, &k->zero[channel_of(k, index)], 1, elem, at);
    } else {
        size_t width = (size_t)accel_dtype_find((int)k->dtype)->bits / 8;
        memset((char *)elem + at * width, 0, width);
    }
}

/* ------------------------------------------------------------------------- loops over elements */

#define INLINE static inline __attribute__((always_inline))
#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))
static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
}
#endif

/* Zeroes keys below `limit` (a key + 1 at most: fits) and counts zeros; count <= 2^31. */
INLINE uint32_t cut32_body(loose32 *p, size_t n, uint32_t limit)
{
    uint32_t zeros = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = p[i], a = bits & 0x7fffffff;
        uint32_t kept = (int32_t)a >= (int32_t)limit ? bits : 0;
        p[i] = kept;
        zeros += (kept & 0x7fffffff) == 0;
    }
    return zeros;
}

INLINE uint32_t cut16_body(loose16 *p, size_t n, uint16_t limit)
{
    uint32_t zeros = 0;
    for (size_t i = 0; i < n; i++) {
        uint16_t bits = p[i], a = bits & 0x7fff;
        uint16_t kept = (int16_t)a >= (int16_t)limit ? bits : 0;
        p[i] = kept;
        zeros += (kept & 0x7fff) == 0;
    }
    return zeros;
}

INLINE uint32_t below32_body(const loose32 *p, size_t n, uint32_t limit)
{
    uint32_t below = 0;
    for (size_t i = 0; i < n; i++)
        below += (int32_t)(p[i] & 0x7fffffff) < (int32_t)limit;
    return below;
}

INLINE uint32_t below16_body(const loose16 *p, size_t n, uint16_t limit)
{
    uint32_t below = 0;
    for (size_t i = 0; i < n; i++)
        below += (int16_t)(p[i] & 0x7fff) < (int16_t)limit;
    return below;
}

static uint32_t cut32_plain(loose32 *p, size_t n, uint32_t limit)
{
    return cut32_body(p, n, limit);
}
static uint32_t cut16_plain(loose16 *p, size_t n, uint16_t limit)
{
    return cut16_body(p, n, limit);
}
static uint32_t below32_plain(const loose32 *p, size_t n, uint32_t limit)
{
    return below32_body(p, n, limit);
}
static uint32_t below16_plain(const loose16 *p, size_t n, uint16_t limit)
{
    return below16_body(p, n, limit);
}

#if defined(__x86_64__)
AVX2 static uint32_t cut32_avx2(loose32 *p, size_t n, uint32_t limit)
{
    return cut32_body(p, n, limit);
}
AVX2 static uint32_t cut16_avx2(loose16 *p, size_t n, uint16_t limit)
{
    return cut16_body(p, n, limit);
}
AVX2 static uint32_t below32_avx2(const loose32 *p, size_t n, uint32_t limit)
{
    return below32_body(p, n, limit);
}
AVX2 static uint32_t below16_avx2(const loose16 *p, size_t n, uint16_t limit)
{
    return below16_body(p, n, limit);
}
#else
#define cut32_avx2   cut32_plain
#define cut16_avx2   cut16_plain
#define below32_avx2 below32_plain
#define below16_avx2 below16_plain
static bool has_avx2(void)
{
    return false;
}
#endif

enum { RUN = 1 << 16 }; /* elements per call of a body: its 32-bit counters cannot overflow */

uint64_t accel_key_cut(const struct accel_key *k, void *elem, uint64_t at, uint64_t first,
                       uint64_t count, uint64_t limit)
{
    bool fast = has_avx2();
    uint64_t zeros = 0, most = (uint64_t)1 << k->bits;
    if (!k->scale && limit >= most) {
        size_t width = (size_t)accel_dtype_find((int)k->dtype)->bits / 8;
        memset((char *)elem + at * width, 0, count * width);
        return count;
    }
    for (uint64_t i = 0; i < count && (is_32(k) || is_16(k)); i += RUN) {
        size_t n = count - i < RUN ? (size_t)(count - i) : RUN;
        if (is_32(k))
            zeros +=
                (fast ? cut32_avx2 : cut32_plain)((loose32 *)elem + at + i, n, (uint32_t)limit);
        else
            zeros +=
                (fast ? cut16_avx2 : cut16_plain)((loose16 *)elem + at + i, n, (uint16_t)limit);
    }
    if (is_32(k) || is_16(k))
        return zeros;
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(k, elem, at + i, first + i, n, key);
        for (size_t j = 0; j < n; j++) {
            if (key[j] < limit)
                accel_key_clear(k, elem, at + i + j, first + i + j);
            zeros += key[j] < limit || !key[j];
        }
    }
    return zeros;
}

uint64_t accel_key_below(const struct accel_key *k, const void *elem, uint64_t first,
                         uint64_t count, uint64_t limit)
{
    bool fast = has_avx2();
    uint64_t below = 0;
    if (limit >= (uint64_t)1 << k->bits)
        return count;
    for (uint64_t i = 0; i < count && (is_32(k) || is_16(k)); i += RUN) {
        size_t n = count - i < RUN ? (size_t)(count - i) : RUN;
        if (is_32(k))
            below += (fast ? below32_avx2 : below32_plain)((const loose32 *)elem + i, n,
                                                           (uint32_t)limit);
        else
            below += (fast ? below16_avx2 : below16_plain)((const loose16 *)elem + i, n,
                                                           (uint16_t)limit);
    }
    if (is_32(k) || is_16(k))
        return below;
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(k, elem, i, first + i, n, key);
        for (size_t j = 0; j < n; j++)
            below += key[j] < limit;
    }
    return below;
}
