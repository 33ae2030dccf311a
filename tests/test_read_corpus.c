/* test_read_corpus.c - every model of Debian's libonnx-testdata and of ../shared/models is read.
 * The files there are right, so one that is refused is a fault of the reader. */
#include "onnx/onnx.h"
#include "tests/t.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DEBIAN "/usr/share/libonnx-testdata"
#define SHARED "../shared/models"

static int read_ok, refused, nodes, known;

static int visit(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)at;
    size_t len = strlen(path);
    if (type != FTW_F || len < 5 || strcmp(path + len - 5, ".onnx") != 0)
        return 0;
    struct accel_model *m;
    if (accel_onnx_read(&m, path, NULL)) {
        fprintf(stderr, "%s: %s\n", path, accel_errmsg());
        refused++;
        return 0;
    }
    read_ok++;
    nodes += (int)m->graph->n_node;
    for (size_t i = 0; i < m->graph->n_node; i++)
        known += m->graph->node[i]->op != NULL;
    accel_model_free(m);
    return 0;
}

static int walk(const char *dir)
{
    read_ok = refused = nodes = known = 0;
    if (access(dir, R_OK))
        return 0;
    ck_assert_int_eq(nftw(dir, visit, 16, FTW_PHYS), 0);
    if (read_ok)
        fprintf(stderr, "%s: %d models read, %d refused, %d nodes, %d of known operators\n", dir,
                read_ok, refused, nodes, known);
    return read_ok;
}

START_TEST(all_test_models_of_the_onnx_package_are_read)
{
    if (!walk(DEBIAN))
        fprintf(stderr, "skipped: libonnx-testdata is not installed\n");
    else
        ck_assert_int_ge(read_ok, 1000);
    ck_assert_int_eq(refused, 0);
}
END_TEST

START_TEST(all_example_models_are_read)
{
    if (!walk(SHARED))
        fprintf(stderr, "skipped: no " SHARED "\n");
    else
        ck_assert_int_ge(read_ok, 11);
    ck_assert_int_eq(refused, 0);
}
END_TEST

static Suite *corpus_suite(void)
{
    Suite *s = suite_create("read_corpus");
    TCase *t = tcase_create("read");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, all_test_models_of_the_onnx_package_are_read);
    tcase_add_test(t, all_example_models_are_read);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(corpus_suite)
