/* mutate.c - damaged models through the finished program, many of them:
 *
 *     mutate PROGRAM COUNT SEED MODEL... [-- OPTION...]
 *
 * Each run takes a model, damages it (bytes flipped, runs cut out, doubled, moved from another
 * model, numbers set to extremes, the end cut off) and calls PROGRAM FILE OPTION... . Bad is: a
 * signal, a status beyond 5, more than 5 s of processor time, more than 256 MiB. The seed and the
 * run's number make a damaged file again; bad ones are kept beside the working file. The program is
 * started anew each time, as users start it: no state hides behind an earlier run. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"

struct bytes {
    unsigned char *at;
    size_t n;
};

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static struct bytes load(const char *path)
{
    struct bytes b = {NULL, 0};
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st))
        die(path);
    b.n = (size_t)st.st_size;
    b.at = malloc(b.n + 1);
    if (!b.at || read(fd, b.at, b.n) != (ssize_t)b.n)
        die(path);
    close(fd);
    return b;
}

static size_t below(struct accel_rng *r, size_t n)
{
    return n ? (size_t)(accel_rng_next(r) % n) : 0;
}

/* Replaces `cut` bytes at `at` by `n` bytes. */
static void put_in(struct bytes *b, size_t at, size_t cut, const unsigned char *with, size_t n)
{
    unsigned char *p = malloc(b->n - cut + n + 1);
    if (!p)
        die("malloc");
    memcpy(p, b->at, at);
    memcpy(p + at, with, n);
    memcpy(p + at + n, b->at + at + cut, b->n - at - cut);
    free(b->at);
    b->at = p;
    b->n += n - cut;
}

/* Values that sizes and dims go wrong at: as varints, as 64-bit and 32-bit numbers. */
static const struct {
    unsigned char byte[11];
    size_t n;
} extreme[] = {
    {{0}, 1},
    {{0x7f}, 1},
    {{0xff, 0xff, 0xff, 0xff, 0x07}, 5},
    {{0xff, 0xff, 0xff, 0xff, 0x0f}, 5},
    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, 9},
    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}, 10},
    {{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 10},
    {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 11},
    {{0, 0, 0, 0, 0, 0, 0, 0x80}, 8},
    {{0xff, 0xff, 0xff, 0x7f}, 4},
};

static void damage_once(struct bytes *b, const struct bytes *other, struct accel_rng *r)
{
    size_t at = below(r, b->n), n = 1 + below(r, below(r, 4) ? 8 : 200);
    if (n > b->n - at)
        n = b->n - at;
    switch (below(r, 8)) {
    case 0:
        b->at[at] ^= (unsigned char)(1 << below(r, 8));
        break;
    case 1:
        b->at[at] = (unsigned char)accel_rng_next(r);
        break;
    case 2:
        put_in(b, at, n, NULL, 0);
        break;
    case 3: {
        unsigned char *copy = malloc(n);
        if (!copy)
            die("malloc");
        memcpy(copy, b->at + at, n);
        put_in(b, below(r, b->n), 0, copy, n);
        free(copy);
        break;
    }
    case 4: {
        size_t from = below(r, other->n);
        size_t m = n < other->n - from ? n : other->n - from;
        put_in(b, at, below(r, 2) ? n : 0, other->at + from, m);
        break;
    }
    case 5:
    case 6: {
        size_t e = below(r, sizeof extreme / sizeof *extreme);
        put_in(b, at, below(r, 2) ? 1 : 0, extreme[e].byte, extreme[e].n);
        break;
    }
    default:
        if (below(r, 4) == 0)
            b->n = at;
        else
            b->at[at] = (unsigned char)(b->at[at] + (below(r, 2) ? 1 : -1));
    }
}

static void save(const char *path, const struct bytes *b)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0 || write(fd, b->at, b->n) != (ssize_t)b->n || close(fd))
        die(path);
}

/* Runs the program; its exit status, or 128 + signal; *kib: peak memory. */
static int call(char *const *argv, long *kib)
{
    pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (!pid) {
        struct rlimit cpu = {5, 5}, core = {0, 0};
        setrlimit(RLIMIT_CPU, &cpu);
        setrlimit(RLIMIT_CORE, &core);
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        execv(argv[0], argv);
        _exit(127);
    }
    int status;
    struct rusage used;
    if (wait4(pid, &status, 0, &used) != pid)
        die("wait4");
    *kib = used.ru_maxrss;
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "usage: mutate PROGRAM COUNT SEED MODEL... [-- OPTION...]\n");
        return 2;
    }
    long count = atol(argv[2]), bad = 0, seen[256] = {0}, most_kib = 0;
    struct bytes *model = calloc((size_t)argc, sizeof *model);
    char **args = calloc((size_t)argc + 2, sizeof *args);
    size_t n_model = 0;
    int i = 4;
    if (!model || !args)
        die("calloc");
    for (; i < argc && strcmp(argv[i], "--"); i++)
        model[n_model++] = load(argv[i]);
    char folder[] = "/dev/shm/accel-mutate-XXXXXX", path[64], kept[96];
    if (!mkdtemp(folder))
        die(folder);
    snprintf(path, sizeof path, "%s/m.onnx", folder);
    args[0] = argv[1];
    args[1] = path;
    for (int k = 2; i + 1 < argc; i++)
        args[k++] = argv[i + 1];
    for (long run = 0; run < count; run++) {
        struct accel_rng r = accel_rng_init(strtoull(argv[3], NULL, 10) * 1000003u + (uint64_t)run);
        const struct bytes *from = &model[below(&r, n_model)];
        struct bytes b = {NULL, 0};
        put_in(&b, 0, 0, from->at, from->n);
        for (size_t times = 1 + below(&r, 4); times && b.n; times--)
            damage_once(&b, &model[below(&r, n_model)], &r);
        save(path, &b);
        long kib;
        int status = call(args, &kib);
        seen[status & 255]++;
        most_kib = kib > most_kib ? kib : most_kib;
        if (status > 5 || kib > 256 * 1024) {
            snprintf(kept, sizeof kept, "%s/bad-%ld.onnx", folder, run);
            save(kept, &b);
            printf("run %ld: status %d, %ld KiB: %s\n", run, status, kib, kept);
            bad++;
        }
        free(b.at);
    }
    for (int s = 0; s < 256; s++)
        if (seen[s])
            printf("status %d: %ld\n", s, seen[s]);
    printf("%ld runs, %ld bad, at most %ld KiB\n", count, bad, most_kib);
    unlink(path);
    rmdir(folder);
    return bad != 0;
}
