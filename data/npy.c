/* npy.c - the header is a Python dict of three keys in a fixed notation; it is read with a small
 * scanner that takes the keys in any order and refuses what it does not know. */
#include "data/npy.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"

#define MAX_HEADER 65536u
#define MAX_RANK   64

static const struct {
    const char *descr;
    enum accel_dtype dtype;
} types[] = {{"|b1", ACCEL_BOOL}, {"|i1", ACCEL_I8},  {"|u1", ACCEL_U8},  {"<i2", ACCEL_I16},
             {"<u2", ACCEL_U16},  {"<i4", ACCEL_I32}, {"<u4", ACCEL_U32}, {"<i8", ACCEL_I64},
             {"<u8", ACCEL_U64},  {"<f2", ACCEL_F16}, {"<f4", ACCEL_F32}, {"<f8", ACCEL_F64}};
#define N_TYPES (sizeof types / sizeof *types)

struct header {
    enum accel_dtype dtype;
    bool fortran;
    int rank;
    int64_t dim[MAX_RANK];
    uint64_t data; /* where the elements begin */
};

static const char *skip(const char *s)
{
    while (*s == ' ' || *s == ',' || *s == '\n')
        s++;
    return s;
}

static const char *scan_shape(struct header *h, const char *s)
{
    if (*s++ != '(')
        return NULL;
    for (s = skip(s); *s != ')'; s = skip(s)) {
        char *end;
        if (!isdigit((unsigned char)*s) || h->rank == MAX_RANK)
            return NULL;
        long long v = strtoll(s, &end, 10);
        h->dim[h->rank++] = v;
        s = end;
    }
    return s + 1;
}

/* One "'key': value" of the dict; NULL when it is not understood. */
static const char *scan_entry(struct header *h, const char *s)
{
    if (strncmp(s, "'descr':", 8) == 0) {
        s = skip(s + 8);
        if (*s++ != '\'')
            return NULL;
        for (size_t i = 0; i < N_TYPES; i++)
            if (strncmp(s, types[i].descr, 3) == 0 && s[3] == '\'')
                h->dtype = types[i].dtype;
        return h->dtype != ACCEL_UNDEFINED ? s + 4 : NULL;
    }
    if (strncmp(s, "'fortran_order':", 16) == 0) {
        s = skip(s + 16);
        h->fortran = strncmp(s, "True", 4) == 0;
        return h->fortran ? s + 4 : strncmp(s, "False", 5) == 0 ? s + 5 : NULL;
    }
    if (strncmp(s, "'shape':", 8) == 0)
        return scan_shape(h, skip(s + 8));
    return NULL;
}

static enum accel_err scan_header(struct header *h, const char *text)
{
    const char *s = skip(text);
    h->rank = 0;
    if (*s == '{') {
        for (s = skip(s + 1); s && *s && *s != '}'; s = s ? skip(s) : NULL)
            s = scan_entry(h, s);
        if (s && *s == '}' && h->dtype != ACCEL_UNDEFINED)
            return ACCEL_OK;
    }
    return accel_fail(ACCEL_EMODEL, "its header is not understood: %.100s", text);
}

/* Where the bytes come from: a file, or memory (a member of an archive). */
struct bytes {
    struct accel_file *file; /* or NULL */
    const unsigned char *at;
    uint64_t size;
};

static enum accel_err fetch(const struct bytes *b, uint64_t offset, uint64_t size, void *to)
{
    if (b->file)
        return accel_file_read(b->file, offset, size, to);
    if (size)
        memcpy(to, b->at + offset, size);
    return ACCEL_OK;
}

static enum accel_err read_header(struct header *h, const struct bytes *b)
{
    unsigned char start[12] = {0};
    *h = (struct header){0};
    if (b->size < 10)
        return accel_fail(ACCEL_EMODEL, "it is no .npy file");
    ACCEL_TRY(fetch(b, 0, b->size < 12 ? b->size : 12, start));
    if (memcmp(start, "\x93NUMPY", 6) != 0)
        return accel_fail(ACCEL_EMODEL, "it is no .npy file");
    bool small = start[6] == 1;
    uint64_t at = small ? 10 : 12;
    uint64_t n = small ? (uint64_t)start[8] | (uint64_t)start[9] << 8
                       : (uint64_t)start[8] | (uint64_t)start[9] << 8 | (uint64_t)start[10] << 16 |
                             (uint64_t)start[11] << 24;
    if (start[6] < 1 || start[6] > 3 || n > MAX_HEADER || at + n > b->size)
        return accel_fail(ACCEL_EMODEL, "its header of %" PRIu64 " bytes is longer than the file",
                          n);
    char *text = accel_calloc(n + 1, 1);
    if (!text)
        return accel_fail_nomem();
    enum accel_err err = fetch(b, at, n, text);
    if (!err)
        err = scan_header(h, text);
    accel_free(text);
    h->data = at + n;
    return err;
}

/* Fortran order to row-major. */
static void turn_round(const struct accel_array *a, const char *from, size_t width)
{
    for (int64_t i = 0; i < a->n; i++) {
        int64_t rest = i, at = 0;
        for (int d = a->rank - 1; d >= 0; d--) {
            int64_t step = 1;
            for (int k = 0; k < d; k++)
                step *= a->dim[k];
            at += rest % a->dim[d] * step;
            rest /= a->dim[d];
        }
        memcpy((char *)a->data + (size_t)i * width, from + (size_t)at * width, width);
    }
}

static enum accel_err read_elements(struct accel_npy *out, const struct header *h,
                                    const struct bytes *b)
{
    uint64_t n = 1, size = 0;
    for (int i = 0; i < h->rank; i++)
        if (h->dim[i] < 0 || __builtin_mul_overflow(n, (uint64_t)h->dim[i], &n))
            return accel_fail(ACCEL_EMODEL, "its shape is too large");
    if (!accel_dtype_size(h->dtype, n, &size) || size != b->size - h->data)
        return accel_fail(ACCEL_EMODEL, "its shape needs %" PRIu64 " bytes, it has %" PRIu64, size,
                          b->size - h->data);
    out->dim = accel_calloc((size_t)h->rank + 1, sizeof *out->dim);
    out->data = accel_alloc_pages(size);
    if (!out->dim || !out->data)
        return accel_fail_nomem();
    memcpy(out->dim, h->dim, (size_t)h->rank * sizeof *h->dim);
    out->a = (struct accel_array){h->dtype, h->rank, out->dim, (int64_t)n, out->data};
    ACCEL_TRY(fetch(b, h->data, size, out->data));
    if (!h->fortran || h->rank < 2 || !n)
        return ACCEL_OK;
    void *turned = accel_alloc_pages(size);
    if (!turned)
        return accel_fail_nomem();
    out->a.data = turned;
    turn_round(&out->a, out->data, (size_t)(size / n));
    accel_free(out->data);
    out->data = turned;
    return ACCEL_OK;
}

static enum accel_err read_array(struct accel_npy *out, const struct bytes *b)
{
    struct header h;
    *out = (struct accel_npy){0};
    enum accel_err err = read_header(&h, b);
    if (!err)
        err = read_elements(out, &h, b);
    if (err)
        accel_npy_clear(out);
    return err;
}

enum accel_err accel_npy_read(struct accel_npy *out, const char *path)
{
    struct accel_file *f = NULL;
    *out = (struct accel_npy){0};
    ACCEL_TRY(accel_file_open(&f, path));
    enum accel_err err = read_array(out, &(struct bytes){f, NULL, f->size});
    accel_file_close(f);
    return err ? accel_fail_in(err, "%.1000s", path) : ACCEL_OK;
}

enum accel_err accel_npy_parse(struct accel_npy *out, const void *bytes, uint64_t size)
{
    return read_array(out, &(struct bytes){NULL, bytes, size});
}

void accel_npy_clear(struct accel_npy *n)
{
    accel_free(n->dim);
    accel_free(n->data);
    *n = (struct accel_npy){0};
}

/* The header, filled up with blanks so that elements begin at a multiple of 64. */
static enum accel_err write_header(struct accel_out *o, const struct accel_array *a,
                                   const char *descr)
{
    struct accel_str s = {0};
    accel_str_addf(&s, "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (int i = 0; i < a->rank; i++)
        accel_str_addf(&s, "%" PRId64 "%s", a->dim[i],
                       a->rank == 1      ? ","
                       : i + 1 < a->rank ? ", "
                                         : "");
    accel_str_add(&s, "), }");
    while (!s.failed && (10 + s.len + 1) % 64 != 0)
        accel_str_add(&s, " ");
    accel_str_add(&s, "\n");
    unsigned char start[10] = "\x93NUMPY\x01";
    start[8] = (unsigned char)(s.len & 255);
    start[9] = (unsigned char)(s.len >> 8);
    enum accel_err err = s.failed || s.len > 65535 ? accel_fail_nomem() : ACCEL_OK;
    if (!err)
        err = accel_out_write(o, start, sizeof start);
    if (!err)
        err = accel_out_write(o, s.at, s.len);
    accel_str_clear(&s);
    return err;
}

static enum accel_err write_elements(struct accel_out *o, const struct accel_array *a)
{
    uint64_t size;
    if (a->dtype != ACCEL_BF16) {
        if (!accel_dtype_size(a->dtype, (uint64_t)a->n, &size))
            return accel_fail(ACCEL_ENOSUP, "its type has no size");
        return accel_out_write(o, a->data, size);
    }
    for (int64_t i = 0; i < a->n; i++) {
        float f = accel_bf16_to_f32(((const uint16_t *)a->data)[i]);
        ACCEL_TRY(accel_out_write(o, &f, sizeof f));
    }
    return ACCEL_OK;
}

enum accel_err accel_npy_write(const char *path, const struct accel_array *a)
{
    const char *descr = a->dtype == ACCEL_BF16 ? "<f4" : NULL;
    struct accel_out *o;
    for (size_t i = 0; i < N_TYPES; i++)
        if (types[i].dtype == a->dtype)
            descr = types[i].descr;
    if (!descr)
        return accel_fail(ACCEL_ENOSUP, "%s: .npy has no type %s", path,
                          accel_dtype_find((int)a->dtype)->name);
    ACCEL_TRY(accel_out_open(&o, path));
    enum accel_err err = write_header(o, a, descr);
    if (!err)
        err = write_elements(o, a);
    if (!err)
        err = accel_out_finish(o);
    if (!err)
        err = accel_out_commit(o);
    accel_out_close(o);
    return err;
}
