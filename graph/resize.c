/* What operators ask and do when their operands were cut. Attributes are edited in place; the two
 * repairs that touch the graph around the node are the caller's. */
#include "graph/resize.h"

#include <string.h>

#include "graph/attr.h"
#include "graph/constprop.h"
#include "graph/links.h"

static const struct accel_cut *cut_of(const struct accel_resize *r, int slot, int axis)
{
    if (axis < 0 || axis >= accel_slot_rank(r->node, slot) || !r->cut[slot])
        return NULL;
    return &r->cut[slot][axis];
}

int64_t accel_resize_was(const struct accel_resize *r, int slot, int axis)
{
    const struct accel_cut *c = cut_of(r, slot, axis);
    return c ? c->was : -1;
}

int64_t accel_resize_now(const struct accel_resize *r, int slot, int axis)
{
    const struct accel_cut *c = cut_of(r, slot, axis);
    return c ? c->now : -1;
}

bool accel_resize_hit(const struct accel_resize *r, int slot, int axis)
{
    const struct accel_cut *c = cut_of(r, slot, axis);
    return c && c->now != c->was;
}

bool accel_resize_hit_any(const struct accel_resize *r, int slot)
{
    for (int axis = 0; axis < accel_slot_rank(r->node, slot); axis++)
        if (accel_resize_hit(r, slot, axis))
            return true;
    return false;
}

int64_t accel_resize_kept(const struct accel_resize *r, int slot, int axis, int64_t i)
{
    const struct accel_cut *c = cut_of(r, slot, axis);
    return c && c->kept && i >= 0 && i < c->now ? c->kept[i] : i;
}

int64_t accel_resize_before(const struct accel_resize *r, int slot, int axis, int64_t at)
{
    const struct accel_cut *c = cut_of(r, slot, axis);
    if (!c)
        return at;
    if (!c->kept)
        return at < 0 ? 0 : at > c->was ? c->was : at;
    int64_t lo = 0, hi = c->now;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (c->kept[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

enum accel_err accel_resize_attr_int(struct accel_resize *r, const char *name, int64_t v)
{
    const struct accel_attr *a = accel_attr_find(r->node, name);
    if (a && a->kind == ACCEL_ATTR_INT && a->i == v)
        return ACCEL_OK;
    r->changed = true;
    return accel_attr_set_int(r->node, name, v);
}

enum accel_err accel_resize_attr_ints(struct accel_resize *r, const char *name, const int64_t *v,
                                      size_t n)
{
    const struct accel_attr *a = accel_attr_find(r->node, name);
    if (a && a->kind == ACCEL_ATTR_INTS && a->n == n &&
        (n == 0 || memcmp(a->ints, v, n * sizeof *v) == 0))
        return ACCEL_OK;
    r->changed = true;
    return accel_attr_set_ints(r->node, name, v, n);
}

enum accel_err accel_resize_attr_drop(struct accel_resize *r, const char *name)
{
    if (!accel_attr_find(r->node, name))
        return ACCEL_OK;
    r->changed = true;
    return accel_attr_drop(r->node, name);
}

enum accel_err accel_resize_ints(struct accel_resize *r, int slot, const int64_t *want, int64_t n,
                                 int64_t open)
{
    struct accel_value *v = accel_slot_value(r->node, slot);
    const int64_t *old;
    int64_t n_old;
    if (v &&
        v->tensor) { /* a stored one is looked at here, so that callers see real changes only */
        ACCEL_TRY(accel_known_ints(&old, &n_old, v));
        bool same = old && n_old == n;
        for (int64_t i = 0; same && i < n; i++)
            same = want[i] == old[i] || want[i] == ACCEL_SIZE_VARIES;
        if (same)
            return ACCEL_OK;
    }
    return r->ints(r, slot, want, n, open);
}

enum accel_err accel_resize_scale(struct accel_resize *r, int slot, double factor)
{
    return factor < 1 || factor > 1 ? r->scale(r, slot, factor) : ACCEL_OK;
}
