/* Between two measured points the drop is taken to be linear; measured drops may fall again
 * (noise), so a curve is followed up to where it first passes the limit. */
#include "prune/curve.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

static enum accel_err number_of(double *out, const struct accel_config *map, const char *key)
{
    const struct accel_config *k = accel_config_find(map, key);
    if (!k || (k->kind != ACCEL_CONFIG_FLOAT && k->kind != ACCEL_CONFIG_INT))
        return accel_config_fail(k ? k : map, false, "a sensitivity file has a number '%s' here",
                                 key);
    *out = k->number;
    return ACCEL_OK;
}

static enum accel_err list_of(const struct accel_config **out, const struct accel_config *map,
                              const char *key)
{
    const struct accel_config *k =
        map->kind == ACCEL_CONFIG_MAP ? accel_config_find(map, key) : NULL;
    if (!k || k->kind != ACCEL_CONFIG_LIST || !k->child)
        return accel_config_fail(k ? k : map, false, "a sensitivity file has a list '%s' here",
                                 key);
    *out = k;
    return ACCEL_OK;
}

static enum accel_err read_curve(struct accel_curve *c, struct accel_curves *all,
                                 const struct accel_config *set, double base)
{
    const struct accel_config *weights, *points;
    ACCEL_TRY(list_of(&weights, set, "weights"));
    ACCEL_TRY(list_of(&points, set, "points"));
    if (weights->child->kind != ACCEL_CONFIG_STRING)
        return accel_config_fail(weights->child, false, "weights are named by texts");
    c->weight = weights->child->text;
    c->ratio = ACCEL_NEW(&all->arena, double, points->n + 1);
    c->drop = ACCEL_NEW(&all->arena, double, points->n + 1);
    if (!c->ratio || !c->drop)
        return accel_fail_nomem();
    c->n = 1; /* nothing costs nothing */
    for (const struct accel_config *p = points->child; p; p = p->next, c->n++) {
        double score;
        if (p->kind != ACCEL_CONFIG_MAP)
            return accel_config_fail(p, false, "a point is a map of ratio and score");
        ACCEL_TRY(number_of(&c->ratio[c->n], p, "ratio"));
        ACCEL_TRY(number_of(&score, p, "score"));
        c->drop[c->n] = base - score;
        if (!(c->ratio[c->n] > c->ratio[c->n - 1]) || c->ratio[c->n] >= 1)
            return accel_config_fail(p, false, "ratios of a curve ascend, below 1: %g follows %g",
                                     c->ratio[c->n], c->ratio[c->n - 1]);
    }
    return ACCEL_OK;
}

enum accel_err accel_curves_read(struct accel_curves **out, const char *path)
{
    struct accel_curves *c = accel_calloc(1, sizeof *c);
    const struct accel_config *sets;
    double base;
    if (!c)
        return accel_fail_nomem();
    enum accel_err err = accel_config_read(&c->file, path);
    if (!err && c->file->root->kind != ACCEL_CONFIG_MAP)
        err = accel_config_fail(c->file->root, false, "a sensitivity file is a map");
    if (!err)
        err = number_of(&base, c->file->root, "base");
    if (!err)
        err = list_of(&sets, c->file->root, "sets");
    if (!err && !(c->at = ACCEL_NEW(&c->arena, struct accel_curve, sets->n)))
        err = accel_fail_nomem();
    for (const struct accel_config *s = err ? NULL : sets->child; s && !err; s = s->next)
        err = read_curve(&c->at[c->n++], c, s, base);
    if (err)
        accel_curves_free(c);
    else
        *out = c;
    return err;
}

void accel_curves_free(struct accel_curves *c)
{
    if (!c)
        return;
    accel_config_free(c->file);
    accel_arena_clear(&c->arena);
    accel_free(c);
}

double accel_curves_worst(const struct accel_curves *curves)
{
    double worst = 0;
    for (int i = 0; i < curves->n; i++)
        for (int k = 0; k < curves->at[i].n; k++)
            worst = curves->at[i].drop[k] > worst ? curves->at[i].drop[k] : worst;
    return worst;
}

/* The share that costs at most `drop`. */
static double ratio_for(const struct accel_curve *c, double drop)
{
    for (int i = 1; i < c->n; i++)
        if (c->drop[i] > drop) {
            double gap = c->drop[i] - c->drop[i - 1],
                   at = gap > 0 ? (drop - c->drop[i - 1]) / gap : 0;
            at = at < 0 ? 0 : at;
            return c->ratio[i - 1] + at * (c->ratio[i] - c->ratio[i - 1]);
        }
    return c->ratio[c->n - 1];
}

static const struct accel_curve *curve_of(const struct accel_curves *all,
                                          const struct accel_channels *c,
                                          const struct accel_channel_set *s)
{
    for (int i = 0; i < all->n; i++)
        for (int k = 0; k < s->n_member; k++)
            if (!strcmp(all->at[i].weight, c->member[s->member[k]].target->name))
                return &all->at[i];
    return NULL;
}

enum accel_err accel_channels_by_curves(struct accel_channels *c, const struct accel_curves *curves,
                                        double drop, double share)
{
    for (int i = 0; i < c->n_set; i++) {
        struct accel_channel_set *s = &c->set[i];
        const struct accel_curve *k = curve_of(curves, c, s);
        s->cut = k ? (int32_t)(ratio_for(k, drop) * share * s->n * (1 + 1e-12)) : 0;
        s->cut = s->cut < s->low ? s->low : s->cut > s->high ? s->high : s->cut;
    }
    return accel_channels_pick(c);
}
