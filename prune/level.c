/* Level pruning: single weights ranked by magnitude. Prepared, the edit is a comparison of each
 * element's key with one number; equal keys are decided by index, so that any run of elements can
 * be changed without having seen the others. */
#include <math.h>

#include "base/alloc.h"
#include "prune/mask.h"

struct level {
    struct accel_mask m;
    struct accel_choice choice;
};

static enum accel_err small_prepare(struct level *l, struct accel_source *src)
{
    uint64_t *key;
    ACCEL_TRY(accel_small_sort(&key, &l->m.key, src->whole, src->n));
    accel_mask_check(&l->m, accel_small_survey(l->m.row, &l->m.key, key));
    enum accel_err err = l->m.left ? ACCEL_OK : accel_small_choose(&l->choice, src, &l->m.key, key);
    l->m.row->threshold = l->m.left || err ? NAN : l->choice.largest;
    l->m.edit.prepared = !err;
    accel_free(key);
    return err;
}

static enum accel_err level_prepare(struct accel_edit *e, const struct accel_tensor *t,
                                    const void *whole, void *scratch, size_t scratch_size)
{
    struct level *l = (struct level *)e;
    if (e->prepared)
        return ACCEL_OK;
    enum accel_err err = ACCEL_OK;
    struct accel_source src = accel_mask_source(t, whole, scratch, scratch_size);
    struct accel_spectrum own = {0}, *s = NULL;
    if (whole && t->n <= ACCEL_SMALL && l->choice.rule != ACCEL_RULE_CUT)
        return small_prepare(l, &src);
    bool select = l->choice.rule != ACCEL_RULE_CUT && !l->m.left;
    if (!l->m.surveyed || select) {
        ACCEL_GOTO(err, accel_mask_room(&s, &l->m, &own));
        ACCEL_GOTO(err, accel_mask_survey(&l->m, s, &src));
    }
    if (!l->m.left) {
        ACCEL_GOTO(err, accel_choice_make(&l->choice, &src, &l->m.key, s));
        l->m.row->threshold = l->choice.largest;
    }
    e->prepared = true;
done:
    accel_spectrum_clear(&own);
    accel_buffer_clear(&src.room);
    return err;
}

static enum accel_err level_apply(struct accel_edit *e, uint64_t first, uint64_t count, void *elem)
{
    struct level *l = (struct level *)e;
    const struct accel_key *k = &l->m.key;
    struct accel_key_cut cut = l->choice.cut;
    if (l->m.left)
        return accel_mask_note(&l->m, first, count, elem,
                               accel_key_below(k, elem, first, count, 1));
    uint64_t head = cut.tie_end <= first ? 0 : cut.tie_end - first; /* equal ones go, too */
    if (head > count)
        head = count;
    uint64_t with = cut.key < ACCEL_KEY_ALL ? cut.key + 1 : cut.key;
    uint64_t zeros = accel_key_cut(k, elem, 0, first, head, with) +
                     accel_key_cut(k, elem, head, first + head, count - head, cut.key);
    return accel_mask_note(&l->m, first, count, elem, zeros);
}

static void level_free(struct accel_edit *e)
{
    accel_mask_free((struct accel_mask *)e);
}

static const struct accel_edit_ops level_ops = {level_prepare, level_apply, level_free};

enum accel_err accel_level_new(struct accel_mask **out, struct accel_choice **choice,
                               struct accel_prune_row *row, struct accel_log *log)
{
    ACCEL_TRY(accel_mask_new(out, sizeof(struct level), &level_ops, row, log));
    *choice = &((struct level *)*out)->choice;
    return ACCEL_OK;
}
