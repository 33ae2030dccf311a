/* An edit that blanks units: zeros, or the zero point of stored integers. With `axis` the last one
 * that lost units, everything behind an index of it goes or stays together, so elements are walked
 * in blocks. */
#include <string.h>

#include "base/alloc.h"
#include "prune/cut.h"
#include "prune/scale_map.h"

struct blank {
    struct accel_edit edit;
    int rank, axis;
    const int64_t *dim;
    uint64_t block; /* elements behind one index of `axis` */
    bool **gone;    /* [rank][dim] or NULL */
    int bits;
    uint8_t *fill; /* [] 8 bytes each: the stored element that stands for zero; NULL: zero bits */
    struct accel_scale_map map; /* which of them */
};

static bool row_gone(const struct blank *b, uint64_t row)
{
    for (int a = b->axis; a >= 0; a--) {
        uint64_t i = row % (uint64_t)b->dim[a];
        row /= (uint64_t)b->dim[a];
        if (b->gone[a] && b->gone[a][i])
            return true;
    }
    return false;
}

static void set_one(const struct blank *b, uint8_t *elem, uint64_t at, uint64_t i)
{
    const uint8_t *from = b->fill + accel_scale_index(&b->map, at) * 8;
    if (b->bits >= 8) {
        memcpy(elem + i * ((unsigned)b->bits / 8), from, (unsigned)b->bits / 8);
        return;
    }
    unsigned per = 8 / (unsigned)b->bits, shift = i % per * (unsigned)b->bits;
    unsigned mask = ((1u << b->bits) - 1) << shift;
    elem[i / per] = (uint8_t)((elem[i / per] & ~mask) | ((unsigned)*from << shift & mask));
}

/* Elements [i, i + n) of the piece, the first being element `at` of the tensor. */
static void blank_run(const struct blank *b, uint8_t *elem, uint64_t at, uint64_t i, uint64_t n)
{
    if (!b->fill && b->bits >= 8) {
        memset(elem + i * ((unsigned)b->bits / 8), 0, n * ((unsigned)b->bits / 8));
        return;
    }
    for (uint64_t k = 0; k < n; k++)
        set_one(b, elem, at + k, i + k);
}

static enum accel_err prepare(struct accel_edit *e, const struct accel_tensor *t, const void *whole,
                              void *scratch, size_t scratch_size)
{
    (void)t;
    (void)whole;
    (void)scratch;
    (void)scratch_size;
    e->prepared = true;
    return ACCEL_OK;
}

static enum accel_err apply(struct accel_edit *e, uint64_t first, uint64_t count, void *elem)
{
    const struct blank *b = (const struct blank *)e;
    for (uint64_t i = 0; i < count;) {
        uint64_t at = first + i, left = b->block - at % b->block;
        uint64_t n = left < count - i ? left : count - i;
        if (row_gone(b, at / b->block))
            blank_run(b, elem, at, i, n);
        i += n;
    }
    return ACCEL_OK;
}

static void blank_free(struct accel_edit *e)
{
    struct blank *b = (struct blank *)e;
    for (int a = 0; b->gone && a < b->rank; a++)
        accel_free(b->gone[a]);
    accel_free(b->gone);
    accel_free(b->fill);
    accel_scale_map_clear(&b->map);
    accel_free(b);
}

static const struct accel_edit_ops ops = {prepare, apply, blank_free};

/* The stored elements that stand for zero: zero points, or zero. */
static enum accel_err read_fill(struct blank *b, const struct accel_tensor *t,
                                const struct accel_scaling *scaling)
{
    const struct accel_tensor *zero = scaling->zero;
    if (!zero)
        return ACCEL_OK;
    ACCEL_TRY(accel_scale_map_init(&b->map, t, zero, scaling->axis));
    b->fill = accel_calloc(zero->n, 8);
    uint8_t *stored = accel_calloc(zero->size + 8, 1);
    enum accel_err err = b->fill && stored ? ACCEL_OK : accel_fail_nomem();
    if (!err)
        err = accel_tensor_read(zero, 0, zero->n, stored);
    unsigned bits = (unsigned)b->bits, low = (1u << (bits < 8 ? bits : 8)) - 1;
    for (uint64_t i = 0; !err && i < zero->n; i++)
        if (bits >= 8)
            memcpy(b->fill + i * 8, stored + i * (bits / 8), bits / 8);
        else
            b->fill[i * 8] = (uint8_t)(stored[i * bits / 8] >> i * bits % 8 & low);
    accel_free(stored);
    return err;
}

enum accel_err accel_blank_new(struct accel_edit **out, const struct accel_tensor *t,
                               const struct accel_cut *axis, const struct accel_scaling *scaling)
{
    struct blank *b = accel_calloc(1, sizeof *b);
    if (!b)
        return accel_fail_nomem();
    *b = (struct blank){.edit = {.ops = &ops, .grain = 1}, .rank = t->rank, .axis = -1, .block = 1};
    b->dim = t->dim;
    b->bits = accel_dtype_find((int)t->dtype)->bits;
    b->edit.grain = b->bits < 8 ? 8 / (unsigned)b->bits : 1;
    b->gone = accel_calloc((size_t)t->rank, sizeof *b->gone);
    enum accel_err err = b->gone ? ACCEL_OK : accel_fail_nomem();
    for (int a = 0; !err && a < t->rank; a++) {
        if (!axis[a].kept)
            continue;
        b->axis = a;
        b->gone[a] = accel_calloc((size_t)t->dim[a], sizeof **b->gone);
        if (!b->gone[a]) {
            err = accel_fail_nomem();
            break;
        }
        memset(b->gone[a], true, (size_t)t->dim[a]);
        for (int64_t i = 0; i < axis[a].now; i++)
            b->gone[a][axis[a].kept[i]] = false;
    }
    for (int a = t->rank - 1; !err && a > b->axis; a--)
        b->block *= (uint64_t)t->dim[a];
    if (!err && scaling)
        err = read_fill(b, t, scaling);
    if (err) {
        blank_free(&b->edit);
        return err;
    }
    *out = &b->edit;
    return ACCEL_OK;
}
