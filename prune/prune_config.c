/* The whole config: the table of keys is checked first (so that a typing error is always what is
 * reported), then what the pruner's name means, then what this version has not, then the entries.
 */
#include "prune/prune_config_int.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/str.h"
#include "prune/prune_key.h"

#include <string.h>

/* A pruner is a preset of a score and a pattern. */
static const struct {
    const char *name;
    enum accel_score score;
    enum accel_pattern pattern;
} presets[] = {
    {"level", ACCEL_SCORE_MAGNITUDE, ACCEL_PATTERN_ELEMENT},
    {"nm", ACCEL_SCORE_MAGNITUDE, ACCEL_PATTERN_NM},
    {"l1_norm", ACCEL_SCORE_L1, ACCEL_PATTERN_CHANNEL},
    {"l2_norm", ACCEL_SCORE_L2, ACCEL_PATTERN_CHANNEL},
    {"fpgm", ACCEL_SCORE_FPGM, ACCEL_PATTERN_CHANNEL},
    {"bn_scale", ACCEL_SCORE_BN_SCALE, ACCEL_PATTERN_CHANNEL},
    {"lamp", ACCEL_SCORE_LAMP, ACCEL_PATTERN_CHANNEL},
    {"random", ACCEL_SCORE_RANDOM, ACCEL_PATTERN_CHANNEL},
    {"taylor", ACCEL_SCORE_TAYLOR, ACCEL_PATTERN_CHANNEL},
    {"apoz", ACCEL_SCORE_APOZ, ACCEL_PATTERN_CHANNEL},
    {"mean_activation", ACCEL_SCORE_MEAN_ACTIVATION, ACCEL_PATTERN_CHANNEL},
    {"wanda", ACCEL_SCORE_WANDA, ACCEL_PATTERN_ELEMENT},
    {"sparsegpt", ACCEL_SCORE_SPARSEGPT, ACCEL_PATTERN_ELEMENT},
};

enum { N_PRESETS = sizeof presets / sizeof *presets };

static const char *const score_name[] = {
    "magnitude", "l1",       "l2",       "fpgm", "bn_scale",
    "lamp",      "random",   "taylor",   "apoz", "mean_activation",
    "wanda",     "movement", "sparsegpt"};
static const char *const pattern_name[] = {"element", "block", "n:m", "channel"};

static const char *const reduction_name[] = {"mean", "sum", "max", "first"};

static int index_of(const char *name, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, list[i]) == 0)
            return i;
    return 0; /* not reached: the table of keys has the same names, a test says */
}

/* What this version lacks for a score; NULL: nothing. */
static const char *score_needs(enum accel_score s, bool has_data)
{
    switch (s) {
    case ACCEL_SCORE_TAYLOR:
    case ACCEL_SCORE_MOVEMENT:
        return has_data ? "gradients" : "--data, and gradients";
    default:
        return NULL;
    }
}

/* The place of the first of these keys that is given. */
static const struct accel_config *first_of(const struct accel_config *map, const char *a,
                                           const char *b, const char *c)
{
    const struct accel_config *k = accel_config_find(map, a);
    k = k ? k : accel_config_find(map, b);
    return k ? k : accel_config_find(map, c);
}

static enum accel_err check_needs(struct accel_prune_config *c, const struct accel_config *map,
                                  const char *pruner)
{
    const char *needs = score_needs(c->score, accel_config_find(map, "data") != NULL);
    bool of_activations = c->score == ACCEL_SCORE_APOZ || c->score == ACCEL_SCORE_MEAN_ACTIVATION;
    bool of_weights = c->score == ACCEL_SCORE_WANDA || c->score == ACCEL_SCORE_SPARSEGPT;
    bool of_channels = of_activations ||
                       (c->score >= ACCEL_SCORE_FPGM && c->score <= ACCEL_SCORE_RANDOM) ||
                       (c->score == ACCEL_SCORE_L2 && c->pattern == ACCEL_PATTERN_BLOCK);
    if (!needs && of_channels && c->pattern != ACCEL_PATTERN_CHANNEL)
        needs = "\"pattern\": \"channel\", and other patterns something";
    if (!needs && of_weights &&
        (c->pattern == ACCEL_PATTERN_BLOCK ||
         (c->pattern == ACCEL_PATTERN_CHANNEL && c->score == ACCEL_SCORE_SPARSEGPT)))
        needs = "\"pattern\": \"element\" or \"n:m\", and other patterns something";
    c->by_data = of_activations || of_weights;
    if (!needs)
        return ACCEL_OK;
    const struct accel_config *at = first_of(map, "score", "pattern", "pruner");
    bool preset = !at || strcmp(at->key, "pruner") == 0;
    const char *what = preset ? c->pruner : at->text, *kind = preset ? "pruner" : at->key;
    if (!at || (preset && pruner))
        return accel_fail(ACCEL_EARG, "%s '%s' needs %s, which this version does not have", kind,
                          what, needs);
    return accel_config_fail(at, false, "%s '%s' needs %s, which this version does not have", kind,
                             what, needs);
}

static enum accel_err resolve_pruner(struct accel_prune_config *c, const struct accel_config *map,
                                     const char *pruner)
{
    const struct accel_config *p = accel_config_find(map, "pruner");
    const struct accel_config *score = accel_config_find(map, "score");
    const struct accel_config *pattern = accel_config_find(map, "pattern");
    const char *name = pruner ? pruner : p ? p->text : "level";
    struct accel_near near = accel_near_begin(name);
    for (int i = 0; i < N_PRESETS; i++) {
        accel_near_try(&near, presets[i].name);
        if (strcmp(name, presets[i].name) == 0) {
            c->pruner = presets[i].name;
            c->score = presets[i].score;
            c->pattern = presets[i].pattern;
        }
    }
    if (!c->pruner && near.best)
        return accel_fail(ACCEL_EARG, "--pruner: '%.200s' is unknown; did you mean '%s'?", name,
                          near.best);
    if (!c->pruner)
        return accel_fail(ACCEL_EARG, "--pruner: '%.200s' is unknown", name);
    if (score)
        c->score = (enum accel_score)index_of(score->text, score_name, ACCEL_SCORE_SPARSEGPT + 1);
    if (pattern)
        c->pattern = (enum accel_pattern)index_of(pattern->text, pattern_name, 4);
    return check_needs(c, map, pruner);
}

/* Absent and null are the same. */
static const struct accel_config *given(const struct accel_config *map, const char *key)
{
    const struct accel_config *k = accel_config_find(map, key);
    return k && k->kind != ACCEL_CONFIG_NULL ? k : NULL;
}

static bool flag(const struct accel_config *map, const char *key)
{
    const struct accel_config *k = accel_config_find(map, key);
    return k && k->boolean;
}

static int64_t integer(const struct accel_config *map, const char *key, int64_t otherwise)
{
    const struct accel_config *k = accel_config_find(map, key);
    return k ? k->integer : otherwise;
}

/* Keys whose feature is not there yet, unless their value asks for nothing. */
static enum accel_err check_later(const struct accel_prune_config *c,
                                  const struct accel_config *map)
{
    const struct accel_config *type = c->schedule ? accel_config_find(c->schedule, "type") : NULL;
    bool one_shot = c->schedule && type && strcmp(type->text, "one_shot") == 0;
    const struct {
        const struct accel_config *at;
        const char *needs;
    } later[] = {
        {c->fine_tune, "training"},
        {one_shot ? NULL : c->schedule, "fine_tune and training"},
        {c->regularize, "training"},
        {c->pattern == ACCEL_PATTERN_CHANNEL ? NULL : c->target, "a pruner that scores channels"},
        {c->pattern == ACCEL_PATTERN_CHANNEL ? NULL : c->ratios_from,
         "a pruner that scores channels"},
        {c->target ? NULL : c->ratios_from, "a target to reach"},
    };
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (later[i].at)
            return accel_config_fail(later[i].at, true,
                                     "%s needs %s, which this version does not have",
                                     later[i].at->key, later[i].needs);
    if (c->pattern == ACCEL_PATTERN_CHANNEL)
        return ACCEL_OK;
    static const char *const channels[] = {"shrink", "round_to", "group_reduction"};
    for (int i = 0; i < 3; i++) {
        const struct accel_config *k = accel_config_find(map, channels[i]);
        bool idle = k && ((k->kind == ACCEL_CONFIG_BOOL && !k->boolean) ||
                          (k->kind == ACCEL_CONFIG_INT && k->integer == 1));
        if (k && !idle)
            return accel_config_fail(k, true,
                                     "%s is for pruners that score channels; '%s' removes single "
                                     "weights",
                                     k->key, c->pruner);
    }
    return ACCEL_OK;
}

static enum accel_err read_nm(struct accel_prune_config *c, const struct accel_config *map)
{
    const struct accel_config *k = first_of(map, "n", "m", "m");
    c->n = integer(map, "n", 2);
    c->m = integer(map, "m", 4);
    if (k && c->pattern != ACCEL_PATTERN_NM)
        return accel_config_fail(k, true, "%s is for pruner 'nm'", k->key);
    if (c->n >= c->m)
        return accel_config_fail(k, true, "n must be less than m, n is %lld and m is %lld",
                                 (long long)c->n, (long long)c->m);
    return ACCEL_OK;
}

static void put(struct accel_json *j, const char *key, const struct accel_config *c)
{
    bool list = c->kind == ACCEL_CONFIG_LIST, map = c->kind == ACCEL_CONFIG_MAP;
    if (list)
        accel_json_array(j, key);
    else if (map)
        accel_json_object(j, key);
    else if (c->kind == ACCEL_CONFIG_STRING)
        accel_json_text(j, key, c->text);
    else if (c->kind == ACCEL_CONFIG_BOOL)
        accel_json_bool(j, key, c->boolean);
    else if (c->kind == ACCEL_CONFIG_INT)
        accel_json_int(j, key, c->integer);
    else if (c->kind == ACCEL_CONFIG_FLOAT)
        accel_json_number(j, key, c->number);
    else
        accel_json_null(j, key);
    for (const struct accel_config *i = list || map ? c->child : NULL; i; i = i->next)
        put(j, map ? i->key : NULL, i);
    if (list || map)
        accel_json_end(j, list ? ']' : '}');
}

/* A data set given as a map, as the text that --data takes. The tree is at most 64 deep; deeper
 * than JSON is written is no data set. */
static enum accel_err spec_text(const char **out, struct accel_prune_config *c,
                                const struct accel_config *map)
{
    struct accel_json j = {0};
    for (const struct accel_config *i = map->child; i; i = i->next)
        for (const struct accel_config *k = i->child; k; k = k->next)
            if (k->child)
                return accel_config_fail(k, false, "a data set has no maps or lists this deep");
    put(&j, NULL, map);
    *out = j.out.failed ? NULL : accel_arena_strndup(&c->arena, accel_str_get(&j.out), j.out.len);
    accel_json_clear(&j);
    return *out ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err read_top(struct accel_prune_config *c, const struct accel_config *map)
{
    const struct accel_config *data = accel_config_find(map, "data");
    if (data && data->kind == ACCEL_CONFIG_MAP)
        ACCEL_TRY(spec_text(&c->data, c, data));
    else
        c->data = data && data->kind == ACCEL_CONFIG_STRING ? data->text : NULL;
    c->exclude_inputs = flag(map, "exclude_inputs");
    c->allow_missing = flag(map, "allow_missing");
    c->strict_nni = flag(map, "strict_nni");
    const struct accel_config *shrink = accel_config_find(map, "shrink");
    const struct accel_config *how = accel_config_find(map, "group_reduction");
    c->shrink = c->pattern == ACCEL_PATTERN_CHANNEL && (!shrink || shrink->boolean);
    c->reduction =
        how ? (enum accel_reduction)index_of(how->text, reduction_name, 4) : ACCEL_REDUCE_MEAN;
    const struct accel_config *round = accel_config_find(map, "round_to");
    c->round_to = round && round->kind == ACCEL_CONFIG_STRING ? 0 : integer(map, "round_to", 1);
    c->schedule = given(map, "schedule");
    c->fine_tune = given(map, "fine_tune");
    c->target = given(map, "target");
    c->repair = given(map, "repair");
    if (c->repair && strcmp(c->repair->text, "none") == 0)
        c->repair = NULL;
    c->bn_reestimate = given(map, "bn_reestimate");
    c->ratios_from = given(map, "ratios_from");
    c->regularize = given(map, "regularize");
    ACCEL_TRY(check_later(c, map));
    return read_nm(c, map);
}

static enum accel_err read_list(struct accel_prune_config *c, const struct accel_config *list)
{
    if (list->n == 0)
        return accel_config_fail(list, false, "config_list is empty");
    c->sub = ACCEL_NEW(&c->arena, struct accel_sub_config, list->n);
    if (!c->sub)
        return accel_fail_nomem();
    for (const struct accel_config *at = list->child; at; at = at->next) {
        ACCEL_TRY(accel_sub_config_parse(&c->sub[c->n_sub], c, at, c->n_sub));
        c->n_sub++;
    }
    if (c->sub[0].exclude)
        return accel_config_fail(c->sub[0].at, false,
                                 "'exclude' removes layers from the entries before it, and there "
                                 "are none");
    return ACCEL_OK;
}

static enum accel_err parse(struct accel_prune_config *c, const char *pruner)
{
    const struct accel_config *root = c->file->root, *list = root;
    struct accel_config bare = {.kind = ACCEL_CONFIG_MAP, .file = root->file};
    if (root->kind == ACCEL_CONFIG_LIST) {
        for (const struct accel_config *at = root->child; at; at = at->next) {
            if (at->kind != ACCEL_CONFIG_MAP)
                return accel_config_fail(at, false, "an entry of config_list must be a map, not %s",
                                         accel_config_kind_name(at->kind));
            ACCEL_TRY(accel_prune_key_check(at, ACCEL_KEY_SUB_CONFIG));
        }
        root = &bare;
    } else if (root->kind == ACCEL_CONFIG_MAP) {
        ACCEL_TRY(accel_prune_key_check(root, ACCEL_KEY_CONFIG));
        list = accel_config_find(root, "config_list");
    } else {
        return accel_config_fail(root, false, "a config is a map or a list of maps, not %s",
                                 accel_config_kind_name(root->kind));
    }
    ACCEL_TRY(resolve_pruner(c, root, pruner));
    ACCEL_TRY(read_top(c, root));
    if (!list)
        return accel_config_fail(root, false, "config_list is missing");
    return read_list(c, list);
}

enum accel_err accel_prune_config_parse(struct accel_prune_config **out,
                                        const struct accel_config_file *f, const char *pruner)
{
    struct accel_prune_config *c = accel_calloc(1, sizeof *c);
    if (!c)
        return accel_fail_nomem();
    c->file = f;
    enum accel_err err = parse(c, pruner);
    if (err)
        accel_prune_config_free(c);
    else
        *out = c;
    return err;
}

void accel_prune_config_free(struct accel_prune_config *c)
{
    if (!c)
        return;
    accel_arena_clear(&c->arena);
    accel_free(c);
}
