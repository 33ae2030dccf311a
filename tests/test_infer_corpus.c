/* Shapes and types of all outputs of Debian's ONNX test models against what the files declare for
 * them (exact in these models), and contents of outputs against the test data: the inputs of the
 * test data are given to the inference as constants, so that shapes that depend on contents are
 * found and every kernel that constant propagation runs is compared with its expected result.
 *
 * The outputs' declarations are hidden from the inference. tests/infer_skips.txt names the models
 * whose outputs cannot be told; a line that is no longer needed fails. */
#include <glob.h>
#include <stdio.h>
#include <string.h>

#include "graph/constprop.h"
#include "graph/graph.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "t.h"

#define DATA  "/usr/share/libonnx-testdata/data/"
#define SKIPS "tests/infer_skips.txt"

static char skips[65536];

static void read_skips(void)
{
    FILE *f = fopen(SKIPS, "r");
    ck_assert_ptr_nonnull(f);
    size_t n = fread(skips + 1, 1, sizeof skips - 2, f);
    fclose(f);
    skips[0] = '\n';
    skips[n + 1] = 0;
}

static bool is_skipped(const char *name)
{
    char line[300];
    snprintf(line, sizeof line, "\n%s\n", name);
    return strstr(skips, line) != NULL;
}

/* ------------------------------------------------------------------ tensors of the test data */

static uint64_t varint(const unsigned char **p, const unsigned char *end)
{
    uint64_t v = 0;
    for (int shift = 0; *p < end && shift < 64; shift += 7) {
        unsigned char b = *(*p)++;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128)
            break;
    }
    return v;
}

/* A TensorProto with raw_data, in the arena of the model; NULL: none of that kind. */
static struct accel_tensor *tensor_read(struct accel_arena *a, const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    unsigned char *bytes = accel_arena_new(a, 1, 1 << 20);
    size_t n = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    struct accel_tensor *t = ACCEL_NEW(a, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(a, int64_t, 16);
    t->dim = dim;
    t->name = "";
    t->n = 1;
    for (const unsigned char *p = bytes, *end = bytes + n; p < end;) {
        uint64_t tag = varint(&p, end), v = (tag & 7) != 5 ? varint(&p, end) : 4;
        if (tag >> 3 == 1 && (tag & 7) == 0) {
            dim[t->rank++] = (int64_t)v;
        } else if (tag >> 3 == 1) {
            for (const unsigned char *q = p; q < p + v;)
                dim[t->rank++] = (int64_t)varint(&q, p + v);
        } else if (tag >> 3 == 2) {
            t->dtype = (enum accel_dtype)v;
        } else if (tag >> 3 == 9) {
            t->data = p;
            t->size = v;
        }
        p += (tag & 7) == 0 ? 0 : v;
    }
    for (int i = 0; i < t->rank; i++)
        t->n *= (uint64_t)dim[i];
    uint64_t want;
    bool whole = accel_dtype_find((int)t->dtype) && accel_dtype_size(t->dtype, t->n, &want) &&
                 want == t->size && (t->data || t->n == 0);
    return whole && t->n <= ACCEL_KNOWN_MAX ? t : NULL;
}

static struct accel_tensor *data_of(struct accel_model *m, const char *path, const char *what,
                                    size_t i)
{
    char file[400];
    snprintf(file, sizeof file, "%.*stest_data_set_0/%s_%zu.pb", (int)(strlen(path) - 10), path,
             what, i);
    return tensor_read(&m->arena, file);
}

static int n_compared; /* outputs whose contents were found */

/* The contents found for an output are those of the test data. */
static bool contents_agree(struct accel_model *m, const char *path, size_t i, char *why,
                           size_t size)
{
    struct accel_value *v = m->graph->output[i];
    const struct accel_known *k = v->tensor ? NULL : v->known;
    struct accel_tensor *t = k ? data_of(m, path, "output", i) : NULL;
    if (!t)
        return true;
    n_compared++;
    double *want = calloc(t->n + 1, sizeof *want);
    accel_dtype_to_f64(t->dtype, t->data ? t->data : "", 0, t->n, want);
    bool good = (int64_t)t->n == k->n;
    for (int64_t e = 0; good && e < k->n; e++) {
        double got = k->real ? (double)((const float *)k->probe[0])[e]
                             : (double)((const int64_t *)k->probe[0])[e];
        double slack = t->dtype == ACCEL_F16 || t->dtype == ACCEL_BF16 ? 1e-2 : 1e-4;
        good = (isnan(got) && isnan(want[e])) || !(got < want[e] || got > want[e]) ||
               fabs(got - want[e]) <= slack * (1 + fabs(want[e]));
        if (!good)
            snprintf(why, size, "%s[%d] is %g, must be %g", v->name, (int)e, got, want[e]);
    }
    free(want);
    return good;
}

/* What differs between the shape found and the shape declared, into `why`. */
static bool agrees(const struct accel_model *m, const struct accel_value *v,
                   const struct accel_shape *want, enum accel_dtype dtype, char *why, size_t size)
{
    char a[200], b[200];
    bool same = v->dtype == dtype && v->shape.rank == want->rank;
    for (int i = 0; same && i < want->rank; i++)
        same = want->dim[i].n < 0 || v->shape.dim[i].n == want->dim[i].n;
    if (!same)
        snprintf(why, size, "%s: found %d %s, declared %d %s", v->name, (int)v->dtype,
                 accel_shape_text(&v->shape, &m->symbols, a, sizeof a), (int)dtype,
                 accel_shape_text(want, &m->symbols, b, sizeof b));
    return same;
}

static bool outputs_agree(const char *path, char *why, size_t size)
{
    struct accel_model *m = NULL;
    const struct accel_onnx_read_options opt = {0};
    ck_ok(accel_onnx_read(&m, path, &opt));
    size_t n = m->graph->n_output;
    struct accel_shape *want = calloc(n + 1, sizeof *want);
    enum accel_dtype *dtype = calloc(n + 1, sizeof *dtype);
    ck_assert(want && dtype);
    for (size_t i = 0; i < n; i++) {
        struct accel_value *v = m->graph->output[i];
        want[i] = v->declared;
        dtype[i] = v->declared_dtype;
        if (v->producer) {
            v->declared.rank = -1;
            v->declared_dtype = ACCEL_UNDEFINED;
        }
    }
    for (size_t i = 0; i < m->graph->n_input; i++)
        if (!m->graph->input[i]->tensor)
            m->graph->input[i]->tensor = data_of(m, path, "input", i);
    bool good = true;
    if (accel_model_infer(m)) {
        snprintf(why, size, "%s", accel_errmsg());
        good = false;
    }
    for (size_t i = 0; good && i < n; i++)
        if (m->graph->output[i]->is_tensor && want[i].rank >= 0)
            good = agrees(m, m->graph->output[i], &want[i], dtype[i], why, size) &&
                   contents_agree(m, path, i, why, size);
    free(want);
    free(dtype);
    accel_model_free(m);
    return good;
}

START_TEST(outputs_of_the_test_models_are_as_declared)
{
    glob_t g;
    int bad = 0, checked = 0;
    read_skips();
    if (glob(DATA "*/*/model.onnx", 0, NULL, &g) != 0)
        return; /* the package is not installed: tests/run.sh installs it */
    for (size_t i = 0; i < g.gl_pathc; i++) {
        char name[256], why[600] = "";
        snprintf(name, sizeof name, "%.*s", (int)(strlen(g.gl_pathv[i]) - strlen(DATA) - 11),
                 g.gl_pathv[i] + strlen(DATA));
        bool good = outputs_agree(g.gl_pathv[i], why, sizeof why), skip = is_skipped(name);
        if (good == skip) {
            bad++;
            fprintf(stderr, "%s: %s\n", name, good ? "no longer to be skipped" : why);
        }
        checked++;
    }
    globfree(&g);
    ck_assert_int_ge(checked, 1000);
    printf("contents of %d outputs compared\n", n_compared);
    ck_assert_int_ge(n_compared, 300);
    ck_assert_msg(bad == 0, "%d of %d models", bad, checked);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("inference over the test models");
    TCase *t = tcase_create("outputs");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, outputs_of_the_test_models_are_as_declared);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
