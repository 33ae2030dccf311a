/* config_int.h - the three parts of the config reader: source text, events to tree, scalars. */
#ifndef ACCEL_BASE_CONFIG_INT_H
#define ACCEL_BASE_CONFIG_INT_H

#include "base/config.h"

#define ACCEL_CONFIG_MAX_SIZE  ((size_t)4 << 20)
#define ACCEL_CONFIG_MAX_DEPTH 64
#define ACCEL_CONFIG_MAX_ITEMS 100000

/* How a text is read, and what is counted over all texts of a file. */
struct accel_config_parse {
    struct accel_config_file *file;
    bool json;       /* strict JSON, else YAML 1.2 */
    const char *set; /* the value of --set PATH, or NULL: no positions then */
    size_t n_items;
};

/* Makes the tree of a text (its comments already blanked for JSON). EARG with positions. */
enum accel_err accel_config_build(struct accel_config **out, struct accel_config_parse *p,
                                  const char *text, size_t len) ACCEL_CHECKED;

/* Sets kind and value of a scalar from `text` (in the file's arena): plain ones by the core schema
 * of YAML 1.2. False when `json` is set and JSON has no such literal. */
bool accel_config_scalar(struct accel_config *c, const char *text, bool plain, bool json);

/* EARG at a place of the text. */
enum accel_err accel_config_fail_at(const struct accel_config_parse *p, int line, int col,
                                    const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
