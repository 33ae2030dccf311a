/* npy.h - NumPy's array files.
 *
 * Source: the NumPy documentation, numpy.lib.format (versions 1.0 to 3.0). */
#ifndef ACCEL_DATA_NPY_H
#define ACCEL_DATA_NPY_H

#include "graph/op.h"

/* An array in memory of its own. */
struct accel_npy {
    struct accel_array a; /* row-major, stored elements */
    int64_t *dim;
    void *data;
};

/**
 * Reads PATH: little-endian or one-byte elements of bool, int8 … int64, uint8 … uint64, float16,
 * float32, float64; C and Fortran order (the latter is turned round).
 *
 * Errors: EMODEL for a missing, malformed or cut file and for types that ONNX does not have; the
 * text names the file and both sizes. The size is proven against the file before memory is taken.
 */
enum accel_err accel_npy_read(struct accel_npy *out, const char *path) ACCEL_CHECKED;

/* The same from the bytes of a file. The text does not name it. */
enum accel_err accel_npy_parse(struct accel_npy *out, const void *bytes,
                               uint64_t size) ACCEL_CHECKED;
void accel_npy_clear(struct accel_npy *n);

/* Writes PATH through a temporary file, version 1.0, C order. bfloat16 is written as float32, which
 * holds its values. ENOSUP for strings and types below a byte. */
enum accel_err accel_npy_write(const char *path, const struct accel_array *a) ACCEL_CHECKED;

#endif
