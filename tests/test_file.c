/* Reading by position, and output that is old or new: every size class, modes, links, limits. */
#include "base/alloc.h"
#include "base/file.h"
#include "tests/t.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void make_dir(void)
{
    strcpy(dir, "/tmp/accel_file_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
}

static void remove_dir(void)
{
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", dir);
    ck_assert_int_eq(system(cmd), 0);
}

static const char *in_dir(const char *name)
{
    static char path[4][512];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof path[turn], "%s/%s", dir, name);
    return path[turn];
}

static void put(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}

static int entries(void)
{
    char cmd[128];
    int n = -1;
    snprintf(cmd, sizeof cmd, "ls -A '%s' | wc -l", dir);
    FILE *p = popen(cmd, "r");
    ck_assert_int_eq(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

static unsigned char byte_at(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 13);
}

START_TEST(reads_any_range_and_aligned_ones_alike)
{
    size_t size = ((size_t)3 << 20) + 123;
    unsigned char *all = accel_calloc(size, 1), *got = accel_alloc_pages((size_t)4 << 20);
    for (size_t i = 0; i < size; i++)
        all[i] = byte_at(i);
    put(in_dir("f"), all, size);
    for (int cold = 0; cold < 2; cold++) {
        struct accel_file *f;
        ck_ok(accel_file_open(&f, in_dir("f")));
        ck_assert_uint_eq(f->size, size);
        if (cold) {
            fsync(f->fd);
            ck_assert_int_eq(posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED), 0);
        }
        ck_ok(accel_file_read(f, 4096, (uint64_t)2 << 20, got));
        ck_assert_mem_eq(got, all + 4096, (size_t)2 << 20);
        ck_ok(accel_file_read(f, 4095, 70000, got));
        ck_assert_mem_eq(got, all + 4095, 70000);
        ck_ok(accel_file_read(f, size, 0, got));
        accel_file_close(f);
    }
    accel_free(all);
    accel_free(got);
}
END_TEST

START_TEST(file_that_became_shorter_is_an_error)
{
    put(in_dir("f"), "0123456789", 10);
    struct accel_file *f;
    char buf[16];
    ck_ok(accel_file_open(&f, in_dir("f")));
    ck_assert_int_eq(truncate(in_dir("f"), 4), 0);
    ck_fails(accel_file_read(f, 2, 6, buf), ACCEL_EMODEL, "ends at byte 4, but had 10");
    ck_fails(accel_file_read(f, UINT64_MAX, 2, buf), ACCEL_EMODEL, "beyond");
    accel_file_close(f);
}
END_TEST

START_TEST(only_regular_files_are_opened)
{
    struct accel_file *f;
    ck_fails(accel_file_open(&f, in_dir("none")), ACCEL_EMODEL, "No such file");
    ck_fails(accel_file_open(&f, dir), ACCEL_EMODEL, "folder");
    ck_assert_int_eq(mkfifo(in_dir("pipe"), 0600), 0);
    ck_fails(accel_file_open(&f, in_dir("pipe")), ACCEL_EMODEL, "no regular file");
    ck_assert_ptr_null(f);
}
END_TEST

/* Pieces of every size class: gathered, straight, and around the cache. */
START_TEST(written_bytes_come_back)
{
    size_t size = (size_t)9 << 20;
    unsigned char *all = accel_alloc_pages(size), *got = accel_alloc_pages(size);
    for (size_t i = 0; i < size; i++)
        all[i] = byte_at(i);
    put(in_dir("src"), all, size);
    struct accel_file *f, *src;
    struct accel_out *o;
    ck_ok(accel_file_open(&src, in_dir("src")));
    ck_ok(accel_out_open(&o, in_dir("o")));
    ck_ok(accel_out_write(o, all, 10));
    ck_ok(accel_out_pad(o, 4096));
    ck_assert_uint_eq(accel_out_position(o), 4096);
    ck_ok(accel_out_write(o, all, size));
    ck_ok(accel_out_write(o, all, 300000));
    ck_ok(accel_out_copy(o, src, 7, 100));
    ck_ok(accel_out_copy(o, src, 1, size - 1));
    ck_ok(accel_out_write(o, all, ((size_t)1 << 20) + 5));
    ck_ok(accel_out_finish(o));
    ck_assert_int_eq(access(in_dir("o"), F_OK), -1);
    ck_ok(accel_out_commit(o));
    accel_out_close(o);
    ck_assert_int_eq(entries(), 2);
    ck_ok(accel_file_open(&f, in_dir("o")));
    uint64_t at = 4096;
    ck_assert_uint_eq(f->size, at + size + 300000 + 100 + size - 1 + (1 << 20) + 5);
    ck_ok(accel_file_read(f, 0, 4096, got));
    ck_assert_mem_eq(got, all, 10);
    ck_assert_int_eq(got[10] | got[4095], 0);
    ck_ok(accel_file_read(f, at, size, got));
    ck_assert_mem_eq(got, all, size);
    ck_ok(accel_file_read(f, at += size, 300000, got));
    ck_assert_mem_eq(got, all, 300000);
    ck_ok(accel_file_read(f, at += 300000, 100, got));
    ck_assert_mem_eq(got, all + 7, 100);
    ck_ok(accel_file_read(f, at += 100, size - 1, got));
    ck_assert_mem_eq(got, all + 1, size - 1);
    ck_ok(accel_file_read(f, at += size - 1, (1 << 20) + 5, got));
    ck_assert_mem_eq(got, all, (1 << 20) + 5);
    accel_file_close(f);
    accel_file_close(src);
    accel_free(all);
    accel_free(got);
}
END_TEST

START_TEST(closing_without_commit_leaves_nothing)
{
    struct accel_out *o;
    put(in_dir("o"), "old", 3);
    ck_ok(accel_out_open(&o, in_dir("o")));
    ck_ok(accel_out_write(o, "new!", 4));
    ck_ok(accel_out_finish(o));
    ck_assert_int_eq(entries(), 2);
    accel_out_close(o);
    ck_assert_int_eq(entries(), 1);
    struct stat st;
    ck_assert_int_eq(stat(in_dir("o"), &st), 0);
    ck_assert_int_eq(st.st_size, 3);
}
END_TEST

static mode_t mode_after_write(const char *name)
{
    struct accel_out *o;
    struct stat st;
    ck_ok(accel_out_open(&o, in_dir(name)));
    ck_ok(accel_out_write(o, "new!", 4));
    ck_ok(accel_out_finish(o));
    ck_ok(accel_out_commit(o));
    accel_out_close(o);
    ck_assert_int_eq(lstat(in_dir(name), &st), 0);
    ck_assert(S_ISREG(st.st_mode));
    ck_assert_int_eq(st.st_size, 4);
    return st.st_mode & 07777;
}

START_TEST(mode_is_the_replaced_files_or_the_umasks)
{
    mode_t old = umask(027);
    ck_assert_int_eq(mode_after_write("fresh"), 0640);
    put(in_dir("o"), "old", 3);
    chmod(in_dir("o"), 0604);
    ck_assert_int_eq(mode_after_write("o"), 0604);
    umask(old);
}
END_TEST

START_TEST(link_is_replaced_and_its_target_untouched)
{
    put(in_dir("real"), "old", 3);
    ck_assert_int_eq(symlink("real", in_dir("link")), 0);
    mode_after_write("link");
    struct stat st;
    ck_assert_int_eq(stat(in_dir("real"), &st), 0);
    ck_assert_int_eq(st.st_size, 3);
}
END_TEST

START_TEST(bad_targets_are_named)
{
    struct accel_out *o;
    ck_fails(accel_out_open(&o, in_dir("nowhere/o")), ACCEL_EIO, "nowhere/'");
    ck_fails(accel_out_open(&o, dir), ACCEL_EARG, "folder");
    ck_assert_int_eq(symlink("/dev/null", in_dir("null")), 0);
    ck_fails(accel_out_open(&o, in_dir("null")), ACCEL_EARG, "not a regular file");
    ck_fails(accel_out_open(&o, in_dir("sub/")), ACCEL_EARG, "no file name");
    ck_assert_ptr_null(o);
}
END_TEST

START_TEST(long_name_still_has_a_temporary_one)
{
    char name[256];
    memset(name, 'n', 255);
    name[255] = '\0';
    mode_after_write(name);
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(file_size_limit_is_an_error_and_no_signal)
{
    static char zeros[5000000];
    struct rlimit old, small;
    getrlimit(RLIMIT_FSIZE, &old);
    small = old;
    small.rlim_cur = 4000000;
    struct accel_out *o;
    put(in_dir("src"), zeros, sizeof zeros);
    struct accel_file *src;
    ck_ok(accel_file_open(&src, in_dir("src")));
    setrlimit(RLIMIT_FSIZE, &small);
    ck_ok(accel_out_open(&o, in_dir("o")));
    ck_fails(accel_out_write(o, zeros, sizeof zeros), ACCEL_EIO, "File too large");
    accel_out_close(o);
    ck_ok(accel_out_open(&o, in_dir("o")));
    ck_fails(accel_out_copy(o, src, 0, sizeof zeros), ACCEL_EIO, "File too large");
    accel_out_close(o);
    setrlimit(RLIMIT_FSIZE, &old);
    accel_file_close(src);
    ck_assert_int_eq(entries(), 1);
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    struct accel_out *o;
    enum accel_err err = ACCEL_ENOMEM;
    for (long n = 1; err; n++) {
        accel_alloc_fail_at(n, false);
        err = accel_out_open(&o, in_dir("o"));
        accel_alloc_fail_at(0, false);
        ck_assert(err == ACCEL_OK || err == ACCEL_ENOMEM);
        ck_assert_int_eq(entries(), err ? 0 : 1);
    }
    accel_out_close(o);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("file");
    TCase *c = tcase_create("file");
    tcase_add_checked_fixture(c, make_dir, remove_dir);
    tcase_add_test(c, reads_any_range_and_aligned_ones_alike);
    tcase_add_test(c, file_that_became_shorter_is_an_error);
    tcase_add_test(c, only_regular_files_are_opened);
    tcase_add_test(c, written_bytes_come_back);
    tcase_add_test(c, closing_without_commit_leaves_nothing);
    tcase_add_test(c, mode_is_the_replaced_files_or_the_umasks);
    tcase_add_test(c, link_is_replaced_and_its_target_untouched);
    tcase_add_test(c, bad_targets_are_named);
    tcase_add_test(c, long_name_still_has_a_temporary_one);
    tcase_add_test(c, file_size_limit_is_an_error_and_no_signal);
    tcase_add_test(c, every_failed_allocation_is_an_error);
    suite_add_tcase(s, c);
    return s;
}

T_MAIN(suite)
