/* Selection by counting against the slow way: a search for the smallest, again and again. */
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "prune/radix.h"
#include "tests/t.h"

enum { MOST = 3000 };

static const enum accel_dtype types[] = {ACCEL_F32, ACCEL_F16, ACCEL_BF16, ACCEL_F64};

/* Values with many ties, zeros of both signs, denormals, or all alike. */
static double value_of(int kind, uint64_t r)
{
    double sign = r & 1 ? -1 : 1;
    r >>= 1;
    switch (kind) {
    case 0:
        return sign * (double)(r % 7) / 4;
    case 1:
        return sign * (double)(r % 100003) * 1e-5;
    case 2:
        return sign * (double)(r % 50) * 1e-42; /* denormal as f32, zero as f16 */
    case 3:
        return sign * 0.75;
    case 4:
        return sign * 0.0;
    default:
        return sign * ldexp((double)(r % 1000), (int)(r % 37) - 20);
    }
}

struct fixture {
    unsigned char elem[MOST * 8];
    double mag[MOST];
    size_t n, width;
    struct accel_key key;
};

static void fill(struct fixture *f, enum accel_dtype dtype, int kind, size_t n,
                 struct accel_rng *rng)
{
    f->n = n;
    f->width = (size_t)accel_dtype_find((int)dtype)->bits / 8;
    f->key = accel_key_of(dtype, false);
    for (size_t i = 0; i < n; i++) {
        double v = value_of(kind, accel_rng_next(rng));
        accel_dtype_from_f64(dtype, &v, 1, f->elem, i);
        accel_dtype_to_f64(dtype, f->elem, i, 1, &f->mag[i]);
        f->mag[i] = fabs(f->mag[i]);
    }
}

/* The slow way: marks the `count` smallest, equal ones by index. */
static void mark_lowest(const struct fixture *f, size_t count, bool *gone)
{
    memset(gone, 0, MOST);
    for (size_t k = 0; k < count; k++) {
        size_t best = f->n;
        for (size_t i = 0; i < f->n; i++)
            if (!gone[i] && (best == f->n || f->mag[i] < f->mag[best]))
                best = i;
        gone[best] = true;
    }
}

static void check_cut(const struct fixture *f, const struct accel_key_cut *cut, size_t count)
{
    static bool gone[MOST];
    uint64_t key[MOST];
    size_t wrong = 0;
    mark_lowest(f, count, gone);
    for (size_t i = 0; i < f->n; i += ACCEL_KEY_BLOCK)
        accel_key_load(&f->key, f->elem, i, i,
                       f->n - i < ACCEL_KEY_BLOCK ? f->n - i : ACCEL_KEY_BLOCK, key + i);
    for (size_t i = 0; i < f->n; i++)
        wrong += gone[i] != (key[i] < cut->key || (key[i] == cut->key && i < cut->tie_end));
    ck_assert_msg(!wrong, "%zu of %zu decided wrongly at count %zu", wrong, f->n, count);
}

START_TEST(selection_equals_a_sort)
{
    struct accel_rng rng;
    rng = accel_rng_init(1);
    static struct fixture f;
    struct accel_spectrum s;
    ck_ok(accel_spectrum_init(&s));
    static const size_t sizes[] = {0, 1, 2, 7, 64, 700};
    for (int t = 0; t < 4; t++)
        for (int kind = 0; kind < 6; kind++)
            for (int z = 0; z < 6; z++) {
                fill(&f, types[t], kind, sizes[z], &rng);
                struct accel_tensor w = {.name = "w",
                                         .dtype = types[t],
                                         .n = f.n,
                                         .size = f.n * f.width,
                                         .data = f.elem};
                accel_spectrum_reset(&s);
                accel_spectrum_add(&s, &f.key, f.elem, 0, f.n);
                accel_spectrum_end(&s);
                for (int q = 0; q <= 4; q++) {
                    struct accel_source src = {&w, q & 1 ? f.elem : NULL, f.n, {0}};
                    ck_ok(accel_buffer_init(&src.room, 16384));
                    size_t count = f.n * (size_t)q / 4;
                    struct accel_key_cut cut;
                    ck_ok(accel_select(&cut, &src, &f.key, &s, count));
                    check_cut(&f, &cut, count);
                    accel_buffer_clear(&src.room);
                }
            }
    accel_spectrum_clear(&s);
}
END_TEST

START_TEST(the_first_pass_finds_zeros_largest_and_count)
{
    struct accel_rng rng;
    rng = accel_rng_init(2);
    static struct fixture f;
    struct accel_spectrum s;
    ck_ok(accel_spectrum_init(&s));
    for (int t = 0; t < 4; t++)
        for (int kind = 0; kind < 6; kind++) {
            fill(&f, types[t], kind, MOST, &rng);
            accel_spectrum_reset(&s);
            accel_spectrum_add(&s, &f.key, f.elem, 0, 1001); /* in two runs */
            accel_spectrum_add(&s, &f.key, f.elem + 1001 * f.width, 1001, MOST - 1001);
            accel_spectrum_end(&s);
            uint64_t zeros = 0, sum = 0, folded = 0, bin[64];
            double max = 0;
            for (size_t i = 0; i < f.n; i++) {
                zeros += f.mag[i] == 0;
                max = f.mag[i] > max ? f.mag[i] : max;
            }
            for (int b = 0; b < 1 << ACCEL_SPECTRUM_BITS; b++)
                sum += s.bin[b];
            accel_spectrum_fold(&s, &f.key, max, bin, 64);
            for (int b = 0; b < 64; b++)
                folded += bin[b];
            ck_assert_uint_eq(s.zeros, zeros);
            ck_assert_uint_eq(sum, MOST);
            if (isfinite(max))
                ck_assert_uint_eq(folded, MOST - zeros);
            ck_assert_double_eq(accel_key_value(&f.key, s.max_key), max);
        }
    accel_spectrum_clear(&s);
}
END_TEST

START_TEST(cutting_zeroes_what_is_below_and_counts_zeros)
{
    struct accel_rng rng;
    rng = accel_rng_init(3);
    static struct fixture f;
    static unsigned char copy[MOST * 8 + 1];
    for (int t = 0; t < 4; t++)
        for (int kind = 0; kind < 6; kind++)
            for (int q = 0; q < 4; q++) {
                fill(&f, types[t], kind, 997, &rng);
                double v = q == 3 ? INFINITY : f.mag[q * 200];
                uint64_t limit = accel_key_at_least(&f.key, v), zeros = 0, below = 0, wrong = 0;
                memcpy(copy + 1, f.elem, f.n * f.width); /* any alignment */
                for (size_t i = 0; i < f.n; i++)
                    below += f.mag[i] < v;
                ck_assert_uint_eq(accel_key_below(&f.key, copy + 1, 0, f.n, limit), below);
                uint64_t got = accel_key_cut(&f.key, copy + 1, 0, 0, f.n, limit);
                for (size_t i = 0; i < f.n; i++) {
                    double d;
                    accel_dtype_to_f64(types[t], copy + 1, i, 1, &d);
                    wrong += f.mag[i] < v ? d != 0
                                          : memcmp(copy + 1 + i * f.width, f.elem + i * f.width,
                                                   f.width) != 0;
                    zeros += d == 0;
                }
                ck_assert_uint_eq(wrong, 0);
                ck_assert_uint_eq(got, zeros);
                ck_assert_uint_eq(accel_key_cut(&f.key, copy + 1, 0, 0, f.n, ACCEL_KEY_ALL), f.n);
            }
}
END_TEST

START_TEST(a_threshold_between_two_numbers_rounds_up)
{
    struct accel_key k = accel_key_of(ACCEL_F16, false);
    ck_assert_uint_eq(accel_key_at_least(&k, 1.0), 0x3c00);
    ck_assert_uint_eq(accel_key_at_least(&k, 1.0001), 0x3c01);
    ck_assert_uint_eq(accel_key_at_least(&k, 0.9999), 0x3c00);
    ck_assert_uint_eq(accel_key_at_least(&k, 65504), 0x7bff);
    ck_assert_uint_eq(accel_key_at_least(&k, 1e9), 0x7c00);
    ck_assert_uint_eq(accel_key_at_least(&k, 1e-30), 1);
    ck_assert_uint_eq(accel_key_at_least(&k, 0), 0);
    k = accel_key_of(ACCEL_F32, false);
    ck_assert_uint_eq(accel_key_at_least(&k, 0.25), 0x3e800000);
    ck_assert_uint_eq(accel_key_at_least(&k, 0.25 + 1e-12), 0x3e800001);
}
END_TEST

START_TEST(integers_rank_by_their_real_value)
{
    const int8_t q[6] = {10, -3, 5, -128, 127, 5};
    const double scale[2] = {0.5, 0.01}, zero[2] = {5, -3};
    struct accel_key k = {ACCEL_I8, true, 63, scale, zero, 2, 3}; /* rows of 3 share a scale */
    uint64_t key[6];
    accel_key_load(&k, q, 0, 0, 6, key);
    static const double want[6] = {2.5, 4, 0, 1.25, 1.30, 0.08};
    for (int i = 0; i < 6; i++)
        ck_assert_double_eq_tol(accel_key_value(&k, key[i]), want[i], 1e-12);
    int8_t copy[6];
    memcpy(copy, q, 6);
    ck_assert_uint_eq(accel_key_cut(&k, copy, 0, 0, 6, accel_key_at_least(&k, 1.3 - 1e-9)), 3);
    const int8_t left[6] = {10, -3, 5, -3, 127, -3};
    ck_assert_mem_eq(copy, left, 6);
}
END_TEST

START_TEST(short_memory_is_an_error)
{
    struct accel_spectrum s;
    for (int nth = 1; nth <= 2; nth++) {
        accel_alloc_fail_at(nth, false);
        ck_fails(accel_spectrum_init(&s), ACCEL_ENOMEM, "");
    }
    accel_alloc_fail_at(0, false);
    ck_ok(accel_spectrum_init(&s));
    const float w[4] = {1, 2, 3, 4};
    struct accel_key k = accel_key_of(ACCEL_F32, false);
    accel_spectrum_add(&s, &k, w, 0, 4);
    accel_spectrum_end(&s);
    struct accel_source src = {NULL, w, 4, {0}};
    struct accel_key_cut cut;
    accel_alloc_fail_at(1, false);
    ck_fails(accel_select(&cut, &src, &k, &s, 2), ACCEL_ENOMEM, "");
    accel_alloc_fail_at(0, false);
    accel_spectrum_clear(&s);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("radix");
    TCase *t = tcase_create("radix");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, selection_equals_a_sort);
    tcase_add_test(t, the_first_pass_finds_zeros_largest_and_count);
    tcase_add_test(t, cutting_zeroes_what_is_below_and_counts_zeros);
    tcase_add_test(t, a_threshold_between_two_numbers_rounds_up);
    tcase_add_test(t, integers_rank_by_their_real_value);
    tcase_add_test(t, short_memory_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
