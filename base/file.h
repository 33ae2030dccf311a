/* file.h - reading by position, and writing so that a reader sees the old file or the new one. */
#ifndef ACCEL_BASE_FILE_H
#define ACCEL_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* An open file that is only read. */
struct accel_file {
    char *path;    /* as it is shown to people */
    int fd;        /* close-on-exec */
    int direct_fd; /* the same file with O_DIRECT; -1: not opened yet, -2: cannot be had */
    uint64_t size; /* when it was opened */
    dev_t dev;
    ino_t ino;
};

/* Opens a regular file. ACCEL_EMODEL when it is missing, unreadable or no regular file. */
enum accel_err accel_file_open(struct accel_file **out, const char *path) ACCEL_CHECKED;

/* Takes over an open descriptor (closed on failure too). */
enum accel_err accel_file_adopt(struct accel_file **out, int fd, const char *path) ACCEL_CHECKED;

void accel_file_close(struct accel_file *f);

/* Reads exactly `size` bytes at `offset`. A file that has become shorter is ACCEL_EMODEL, a failing
 * device ACCEL_EIO. Uses O_DIRECT when offset, size and buf are multiples of 4096, the run is at
 * least 1 MiB, the file system allows it and the page cache does not hold the range already. */
enum accel_err accel_file_read(struct accel_file *f, uint64_t offset, uint64_t size,
                               void *buf) ACCEL_CHECKED;

/* A file being written beside its target: PATH.XXXXXX.tmp, mode from the target if it exists, else
 * the umask. Nothing is visible under `path` before accel_out_commit(). Errors: EIO names the
 * folder when it is missing or read-only; EARG when the target is a folder or a device. */
struct accel_out;

enum accel_err accel_out_open(struct accel_out **out, const char *path) ACCEL_CHECKED;

/* Appends. Large files go around the page cache where the file system allows it; pages of at least
 * 1 MiB at an aligned address and position without a copy. */
enum accel_err accel_out_write(struct accel_out *o, const void *buf, uint64_t size) ACCEL_CHECKED;

/* Appends `size` bytes of `f` from `offset` on. Errors of both sides as in accel_file_read() and
 * accel_out_write(). */
enum accel_err accel_out_copy(struct accel_out *o, struct accel_file *f, uint64_t offset,
                              uint64_t size) ACCEL_CHECKED;

/* Appends zeros up to a multiple of `align`. */
enum accel_err accel_out_pad(struct accel_out *o, uint64_t align) ACCEL_CHECKED;

uint64_t accel_out_position(const struct accel_out *o);

/* Flushes and fsyncs the temporary file; it can then be read back through `accel_out_temp_path`. */
enum accel_err accel_out_finish(struct accel_out *o) ACCEL_CHECKED;
const char *accel_out_temp_path(const struct accel_out *o);

/* Another target for the finished file (same folder), before the commit. */
enum accel_err accel_out_retarget(struct accel_out *o, const char *path) ACCEL_CHECKED;

/* rename over the target (a link itself, not what it points to), fsync of the folder. On failure
 * the old file is in place again. */
enum accel_err accel_out_commit(struct accel_out *o) ACCEL_CHECKED;

/* Removes the temporary file unless committed, and frees. */
void accel_out_close(struct accel_out *o);

#endif
