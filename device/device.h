/* device.h - the one seam between exec/ and fast kernels.
 *
 * exec asks a device for a kernel by domain and operator, with the longest chain of nodes that
 * could be one kernel. The kernel OFFERS (how many nodes it takes, in which layout its result lies,
 * how much workspace it needs), PREPARES a state once (weights reordered, code generated) and then
 * runs. What the CPU does not need yet (streams, memory) is not here. */
#ifndef ACCEL_DEVICE_DEVICE_H
#define ACCEL_DEVICE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define ACCEL_MAX_IO    32 /* operands of one chain; exec keeps larger nodes to itself */
#define ACCEL_MAX_CHAIN 6

struct accel_node;
struct accel_value;
struct accel_device;

/* How a value lies in memory. OPAQUE is the device's own (oneDNN's blocks): two are equal when
 * their tags are. */
struct accel_layout {
    enum { ACCEL_ROW_MAJOR, ACCEL_OPAQUE } kind;
    size_t size;     /* bytes of an OPAQUE value; blocks may be filled up */
    const void *tag; /* the device's, lives as long as it */
};

/* The operands of a chain: all inputs of its first node, then of each further node those that are
 * not the result of the one before. All shapes are numbers. */
struct accel_ask {
    const struct accel_node *const *chain; /* each is the only reader of the one before */
    int n_chain;
    const struct accel_value *const *operand; /* NULL: left out */
    int n_operand;
    const void *constant[ACCEL_MAX_IO]; /* contents of operands that never change, else NULL */
    /* Contents (of a constant, else NULL) and layout of a value behind an operand: the quantised
     * form that it is made from. ENOSUP: it is not there when the chain runs. */
    enum accel_err (*look)(void *ctx, const struct accel_value *, const void **constant,
                           struct accel_layout *layout);
    void *look_ctx;
    struct accel_layout in[ACCEL_MAX_IO];
    bool row_major; /* somebody reads the last node's result as it is */
    bool bf16;      /* products may read their operands as bfloat16 */
    bool tune;      /* choose by timing, also among kernels that round more coarsely */
};

struct accel_offer {
    int takes;               /* nodes of the chain, from its start; 0: cannot */
    struct accel_layout out; /* of the last of them */
    size_t workspace;        /* bytes, garbage between calls */
    /* Values behind the operands that the kernel reads in their place; NULL: the operand itself.
     * Constants that it copied need not be named: nobody makes a value that nobody reads. */
    const struct accel_value *instead[ACCEL_MAX_IO];
    bool unread[ACCEL_MAX_IO]; /* the kernel reads neither */
};

struct accel_run {
    void *state;                 /* from prepare */
    const void *x[ACCEL_MAX_IO]; /* as ask->operand; laid out as ask->in */
    void *y;
    void *workspace;
};

struct accel_fast {
    /* ENOMEM and EDEVICE only; what it cannot do is an offer that takes 0. */
    enum accel_err (*offer)(struct accel_offer *, struct accel_device *, const struct accel_ask *);
    /* With the same ask, n_chain cut to what the offer takes. Constants are only borrowed. */
    enum accel_err (*prepare)(void **state, struct accel_device *, const struct accel_ask *);
    /* False: `forward` does not read this constant operand, it has a copy of its own or needs none.
     */
    bool (*reads)(const void *state, int operand);
    void (*release)(void *state);
    enum accel_err (*forward)(const struct accel_run *);
};

/* ---------------------------------------------------------------- training
 *
 * A training step runs forward through all nodes and backward in the opposite order. The gradient
 * of a value lies in memory as the value does. Weights are operands in row-major order whose
 * contents change from step to step; so do their gradients lie. */

struct accel_train_ask {
    struct accel_ask ask; /* constant[] holds what is no trainable weight; look is NULL */
    uint64_t want_gx;     /* operands whose gradient is wanted: bit i */
    uint64_t weights;     /* operands that are trainable weights: row-major, f32 */
    uint64_t updates;     /* operands that forward writes (running statistics): row-major, f32 */
};

#define ACCEL_RESULT_BIT ((uint64_t)1 << 63)

struct accel_train_offer {
    int takes;               /* nodes of the chain, from its start; 0: cannot */
    struct accel_layout out; /* of the last of them, and of its gradient */
    size_t workspace;        /* bytes, garbage between calls */
    size_t saved;            /* bytes kept from forward to backward, the kernel's own business */
    uint64_t backward_reads; /* operands: bit i; the result: ACCEL_RESULT_BIT */
    uint64_t in_place;       /* operands whose gradient may be written over gy: equal layouts, and
                                add clear for it */
};

struct accel_train_run {
    void *state;
    const void *x[ACCEL_MAX_IO]; /* as the ask's operands; in backward those of backward_reads */
    void *y;
    const void *gy;
    void *gx[ACCEL_MAX_IO]; /* NULL: not wanted; laid out as the operand */
    uint64_t add;           /* operands to whose gradient is added; the others' is overwritten */
    void *saved, *workspace;
};

struct accel_fast_train {
    enum accel_err (*offer)(struct accel_train_offer *, struct accel_device *,
                            const struct accel_train_ask *);
    enum accel_err (*prepare)(void **state, struct accel_device *, const struct accel_train_ask *,
                              const struct accel_train_offer *);
    void (*release)(void *state);
    enum accel_err (*forward)(const struct accel_train_run *);
    enum accel_err (*backward)(const struct accel_train_run *);
};

/* One thread at a time may use a device; plans may share it. */
struct accel_device {
    const char *name; /* "cpu, oneDNN 2.6.3" */
    void (*free)(struct accel_device *);
    const struct accel_fast *(*fast)(struct accel_device *, const char *domain, const char *op);
    /* For training steps; NULL: it has none. */
    const struct accel_fast_train *(*train)(struct accel_device *, const char *domain,
                                            const char *op);
    /* From row-major elements to this layout; there when `train` is. */
    enum accel_err (*from_row_major)(struct accel_device *, void *to, const void *from,
                                     const struct accel_layout *layout);
    /* Row-major elements of a float value of this layout. */
    enum accel_err (*to_row_major)(struct accel_device *, void *to, const void *from,
                                   const struct accel_layout *layout);
    /* EDEVICE when products of bfloat16 are slower here than those of float32; the text tells both
     * times. */
    enum accel_err (*check_bf16)(struct accel_device *);
};

/* The device of this build for this processor; NULL, and no error, when the build has none or its
 * library cannot be opened: the plain kernels then do all the work. Errors: ENOMEM. */
enum accel_err accel_device_cpu(struct accel_device **out) ACCEL_CHECKED;

/* The devices it picks from, NULL as above: ops/onednn (not in every build), ops/blas_device.c. */
enum accel_err accel_device_onednn(struct accel_device **out) ACCEL_CHECKED;
enum accel_err accel_device_blas(struct accel_device **out) ACCEL_CHECKED;

#endif
