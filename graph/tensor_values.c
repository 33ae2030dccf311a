/* tensor_values.c - new elements are an edit like any other: what reads or writes the tensor gets
 * them, and the stored ones can still be seen by accel_tensor_scan(). */
#include "graph/tensor_values.h"

#include <string.h>

#include "base/alloc.h"

struct landing {
    double *to;
    enum accel_dtype dtype;
};

static enum accel_err land(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    const struct landing *l = ctx;
    accel_dtype_to_f64(l->dtype, elem, 0, (size_t)count, l->to + first);
    return ACCEL_OK;
}

static enum accel_err check_type(const struct accel_tensor *t)
{
    const struct accel_dtype_info *d = accel_dtype_find((int)t->dtype);
    return d && d->cls == ACCEL_CLASS_REAL && d->bits >= 8
               ? ACCEL_OK
               : accel_fail(ACCEL_ENOSUP, "'%.200s' holds %s", t->name ? t->name : "",
                            d ? d->name : "unknown elements");
}

enum accel_err accel_tensor_values(double **out, const struct accel_tensor *t)
{
    struct accel_buffer b;
    *out = NULL;
    ACCEL_TRY(check_type(t));
    ACCEL_TRY(accel_buffer_init(&b, 0));
    double *to = accel_calloc((size_t)t->n, sizeof *to);
    struct landing l = {to, t->dtype};
    enum accel_err err = to ? accel_tensor_stream(t, &b, land, &l) : accel_fail_nomem();
    accel_buffer_clear(&b);
    if (err)
        accel_free(to);
    else
        *out = to;
    return err;
}

struct values {
    struct accel_edit edit;
    enum accel_dtype dtype;
    unsigned char elem[];
};

static enum accel_err prepare(struct accel_edit *e, const struct accel_tensor *t, const void *whole,
                              void *scratch, size_t scratch_size)
{
    (void)t, (void)whole, (void)scratch, (void)scratch_size;
    e->prepared = true;
    return ACCEL_OK;
}

static enum accel_err apply(struct accel_edit *e, uint64_t first, uint64_t count, void *elem)
{
    const struct values *v = (struct values *)e;
    uint64_t from = 0, size = 0;
    (void)accel_dtype_size(v->dtype, first, &from); /* less than the whole, which was computed */
    (void)accel_dtype_size(v->dtype, count, &size);
    memcpy(elem, v->elem + from, (size_t)size);
    return ACCEL_OK;
}

static void edit_free(struct accel_edit *e)
{
    accel_free(e);
}

static const struct accel_edit_ops ops = {prepare, apply, edit_free};

enum accel_err accel_tensor_set_values(struct accel_tensor *t, const double *value)
{
    ACCEL_TRY(check_type(t));
    struct values *v = accel_calloc(sizeof *v + t->size, 1);
    if (!v)
        return accel_fail_nomem();
    v->edit = (struct accel_edit){.ops = &ops, .grain = 1};
    v->dtype = t->dtype;
    accel_dtype_from_f64(t->dtype, value, (size_t)t->n, v->elem, 0);
    accel_tensor_set_edit(t, &v->edit);
    return ACCEL_OK;
}

bool accel_tensor_has_values(const struct accel_tensor *t)
{
    return t->edit && t->edit->ops == &ops;
}
