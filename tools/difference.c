/* difference.c - outputs are found by name. Values inside are copied while A runs and compared
 * while B runs, so that B's are never held; a batch is done before the next one begins. */
#include "tools/difference.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "tools/table.h"

/* A value of A, kept until B has made its own. */
struct layer {
    struct accel_difference d;
    struct accel_npy copy;
    size_t cap; /* bytes of copy.data */
    int rank_cap;
    bool common; /* B has it too */
};

struct accel_layers {
    struct layer **at; /* [n] in A's order */
    size_t n, cap;
    struct accel_map by_name;
    double atol, rtol;
};

void accel_differences_clear(struct accel_differences *d)
{
    accel_free(d->out);
    accel_free(d->layer);
    accel_arena_clear(&d->arena);
    *d = (struct accel_differences){0};
}

static const char *copy_name(struct accel_differences *d, const char *name)
{
    return accel_arena_strndup(&d->arena, name, strlen(name));
}

static double element(const struct accel_array *a, int64_t i)
{
    double v;
    accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &v);
    return v;
}

/* Index of the largest of `n` elements from `first` on. */
static int64_t top(const struct accel_array *a, int64_t first, int64_t n)
{
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (element(a, first + k) > element(a, first + best))
            best = k;
    return best;
}

static bool is_same_shape(const struct accel_array *a, const struct accel_array *b)
{
    bool same = a->rank == b->rank;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dim[i] == b->dim[i];
    return same;
}

/* Adds the first n elements of two arrays of one shape, and their first `rows` samples. */
static void measure(struct accel_difference *d, const struct accel_array *a,
                    const struct accel_array *b, int64_t n, double atol, double rtol)
{
    bool limited = isfinite(atol) || isfinite(rtol);
    d->n += n;
    for (int64_t i = 0; i < n; i++) {
        double x = element(a, i), y = element(b, i);
        double gap = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
        if (isnan(gap))
            gap = INFINITY;
        d->abs = gap > d->abs ? gap : d->abs;
        d->max_abs = fabs(x) > d->max_abs ? fabs(x) : d->max_abs;
        if (x != 0 && gap / fabs(x) > d->rel)
            d->rel = gap / fabs(x);
        double allowed = (isfinite(atol) ? atol : 0) + (isfinite(rtol) ? rtol : 0) * fabs(x);
        d->n_past += limited && gap > allowed;
    }
    if (a->rank != 2 || a->dim[1] < 2)
        return;
    for (int64_t r = 0; r < n / a->dim[1]; r++, d->rows++)
        d->agree += top(a, r * a->dim[1], a->dim[1]) == top(b, r * a->dim[1], a->dim[1]);
}

static bool is_numeric(const struct accel_array *a)
{
    return accel_dtype_find((int)a->dtype)->cls != ACCEL_CLASS_OTHER;
}

/* Elements of the first `samples` of an array with `batch` on its first axis; all of it when
 * samples is 0 or it is no batch. */
static int64_t count_of(const struct accel_array *a, int64_t samples, int64_t batch)
{
    bool part = samples && samples < batch && a->rank && a->dim[0] == batch;
    return part ? a->n / batch * samples : a->n;
}

static enum accel_err find_output(const struct accel_array **out, const struct accel_feed *b,
                                  const char *name)
{
    for (int i = 0; i < accel_plan_n_outputs(b->plan); i++)
        if (strcmp(accel_plan_output_value(b->plan, i)->name, name) == 0) {
            *out = accel_plan_output(b->plan, i);
            return ACCEL_OK;
        }
    return accel_fail(ACCEL_EMODEL, "%.500s: it has no output '%.200s'", b->path, name);
}

static enum accel_err add_outputs(struct accel_differences *d, const struct accel_feed *a,
                                  const struct accel_feed *b, int64_t samples, int64_t batch)
{
    for (int i = 0; i < d->n_out; i++) {
        const char *name = d->out[i].name;
        const struct accel_array *x = accel_plan_output(a->plan, i), *y;
        ACCEL_TRY(find_output(&y, b, name));
        if (!is_numeric(x) || !is_numeric(y))
            return accel_fail(ACCEL_ENOSUP, "output '%.200s' has no numbers", name);
        if (!is_same_shape(x, y))
            return accel_fail(ACCEL_ESHAPE,
                              "output '%.200s' has %lld elements in A, %lld in B, or another shape",
                              name, (long long)x->n, (long long)y->n);
        measure(&d->out[i], x, y, count_of(x, samples, batch), d->atol, d->rtol);
    }
    return ACCEL_OK;
}

/* B gets A's inputs, by name. */
static enum accel_err share_inputs(const struct accel_feed *a, struct accel_feed *b)
{
    for (int i = 0; i < b->n_in; i++) {
        const char *name = accel_plan_input(b->plan, i)->name;
        int k = 0;
        while (k < a->n_in && strcmp(accel_plan_input(a->plan, k)->name, name) != 0)
            k++;
        if (k == a->n_in)
            return accel_fail(ACCEL_EMODEL, "%.500s: input '%.200s' is not one of %.500s", b->path,
                              name, a->path);
        ACCEL_TRY(accel_plan_set_input(b->plan, i, &a->in[k].a));
    }
    return ACCEL_OK;
}

enum accel_err accel_layers_new(struct accel_layers **out)
{
    *out = accel_calloc(1, sizeof **out);
    return *out ? ACCEL_OK : accel_fail_nomem();
}

void accel_layers_free(struct accel_layers *l)
{
    for (size_t i = 0; l && i < l->n; i++) {
        accel_npy_clear(&l->at[i]->copy);
        accel_free(l->at[i]);
    }
    if (!l)
        return;
    accel_map_clear(&l->by_name);
    accel_free(l->at);
    accel_free(l);
}

static struct layer *layer_of(struct accel_layers *l, const char *name)
{
    struct layer *y = accel_map_find(&l->by_name, name);
    if (y)
        return y;
    y = accel_calloc(1, sizeof *y);
    if (!y || !ACCEL_GROW(l->at, l->cap, l->n + 1)) {
        accel_free(y);
        return NULL;
    }
    y->d.name = name;
    l->at[l->n++] = y;
    return accel_map_put(&l->by_name, name, y) ? y : NULL;
}

static enum accel_err keep(struct layer *y, const struct accel_array *a)
{
    uint64_t size;
    if (!accel_dtype_size(a->dtype, (uint64_t)a->n, &size))
        return accel_fail(ACCEL_ENOSUP, "value '%.200s' has no size", y->d.name);
    if (size > y->cap || !y->copy.data) {
        void *more = accel_alloc_pages(size);
        if (!more)
            return accel_fail_nomem();
        accel_free(y->copy.data);
        y->copy.data = more;
        y->cap = size;
    }
    if (a->rank >= y->rank_cap || !y->copy.dim) {
        int64_t *more = accel_realloc(y->copy.dim, (size_t)a->rank + 1, sizeof *more);
        if (!more)
            return accel_fail_nomem();
        y->copy.dim = more;
        y->rank_cap = a->rank + 1;
    }
    if (size)
        memcpy(y->copy.data, a->data, size);
    if (a->rank)
        memcpy(y->copy.dim, a->dim, (size_t)a->rank * sizeof *a->dim);
    y->copy.a = (struct accel_array){a->dtype, a->rank, y->copy.dim, a->n, y->copy.data};
    return ACCEL_OK;
}

enum accel_err accel_layers_keep(void *ctx, const struct accel_value *v,
                                 const struct accel_array *a)
{
    struct accel_layers *l = ctx;
    if (!is_numeric(a) || !*v->name)
        return ACCEL_OK;
    struct layer *y = layer_of(l, v->name);
    return y ? keep(y, a) : accel_fail_nomem();
}

enum accel_err accel_layers_match(void *ctx, const struct accel_value *v,
                                  const struct accel_array *a)
{
    struct accel_layers *l = ctx;
    struct layer *y = is_numeric(a) ? accel_map_find(&l->by_name, v->name) : NULL;
    if (!y)
        return ACCEL_OK;
    y->common = true;
    if (is_same_shape(&y->copy.a, a))
        measure(&y->d, &y->copy.a, a, a->n, l->atol, l->rtol);
    else
        y->d.apart = true;
    return ACCEL_OK;
}

static enum accel_err collect_layers(struct accel_differences *d, const struct accel_layers *l)
{
    d->layer = accel_calloc(l->n, sizeof *d->layer);
    if (!d->layer)
        return accel_fail_nomem();
    for (size_t i = 0; i < l->n; i++) {
        struct accel_difference *y = &d->layer[d->n_layer];
        if (!l->at[i]->common)
            continue;
        *y = l->at[i]->d;
        if (!(y->name = copy_name(d, y->name)))
            return accel_fail_nomem();
        d->n_layer++;
    }
    return ACCEL_OK;
}

static enum accel_err run_both(struct accel_differences *d, struct accel_log *log,
                               struct accel_feed *a, struct accel_feed *b, int64_t samples,
                               int64_t batch)
{
    ACCEL_TRY(accel_feed_run(a, log));
    ACCEL_TRY(accel_feed_run(b, log));
    return add_outputs(d, a, b, samples, batch);
}

enum accel_err accel_differences_run(struct accel_differences *d, struct accel_log *log,
                                     struct accel_feed *a, struct accel_feed *b,
                                     struct accel_batches *data, struct accel_layers *l)
{
    d->n_out = accel_plan_n_outputs(a->plan);
    d->out = accel_calloc((size_t)d->n_out, sizeof *d->out);
    if (!d->out)
        return accel_fail_nomem();
    for (int i = 0; i < d->n_out; i++)
        if (!(d->out[i].name = copy_name(d, accel_plan_output_value(a->plan, i)->name)))
            return accel_fail_nomem();
    if (l) {
        l->atol = d->atol;
        l->rtol = d->rtol;
    }
    if (!data) {
        ACCEL_TRY(share_inputs(a, b));
        ACCEL_TRY(run_both(d, log, a, b, 0, 0));
        return l ? collect_layers(d, l) : ACCEL_OK;
    }
    for (;;) {
        ACCEL_TRY(accel_batches_next(data));
        if (!data->n)
            return l ? collect_layers(d, l) : ACCEL_OK;
        ACCEL_TRY(accel_batches_feed(data, a));
        ACCEL_TRY(accel_feed_run(a, log));
        ACCEL_TRY(accel_batches_feed(data, b));
        ACCEL_TRY(accel_feed_run(b, log));
        ACCEL_TRY(add_outputs(d, a, b, data->n, data->fixed ? data->size : data->n));
        d->samples += data->n;
    }
}

enum accel_err accel_differences_check(const struct accel_differences *d)
{
    for (int i = 0; i < d->n_out; i++)
        if (d->out[i].n_past)
            return accel_fail(ACCEL_ETARGET,
                              "output '%.200s': %lld of %lld elements differ by more than allowed, "
                              "the largest difference is %.3g",
                              d->out[i].name, (long long)d->out[i].n_past, (long long)d->out[i].n,
                              d->out[i].abs);
    return ACCEL_OK;
}

static void show(struct accel_str *out, const struct accel_column *columns,
                 const struct accel_difference *d, int n, int width, bool color)
{
    struct accel_table t;
    char count[32];
    accel_table_init(&t, columns);
    for (int i = 0; i < n; i++) {
        accel_table_add(&t, "%s", d[i].name);
        if (d[i].apart) {
            for (int k = 0; k < 4; k++)
                accel_table_add(&t, "-");
            accel_table_add(&t, "other shape");
            continue;
        }
        accel_table_add(&t, "%s", accel_text_count(count, d[i].n));
        accel_table_add(&t, "%.3g", d[i].abs);
        accel_table_add(&t, "%.3g", d[i].rel);
        accel_table_add(&t, "%.3g", d[i].max_abs);
        if (d[i].rows)
            accel_table_add(&t, "%lld of %lld", (long long)d[i].agree, (long long)d[i].rows);
        else
            accel_table_add(&t, "-");
    }
    accel_table_text(out, &t, width, color);
    out->failed = out->failed || t.failed;
    accel_table_clear(&t);
}

void accel_differences_text(struct accel_str *out, const struct accel_differences *d, int width,
                            bool color)
{
    static const struct accel_column outputs[] = {{"output", false, true},
                                                  {"elements", true, false},
                                                  {"abs", true, false},
                                                  {"rel", true, false},
                                                  {"largest", true, false},
                                                  {"argmax equal", true, false},
                                                  {0}};
    static const struct accel_column layers[] = {{"value", false, true},
                                                 {"elements", true, false},
                                                 {"abs", true, false},
                                                 {"rel", true, false},
                                                 {"largest", true, false},
                                                 {"argmax equal", true, false},
                                                 {0}};
    if (d->n_layer) {
        show(out, layers, d->layer, d->n_layer, width, color);
        accel_str_add(out, "\n");
    }
    show(out, outputs, d->out, d->n_out, width, color);
}

static void json_one(struct accel_json *j, const char *key, const struct accel_difference *d)
{
    accel_json_object(j, key);
    if (!key)
        accel_json_text(j, "name", d->name);
    if (d->apart)
        accel_json_bool(j, "same_shape", false);
    accel_json_int(j, "elements", d->n);
    accel_json_number(j, "max_abs_difference", d->abs);
    accel_json_number(j, "max_rel_difference", d->rel);
    accel_json_number(j, "max_abs_value", d->max_abs);
    if (d->rows) {
        accel_json_int(j, "samples", d->rows);
        accel_json_int(j, "argmax_equal", d->agree);
    }
    accel_json_end(j, '}');
}

void accel_differences_json(struct accel_json *j, const struct accel_differences *d)
{
    accel_json_object(j, "outputs");
    for (int i = 0; i < d->n_out; i++)
        json_one(j, d->out[i].name, &d->out[i]);
    accel_json_end(j, '}');
    if (!d->layer)
        return;
    accel_json_array(j, "layers");
    for (int i = 0; i < d->n_layer; i++)
        json_one(j, NULL, &d->layer[i]);
    accel_json_end(j, ']');
}
