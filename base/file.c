/* Reading by position. Every read gives a position of its own, so that one descriptor serves many
 * tensors, and nothing is mapped: a file that shrinks under us is an error, not a SIGBUS.
 *
 * Two descriptors per file: large aligned runs that the page cache does not hold are read around it
 * (a model is read once; copying it through the cache costs as much time as pruning it), everything
 * else through it. Whether the cache holds a run is asked of its first and last page with
 * RWF_NOWAIT, which answers EAGAIN instead of waiting for the device. */
#include "base/file.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE       4096u
#define DIRECT_MIN ((uint64_t)1 << 20)
#define ONE_CALL   ((uint64_t)1 << 30) /* the kernel moves at most 2 GiB - 4 KiB per call */

enum accel_err accel_file_open(struct accel_file **out, const char *path)
{
    *out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return accel_fail(errno == EIO ? ACCEL_EIO : ACCEL_EMODEL, "cannot open '%s': %s", path,
                          strerror(errno));
    return accel_file_adopt(out, fd, path);
}

enum accel_err accel_file_adopt(struct accel_file **out, int fd, const char *path)
{
    *out = NULL;
    struct stat st = {0};
    size_t len = strlen(path);
    struct accel_file *f = accel_calloc(1, sizeof *f + len + 1);
    if (!f) {
        close(fd);
        return accel_fail_nomem();
    }
    f->path = memcpy(f + 1, path, len);
    f->fd = fd;
    f->direct_fd = -1;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        const char *why = S_ISDIR(st.st_mode) ? "it is a folder" : "it is no regular file";
        accel_file_close(f);
        return accel_fail(ACCEL_EMODEL, "cannot read '%s': %s", path, why);
    }
    f->size = (uint64_t)st.st_size;
    f->dev = st.st_dev;
    f->ino = st.st_ino;
    *out = f;
    return ACCEL_OK;
}

void accel_file_close(struct accel_file *f)
{
    if (!f)
        return;
    if (f->direct_fd >= 0)
        close(f->direct_fd);
    close(f->fd);
    accel_free(f);
}

static bool is_cached(const struct accel_file *f, uint64_t offset)
{
    char byte;
    struct iovec v = {&byte, 1};
    return preadv2(f->fd, &v, 1, (off_t)offset, RWF_NOWAIT) == 1;
}

/* The descriptor for this run. The second one is opened when it is first wanted: the same open file
 * through /proc, so that a renamed path does not matter; without /proc there is none. */
static int choose_fd(struct accel_file *f, uint64_t offset, uint64_t size, const void *buf)
{
    if (size < DIRECT_MIN || (offset | size | (uintptr_t)buf) % PAGE != 0 || f->direct_fd == -2)
        return f->fd;
    if (is_cached(f, offset) && is_cached(f, offset + size - 1))
        return f->fd;
    if (f->direct_fd == -1) {
        char self[64];
        snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
        f->direct_fd = open(self, O_RDONLY | O_CLOEXEC | O_DIRECT);
        if (f->direct_fd < 0)
            f->direct_fd = -2;
    }
    return f->direct_fd >= 0 ? f->direct_fd : f->fd;
}

enum accel_err accel_file_read(struct accel_file *f, uint64_t offset, uint64_t size, void *buf)
{
    uint64_t end;
    if (__builtin_add_overflow(offset, size, &end) || end > (uint64_t)INT64_MAX)
        return accel_fail(ACCEL_EMODEL, "'%s': %llu bytes at %llu lie beyond any file", f->path,
                          (unsigned long long)size, (unsigned long long)offset);
    int fd = choose_fd(f, offset, size, buf);
    char *p = buf;
    while (size > 0) {
        ssize_t n = pread(fd, p, size < ONE_CALL ? size : ONE_CALL, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && fd != f->fd && errno == EINVAL) {
            fd = f->fd; /* the file system wants a coarser alignment */
            continue;
        }
        if (n < 0)
            return accel_fail(ACCEL_EIO, "cannot read '%s': %s", f->path, strerror(errno));
        if (n == 0)
            return accel_fail(ACCEL_EMODEL,
                              "'%s' ends at byte %llu, but had %llu bytes when it was opened",
                              f->path, (unsigned long long)offset, (unsigned long long)f->size);
        p += n;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
        if (size % PAGE != 0)
            fd = f->fd;
    }
    return ACCEL_OK;
}
