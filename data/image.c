/* image.c - resizing in two passes of whole-number weights, so that every machine gets the same
 * bytes. One pass makes a row shorter or longer; it is run over the rows, then over the columns.
 *
 * Source: the method is Pillow's (Image.resize with BILINEAR): triangle filter, support
 * max(1, scale), weights in 22 bits, each pass rounded and cut off to 0 … 255. */
#include "data/image.h"

#include <math.h>

#include "base/alloc.h"

#define BITS 22

/* What each place of the result is made of: `n` neighbours from `first` on. */
struct taps {
    int64_t most; /* neighbours of one place at most */
    int64_t *first, *n;
    int32_t *weight; /* [places * most] */
};

static void taps_clear(struct taps *t)
{
    accel_free(t->first);
    accel_free(t->n);
    accel_free(t->weight);
}

static enum accel_err taps_build(struct taps *t, int64_t from, int64_t to)
{
    double scale = (double)from / (double)to, reach = scale > 1 ? scale : 1, slope = 1 / reach;
    *t = (struct taps){.most = (int64_t)ceil(reach) * 2 + 1};
    t->first = accel_calloc((size_t)to, sizeof *t->first);
    t->n = accel_calloc((size_t)to, sizeof *t->n);
    t->weight = accel_calloc((size_t)to * (size_t)t->most, sizeof *t->weight);
    double *w = accel_calloc((size_t)t->most, sizeof *w);
    for (int64_t i = 0; t->first && t->n && t->weight && w && i < to; i++) {
        double middle = ((double)i + 0.5) * scale, sum = 0;
        int64_t lo = (int64_t)(middle - reach + 0.5), hi = (int64_t)(middle + reach + 0.5);
        lo = middle - reach + 0.5 < 0 ? 0 : lo;
        hi = hi > from ? from : hi;
        for (int64_t k = lo; k < hi; k++) {
            double gap = fabs(((double)k - middle + 0.5) * slope);
            w[k - lo] = gap < 1 ? 1 - gap : 0;
            sum += w[k - lo];
        }
        t->first[i] = lo;
        t->n[i] = hi - lo;
        sum = 1 / sum; /* products, as in Pillow: the last bits decide some roundings */
        for (int64_t k = 0; k < hi - lo; k++)
            t->weight[i * t->most + k] = (int32_t)(w[k] * sum * (1 << BITS) + 0.5);
    }
    bool whole = t->first && t->n && t->weight && w;
    accel_free(w);
    if (whole)
        return ACCEL_OK;
    taps_clear(t);
    return accel_fail_nomem();
}

/* Place i of a line of elements `step` apart. */
static unsigned char mix(const struct taps *t, int64_t i, const unsigned char *line, size_t step)
{
    const int32_t *w = t->weight + i * t->most;
    const unsigned char *at = line + (size_t)t->first[i] * step;
    int64_t sum = 1 << (BITS - 1);
    for (int64_t k = 0; k < t->n[i]; k++)
        sum += (int64_t)w[k] * at[(size_t)k * step];
    sum >>= BITS;
    return (unsigned char)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static enum accel_err take_room(struct accel_image_room *r, size_t size)
{
    if (size <= r->cap && r->at)
        return ACCEL_OK;
    unsigned char *more = accel_alloc_pages(size);
    if (!more)
        return accel_fail_nomem();
    accel_free(r->at);
    *r = (struct accel_image_room){more, size};
    return ACCEL_OK;
}

enum accel_err accel_image_resize(struct accel_image *out, struct accel_image_room *room,
                                  const struct accel_image *in, int64_t width, int64_t height)
{
    struct taps across, down;
    size_t half, whole, c_n = (size_t)in->channels;
    if (width < 1 || height < 1 ||
        __builtin_mul_overflow((size_t)in->height * c_n, (size_t)width, &half) ||
        __builtin_mul_overflow((size_t)height * c_n, (size_t)width, &whole) ||
        half + whole > (size_t)1 << 30)
        return accel_fail(ACCEL_EARG, "an image of %lldx%lld cannot become %lldx%lld",
                          (long long)in->width, (long long)in->height, (long long)width,
                          (long long)height);
    ACCEL_TRY(take_room(room, half + whole));
    ACCEL_TRY(taps_build(&across, in->width, width));
    enum accel_err err = taps_build(&down, in->height, height);
    if (err) {
        taps_clear(&across);
        return err;
    }
    unsigned char *mid = room->at, *to = room->at + half;
    for (size_t c = 0; c < c_n; c++)
        for (int64_t y = 0; y < in->height; y++)
            for (int64_t x = 0; x < width; x++)
                *mid++ = mix(&across, x, in->at + c * in->plane + (size_t)y * in->row, in->step);
    mid = room->at;
    for (size_t c = 0; c < c_n; c++)
        for (int64_t y = 0; y < height; y++)
            for (int64_t x = 0; x < width; x++)
                *to++ = mix(&down, y, mid + (c * (size_t)in->height * (size_t)width) + (size_t)x,
                            (size_t)width);
    taps_clear(&across);
    taps_clear(&down);
    *out = (struct accel_image){
        width, height, in->channels, 1, (size_t)width, (size_t)(width * height), room->at + half};
    return ACCEL_OK;
}
