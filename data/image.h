/* image.h - pictures of 8 bits per channel: decoding, resizing. */
#ifndef ACCEL_DATA_IMAGE_H
#define ACCEL_DATA_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Element (x, y, c) lies at x * step + y * row + c * plane. */
struct accel_image {
    int64_t width, height, channels;
    size_t step, row, plane;
    const unsigned char *at;
};

/* A buffer that is kept from picture to picture. */
struct accel_image_room {
    unsigned char *at;
    size_t cap;
};

/**
 * Decodes a JPEG or PNG file to RGB.
 *
 * @param file [size] the file's bytes
 * @param room holds the pixels of *out until its next use
 * @return EMODEL when it is neither or is damaged or has more than 64 million pixels
 */
enum accel_err accel_image_decode(struct accel_image *out, struct accel_image_room *room,
                                  const unsigned char *file, size_t size) ACCEL_CHECKED;

/**
 * Resizes with a triangle filter as wide as the scale (bilinear, antialiased), rows first, then
 * columns, each pass rounded to 8 bits; what Pillow calls BILINEAR.
 */
enum accel_err accel_image_resize(struct accel_image *out, struct accel_image_room *room,
                                  const struct accel_image *in, int64_t width,
                                  int64_t height) ACCEL_CHECKED;

#endif
