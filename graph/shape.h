/* shape.h - dims that are numbers or symbols, and the symbols of a model.
 *
 * Every unknown size is a symbol, so that "the same unknown" is visible. Named symbols come from
 * the file (dim_param); others are made by inference. A size computed from one symbol by
 * floor((mul*s + add)/div) + off is a derived symbol and is found again when it is computed again
 * (two branches with equal strides meet with equal dims).
 *
 * Each symbol also has ACCEL_N_PROBES trial values. Constant propagation computes with those: what
 * comes out equal in all trials does not depend on the symbols (graph/constprop.h). */
#ifndef ACCEL_GRAPH_SHAPE_H
#define ACCEL_GRAPH_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/map.h"

#define ACCEL_N_PROBES 3

struct accel_dim {
    int64_t n; /* >= 0: the size. -1: unknown, see sym */
    int sym;   /* index of the symbol when n is -1; -1: not given yet */
};

struct accel_shape {
    int rank;              /* -1: unknown */
    struct accel_dim *dim; /* [rank], arena of the model */
};

struct accel_symbol {
    const char *name; /* from the file, or NULL */
    int64_t bound;    /* value set by --dim, or -1 */
    int base;         /* derived from this symbol, or -1 */
    int64_t mul, add, div, off;
    int64_t
        probe[ACCEL_N_PROBES]; /* trial values: 1; a small number; a large one. >= 0 for sizes */
};

struct accel_symbols {
    struct accel_symbol *at;
    size_t n, cap;
    size_t n_kept; /* the first ones came with the file and outlive an inference */
    struct accel_map by_name, by_rule;
    struct accel_arena arena;    /* names */
    struct accel_arena inferred; /* what one inference finds: keys, shapes, known contents */
    uint64_t known_size;         /* bytes of known contents in it */
    int64_t budget;              /* node visits left to this inference */
    int depth;                   /* bodies and calls it is inside of */
    enum accel_err failed;       /* a constant could not be read; ends this inference */
};

static inline struct accel_dim accel_dim_of(int64_t n)
{
    return (struct accel_dim){n, -1};
}
static inline struct accel_dim accel_dim_unknown(void)
{
    return (struct accel_dim){-1, -1};
}
static inline bool accel_dim_known(struct accel_dim d)
{
    return d.n >= 0;
}
/* Equal for certain: the same number or the same symbol. */
static inline bool accel_dim_same(struct accel_dim a, struct accel_dim b)
{
    return a.n >= 0 || b.n >= 0 ? a.n == b.n : a.sym >= 0 && a.sym == b.sym;
}
/* Different for certain: two different numbers. */
static inline bool accel_dim_differs(struct accel_dim a, struct accel_dim b)
{
    return a.n >= 0 && b.n >= 0 && a.n != b.n;
}

/* The symbol of this name (made when new); the number it is bound to, if any. Out-parameter first.
 */
enum accel_err accel_dim_named(struct accel_dim *out, struct accel_symbols *s,
                               const char *name) ACCEL_CHECKED;

/* What has these trial values: the number when all are the same and >= 0; unknown when one is
 * negative; else the symbol, made when there is none yet. */
enum accel_err accel_dim_of_probes(struct accel_dim *out, struct accel_symbols *s,
                                   const int64_t probe[ACCEL_N_PROBES]) ACCEL_CHECKED;

/* Trial value p of a dim: the number itself when it is one, -1 when it has no symbol yet. */
int64_t accel_dim_probe(struct accel_dim d, const struct accel_symbols *s, int p);

/* A new symbol without a name. */
enum accel_err accel_dim_fresh(struct accel_dim *out, struct accel_symbols *s) ACCEL_CHECKED;

/* The number a symbol is bound to, if it is bound; else d. */
struct accel_dim accel_dim_bound(struct accel_dim d, const struct accel_symbols *s);

/* floor((mul*d + add) / div) + off, div > 0, as a number or as the derived symbol. ESHAPE when a
 * number comes out negative or overflows. The identity gives d back. A dim without a symbol gives
 * an unknown dim. */
enum accel_err accel_dim_derive(struct accel_dim *out, struct accel_symbols *s, struct accel_dim d,
                                int64_t mul, int64_t add, int64_t div, int64_t off) ACCEL_CHECKED;

/* Product of two dims: number, derived symbol (one factor a number) or the memoised product of two
 * symbols. */
enum accel_err accel_dim_mul(struct accel_dim *out, struct accel_symbols *s, struct accel_dim a,
                             struct accel_dim b) ACCEL_CHECKED;

/* Product of all dims, or -1 when one is unknown or it overflows. */
int64_t accel_shape_count(const struct accel_shape *s);

/* "2x3x224x224", "Nx3x?x?", "scalar" for rank 0, "?" for an unknown rank; into `buf`, cut to size.
 * Returns buf. */
const char *accel_shape_text(const struct accel_shape *sh, const struct accel_symbols *s, char *buf,
                             size_t size);

/* The name to show for a dim: digits, the symbol's name, or "?". Into buf. */
const char *accel_dim_text(struct accel_dim d, const struct accel_symbols *s, char *buf,
                           size_t size);

/* Forgets what the last inference found: symbols made by it and everything in `inferred`. */
enum accel_err accel_symbols_restart(struct accel_symbols *s) ACCEL_CHECKED;

void accel_symbols_clear(struct accel_symbols *s);

#endif
