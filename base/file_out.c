/* Writing so that nobody sees half a file.
 *
 * Bytes go to PATH.XXXXXX.tmp beside the target. They gather in a block that always begins at a
 * whole page of the file, so that full blocks can go around the page cache: one more copy in
 * memory, but for large files a third of the processor time that cached pages cost, and an fsync
 * that has nothing left to do. Large runs that lie right already are written from where they are.
 * The tail of a file, and all of a small one, goes through the cache.
 *
 * The commit swaps names (RENAME_EXCHANGE) when a file is replaced: if the folder cannot be flushed
 * afterwards, swapping back restores the old file, and an error still means that nothing changed.
 *
 * A write past RLIMIT_FSIZE would raise SIGXFSZ, which kills a program that does not expect it, so
 * the limit is looked up before each write. */
#include "base/alloc.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE       4096u
#define BLOCK      ((size_t)1 << 22)
#define DIRECT_MIN ((uint64_t)1 << 20)
#define ONE_CALL   ((uint64_t)1 << 30)

struct accel_out {
    char *path, *temp, *folder;
    int fd, direct_fd; /* direct_fd: -1 not opened yet, -2 cannot be had */
    uint64_t at; /* bytes in the file, a multiple of PAGE before the end; the block's come behind */
    size_t in_block;
    bool committed;
    char *block; /* [BLOCK] pages */
};

static enum accel_err fail_write(const struct accel_out *o, const char *what)
{
    int e = errno;
    return accel_fail(ACCEL_EIO, "cannot %s '%s': %s", what, o->path, strerror(e));
}

static char *join(const char *a, size_t n, const char *b)
{
    size_t m = strlen(b);
    char *s = accel_calloc(n + m + 1, 1);
    if (s) {
        memcpy(s, a, n);
        memcpy(s + n, b, m);
    }
    return s;
}

/* What is at the target now: its mode if a regular file will be replaced, else 0. A folder, a
 * device, or a link to one is nothing to rename over. */
static enum accel_err look_at_target(mode_t *mode, const char *path)
{
    struct stat st;
    *mode = 0;
    if (lstat(path, &st))
        return ACCEL_OK;
    if (S_ISREG(st.st_mode)) {
        *mode = st.st_mode & 0777;
        return ACCEL_OK;
    }
    if (S_ISLNK(st.st_mode) && (stat(path, &st) || S_ISREG(st.st_mode)))
        return ACCEL_OK;
    return accel_fail(ACCEL_EARG, "cannot write '%s': it is %s", path,
                      S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
}

/* Creates the temporary file under a free name. A long name is cut so that the suffix fits. */
static enum accel_err create_temp(struct accel_out *o, mode_t mode)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    size_t len = strlen(o->path), base = len;
    while (base > 0 && o->path[base - 1] != '/')
        base--;
    if (len - base > 200)
        len = base + 200;
    o->temp = join(o->path, len, ".XXXXXX.tmp");
    o->folder = base ? join(o->path, base, "") : join(".", 1, "");
    if (!o->temp || !o->folder)
        return accel_fail_nomem();
    if (base == strlen(o->path))
        return accel_fail(ACCEL_EARG, "cannot write '%s': no file name", o->path);
    for (int tries = 0; tries < 100; tries++) {
        unsigned char r[6];
        if (getrandom(r, sizeof r, 0) != sizeof r)
            return fail_write(o, "create a temporary file for");
        for (int i = 0; i < 6; i++)
            o->temp[len + 1 + (size_t)i] = letters[r[i] % 36];
        o->fd = open(o->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY,
                     mode ? mode : (mode_t)0666);
        if (o->fd >= 0 || errno != EEXIST)
            break;
    }
    if (o->fd < 0) {
        int e = errno;
        return accel_fail(ACCEL_EIO, "cannot create '%s' in folder '%s': %s", o->path + base,
                          o->folder, strerror(e));
    }
    if (mode && fchmod(o->fd, mode))
        return fail_write(o, "set the mode of");
    return ACCEL_OK;
}

enum accel_err accel_out_open(struct accel_out **out, const char *path)
{
    *out = NULL;
    mode_t mode;
    ACCEL_TRY(look_at_target(&mode, path));
    struct accel_out *o = accel_calloc(1, sizeof *o);
    if (!o)
        return accel_fail_nomem();
    o->fd = o->direct_fd = -1;
    o->path = join(path, strlen(path), "");
    o->block = accel_alloc_pages(BLOCK);
    enum accel_err err = o->path && o->block ? create_temp(o, mode) : accel_fail_nomem();
    if (err) {
        accel_out_close(o);
        return err;
    }
    *out = o;
    return ACCEL_OK;
}

static bool within_limit(uint64_t end)
{
    struct rlimit r;
    return getrlimit(RLIMIT_FSIZE, &r) || r.rlim_cur == RLIM_INFINITY || end <= r.rlim_cur;
}

/* Writes all of buf at o->at and moves it. */
static enum accel_err put(struct accel_out *o, const void *buf, uint64_t size)
{
    const char *p = buf;
    int fd = o->fd;
    if (size >= DIRECT_MIN && (o->at | size | (uintptr_t)buf) % PAGE == 0) {
        if (o->direct_fd == -1 &&
            (o->direct_fd = open(o->temp, O_WRONLY | O_CLOEXEC | O_DIRECT)) < 0)
            o->direct_fd = -2;
        fd = o->direct_fd >= 0 ? o->direct_fd : fd;
    }
    while (size > 0) {
        if (!within_limit(o->at + size)) {
            errno = EFBIG;
            return fail_write(o, "write");
        }
        ssize_t n = pwrite(fd, p, size < ONE_CALL ? size : ONE_CALL, (off_t)o->at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EINVAL && fd != o->fd) {
            fd = o->fd;
            continue;
        }
        if (n <= 0) {
            errno = n < 0 ? errno : ENOSPC;
            return fail_write(o, "write");
        }
        p += n;
        size -= (uint64_t)n;
        o->at += (uint64_t)n;
        if (size % PAGE != 0)
            fd = o->fd;
    }
    return ACCEL_OK;
}

static enum accel_err put_block(struct accel_out *o)
{
    size_t n = o->in_block;
    o->in_block = 0;
    uint64_t whole = n / PAGE * PAGE;
    ACCEL_TRY(put(o, o->block, whole));
    return put(o, o->block + whole, n - whole);
}

enum accel_err accel_out_write(struct accel_out *o, const void *buf, uint64_t size)
{
    const char *p = buf;
    while (size > 0) {
        uint64_t n = BLOCK - o->in_block;
        if (size >= DIRECT_MIN && (o->in_block | (uintptr_t)p) % PAGE == 0) {
            n = size / PAGE * PAGE;
            ACCEL_TRY(put_block(o));
            ACCEL_TRY(put(o, p, n));
        } else {
            n = n < size ? n : size;
            memcpy(o->block + o->in_block, p, n);
            o->in_block += n;
            if (o->in_block == BLOCK)
                ACCEL_TRY(put_block(o));
        }
        p += n;
        size -= n;
    }
    return ACCEL_OK;
}

enum accel_err accel_out_pad(struct accel_out *o, uint64_t align)
{
    static const char zeros[PAGE];
    for (uint64_t rest = accel_out_position(o) % align; rest && rest < align;) {
        uint64_t n = align - rest < PAGE ? align - rest : PAGE;
        ACCEL_TRY(accel_out_write(o, zeros, n));
        rest += n;
    }
    return ACCEL_OK;
}

enum accel_err accel_out_copy(struct accel_out *o, struct accel_file *f, uint64_t offset,
                              uint64_t size)
{
    while (size > 0) {
        uint64_t n = BLOCK - o->in_block;
        n = n < size ? n : size;
        ACCEL_TRY(accel_file_read(f, offset, n, o->block + o->in_block));
        o->in_block += n;
        if (o->in_block == BLOCK)
            ACCEL_TRY(put_block(o));
        offset += n;
        size -= n;
    }
    return ACCEL_OK;
}

uint64_t accel_out_position(const struct accel_out *o)
{
    return o->at + o->in_block;
}

static int fsync_again(int fd)
{
    int r;
    do
        r = fsync(fd);
    while (r && errno == EINTR);
    return r;
}

enum accel_err accel_out_finish(struct accel_out *o)
{
    ACCEL_TRY(put_block(o));
    return fsync_again(o->fd) ? fail_write(o, "flush") : ACCEL_OK;
}

const char *accel_out_temp_path(const struct accel_out *o)
{
    return o->temp;
}

enum accel_err accel_out_retarget(struct accel_out *o, const char *path)
{
    char *copy = join(path, strlen(path), "");
    if (!copy)
        return accel_fail_nomem();
    accel_free(o->path);
    o->path = copy;
    return ACCEL_OK;
}

/* Flushes the folder. One that we may enter and write but not read, and file systems that know no
 * such thing, leave that to the kernel. */
static int fsync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EACCES ? 0 : -1;
    int r = fsync_again(fd), e = errno;
    close(fd);
    errno = e;
    return r && (e == EINVAL || e == ENOTSUP || e == EBADF) ? 0 : r;
}

enum accel_err accel_out_commit(struct accel_out *o)
{
    mode_t mode;
    ACCEL_TRY(look_at_target(&mode, o->path));
    bool swapped = renameat2(AT_FDCWD, o->temp, AT_FDCWD, o->path, RENAME_EXCHANGE) == 0;
    bool absent = !swapped && errno == ENOENT;
    if (!swapped && !absent && errno != EINVAL && errno != ENOSYS && errno != ENOTSUP)
        return fail_write(o, "put in place");
    if (!swapped && rename(o->temp, o->path))
        return fail_write(o, "put in place");
    if (fsync_folder(o->folder)) {
        int e = errno;
        bool back = swapped ? renameat2(AT_FDCWD, o->temp, AT_FDCWD, o->path, RENAME_EXCHANGE) == 0
                            : absent && rename(o->path, o->temp) == 0;
        o->committed = !back;
        return accel_fail(ACCEL_EIO, "cannot flush folder '%s': %s", o->folder, strerror(e));
    }
    o->committed = true;
    if (swapped)
        unlink(o->temp);
    return ACCEL_OK;
}

void accel_out_close(struct accel_out *o)
{
    if (!o)
        return;
    if (o->fd >= 0 && !o->committed)
        unlink(o->temp);
    if (o->direct_fd >= 0)
        close(o->direct_fd);
    if (o->fd >= 0)
        close(o->fd);
    accel_free(o->path);
    accel_free(o->temp);
    accel_free(o->folder);
    accel_free(o->block);
    accel_free(o);
}
