/* One row per type. Types narrower than float share one description of their bits (exponent,
 * mantissa, bias, what the top codes mean), so that decoding and encoding are written once; half
 * and bfloat16 also have their own short forms because whole tensors pass through them. */
#include "graph/dtype.h"

#include <math.h>
#include <string.h>

static const struct accel_dtype_info rows[ACCEL_N_DTYPES] = {
    [ACCEL_UNDEFINED] = {"undefined", 0, ACCEL_CLASS_OTHER, false},
    [ACCEL_F32] = {"float32", 32, ACCEL_CLASS_REAL, true},
    [ACCEL_U8] = {"uint8", 8, ACCEL_CLASS_INT, false},
    [ACCEL_I8] = {"int8", 8, ACCEL_CLASS_INT, true},
    [ACCEL_U16] = {"uint16", 16, ACCEL_CLASS_INT, false},
    [ACCEL_I16] = {"int16", 16, ACCEL_CLASS_INT, true},
    [ACCEL_I32] = {"int32", 32, ACCEL_CLASS_INT, true},
    [ACCEL_I64] = {"int64", 64, ACCEL_CLASS_INT, true},
    [ACCEL_STRING] = {"string", 0, ACCEL_CLASS_OTHER, false},
    [ACCEL_BOOL] = {"bool", 8, ACCEL_CLASS_INT, false},
    [ACCEL_F16] = {"float16", 16, ACCEL_CLASS_REAL, true},
    [ACCEL_F64] = {"float64", 64, ACCEL_CLASS_REAL, true},
    [ACCEL_U32] = {"uint32", 32, ACCEL_CLASS_INT, false},
    [ACCEL_U64] = {"uint64", 64, ACCEL_CLASS_INT, false},
    [ACCEL_C64] = {"complex64", 64, ACCEL_CLASS_OTHER, true},
    [ACCEL_C128] = {"complex128", 128, ACCEL_CLASS_OTHER, true},
    [ACCEL_BF16] = {"bfloat16", 16, ACCEL_CLASS_REAL, true},
    [ACCEL_F8E4M3FN] = {"float8_e4m3fn", 8, ACCEL_CLASS_REAL, true},
    [ACCEL_F8E4M3FNUZ] = {"float8_e4m3fnuz", 8, ACCEL_CLASS_REAL, true},
    [ACCEL_F8E5M2] = {"float8_e5m2", 8, ACCEL_CLASS_REAL, true},
    [ACCEL_F8E5M2FNUZ] = {"float8_e5m2fnuz", 8, ACCEL_CLASS_REAL, true},
    [ACCEL_U4] = {"uint4", 4, ACCEL_CLASS_INT, false},
    [ACCEL_I4] = {"int4", 4, ACCEL_CLASS_INT, true},
    [ACCEL_F4E2M1] = {"float4_e2m1fn", 4, ACCEL_CLASS_REAL, true},
    [ACCEL_F8E8M0] = {"float8_e8m0fnu", 8, ACCEL_CLASS_REAL, false},
    [ACCEL_U2] = {"uint2", 2, ACCEL_CLASS_INT, false},
    [ACCEL_I2] = {"int2", 2, ACCEL_CLASS_INT, true},
};

const struct accel_dtype_info *accel_dtype_find(int dtype)
{
    return dtype >= 0 && dtype < ACCEL_N_DTYPES ? &rows[dtype] : NULL;
}

bool accel_dtype_size(enum accel_dtype dtype, uint64_t n, uint64_t *size)
{
    const struct accel_dtype_info *r = accel_dtype_find((int)dtype);
    if (!r || !r->bits)
        return false;
    if (r->bits >= 8)
        return !__builtin_mul_overflow(n, (uint64_t)r->bits / 8, size);
    uint64_t per = 8 / (uint64_t)r->bits;
    *size = n / per + (n % per != 0);
    return true;
}

bool accel_dtype_is_float(enum accel_dtype dtype)
{
    return dtype == ACCEL_F32 || dtype == ACCEL_F16 || dtype == ACCEL_BF16 || dtype == ACCEL_F64;
}

/* ------------------------------------------------------------------------------- narrow floats */

enum { HAS_INF = 1, UNSIGNED_ZERO = 2, NAN_ONES = 4 };

/* A type of 1 + e + m bits. HAS_INF: as in IEEE 754. NAN_ONES: only all ones is no number.
 * UNSIGNED_ZERO: the code of -0 is the only NaN. None of them: every code is a number. */
struct narrow {
    int e, m, bias;
    unsigned flags;
};

static const struct narrow *narrow_of(enum accel_dtype dtype)
{
    static const struct narrow f16 = {5, 10, 15, HAS_INF}, bf16 = {8, 7, 127, HAS_INF},
                               e4m3fn = {4, 3, 7, NAN_ONES}, e4m3fnuz = {4, 3, 8, UNSIGNED_ZERO},
                               e5m2 = {5, 2, 15, HAS_INF}, e5m2fnuz = {5, 2, 16, UNSIGNED_ZERO},
                               e2m1 = {2, 1, 1, 0};
    switch (dtype) {
    case ACCEL_F16:
        return &f16;
    case ACCEL_BF16:
        return &bf16;
    case ACCEL_F8E4M3FN:
        return &e4m3fn;
    case ACCEL_F8E4M3FNUZ:
        return &e4m3fnuz;
    case ACCEL_F8E5M2:
        return &e5m2;
    case ACCEL_F8E5M2FNUZ:
        return &e5m2fnuz;
    case ACCEL_F4E2M1:
        return &e2m1;
    default:
        return NULL;
    }
}

static double narrow_decode(const struct narrow *f, unsigned code)
{
    unsigned top = 1u << (f->e + f->m), sign = code & top, a = code & (top - 1);
    int exp = (int)(a >> f->m);
    unsigned frac = a & ((1u << f->m) - 1);
    double v;
    if ((f->flags & UNSIGNED_ZERO && sign && !a) || (f->flags & NAN_ONES && a == top - 1))
        v = NAN;
    else if (f->flags & HAS_INF && exp == (1 << f->e) - 1)
        v = frac ? NAN : INFINITY;
    else
        v = exp ? ldexp((double)(frac + (1u << f->m)), exp - f->bias - f->m)
                : ldexp((double)frac, 1 - f->bias - f->m);
    return sign ? -v : v;
}

/* Nearest even. What is too large becomes infinity in half and bfloat16, and the largest number in
 * the eight- and four-bit types (ONNX's saturating cast). */
static unsigned narrow_encode(const struct narrow *f, double v)
{
    unsigned top = 1u << (f->e + f->m), sign = signbit(v) ? top : 0;
    unsigned inf = (unsigned)((1 << f->e) - 1) << f->m;
    unsigned max = f->flags & HAS_INF ? inf - 1 : f->flags & NAN_ONES ? top - 2 : top - 1;
    if (isnan(v))
        return f->flags & UNSIGNED_ZERO ? top
               : f->flags & HAS_INF     ? sign | inf | 1u << (f->m - 1)
                                        : sign | (f->flags & NAN_ONES ? top - 1 : max);
    if (isinf(v))
        return sign | (f->flags & HAS_INF ? inf : max);
    int exp = v == 0 ? 1 - f->bias : ilogb(v);
    if (exp < 1 - f->bias)
        exp = 1 - f->bias;
    if (exp > f->bias + 1)
        exp = f->bias + 2; /* beyond every type's range: keeps the shift below small */
    double q = nearbyint(ldexp(fabs(v), f->m - exp));
    double limit = (double)(2u << f->m);
    unsigned mant = (unsigned)(q > limit ? limit : q);
    unsigned code = ((unsigned)(exp + f->bias - 1) << f->m) + mant;
    if (code > max)
        code = f->flags & HAS_INF && f->m >= 7 ? inf : max;
    return f->flags & UNSIGNED_ZERO && !code ? 0 : sign | code;
}

float accel_f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, a = h & 0x7fff, bits;
    if (a >= 0x7c00)
        bits = 0x7f800000 | (a & 0x3ff) << 13;
    else if (a >= 0x400)
        bits = (a << 13) + ((127u - 15) << 23);
    else {
        float f = (float)a * 0x1p-24f;
        memcpy(&bits, &f, 4);
    }
    bits |= sign;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

uint16_t accel_f32_to_f16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    uint32_t sign = bits >> 16 & 0x8000, a = bits & 0x7fffffff;
    if (a > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (a >> 13 & 0x3ff));
    if (a >= 0x47800000)
        return (uint16_t)(sign | 0x7c00);
    if (a < 0x38800000) { /* below 2^-14: the sum leaves the mantissa, rounded, in the low bits */
        float v;
        memcpy(&v, &a, 4);
        v += 0.5f;
        memcpy(&a, &v, 4);
        return (uint16_t)(sign | (a - 0x3f000000));
    }
    a += 0xfff + (a >> 13 & 1);
    return (uint16_t)(sign | (a - ((127u - 15) << 23)) >> 13);
}

float accel_bf16_to_f32(uint16_t b)
{
    uint32_t bits = (uint32_t)b << 16;
    float out;
    memcpy(&out, &bits, 4);
    return out;
}

uint16_t accel_f32_to_bf16(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* --------------------------------------------------------------------------------- elements */

/* Bits of element i, types up to 64 bits, zero-extended. Sub-byte elements fill bytes from the low
 * end. */
static uint64_t element_get(int bits, const void *src, size_t i)
{
    const unsigned char *p = src;
    if (bits < 8) {
        size_t per = 8 / (size_t)bits;
        return p[i / per] >> (i % per * (size_t)bits) & ((1u << bits) - 1);
    }
    uint64_t v = 0;
    memcpy(&v, p + i * (size_t)(bits / 8), (size_t)(bits / 8));
    return v;
}

static void element_set(int bits, void *dst, size_t i, uint64_t v)
{
    unsigned char *p = dst;
    if (bits < 8) {
        size_t per = 8 / (size_t)bits;
        unsigned shift = (unsigned)(i % per * (size_t)bits), mask = ((1u << bits) - 1) << shift;
        p[i / per] = (unsigned char)((p[i / per] & ~mask) | ((unsigned)v << shift & mask));
        return;
    }
    memcpy(p + i * (size_t)(bits / 8), &v, (size_t)(bits / 8));
}

static int64_t sign_extend(uint64_t v, int bits)
{
    return (int64_t)(v << (64 - bits)) >> (64 - bits);
}

static double bits_to_f64(enum accel_dtype dtype, uint64_t v)
{
    const struct accel_dtype_info *r = &rows[dtype];
    if (r->cls == ACCEL_CLASS_INT)
        return dtype == ACCEL_BOOL ? v != 0
               : r->is_signed      ? (double)sign_extend(v, r->bits)
                                   : (double)v;
    if (dtype == ACCEL_F64) {
        double d;
        memcpy(&d, &v, 8);
        return d;
    }
    if (dtype == ACCEL_F32) {
        float f;
        uint32_t b = (uint32_t)v;
        memcpy(&f, &b, 4);
        return (double)f;
    }
    if (dtype == ACCEL_F8E8M0)
        return v == 255 ? NAN : ldexp(1, (int)v - 127);
    return narrow_decode(narrow_of(dtype), (unsigned)v);
}

/* Nearest even, saturating; NaN becomes 0. */
static uint64_t int_from_f64(const struct accel_dtype_info *r, double d)
{
    if (isnan(d))
        return 0;
    d = nearbyint(d);
    double hi = ldexp(1, r->bits - (r->is_signed ? 1 : 0)), lo = r->is_signed ? -hi : 0;
    if (d >= hi)
        return r->is_signed ? ((uint64_t)1 << (r->bits - 1)) - 1 : UINT64_MAX;
    if (d <= lo)
        return r->is_signed ? (uint64_t)1 << (r->bits - 1) : 0;
    return r->is_signed ? (uint64_t)(int64_t)d : (uint64_t)d;
}

static uint64_t bits_from_f64(enum accel_dtype dtype, double d)
{
    const struct accel_dtype_info *r = &rows[dtype];
    if (dtype == ACCEL_BOOL)
        return d != 0;
    if (r->cls == ACCEL_CLASS_INT)
        return int_from_f64(r, d);
    uint64_t v = 0;
    if (dtype == ACCEL_F64) {
        memcpy(&v, &d, 8);
    } else if (dtype == ACCEL_F32) {
        float f = (float)d;
        memcpy(&v, &f, 4);
    } else if (dtype == ACCEL_F8E8M0) {
        if (isnan(d) || d < 0)
            return 255;
        if (d == 0)
            return 0;
        int exp = isinf(d) ? 128 : ilogb(d);
        exp += !isinf(d) && ldexp(d, -exp) >= 1.5; /* a power of two, nearest */
        v = (uint64_t)(exp < -127 ? 0 : exp > 127 ? 254 : exp + 127);
    } else {
        v = narrow_encode(narrow_of(dtype), d);
    }
    return v;
}

/* The types whole tensors are made of, without a look at the type for each element. */
static bool common_to_f64(enum accel_dtype dtype, const void *src, size_t first, size_t n,
                          double *dst)
{
    const char *p = (const char *)src + first * (size_t)(rows[dtype].bits / 8);
    uint16_t h;
    float f;
    switch (dtype) {
    case ACCEL_F64:
        memcpy(dst, p, n * sizeof *dst);
        return true;
    case ACCEL_F32:
        for (size_t i = 0; i < n; i++) {
            memcpy(&f, p + i * sizeof f, sizeof f);
            dst[i] = (double)f;
        }
        return true;
    case ACCEL_F16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&h, p + i * sizeof h, sizeof h);
            dst[i] = (double)accel_f16_to_f32(h);
        }
        return true;
    case ACCEL_BF16:
        for (size_t i = 0; i < n; i++) {
            memcpy(&h, p + i * sizeof h, sizeof h);
            dst[i] = (double)accel_bf16_to_f32(h);
        }
        return true;
    case ACCEL_I8:
        for (size_t i = 0; i < n; i++)
            dst[i] = (double)(signed char)p[i];
        return true;
    case ACCEL_U8:
        for (size_t i = 0; i < n; i++)
            dst[i] = (double)(unsigned char)p[i];
        return true;
    default:
        return false;
    }
}

void accel_dtype_to_f64(enum accel_dtype dtype, const void *src, size_t first, size_t n,
                        double *dst)
{
    int bits = rows[dtype].bits;
    if (common_to_f64(dtype, src, first, n, dst))
        return;
    for (size_t i = 0; i < n; i++)
        dst[i] = bits_to_f64(dtype, element_get(bits, src, first + i));
}

void accel_dtype_from_f64(enum accel_dtype dtype, const double *src, size_t n, void *dst,
                          size_t first)
{
    int bits = rows[dtype].bits;
    for (size_t i = 0; i < n; i++)
        element_set(bits, dst, first + i, bits_from_f64(dtype, src[i]));
}

void accel_dtype_to_i64(enum accel_dtype dtype, const void *src, size_t first, size_t n,
                        int64_t *dst)
{
    const struct accel_dtype_info *r = &rows[dtype];
    for (size_t i = 0; i < n; i++) {
        uint64_t v = element_get(r->bits, src, first + i);
        if (r->cls == ACCEL_CLASS_REAL)
            dst[i] = (int64_t)int_from_f64(&rows[ACCEL_I64], trunc(bits_to_f64(dtype, v)));
        else
            dst[i] = dtype == ACCEL_BOOL ? v != 0
                     : r->is_signed      ? sign_extend(v, r->bits)
                                         : (int64_t)v;
    }
}
