/* feed.c - inputs come from files, or from a seed where none was given; the rest is the plan's
 * work. */
#include "tools/feed.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "graph/infer.h"
#include "onnx/onnx.h"

#define MAX_RANDOM ((uint64_t)1 << 30) /* bytes of one input */

/* --precision */
static enum accel_err choose_precision(struct accel_plan_options *with, const char *precision,
                                       struct accel_device *d)
{
    if (!precision || strcmp(precision, "f32") == 0)
        return ACCEL_OK;
    if (strcmp(precision, "bf16") != 0)
        return accel_fail(ACCEL_EDEVICE, "no kernels for precision %s are built in", precision);
    if (!d)
        return accel_fail(ACCEL_EDEVICE, "precision bf16 needs fast kernels, and there are none");
    with->bf16 = true;
    return d->check_bf16(d);
}

static enum accel_err plan_model(struct accel_feed *f, const struct accel_options *of,
                                 const struct accel_plan_options *opt)
{
    const char *optimize = of ? of->optimize : NULL;
    struct accel_plan_options with = *opt;
    if (!optimize || strcmp(optimize, "none") != 0)
        ACCEL_TRY(accel_device_cpu(&f->device));
    with.tune = optimize && strcmp(optimize, "max") == 0;
    ACCEL_TRY(choose_precision(&with, of ? of->precision : NULL, f->device));
    with.device = f->device;
    ACCEL_TRY(accel_plan_new(&f->plan, f->m, &with));
    f->n_in = accel_plan_n_inputs(f->plan);
    f->in = accel_calloc((size_t)f->n_in, sizeof *f->in);
    return f->in ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err open_model(struct accel_feed *f, struct accel_job *job,
                                 const struct accel_plan_options *opt)
{
    const struct accel_onnx_read_options how = {.allow_linked_data = job->opt.allow_linked_data};
    ACCEL_TRY(accel_onnx_read(&f->m, f->path, &how));
    ACCEL_TRY(accel_job_bind(job, f->m));
    ACCEL_TRY(accel_model_infer(f->m));
    accel_job_warn(job, &f->m->log);
    return plan_model(f, &job->opt, opt);
}

enum accel_err accel_feed_open(struct accel_feed *f, struct accel_job *job, const char *path,
                               const struct accel_plan_options *opt)
{
    *f = (struct accel_feed){.path = path};
    enum accel_err err = open_model(f, job, opt);
    if (!err)
        return ACCEL_OK;
    accel_feed_close(f);
    return err == ACCEL_EARG ? err : accel_fail_in(err, "%.1000s", path);
}

enum accel_err accel_feed_borrow(struct accel_feed *f, struct accel_model *m, const char *path,
                                 const struct accel_plan_options *opt)
{
    *f = (struct accel_feed){.path = path, .m = m, .borrowed = true};
    enum accel_err err = plan_model(f, NULL, opt);
    if (err)
        accel_feed_close(f);
    return err;
}

void accel_feed_close(struct accel_feed *f)
{
    for (int i = 0; f->in && i < f->n_in; i++)
        accel_npy_clear(&f->in[i]);
    accel_free(f->in);
    accel_plan_free(f->plan);
    if (f->device)
        f->device->free(f->device);
    if (!f->borrowed)
        accel_model_free(f->m);
    *f = (struct accel_feed){0};
}

/* The input called text[0 … n). */
static enum accel_err find_input(int *out, const struct accel_feed *f, const char *text, size_t n)
{
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)(n < 255 ? n : 255), text);
    struct accel_near near = accel_near_begin(name);
    for (*out = 0; *out < f->n_in; ++*out) {
        const char *have = accel_plan_input(f->plan, *out)->name;
        if (strlen(have) == n && strncmp(have, text, n) == 0)
            return ACCEL_OK;
        accel_near_try(&near, have);
    }
    if (near.best)
        return accel_fail(ACCEL_EARG, "the model has no input '%s', did you mean '%.200s'?", name,
                          near.best);
    return accel_fail(ACCEL_EARG, "the model has no input '%s'", name);
}

enum accel_err accel_feed_read(struct accel_feed *f, const struct accel_text_list *inputs)
{
    for (size_t i = 0; i < inputs->n; i++) {
        const char *text = inputs->at[i], *eq = strrchr(text, '=');
        int k;
        if (!eq || eq == text || !eq[1])
            return accel_fail(ACCEL_EARG, "option '--input' needs NAME=FILE.npy, not '%.200s'",
                              text);
        ACCEL_TRY(find_input(&k, f, text, (size_t)(eq - text)));
        accel_npy_clear(&f->in[k]);
        ACCEL_TRY(accel_npy_read(&f->in[k], eq + 1));
        ACCEL_TRY(accel_plan_set_input(f->plan, k, &f->in[k].a));
    }
    return ACCEL_OK;
}

/* Standard normal, by the polar form of Box and Muller's method. */
static double normal(struct accel_rng *r)
{
    for (;;) {
        double u = 2 * accel_rng_uniform(r) - 1, v = 2 * accel_rng_uniform(r) - 1;
        double s = u * u + v * v;
        if (s > 0 && s < 1)
            return u * sqrt(-2 * log(s) / s);
    }
}

static enum accel_err fill(struct accel_npy *to, const struct accel_value *v, struct accel_rng *r)
{
    enum accel_dtype dtype = v->declared_dtype;
    const struct accel_dtype_info *info = accel_dtype_find((int)dtype);
    int rank = v->shape.rank > 0 ? v->shape.rank : 0;
    uint64_t n = 1, size;
    if (!v->is_tensor || !info || info->cls == ACCEL_CLASS_OTHER || info->bits < 8)
        return accel_fail(ACCEL_ENOSUP, "input '%.200s' needs a file: no random values for type %s",
                          v->name, info ? info->name : "?");
    to->dim = accel_calloc((size_t)rank + 1, sizeof *to->dim);
    if (!to->dim)
        return accel_fail_nomem();
    for (int i = 0; i < rank; i++) {
        to->dim[i] = v->shape.dim[i].n >= 0 ? v->shape.dim[i].n : 1;
        if (__builtin_mul_overflow(n, (uint64_t)to->dim[i], &n))
            return accel_fail(ACCEL_ESHAPE, "input '%.200s' is too large", v->name);
    }
    if (!accel_dtype_size(dtype, n, &size) || n > INT64_MAX)
        return accel_fail(ACCEL_ESHAPE, "input '%.200s' is too large", v->name);
    if (size > MAX_RANDOM)
        return accel_fail(ACCEL_ENOSUP,
                          "input '%.200s' needs a file: %llu bytes of random values are too many",
                          v->name, (unsigned long long)size);
    to->data = accel_alloc_pages(size);
    if (!to->data)
        return accel_fail(ACCEL_ENOMEM, "no memory for input '%.200s' of %llu bytes", v->name,
                          (unsigned long long)size);
    for (uint64_t i = 0; i < n; i++) {
        double x = info->cls == ACCEL_CLASS_REAL ? normal(r)
                   : dtype == ACCEL_BOOL         ? (double)(accel_rng_next(r) >> 63)
                                                 : (double)(accel_rng_next(r) >> 62);
        accel_dtype_from_f64(dtype, &x, 1, to->data, i);
    }
    to->a = (struct accel_array){dtype, rank, to->dim, (int64_t)n, to->data};
    return ACCEL_OK;
}

enum accel_err accel_feed_random(struct accel_feed *f, uint64_t seed)
{
    struct accel_rng r = accel_rng_init(seed);
    for (int i = 0; i < f->n_in; i++) {
        if (f->in[i].data)
            continue;
        ACCEL_TRY(fill(&f->in[i], accel_plan_input(f->plan, i), &r));
        ACCEL_TRY(accel_plan_set_input(f->plan, i, &f->in[i].a));
    }
    return ACCEL_OK;
}

enum accel_err accel_feed_run(struct accel_feed *f, struct accel_log *log)
{
    enum accel_err err = accel_plan_run(f->plan);
    if (accel_plan_in_float(f->plan))
        accel_warn(log, "%.500s: float64 values are computed in float32", f->path);
    return err ? accel_fail_in(err, "%.1000s", f->path) : ACCEL_OK;
}

struct accel_range accel_range_of(const struct accel_array *a)
{
    struct accel_range r = {INFINITY, -INFINITY, 0, 0};
    double sum = 0;
    if (accel_dtype_find((int)a->dtype)->cls == ACCEL_CLASS_OTHER)
        return (struct accel_range){NAN, NAN, NAN, a->n};
    for (int64_t i = 0; i < a->n; i++) {
        double v;
        accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &v);
        if (isnan(v)) {
            r.n_nan++;
            continue;
        }
        sum += v;
        r.min = v < r.min ? v : r.min;
        r.max = v > r.max ? v : r.max;
    }
    r.mean = a->n > r.n_nan ? sum / (double)(a->n - r.n_nan) : NAN;
    if (a->n == r.n_nan)
        r.min = r.max = NAN;
    return r;
}
