/* csv.c - tables: files matched by a pattern, one row per sample, all in memory.
 *
 * A file is read whole and cut up in place: cells become NUL-terminated texts, quotes are taken off
 * where they stand (RFC 4180). What the labels are is known at the end only: whole numbers are
 * classes, other numbers are values, anything else is the name of a class. */
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/str.h"
#include "data/data_int.h"

struct table {
    const char *path; /* of the file being read */
    char *text, *at;  /* its bytes, and the next one */
    int line;
    const char **cell; /* [n_cell] of the row */
    size_t n_cell, cell_cap;
    const char **title; /* [n_column], texts in the arena; of the first file. NULL: no header */
    size_t n_column;    /* 0: not known yet */
    size_t *feature;    /* [n_feature] columns */
    size_t n_feature;
    size_t label; /* column; SIZE_MAX: none */
    enum accel_dtype dtype;
    size_t width;        /* bytes of an element */
    unsigned char *data; /* rows of n_feature elements */
    size_t data_cap;
    const char **label_text; /* [rows] */
    size_t label_cap;
    bool all_whole, all_numbers;
};

/* EMODEL with FILE:LINE:COLUMN; columns count from 1. */
#define bad(t, column, ...) bad_at((t), (column), accel_fail(ACCEL_EMODEL, __VA_ARGS__))

static enum accel_err bad_at(const struct table *t, size_t column, enum accel_err err)
{
    return accel_fail_in(err, "%.1000s:%d: column %zu", t->path, t->line, column + 1);
}

/* A quoted cell, from behind its first quote; the closing one is dropped. NULL: it does not close.
 */
static char *unquote(struct table *t, char *from)
{
    char *to = from;
    for (; *from; from++) {
        if (*from == '"' && from[1] != '"') {
            *to = '\0';
            return from + 1;
        }
        t->line += *from == '\n';
        from += *from == '"';
        *to++ = *from;
    }
    return NULL;
}

/* The cells of the next row that is not empty; n_cell is 0 at the end. */
static enum accel_err next_row(struct table *t)
{
    t->n_cell = 0;
    while (*t->at == '\n' || *t->at == '\r')
        t->line += *t->at++ == '\n';
    for (bool more = *t->at; more;) {
        char *begin = t->at, *end;
        bool quoted = *begin == '"';
        if (!ACCEL_GROW(t->cell, t->cell_cap, t->n_cell + 1))
            return accel_fail_nomem();
        end = quoted ? unquote(t, begin + 1) : begin + strcspn(begin, ",\r\n");
        if (!end || !strchr(",\r\n", *end))
            return bad(t, t->n_cell, "a quoted cell does not end");
        t->cell[t->n_cell++] = quoted ? begin + 1 : begin;
        more = *end == ',';
        t->at = *end ? end + 1 : end;
        if (*end == '\r' && *t->at == '\n')
            t->at++;
        *end = '\0';
    }
    return ACCEL_OK;
}

/* The column called so, or the one of this number (negative: from the end). */
static enum accel_err find_column(size_t *out, const struct table *t, const char *name)
{
    struct accel_near near = accel_near_begin(name);
    for (size_t i = 0; t->title && i < t->n_column; i++) {
        if (strcmp(t->title[i], name) == 0) {
            *out = i;
            return ACCEL_OK;
        }
        accel_near_try(&near, t->title[i]);
    }
    char *end;
    errno = 0;
    long long v = strtoll(name, &end, 10);
    if (!t->title && !errno && end != name && !*end) {
        long long n = (long long)t->n_column;
        if (v >= n || v < -n)
            return accel_fail(ACCEL_EARG, "%.1000s: there is no column %lld, it has %lld", t->path,
                              v, n);
        *out = (size_t)(v < 0 ? v + n : v);
        return ACCEL_OK;
    }
    if (near.best)
        return accel_fail(ACCEL_EARG,
                          "%.1000s: there is no column '%.100s', did you mean '%.100s'?", t->path,
                          name, near.best);
    return accel_fail(ACCEL_EARG, "%.1000s: there is no column '%.100s'%s", t->path, name,
                      t->title ? "" : ", without a header columns are numbers from 0");
}

/* Columns to take, from the first row of the first file. */
static enum accel_err choose_columns(struct accel_dataset *d, struct table *t, bool header)
{
    const struct accel_data_spec *s = d->spec;
    t->n_column = t->n_cell;
    if (header) {
        t->title = ACCEL_NEW(&d->arena, const char *, t->n_cell);
        if (!t->title)
            return accel_fail_nomem();
        for (size_t i = 0; i < t->n_cell; i++)
            if (!(t->title[i] = accel_arena_strndup(&d->arena, t->cell[i], strlen(t->cell[i]))))
                return accel_fail_nomem();
    }
    t->label = SIZE_MAX;
    for (size_t i = 0; t->title && !s->label && i < t->n_column; i++)
        if (strcmp(t->title[i], "label") == 0)
            t->label = i;
    if (s->label)
        ACCEL_TRY(find_column(&t->label, t, s->label));
    t->feature = ACCEL_NEW(&d->arena, size_t, s->n_feature ? s->n_feature : t->n_column);
    if (!t->feature)
        return accel_fail_nomem();
    for (size_t i = 0; i < s->n_feature; i++)
        ACCEL_TRY(find_column(&t->feature[t->n_feature++], t, s->feature[i]));
    for (size_t i = 0; !s->n_feature && i < t->n_column; i++)
        if (i != t->label)
            t->feature[t->n_feature++] = i;
    return t->n_feature
               ? ACCEL_OK
               : accel_fail(ACCEL_EARG, "%.1000s: no column is left for the features", t->path);
}

static enum accel_err check_titles(const struct table *t)
{
    for (size_t i = 0; i < t->n_cell && i < t->n_column; i++)
        if (strcmp(t->cell[i], t->title[i]) != 0)
            return bad(t, i, "it is called '%.100s' here, '%.100s' in the first file", t->cell[i],
                       t->title[i]);
    return ACCEL_OK;
}

static enum accel_err add_number(const struct table *t, size_t row, size_t i)
{
    size_t column = t->feature[i];
    const char *text = t->cell[column];
    bool whole = accel_dtype_find((int)t->dtype)->cls == ACCEL_CLASS_INT;
    char *end;
    errno = 0;
    long long n = whole ? strtoll(text, &end, 10) : 0;
    double v = whole ? (double)n : strtod(text, &end);
    if (end == text || end[strspn(end, " \t\n")] || (whole && errno))
        return bad(t, column, "'%.100s' is no %s", text, whole ? "whole number" : "number");
    unsigned char *row_at = t->data + row * t->n_feature * t->width;
    if (t->dtype == ACCEL_I64)
        memcpy(row_at + i * t->width, &(int64_t){n}, sizeof(int64_t));
    else
        accel_dtype_from_f64(t->dtype, &v, 1, row_at, i);
    return ACCEL_OK;
}

static enum accel_err add_label(struct accel_dataset *d, struct table *t, size_t row)
{
    const char *text = t->cell[t->label];
    char *end;
    if (!*text)
        return bad(t, t->label, "the label is empty");
    if (!ACCEL_GROW(t->label_text, t->label_cap, row + 1))
        return accel_fail_nomem();
    t->label_text[row] = accel_arena_strndup(&d->arena, text, strlen(text));
    if (!t->label_text[row])
        return accel_fail_nomem();
    errno = 0;
    strtoll(text, &end, 10);
    t->all_whole = t->all_whole && !*end && !errno;
    strtod(text, &end);
    t->all_numbers = t->all_numbers && !*end;
    return ACCEL_OK;
}

static enum accel_err add_row(struct accel_dataset *d, struct table *t)
{
    size_t row = (size_t)d->n_all, need;
    if (t->n_cell != t->n_column)
        return bad(t, t->n_cell, "the row has %zu cells, the first one %zu", t->n_cell,
                   t->n_column);
    if (__builtin_mul_overflow((row + 1) * t->n_feature, t->width, &need) ||
        !ACCEL_GROW(t->data, t->data_cap, need))
        return accel_fail_nomem();
    for (size_t i = 0; i < t->n_feature; i++)
        ACCEL_TRY(add_number(t, row, i));
    if (t->label != SIZE_MAX)
        ACCEL_TRY(add_label(d, t, row));
    d->n_all++;
    return ACCEL_OK;
}

static enum accel_err read_rows(struct accel_dataset *d, struct table *t)
{
    bool header = d->spec->header != 0;
    for (bool first = true;; first = false) {
        ACCEL_TRY(next_row(t));
        if (!t->n_cell)
            return ACCEL_OK;
        bool unknown = !t->n_column;
        if (unknown)
            ACCEL_TRY(choose_columns(d, t, header));
        if (!first || !header)
            ACCEL_TRY(add_row(d, t));
        else if (!unknown)
            ACCEL_TRY(check_titles(t));
        t->line++;
    }
}

static enum accel_err read_file(struct accel_dataset *d, const char *path)
{
    struct table *t = d->state;
    struct accel_file *f;
    ACCEL_TRY(accel_file_open(&f, path));
    t->path = path;
    t->line = 1;
    t->text = t->at = accel_realloc(NULL, f->size + 1, 1);
    enum accel_err err = t->text ? ACCEL_OK : accel_fail_nomem();
    if (!err)
        err = accel_file_read(f, 0, f->size, t->text);
    if (!err) {
        t->text[f->size] = '\0';
        if (strlen(t->text) != f->size)
            err = accel_fail(ACCEL_EMODEL, "%.1000s: it holds a zero byte", path);
    }
    if (!err && f->size >= 3 && memcmp(t->text, "\xef\xbb\xbf", 3) == 0)
        t->at += 3; /* a byte order mark */
    if (!err)
        err = read_rows(d, t);
    accel_free(t->text);
    t->text = NULL;
    accel_file_close(f);
    return err;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Labels that are names: their sorted order numbers them. */
static enum accel_err name_classes(struct accel_dataset *d, const struct table *t)
{
    size_t n = (size_t)d->n_all, n_name = 0;
    const char **name = ACCEL_NEW(&d->arena, const char *, n);
    if (!name)
        return accel_fail_nomem();
    memcpy(name, t->label_text, n * sizeof *name);
    qsort(name, n, sizeof *name, by_name);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || strcmp(name[i], name[n_name - 1]) != 0)
            name[n_name++] = name[i];
    for (size_t i = 0; i < n; i++) {
        const char **at = bsearch(&t->label_text[i], name, n_name, sizeof *name, by_name);
        ((int64_t *)d->label)[i] = at - name;
    }
    d->class_name = name;
    d->n_class_name = (int64_t)n_name;
    return ACCEL_OK;
}

static enum accel_err settle_labels(struct accel_dataset *d, const struct table *t)
{
    bool values = t->all_numbers && !t->all_whole;
    ACCEL_TRY(accel_dataset_new_labels(d, values ? ACCEL_LABEL_VALUE : ACCEL_LABEL_CLASS, 1));
    if (!t->all_numbers)
        return name_classes(d, t);
    for (int64_t i = 0; i < d->n_all; i++) {
        const char *text = t->label_text[i];
        if (values)
            ((float *)d->label)[i] = strtof(text, NULL);
        else if ((((int64_t *)d->label)[i] = strtoll(text, NULL, 10)) < 0)
            return accel_fail(ACCEL_EMODEL, "label %.100s of row %" PRId64 ": classes count from 0",
                              text, i + 1);
    }
    return ACCEL_OK;
}

static enum accel_err choose_type(struct table *t, const char *name)
{
    t->dtype = ACCEL_F32;
    for (int i = 0; name && i < ACCEL_N_DTYPES; i++) {
        const struct accel_dtype_info *info = accel_dtype_find(i);
        if (info->cls != ACCEL_CLASS_OTHER && info->bits >= 8 && strcmp(info->name, name) == 0) {
            t->dtype = (enum accel_dtype)i;
            name = NULL;
        }
    }
    t->width = (size_t)accel_dtype_find((int)t->dtype)->bits / 8;
    return name ? accel_fail(ACCEL_EARG,
                             "key 'types' is an element type such as float32 or int64, "
                             "not '%.100s'",
                             name)
                : ACCEL_OK;
}

static enum accel_err settle(struct accel_dataset *d)
{
    struct table *t = d->state;
    int64_t *dim = ACCEL_NEW(&d->arena, int64_t, 1);
    d->input = ACCEL_NEW(&d->arena, struct accel_field, 1);
    if (!dim || !d->input)
        return accel_fail_nomem();
    *dim = (int64_t)t->n_feature;
    *d->input = (struct accel_field){"", t->dtype, 1, dim, t->n_feature * t->width, t->data};
    d->n_input = 1;
    return t->label == SIZE_MAX || !d->n_all ? ACCEL_OK : settle_labels(d, t);
}

static enum accel_err open_csv(struct accel_dataset *d, enum accel_split split)
{
    (void)split;
    const char *path = d->spec->path;
    glob_t found;
    struct table *t = d->state = ACCEL_NEW(&d->arena, struct table, 1);
    if (!t)
        return accel_fail_nomem();
    t->all_whole = t->all_numbers = true;
    if (!path)
        return accel_fail(ACCEL_EARG, "csv:FILES: the files are missing");
    if (strncmp(path, "s3:", 3) == 0 || strncmp(path, "http:", 5) == 0 ||
        strncmp(path, "https:", 6) == 0)
        return accel_fail(ACCEL_ENOSUP, "'%.500s': files are read from this machine only", path);
    ACCEL_TRY(choose_type(t, d->spec->types));
    int code = glob(path, GLOB_NOCHECK, NULL, &found);
    if (code)
        return code == GLOB_NOSPACE ? accel_fail_nomem()
                                    : accel_fail(ACCEL_EIO, "cannot search for '%.1000s'", path);
    enum accel_err err = ACCEL_OK;
    for (size_t i = 0; !err && i < found.gl_pathc; i++)
        err = read_file(d, found.gl_pathv[i]);
    globfree(&found);
    return err ? err : settle(d);
}

static void close_set(struct accel_dataset *d)
{
    struct table *t = d->state;
    if (!t)
        return;
    accel_free(t->cell);
    accel_free(t->data);
    accel_free(t->label_text);
    accel_free(t->text);
}

static const char *const csv_keys[] = {"limit", "mean",     "std",    "shuffle", "batch",
                                       "label", "features", "header", "types",   NULL};

const struct accel_source accel_source_csv = {"csv", csv_keys, open_csv, NULL, close_set};
