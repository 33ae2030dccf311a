/* batches.c - which field goes into which input: by name, or the only one into the only one. What
 * fits only in another form (flat samples, axes of size 1, another type of real numbers) is given
 * that form here, so that the plan's own checks stay strict. */
#include "tools/batches.h"

#include <string.h>

#include "base/alloc.h"

/* A name as a file may carry it: accel-run -o writes outputs under such names. */
static bool is_name_of(const char *field, const char *input)
{
    size_t n = strlen(input);
    if (strlen(field) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = input[i];
        bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     c == '.' || c == '-';
        if (field[i] != c && (plain || field[i] != '_'))
            return false;
    }
    return true;
}

static enum accel_err find_field(const struct accel_field **out, size_t *index,
                                 const struct accel_batches *b, const struct accel_feed *f, int i)
{
    const struct accel_dataset *d = b->set;
    const char *name = accel_plan_input(f->plan, i)->name;
    struct accel_near near = accel_near_begin(name);
    for (size_t k = 0; k < d->n_input; k++) {
        bool any = !*d->input[k].name && d->n_input == 1 && f->n_in == 1;
        if (any || is_name_of(d->input[k].name, name)) {
            *out = &d->input[k];
            *index = k;
            return ACCEL_OK;
        }
        accel_near_try(&near, d->input[k].name);
    }
    if (near.best && *near.best)
        return accel_fail(
            ACCEL_EARG, "%.500s: input '%.200s' gets nothing from the data set, which has '%.200s'",
            f->path, name, near.best);
    return accel_fail(ACCEL_EARG, "%.500s: input '%.200s' gets nothing from the data set", f->path,
                      name);
}

/* The batch that the model insists on, or -1. */
static int64_t fixed_batch(const struct accel_feed *f)
{
    for (int i = 0; i < f->n_in; i++) {
        const struct accel_value *v = accel_plan_input(f->plan, i);
        if (v->shape.rank > 0 && v->shape.dim[0].n > 0)
            return v->shape.dim[0].n;
    }
    return -1;
}

static enum accel_err read_spec(struct accel_batches *b, struct accel_job *job, const char *text)
{
    if (*text != '{') {
        enum accel_err err = accel_data_spec_parse(&b->spec, text);
        return err == ACCEL_EARG ? accel_fail_in(err, "--data") : err;
    }
    ACCEL_TRY(accel_config_read(&b->config, text));
    b->config->name = "--data";
    (void)job;
    return accel_data_spec_read(&b->spec, b->config->root);
}

static enum accel_err open_set(struct accel_batches *b, struct accel_job *job, const char *text,
                               enum accel_split split, const struct accel_feed *f, int64_t batch)
{
    const struct accel_field *field;
    size_t k;
    ACCEL_TRY(read_spec(b, job, text));
    b->spec->seed = (uint64_t)job->opt.seed;
    ACCEL_TRY(accel_dataset_open(&b->set, b->spec, split, &job->log));
    for (int i = 0; i < f->n_in; i++)
        ACCEL_TRY(find_field(&field, &k, b, f, i));
    int64_t fixed = fixed_batch(f), asked = b->spec->batch;
    if (fixed > 0 && asked && asked != fixed)
        return accel_fail(ACCEL_EARG, "%.500s takes batches of %lld, not batch=%lld", f->path,
                          (long long)fixed, (long long)asked);
    b->fixed = fixed > 0;
    b->size = fixed > 0 ? fixed : asked ? asked : batch;
    b->size = b->size > b->set->n && !b->fixed ? b->set->n : b->size;
    b->to = accel_calloc(b->set->n_input, sizeof *b->to);
    b->label = accel_calloc((size_t)b->size * (size_t)(b->set->label_width + 1), sizeof(int64_t));
    if (!b->to || !b->label)
        return accel_fail_nomem();
    for (size_t i = 0; i < b->set->n_input; i++) {
        size_t size;
        if (__builtin_mul_overflow(b->set->input[i].size, (size_t)b->size, &size) ||
            !(b->to[i] = accel_alloc_pages(size + 1)))
            return accel_fail_nomem();
    }
    return ACCEL_OK;
}

enum accel_err accel_batches_open(struct accel_batches *b, struct accel_job *job, const char *text,
                                  enum accel_split split, const struct accel_feed *f, int64_t batch)
{
    *b = (struct accel_batches){0};
    enum accel_err err = open_set(b, job, text, split, f, batch);
    if (err)
        accel_batches_close(b);
    return err;
}

static void clear_arrays(struct accel_batches *b)
{
    for (int i = 0; b->array && i < b->n_array; i++)
        accel_npy_clear(&b->array[i]);
    accel_free(b->array);
    b->array = NULL;
    b->n_array = 0;
}

void accel_batches_close(struct accel_batches *b)
{
    clear_arrays(b);
    for (size_t i = 0; b->to && i < b->set->n_input; i++)
        accel_free(b->to[i]);
    accel_free(b->to);
    accel_free(b->label);
    accel_dataset_close(b->set);
    accel_data_spec_free(b->spec);
    accel_config_free(b->config);
    *b = (struct accel_batches){0};
}

void accel_batches_rewind(struct accel_batches *b)
{
    b->next = b->n = 0;
}

enum accel_err accel_batches_next(struct accel_batches *b)
{
    int64_t left = b->set->n - b->next;
    b->n = left < b->size ? left : b->size;
    if (!b->n)
        return ACCEL_OK;
    ACCEL_TRY(accel_dataset_read(b->set, b->next, b->n, b->to, b->label));
    b->next += b->n;
    for (size_t i = 0; b->fixed && i < b->set->n_input; i++) {
        size_t size = b->set->input[i].size;
        char *at = b->to[i];
        for (int64_t k = b->n; k < b->size; k++)
            memcpy(at + (size_t)k * size, at + (size_t)(b->n - 1) * size, size);
    }
    return ACCEL_OK;
}

/* True when a model's sizes (from axis 1 on) hold a sample of this shape, axes of size 1 aside, or
 * flat. */
static bool fits(const struct accel_value *v, const struct accel_field *f)
{
    const struct accel_shape *want = &v->declared;
    int64_t count = 1;
    int k = 1;
    for (int i = 0; i < f->rank; i++) {
        count *= f->dim[i];
        if (f->dim[i] == 1)
            continue;
        while (k < want->rank && want->dim[k].n == 1)
            k++;
        if (k < want->rank && want->dim[k].n == f->dim[i])
            k++;
        else
            k = want->rank + 1;
    }
    while (k < want->rank && want->dim[k].n == 1)
        k++;
    return k == want->rank || (want->rank == 2 && want->dim[1].n == count);
}

/* Sizes of input v for n samples of field f: the model's own where they hold the same, else the
 * field's, and the plan says what is wrong. */
static void shape_of(struct accel_npy *to, const struct accel_value *v, const struct accel_field *f,
                     int64_t n)
{
    bool own = v->declared.rank > 0 && fits(v, f);
    to->a.rank = own ? v->declared.rank : f->rank + 1;
    to->dim[0] = to->a.n = n;
    for (int i = 1; i < to->a.rank; i++)
        to->dim[i] = own ? v->declared.dim[i].n : f->dim[i - 1];
    for (int i = 0; i < f->rank; i++)
        to->a.n *= f->dim[i];
    to->a.dim = to->dim;
}

static enum accel_err convert(struct accel_npy *to, const struct accel_value *v, const void *from,
                              enum accel_dtype have)
{
    enum accel_dtype want = v->declared_dtype;
    bool reals = want != ACCEL_UNDEFINED && accel_dtype_find((int)want)->cls == ACCEL_CLASS_REAL &&
                 accel_dtype_find((int)want)->bits >= 8 &&
                 accel_dtype_find((int)have)->cls == ACCEL_CLASS_REAL;
    to->a.dtype = have;
    to->a.data = (void *)(uintptr_t)from;
    uint64_t size;
    if (!reals || want == have)
        return ACCEL_OK;
    if (!accel_dtype_size(want, (uint64_t)to->a.n, &size) || !(to->data = accel_alloc_pages(size)))
        return accel_fail_nomem();
    for (int64_t i = 0; i < to->a.n; i++) {
        double x;
        accel_dtype_to_f64(have, from, (size_t)i, 1, &x);
        accel_dtype_from_f64(want, &x, 1, to->data, (size_t)i);
    }
    to->a.dtype = want;
    to->a.data = to->data;
    return ACCEL_OK;
}

enum accel_err accel_batches_feed(struct accel_batches *b, struct accel_feed *f)
{
    clear_arrays(b);
    b->array = accel_calloc((size_t)f->n_in, sizeof *b->array);
    if (!b->array)
        return accel_fail_nomem();
    b->n_array = f->n_in;
    for (int i = 0; i < f->n_in; i++) {
        const struct accel_value *v = accel_plan_input(f->plan, i);
        const struct accel_field *field;
        struct accel_npy *to = &b->array[i];
        size_t k;
        ACCEL_TRY(find_field(&field, &k, b, f, i));
        int rank = v->declared.rank > field->rank + 1 ? v->declared.rank : field->rank + 1;
        to->dim = accel_calloc((size_t)rank, sizeof *to->dim);
        if (!to->dim)
            return accel_fail_nomem();
        shape_of(to, v, field, b->fixed ? b->size : b->n);
        ACCEL_TRY(convert(to, v, b->to[k], field->dtype));
        ACCEL_TRY(accel_plan_set_input(f->plan, i, &to->a));
    }
    return ACCEL_OK;
}
