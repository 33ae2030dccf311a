/* radix.h - exact ranking of magnitudes by counting: no sort, no copy, memory independent of the
 * tensor.
 *
 * The bits of |w|, read as an unsigned number, sort like |w|. This number is the element's key: 15
 * bits for f16 and bf16, 31 for f32, 63 for f64 (and for integers behind DequantizeLinear, and for
 * types that are ranked together). One pass counts the upper 15 bits of all keys, a second one the
 * next 16 bits of those keys that share the wanted upper ones; f64 needs four passes. */
#ifndef ACCEL_PRUNE_RADIX_H
#define ACCEL_PRUNE_RADIX_H

#include "graph/tensor.h"

#define ACCEL_KEY_ALL   ((uint64_t)1 << 63) /* larger than every key */
#define ACCEL_KEY_BLOCK 512                 /* keys loaded at a time where keys must be computed */

/* How elements of one tensor become keys. */
struct accel_key {
    enum accel_dtype dtype;
    bool wide;               /* keys of the value as a double, whatever the type */
    int bits;                /* significant bits of a key: 15, 31, 63 */
    const double *scale;     /* [n_scale] integers: |q - zero[c]| * scale[c]; NULL for floats */
    const double *zero;      /* [n_scale] */
    uint64_t n_scale, inner; /* c = index / inner % n_scale */
};

/* A float type's own keys, or `wide` ones. */
struct accel_key accel_key_of(enum accel_dtype dtype, bool wide);

/* Keys of elements [first, first + count) of the tensor, stored at `elem` (any alignment); element
 * `at` of that memory is element `first`. */
void accel_key_load(const struct accel_key *k, const void *elem, size_t at, uint64_t first,
                    size_t count, uint64_t *key);

/* The magnitudes of the same elements. */
void accel_key_magnitudes(const struct accel_key *k, const void *elem, size_t at, uint64_t first,
                          size_t count, double *magnitude);

/* The magnitude a key stands for. */
double accel_key_value(const struct accel_key *k, uint64_t key);

/* The smallest key whose magnitude is at least v >= 0 (ACCEL_KEY_ALL beyond infinity). */
uint64_t accel_key_at_least(const struct accel_key *k, double v);

/* Key of infinity; larger ones are NaN. */
uint64_t accel_key_infinity(const struct accel_key *k);

/* Writes zero (the zero point) to element `at` of `elem`, which is element `index` of the tensor.
 */
void accel_key_clear(const struct accel_key *k, void *elem, size_t at, uint64_t index);

/* Zeroes the elements with key < limit among the `count` from element `at` of `elem` on, which is
 * element `first` of the tensor; returns how many of them are zero then. */
uint64_t accel_key_cut(const struct accel_key *k, void *elem, uint64_t at, uint64_t first,
                       uint64_t count, uint64_t limit);

/* How many of `count` elements have a key < limit. */
uint64_t accel_key_below(const struct accel_key *k, const void *elem, uint64_t first,
                         uint64_t count, uint64_t limit);

#define ACCEL_SPECTRUM_BITS 15
/* Counts by the upper 15 bits of the keys. */
struct accel_spectrum {
    uint32_t (*part)[1 << ACCEL_SPECTRUM_BITS]; /* [4] interleaved, so that equal neighbours do not
                                                   wait for each other */
    uint64_t pending;                           /* elements counted in part only */
    uint64_t *bin;                              /* [2^15] complete after accel_spectrum_end() */
    uint64_t *digit;                            /* [2^16] room of accel_select(), or NULL */
    uint64_t n, zeros, max_key;
};
enum accel_err accel_spectrum_init(struct accel_spectrum *s) ACCEL_CHECKED;
void accel_spectrum_clear(struct accel_spectrum *s);
void accel_spectrum_reset(struct accel_spectrum *s);
void accel_spectrum_add(struct accel_spectrum *s, const struct accel_key *k, const void *elem,
                        uint64_t first, uint64_t count);
void accel_spectrum_end(struct accel_spectrum *s);

/* The largest finite magnitude; to the accuracy of a bin beside infinities and NaN. */
double accel_spectrum_largest(const struct accel_spectrum *s, const struct accel_key *k);

/* The non-zero magnitudes in `n_bin` equal steps of [0, max]; exact but for elements within 1 % of
 * a step's edge. */
void accel_spectrum_fold(const struct accel_spectrum *s, const struct accel_key *k, double max,
                         uint64_t *bin, int n_bin);

/* Where entries come from: memory, or passes over a tensor's stored elements. */
struct accel_source {
    const struct accel_tensor *tensor;
    const void *whole; /* all n entries, or NULL */
    uint64_t n;
    struct accel_buffer room; /* for passes */
};
enum accel_err accel_source_pass(struct accel_source *s, accel_sink sink, void *ctx) ACCEL_CHECKED;

/* Counts keys whose bits above `high` equal `prefix` by their bits [low, high): table[2^(high -
 * low)] is added to. */
struct accel_digit {
    uint64_t prefix;
    int high, low;
    uint64_t *table;
};
void accel_digit_add(const struct accel_digit *d, const struct accel_key *k, const void *elem,
                     uint64_t first, uint64_t count);

/* What goes: every entry with a smaller key, and the entries of index < tie_end with this key. */
struct accel_key_cut {
    uint64_t key, tie_end;
};

/* The cut that removes exactly `count` entries, the smallest first, equal ones by index. key is
 * that of the largest removed entry. `s` holds the source's keys, and keeps room for next time. */
enum accel_err accel_select(struct accel_key_cut *out, struct accel_source *src,
                            const struct accel_key *k, struct accel_spectrum *s,
                            uint64_t count) ACCEL_CHECKED;

/* The index behind the `ties`-th entry whose key is `key`. */
enum accel_err accel_select_tie_end(uint64_t *out, struct accel_source *src,
                                    const struct accel_key *k, uint64_t key,
                                    uint64_t ties) ACCEL_CHECKED;

#endif
