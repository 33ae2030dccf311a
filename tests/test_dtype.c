/* Element types: sizes, conversions and rounding. */
#include <string.h>

#include "graph/dtype.h"
#include "tests/t.h"

START_TEST(sizes_are_packed_and_never_overflow)
{
    uint64_t size = 0;
    ck_assert(accel_dtype_size(ACCEL_F32, 5, &size) && size == 20);
    ck_assert(accel_dtype_size(ACCEL_I4, 5, &size) && size == 3);
    ck_assert(accel_dtype_size(ACCEL_U2, 5, &size) && size == 2);
    ck_assert(accel_dtype_size(ACCEL_C128, 2, &size) && size == 32);
    ck_assert(accel_dtype_size(ACCEL_U4, UINT64_MAX, &size) && size == (uint64_t)1 << 63);
    ck_assert(!accel_dtype_size(ACCEL_F64, (uint64_t)1 << 61, &size));
    ck_assert(!accel_dtype_size(ACCEL_STRING, 1, &size));
    ck_assert(!accel_dtype_size((enum accel_dtype)99, 1, &size));
    ck_assert_ptr_null(accel_dtype_find(-1));
    ck_assert_ptr_null(accel_dtype_find(ACCEL_N_DTYPES));
    ck_assert_str_eq(accel_dtype_find(ACCEL_BF16)->name, "bfloat16");
}
END_TEST

START_TEST(half_survives_the_way_to_float_and_back)
{
    for (unsigned h = 0; h < 65536; h++) {
        float f = accel_f16_to_f32((uint16_t)h);
        double d;
        uint16_t stored = (uint16_t)h, back;
        accel_dtype_to_f64(ACCEL_F16, &stored, 0, 1, &d);
        if (isnan(f)) {
            ck_assert(isnan(d));
            continue;
        }
        ck_assert(d == (double)f);
        ck_assert_uint_eq(accel_f32_to_f16(f), h);
        accel_dtype_from_f64(ACCEL_F16, &d, 1, &back, 0);
        ck_assert_uint_eq(back, h);
    }
}
END_TEST

START_TEST(half_rounds_to_nearest_even)
{
    ck_assert_uint_eq(accel_f32_to_f16(65519.0f), 0x7bff);
    ck_assert_uint_eq(accel_f32_to_f16(65520.0f), 0x7c00);
    ck_assert_uint_eq(accel_f32_to_f16(1.0f + 0x1p-11f), 0x3c00);
    ck_assert_uint_eq(accel_f32_to_f16(1.0f + 3 * 0x1p-11f), 0x3c02);
    ck_assert_uint_eq(accel_f32_to_f16(0x1p-25f), 0);
    ck_assert_uint_eq(accel_f32_to_f16(-0x1.8p-25f), 0x8001);
    double d = 65520.0;
    uint16_t h;
    accel_dtype_from_f64(ACCEL_F16, &d, 1, &h, 0);
    ck_assert_uint_eq(h, 0x7c00);
    for (int i = 0; i < 50000; i++) { /* the two encoders agree */
        uint32_t bits = (uint32_t)i * 85893u + 0x33000000u;
        float f;
        memcpy(&f, &bits, 4);
        if (isnan(f))
            continue;
        d = (double)f;
        accel_dtype_from_f64(ACCEL_F16, &d, 1, &h, 0);
        ck_assert_uint_eq(h, accel_f32_to_f16(f));
        accel_dtype_from_f64(ACCEL_BF16, &d, 1, &h, 0);
        ck_assert_uint_eq(h, accel_f32_to_bf16(f));
    }
}
END_TEST

START_TEST(bfloat16_keeps_nan_and_rounds)
{
    ck_assert(isnan(accel_bf16_to_f32(accel_f32_to_bf16(NAN))));
    ck_assert_uint_eq(accel_f32_to_bf16(1.0f + 0x1p-8f), 0x3f80);
    ck_assert_uint_eq(accel_f32_to_bf16(1.0f + 3 * 0x1p-8f), 0x3f82);
    ck_assert(isinf(accel_bf16_to_f32(accel_f32_to_bf16(3.4e38f))));
}
END_TEST

START_TEST(eight_and_four_bit_floats_survive_and_saturate)
{
    static const enum accel_dtype types[] = {ACCEL_F8E4M3FN, ACCEL_F8E4M3FNUZ, ACCEL_F8E5M2,
                                             ACCEL_F8E5M2FNUZ, ACCEL_F8E8M0};
    static const double largest[] = {448, 240, 57344, 57344, 0x1p127};
    for (int k = 0; k < 5; k++) {
        double big = 1e300;
        unsigned char c;
        for (unsigned v = 0; v < 256; v++) {
            unsigned char in = (unsigned char)v;
            double d;
            accel_dtype_to_f64(types[k], &in, 0, 1, &d);
            accel_dtype_from_f64(types[k], &d, 1, &c, 0);
            if (isnan(d)) {
                accel_dtype_to_f64(types[k], &c, 0, 1, &d);
                ck_assert(isnan(d));
            } else if (!(types[k] == ACCEL_F8E8M0 && v == 0)) {
                ck_assert_uint_eq(c, v);
            }
        }
        accel_dtype_from_f64(types[k], &big, 1, &c, 0);
        accel_dtype_to_f64(types[k], &c, 0, 1, &big);
        ck_assert_double_eq(big, largest[k]);
    }
    unsigned char four = 0;
    double two[2] = {-6, 0.5};
    accel_dtype_from_f64(ACCEL_F4E2M1, two, 2, &four, 0);
    ck_assert_uint_eq(four, 0x1f);
    accel_dtype_to_f64(ACCEL_F4E2M1, &four, 0, 2, two);
    ck_assert_double_eq(two[0], -6);
    ck_assert_double_eq(two[1], 0.5);
}
END_TEST

START_TEST(integers_are_exact_and_saturate)
{
    int64_t big = INT64_MAX - 1, got = 0;
    accel_dtype_to_i64(ACCEL_I64, &big, 0, 1, &got);
    ck_assert(got == big);
    const unsigned char packed[2] = {0xf1, 0x82}; /* 1, -1, 2, -8 */
    int64_t four[4];
    accel_dtype_to_i64(ACCEL_I4, packed, 0, 4, four);
    ck_assert(four[0] == 1 && four[1] == -1 && four[2] == 2 && four[3] == -8);
    accel_dtype_to_i64(ACCEL_U4, packed, 1, 1, four);
    ck_assert(four[0] == 15);
    double in[4] = {-200, 2.5, 300, NAN};
    int8_t out[4];
    accel_dtype_from_f64(ACCEL_I8, in, 4, out, 0);
    ck_assert(out[0] == -128 && out[1] == 2 && out[2] == 127 && out[3] == 0);
    unsigned char nib[2] = {0, 0};
    accel_dtype_from_f64(ACCEL_U4, in, 3, nib, 1);
    ck_assert_uint_eq(nib[0], 0x00);
    ck_assert_uint_eq(nib[1], 0xf2);
    float f = -2.7f;
    accel_dtype_to_i64(ACCEL_F32, &f, 0, 1, four);
    ck_assert(four[0] == -2);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("dtype");
    TCase *t = tcase_create("dtype");
    tcase_add_test(t, sizes_are_packed_and_never_overflow);
    tcase_add_test(t, half_survives_the_way_to_float_and_back);
    tcase_add_test(t, half_rounds_to_nearest_even);
    tcase_add_test(t, bfloat16_keeps_nan_and_rounds);
    tcase_add_test(t, eight_and_four_bit_floats_survive_and_saturate);
    tcase_add_test(t, integers_are_exact_and_saturate);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
