/* image_file.c - JPEG and PNG through their libraries. Both get the whole file in memory and give
 * RGB rows. libjpeg leaves by longjmp on an error: nothing that must be freed is made between
 * setjmp and the end. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "data/image.h"

/* After <stdio.h>, which they need. */
#include <jpeglib.h>

#include <jerror.h>
#include <png.h>

#define MOST_PIXELS ((uint64_t)64 << 20)

/* A buffer for this many pixels of 3 bytes. */
static enum accel_err take(struct accel_image *out, struct accel_image_room *room, uint64_t width,
                           uint64_t height)
{
    if (!width || !height || width > MOST_PIXELS || height > MOST_PIXELS ||
        width * height > MOST_PIXELS)
        return accel_fail(ACCEL_EMODEL, "an image of %llux%llu is none or has over 64 Mi pixels",
                          (unsigned long long)width, (unsigned long long)height);
    size_t size = (size_t)(width * height * 3);
    if (size > room->cap || !room->at) {
        unsigned char *more = accel_alloc_pages(size);
        if (!more)
            return accel_fail_nomem();
        accel_free(room->at);
        *room = (struct accel_image_room){more, size};
    }
    *out = (struct accel_image){(int64_t)width, (int64_t)height, 3, 3, (size_t)(width * 3), 1,
                                room->at};
    return ACCEL_OK;
}

struct jpeg_failure {
    struct jpeg_error_mgr base;
    jmp_buf back;
    char text[JMSG_LENGTH_MAX];
};

static void jpeg_fail(j_common_ptr c)
{
    struct jpeg_failure *f = (struct jpeg_failure *)(void *)c->err;
    f->base.format_message(c, f->text);
    longjmp(f->back, 1);
}

/* Data that end too early would be filled up with grey: that is an error here. */
static void jpeg_message(j_common_ptr c, int level)
{
    int code = c->err->msg_code;
    if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
        jpeg_fail(c);
}

static enum accel_err decode_jpeg(struct accel_image *out, struct accel_image_room *room,
                                  const unsigned char *file, size_t size)
{
    struct jpeg_decompress_struct z;
    struct jpeg_failure failure;
    z.err = jpeg_std_error(&failure.base);
    failure.base.error_exit = jpeg_fail;
    failure.base.emit_message = jpeg_message;
    if (setjmp(failure.back)) {
        jpeg_destroy_decompress(&z);
        return accel_fail(ACCEL_EMODEL, "JPEG: %s", failure.text);
    }
    jpeg_create_decompress(&z);
    jpeg_mem_src(&z, file, size);
    jpeg_read_header(&z, TRUE);
    z.out_color_space = JCS_RGB;
    enum accel_err err = take(out, room, z.image_width, z.image_height);
    if (!err) {
        jpeg_start_decompress(&z);
        while (z.output_scanline < z.output_height) {
            JSAMPROW row = room->at + (size_t)z.output_scanline * out->row;
            jpeg_read_scanlines(&z, &row, 1);
        }
        jpeg_finish_decompress(&z);
    }
    jpeg_destroy_decompress(&z);
    return err;
}

static enum accel_err decode_png(struct accel_image *out, struct accel_image_room *room,
                                 const unsigned char *file, size_t size)
{
    png_image z = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&z, file, size))
        return accel_fail(ACCEL_EMODEL, "PNG: %s", z.message);
    z.format = PNG_FORMAT_RGB;
    enum accel_err err = take(out, room, z.width, z.height);
    const png_color black = {0, 0, 0}; /* behind what is transparent */
    if (!err && !png_image_finish_read(&z, &black, room->at, 0, NULL))
        err = accel_fail(ACCEL_EMODEL, "PNG: %s", z.message);
    png_image_free(&z);
    return err;
}

enum accel_err accel_image_decode(struct accel_image *out, struct accel_image_room *room,
                                  const unsigned char *file, size_t size)
{
    if (size > 3 && memcmp(file, "\xff\xd8\xff", 3) == 0)
        return decode_jpeg(out, room, file, size);
    if (size > 8 && memcmp(file, "\x89PNG\r\n\x1a\n", 8) == 0)
        return decode_png(out, room, file, size);
    return accel_fail(ACCEL_EMODEL, "it is neither JPEG nor PNG");
}
