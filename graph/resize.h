/* resize.h - repairs of a node after its operands were cut: attributes, size inputs, means.
 *
 * op->resize(node, r) is called for every node with a cut axis, or a size input that must be
 * written anew, before anything of the model is changed: shapes and known contents are those of the
 * model before the cut. Attributes are edited in the form that the file's opset has. Afterwards the
 * caller cuts the constants, parses changed nodes anew (op->parse) and infers the model. */
#ifndef ACCEL_GRAPH_RESIZE_H
#define ACCEL_GRAPH_RESIZE_H

#include "graph/op.h"

/* What was cut from an axis. */
struct accel_cut {
    int64_t was, now;    /* units; of the trial value where the size is a symbol */
    const int64_t *kept; /* [now] ascending; NULL: nothing was cut */
};

/* An element of a size input that depends on free sizes: it stays computed as it is. */
#define ACCEL_SIZE_VARIES INT64_MIN

struct accel_resize {
    struct accel_node *node;
    const struct accel_cut *const *cut; /* [slots][rank]; NULL for slots left out */
    bool changed;                       /* attributes were edited */

    /* Input `slot` gets these n elements, as a constant of this node's own (constants are shared);
     * rank and type stay; one that the node lacks is added as an int64 vector. A computed vector
     * keeps what it may: an element is written only if it must change or was read (by Shape) from
     * an axis that was cut: as want[i], or as `open` where that is ACCEL_SIZE_VARIES. open is
     * ACCEL_SIZE_VARIES when the operator has no such word: then the axes it was read from should
     * have been walls, ENOSUP. */
    enum accel_err (*ints)(struct accel_resize *, int slot, const int64_t *want, int64_t n,
                           int64_t open);
    /* Output `slot` is multiplied by a factor, behind the node. */
    enum accel_err (*scale)(struct accel_resize *, int slot, double factor);
    void *ctx;
};

/* Units before and after; they are the same on an axis that nothing was cut from. */
int64_t accel_resize_was(const struct accel_resize *r, int slot, int axis);
int64_t accel_resize_now(const struct accel_resize *r, int slot, int axis);
bool accel_resize_hit(const struct accel_resize *r, int slot, int axis);
bool accel_resize_hit_any(const struct accel_resize *r, int slot);

/* Unit before the cut that is the i-th one after it. */
int64_t accel_resize_kept(const struct accel_resize *r, int slot, int axis, int64_t i);

/* Kept units below `at`: the new place of a kept unit. Cost: log of the units. */
int64_t accel_resize_before(const struct accel_resize *r, int slot, int axis, int64_t at);

/* Attributes; those that already say so are left alone. */
enum accel_err accel_resize_attr_int(struct accel_resize *r, const char *name,
                                     int64_t v) ACCEL_CHECKED;
enum accel_err accel_resize_attr_ints(struct accel_resize *r, const char *name, const int64_t *v,
                                      size_t n) ACCEL_CHECKED;
enum accel_err accel_resize_attr_drop(struct accel_resize *r, const char *name) ACCEL_CHECKED;

/* The two calls above, skipped when nothing would change. */
enum accel_err accel_resize_ints(struct accel_resize *r, int slot, const int64_t *want, int64_t n,
                                 int64_t open) ACCEL_CHECKED;
enum accel_err accel_resize_scale(struct accel_resize *r, int slot, double factor) ACCEL_CHECKED;

#endif
