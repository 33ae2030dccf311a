/* Places in the block: no two values that live at the same time overlap, and memory is used again.
 */
#include "exec/span.h"

#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/t.h"

/* Walks over time with the spans alive; checks each newborn against them. */
static void check_apart(const struct accel_span *s, size_t n, uint64_t size)
{
    size_t *alive = accel_calloc(n, sizeof *alive), n_alive = 0;
    for (size_t i = 0; i < n; i++)
        ck_assert(s[i].offset % ACCEL_SPAN_ALIGN == 0 && s[i].offset + s[i].size <= size);
    for (size_t i = 0; i < n; i++) { /* sorted by birth */
        size_t k = 0;
        ck_assert(i == 0 || s[i - 1].from <= s[i].from);
        for (size_t a = 0; a < n_alive; a++)
            if (s[alive[a]].to >= s[i].from)
                alive[k++] = alive[a];
        n_alive = k;
        for (size_t a = 0; a < n_alive; a++)
            ck_assert(s[alive[a]].offset + s[alive[a]].size <= s[i].offset ||
                      s[i].offset + s[i].size <= s[alive[a]].offset);
        alive[n_alive++] = i;
    }
    accel_free(alive);
}

static int by_birth(const void *a, const void *b)
{
    const struct accel_span *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static struct accel_span *chain(size_t n, uint64_t size)
{
    struct accel_span *s = accel_calloc(n, sizeof *s);
    for (size_t i = 0; i < n; i++)
        s[i] = (struct accel_span){.size = size, .from = i, .to = i + 1};
    return s;
}

START_TEST(a_chain_needs_two_places_however_long_it_is)
{
    const size_t n[] = {1, 2, 3, 1000, ACCEL_SPAN_EXACT + 1, 40000};
    for (size_t i = 0; i < sizeof n / sizeof *n; i++) {
        struct accel_span *s = chain(n[i], 640);
        uint64_t size;
        ck_ok(accel_spans_place(&size, s, n[i]));
        ck_assert_int_eq((int)size, n[i] > 1 ? 1280 : 640);
        qsort(s, n[i], sizeof *s, by_birth);
        check_apart(s, n[i], size);
        accel_free(s);
    }
}
END_TEST

/* Sizes over four powers of ten, lives of up to 60 steps. The block is held against the largest sum
 * of sizes alive at one time, which no placement can beat. */
START_TEST(random_lives_never_overlap_and_waste_little)
{
    const size_t counts[] = {300, ACCEL_SPAN_EXACT, ACCEL_SPAN_EXACT + 1, 20000};
    struct accel_rng r = accel_rng_init(7);
    for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
        size_t n = counts[k];
        struct accel_span *s = accel_calloc(n, sizeof *s);
        uint64_t *sum = accel_calloc(n + 64, sizeof *sum), most = 0, size;
        for (size_t i = 0; i < n; i++) {
            double u = accel_rng_uniform(&r), v = accel_rng_uniform(&r);
            s[i] = (struct accel_span){.size = 64 * (1 + (uint64_t)pow(10, 4 * u)),
                                       .from = i,
                                       .to = i + (size_t)(60 * v * v)};
            for (size_t t = s[i].from; t <= s[i].to; t++)
                sum[t] += s[i].size;
        }
        for (size_t t = 0; t < n + 64; t++)
            most = sum[t] > most ? sum[t] : most;
        ck_ok(accel_spans_place(&size, s, n));
        qsort(s, n, sizeof *s, by_birth);
        check_apart(s, n, size);
        ck_assert(size >= most);
        ck_assert_msg(size < most + most / 2, "%zu spans: %llu bytes for %llu", n,
                      (unsigned long long)size, (unsigned long long)most);
        accel_free(sum);
        accel_free(s);
    }
}
END_TEST

START_TEST(sizes_past_64_bits_and_failing_memory_are_errors)
{
    struct accel_span s[2] = {{.size = UINT64_MAX - 63}, {.size = UINT64_MAX - 63}};
    uint64_t size;
    ck_fails(accel_spans_place(&size, s, 2), ACCEL_ENOMEM, "no memory");
    ck_ok(accel_spans_place(&size, s, 0));
    ck_assert_int_eq((int)size, 0);
    for (size_t n = 10; n <= 5000; n += 4990)
        for (int fail = 1; fail <= 3; fail++) {
            struct accel_span *c = chain(n, 64);
            accel_alloc_fail_at(fail, false);
            enum accel_err err = accel_spans_place(&size, c, n);
            accel_alloc_fail_at(0, false);
            ck_assert_int_eq((int)err, n == 10 && fail > 1 ? ACCEL_OK : ACCEL_ENOMEM);
            accel_free(c);
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("span");
    TCase *t = tcase_create("span");
    tcase_set_timeout(t, 120); /* beside other work, and under the sanitizers */
    tcase_add_test(t, a_chain_needs_two_places_however_long_it_is);
    tcase_add_test(t, random_lives_never_overlap_and_waste_little);
    tcase_add_test(t, sizes_past_64_bits_and_failing_memory_are_errors);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
