/* fuzz_data.c - any bytes as a data set of any kind, or as a SPEC (libFuzzer).
 *
 * The first byte chooses the kind, the rest is the file. Opening and reading a sample must end in
 * success or in an error with a text; sanitizers watch the rest. */
#include <string.h>

#include "base/alloc.h"
#include "data/dataset.h"
#include "data/image.h"
#include "tests/fuzz_input.h"

static const char *const specs[] = {"idx:%s,%s?limit=3",
                                    "npz:%s",
                                    "npy:%s?mean=0.5",
                                    "csv:%s",
                                    "csv:%s?header=0&label=-1&types=int64",
                                    "tar:%s?resize=9&crop=8"};
enum { N_SPECS = sizeof specs / sizeof *specs, MOST_BYTES = 1 << 20 };

static enum accel_err read_one(struct accel_dataset *d)
{
    void **to = accel_calloc(d->n_input, sizeof *to);
    void *label = accel_calloc((size_t)d->label_width + 1, sizeof(int64_t));
    enum accel_err err = to && label ? ACCEL_OK : accel_fail_nomem();
    bool small = !err && d->label_width < MOST_BYTES;
    for (size_t i = 0; to && i < d->n_input; i++) {
        small = small && d->input[i].size < MOST_BYTES;
        to[i] = small ? accel_calloc(d->input[i].size + 1, 1) : NULL;
    }
    if (small)
        err = accel_dataset_read(d, d->n - 1, 1, to, label);
    for (size_t i = 0; to && i < d->n_input; i++)
        accel_free(to[i]);
    accel_free(to);
    accel_free(label);
    return err;
}

static enum accel_err try_spec(const char *text)
{
    struct accel_data_spec *spec;
    struct accel_dataset *d = NULL;
    ACCEL_TRY(accel_data_spec_parse(&spec, text));
    enum accel_err err = accel_dataset_open(&d, spec, ACCEL_SPLIT_TEST, NULL);
    if (!err)
        err = read_one(d);
    accel_dataset_close(d);
    accel_data_spec_free(spec);
    return err;
}

/* The bytes as a SPEC; it is read, not opened: it could name any file. */
static enum accel_err try_text(const uint8_t *data, size_t size)
{
    char text[512] = "";
    struct accel_data_spec *spec;
    memcpy(text, data, size < sizeof text ? size : sizeof text - 1);
    ACCEL_TRY(accel_data_spec_parse(&spec, text));
    accel_data_spec_free(spec);
    return ACCEL_OK;
}

static enum accel_err try_image(const uint8_t *data, size_t size)
{
    struct accel_image im;
    struct accel_image_room room = {0};
    enum accel_err err = accel_image_decode(&im, &room, data, size);
    accel_free(room.at);
    return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char text[1024];
    enum accel_err err;
    if (!size)
        return 0;
    int kind = data[0] % (N_SPECS + 2);
    if (kind == N_SPECS) {
        err = try_text(data + 1, size - 1);
    } else if (kind == N_SPECS + 1) {
        err = try_image(data + 1, size - 1);
    } else {
        const char *path = fuzz_input_path(data + 1, size - 1);
        snprintf(text, sizeof text, specs[kind], path, path);
        err = try_spec(text);
    }
    if (err && !*accel_errmsg())
        abort();
    return 0;
}
