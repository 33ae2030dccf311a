/* fault_shim.c - a preloaded library that makes the n-th call that changes a disk fail, or kills
 * the process there.
 *
 * Counted: write, pwrite, fsync, rename, renameat2, ftruncate, open with O_CREAT; when
 * killing also unlink. Environment:
 *   FAULT_AT=n       the call to hit (1, 2, ...); 0 or absent: none
 *   FAULT_HOW=kill | short | E       SIGKILL before the call; write half of the bytes and
 *                    go on; or this errno number instead of the call
 *   FAULT_COUNT=fd   the number of calls is written to this descriptor at exit */
#undef _FILE_OFFSET_BITS /* write and write64 are two functions here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long calls, target = -1;
static const char *how;

enum fault { NONE, FAIL, SHORT };

static enum fault next_call(void)
{
    if (target < 0) {
        const char *at = getenv("FAULT_AT");
        target = at ? atol(at) : 0;
        how = getenv("FAULT_HOW");
    }
    if (++calls != target || !how)
        return NONE;
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "short") == 0)
        return SHORT;
    errno = atoi(how);
    return FAIL;
}

static void *real(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

ssize_t write(int fd, const void *buf, size_t n)
{
    ssize_t (*f)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))real("write");
    if (fd <= 2)
        return f(fd, buf, n);
    enum fault e = next_call();
    return e == FAIL ? -1 : f(fd, buf, e == SHORT ? (n + 1) / 2 : n);
}

ssize_t pwrite64(int fd, const void *buf, size_t n, off64_t at)
{
    ssize_t (*f)(int, const void *, size_t, off64_t) =
        (ssize_t(*)(int, const void *, size_t, off64_t))real("pwrite64");
    enum fault e = next_call();
    return e == FAIL ? -1 : f(fd, buf, e == SHORT ? (n + 1) / 2 : n, at);
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
    return pwrite64(fd, buf, n, at);
}

int fsync(int fd)
{
    int (*f)(int) = (int (*)(int))real("fsync");
    return next_call() == FAIL ? -1 : f(fd);
}

int rename(const char *from, const char *to)
{
    int (*f)(const char *, const char *) = (int (*)(const char *, const char *))real("rename");
    return next_call() == FAIL ? -1 : f(from, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    int (*f)(int, const char *, int, const char *, unsigned) =
        (int (*)(int, const char *, int, const char *, unsigned))real("renameat2");
    return next_call() == FAIL ? -1 : f(a, from, b, to, flags);
}

int ftruncate(int fd, off_t n)
{
    int (*f)(int, off_t) = (int (*)(int, off_t))real("ftruncate");
    return next_call() == FAIL ? -1 : f(fd, n);
}

int open64(const char *path, int flags, ...)
{
    int (*f)(const char *, int, ...) = (int (*)(const char *, int, ...))real("open64");
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return flags & O_CREAT && next_call() == FAIL ? -1 : f(path, flags, mode);
}

int open(const char *path, int flags, ...)
{
    va_list ap;
    va_start(ap, flags);
    mode_t mode = flags & O_CREAT ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    return open64(path, flags, mode);
}

int unlink(const char *path)
{
    int (*f)(const char *) = (int (*)(const char *))real("unlink");
    if (target > 0 && how && strcmp(how, "kill") == 0)
        next_call();
    return f(path);
}

__attribute__((destructor)) static void report(void)
{
    const char *fd = getenv("FAULT_COUNT");
    if (fd)
        dprintf(atoi(fd), "%ld\n", calls);
}
