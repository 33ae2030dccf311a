/* Opening data files that a model names, without leaving its folder.
 *
 * The name is untrusted: it is taken apart and opened component by component, each with
 * O_NOFOLLOW from the descriptor of the one before, so that what is checked is what is opened and
 * no link leads out. ".." is refused whatever it would resolve to. A file with further hard links
 * could be one from elsewhere, so it is refused too. Model caches are made of links: with
 * allow_linked the name is opened as the system resolves it, and a warning says so. */
#include "onnx/onnx_int.h"

#include "base/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static enum accel_err check_location(const char *location)
{
    if (!*location)
        return accel_fail(ACCEL_EMODEL, "the location of its data file is empty");
    if (strlen(location) >= PATH_MAX)
        return accel_fail(ACCEL_EMODEL, "the location of its data file is too long: '%.100s…'",
                          location);
    if (*location == '/')
        return accel_fail(ACCEL_EMODEL, "data file '%s' is an absolute path", location);
    if (strchr(location, '\\'))
        return accel_fail(ACCEL_EMODEL, "data file '%s' has a backslash in its name", location);
    for (const char *c = location; *c;) {
        size_t n = strcspn(c, "/");
        if (n == 2 && c[0] == '.' && c[1] == '.')
            return accel_fail(ACCEL_EMODEL, "data file '%s' leaves the model's folder ('..')",
                              location);
        c += n + (c[n] == '/');
    }
    return ACCEL_OK;
}

/* The folder that holds the model, by the path as given. */
static enum accel_err open_folder(int *fd, const struct accel_model *m)
{
    const char *slash = strrchr(m->path, '/');
    char *folder = accel_calloc(slash ? (size_t)(slash - m->path) + 2 : 2, 1);
    if (!folder)
        return accel_fail_nomem();
    memcpy(folder, slash ? m->path : ".", slash ? (size_t)(slash - m->path) + 1 : 1);
    *fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    enum accel_err err = ACCEL_OK;
    if (*fd < 0)
        err = accel_fail(ACCEL_EMODEL, "cannot open folder '%s': %s", folder, strerror(errno));
    accel_free(folder);
    return err;
}

/* Opens each component of `location` (writable) from the one before; -1 with errno; *link: a
 * component is a symbolic link. */
static int walk(int folder, char *location, bool *link)
{
    int at = folder;
    char *c = location;
    for (;;) {
        while (*c == '/' || (c[0] == '.' && (c[1] == '/' || !c[1])))
            c++;
        size_t n = strcspn(c, "/");
        bool last = c[n + strspn(c + n, "/")] == '\0';
        if (c[n])
            c[n++] = '\0';
        int flags = last ? O_RDONLY | O_NONBLOCK | O_NOCTTY : O_PATH | O_DIRECTORY;
        int fd = openat(at, *c ? c : ".", flags | O_NOFOLLOW | O_CLOEXEC);
        int why = errno;
        struct stat st;
        if (fd < 0)
            *link = fstatat(at, c, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode);
        if (at != folder)
            close(at);
        errno = why;
        if (fd < 0 || last)
            return fd;
        at = fd;
        c += n;
    }
}

/* A descriptor of the file, or EMODEL. */
static enum accel_err open_data(int *fd, struct accel_model *m, const char *location,
                                bool allow_linked)
{
    int folder;
    bool link = false;
    struct stat st;
    char *copy = accel_calloc(strlen(location) + 1, 1);
    if (!copy)
        return accel_fail_nomem();
    strcpy(copy, location);
    enum accel_err err = open_folder(&folder, m);
    if (err) {
        accel_free(copy);
        return err;
    }
    *fd = walk(folder, copy, &link);
    int why = errno;
    accel_free(copy);
    if (link && allow_linked) {
        *fd = openat(folder, location, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        why = errno;
    }
    close(folder);
    if (*fd < 0 && link && !allow_linked)
        return accel_fail(ACCEL_EMODEL,
                          "data file '%s' is a symbolic link or lies behind one; "
                          "--allow-linked-data follows those of model caches",
                          location);
    if (*fd < 0)
        return accel_fail(ACCEL_EMODEL, "cannot open data file '%s': %s", location, strerror(why));
    bool hard = fstat(*fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 1;
    if (hard && !allow_linked) {
        close(*fd);
        return accel_fail(ACCEL_EMODEL,
                          "data file '%s' has %llu hard links and may belong elsewhere; "
                          "--allow-linked-data accepts it",
                          location, (unsigned long long)st.st_nlink);
    }
    if (link || hard)
        accel_warn(&m->log, "data file '%s' is a link; it was followed as --allow-linked-data asks",
                   location);
    return ACCEL_OK;
}

enum accel_err accel_external_open(struct accel_file **out, struct accel_model *m,
                                   struct accel_onnx *x, const char *location, bool allow_linked)
{
    for (size_t i = 0; i < x->n_data; i++)
        if (strcmp(x->data[i]->location, location) == 0) {
            *out = x->data[i]->file;
            return ACCEL_OK;
        }
    ACCEL_TRY(check_location(location));
    struct accel_data_file *d = ACCEL_NEW(&x->arena, struct accel_data_file, 1);
    char *copy = accel_arena_strndup(&x->arena, location, strlen(location));
    int fd;
    if (!d || !copy || !ACCEL_GROW(x->data, x->data_cap, x->n_data + 1))
        return accel_fail_nomem();
    ACCEL_TRY(open_data(&fd, m, location, allow_linked));
    ACCEL_TRY(accel_file_adopt(&d->file, fd, location));
    d->location = copy;
    x->data[x->n_data++] = d;
    m->size += d->file->size;
    *out = d->file;
    return ACCEL_OK;
}
