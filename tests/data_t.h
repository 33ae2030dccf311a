/* data_t.h - a folder of files that a test writes, and data sets opened from it. */
#ifndef ACCEL_TESTS_DATA_T_H
#define ACCEL_TESTS_DATA_T_H

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/str.h"
#include "data/dataset.h"
#include "tests/t.h"

static char data_dir[64];
static struct accel_data_spec *data_spec;
static struct accel_log data_log;

static inline int data_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st, (void)type, (void)ftw;
    return remove(path);
}

static inline void data_begin(void)
{
    snprintf(data_dir, sizeof data_dir, "/tmp/test_data.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(data_dir));
}

static inline void data_end(void)
{
    accel_log_clear(&data_log);
    accel_data_spec_free(data_spec);
    data_spec = NULL;
    nftw(data_dir, data_remove, 8, FTW_DEPTH | FTW_PHYS);
}

/* "FOLDER/name"; the newest four stay valid. */
static inline const char *data_path(const char *name)
{
    static char path[4][256];
    static int i;
    i = (i + 1) % 4;
    snprintf(path[i], sizeof path[i], "%s/%s", data_dir, name);
    return path[i];
}

static inline void data_save(const char *name, const void *bytes, size_t n)
{
    FILE *f = fopen(data_path(name), "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    fclose(f);
}
#define data_save_text(name, text) data_save(name, text, strlen(text))

/* Opens a SPEC in which each "%" stands for the folder. */
static inline enum accel_err data_open(struct accel_dataset **d, const char *spec)
{
    struct accel_str s = {0};
    for (const char *p = spec; *p; p++)
        *p == '%' ? accel_str_add(&s, data_dir) : accel_str_addn(&s, p, 1);
    accel_data_spec_free(data_spec);
    data_spec = NULL;
    *d = NULL;
    enum accel_err err =
        s.failed ? accel_fail_nomem() : accel_data_spec_parse(&data_spec, accel_str_get(&s));
    accel_str_clear(&s);
    return err ? err : accel_dataset_open(d, data_spec, ACCEL_SPLIT_TEST, &data_log);
}

#define data_fails(spec, code, word)                                                               \
    do {                                                                                           \
        struct accel_dataset *data_none;                                                           \
        ck_fails(data_open(&data_none, spec), code, word);                                         \
        ck_assert_ptr_null(data_none);                                                             \
    } while (0)

/* An IDX file of bytes 0, 1, 2, … modulo `most`. */
static inline void data_save_idx(const char *name, int rank, const int *dim, int most)
{
    unsigned char b[4096] = {0, 0, 8, (unsigned char)rank};
    size_t at = 4, n = 1;
    for (int i = 0; i < rank; i++) {
        b[at + 2] = (unsigned char)(dim[i] >> 8);
        b[at + 3] = (unsigned char)dim[i];
        at += 4;
        n *= (size_t)dim[i];
    }
    for (size_t i = 0; i < n; i++)
        b[at + i] = (unsigned char)(i % (size_t)most);
    data_save(name, b, at + n);
}

#endif
