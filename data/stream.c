/* stream.c - one buffer of packed bytes between the file and zlib. A gzip file may consist of
 * several members, one after the other; zlib stops at each end and is started again. */
#include "data/stream.h"

#include <limits.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/file.h"

#define PIECE 65536u

struct accel_stream {
    struct accel_file *file;
    uint64_t at; /* in the file */
    bool packed, ended;
    z_stream z;
    unsigned char buf[PIECE];
};

static void *z_alloc(void *ctx, unsigned n, unsigned size)
{
    (void)ctx;
    return accel_calloc(n, size);
}

static void z_free(void *ctx, void *p)
{
    (void)ctx;
    accel_free(p);
}

/* What zlib's codes mean here. */
static enum accel_err z_fail(int code)
{
    return code == Z_MEM_ERROR ? accel_fail_nomem()
                               : accel_fail(ACCEL_EMODEL, "its packed data are damaged");
}

static enum accel_err begin(struct accel_stream *s)
{
    unsigned char magic[2] = {0};
    ACCEL_TRY(accel_file_read(s->file, 0, s->file->size < 2 ? s->file->size : 2, magic));
    if (magic[0] != 0x1f || magic[1] != 0x8b)
        return ACCEL_OK;
    s->z.zalloc = z_alloc;
    s->z.zfree = z_free;
    int code = inflateInit2(&s->z, MAX_WBITS + 16);
    s->packed = code == Z_OK;
    return s->packed ? ACCEL_OK : z_fail(code);
}

enum accel_err accel_stream_open(struct accel_stream **out, const char *path)
{
    *out = NULL;
    struct accel_stream *s = accel_calloc(1, sizeof *s);
    if (!s)
        return accel_fail_nomem();
    enum accel_err err = accel_file_open(&s->file, path);
    if (!err)
        err = begin(s);
    if (err) {
        accel_stream_close(s);
        return err;
    }
    *out = s;
    return ACCEL_OK;
}

void accel_stream_close(struct accel_stream *s)
{
    if (!s)
        return;
    if (s->packed)
        inflateEnd(&s->z);
    accel_file_close(s->file);
    accel_free(s);
}

static enum accel_err refill(struct accel_stream *s)
{
    uint64_t left = s->file->size - s->at;
    if (s->z.avail_in || !left)
        return ACCEL_OK;
    unsigned n = (unsigned)(left < PIECE ? left : PIECE);
    ACCEL_TRY(accel_file_read(s->file, s->at, n, s->buf));
    s->at += n;
    s->z.next_in = s->buf;
    s->z.avail_in = n;
    return ACCEL_OK;
}

/* At most `size` bytes; *got is 0 at the end only. */
static enum accel_err unpack_some(struct accel_stream *s, unsigned char *to, uint64_t size,
                                  uint64_t *got)
{
    unsigned want = size < UINT_MAX ? (unsigned)size : UINT_MAX;
    s->z.next_out = to;
    s->z.avail_out = want;
    while (s->z.avail_out == want) {
        ACCEL_TRY(refill(s));
        if (s->ended && !s->z.avail_in)
            break;
        if (s->ended) {
            int code = inflateReset(&s->z);
            if (code != Z_OK)
                return z_fail(code);
            s->ended = false;
        }
        int code = inflate(&s->z, Z_NO_FLUSH);
        if (code == Z_BUF_ERROR && !s->z.avail_in && s->at == s->file->size)
            return accel_fail(ACCEL_EMODEL, "its packed data are cut off");
        if (code != Z_OK && code != Z_STREAM_END && code != Z_BUF_ERROR)
            return z_fail(code);
        s->ended = code == Z_STREAM_END;
    }
    *got = want - s->z.avail_out;
    return ACCEL_OK;
}

enum accel_err accel_stream_read(struct accel_stream *s, void *to, uint64_t size)
{
    unsigned char *p = to;
    if (!s->packed) {
        if (size > s->file->size - s->at)
            return accel_fail(ACCEL_EMODEL, "it ends %llu bytes too early",
                              (unsigned long long)(size - (s->file->size - s->at)));
        ACCEL_TRY(accel_file_read(s->file, s->at, size, to));
        s->at += size;
        return ACCEL_OK;
    }
    while (size) {
        uint64_t got;
        ACCEL_TRY(unpack_some(s, p, size, &got));
        if (!got)
            return accel_fail(ACCEL_EMODEL, "it ends %llu bytes too early",
                              (unsigned long long)size);
        p += got;
        size -= got;
    }
    return ACCEL_OK;
}

enum accel_err accel_stream_end(struct accel_stream *s)
{
    unsigned char byte;
    uint64_t got = s->file->size - s->at;
    if (s->packed)
        ACCEL_TRY(unpack_some(s, &byte, 1, &got));
    return got ? accel_fail(ACCEL_EMODEL, "it has more bytes than its header tells") : ACCEL_OK;
}

uint64_t accel_stream_most(const struct accel_stream *s)
{
    uint64_t left = s->file->size - s->at, most;
    if (!s->packed)
        return left;
    /* What zlib holds unpacked already is at most its window. */
    if (__builtin_mul_overflow(left + s->z.avail_in, (uint64_t)ACCEL_UNPACK_MOST, &most) ||
        __builtin_add_overflow(most, (uint64_t)PIECE, &most))
        return UINT64_MAX;
    return most;
}

enum accel_err accel_unpack(void *to, uint64_t size, const void *from, uint64_t from_size)
{
    z_stream z = {.zalloc = z_alloc, .zfree = z_free};
    unsigned char *out = to, spare;
    const uint64_t wanted = size;
    int code = inflateInit2(&z, -MAX_WBITS);
    if (code != Z_OK)
        return z_fail(code);
    z.next_in = (unsigned char *)(uintptr_t)from;
    while (code == Z_OK && z.total_out <= wanted) {
        if (!z.avail_in) {
            z.avail_in = from_size < UINT_MAX ? (unsigned)from_size : UINT_MAX;
            from_size -= z.avail_in;
        }
        if (!z.avail_out) {
            z.next_out = size ? out : &spare; /* the end may stand behind the last byte */
            z.avail_out = size ? (size < UINT_MAX ? (unsigned)size : UINT_MAX) : 1;
            out += size ? z.avail_out : 0;
            size -= size ? z.avail_out : 0;
        }
        code = inflate(&z, Z_NO_FLUSH);
    }
    bool whole = code == Z_STREAM_END && z.total_out == wanted && !from_size && !z.avail_in;
    inflateEnd(&z);
    if (whole)
        return ACCEL_OK;
    return code == Z_MEM_ERROR ? accel_fail_nomem()
                               : accel_fail(ACCEL_EMODEL, "its packed data are damaged or of "
                                                          "another size than it tells");
}
