/* idx.c - the IDX files of MNIST and its relatives: two zero bytes, the element type, the rank, the
 * sizes as big-endian 32-bit numbers, the elements. A set is a file of images and one of labels.
 *
 * Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits" (file format).
 */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "data/data_int.h"
#include "data/stream.h"

#define BYTES    0x08 /* the element type */
#define MAX_RANK 4

struct idx {
    int rank;
    int64_t dim[MAX_RANK];
    uint64_t n;
    unsigned char *at; /* [n] */
};

static enum accel_err read_sizes(struct idx *x, struct accel_stream *s)
{
    unsigned char head[4], size[4];
    ACCEL_TRY(accel_stream_read(s, head, sizeof head));
    if (head[0] || head[1])
        return accel_fail(ACCEL_EMODEL, "it is no IDX file");
    if (head[2] != BYTES)
        return accel_fail(ACCEL_EMODEL, "its elements are of type 0x%02x, only bytes (0x%02x) do",
                          head[2], BYTES);
    if (head[3] < 1 || head[3] > MAX_RANK)
        return accel_fail(ACCEL_EMODEL, "it has %d dimensions, at most %d do", head[3], MAX_RANK);
    x->rank = head[3];
    x->n = 1;
    for (int i = 0; i < x->rank; i++) {
        ACCEL_TRY(accel_stream_read(s, size, sizeof size));
        x->dim[i] = (int64_t)size[0] << 24 | size[1] << 16 | size[2] << 8 | size[3];
        if (__builtin_mul_overflow(x->n, (uint64_t)x->dim[i], &x->n))
            return accel_fail(ACCEL_EMODEL, "its sizes are too large");
    }
    if (x->n > accel_stream_most(s))
        return accel_fail(ACCEL_EMODEL,
                          "its sizes need %" PRIu64 " bytes, it has %" PRIu64 " at most", x->n,
                          accel_stream_most(s));
    return ACCEL_OK;
}

static enum accel_err read_stream(struct idx *x, struct accel_stream *s)
{
    ACCEL_TRY(read_sizes(x, s));
    x->at = accel_alloc_pages(x->n);
    if (!x->at)
        return accel_fail_nomem();
    ACCEL_TRY(accel_stream_read(s, x->at, x->n));
    return accel_stream_end(s);
}

static enum accel_err read_idx(struct idx *x, const char *path)
{
    struct accel_stream *s;
    ACCEL_TRY(accel_stream_open(&s, path));
    enum accel_err err = read_stream(x, s);
    accel_stream_close(s);
    return err == ACCEL_EMODEL ? accel_fail_in(err, "%.1000s", path) : err;
}

static enum accel_err take_labels(struct accel_dataset *d, const struct idx *labels,
                                  const char *path)
{
    if (labels->rank != 1 || labels->dim[0] != d->n_all)
        return accel_fail(ACCEL_EMODEL, "%.1000s: %" PRIu64 " labels for %" PRId64 " images", path,
                          labels->n, d->n_all);
    ACCEL_TRY(accel_dataset_new_labels(d, ACCEL_LABEL_CLASS, 1));
    for (int64_t i = 0; i < d->n_all; i++)
        ((int64_t *)d->label)[i] = labels->at[i];
    return ACCEL_OK;
}

static enum accel_err read_pair(struct accel_dataset *d, const char *images, const char *labels)
{
    struct idx l = {0}, *x = ACCEL_NEW(&d->arena, struct idx, 1);
    if (!x)
        return accel_fail_nomem();
    d->state = x;
    ACCEL_TRY(read_idx(x, images));
    if (x->rank < 3)
        return accel_fail(ACCEL_EMODEL, "%.1000s: images have 3 or 4 dimensions, not %d", images,
                          x->rank);
    if (x->n == 0)
        return accel_fail(ACCEL_EMODEL, "%.1000s: it has no samples", images);
    d->n_all = x->dim[0];
    enum accel_err err = read_idx(&l, labels);
    if (!err)
        err = take_labels(d, &l, labels);
    accel_free(l.at);
    return err;
}

static enum accel_err image(struct accel_dataset *d, int64_t sample, struct accel_image *im)
{
    const struct idx *x = d->state;
    int64_t h = x->dim[x->rank - 2], w = x->dim[x->rank - 1], c = x->rank == 4 ? x->dim[1] : 1;
    *im = (struct accel_image){w, h, c, 1, (size_t)w, (size_t)(w * h), NULL};
    im->at = x->at + (size_t)sample * (size_t)(c * h * w);
    return ACCEL_OK;
}

static void close_set(struct accel_dataset *d)
{
    struct idx *x = d->state;
    if (x)
        accel_free(x->at);
}

/* FOLDER/NAME or FOLDER/NAME.gz, whichever is there. */
static enum accel_err find_file(const char **out, struct accel_dataset *d, const char *folder,
                                const char *name)
{
    const char *packed;
    ACCEL_TRY(accel_dataset_path(out, d, folder, name));
    if (access(*out, F_OK) == 0)
        return ACCEL_OK;
    ACCEL_TRY(accel_dataset_path(&packed, d, *out, ".gz"));
    size_t n = strlen(*out);
    char *at = (char *)(uintptr_t)packed;
    memmove(at + n, at + n + 1, sizeof ".gz"); /* no slash between them */
    if (access(packed, F_OK) != 0)
        return accel_fail(ACCEL_EMODEL, "there is neither '%.1000s' nor '%s.gz'", *out, name);
    *out = packed;
    return ACCEL_OK;
}

static enum accel_err open_folder(struct accel_dataset *d, enum accel_split split,
                                  const char *folder)
{
    const char *images, *labels;
    bool test = split == ACCEL_SPLIT_TEST;
    if (d->spec->path)
        folder = d->spec->path;
    ACCEL_TRY(
        find_file(&images, d, folder, test ? "t10k-images-idx3-ubyte" : "train-images-idx3-ubyte"));
    ACCEL_TRY(
        find_file(&labels, d, folder, test ? "t10k-labels-idx1-ubyte" : "train-labels-idx1-ubyte"));
    return read_pair(d, images, labels);
}

static const char *const garments[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                       "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};

static enum accel_err open_fashion_mnist(struct accel_dataset *d, enum accel_split split)
{
    d->class_name = garments;
    d->n_class_name = 10;
    return open_folder(d, split, "/usr/share/datasets/fashion-mnist");
}

static enum accel_err open_mnist(struct accel_dataset *d, enum accel_split split)
{
    if (!d->spec->path)
        return accel_fail(ACCEL_EARG, "mnist:FOLDER: the folder is missing");
    return open_folder(d, split, NULL);
}

static enum accel_err open_idx(struct accel_dataset *d, enum accel_split split)
{
    (void)split;
    const char *path = d->spec->path, *comma = path ? strchr(path, ',') : NULL;
    if (!comma || comma == path || !comma[1] || strchr(comma + 1, ','))
        return accel_fail(ACCEL_EARG, "idx:IMAGES,LABELS names two files, not '%.500s'",
                          path ? path : "");
    char *images = accel_arena_strndup(&d->arena, path, (size_t)(comma - path));
    return images ? read_pair(d, images, comma + 1) : accel_fail_nomem();
}

static const char *const idx_keys[] = {"limit", "mean",    "std",   "resize",
                                       "crop",  "shuffle", "batch", NULL};

const struct accel_source accel_source_fashion_mnist = {"fashion-mnist", accel_image_keys,
                                                        open_fashion_mnist, image, close_set};
const struct accel_source accel_source_mnist = {"mnist", accel_image_keys, open_mnist, image,
                                                close_set};
const struct accel_source accel_source_idx = {"idx", idx_keys, open_idx, image, close_set};
