/* tensor.h - constants: a type, dims, and where the bytes are. Nothing is read before it is asked
 * for.
 *
 * A tensor's payload is a run of stored elements (as in raw_data, little endian) that lies in
 * memory or in a range of a file. Files are read with pread on a descriptor that is held open,
 * never mapped. */
#ifndef ACCEL_GRAPH_TENSOR_H
#define ACCEL_GRAPH_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/file.h"
#include "graph/dtype.h"

struct accel_edit;
struct accel_selection;

struct accel_tensor {
    const char
        *name; /* initializer's name, or the output of its Constant node; "" inside attributes */
    enum accel_dtype dtype;
    int rank;
    const int64_t *dim;      /* [rank] >= 0 */
    uint64_t n;              /* elements: the product of dim, proven not to overflow */
    uint64_t size;           /* payload bytes, = accel_dtype_size(dtype, n); proven to be there */
    const void *data;        /* payload in memory, or NULL: */
    struct accel_file *file; /* … in this file (borrowed from the model) */
    uint64_t offset;         /* … from this byte on */
    struct accel_edit
        *edit; /* NULL, or a change that is made while the elements are read out; owned */
    struct accel_selection *selection; /* NULL, or which elements of the payload these are
                                          (accel_tensor_select()); in the model's arena */
    bool changed; /* type, dims or payload are not those of `origin` any more */
    bool dropped; /* nobody reads it since an edit: it is not written */
    bool sparse;  /* came from a sparse_initializer; `data` is then the dense form */
    void *origin; /* the reader's handle of the message it came from; opaque outside onnx/ */
};

/* A lazy change to a tensor's elements (thresholding, n:m, …). Edits do not nest. A tensor's dims
 * and dtype do not change under an edit; cutting is another mechanism.
 *
 * accel_tensor_stream() drives it: prepare() once per pass, then apply() on ascending runs of
 * elements that together cover the tensor. */
struct accel_edit_ops {
    /* What must be known before the first apply(). `whole`: all elements of the tensor when they
     * fit in the reader's buffer, so that a threshold costs no second read; else NULL, and the edit
     * reads by itself with accel_tensor_scan(), through the `scratch_size` bytes of page-aligned
     * room at `scratch` (NULL and 0 beside a `whole`). Does nothing when called again. */
    enum accel_err (*prepare)(struct accel_edit *, const struct accel_tensor *, const void *whole,
                              void *scratch, size_t scratch_size);
    /* Changes the elements [first, first + count) in place. Both are multiples of grain, but for
     * the end. `elem` may have any alignment. A pass begins with first = 0. */
    enum accel_err (*apply)(struct accel_edit *, uint64_t first, uint64_t count, void *elem);
    void (*free)(struct accel_edit *);
};
struct accel_edit {
    const struct accel_edit_ops *ops;
    uint64_t grain; /* elements, >= 1 */
    bool prepared;  /* set by prepare(): the elements need not be seen again before apply() */
};

/* Receives stored elements [first, first + count), in order. `elem` may have any alignment: read it
 * with memcpy or unaligned loads. */
typedef enum accel_err (*accel_sink)(void *ctx, uint64_t first, uint64_t count, const void *elem);

/* Room that a pass needs: one page-aligned block, reused from tensor to tensor. */
struct accel_buffer {
    void *data;
    size_t size;   /* bytes, multiple of 4096; 16 MiB + 64 KiB by default, more only when one grain
                      needs it */
    bool borrowed; /* the block belongs to somebody else: it is not freed */
};
#define ACCEL_BUFFER_SIZE (((size_t)16 << 20) + ((size_t)64 << 10))

/* size 0: ACCEL_BUFFER_SIZE. */
enum accel_err accel_buffer_init(struct accel_buffer *b, size_t size) ACCEL_CHECKED;
void accel_buffer_clear(struct accel_buffer *b);

/* Streams the tensor as it will be after its edit: one read of the payload when it fits in the
 * buffer or the edit is already prepared. */
enum accel_err accel_tensor_stream(const struct accel_tensor *t, struct accel_buffer *b,
                                   accel_sink sink, void *ctx) ACCEL_CHECKED;

/* Streams the stored elements, ignoring any edit. */
enum accel_err accel_tensor_scan(const struct accel_tensor *t, struct accel_buffer *b,
                                 accel_sink sink, void *ctx) ACCEL_CHECKED;

/* Reads stored elements [first, first + count) without the edit. first and count must be even for
 * 4-bit types and multiples of 4 for 2-bit ones, but for the end. */
enum accel_err accel_tensor_read(const struct accel_tensor *t, uint64_t first, uint64_t count,
                                 void *elem) ACCEL_CHECKED;

/* Cuts: of axis i the n_kept[i] indices kept[i] stay, ascending; NULL: all. Dims and size change at
 * once, elements are picked while they are read; lists are borrowed, for as long as the tensor
 * lives. Types smaller than a byte are copied to the arena. An edit must not be there. ENOMEM, and
 * for copies the errors of reading. */
enum accel_err accel_tensor_select(struct accel_tensor *t, struct accel_arena *arena,
                                   const int64_t *const *kept, const int64_t *n_kept) ACCEL_CHECKED;

/* Gives the tensor new elements: n of its type, in the arena; the dims stay. */
void accel_tensor_replace(struct accel_tensor *t, const void *data);

/* Sets the edit, freeing one that was there. */
void accel_tensor_set_edit(struct accel_tensor *t, struct accel_edit *edit);

#endif
