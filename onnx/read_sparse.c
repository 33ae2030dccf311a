/* Sparse tensors are read into their dense form, since everything behind the reader works on dense
 * elements. The dense form can be far larger than the file, so what all of them may take together
 * is bounded by the file's size. */
#include "onnx/read_int.h"

#include <inttypes.h>
#include <string.h>

#define DENSE_FREE   (UINT64_C(64) << 20) /* bytes of dense forms that any file may ask for … */
#define DENSE_FACTOR 128u                 /* … and so many more for each byte of the file */
#define CHUNK        512u                 /* elements read at a time */

static enum accel_err child_tensor(struct accel_tensor **out, struct accel_read *r,
                                   struct accel_part *p, int field)
{
    struct accel_part *c = p->child;
    while (c && !(c->kind == ACCEL_PART_TENSOR && c->field == field))
        c = c->next;
    const char *what = field == READ_SPARSE_VALUES ? "values" : "indices";
    if (!c)
        return accel_fail(ACCEL_EMODEL, "it has no %s", what);
    enum accel_err err = accel_read_tensor(out, r, c);
    return err ? accel_fail_in(err, "its %s", what) : ACCEL_OK;
}

static enum accel_err budget(const struct accel_tensor *t, struct accel_read *r)
{
    uint64_t limit = DENSE_FREE + DENSE_FACTOR * r->x->file->size;
    if (t->size > limit - r->dense)
        return accel_fail(ACCEL_ENOSUP,
                          "its dense form of %" PRIu64 " bytes is too large for a file of %" PRIu64,
                          t->size, r->x->file->size);
    r->dense += t->size;
    return ACCEL_OK;
}

/* The flat position that row k of `index` names; -1: outside. */
static int64_t position(const struct accel_tensor *t, const int64_t *row, size_t width)
{
    if (width == 1 && t->rank != 1)
        return row[0] >= 0 && (uint64_t)row[0] < t->n ? row[0] : -1;
    int64_t at = 0;
    for (size_t i = 0; i < width; i++) {
        if (row[i] < 0 || row[i] >= t->dim[i])
            return -1;
        at = at * t->dim[i] + row[i];
    }
    return at;
}

static enum accel_err scatter(struct accel_tensor *t, const struct accel_tensor *values,
                              const struct accel_tensor *indices, uint8_t *dense)
{
    size_t bytes = (size_t)accel_dtype_find((int)t->dtype)->bits / 8;
    size_t width = indices->rank == 2 ? (size_t)indices->dim[1] : 1;
    int64_t index[CHUNK];
    uint8_t value[CHUNK * 16];
    int64_t last = -1;
    size_t step = CHUNK / (width ? width : 1);
    for (uint64_t k = 0; k < values->n; k += step) {
        uint64_t n = values->n - k < step ? values->n - k : step;
        ACCEL_TRY(accel_tensor_read(indices, k * width, n * width, index));
        ACCEL_TRY(accel_tensor_read(values, k, n, value));
        for (uint64_t i = 0; i < n; i++) {
            int64_t at = position(t, index + i * width, width);
            if (at < 0)
                return accel_fail(ACCEL_EMODEL,
                                  "its index number %" PRIu64 " (%" PRId64
                                  ") lies outside its dims",
                                  k + i, index[i * width]);
            if (at <= last)
                return accel_fail(ACCEL_EMODEL,
                                  "its index number %" PRIu64 " is not above the one before",
                                  k + i);
            last = at;
            memcpy(dense + (size_t)at * bytes, value + i * bytes, bytes);
        }
    }
    return ACCEL_OK;
}

static enum accel_err check_pair(const struct accel_tensor *t, const struct accel_tensor *values,
                                 const struct accel_tensor *indices)
{
    int bits = accel_dtype_find((int)values->dtype)->bits;
    if (bits < 8)
        return accel_fail(ACCEL_ENOSUP, "sparse tensors of type %s are not supported",
                          accel_dtype_find((int)values->dtype)->name);
    if (values->rank != 1 || indices->dtype != ACCEL_I64 || indices->rank < 1 ||
        indices->rank > 2 || indices->dim[0] != values->dim[0])
        return accel_fail(ACCEL_EMODEL, "its values and indices do not belong together");
    if (indices->rank == 2 && (indices->dim[1] != t->rank || t->rank > (int)CHUNK))
        return accel_fail(ACCEL_EMODEL, "its indices have %" PRId64 " coordinates, its dims %d",
                          indices->dim[1], t->rank);
    if (values->n > t->n)
        return accel_fail(ACCEL_EMODEL,
                          "its dims hold %" PRIu64 " elements, it has %" PRIu64 " values", t->n,
                          values->n);
    return ACCEL_OK;
}

enum accel_err accel_read_sparse(struct accel_tensor **out, struct accel_read *r,
                                 struct accel_part *p)
{
    struct accel_tensor *values = NULL, *indices = NULL;
    struct accel_tensor *t = ACCEL_NEW(&r->m->arena, struct accel_tensor, 1);
    if (!t)
        return accel_fail_nomem();
    t->name = "";
    *out = t; /* the caller's error names it */
    enum accel_err err = child_tensor(&values, r, p, READ_SPARSE_VALUES);
    if (values)
        t->name = values->name;
    if (err)
        return err;
    ACCEL_TRY(child_tensor(&indices, r, p, READ_SPARSE_INDICES));
    Onnx__SparseTensor *msg;
    ACCEL_TRY(accel_read_message(&msg, r, p, &onnx__sparse_tensor__descriptor));
    ACCEL_TRY(accel_read_dims(t, r, msg->dims, msg->n_dims, (int)values->dtype));
    ACCEL_TRY(check_pair(t, values, indices));
    if ((values->n && !values->file && !values->data) ||
        (indices->n && !indices->file && !indices->data))
        return ACCEL_OK; /* data were skipped: no bytes */
    ACCEL_TRY(budget(t, r));
    uint8_t *dense = ACCEL_NEW(&r->m->arena, uint8_t, t->size);
    if (!dense)
        return accel_fail_nomem();
    ACCEL_TRY(scatter(t, values, indices, dense));
    t->data = dense;
    t->sparse = true;
    t->origin = p;
    p->tensor = t;
    return ACCEL_OK;
}
