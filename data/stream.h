/* stream.h - bytes of a file from front to back, unpacked where it is a gzip file; and unpacking in
 * memory. The only user of zlib. */
#ifndef ACCEL_DATA_STREAM_H
#define ACCEL_DATA_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct accel_stream;

/* Opens PATH; gzip is told by its first two bytes. Errors: EMODEL for a missing file. */
enum accel_err accel_stream_open(struct accel_stream **out, const char *path) ACCEL_CHECKED;
void accel_stream_close(struct accel_stream *s);

/* Exactly `size` bytes. EMODEL when there are fewer, or the packed data are damaged. */
enum accel_err accel_stream_read(struct accel_stream *s, void *to, uint64_t size) ACCEL_CHECKED;

/* EMODEL unless all bytes were read. */
enum accel_err accel_stream_end(struct accel_stream *s) ACCEL_CHECKED;

/* Bytes that the rest of the file can hold at the very most: what a size in a header is proven
 * against before memory is taken. Exact for files that are not packed. */
uint64_t accel_stream_most(const struct accel_stream *s);

/* Unpacks raw deflate data into exactly `size` bytes. EMODEL when they are damaged or of another
 * size. */
enum accel_err accel_unpack(void *to, uint64_t size, const void *from,
                            uint64_t from_size) ACCEL_CHECKED;

/* deflate packs at most so many bytes into one. */
#define ACCEL_UNPACK_MOST 1032u

#endif
