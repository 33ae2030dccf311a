/* Sub-config by sub-config: every selector marks the holdings it names, then the marks are combined
 * per stored tensor, because a weight that is excluded through one of its readers is excluded.
 *
 * Names are found through two hash tables, exact names (node, label, weight) and module paths;
 * patterns run over the names of every holding within a budget that a hostile config exhausts. */
#include "prune/target_int.h"

#include "base/alloc.h"
#include "base/str.h"
#include "prune/name_pattern.h"

#include <string.h>

enum {
    NAMED = 1,    /* by op_names */
    PATTERN = 2,  /* by op_names_re or op_partial_names */
    TYPED = 4,    /* by op_types */
    EXCLUDED = 8, /* by any of exclude_… */
};

#define PATTERN_BUDGET ((int64_t)1200000000) /* about two seconds */
#define MAX_NEAR       20   /* near names are looked for this often; a search reads all names */
#define MAX_WARNINGS   1000 /* of names that match nothing, with allow_missing */

struct hit {
    struct accel_holding *holding;
    struct hit *next;
};

struct selection {
    struct accel_holdings *h;
    struct accel_model *m;
    const struct accel_prune_config *c;
    struct accel_log *log;
    struct accel_arena arena;
    struct accel_map exact, module; /* name to struct hit */
    struct accel_map nodes, types;  /* all nodes by name, label and module; all op types */
    int64_t budget;
    int n_missing, n_warnings;
};

/* Type names that are right even when a model has no such layer. */
static const char *const known_types[] = {
    "default", "Conv1d",    "Conv2d",        "Conv3d",          "ConvTranspose1d",
    "Linear",  "Embedding", "LSTM",          "ConvTranspose2d", "ConvTranspose3d",
    "GRU",     "RNN",       "BatchNorm1d",   "BatchNorm2d",     "BatchNorm3d",
    "Conv",    "Gemm",      "ConvTranspose", "MatMul",          "BatchNormalization",
    "Gather",  "LayerNorm", "GroupNorm",     "InstanceNorm2d",  "LayerNormalization",
    "Einsum",  NULL};

static enum accel_err index_name(struct selection *s, struct accel_map *map, const char *name,
                                 struct accel_holding *holding)
{
    if (!name || !*name)
        return ACCEL_OK;
    struct hit *old = accel_map_find(map, name), *hit = ACCEL_NEW(&s->arena, struct hit, 1);
    if (old && old->holding == holding)
        return ACCEL_OK;
    if (!hit)
        return accel_fail_nomem();
    *hit = (struct hit){holding, old};
    return accel_map_put(map, name, hit) ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err index_holdings(struct selection *s)
{
    for (size_t i = 0; i < s->h->n; i++) {
        struct accel_holding *h = &s->h->at[i];
        ACCEL_TRY(index_name(s, &s->exact, h->name, h));
        ACCEL_TRY(index_name(s, &s->exact, s->m->tensor[h->tensor]->name, h));
        if (h->kind == ACCEL_TARGET_BIAS)
            continue;
        ACCEL_TRY(index_name(s, &s->exact, h->node->name, h));
        ACCEL_TRY(index_name(s, &s->exact, h->node->label, h));
        ACCEL_TRY(index_name(s, &s->module, h->node->module, h));
        ACCEL_TRY(index_name(s, &s->module, h->module, h));
    }
    return ACCEL_OK;
}

static enum accel_err index_node(struct selection *s, const struct accel_node *n)
{
    const char *name[] = {n->name, n->label, n->module};
    for (int i = 0; i < 3; i++)
        if (name[i] && *name[i] && !accel_map_find(&s->nodes, name[i]) &&
            !accel_map_put(&s->nodes, name[i], (void *)n))
            return accel_fail_nomem();
    if (!accel_map_find(&s->types, n->op_type) && !accel_map_put(&s->types, n->op_type, (void *)n))
        return accel_fail_nomem();
    return ACCEL_OK;
}

/* The error just recorded is one, or with allow_missing a warning. */
static enum accel_err missing(struct selection *s, enum accel_err err)
{
    if (!s->c->allow_missing || err != ACCEL_EARG)
        return err;
    if (s->n_warnings++ < MAX_WARNINGS)
        accel_warn(s->log, "%s", accel_errmsg());
    else if (s->n_warnings == MAX_WARNINGS + 1)
        accel_warn(s->log, "more than %d names match nothing", MAX_WARNINGS);
    return ACCEL_OK;
}

/* Whether the module `path` holds the module `below`. */
static bool is_above(const char *path, const char *below)
{
    size_t n = strlen(path);
    return strncmp(path, below, n) == 0 && below[n] == '.';
}

static enum accel_err fail_name(struct selection *s, const struct accel_config *item,
                                const char *key)
{
    const char *name = item->text;
    const struct accel_node *node = accel_map_find(&s->nodes, name);
    if (node)
        return missing(s, accel_config_fail(item, false, "%s '%.200s': %s has no constant weight",
                                            key, name, node->op_type));
    struct accel_near near = accel_near_begin(name);
    bool above = false;
    for (size_t i = 0; i < s->h->n && s->n_missing < MAX_NEAR; i++) {
        const struct accel_holding *h = &s->h->at[i];
        above = above || is_above(name, h->node->module) || is_above(name, h->module);
        accel_near_try(&near, h->node->module);
        accel_near_try(&near, h->module);
        accel_near_try(&near, h->node->label);
        accel_near_try(&near, h->name);
    }
    s->n_missing++;
    if (above)
        return missing(s, accel_config_fail(item, false,
                                            "%s '%.200s' is no single module; for all below it use "
                                            "op_names_re: [\"%.200s\\\\..*\"]",
                                            key, name, name));
    if (near.best && *near.best)
        return missing(s, accel_config_fail(item, false,
                                            "%s '%.200s' matches nothing; did you mean '%.200s'?",
                                            key, name, near.best));
    return missing(s, accel_config_fail(item, false, "%s '%.200s' matches nothing", key, name));
}

/* An exact name beats a module path. */
static enum accel_err mark_names(struct selection *s, const struct accel_name_list *list,
                                 unsigned bit, const char *key)
{
    for (int i = 0; i < list->n; i++) {
        const char *name = list->item[i]->text;
        struct hit *hit = accel_map_find(&s->exact, name);
        bool weight = bit == EXCLUDED, any = hit != NULL;
        for (struct hit *k = hit; k; k = k->next)
            weight = weight || k->holding->kind != ACCEL_TARGET_BIAS;
        hit = hit ? hit : accel_map_find(&s->module, name);
        for (struct hit *k = hit; k; k = k->next)
            k->holding->mark |= bit;
        if (any && !weight)
            ACCEL_TRY(missing(s, accel_config_fail(list->item[i], false,
                                                   "%s '%.200s' is a bias: name its layer, and "
                                                   "\"bias\" in target_names",
                                                   key, name)));
        bool harmless = bit == EXCLUDED && accel_map_find(&s->nodes, name);
        if (!hit && !harmless)
            ACCEL_TRY(fail_name(s, list->item[i], key));
    }
    return ACCEL_OK;
}

/* The names that patterns are tried on; fewer for biases, which only their own name excludes. */
static int names_of(const struct accel_holding *h, const char *name[4])
{
    int n = 0;
    name[n++] = h->name;
    if (h->kind == ACCEL_TARGET_BIAS)
        return n;
    name[n++] = h->node->label;
    if (*h->node->module)
        name[n++] = h->node->module;
    if (*h->module && strcmp(h->module, h->node->module) != 0)
        name[n++] = h->module;
    return n;
}

/* Matches `item` on one name: a pattern, or a substring when p is NULL. */
static enum accel_err try_name(bool *out, struct selection *s, struct accel_name_pattern *p,
                               const char *item, const char *name)
{
    size_t len = strlen(name);
    s->budget -= (int64_t)len;
    if (p)
        return accel_name_pattern_match(out, p, name, len, &s->budget);
    *out = strstr(name, item) != NULL;
    return s->budget > 0 ? ACCEL_OK : accel_fail(ACCEL_EARG, "too many names to search");
}

static enum accel_err mark_pattern(struct selection *s, const struct accel_config *item,
                                   struct accel_name_pattern *p, unsigned bit, const char *key)
{
    bool any = false;
    for (size_t i = 0; i < s->h->n; i++) {
        struct accel_holding *h = &s->h->at[i];
        const char *name[4];
        bool yes = false;
        for (int k = 0, n = names_of(h, name); k < n && !yes; k++)
            if (try_name(&yes, s, p, item->text, name[k]))
                return accel_config_fail(item, false, "%s '%.200s': %s", key, item->text,
                                         accel_errmsg());
        h->mark |= yes ? bit : 0;
        any = any || yes;
    }
    if (any)
        return ACCEL_OK;
    return missing(s,
                   accel_config_fail(item, false, "%s '%.200s' matches nothing", key, item->text));
}

static enum accel_err mark_patterns(struct selection *s, const struct accel_name_list *list,
                                    unsigned bit, const char *key, bool regex)
{
    for (int i = 0; i < list->n; i++) {
        const struct accel_config *item = list->item[i];
        struct accel_name_pattern *p = NULL;
        enum accel_err err = regex ? accel_name_pattern_new(&p, item->text) : ACCEL_OK;
        if (err == ACCEL_EARG)
            err =
                accel_config_fail(item, false, "%s '%.200s': %s", key, item->text, accel_errmsg());
        if (!err)
            err = mark_pattern(s, item, p, bit, key);
        accel_name_pattern_free(p);
        ACCEL_TRY(err);
    }
    return ACCEL_OK;
}

/* A type that neither the vocabulary nor the model has. */
static enum accel_err check_type(struct selection *s, const struct accel_config *item,
                                 const char *key)
{
    if (accel_map_find(&s->types, item->text))
        return ACCEL_OK;
    struct accel_near near = accel_near_begin(item->text);
    for (int i = 0; known_types[i]; i++) {
        if (strcmp(known_types[i], item->text) == 0)
            return ACCEL_OK;
        accel_near_try(&near, known_types[i]);
    }
    for (size_t i = 0; i < s->h->n && s->n_missing < MAX_NEAR; i++) {
        accel_near_try(&near, s->h->at[i].node->op_type);
        accel_near_try(&near, s->h->at[i].weight.type);
    }
    s->n_missing++;
    if (near.best)
        return missing(s,
                       accel_config_fail(item, false, "%s '%.200s' is unknown; did you mean '%s'?",
                                         key, item->text, near.best));
    return missing(s, accel_config_fail(item, false, "%s '%.200s' matches nothing in this model",
                                        key, item->text));
}

static bool has_type(const struct accel_holding *h, const char *type)
{
    if (h->kind == ACCEL_TARGET_BIAS)
        return false;
    if (strcmp(type, "default") == 0)
        return h->kind != ACCEL_TARGET_NORM;
    return strcmp(type, h->node->op_type) == 0 || strcmp(type, h->weight.type) == 0;
}

/* Types are judged together: lists that serve many models name some that this one lacks. */
static enum accel_err mark_types(struct selection *s, const struct accel_name_list *list,
                                 unsigned bit, const char *key)
{
    bool any = list->n == 0 || bit == EXCLUDED;
    for (int i = 0; i < list->n; i++) {
        const char *type = list->item[i]->text;
        ACCEL_TRY(check_type(s, list->item[i], key));
        any = any || strcmp(type, "default") == 0;
        s->budget -= (int64_t)s->h->n;
        for (size_t k = 0; k < s->h->n; k++)
            if (has_type(&s->h->at[k], type)) {
                s->h->at[k].mark |= bit;
                any = true;
            }
        if (s->budget < 0)
            return accel_config_fail(list->item[i], false, "%s: too many types to search", key);
    }
    if (any)
        return ACCEL_OK;
    return missing(s, accel_config_fail(list->item[0], false,
                                        "%s '%.200s' matches nothing in this model", key,
                                        list->item[0]->text));
}

static enum accel_err mark_all(struct selection *s, const struct accel_sub_config *sub)
{
    s->budget -= 4 * (int64_t)s->h->n;
    if (s->budget < 0)
        return accel_config_fail(sub->at, false, "config_list is too long for this model");
    for (size_t i = 0; i < s->h->n; i++)
        s->h->at[i].mark = 0;
    ACCEL_TRY(mark_types(s, &sub->op_types, TYPED, "op_types"));
    ACCEL_TRY(mark_names(s, &sub->op_names, NAMED, "op_names"));
    ACCEL_TRY(mark_patterns(s, &sub->op_names_re, PATTERN, "op_names_re", true));
    ACCEL_TRY(mark_patterns(s, &sub->op_partial_names, PATTERN, "op_partial_names", false));
    ACCEL_TRY(mark_types(s, &sub->exclude_op_types, EXCLUDED, "exclude_op_types"));
    ACCEL_TRY(mark_names(s, &sub->exclude_op_names, EXCLUDED, "exclude_op_names"));
    return mark_patterns(s, &sub->exclude_op_names_re, EXCLUDED, "exclude_op_names_re", true);
}

/* A normalisation's scale is meant only when its type or its exact name is given. */
static bool is_selected(const struct accel_holding *h, const struct accel_sub_config *sub)
{
    bool by_name = sub->op_names.n || sub->op_names_re.n || sub->op_partial_names.n;
    bool by_type = sub->op_types.n > 0;
    if (h->kind == ACCEL_TARGET_BIAS || (by_name && !(h->mark & (NAMED | PATTERN))) ||
        (by_type && !(h->mark & TYPED)))
        return false;
    return h->kind != ACCEL_TARGET_NORM || by_type || h->mark & NAMED;
}

/* First wins (v3), or last (v2); an entry with "exclude": true takes back what was before it. */
static void judge(struct selection *s, struct accel_verdict *verdict,
                  const struct accel_sub_config *sub)
{
    for (size_t i = 0; i < s->h->n; i++)
        verdict[s->h->at[i].tensor].mark = 0;
    for (size_t i = 0; i < s->h->n; i++) {
        const struct accel_holding *h = &s->h->at[i];
        verdict[h->tensor].mark |= (h->mark & EXCLUDED) | (is_selected(h, sub) ? NAMED : 0);
    }
    for (size_t i = 0; i < s->h->n; i++) {
        struct accel_verdict *v = &verdict[s->h->at[i].tensor];
        if (v->mark & EXCLUDED) {
            v->excluded = v->excluded || !sub->exclude;
        } else if (v->mark & NAMED && sub->exclude) {
            v->sub = NULL;
            v->excluded = true;
        } else if (v->mark & NAMED && (!v->sub || s->c->v2)) {
            v->sub = sub;
        }
    }
}

enum accel_err accel_targets_select(struct accel_verdict *verdict, struct accel_holdings *h,
                                    struct accel_model *m, const struct accel_prune_config *c,
                                    struct accel_log *log)
{
    struct selection s = {.h = h, .m = m, .c = c, .log = log, .budget = PATTERN_BUDGET};
    enum accel_err err;
    ACCEL_GOTO(err, index_holdings(&s));
    for (size_t g = 0; g < m->n_all_graph; g++)
        for (size_t i = 0; i < m->all_graph[g]->n_node; i++)
            ACCEL_GOTO(err, index_node(&s, m->all_graph[g]->node[i]));
    for (int i = 0; i < c->n_sub; i++) {
        ACCEL_GOTO(err, mark_all(&s, &c->sub[i]));
        judge(&s, verdict, &c->sub[i]);
    }
done:
    accel_map_clear(&s.exact);
    accel_map_clear(&s.module);
    accel_map_clear(&s.nodes);
    accel_map_clear(&s.types);
    accel_arena_clear(&s.arena);
    return err;
}
