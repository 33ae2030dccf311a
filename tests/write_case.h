/* write_case.h - what the suites of the writer share: a tensor of 400 weights, and running the
 * writer on a file. */
#ifndef ACCEL_TESTS_WRITE_CASE_H
#define ACCEL_TESTS_WRITE_CASE_H

#include "tests/onnx_make.h"

#include <sys/stat.h>

#include "tests/t.h"

enum { N = 400 };
static float weights[N];   /* none is zero */
static uint16_t halves[N]; /* the like as 16-bit patterns, some with the top bit */

static inline void setup(void)
{
    make_folder();
    for (int i = 0; i < N; i++) {
        weights[i] = (float)(i + 1) * (i % 2 ? 0.25f : -0.25f);
        halves[i] = accel_f32_to_f16(weights[i]);
    }
}

static inline struct accel_model *open_model(const char *path)
{
    struct accel_model *m;
    struct accel_onnx_read_options opt = {0};
    ck_ok(accel_onnx_read(&m, path, &opt));
    return m;
}

/* Reads `from` (with edits when asked), writes `to`; the dry run must have foretold the size. */
static inline void rewrite(const char *from, const char *to, bool edit,
                           const struct accel_onnx_write_options *opt)
{
    struct accel_model *m = open_model(from);
    struct accel_onnx_written wet, dry;
    if (edit)
        make_edits(m);
    ck_ok(accel_onnx_dry_write(&dry, m, to, opt));
    ck_ok(accel_onnx_write(&wet, m, to, opt));
    ck_assert_uint_eq(dry.size, wet.size);
    accel_model_free(m);
}

static inline void ck_same(const char *path, const struct accel_str *want)
{
    struct accel_str got = load_file(path);
    ck_assert_uint_eq(got.len, want->len);
    ck_assert_mem_eq(got.at, want->at, want->len);
    accel_str_clear(&got);
}

/* All elements of the model's only tensor. */
static inline void elements(const char *path, void *to)
{
    struct accel_model *m = open_model(path);
    ck_assert_uint_eq(m->n_tensor, 1);
    ck_ok(accel_tensor_read(m->tensor[0], 0, m->tensor[0]->n, to));
    accel_model_free(m);
}

static inline struct accel_str one_tensor(int dtype, int data_field, const void *payload, size_t n)
{
    struct accel_str t = {0};
    make_tensor(&t, GRAPH_INITIALIZER, "w", dtype, 20, 20, data_field, payload, n);
    return make_model(&t);
}

static inline void edit_of(void *elem, size_t width)
{
    for (size_t i = 0; i < N; i++)
        if (i % 10 != 9)
            memset((char *)elem + i * width, 0, width);
}

static inline bool file_holds(const char *path, const char *text)
{
    struct accel_str s = load_file(path);
    bool found = s.len && memmem(s.at, s.len, text, strlen(text));
    accel_str_clear(&s);
    return found;
}

static inline off_t size_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_size;
}

static const struct accel_onnx_write_options plain = {0};

#endif
