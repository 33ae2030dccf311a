/* dataset.c - what all kinds have in common: the order of the samples, and the way of an image from
 * bytes to normalised floats. A source is asked for one picture at a time; pixels go straight from
 * its memory (or the resized copy) to the caller's batch. */
#include "data/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "data/data_int.h"

static const struct accel_source *const sources[] = {
    &accel_source_fashion_mnist, &accel_source_mnist, &accel_source_cifar10,
    &accel_source_cifar100,      &accel_source_idx,   &accel_source_folder,
    &accel_source_npz,           &accel_source_npy,   &accel_source_csv,
    &accel_source_tar,
};
#define N_SOURCES (sizeof sources / sizeof *sources)

const char *const accel_image_keys[] = {"split", "limit",   "mean",  "std", "resize",
                                        "crop",  "shuffle", "batch", NULL};
const char *const accel_array_keys[] = {"limit", "mean", "std", "shuffle", "batch", NULL};

static enum accel_err find_source(const struct accel_source **out, const char *kind)
{
    struct accel_near near = accel_near_begin(kind);
    for (size_t i = 0; i < N_SOURCES; i++) {
        if (strcmp(sources[i]->kind, kind) == 0) {
            *out = sources[i];
            return ACCEL_OK;
        }
        accel_near_try(&near, sources[i]->kind);
    }
    if (near.best)
        return accel_fail(ACCEL_EARG, "there is no kind of data set '%.100s', did you mean '%s'?",
                          kind, near.best);
    struct accel_str list = {0};
    for (size_t i = 0; i < N_SOURCES; i++)
        accel_str_addf(&list, "%s%s", i ? ", " : "", sources[i]->kind);
    enum accel_err err =
        accel_fail(ACCEL_EARG, "there is no kind of data set '%.100s'; there are %s", kind,
                   accel_str_get(&list));
    accel_str_clear(&list);
    return err;
}

enum accel_err accel_dataset_new_labels(struct accel_dataset *d, enum accel_label_kind kind,
                                        int64_t width)
{
    size_t n;
    if (d->label)
        return accel_fail(ACCEL_EMODEL, "its labels are there twice");
    if (__builtin_mul_overflow((size_t)d->n_all, (size_t)width, &n))
        return accel_fail_nomem();
    d->label = accel_calloc(n, kind == ACCEL_LABEL_CLASS ? sizeof(int64_t) : sizeof(float));
    if (!d->label)
        return accel_fail_nomem();
    d->label_kind = kind;
    d->label_width = width;
    return ACCEL_OK;
}

enum accel_err accel_dataset_path(const char **out, struct accel_dataset *d, const char *folder,
                                  const char *name)
{
    size_t a = strlen(folder), b = strlen(name);
    char *p = accel_arena_new(&d->arena, a + b + 2, 1);
    if (!p)
        return accel_fail_nomem();
    memcpy(p, folder, a);
    p[a] = '/';
    memcpy(p + a + 1, name, b);
    *out = p;
    return ACCEL_OK;
}

/* Sides after `resize`: the shorter one becomes that, the other keeps the shape. */
static void resized(const struct accel_image *im, int64_t side, int64_t *width, int64_t *height)
{
    *width = im->width;
    *height = im->height;
    if (!side)
        return;
    if (im->width <= im->height) {
        *width = side;
        *height = side * im->height / im->width;
    } else {
        *height = side;
        *width = side * im->width / im->height;
    }
}

/* The picture as asked for: resized, and the middle cut out. Borrowed from the source or d->room.
 */
static enum accel_err picture(struct accel_image *im, struct accel_dataset *d, int64_t sample)
{
    int64_t width, height, crop = d->spec->crop;
    ACCEL_TRY(d->source->image(d, sample, im));
    resized(im, d->spec->resize, &width, &height);
    if (width != im->width || height != im->height) {
        const struct accel_image whole = *im;
        ACCEL_TRY(accel_image_resize(im, &d->room, &whole, width, height));
    }
    if (!crop)
        return ACCEL_OK;
    if (crop > im->width || crop > im->height)
        return accel_fail(ACCEL_EARG,
                          "crop=%" PRId64 " is more than an image of %" PRId64 "x%" PRId64, crop,
                          im->width, im->height);
    im->at += (size_t)lrint((double)(im->height - crop) / 2) * im->row +
              (size_t)lrint((double)(im->width - crop) / 2) * im->step;
    im->width = im->height = crop;
    return ACCEL_OK;
}

static enum accel_err check_normalise(const struct accel_data_spec *s, int64_t channels,
                                      const char *what)
{
    if (s->n_mean > 1 && (int64_t)s->n_mean != channels)
        return accel_fail(ACCEL_EARG, "mean has %zu numbers, %s %" PRId64, s->n_mean, what,
                          channels);
    if (s->n_std > 1 && (int64_t)s->n_std != channels)
        return accel_fail(ACCEL_EARG, "std has %zu numbers, %s %" PRId64, s->n_std, what, channels);
    return ACCEL_OK;
}

/* The one field of a set of images, from its first picture. */
static enum accel_err measure(struct accel_dataset *d)
{
    struct accel_image im;
    int64_t *dim = ACCEL_NEW(&d->arena, int64_t, 3);
    d->input = ACCEL_NEW(&d->arena, struct accel_field, 1);
    if (!dim || !d->input)
        return accel_fail_nomem();
    ACCEL_TRY(picture(&im, d, d->order ? d->order[0] : 0));
    ACCEL_TRY(check_normalise(d->spec, im.channels, "images have channels:"));
    dim[0] = im.channels;
    dim[1] = im.height;
    dim[2] = im.width;
    *d->input = (struct accel_field){
        "", ACCEL_F32, 3, dim, (size_t)(dim[0] * dim[1] * dim[2]) * sizeof(float), NULL};
    d->n_input = 1;
    return ACCEL_OK;
}

/* Arrays that are to be normalised become float32; bytes count as pixels. */
static enum accel_err prepare_arrays(struct accel_dataset *d)
{
    const struct accel_data_spec *s = d->spec;
    if (!s->n_mean && !s->n_std)
        return ACCEL_OK;
    for (size_t i = 0; i < d->n_input; i++) {
        struct accel_field *f = &d->input[i];
        int bits = accel_dtype_find((int)f->dtype)->bits;
        if (f->rank)
            ACCEL_TRY(check_normalise(s, f->dim[0], "samples have on their first axis:"));
        if (bits >= 8)
            f->size = f->size / (size_t)(bits / 8) * sizeof(float);
    }
    return ACCEL_OK;
}

static enum accel_err open_set(struct accel_dataset *d, enum accel_split split)
{
    const struct accel_data_spec *s = d->spec;
    ACCEL_TRY(find_source(&d->source, s->kind));
    const char *beyond = accel_data_spec_beyond(s, d->source->keys);
    if (beyond)
        return accel_fail(ACCEL_EARG, "key '%s' means nothing to data sets of kind '%s'", beyond,
                          s->kind);
    ACCEL_TRY(d->source->open(d, s->split == ACCEL_SPLIT_DEFAULT ? split : s->split));
    if (d->n_all == 0)
        return accel_fail(ACCEL_EMODEL, "it has no samples");
    ACCEL_TRY(accel_dataset_order(d));
    return d->source->image ? measure(d) : prepare_arrays(d);
}

enum accel_err accel_dataset_open(struct accel_dataset **out, const struct accel_data_spec *spec,
                                  enum accel_split split, struct accel_log *log)
{
    *out = NULL;
    struct accel_dataset *d = accel_calloc(1, sizeof *d);
    if (!d)
        return accel_fail_nomem();
    d->spec = spec;
    d->log = log;
    enum accel_err err = open_set(d, split);
    if (err) {
        accel_dataset_close(d);
        return accel_fail_in(err, "data set '%.100s'", spec->kind);
    }
    *out = d;
    return ACCEL_OK;
}

void accel_dataset_close(struct accel_dataset *d)
{
    if (!d)
        return;
    if (d->source && d->source->close)
        d->source->close(d);
    accel_free(d->label);
    accel_free(d->order);
    accel_free(d->room.at);
    accel_arena_clear(&d->arena);
    accel_free(d);
}

/* The number of channel c; `none` where no numbers were given. */
static double of_channel(const double *v, size_t n, int64_t c, double none)
{
    return n == 0 ? none : v[n == 1 ? 0 : c];
}

static void to_floats(const struct accel_data_spec *s, const struct accel_image *im, float *to)
{
    for (int64_t c = 0; c < im->channels; c++) {
        double mean = of_channel(s->mean, s->n_mean, c, 0);
        double std = of_channel(s->std, s->n_std, c, 1);
        float value[256];
        for (int i = 0; i < 256; i++)
            value[i] = (float)((i / 255.0 - mean) / std);
        for (int64_t y = 0; y < im->height; y++) {
            const unsigned char *at = im->at + (size_t)c * im->plane + (size_t)y * im->row;
            for (int64_t x = 0; x < im->width; x++)
                *to++ = value[at[(size_t)x * im->step]];
        }
    }
}

static enum accel_err read_image(struct accel_dataset *d, int64_t sample, float *to)
{
    struct accel_image im;
    const int64_t *dim = d->input->dim;
    ACCEL_TRY(picture(&im, d, sample));
    if (im.channels != dim[0] || im.height != dim[1] || im.width != dim[2])
        return accel_fail(ACCEL_EMODEL,
                          "image %" PRId64 " is %" PRId64 "x%" PRId64 ", the first one %" PRId64
                          "x%" PRId64 ": give resize=N and crop=N",
                          sample, im.width, im.height, dim[2], dim[1]);
    to_floats(d->spec, &im, to);
    return ACCEL_OK;
}

static void read_array(const struct accel_dataset *d, const struct accel_field *f, int64_t sample,
                       char *to)
{
    const struct accel_data_spec *s = d->spec;
    if (!s->n_mean && !s->n_std) {
        memcpy(to, (const char *)f->all + (size_t)sample * f->size, f->size);
        return;
    }
    size_t n = f->size / sizeof(float),
           per_channel = f->rank && f->dim[0] ? n / (size_t)f->dim[0] : n;
    for (size_t i = 0; i < n; i++) {
        double v;
        float z;
        int64_t c = (int64_t)(i / per_channel);
        accel_dtype_to_f64(f->dtype, f->all, (size_t)sample * n + i, 1, &v);
        if (f->dtype == ACCEL_U8)
            v /= 255;
        z = (float)((v - of_channel(s->mean, s->n_mean, c, 0)) /
                    of_channel(s->std, s->n_std, c, 1));
        memcpy(to + i * sizeof z, &z, sizeof z);
    }
}

enum accel_err accel_dataset_read(struct accel_dataset *d, int64_t first, int64_t n,
                                  void *const *to, void *label)
{
    size_t width = (size_t)d->label_width *
                   (d->label_kind == ACCEL_LABEL_CLASS ? sizeof(int64_t) : sizeof(float));
    for (int64_t k = 0; k < n; k++) {
        int64_t sample = d->order ? d->order[first + k] : first + k;
        if (label && d->label)
            memcpy((char *)label + (size_t)k * width, (char *)d->label + (size_t)sample * width,
                   width);
        for (size_t i = 0; i < d->n_input; i++) {
            char *at = (char *)to[i] + (size_t)k * d->input[i].size;
            if (!d->source->image) {
                read_array(d, &d->input[i], sample, at);
                continue;
            }
            enum accel_err err = read_image(d, sample, (float *)(void *)at);
            if (err)
                return accel_fail_in(err, "data set '%.100s'", d->spec->kind);
        }
    }
    return ACCEL_OK;
}
