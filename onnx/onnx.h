/* onnx.h - ONNX files in and out.
 *
 * Reading: one scan of the wire format checks every length and the nesting and finds the payloads;
 * protobuf-c sees only the rest. Writing: clean parts are copied from the file they came from, byte
 * for byte; dirty ones are packed anew; payloads stream through their edits. */
#ifndef ACCEL_ONNX_ONNX_H
#define ACCEL_ONNX_ONNX_H

#include "graph/graph.h"

struct accel_onnx_read_options {
    bool allow_linked_data; /* follow symlinks of model caches (warns) */
    bool skip_data; /* accel-inspect: a missing or unsafe data file is a warning, the tensors have
                       no bytes */
};

/* Reads PATH into a graph: nodes parsed (op->parse), names resolved, order, producers and
 * references proven. Shapes are not inferred yet. Errors: EMODEL and ESHAPE with a text that names
 * the guilty thing ("initializer 'w': …", "node 'n' (Conv): …"), without PATH in front; EIO;
 * ENOMEM. */
enum accel_err accel_onnx_read(struct accel_model **out, const char *path,
                               const struct accel_onnx_read_options *opt) ACCEL_CHECKED;

enum accel_external { ACCEL_EXTERNAL_AUTO, ACCEL_EXTERNAL_YES, ACCEL_EXTERNAL_NO };

/* What was written, or would be. */
struct accel_onnx_written {
    uint64_t size; /* model and data file */
};

struct accel_onnx_write_options {
    enum accel_external external;
    bool sparse_initializers; /* weights with >= 80 % zeros as sparse_initializer */
    const struct accel_property
        *meta; /* added to metadata_props, or replacing those of the same key */
    size_t n_meta;
    /* Called after each tensor with its bytes, for progress; an error (the user gave up) ends the
     * writing and leaves the old files. May be NULL. */
    enum accel_err (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
    /* Called when the new files are complete and checked but not yet renamed into place; an error
     * stops there and leaves the old files (so that a report that cannot be written fails the whole
     * run). Not called by a dry write. May be NULL. */
    enum accel_err (*ready)(void *ready_ctx, const struct accel_onnx_written *w);
    void *ready_ctx;
};

/* Writes the model as it is now (edits applied) to PATH by temporary file, fsync, self-check,
 * rename. PATH may be the file that was read. Nothing is left behind on failure. */
enum accel_err accel_onnx_write(struct accel_onnx_written *out, struct accel_model *m,
                                const char *path,
                                const struct accel_onnx_write_options *opt) ACCEL_CHECKED;

/* The same without writing: streams every edited tensor (so that edits know their results) and
 * computes the size. */
enum accel_err accel_onnx_dry_write(struct accel_onnx_written *out, struct accel_model *m,
                                    const char *path,
                                    const struct accel_onnx_write_options *opt) ACCEL_CHECKED;

#endif
