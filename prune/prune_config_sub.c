/* One entry of config_list. NNI unfolds an entry into a setting per target (weight, bias): the
 * entry's own keys count for every target it names, and target_settings override them. v2's keys
 * are other spellings of the same. */
#include "prune/prune_config_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The one of two spellings that is given; both are an error. */
static enum accel_err either(const struct accel_config **out, const struct accel_config *map,
                             const char *a, const char *b)
{
    const struct accel_config *x = accel_config_find(map, a), *y = accel_config_find(map, b);
    if (x && y)
        return accel_config_fail(y, true, "%s and %s contradict each other: give one", a, b);
    if (x || y)
        *out = x ? x : y;
    return ACCEL_OK;
}

static enum accel_err read_names(struct accel_name_list *out, struct accel_arena *arena,
                                 const struct accel_config *map, const char *key)
{
    const struct accel_config *list = accel_config_find(map, key);
    if (!list)
        return ACCEL_OK;
    out->item = ACCEL_NEW(arena, const struct accel_config *, list->n);
    if (!out->item)
        return accel_fail_nomem();
    for (const struct accel_config *c = list->child; c; c = c->next)
        out->item[out->n++] = c;
    return ACCEL_OK;
}

static enum accel_err read_granularity(struct accel_setting *s, struct accel_arena *arena,
                                       const struct accel_config *c)
{
    static const char *const name[] = {"default", "out_channel", "in_channel", "per_channel"};
    s->block = NULL;
    s->n_block = 0;
    for (int i = 0; c->kind == ACCEL_CONFIG_STRING && i < 4; i++)
        if (strcmp(c->text, name[i]) == 0)
            s->granularity = (enum accel_granularity)i;
    if (c->kind == ACCEL_CONFIG_STRING)
        return ACCEL_OK;
    int64_t *block = ACCEL_NEW(arena, int64_t, c->n);
    if (!block)
        return accel_fail_nomem();
    for (const struct accel_config *i = c->child; i; i = i->next) {
        if (i->integer == 0)
            return accel_config_fail(i, false,
                                     "granularity wants block sizes of 1 and more, or -1 "
                                     "for a whole dimension, not 0");
        block[s->n_block++] = i->integer;
    }
    s->granularity = ACCEL_GRAIN_BLOCK;
    s->block = block;
    return ACCEL_OK;
}

static enum accel_err read_group(struct accel_setting *s, struct accel_prune_config *c,
                                 const struct accel_config *map, int index)
{
    const struct accel_config *id = accel_config_find(map, "global_group_id");
    const struct accel_config *total = accel_config_find(map, "total_sparsity");
    if (id && id->kind == ACCEL_CONFIG_NULL)
        s->global_group = NULL;
    else if (id && total)
        return accel_config_fail(id, true,
                                 "total_sparsity makes a group of its own: "
                                 "global_group_id contradicts it");
    else if (id)
        s->global_group = id->text;
    if (total) {
        char name[64];
        int n = snprintf(name, sizeof name, "total_sparsity of config_list.%d", index);
        s->global_group = accel_arena_strndup(&c->arena, name, (size_t)n);
        if (!s->global_group)
            return accel_fail_nomem();
    }
    return ACCEL_OK;
}

/* The share or threshold asked for; what is given here replaces both. */
static enum accel_err read_ratio(struct accel_setting *s, const struct accel_config *map)
{
    static const char *const key[] = {"sparse_threshold", "sparse_ratio", "sparsity",
                                      "sparsity_per_layer", "total_sparsity"};
    const struct accel_config *given = NULL;
    for (int i = 0; i < 5; i++) {
        const struct accel_config *k = accel_config_find(map, key[i]);
        if (k && given)
            return accel_config_fail(k, true, "%s and %s contradict each other: give one",
                                     given->key, k->key);
        if (!k)
            continue;
        given = k;
        s->sparse_ratio = i == 0 ? NAN : k->number;
        s->sparse_threshold = i == 0 ? k->number : NAN;
    }
    return ACCEL_OK;
}

static enum accel_err read_align(struct accel_setting *s, const struct accel_config *c,
                                 bool is_bias)
{
    s->align = c->kind != ACCEL_CONFIG_NULL;
    if (s->align && !is_bias)
        return accel_config_fail(c, true, "align is for bias: it follows the mask of its weight");
    return ACCEL_OK;
}

/* What the keys of one map say, over what *s already says. `align` of the entry itself is meant for
 * its bias. */
static enum accel_err read_setting(struct accel_setting *s, struct accel_prune_config *c,
                                   const struct accel_config *map, int index, bool is_bias,
                                   bool own)
{
    const struct accel_config *grain = accel_config_find(map, "granularity");
    const struct accel_config *align = accel_config_find(map, "align");
    const struct accel_config *low = accel_config_find(map, "min_sparse_ratio"), *high = NULL;
    ACCEL_TRY(either(&high, map, "max_sparse_ratio", "max_sparsity_per_layer"));
    ACCEL_TRY(read_ratio(s, map));
    ACCEL_TRY(read_group(s, c, map, index));
    if (grain)
        ACCEL_TRY(read_granularity(s, &c->arena, grain));
    if (align && (own || is_bias))
        ACCEL_TRY(read_align(s, align, is_bias));
    s->min_ratio = low ? low->number : s->min_ratio;
    s->max_ratio = high ? high->number : s->max_ratio;
    if (s->min_ratio > s->max_ratio)
        return accel_config_fail(low ? low : high, true,
                                 "min_sparse_ratio %g is above max_sparse_ratio %g", s->min_ratio,
                                 s->max_ratio);
    return ACCEL_OK;
}

/* n:m says how much by itself. */
static enum accel_err check_nm(const struct accel_config *at, const struct accel_setting *s)
{
    static const char *const key[] = {
        "sparse_ratio",       "sparse_threshold", "sparsity",         "total_sparsity",
        "sparsity_per_layer", "min_sparse_ratio", "max_sparse_ratio", "max_sparsity_per_layer",
        "global_group_id",    "granularity"};
    for (size_t i = 0; i < sizeof key / sizeof *key; i++) {
        const struct accel_config *k = accel_config_find(at, key[i]);
        if (k)
            return accel_config_fail(k, true,
                                     "an n:m pattern says itself how many weights go: %s "
                                     "contradicts it",
                                     key[i]);
    }
    if (!isnan(s->sparse_ratio) || !isnan(s->sparse_threshold))
        return accel_config_fail(at, false,
                                 "an n:m pattern says itself how many weights go: "
                                 "target_settings contradict it");
    return ACCEL_OK;
}

static enum accel_err check_setting(const struct accel_config *at,
                                    const struct accel_prune_config *c,
                                    const struct accel_setting *s, const char *name)
{
    if (!s->on || s->align)
        return ACCEL_OK;
    const char *idle = s->global_group                         ? "global_group_id"
                       : !isnan(s->sparse_threshold)           ? "sparse_threshold"
                       : s->granularity != ACCEL_GRAIN_ELEMENT ? "granularity"
                                                               : NULL;
    if (c->by_data && c->pattern != ACCEL_PATTERN_CHANNEL && idle)
        return accel_config_fail(at, false,
                                 "%s is for scores that come from weights alone; '%s' ranks single "
                                 "weights of one layer by a sparse_ratio",
                                 idle, c->pruner);
    if (c->pattern == ACCEL_PATTERN_NM)
        return check_nm(at, s);
    if (c->pattern == ACCEL_PATTERN_CHANNEL && s->sparse_ratio >= 1)
        return accel_config_fail(at, false,
                                 "sparse_ratio is 1, and a layer keeps at least one channel");
    if (c->pattern == ACCEL_PATTERN_CHANNEL && c->target)
        return ACCEL_OK; /* ratios are searched for */
    if (isnan(s->sparse_ratio) && isnan(s->sparse_threshold))
        return accel_config_fail(at, false,
                                 "how much of '%s' is to be removed? sparse_ratio or "
                                 "sparse_threshold is missing",
                                 name);
    if (s->global_group && isnan(s->sparse_ratio))
        return accel_config_fail(at, false,
                                 "global_group_id ranks by a sparse_ratio: a "
                                 "sparse_threshold contradicts it");
    if (c->pattern == ACCEL_PATTERN_BLOCK && s->granularity == ACCEL_GRAIN_ELEMENT)
        return accel_config_fail(at, false, "pattern 'block' wants a granularity such as [4, 4]");
    return ACCEL_OK;
}

/* target_names, or those that target_settings have, or the weight alone. */
static enum accel_err read_targets(struct accel_sub_config *sub, const struct accel_config *at)
{
    const struct accel_config *names = accel_config_find(at, "target_names");
    const struct accel_config *settings = accel_config_find(at, "target_settings");
    sub->weight.on = !names;
    if (names)
        for (const struct accel_config *c = names->child; c; c = c->next)
            *(strcmp(c->text, "bias") == 0 ? &sub->bias.on : &sub->weight.on) = true;
    for (const struct accel_config *c = settings ? settings->child : NULL; c; c = c->next) {
        bool *on = strcmp(c->key, "bias") == 0 ? &sub->bias.on : &sub->weight.on;
        if (names && !*on)
            return accel_config_fail(c, true, "target_names do not have '%s'", c->key);
        *on = true;
    }
    return ACCEL_OK;
}

static enum accel_err read_how_much(struct accel_sub_config *sub, struct accel_prune_config *c)
{
    const struct accel_config *at = sub->at;
    const struct accel_config *all = accel_config_find(at, "target_settings");
    ACCEL_TRY(read_targets(sub, at));
    for (int bias = 0; bias < 2; bias++) {
        struct accel_setting *s = bias ? &sub->bias : &sub->weight;
        const char *name = bias ? "bias" : "weight";
        const struct accel_config *own = all ? accel_config_find(all, name) : NULL;
        s->sparse_ratio = s->sparse_threshold = NAN;
        s->max_ratio = 1;
        s->mul_mask = true;
        ACCEL_TRY(read_setting(s, c, at, sub->index, bias, false));
        if (own)
            ACCEL_TRY(read_setting(s, c, own, sub->index, bias, true));
        ACCEL_TRY(check_setting(at, c, s, name));
    }
    const struct accel_config *align = accel_config_find(at, "align");
    if (align && !sub->bias.on)
        return accel_config_fail(align, true, "align is for bias: name it in target_names");
    return ACCEL_OK;
}

static enum accel_err read_selectors(struct accel_sub_config *sub, struct accel_arena *a)
{
    const struct accel_config *at = sub->at;
    ACCEL_TRY(read_names(&sub->op_types, a, at, "op_types"));
    ACCEL_TRY(read_names(&sub->op_names, a, at, "op_names"));
    ACCEL_TRY(read_names(&sub->op_names_re, a, at, "op_names_re"));
    ACCEL_TRY(read_names(&sub->op_partial_names, a, at, "op_partial_names"));
    ACCEL_TRY(read_names(&sub->exclude_op_types, a, at, "exclude_op_types"));
    ACCEL_TRY(read_names(&sub->exclude_op_names, a, at, "exclude_op_names"));
    ACCEL_TRY(read_names(&sub->exclude_op_names_re, a, at, "exclude_op_names_re"));
    if (sub->op_types.n + sub->op_names.n + sub->op_names_re.n + sub->op_partial_names.n == 0)
        return accel_config_fail(at, false,
                                 "this entry selects nothing: give op_types, op_names "
                                 "or op_names_re (op_types [\"default\"] is all)");
    return ACCEL_OK;
}

/* "exclude": true stands with selectors only. */
static enum accel_err check_exclude(const struct accel_config *at)
{
    static const char *const selector[] = {"op_types", "op_names", "op_names_re",
                                           "op_partial_names", "exclude"};
    for (const struct accel_config *c = at->child; c; c = c->next) {
        bool ok = strncmp(c->key, "exclude_", 8) == 0;
        for (int i = 0; i < 5; i++)
            ok = ok || strcmp(c->key, selector[i]) == 0;
        if (!ok)
            return accel_config_fail(c, true,
                                     "'exclude' removes layers from the entries before: "
                                     "%s contradicts it",
                                     c->key);
    }
    return ACCEL_OK;
}

enum accel_err accel_sub_config_parse(struct accel_sub_config *sub, struct accel_prune_config *c,
                                      const struct accel_config *at, int index)
{
    static const char *const v2[] = {"sparsity",         "sparsity_per_layer",
                                     "total_sparsity",   "max_sparsity_per_layer",
                                     "op_partial_names", "exclude"};
    for (size_t i = 0; i < sizeof v2 / sizeof *v2; i++)
        c->v2 |= accel_config_find(at, v2[i]) != NULL;
    const struct accel_config *exclude = accel_config_find(at, "exclude");
    sub->at = at;
    sub->index = index;
    sub->exclude = exclude && exclude->boolean;
    ACCEL_TRY(read_selectors(sub, &c->arena));
    return sub->exclude ? check_exclude(at) : read_how_much(sub, c);
}
