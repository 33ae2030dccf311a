/* test_selection.c - elements picked while they are read, against picking them one by one. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "graph/tensor.h"
#include "tests/t.h"

static uint32_t state = 5;

static uint32_t pick(uint32_t n)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % n;
}

struct picked {
    struct accel_arena arena;
    struct accel_tensor t;
    int64_t dim[4], now[4];
    const int64_t *kept[4];
    uint8_t *stored, *want;
    uint64_t want_n;
    unsigned bits;
};

static unsigned bits_of(const struct picked *p, uint64_t i)
{
    unsigned per = 8 / p->bits;
    return p->stored[i / per] >> i % per * p->bits & ((1u << p->bits) - 1);
}

/* A random tensor, random lists, and what is left: one element after the other. */
static void begin(struct picked *p, enum accel_dtype dtype)
{
    memset(p, 0, sizeof *p);
    p->bits = (unsigned)accel_dtype_find((int)dtype)->bits;
    p->t = (struct accel_tensor){.name = "t", .dtype = dtype, .rank = 1 + (int)pick(4), .n = 1};
    p->t.dim = p->dim;
    for (int a = 0; a < p->t.rank; a++)
        p->t.n *= (uint64_t)(p->dim[a] = 1 + pick(9));
    ck_assert(accel_dtype_size(dtype, p->t.n, &p->t.size));
    p->stored = calloc(p->t.size + 1, 1);
    for (uint64_t i = 0; i < p->t.size; i++)
        p->stored[i] = (uint8_t)pick(256);
    p->t.data = p->stored;
    for (int a = 0; a < p->t.rank; a++) {
        p->now[a] = p->dim[a];
        if (pick(3) == 0)
            continue;
        int64_t *list = ACCEL_NEW(&p->arena, int64_t, p->dim[a]), n = 0;
        for (int64_t i = 0; i < p->dim[a]; i++)
            if (pick(2) || (!n && i == p->dim[a] - 1))
                list[n++] = i;
        p->kept[a] = list;
        p->now[a] = n;
    }
    p->want = calloc(p->t.n * 8 + 8, 1);
    for (uint64_t i = 0; i < p->t.n; i++) {
        uint64_t rest = i;
        bool stays = true;
        for (int a = p->t.rank - 1; a >= 0; a--) {
            int64_t at = (int64_t)(rest % (uint64_t)p->dim[a]);
            bool found = !p->kept[a];
            rest /= (uint64_t)p->dim[a];
            for (int64_t k = 0; k < p->now[a] && !found; k++)
                found = p->kept[a][k] == at;
            stays = stays && found;
        }
        if (!stays)
            continue;
        if (p->bits >= 8)
            memcpy(p->want + p->want_n * (p->bits / 8), p->stored + i * (p->bits / 8), p->bits / 8);
        else
            p->want[p->want_n] = (uint8_t)bits_of(p, i);
        p->want_n++;
    }
}

static void end(struct picked *p)
{
    free(p->stored);
    free(p->want);
    accel_arena_clear(&p->arena);
}

static void same(const struct picked *p)
{
    uint8_t *got = calloc(p->t.size + 8, 1);
    ck_assert_uint_eq(p->t.n, p->want_n);
    ck_ok(accel_tensor_read(&p->t, 0, p->t.n, got));
    if (p->bits >= 8) {
        ck_assert_mem_eq(got, p->want, p->t.size);
    } else {
        for (uint64_t i = 0; i < p->t.n; i++)
            ck_assert_uint_eq(got[i * p->bits / 8] >> i * p->bits % 8 & ((1u << p->bits) - 1),
                              p->want[i]);
    }
    free(got);
}

START_TEST(what_is_kept_is_read_in_its_order)
{
    static const enum accel_dtype types[] = {ACCEL_F32, ACCEL_F64, ACCEL_F16,
                                             ACCEL_I8,  ACCEL_I64, ACCEL_I4};
    for (int round = 0; round < 600; round++) {
        struct picked p;
        begin(&p, types[round % 6]);
        ck_ok(accel_tensor_select(&p.t, &p.arena, p.kept, p.now));
        for (int a = 0; a < p.t.rank; a++)
            ck_assert_int_eq(p.t.dim[a], p.now[a]);
        same(&p);
        end(&p);
    }
}
END_TEST

START_TEST(any_range_may_be_asked_for)
{
    for (int round = 0; round < 300; round++) {
        struct picked p;
        begin(&p, ACCEL_F32);
        ck_ok(accel_tensor_select(&p.t, &p.arena, p.kept, p.now));
        uint64_t first = pick((uint32_t)p.t.n), n = 1 + pick((uint32_t)(p.t.n - first));
        float *got = calloc(n, sizeof *got);
        ck_ok(accel_tensor_read(&p.t, first, n, got));
        ck_assert_mem_eq(got, p.want + first * 4, n * 4);
        free(got);
        end(&p);
    }
}
END_TEST

static enum accel_err gather(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    memcpy((float *)ctx + first, elem, count * 4);
    return ACCEL_OK;
}

START_TEST(a_selection_of_a_selection_and_of_a_file)
{
    char path[] = "/tmp/accel_test_selection_XXXXXX";
    int fd = mkstemp(path);
    enum { ROWS = 700, COLS = 900 };
    static float all[ROWS][COLS], got[ROWS * COLS];
    int64_t rows[ROWS], cols[COLS], again[ROWS], n_row = 0, n_col = 0, n_again = 0;
    for (int i = 0; i < ROWS * COLS; i++)
        all[i / COLS][i % COLS] = (float)i;
    ck_assert(write(fd, "pad", 3) == 3 && write(fd, all, sizeof all) == sizeof all);
    struct accel_file *f;
    ck_ok(accel_file_adopt(&f, fd, path));
    struct accel_arena arena = {0};
    struct accel_buffer room;
    struct accel_tensor t = {.name = "t",
                             .dtype = ACCEL_F32,
                             .rank = 2,
                             .n = ROWS * COLS,
                             .dim = (const int64_t[]){ROWS, COLS},
                             .size = sizeof all,
                             .file = f,
                             .offset = 3};
    for (int i = 0; i < ROWS; i += 1 + i % 3)
        rows[n_row++] = i;
    for (int i = 5; i < COLS; i += 2)
        cols[n_col++] = i;
    for (int64_t i = 1; i < n_row; i += 2)
        again[n_again++] = i;
    ck_ok(accel_tensor_select(&t, &arena, (const int64_t *[]){rows, cols},
                              (int64_t[]){n_row, n_col}));
    ck_ok(
        accel_tensor_select(&t, &arena, (const int64_t *[]){again, NULL}, (int64_t[]){n_again, 0}));
    ck_ok(accel_buffer_init(&room, 1 << 16));
    ck_ok(accel_tensor_stream(&t, &room, gather, got));
    ck_assert_uint_eq(t.n, (uint64_t)(n_again * n_col));
    for (int64_t i = 0; i < n_again; i++)
        for (int64_t k = 0; k < n_col; k++)
            ck_assert_float_eq(got[i * n_col + k], all[rows[again[i]]][cols[k]]);
    for (long nth = 1; nth <= 2; nth++) {
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_tensor_read(&t, 0, t.n, got);
        accel_alloc_fail_at(0, false);
        ck_assert(err == ACCEL_ENOMEM || nth > 1);
    }
    accel_buffer_clear(&room);
    accel_arena_clear(&arena);
    accel_file_close(f);
    unlink(path);
}
END_TEST

START_TEST(texts_are_refused_and_new_elements_replace_a_selection)
{
    struct picked p;
    struct accel_tensor text = {
        .name = "s", .dtype = ACCEL_STRING, .rank = 1, .n = 4, .dim = (const int64_t[]){4}};
    int64_t list[] = {0, 2};
    begin(&p, ACCEL_F32);
    ck_fails(accel_tensor_select(&text, &p.arena, (const int64_t *[]){list}, (int64_t[]){2}),
             ACCEL_ENOSUP, "'s'");
    struct accel_tensor t = {.name = "v",
                             .dtype = ACCEL_F32,
                             .rank = 1,
                             .n = 4,
                             .size = 16,
                             .dim = (const int64_t[]){4},
                             .data = (const float[]){1, 2, 3, 4}};
    ck_ok(accel_tensor_select(&t, &p.arena, (const int64_t *[]){list}, (int64_t[]){2}));
    float got[2];
    ck_ok(accel_tensor_read(&t, 0, 2, got));
    ck_assert(got[0] == 1 && got[1] == 3 && t.changed);
    accel_tensor_replace(&t, (const float[]){7, 8});
    ck_ok(accel_tensor_read(&t, 0, 2, got));
    ck_assert(got[0] == 7 && got[1] == 8);
    end(&p);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("selection");
    TCase *t = tcase_create("all");
    tcase_add_test(t, what_is_kept_is_read_in_its_order);
    tcase_add_test(t, any_range_may_be_asked_for);
    tcase_add_test(t, a_selection_of_a_selection_and_of_a_file);
    tcase_add_test(t, texts_are_refused_and_new_elements_replace_a_selection);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
