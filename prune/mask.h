/* mask.h - what all edits that zero weights have in common: the keys of their tensor, the numbers
 * of their row, and how a count, a threshold or a shared ranking becomes a cut. */
#ifndef ACCEL_PRUNE_MASK_H
#define ACCEL_PRUNE_MASK_H

#include "base/log.h"
#include "prune/prune.h"
#include "prune/radix.h"

/* First member of every edit of this room. */
struct accel_mask {
    struct accel_edit edit;
    struct accel_prune_row *row; /* outlives the writing */
    struct accel_log *log;
    struct accel_spectrum *shared; /* room for counting that outlives the writing, or NULL */
    struct accel_key key;
    double *scale;               /* owns what key.scale and key.zero point to, or NULL */
    bool surveyed;               /* row's numbers "before" are known */
    bool left;                   /* holds NaN or infinity: nothing changes */
    bool count_all;              /* the histogram "after" is counted, not derived */
    uint64_t zeros;              /* seen in the pass that is going on */
    struct accel_spectrum after; /* with count_all, during a pass */
};

/* An edit of `size` bytes that begins with a mask. Reads the scales of stored integers. */
enum accel_err accel_mask_new(struct accel_mask **out, size_t size,
                              const struct accel_edit_ops *ops, struct accel_prune_row *row,
                              struct accel_log *log) ACCEL_CHECKED;
/* Frees what the mask owns, and the edit. */
void accel_mask_free(struct accel_mask *m);

/* The source that prepare() was given. Clear src->room when done. */
struct accel_source accel_mask_source(const struct accel_tensor *t, const void *whole,
                                      void *scratch, size_t scratch_size);

/* An empty spectrum: the shared one, or `own` initialised. Clear `own` (zeroed before) in the end.
 */
enum accel_err accel_mask_room(struct accel_spectrum **out, struct accel_mask *m,
                               struct accel_spectrum *own) ACCEL_CHECKED;

/* One pass: fills `s` with the tensor's keys, the row with its numbers before, and finds NaN and
 * infinity (then `left` is set and a warning names the weight). */
enum accel_err accel_mask_survey(struct accel_mask *m, struct accel_spectrum *s,
                                 struct accel_source *src) ACCEL_CHECKED;

/* The same from a spectrum that was filled already. */
void accel_mask_surveyed(struct accel_mask *m, const struct accel_spectrum *s);

/* Finds NaN and infinity from the largest key. */
void accel_mask_check(struct accel_mask *m, uint64_t max_key);

/* To be called at the end of every apply(): `zeros` among the elements as they are now. */
enum accel_err accel_mask_note(struct accel_mask *m, uint64_t first, uint64_t count,
                               const void *elem, uint64_t zeros) ACCEL_CHECKED;

/* Which entries of a ranking go. */
enum accel_rule {
    ACCEL_RULE_COUNT,     /* the `count` smallest */
    ACCEL_RULE_THRESHOLD, /* all below `threshold`, but at least `low` and at most `high` entries */
    ACCEL_RULE_CUT        /* all below cut.key and the first `ties` of `equal` with this key */
};
struct accel_choice {
    enum accel_rule rule;
    uint64_t count, low, high;
    double threshold;
    uint64_t ties, equal;
    struct accel_key_cut cut; /* the result; with RULE_CUT its key is given */
    double largest;           /* magnitude of the cut; NAN: nothing goes */
};

/* Completes choice->cut. `s` holds the keys of the source (not used by RULE_CUT). */
enum accel_err accel_choice_make(struct accel_choice *c, struct accel_source *src,
                                 const struct accel_key *k, struct accel_spectrum *s) ACCEL_CHECKED;

/* Small tensors in memory: survey and choice by sorting. */
enum { ACCEL_SMALL = 1024 };
/* The n keys of `elem` in order; free with accel_free(). */
enum accel_err accel_small_sort(uint64_t **out, const struct accel_key *k, const void *elem,
                                uint64_t n) ACCEL_CHECKED;
/* Fills in the row's numbers before; returns the largest key. */
uint64_t accel_small_survey(struct accel_prune_row *row, const struct accel_key *k,
                            const uint64_t *key);
/* accel_choice_make() for RULE_COUNT and RULE_THRESHOLD. */
enum accel_err accel_small_choose(struct accel_choice *c, struct accel_source *src,
                                  const struct accel_key *k, const uint64_t *key) ACCEL_CHECKED;

/* floor(n * ratio * (1 + 1e-12)), at most n; `strict`: floor(n * ratio), as NNI counts. */
uint64_t accel_choice_count(uint64_t n, double ratio, bool strict);

/* Entries that are ranked with others. */
struct accel_member {
    struct accel_mask *mask;
    struct accel_choice *choice; /* result: RULE_COUNT where a bound holds, else RULE_CUT */
    struct accel_source src;     /* of the entries */
    struct accel_key key;        /* the same kind for all members */
    uint64_t weight;             /* elements per entry */
    double ratio;
    bool entries; /* entries are not the tensor's elements: the mask is surveyed already */
    uint64_t below, equal, *table;
};

/* One ranking over all members: as many elements go as the ratios of all members ask for together
 * (members with NaN left out), smallest first, ties by order of members and index; choice->low and
 * choice->high hold for each, and what they take from one the others make up. An entry that would
 * exceed the number stays. Three or more passes over all members where they are many; memory is
 * 32 MiB at most.
 * strict: as NNI: ties at the threshold stay, bounds hold only where all are at theirs. */
enum accel_err accel_global_rank(struct accel_member *member, size_t n, bool strict) ACCEL_CHECKED;

/* Edits. `choice` is copied; the row's target says the rest. */
enum accel_err accel_level_new(struct accel_mask **out, struct accel_choice **choice,
                               struct accel_prune_row *row, struct accel_log *log) ACCEL_CHECKED;

/* block[i]: size along dim i of the tensor, dividing it. */
enum accel_err accel_block_new(struct accel_mask **out, struct accel_choice **choice,
                               struct accel_prune_row *row, const int64_t *block,
                               struct accel_log *log) ACCEL_CHECKED;
/* Reads the tensor and computes the blocks' metrics ahead of writing, as a ranking's source. */
enum accel_err accel_block_measure(struct accel_mask *m, struct accel_source *src) ACCEL_CHECKED;
uint64_t accel_block_count(const struct accel_mask *m);
void accel_block_member(struct accel_mask *m, struct accel_member *member);
/* Gives the metrics' memory back; writing computes them again. */
void accel_block_drop(struct accel_mask *m);

/* Ranks each index of dim `axis` by itself: choice's numbers are per channel. */
enum accel_err accel_channel_new(struct accel_mask **out, struct accel_choice **choice,
                                 struct accel_prune_row *row, int axis,
                                 struct accel_log *log) ACCEL_CHECKED;

/* At most n of every m consecutive elements along dim `axis` survive. */
enum accel_err accel_nm_new(struct accel_mask **out, struct accel_prune_row *row, int axis,
                            int64_t n, int64_t m, struct accel_log *log) ACCEL_CHECKED;

/* Zeroes those entries of a bias whose output channel (index of `axis`) of `weight` is all zero as
 * it is written. */
enum accel_err accel_align_new(struct accel_mask **out, struct accel_prune_row *row,
                               const struct accel_target *weight, int axis,
                               struct accel_log *log) ACCEL_CHECKED;

#endif
