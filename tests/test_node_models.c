/* Debian's ONNX test models run, and their outputs are the ones stored beside them.
 *
 * What is left out stands in tests/node_skips.txt, a model a line ("KIND/NAME  reason"); the file
 * only shrinks: a skipped model that passes is a failure. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "exec/plan.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "onnx/onnx.pb-c.h"
#include "tests/t.h"

#define ROOT     "/usr/share/libonnx-testdata/data"
#define MAX_LIST 2000

/* Models whose stored outputs were written with 3 or 4 digits, or with 3.1415 for pi. */
static const char *const rounded[] = {"test_blackmanwindow", "test_gridsample_bicubic",
                                      "test_hammingwindow", "test_hannwindow", "test_roialign"};
static bool is_rounded;

static char *skip_text;

/* "node/test_x" is listed. */
static bool is_skipped(const char *kind, const char *name)
{
    char line[512];
    snprintf(line, sizeof line, "%s/%s ", kind, name);
    return skip_text && strstr(skip_text, line) != NULL;
}

static char *read_all(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    *n = (size_t)ftell(f);
    rewind(f);
    char *s = malloc(*n + 1);
    if (fread(s, 1, *n, f) != *n)
        *n = 0;
    s[*n] = '\0';
    fclose(f);
    return s;
}

/* A stored tensor as an array; NULL data when its form is not one that tests need. */
struct stored {
    struct accel_array a;
    Onnx__Tensor *msg;
    void *own;
};

static void *typed_elements(const Onnx__Tensor *t, int64_t n)
{
    uint64_t size;
    if (!accel_dtype_size((enum accel_dtype)t->data_type, (uint64_t)n, &size))
        return NULL;
    size_t count =
        t->n_float_data + t->n_double_data + t->n_int64_data + t->n_uint64_data + t->n_int32_data;
    if (n < 0 || n > (1 << 24) || count != (size_t)n)
        return NULL;
    char *own = calloc(1, size + 64);
    if (t->n_float_data)
        memcpy(own, t->float_data, size);
    else if (t->n_double_data)
        memcpy(own, t->double_data, size);
    else if (t->n_int64_data)
        memcpy(own, t->int64_data, size);
    else if (t->n_uint64_data)
        for (int64_t i = 0; i < n; i++)
            memcpy(own + (size_t)i * (size / (uint64_t)n), &t->uint64_data[i], size / (uint64_t)n);
    else
        for (int64_t i = 0; i < n && t->n_int32_data; i++)
            memcpy(own + (size_t)i * (size / (uint64_t)n), &t->int32_data[i], size / (uint64_t)n);
    return own;
}

static bool load_tensor(struct stored *s, const char *path)
{
    size_t size;
    char *bytes = read_all(path, &size);
    *s = (struct stored){0};
    if (!bytes)
        return false;
    s->msg = onnx__tensor__unpack(NULL, size, (uint8_t *)bytes);
    free(bytes);
    if (!s->msg || !accel_dtype_find(s->msg->data_type) || !s->msg->has_data_type)
        return false; /* a sequence, an optional, … */
    int64_t n = 1;
    for (size_t i = 0; i < s->msg->n_dims; i++)
        n *= s->msg->dims[i];
    s->a = (struct accel_array){(enum accel_dtype)s->msg->data_type, (int)s->msg->n_dims,
                                s->msg->dims, n, s->msg->raw_data.data};
    uint64_t need;
    if (s->msg->has_raw_data &&
        (!accel_dtype_size(s->a.dtype, (uint64_t)n, &need) || need != s->msg->raw_data.len))
        return false;
    if (!s->msg->has_raw_data)
        s->a.data = s->own = typed_elements(s->msg, n);
    if (!s->a.data && n == 0)
        s->a.data = s->own = calloc(1, 64);
    return true;
}

static void free_stored(struct stored *s)
{
    if (s->msg)
        onnx__tensor__free_unpacked(s->msg, NULL);
    free(s->own);
}

/* "" when the arrays are equal within the tolerance of their type. */
static const char *differs(const struct accel_array *got, const struct accel_array *want)
{
    static char text[256];
    if (got->dtype != want->dtype || got->rank != want->rank) {
        snprintf(text, sizeof text, "type %d rank %d, expected %d rank %d", (int)got->dtype,
                 got->rank, (int)want->dtype, want->rank);
        return text;
    }
    for (int i = 0; i < got->rank; i++)
        if (got->dim[i] != want->dim[i]) {
            snprintf(text, sizeof text, "axis %d has size %lld, expected %lld", i,
                     (long long)got->dim[i], (long long)want->dim[i]);
            return text;
        }
    bool real = accel_dtype_find((int)got->dtype)->cls == ACCEL_CLASS_REAL;
    double wide = got->dtype == ACCEL_F16 ? 2e-3 : got->dtype == ACCEL_BF16 ? 1e-2 : 1e-4;
    if (is_rounded && real)
        wide = fmax(wide, 1e-3); /* ONNX's own tolerance */
    for (int64_t i = 0; i < got->n; i++) {
        double a, b;
        if (accel_dtype_find((int)got->dtype)->cls == ACCEL_CLASS_OTHER)
            return "a type that is not compared";
        accel_dtype_to_f64(got->dtype, got->data, (size_t)i, 1, &a);
        accel_dtype_to_f64(want->dtype, want->data, (size_t)i, 1, &b);
        if (isnan(a) && isnan(b))
            continue;
        if (!(a == b || (real && fabs(a - b) <= 1e-5 + wide * fabs(b)))) {
            snprintf(text, sizeof text, "element %lld is %g, expected %g", (long long)i, a, b);
            return text;
        }
    }
    return "";
}

/* Runs the model on one data set. "" or what is wrong. */
static const char *run_set(struct accel_plan *p, const char *folder)
{
    static char text[1024];
    struct stored in[64], want;
    char path[700];
    int n = 0;
    text[0] = '\0';
    for (; n < accel_plan_n_inputs(p) && n < 64; n++) {
        snprintf(path, sizeof path, "%.500s/input_%d.pb", folder, n);
        if (!load_tensor(&in[n], path)) {
            snprintf(text, sizeof text, "no %.600s", path);
            break;
        }
        if (accel_plan_set_input(p, n, &in[n].a)) {
            snprintf(text, sizeof text, "%s", accel_errmsg());
            n++;
            break;
        }
    }
    if (!*text && accel_plan_run(p))
        snprintf(text, sizeof text, "%s", accel_errmsg());
    for (int i = 0; !*text && i < accel_plan_n_outputs(p); i++) {
        snprintf(path, sizeof path, "%.500s/output_%d.pb", folder, i);
        if (!load_tensor(&want, path)) {
            snprintf(text, sizeof text, "no %.600s", path);
            break;
        }
        const char *d = differs(accel_plan_output(p, i), &want.a);
        if (*d)
            snprintf(text, sizeof text, "output %d: %s", i, d);
        free_stored(&want);
    }
    for (int i = 0; i < n; i++)
        free_stored(&in[i]);
    return text;
}

static const char *run_on(const char *folder, struct accel_device *device)
{
    static char text[1024];
    const struct accel_onnx_read_options opt = {0};
    struct accel_model *m = NULL;
    struct accel_plan *p = NULL;
    char path[700];
    struct stat st;
    snprintf(path, sizeof path, "%.500s/model.onnx", folder);
    if (accel_onnx_read(&m, path, &opt) || accel_model_infer(m) ||
        accel_plan_new(&p, m, &(struct accel_plan_options){.device = device})) {
        snprintf(text, sizeof text, "%s", accel_errmsg());
        accel_model_free(m);
        return text;
    }
    text[0] = '\0';
    for (int i = 0; !*text && i < 20; i++) {
        snprintf(path, sizeof path, "%.500s/test_data_set_%d", folder, i);
        if (stat(path, &st))
            break;
        snprintf(text, sizeof text, "%s", run_set(p, path));
    }
    accel_plan_free(p);
    accel_model_free(m);
    return text;
}

static struct accel_device *device; /* or NULL */

/* By the plain kernels, then by the fast ones where there are any. */
static const char *run_model(const char *folder)
{
    const char *why = run_on(folder, NULL);
    return *why || !device ? why : run_on(folder, device);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* All models of one kind; the failures are printed. */
static int run_kind(const char *kind, int least)
{
    static char *name[MAX_LIST];
    char path[512];
    int n = 0, bad = 0, ran = 0, skipped = 0;
    snprintf(path, sizeof path, ROOT "/%s", kind);
    DIR *d = opendir(path);
    if (!d) {
        printf("SKIP: no %s\n", path);
        return 0;
    }
    for (struct dirent *e; (e = readdir(d)) && n < MAX_LIST;)
        if (e->d_name[0] != '.')
            name[n++] = strdup(e->d_name);
    closedir(d);
    qsort(name, (size_t)n, sizeof *name, by_name);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, ROOT "/%s/%s", kind, name[i]);
        bool skip = is_skipped(kind, name[i]);
        is_rounded = false;
        for (size_t k = 0; k < sizeof rounded / sizeof *rounded; k++)
            is_rounded |= strncmp(name[i], rounded[k], strlen(rounded[k])) == 0;
        const char *why = run_model(path);
        if (!*why && !skip)
            ran++;
        skipped += *why && skip;
        if (*why && !skip) {
            printf("%s/%s  %s\n", kind, name[i], why);
            bad++;
        }
        if (!*why && skip) {
            printf("%s/%s passes: take it off tests/node_skips.txt\n", kind, name[i]);
            bad++;
        }
        free(name[i]);
    }
    printf("%s: %d models equal, %d differ, %d skipped by name\n", kind, ran, bad, skipped);
    ck_assert_int_ge(ran, least);
    return bad;
}

START_TEST(node_models_give_their_outputs)
{
    ck_assert_int_eq(run_kind("node", 823), 0);
}
END_TEST

START_TEST(converted_models_give_their_outputs)
{
    ck_assert_int_eq(run_kind("pytorch-converted", 82) + run_kind("pytorch-operator", 31), 0);
}
END_TEST

START_TEST(simple_models_give_their_outputs)
{
    ck_assert_int_eq(run_kind("simple", 7), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("node models");
    TCase *t = tcase_create("models");
    size_t n;
    skip_text = read_all("tests/node_skips.txt", &n);
    if (accel_device_cpu(&device))
        device = NULL;
    tcase_set_timeout(t, 300);
    tcase_add_test(t, node_models_give_their_outputs);
    tcase_add_test(t, converted_models_give_their_outputs);
    tcase_add_test(t, simple_models_give_their_outputs);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
