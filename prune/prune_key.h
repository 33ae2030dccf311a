/* prune_key.h - every key of a pruning config in one table: where it may stand and what it may be.
 * The parser checks by it, and a test holds docs/prune.schema.json against it. */
#ifndef ACCEL_PRUNE_PRUNE_KEY_H
#define ACCEL_PRUNE_PRUNE_KEY_H

#include "base/config.h"

/* The maps of a pruning config; each is a definition of the schema. */
enum accel_key_place {
    ACCEL_KEY_NOWHERE,    /* a map whose keys are not checked here */
    ACCEL_KEY_CONFIG,     /* the whole object */
    ACCEL_KEY_SUB_CONFIG, /* an entry of config_list */
    ACCEL_KEY_TARGET_SETTINGS,
    ACCEL_KEY_TARGET_SETTING,
    ACCEL_KEY_ALIGN,
    ACCEL_KEY_SCHEDULE,
    ACCEL_KEY_BN_REESTIMATE,
    ACCEL_KEY_TARGET,
    ACCEL_KEY_REGULARIZE,
    ACCEL_KEY_FINE_TUNE,
    ACCEL_N_KEY_PLACES
};

enum accel_key_kind { /* bits of `kinds` and `items` */
                      ACCEL_IS_NULL = 1,
                      ACCEL_IS_BOOL = 2,
                      ACCEL_IS_INTEGER = 4,
                      ACCEL_IS_NUMBER = 8, /* integers too */
                      ACCEL_IS_TEXT = 16,
                      ACCEL_IS_LIST = 32,
                      ACCEL_IS_MAP = 64
};

struct accel_prune_key {
    const char *name;
    enum accel_key_place place;
    unsigned kinds;
    unsigned items;             /* kinds of a list's items; lists have at least one */
    enum accel_key_place inner; /* of a map, or of the maps in a list */
    double min, max;            /* of numbers (list items too); NAN: no bound */
    const char *const *choices; /* of texts, NULL-terminated; NULL: any */
    bool v2;                    /* a key of NNI v2 */
    bool may_be_empty;          /* a list without items says something: nothing is left out */
};

extern const struct accel_prune_key accel_prune_key_table[]; /* ended by name NULL */

/* The schema's name of a place: "config", "sub_config", … */
const char *accel_key_place_name(enum accel_key_place place);

/* Checks a map and all below it: unknown keys (with near names, or the place they belong to),
 * kinds, ranges, choices. EARG with position. */
enum accel_err accel_prune_key_check(const struct accel_config *map,
                                     enum accel_key_place place) ACCEL_CHECKED;

#endif
