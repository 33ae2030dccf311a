/* The table, and a walk that holds a config against it. Depth is bounded by the config reader. */
#include "prune/prune_key.h"

#include "base/str.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static const char *const pruners[] = {"level",           "nm",    "l1_norm",   "l2_norm", "fpgm",
                                      "bn_scale",        "lamp",  "random",    "taylor",  "apoz",
                                      "mean_activation", "wanda", "sparsegpt", NULL};
static const char *const scores[] = {
    "magnitude", "l1",       "l2",        "fpgm", "bn_scale",
    "lamp",      "random",   "taylor",    "apoz", "mean_activation",
    "wanda",     "movement", "sparsegpt", NULL};
static const char *const patterns[] = {"element", "block", "n:m", "channel", NULL};
static const char *const grains[] = {"default", "out_channel", "in_channel", "per_channel", NULL};
static const char *const targets[] = {"weight", "bias", NULL};

enum {
    NUL = ACCEL_IS_NULL,
    BOOL = ACCEL_IS_BOOL,
    INT = ACCEL_IS_INTEGER,
    NUM = ACCEL_IS_NUMBER,
    TEXT = ACCEL_IS_TEXT,
    ITEMS = ACCEL_IS_LIST,
    MAP = ACCEL_IS_MAP
};

#define ANY     .min = NAN, .max = NAN
#define RATIO   .kinds = NUM, .min = 0, .max = 1
#define FROM(a) .min = (a), .max = NAN
#define NAMES   .kinds = ITEMS, .items = TEXT, ANY
#define HOW_MUCH(p)                                                                                \
    {"sparse_ratio", p, RATIO}, {"sparse_threshold", p, .kinds = NUM, FROM(0)},                    \
        {"min_sparse_ratio", p, RATIO}, {"max_sparse_ratio", p, RATIO},                            \
        {"global_group_id", p, .kinds = NUL | INT | TEXT, ANY},                                    \
        {"dependency_group_id", p, .kinds = NUL | INT | TEXT, ANY},                                \
        {"internal_metric_block", p, .kinds = NUL | INT, FROM(1)},                                 \
        {"granularity", p, .kinds = TEXT | ITEMS, .items = INT, FROM(-1), .choices = grains},      \
        {"align", p, .kinds = NUL | MAP, .inner = ACCEL_KEY_ALIGN, ANY},                           \
    {                                                                                              \
        "apply_method", p, .kinds = TEXT, .choices = LIST("mul"), ANY                              \
    }

const struct accel_prune_key accel_prune_key_table[] = {
#define P ACCEL_KEY_CONFIG
    {"pruner", P, .kinds = TEXT, .choices = pruners, ANY},
    {"score", P, .kinds = TEXT, .choices = scores, ANY},
    {"pattern", P, .kinds = TEXT, .choices = patterns, ANY},
    {"config_list", P, .kinds = ITEMS, .items = MAP, .inner = ACCEL_KEY_SUB_CONFIG, ANY},
    {"shrink", P, .kinds = BOOL, ANY},
    {"round_to", P, .kinds = INT | TEXT, .min = 1, .max = 65536, .choices = LIST("auto")},
    {"n", P, .kinds = INT, .min = 1, .max = 4095},
    {"m", P, .kinds = INT, .min = 2, .max = 4096},
    {"exclude_inputs", P, .kinds = BOOL, ANY},
    {"allow_missing", P, .kinds = BOOL, ANY},
    {"strict_nni", P, .kinds = BOOL, ANY},
    {"group_reduction", P, .kinds = TEXT, .choices = LIST("mean", "sum", "max", "first"), ANY},
    {"schedule", P, .kinds = NUL | MAP, .inner = ACCEL_KEY_SCHEDULE, ANY},
    {"fine_tune", P, .kinds = NUL | MAP, .inner = ACCEL_KEY_FINE_TUNE, ANY},
    {"repair", P, .kinds = TEXT, .choices = LIST("none", "least_squares"), ANY},
    {"bn_reestimate", P, .kinds = NUL | MAP, .inner = ACCEL_KEY_BN_REESTIMATE, ANY},
    {"data", P, .kinds = NUL | TEXT | MAP, ANY},
    {"target", P, .kinds = NUL | MAP, .inner = ACCEL_KEY_TARGET, ANY},
    {"ratios_from", P, .kinds = NUL | TEXT, ANY},
    {"masks", P, .kinds = TEXT, .choices = LIST("zeros", "none"), ANY},
    {"regularize", P, .kinds = NUL | MAP, .inner = ACCEL_KEY_REGULARIZE, ANY},
#undef P
#define P ACCEL_KEY_SUB_CONFIG
    {"op_types", P, NAMES},
    {"op_names", P, NAMES},
    {"op_names_re", P, NAMES},
    {"op_partial_names", P, NAMES, .v2 = true},
    {"exclude_op_types", P, NAMES, .may_be_empty = true},
    {"exclude_op_names", P, NAMES, .may_be_empty = true},
    {"exclude_op_names_re", P, NAMES, .may_be_empty = true},
    {"exclude", P, .kinds = BOOL, .v2 = true, ANY},
    HOW_MUCH(P),
    {"sparsity", P, RATIO, .v2 = true},
    {"sparsity_per_layer", P, RATIO, .v2 = true},
    {"total_sparsity", P, RATIO, .v2 = true},
    {"max_sparsity_per_layer", P, RATIO, .v2 = true},
    {"target_names", P, .kinds = ITEMS, .items = TEXT, .choices = targets, ANY},
    {"target_settings", P, .kinds = MAP, .inner = ACCEL_KEY_TARGET_SETTINGS, ANY},
#undef P
    {"weight", ACCEL_KEY_TARGET_SETTINGS, .kinds = MAP, .inner = ACCEL_KEY_TARGET_SETTING, ANY},
    {"bias", ACCEL_KEY_TARGET_SETTINGS, .kinds = MAP, .inner = ACCEL_KEY_TARGET_SETTING, ANY},
    HOW_MUCH(ACCEL_KEY_TARGET_SETTING),
    {"target_name", ACCEL_KEY_ALIGN, .kinds = TEXT, .choices = LIST("weight"), ANY},
    {"module_name", ACCEL_KEY_ALIGN, .kinds = NUL, ANY},
    {"dims", ACCEL_KEY_ALIGN, .kinds = ITEMS, .items = INT, .min = 0, .max = 0},
    {"type", ACCEL_KEY_SCHEDULE, .kinds = TEXT, ANY,
     .choices = LIST("one_shot", "linear", "agp", "exponential", "iterative", "lottery_ticket")},
    {"start_step", ACCEL_KEY_SCHEDULE, .kinds = INT, FROM(0)},
    {"interval_steps", ACCEL_KEY_SCHEDULE, .kinds = INT, FROM(1)},
    {"times", ACCEL_KEY_SCHEDULE, .kinds = INT, FROM(1)},
    {"batches", ACCEL_KEY_BN_REESTIMATE, .kinds = INT, FROM(1)},
    {"macs", ACCEL_KEY_TARGET, RATIO},
    {"params", ACCEL_KEY_TARGET, RATIO},
    {"bytes", ACCEL_KEY_TARGET, RATIO},
    {"accuracy_drop", ACCEL_KEY_TARGET, .kinds = NUM, FROM(0)},
    {"type", ACCEL_KEY_REGULARIZE, .kinds = TEXT, .choices = LIST("group_lasso", "l1_bn"), ANY},
    {"weight", ACCEL_KEY_REGULARIZE, .kinds = NUM, FROM(0)},
#define P ACCEL_KEY_FINE_TUNE
    {"data", P, .kinds = NUL | TEXT | MAP, ANY},
    {"loss", P, .kinds = TEXT, ANY,
     .choices = LIST("cross_entropy", "bce", "mse", "l1", "huber", "kl")},
    {"label_smoothing", P, RATIO},
    {"optimizer", P, .kinds = MAP, ANY},
    {"lr_schedule", P, .kinds = NUL | MAP, ANY},
    {"epochs", P, .kinds = NUL | INT, FROM(0)},
    {"steps", P, .kinds = NUL | INT, FROM(0)},
    {"accumulate_steps", P, .kinds = INT, FROM(1)},
    {"clip_grad_norm", P, .kinds = NUL | NUM, FROM(0)},
    {"amp", P, .kinds = TEXT, .choices = LIST("off", "bf16", "fp16"), ANY},
    {"ema", P, RATIO},
    {"batch_norm", P, .kinds = TEXT, .choices = LIST("train", "frozen"), ANY},
    {"distill", P, .kinds = NUL | MAP, ANY},
    {"trainable", P, .kinds = NUL | MAP, ANY},
    {"early_stop", P, .kinds = NUL | MAP, ANY},
    {"checkpoint", P, .kinds = NUL | MAP, ANY},
    {"seed", P, .kinds = INT, FROM(0)},
#undef P
    {NULL, ACCEL_KEY_NOWHERE, 0, ANY},
};

const char *accel_key_place_name(enum accel_key_place place)
{
    static const char *const name[ACCEL_N_KEY_PLACES] = {
        "",         "config",        "sub_config", "target_settings", "target_setting", "align",
        "schedule", "bn_reestimate", "target",     "regularize",      "fine_tune"};
    return name[place];
}

static unsigned kinds_of(const struct accel_config *c)
{
    static const unsigned bits[] = {NUL, BOOL, INT | NUM, NUM, TEXT, ITEMS, MAP};
    return bits[c->kind];
}

/* "a number between 0 and 1", "a list of texts", … */
static void say_wanted(struct accel_str *s, unsigned kinds, unsigned items)
{
    static const struct {
        unsigned bit;
        const char *one, *many;
    } word[] = {{BOOL, "true or false", "booleans"},
                {INT, "a whole number", "whole numbers"},
                {NUM, "a number", "numbers"},
                {TEXT, "a text", "texts"},
                {MAP, "a map", "maps"},
                {NUL, "null", "nulls"}};
    const char *join = "";
    for (size_t i = 0; i < sizeof word / sizeof *word; i++)
        if (kinds & word[i].bit) {
            accel_str_addf(s, "%s%s", join, word[i].one);
            join = " or ";
        }
    for (size_t i = 0; kinds & ITEMS && i < sizeof word / sizeof *word; i++)
        if (items & word[i].bit)
            accel_str_addf(s, "%sa list of %s", join, word[i].many);
}

static enum accel_err fail_kind(const struct accel_config *c, const struct accel_prune_key *k,
                                unsigned kinds, bool is_item)
{
    struct accel_str s = {0};
    say_wanted(&s, kinds, k->items);
    enum accel_err err =
        s.failed ? accel_fail_nomem()
                 : accel_config_fail(c, false, "%s%s wants %s, not %s%s%.100s%s",
                                     is_item ? "an item of " : "", k->name, accel_str_get(&s),
                                     accel_config_kind_name(c->kind), c->text ? " (" : "",
                                     c->text ? c->text : "", c->text ? ")" : "");
    accel_str_clear(&s);
    return err;
}

static enum accel_err fail_choice(const struct accel_config *c, const struct accel_prune_key *k)
{
    struct accel_near near = accel_near_begin(c->text);
    struct accel_str s = {0};
    for (int i = 0; k->choices[i]; i++) {
        accel_near_try(&near, k->choices[i]);
        accel_str_addf(&s, "%s%s", i ? ", " : "", k->choices[i]);
    }
    enum accel_err err = accel_fail_nomem();
    if (!s.failed && near.best)
        err = accel_config_fail(c, false, "%s '%.200s' is unknown; did you mean '%s'?", k->name,
                                c->text, near.best);
    else if (!s.failed)
        err = accel_config_fail(c, false, "%s '%.200s' is not supported, only %s", k->name, c->text,
                                accel_str_get(&s));
    accel_str_clear(&s);
    return err;
}

static enum accel_err check_range(const struct accel_config *c, const struct accel_prune_key *k)
{
    double v = c->number;
    if (!(v < k->min || v > k->max) && isfinite(v))
        return ACCEL_OK;
    if (isnan(k->max))
        return accel_config_fail(c, false, "%s must be finite and at least %g, not %.100s", k->name,
                                 isnan(k->min) ? -INFINITY : k->min, c->text);
    return accel_config_fail(c, false, "%s must be between %g and %g, not %.100s", k->name, k->min,
                             k->max, c->text);
}

/* One value, or one item of a list, that stands under key k. */
static enum accel_err check_value(const struct accel_config *c, const struct accel_prune_key *k,
                                  unsigned kinds, bool is_item)
{
    if (!(kinds_of(c) & kinds))
        return fail_kind(c, k, kinds, is_item);
    switch (c->kind) {
    case ACCEL_CONFIG_INT:
    case ACCEL_CONFIG_FLOAT:
        return check_range(c, k);
    case ACCEL_CONFIG_STRING:
        for (int i = 0; k->choices && k->choices[i]; i++)
            if (strcmp(c->text, k->choices[i]) == 0)
                return ACCEL_OK;
        return k->choices ? fail_choice(c, k) : ACCEL_OK;
    case ACCEL_CONFIG_MAP:
        return k->inner ? accel_prune_key_check(c, k->inner) : ACCEL_OK;
    case ACCEL_CONFIG_LIST:
        if (!c->child && !k->may_be_empty)
            return accel_config_fail(c, false, "%s is empty", k->name);
        for (const struct accel_config *i = c->child; i; i = i->next)
            ACCEL_TRY(check_value(i, k, k->items, true));
        return ACCEL_OK;
    default:
        return ACCEL_OK;
    }
}

static const struct accel_prune_key *find(const char *name, enum accel_key_place place)
{
    for (const struct accel_prune_key *k = accel_prune_key_table; k->name; k++)
        if (k->place == place && strcmp(k->name, name) == 0)
            return k;
    return NULL;
}

static enum accel_err fail_unknown(const struct accel_config *c, enum accel_key_place place)
{
    struct accel_near near = accel_near_begin(c->key);
    for (const struct accel_prune_key *k = accel_prune_key_table; k->name; k++)
        if (k->place == place)
            accel_near_try(&near, k->name);
    bool of_top = place == ACCEL_KEY_SUB_CONFIG && find(c->key, ACCEL_KEY_CONFIG);
    bool of_sub = place == ACCEL_KEY_CONFIG && find(c->key, ACCEL_KEY_SUB_CONFIG);
    if (of_top || of_sub)
        return accel_config_fail(c, true, "key '%.200s' belongs %s", c->key,
                                 of_top ? "beside config_list, not into its entries"
                                        : "into the entries of config_list");
    if (near.best)
        return accel_config_fail(c, true, "unknown key '%.200s'; did you mean '%s'?", c->key,
                                 near.best);
    return accel_config_fail(c, true, "unknown key '%.200s'", c->key);
}

enum accel_err accel_prune_key_check(const struct accel_config *map, enum accel_key_place place)
{
    for (const struct accel_config *c = map->child; c; c = c->next) {
        const struct accel_prune_key *k = find(c->key, place);
        if (!k)
            return fail_unknown(c, place);
        ACCEL_TRY(check_value(c, k, k->kinds, false));
    }
    return ACCEL_OK;
}
