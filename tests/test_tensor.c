/* Streaming of tensors from memory and files, with edits and without. */
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "graph/tensor.h"
#include "tests/t.h"

/* An edit that adds `add` to every byte-wide element; add is the largest element, so that it must
 * see everything first. */
struct bump {
    struct accel_edit edit;
    unsigned add;
    int prepares, wholes;
    uint64_t next, grain_seen;
    bool freed;
};

static enum accel_err find_max(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    (void)first;
    for (uint64_t i = 0; i < count; i++)
        if (((const unsigned char *)elem)[i] > *(unsigned *)ctx)
            *(unsigned *)ctx = ((const unsigned char *)elem)[i];
    return ACCEL_OK;
}

static enum accel_err bump_prepare(struct accel_edit *e, const struct accel_tensor *t,
                                   const void *whole, void *scratch, size_t size)
{
    struct bump *b = (struct bump *)e;
    if (e->prepared)
        return ACCEL_OK;
    b->prepares++;
    b->wholes += whole != NULL;
    struct accel_buffer room = {scratch, size, true};
    ACCEL_TRY(whole ? find_max(&b->add, 0, t->n, whole)
                    : accel_tensor_scan(t, &room, find_max, &b->add));
    e->prepared = true;
    return ACCEL_OK;
}

static enum accel_err bump_apply(struct accel_edit *e, uint64_t first, uint64_t count, void *elem)
{
    struct bump *b = (struct bump *)e;
    ck_assert(first == 0 || first == b->next);
    ck_assert(first % e->grain == 0);
    b->next = first + count;
    for (uint64_t i = 0; i < count; i++)
        ((unsigned char *)elem)[i] = (unsigned char)(((unsigned char *)elem)[i] + b->add);
    return ACCEL_OK;
}

static void bump_free(struct accel_edit *e)
{
    ((struct bump *)e)->freed = true;
}

static const struct accel_edit_ops bump_ops = {bump_prepare, bump_apply, bump_free};

static enum accel_err append(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    memcpy((unsigned char *)ctx + first, elem, count);
    return ACCEL_OK;
}

static enum accel_err refuse(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    (void)ctx, (void)first, (void)count, (void)elem;
    return accel_fail(ACCEL_EIO, "full");
}

/* A file of `size` bytes 0..9 repeated, removed when closed. */
static struct accel_file *digits_file(uint64_t size)
{
    char path[] = "/tmp/accel_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    char block[1000];
    for (int i = 0; i < 1000; i++)
        block[i] = (char)(i % 10);
    for (uint64_t at = 0; at < size; at += 1000) {
        size_t n = size - at < 1000 ? (size_t)(size - at) : 1000;
        ck_assert_int_eq(write(fd, block, n), (ssize_t)n);
    }
    close(fd);
    struct accel_file *f;
    ck_ok(accel_file_open(&f, path));
    unlink(path);
    return f;
}

static struct accel_tensor bytes_tensor(struct accel_file *f, uint64_t offset, uint64_t n)
{
    return (struct accel_tensor){
        .name = "w", .dtype = ACCEL_U8, .rank = 1, .n = n, .size = n, .file = f, .offset = offset};
}

static void expect(const unsigned char *got, uint64_t offset, uint64_t n, unsigned add)
{
    uint64_t bad = 0;
    for (uint64_t i = 0; i < n; i++)
        bad += got[i] != (offset + i) % 10 + add;
    ck_assert_uint_eq(bad, 0);
}

START_TEST(a_tensor_that_fits_is_read_once_and_a_larger_one_in_passes)
{
    uint64_t size = 3 * 1000 * 1000;
    struct accel_file *f = digits_file(size);
    unsigned char *got = accel_calloc(size, 1);
    static const uint64_t offsets[] = {0, 4096, 1, 4097, 123456};
    for (int k = 0; k < 10; k++) {
        struct accel_buffer b;
        ck_ok(accel_buffer_init(&b, k % 2 ? 2100 * 1024 : 0));
        uint64_t offset = offsets[k / 2], n = size - offset;
        struct accel_tensor t = bytes_tensor(f, offset, n);
        ck_ok(accel_tensor_stream(&t, &b, append, got));
        expect(got, offset, n, 0);
        struct bump e = {.edit = {&bump_ops, 3, false}};
        accel_tensor_set_edit(&t, &e.edit);
        for (int pass = 0; pass < 2; pass++) { /* the second time it is prepared already */
            ck_ok(accel_tensor_stream(&t, &b, append, got));
            expect(got, offset, n, 9);
        }
        ck_assert_int_eq(e.prepares, 1);
        ck_assert_int_eq(e.wholes, k % 2 ? 0 : 1);
        ck_assert_uint_eq(e.next, n);
        ck_ok(accel_tensor_scan(&t, &b, append, got));
        expect(got, offset, n, 0);
        ck_fails(accel_tensor_stream(&t, &b, refuse, NULL), ACCEL_EIO, "full");
        accel_tensor_set_edit(&t, NULL);
        ck_assert(e.freed);
        accel_buffer_clear(&b);
    }
    accel_free(got);
    accel_file_close(f);
}
END_TEST

START_TEST(payloads_in_memory_are_never_changed)
{
    unsigned char data[100], got[100];
    for (int i = 0; i < 100; i++)
        data[i] = (unsigned char)(i % 10);
    struct accel_tensor t = bytes_tensor(NULL, 0, 100);
    t.data = data;
    struct bump e = {.edit = {&bump_ops, 7, false}};
    accel_tensor_set_edit(&t, &e.edit);
    struct accel_buffer b;
    ck_ok(accel_buffer_init(&b, 4096 * 3));
    ck_ok(accel_tensor_stream(&t, &b, append, got));
    expect(got, 0, 100, 9);
    expect(data, 0, 100, 0);
    ck_ok(accel_tensor_read(&t, 95, 5, got));
    expect(got, 95, 5, 0);
    accel_buffer_clear(&b);
}
END_TEST

START_TEST(the_buffer_grows_only_when_one_grain_needs_it)
{
    struct accel_file *f = digits_file(100000);
    struct accel_tensor t = bytes_tensor(f, 10, 99990);
    unsigned char *got = accel_calloc(100000, 1);
    struct accel_buffer b;
    ck_ok(accel_buffer_init(&b, 16384));
    struct bump e = {.edit = {&bump_ops, 1000, false}};
    accel_tensor_set_edit(&t, &e.edit);
    ck_ok(accel_tensor_stream(&t, &b, append, got));
    ck_assert_uint_eq(b.size, 16384);
    expect(got, 10, 99990, 9);
    e.edit = (struct accel_edit){&bump_ops, 50000, false};
    e.add = 0;
    ck_ok(accel_tensor_stream(&t, &b, append, got));
    ck_assert_uint_ge(b.size, 50000);
    expect(got, 10, 99990, 9);
    accel_buffer_clear(&b);
    accel_free(got);
    accel_file_close(f);
}
END_TEST

START_TEST(what_cannot_be_read_is_an_error)
{
    struct accel_buffer b;
    ck_ok(accel_buffer_init(&b, 0));
    struct accel_tensor t = bytes_tensor(NULL, 0, 4);
    ck_fails(accel_tensor_scan(&t, &b, append, NULL), ACCEL_EMODEL, "not read");
    t.dtype = ACCEL_STRING;
    ck_fails(accel_tensor_scan(&t, &b, append, NULL), ACCEL_ENOSUP, "string");
    t.n = 0;
    ck_ok(accel_tensor_scan(&t, &b, refuse, NULL));
    accel_buffer_clear(&b);
    accel_alloc_fail_at(1, false);
    ck_fails(accel_buffer_init(&b, 0), ACCEL_ENOMEM, "");
    accel_alloc_fail_at(0, false);
    ck_assert_ptr_null(b.data);
}
END_TEST

START_TEST(packed_elements_come_in_whole_bytes)
{
    unsigned char data[3] = {0x21, 0x43, 0x05}, got[3];
    struct accel_tensor t = {
        .name = "q", .dtype = ACCEL_U4, .rank = 1, .n = 5, .size = 3, .data = data};
    ck_ok(accel_tensor_read(&t, 2, 3, got));
    ck_assert(got[0] == 0x43 && got[1] == 0x05);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("tensor");
    TCase *t = tcase_create("tensor");
    tcase_add_test(t, a_tensor_that_fits_is_read_once_and_a_larger_one_in_passes);
    tcase_add_test(t, payloads_in_memory_are_never_changed);
    tcase_add_test(t, the_buffer_grows_only_when_one_grain_needs_it);
    tcase_add_test(t, what_cannot_be_read_is_an_error);
    tcase_add_test(t, packed_elements_come_in_whole_bytes);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
