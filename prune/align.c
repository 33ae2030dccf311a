/* A bias that follows its weight: entry c goes when output channel c of the weight is all zero in
 * the file that is written. The weight's own edit decides what that is, so it is streamed once
 * more, through a buffer of its own; biases stand before or after their weights in files, and
 * neither order needs anything remembered. */
#include "prune/mask.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

struct align {
    struct accel_mask m;
    const struct accel_target *weight;
    struct accel_key weight_key;
    uint64_t n, inner; /* output channels; neighbours in the weight that share one */
    bool *alive;       /* [n] */
};

static enum accel_err alive_sink(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    struct align *a = ctx;
    uint64_t key[ACCEL_KEY_BLOCK];
    for (uint64_t i = 0; i < count; i += ACCEL_KEY_BLOCK) {
        size_t n = count - i < ACCEL_KEY_BLOCK ? (size_t)(count - i) : ACCEL_KEY_BLOCK;
        accel_key_load(&a->weight_key, elem, i, first + i, n, key);
        for (size_t j = 0; j < n; j++)
            if (key[j])
                a->alive[(first + i + j) / a->inner % a->n] = true;
    }
    return ACCEL_OK;
}

static enum accel_err align_prepare(struct accel_edit *e, const struct accel_tensor *t,
                                    const void *whole, void *scratch, size_t scratch_size)
{
    struct align *a = (struct align *)e;
    if (e->prepared)
        return ACCEL_OK;
    enum accel_err err;
    struct accel_source src = accel_mask_source(t, whole, scratch, scratch_size);
    struct accel_spectrum own = {0}, *s;
    struct accel_buffer room = {0};
    ACCEL_GOTO(err, accel_mask_room(&s, &a->m, &own));
    ACCEL_GOTO(err, accel_mask_survey(&a->m, s, &src));
    if (!a->m.left) {
        ACCEL_GOTO(err, accel_buffer_init(&room, 0));
        ACCEL_GOTO(err, accel_tensor_stream(a->weight->tensor, &room, alive_sink, a));
    }
    e->prepared = true;
done:
    accel_spectrum_clear(&own);
    accel_buffer_clear(&room);
    accel_buffer_clear(&src.room);
    return err;
}

static enum accel_err align_apply(struct accel_edit *e, uint64_t first, uint64_t count, void *elem)
{
    struct align *a = (struct align *)e;
    for (uint64_t i = 0; i < count && !a->m.left; i++)
        if (!a->alive[(first + i) % a->n])
            accel_key_clear(&a->m.key, elem, (size_t)i, first + i);
    return accel_mask_note(&a->m, first, count, elem,
                           accel_key_below(&a->m.key, elem, first, count, 1));
}

static void align_free(struct accel_edit *e)
{
    struct align *a = (struct align *)e;
    accel_free(a->alive);
    accel_mask_free(&a->m);
}

static const struct accel_edit_ops align_ops = {align_prepare, align_apply, align_free};

enum accel_err accel_align_new(struct accel_mask **out, struct accel_prune_row *row,
                               const struct accel_target *weight, int axis, struct accel_log *log)
{
    const struct accel_tensor *w = weight->tensor;
    struct accel_mask *m;
    ACCEL_TRY(accel_mask_new(&m, sizeof(struct align), &align_ops, row, log));
    struct align *a = (struct align *)m;
    a->weight = weight;
    a->weight_key = accel_key_of(w->dtype, false);
    a->n = (uint64_t)w->dim[axis];
    a->inner = 1;
    for (int d = axis + 1; d < w->rank; d++)
        a->inner *= (uint64_t)w->dim[d];
    a->alive = accel_calloc((size_t)a->n, sizeof *a->alive);
    if (!a->alive) {
        align_free(&m->edit);
        return accel_fail_nomem();
    }
    m->count_all = true;
    row->threshold = NAN;
    *out = m;
    return ACCEL_OK;
}
