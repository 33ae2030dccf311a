/* Elements are picked while they are read. With `axis` the last axis that lost indices, what is
 * left are blocks of bytes in ascending order: for each index of the axes before it, the kept
 * indices of `axis`. Blocks of a file come through a window, which is moved forward when a block
 * lies behind it; a block larger than the window is read straight to where it goes. */
#include "graph/selection.h"

#include <string.h>

#include "base/alloc.h"

#define WINDOW ((uint64_t)1 << 20)

struct pick {
    const struct accel_tensor *t;
    char *window;
    uint64_t first, end; /* stored bytes in the window */
    uint64_t total;      /* stored bytes of the whole tensor */
};

/* Stored bytes [at, at + n), n <= WINDOW, readable at *out. */
static enum accel_err see(const char **out, struct pick *p, uint64_t at, uint64_t n)
{
    if (p->t->data) {
        *out = (const char *)p->t->data + at;
        return ACCEL_OK;
    }
    if (at < p->first || at + n > p->end) {
        if (!p->window && !(p->window = accel_alloc_pages(WINDOW)))
            return accel_fail_nomem();
        p->first = at;
        p->end = p->total - at < WINDOW ? p->total : at + WINDOW;
        enum accel_err err =
            accel_file_read(p->t->file, p->t->offset + p->first, p->end - p->first, p->window);
        if (err) {
            p->first = p->end = 0;
            return err;
        }
    }
    *out = p->window + (at - p->first);
    return ACCEL_OK;
}

static enum accel_err copy(struct pick *p, uint64_t at, uint64_t n, char *to)
{
    const char *from;
    if (!p->t->data && n > WINDOW)
        return accel_file_read(p->t->file, p->t->offset + at, n, to);
    ACCEL_TRY(see(&from, p, at, n));
    memcpy(to, from, n);
    return ACCEL_OK;
}

/* Single elements: index list[i] of a row that begins at `row`. */
static enum accel_err gather(struct pick *p, uint64_t row, const int64_t *list, uint64_t n,
                             uint64_t width, char *to)
{
    for (uint64_t i = 0, m; i < n; i += m) {
        const char *from;
        uint64_t base = (uint64_t)list[i];
        for (m = 1; i + m < n && ((uint64_t)list[i + m] - base + 1) * width <= WINDOW; m++)
            ;
        ACCEL_TRY(
            see(&from, p, row + base * width, ((uint64_t)list[i + m - 1] - base + 1) * width));
        if (width == 4)
            for (uint64_t k = 0; k < m; k++)
                memcpy(to + (i + k) * 4, from + ((uint64_t)list[i + k] - base) * 4, 4);
        else
            for (uint64_t k = 0; k < m; k++)
                memcpy(to + (i + k) * width, from + ((uint64_t)list[i + k] - base) * width, width);
    }
    return ACCEL_OK;
}

/* Stored blocks before those of row r of the axes in front. */
static uint64_t row_start(const struct accel_tensor *t, uint64_t r)
{
    const struct accel_selection *s = t->selection;
    uint64_t stride = (uint64_t)s->dim[s->axis], at = 0;
    for (int a = s->axis - 1; a >= 0; a--) {
        uint64_t i = r % (uint64_t)t->dim[a];
        r /= (uint64_t)t->dim[a];
        at += (s->kept[a] ? (uint64_t)s->kept[a][i] : i) * stride;
        stride *= (uint64_t)s->dim[a];
    }
    return at;
}

/* From byte `skip` of index j on, n bytes of one row. */
static enum accel_err read_row(struct pick *p, uint64_t row, uint64_t j, uint64_t skip, uint64_t n,
                               char *to)
{
    const struct accel_selection *s = p->t->selection;
    const int64_t *list = s->kept[s->axis];
    uint64_t width = s->block;
    if (width <= 16 && !skip && n % width == 0)
        return gather(p, row * width, list + j, n / width, width, to);
    while (n) {
        uint64_t run = 1, left = n + skip;
        while (run * width < left && list[j + run] == list[j] + (int64_t)run)
            run++;
        uint64_t bytes = run * width < left ? run * width - skip : n;
        ACCEL_TRY(copy(p, (row + (uint64_t)list[j]) * width + skip, bytes, to));
        to += bytes;
        n -= bytes;
        j += run;
        skip = 0;
    }
    return ACCEL_OK;
}

enum accel_err accel_selection_read(const struct accel_tensor *t, uint64_t at, uint64_t size,
                                    void *to)
{
    const struct accel_selection *s = t->selection;
    struct pick p = {.t = t, .total = s->block};
    enum accel_err err = ACCEL_OK;
    for (int a = 0; a <= s->axis; a++)
        p.total *= (uint64_t)s->dim[a];
    uint64_t row_size = (uint64_t)t->dim[s->axis] * s->block;
    for (char *out = to; size && !err;) {
        uint64_t in_row = at % row_size, n = row_size - in_row < size ? row_size - in_row : size;
        err =
            read_row(&p, row_start(t, at / row_size), in_row / s->block, in_row % s->block, n, out);
        out += n;
        at += n;
        size -= n;
    }
    accel_free(p.window);
    return err;
}

/* ------------------------------------------------------------------ making one */

/* A list of a list: what was kept of what was kept. */
static const int64_t *compose(struct accel_arena *arena, const int64_t *old, const int64_t *kept,
                              int64_t n)
{
    int64_t *both = ACCEL_NEW(arena, int64_t, n + 1);
    for (int64_t i = 0; both && i < n; i++)
        both[i] = old[kept[i]];
    return both;
}

/* Elements smaller than a byte: one per byte, picked, and packed again. */
static enum accel_err pick_small(struct accel_tensor *t, struct accel_arena *arena,
                                 const struct accel_tensor *old)
{
    int bits = accel_dtype_find((int)t->dtype)->bits;
    struct accel_tensor wide = *t;
    uint8_t *in = accel_calloc(old->size + 1, 1), *bytes = accel_calloc(old->n + 1, 1);
    uint8_t *out = accel_arena_new(arena, t->size + 1, 1), *picked = accel_calloc(t->n + 1, 1);
    enum accel_err err = in && bytes && out && picked ? ACCEL_OK : accel_fail_nomem();
    if (err)
        goto done;
    ACCEL_GOTO(err, accel_tensor_read(old, 0, old->n, in));
    unsigned per = 8 / (unsigned)bits, low = (1u << bits) - 1;
    for (uint64_t i = 0; i < old->n; i++)
        bytes[i] = (uint8_t)(in[i / per] >> (i % per) * (unsigned)bits & low);
    wide.data = bytes;
    ACCEL_GOTO(err, accel_selection_read(&wide, 0, t->n, picked));
    for (uint64_t i = 0; i < t->n; i++)
        out[i / per] = (uint8_t)(out[i / per] | picked[i] << (i % per) * (unsigned)bits);
    t->data = out;
    t->file = NULL;
    t->selection = NULL;
done:
    accel_free(in);
    accel_free(bytes);
    accel_free(picked);
    return err;
}

enum accel_err accel_tensor_select(struct accel_tensor *t, struct accel_arena *arena,
                                   const int64_t *const *kept, const int64_t *n_kept)
{
    const struct accel_tensor old = *t;
    const struct accel_selection *before = t->selection;
    const struct accel_dtype_info *d = accel_dtype_find((int)t->dtype);
    struct accel_selection *s = ACCEL_NEW(arena, struct accel_selection, 1);
    const int64_t **lists = ACCEL_NEW(arena, const int64_t *, t->rank + 1);
    int64_t *dim = ACCEL_NEW(arena, int64_t, t->rank + 1);
    if (!s || !lists || !dim)
        return accel_fail_nomem();
    if (!d || !d->bits)
        return accel_fail(ACCEL_ENOSUP, "'%.200s' of %s cannot be cut", t->name,
                          d ? d->name : "an unknown type");
    *s = (struct accel_selection){before ? before->dim : t->dim, lists, -1, 0};
    t->n = 1;
    for (int a = 0; a < t->rank; a++) {
        const int64_t *was = before ? before->kept[a] : NULL;
        dim[a] = kept[a] ? n_kept[a] : t->dim[a];
        lists[a] = kept[a] && was ? compose(arena, was, kept[a], n_kept[a])
                   : kept[a]      ? kept[a]
                                  : was;
        if (kept[a] && was && !lists[a])
            return accel_fail_nomem();
        s->axis = lists[a] ? a : s->axis;
        t->n *= (uint64_t)dim[a];
    }
    if (s->axis < 0)
        return ACCEL_OK;
    t->dim = dim;
    t->changed = true;
    t->selection = s;
    s->block = d->bits < 8 ? 1 : (uint64_t)d->bits / 8;
    for (int a = s->axis + 1; a < t->rank; a++)
        s->block *= (uint64_t)s->dim[a];
    if (!accel_dtype_size(t->dtype, t->n, &t->size))
        return accel_fail_nomem();
    return d->bits < 8 ? pick_small(t, arena, &old) : ACCEL_OK;
}

void accel_tensor_replace(struct accel_tensor *t, const void *data)
{
    t->data = data;
    t->file = NULL;
    t->offset = 0;
    t->selection = NULL;
    t->changed = true;
}
