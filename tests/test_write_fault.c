/* Kills the writer, or fails it, at every call that changes the disk (fault_shim.c), one after the
 * other, and looks at what a reader would find. The writer runs in a child: this program again,
 * with arguments. */
#include "tests/onnx_make.h"

#include "tests/t.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

enum { BIG = 1300000, SMALL = 500 }; /* elements: one tensor for the direct path, one below it */

/* MODEL OUT yes|no|auto edit|keep */
static int child(char **arg)
{
    struct accel_model *m = NULL;
    struct accel_onnx_read_options ro = {0};
    struct accel_property meta[] = {{"accel.version", "1"}};
    struct accel_onnx_write_options opt = {.meta = meta, .n_meta = 1};
    struct accel_onnx_written w;
    opt.external = arg[2][0] == 'y'   ? ACCEL_EXTERNAL_YES
                   : arg[2][0] == 'n' ? ACCEL_EXTERNAL_NO
                                      : ACCEL_EXTERNAL_AUTO;
    enum accel_err err = accel_onnx_read(&m, arg[0], &ro);
    if (!err && arg[3][0] == 'e')
        make_edits(m);
    if (!err)
        err = accel_onnx_write(&w, m, arg[1], &opt);
    if (err)
        fprintf(stderr, "%s\n", accel_errmsg());
    accel_model_free(m);
    return (int)err;
}

static char self[512];

struct outcome {
    int status; /* of waitpid */
    long calls; /* -1: killed before it could tell */
};

static struct outcome run_child(long at, const char *how, const char *model, const char *out,
                                const char *external, const char *edit)
{
    struct outcome o = {0, -1};
    char number[32], fd[16], text[64] = "", shim[512];
    int pipe_fd[2];
    ck_assert_int_eq(pipe(pipe_fd), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const char *build = getenv("ACCEL_BUILD_DIR");
        snprintf(shim, sizeof shim, "%s/fault_shim.so", build ? build : "build");
        snprintf(number, sizeof number, "%ld", at);
        snprintf(fd, sizeof fd, "%d", pipe_fd[1]);
        setenv("LD_PRELOAD", shim, 1);
        setenv("ASAN_OPTIONS", "verify_asan_link_order=0", 1);
        setenv("FAULT_AT", number, 1);
        setenv("FAULT_HOW", how, 1);
        setenv("FAULT_COUNT", fd, 1);
        if (!freopen("/dev/null", "w", stderr))
            _exit(126);
        execl(self, self, "child", model, out, external, edit, (char *)NULL);
        _exit(127);
    }
    ck_assert_int_gt(pid, 0);
    close(pipe_fd[1]);
    ssize_t n = read(pipe_fd[0], text, sizeof text - 1);
    close(pipe_fd[0]);
    ck_assert_int_eq(waitpid(pid, &o.status, 0), pid);
    if (n > 0)
        o.calls = atol(text);
    return o;
}

static enum accel_err add_up(void *ctx, uint64_t first, uint64_t count, const void *elem)
{
    const unsigned char *p = elem;
    (void)first;
    for (uint64_t i = 0; i < count * 4; i++)
        *(uint64_t *)ctx = (*(uint64_t *)ctx ^ p[i]) * 0x100000001b3u;
    return ACCEL_OK;
}

/* A number that stands for all weights that a reader of this model gets. */
static uint64_t weights_sum(const char *path)
{
    struct accel_model *m;
    struct accel_onnx_read_options ro = {0};
    struct accel_buffer b;
    uint64_t sum = 1;
    ck_ok(accel_onnx_read(&m, path, &ro));
    ck_ok(accel_buffer_init(&b, 0));
    ck_assert_uint_eq(m->n_tensor, 2);
    for (size_t i = 0; i < m->n_tensor; i++)
        ck_ok(accel_tensor_scan(m->tensor[i], &b, add_up, &sum));
    accel_buffer_clear(&b);
    accel_model_free(m);
    return sum;
}

static void make_input(void)
{
    make_folder();
    float *w = calloc(BIG, sizeof *w);
    struct accel_str t = {0};
    for (int i = 0; i < BIG; i++)
        w[i] = (float)(i % 1000 + 1);
    make_tensor(&t, GRAPH_INITIALIZER, "big", ACCEL_F32, BIG, -1, TENSOR_RAW_DATA, w,
                BIG * sizeof *w);
    make_tensor(&t, GRAPH_INITIALIZER, "small", ACCEL_F32, SMALL, -1, TENSOR_RAW_DATA, w,
                SMALL * sizeof *w);
    free(w);
    save_model("in", make_model(&t));
}

/* The situations: what is at OUT before, and how it is written. */
static const struct {
    const char *before; /* how OUT is made first, from the unedited input */
    const char *model, *external;
} place[] = {
    {"no", "in", "no"},     /* inline over inline */
    {NULL, "in", "no"},     /* a new file */
    {NULL, "in", "yes"},    /* two new files */
    {"yes", "in", "yes"},   /* data file taken: a hashed name, the old one goes */
    {"yes", "out", "auto"}, /* in place with data */
    {"yes", "out", "no"},   /* in place, data come home */
    {"no", "out", "yes"},   /* in place, data go out */
};

static void prepare(int i)
{
    char cmd[256];
    snprintf(cmd, sizeof cmd, "cd '%s' && rm -rf out* .keep && mkdir .keep", make_folder_path);
    ck_assert_int_eq(system(cmd), 0);
    if (place[i].before) {
        struct outcome o =
            run_child(0, "none", in_folder("in"), in_folder("out"), place[i].before, "keep");
        ck_assert_int_eq(o.status, 0);
    }
    snprintf(cmd, sizeof cmd, "cd '%s' && cp -a in out* .keep 2>/dev/null; true", make_folder_path);
    ck_assert_int_eq(system(cmd), 0);
}

/* Everything in the folder is as it was kept: names and bytes. */
static void ck_nothing_changed(int i, long at)
{
    char cmd[256];
    snprintf(cmd, sizeof cmd, "cd '%s' && diff -r -x .keep . .keep >/dev/null", make_folder_path);
    ck_assert_msg(system(cmd) == 0, "case %d, call %ld: the folder changed: %s", i, at,
                  folder_list());
}

static struct outcome hit(int i, long at, const char *how)
{
    prepare(i);
    return run_child(at, how, in_folder(place[i].model), in_folder("out"), place[i].external,
                     "edit");
}

START_TEST(failing_call_changes_nothing)
{
    const int error[] = {ENOSPC, EIO};
    uint64_t new_sum = 0;
    for (int e = 0; e < 2; e++)
        for (long at = 0;; at++) {
            char how[16];
            snprintf(how, sizeof how, "%d", error[e]);
            struct outcome o = hit(_i, at, how);
            ck_assert_msg(WIFEXITED(o.status), "case %d, call %ld: signal", _i, at);
            ck_assert_int_gt(o.calls, 0);
            if (WEXITSTATUS(o.status) == ACCEL_OK) { /* it found another way, or was not hit */
                uint64_t sum = weights_sum(in_folder("out"));
                new_sum = at ? new_sum : sum;
                ck_assert_uint_eq(sum, new_sum);
                ck_assert_ptr_null(strstr(folder_list(), ".tmp"));
            } else {
                ck_assert_int_eq(WEXITSTATUS(o.status), ACCEL_EIO);
                ck_nothing_changed(_i, at);
            }
            if (at > o.calls)
                break;
        }
}
END_TEST

START_TEST(kill_leaves_the_old_model_or_the_new_one)
{
    ck_assert_int_eq(hit(_i, 0, "kill").status, 0);
    uint64_t new_sum = weights_sum(in_folder("out")), old_sum = 0;
    bool killed = true;
    int n_old = 0, n_new = 0;
    for (long at = 1; killed; at++) {
        struct outcome o = hit(_i, at, "kill");
        killed = WIFSIGNALED(o.status);
        ck_assert(killed ? WTERMSIG(o.status) == SIGKILL : o.status == 0);
        if (place[_i].before)
            old_sum = weights_sum(in_folder(".keep/out"));
        if (access(in_folder("out"), F_OK) != 0) {
            ck_assert_ptr_null(place[_i].before);
            n_old++;
            continue;
        }
        uint64_t sum = weights_sum(in_folder("out"));
        ck_assert_msg(sum == new_sum || (place[_i].before && sum == old_sum),
                      "case %d, call %ld: neither old nor new", _i, at);
        n_old += sum != new_sum;
        n_new += sum == new_sum;
        ck_assert(killed || sum == new_sum);
    }
    ck_assert_int_ge(n_old, 3);
    ck_assert_int_ge(n_new, 2);
}
END_TEST

START_TEST(short_writes_are_carried_on)
{
    struct outcome o = hit(_i, 0, "short");
    uint64_t want = weights_sum(in_folder("out"));
    for (long at = 1, n = o.calls; at <= n; at++) {
        o = hit(_i, at, "short");
        ck_assert_int_eq(o.status, 0);
        ck_assert_uint_eq(weights_sum(in_folder("out")), want);
    }
}
END_TEST

static Suite *suite(void)
{
    const int n = sizeof place / sizeof *place;
    Suite *s = suite_create("write_fault");
    TCase *c = tcase_create("write_fault");
    tcase_set_timeout(c, 120);
    tcase_add_checked_fixture(c, make_input, remove_folder);
    tcase_add_loop_test(c, failing_call_changes_nothing, 0, n);
    tcase_add_loop_test(c, kill_leaves_the_old_model_or_the_new_one, 0, n);
    tcase_add_loop_test(c, short_writes_are_carried_on, 0, n);
    suite_add_tcase(s, c);
    return s;
}

int main(int argc, char **argv)
{
    if (argc == 6 && strcmp(argv[1], "child") == 0)
        return child(argv + 2);
    ssize_t len = readlink("/proc/self/exe", self, sizeof self - 1);
    if (len <= 0)
        return EXIT_FAILURE;
    SRunner *r = srunner_create(suite());
    srunner_run_all(r, CK_ENV);
    int bad = srunner_ntests_failed(r);
    srunner_free(r);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
