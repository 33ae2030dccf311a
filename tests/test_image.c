/* Pictures: what Pillow decodes and resizes, we do too; damaged files are errors. And unpacking. */
#include "data/image.h"
#include "data/stream.h"
#include "tests/data_files.h"
#include "tests/data_t.h"

static struct accel_image_room room, small;

static void end(void)
{
    accel_free(room.at);
    accel_free(small.at);
    room = small = (struct accel_image_room){0};
    data_end();
}

static unsigned char pixel(const struct accel_image *im, int64_t x, int64_t y, int64_t c)
{
    return im->at[(size_t)x * im->step + (size_t)y * im->row + (size_t)c * im->plane];
}

/* Largest difference to rows of RGB. */
static int worst(const struct accel_image *im, const unsigned char *want)
{
    int most = 0;
    for (int64_t y = 0; y < im->height; y++)
        for (int64_t x = 0; x < im->width; x++)
            for (int64_t c = 0; c < 3; c++) {
                int gap = abs(pixel(im, x, y, c) - *want++);
                most = gap > most ? gap : most;
            }
    return most;
}

START_TEST(jpeg_decodes_to_pillows_pixels)
{
    struct accel_image im;
    ck_ok(accel_image_decode(&im, &room, file_jpeg, sizeof file_jpeg));
    ck_assert(im.width == 12 && im.height == 10 && im.channels == 3);
    ck_assert_int_le(worst(&im, file_jpeg_pixels), 1);
    ck_ok(accel_image_decode(&im, &room, file_jpeg_gray, sizeof file_jpeg_gray));
    ck_assert(im.channels == 3 && pixel(&im, 3, 3, 0) == pixel(&im, 3, 3, 2));
    ck_fails(accel_image_decode(&im, &room, file_jpeg_cmyk, sizeof file_jpeg_cmyk), ACCEL_EMODEL,
             "JPEG: ");
}
END_TEST

START_TEST(png_decodes_to_rgb)
{
    struct accel_image im;
    ck_ok(accel_image_decode(&im, &room, file_png, sizeof file_png));
    ck_assert(im.width == 5 && im.height == 4);
    ck_assert_int_eq(worst(&im, file_png_pixels), 0);
    ck_ok(accel_image_decode(&im, &room, file_png_gray, sizeof file_png_gray));
    ck_assert(pixel(&im, 1, 0, 0) == 128 && pixel(&im, 1, 1, 2) == 7);
    ck_ok(accel_image_decode(&im, &room, file_png_alpha, sizeof file_png_alpha));
    ck_assert(pixel(&im, 0, 0, 1) == 20 && pixel(&im, 1, 0, 0) == 0); /* black shows through */
}
END_TEST

START_TEST(cut_and_damaged_pictures_are_errors_or_pictures)
{
    static unsigned char b[sizeof file_jpeg + sizeof file_png];
    struct accel_image im;
    for (size_t n = 0; n + 2 < sizeof file_jpeg; n++)
        ck_assert_int_eq(accel_image_decode(&im, &room, file_jpeg, n), ACCEL_EMODEL);
    for (size_t n = 0; n + 12 < sizeof file_png; n++)
        ck_assert_int_eq(accel_image_decode(&im, &room, file_png, n), ACCEL_EMODEL);
    for (size_t at = 0; at < sizeof file_jpeg; at++) {
        memcpy(b, file_jpeg, sizeof file_jpeg);
        b[at] ^= 0x55;
        enum accel_err err = accel_image_decode(&im, &room, b, sizeof file_jpeg);
        ck_assert(err == ACCEL_OK || err == ACCEL_EMODEL);
    }
    memcpy(b, file_png, sizeof file_png);
    memset(b + 16, 0x7f, 8); /* 2139062143 x 2139062143 */
    ck_assert_int_eq(accel_image_decode(&im, &room, b, sizeof file_png), ACCEL_EMODEL);
    ck_fails(accel_image_decode(&im, &room, (const unsigned char *)"BM", 2), ACCEL_EMODEL,
             "neither JPEG nor PNG");
}
END_TEST

/* Pillow's picture of 12x10, in three sizes: smaller, larger, and one of each. */
START_TEST(resizing_gives_pillows_bytes)
{
    struct accel_image im, out;
    unsigned char rgb[360];
    for (int y = 0, i = 0; y < 10; y++)
        for (int x = 0; x < 12; x++) {
            rgb[i++] = (unsigned char)(x * 20);
            rgb[i++] = (unsigned char)(y * 25);
            rgb[i++] = (unsigned char)(x * y * 7 % 256);
        }
    im = (struct accel_image){12, 10, 3, 3, 36, 1, rgb};
    ck_ok(accel_image_resize(&out, &small, &im, 5, 4));
    ck_assert_int_eq(worst(&out, file_resized_down), 0);
    ck_ok(accel_image_resize(&out, &small, &im, 17, 13));
    ck_assert_int_eq(worst(&out, file_resized_up), 0);
    ck_ok(accel_image_resize(&out, &small, &im, 30, 3));
    ck_assert_int_le(worst(&out, file_resized_wide), 1); /* Pillow 13 shortens the columns first */
    ck_fails(accel_image_resize(&out, &small, &im, 1000000, 1000000), ACCEL_EARG, "1000000");
    ck_fails(accel_image_resize(&out, &small, &im, 0, 3), ACCEL_EARG, "cannot become 0x3");
}
END_TEST

/* By hand: four pixels to two, weights 3 3 1 and 1 3 3 of 7. */
START_TEST(resizing_adds_what_the_definition_says)
{
    const unsigned char row[] = {0, 100, 200, 50};
    struct accel_image out;
    const struct accel_image im = {4, 1, 1, 1, 4, 4, row};
    ck_ok(accel_image_resize(&out, &small, &im, 2, 1));
    ck_assert_int_eq(pixel(&out, 0, 0, 0), 71);  /* 500 / 7 */
    ck_assert_int_eq(pixel(&out, 1, 0, 0), 121); /* 850 / 7 */
}
END_TEST

/* gzip -9 of "hello hello hello hello\n" */
static const unsigned char gz[] = {31, 139, 8,  0,  0,   0, 0, 0,   2,  3,  203, 72, 205, 201, 201,
                                   87, 200, 64, 39, 185, 0, 0, 136, 89, 11, 24,  0,  0,   0};

START_TEST(streams_read_plain_and_packed_files_alike)
{
    struct accel_stream *s;
    char text[8] = "";
    data_save("plain", "hello", 5);
    ck_ok(accel_stream_open(&s, data_path("plain")));
    ck_assert_uint_eq(accel_stream_most(s), 5);
    ck_ok(accel_stream_read(s, text, 2));
    ck_fails(accel_stream_end(s), ACCEL_EMODEL, "more bytes");
    ck_fails(accel_stream_read(s, text, 4), ACCEL_EMODEL, "1 bytes too early");
    ck_ok(accel_stream_read(s, text, 3));
    ck_ok(accel_stream_end(s));
    accel_stream_close(s);
    ck_fails(accel_stream_open(&s, data_path("none")), ACCEL_EMODEL, "none");
    static unsigned char twice[2 * sizeof gz];
    char whole[48];
    memcpy(twice, gz, sizeof gz);
    memcpy(twice + sizeof gz, gz, sizeof gz);
    data_save("packed", twice, sizeof twice); /* two members */
    ck_ok(accel_stream_open(&s, data_path("packed")));
    ck_assert_uint_ge(accel_stream_most(s), sizeof twice * 1000);
    ck_ok(accel_stream_read(s, whole, 30));
    ck_fails(accel_stream_end(s), ACCEL_EMODEL, "more bytes");
    accel_stream_close(s);
    ck_ok(accel_stream_open(&s, data_path("packed")));
    ck_ok(accel_stream_read(s, whole, 48));
    ck_assert_mem_eq(whole + 24, "hello hello hello hello\n", 24);
    ck_ok(accel_stream_end(s));
    accel_stream_close(s);
}
END_TEST

/* 48 bytes of two members, of which the second ends after n bytes or has a wrong byte. */
static enum accel_err read_broken(size_t n, int flip)
{
    static unsigned char b[2 * sizeof gz];
    struct accel_stream *s;
    char whole[48];
    memcpy(b, gz, sizeof gz);
    memcpy(b + sizeof gz, gz, sizeof gz);
    if (flip >= 0)
        b[flip] ^= 0x10;
    data_save("packed", b, sizeof gz + n);
    ck_ok(accel_stream_open(&s, data_path("packed")));
    enum accel_err err = accel_stream_read(s, whole, 48);
    if (!err)
        err = accel_stream_end(s);
    accel_stream_close(s);
    return err;
}

START_TEST(cut_and_damaged_streams_are_errors)
{
    ck_ok(read_broken(sizeof gz, -1));
    for (size_t n = 0; n < sizeof gz; n++)
        ck_assert_msg(read_broken(n, -1) == ACCEL_EMODEL, "%zu bytes", n);
    for (int at = 10; at < (int)sizeof gz; at++) /* data, check sum, length */
        ck_assert_msg(read_broken(sizeof gz, at) == ACCEL_EMODEL, "byte %d", at);
}
END_TEST

START_TEST(unpacking_insists_on_the_size)
{
    /* raw deflate of "aaaaaaaaaa" */
    static const unsigned char packed[] = {75, 76, 132, 1, 0};
    char out[16];
    ck_ok(accel_unpack(out, 10, packed, sizeof packed));
    ck_assert_mem_eq(out, "aaaaaaaaaa", 10);
    ck_fails(accel_unpack(out, 9, packed, sizeof packed), ACCEL_EMODEL, "another size");
    ck_fails(accel_unpack(out, 11, packed, sizeof packed), ACCEL_EMODEL, "another size");
    ck_fails(accel_unpack(out, 10, packed, sizeof packed - 1), ACCEL_EMODEL, "damaged");
    ck_fails(accel_unpack(out, 10, packed, 0), ACCEL_EMODEL, "damaged");
    ck_fails(accel_unpack(out, 0, packed, sizeof packed), ACCEL_EMODEL, "another size");
    static const unsigned char nothing[] = {3, 0};
    ck_ok(accel_unpack(out, 0, nothing, sizeof nothing));
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("image");
    TCase *t = tcase_create("pictures");
    tcase_add_checked_fixture(t, data_begin, end);
    tcase_add_test(t, jpeg_decodes_to_pillows_pixels);
    tcase_add_test(t, png_decodes_to_rgb);
    tcase_add_test(t, cut_and_damaged_pictures_are_errors_or_pictures);
    tcase_add_test(t, resizing_gives_pillows_bytes);
    tcase_add_test(t, resizing_adds_what_the_definition_says);
    tcase_add_test(t, streams_read_plain_and_packed_files_alike);
    tcase_add_test(t, cut_and_damaged_streams_are_errors);
    tcase_add_test(t, unpacking_insists_on_the_size);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
