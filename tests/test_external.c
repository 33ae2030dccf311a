/* test_external.c - data files: what is opened, what is refused. A file outside the model's folder
 * is the target that must not be reached. */
#include "tests/t.h"

#include <sys/stat.h>

#include "tests/onnx_make.h"

static const float weight[16] = {1, 2, 3, 4};

/* A model with one 4x4 initializer at `location`, in FOLDER/in/m.onnx. */
static const char *model_at(const char *location, const char *key, const char *value)
{
    struct accel_str t = {0}, g = {0};
    accel_put_int(&t, TENSOR_DIMS, 4);
    accel_put_int(&t, TENSOR_DIMS, 4);
    accel_put_int(&t, TENSOR_DATA_TYPE, ACCEL_F32);
    accel_put_string(&t, TENSOR_NAME, "w");
    make_entry(&t, TENSOR_EXTERNAL_DATA, "location", location);
    if (key)
        make_entry(&t, TENSOR_EXTERNAL_DATA, key, value);
    accel_put_int(&t, TENSOR_DATA_LOCATION, 1);
    make_message(&g, GRAPH_INITIALIZER, &t);
    return save_model("in/m.onnx", make_model(&g));
}

static void setup(void)
{
    make_folder();
    ck_assert_int_eq(mkdir(in_folder("in"), 0700), 0);
    ck_assert_int_eq(mkdir(in_folder("in/sub"), 0700), 0);
    save_file(in_folder("secret"), weight, sizeof weight);
    save_file(in_folder("in/w"), weight, sizeof weight);
    save_file(in_folder("in/sub/w"), weight, sizeof weight);
}

static void accepted(const char *location)
{
    struct accel_model *m;
    ck_ok(accel_onnx_read(&m, model_at(location, NULL, NULL), NULL));
    float got[16];
    ck_assert_uint_eq(m->n_tensor, 1);
    ck_assert_str_eq(m->tensor[0]->file->path, location);
    ck_ok(accel_tensor_read(m->tensor[0], 0, 16, got));
    ck_assert_int_eq(memcmp(got, weight, sizeof got), 0);
    accel_model_free(m);
}

static void refused_as(const char *location, const char *key, const char *value, const char *word)
{
    struct accel_model *m;
    ck_fails(accel_onnx_read(&m, model_at(location, key, value), NULL), ACCEL_EMODEL, word);
    ck_assert_ptr_nonnull(strstr(accel_errmsg(), "initializer 'w'"));
    ck_assert_ptr_null(m);
    struct accel_onnx_read_options skip = {.skip_data = true};
    ck_ok(accel_onnx_read(&m, model_at(location, key, value), &skip));
    ck_assert_uint_eq(m->log.n, 1);
    ck_assert_ptr_nonnull(strstr(m->log.text[0], word));
    ck_assert_ptr_null(m->tensor[0]->file);
    accel_model_free(m);
}

static void refused(const char *location, const char *word)
{
    refused_as(location, NULL, NULL, word);
}

START_TEST(files_below_the_folder_are_read)
{
    accepted("w");
    accepted("./w");
    accepted("sub/w");
    accepted(".//sub/./w");
}
END_TEST

START_TEST(locations_that_leave_the_folder_are_refused)
{
    refused("../secret", "..");
    refused("./../secret", "..");
    refused("sub/../../secret", "..");
    refused("sub//..//../secret", "..");
    refused("sub/..", "..");
    refused(in_folder("secret"), "absolute");
    refused("..\\secret", "backslash");
    refused("", "empty");
    refused(".", "folder");
    refused("sub", "folder");
    refused("nothing", "nothing");
}
END_TEST

START_TEST(links_are_refused_unless_asked_for)
{
    const char *location[] = {"link", "d/w", "hard"};
    ck_assert_int_eq(symlink("../secret", in_folder("in/link")), 0);
    ck_assert_int_eq(mkdir(in_folder("far"), 0700), 0);
    save_file(in_folder("far/w"), weight, sizeof weight);
    ck_assert_int_eq(symlink("../far", in_folder("in/d")), 0);
    ck_assert_int_eq(link(in_folder("secret"), in_folder("in/hard")), 0);
    for (int i = 0; i < 3; i++) {
        refused(location[i], "--allow-linked-data");
        struct accel_onnx_read_options linked = {.allow_linked_data = true};
        struct accel_model *m;
        ck_ok(accel_onnx_read(&m, model_at(location[i], NULL, NULL), &linked));
        ck_assert_uint_eq(m->log.n, 1);
        ck_assert_ptr_nonnull(strstr(m->log.text[0], location[i]));
        accel_model_free(m);
    }
}
END_TEST

START_TEST(a_fifo_is_no_data_file)
{
    ck_assert_int_eq(mkfifo(in_folder("in/fifo"), 0600), 0);
    refused("fifo", "no regular file");
}
END_TEST

START_TEST(ranges_are_checked_against_the_file)
{
    refused_as("w", "length", "-1", "-1");
    refused_as("w", "length", "9000000000000000", "9000000000000000");
    refused_as("w", "length", "32", "32");
    refused_as("w", "length", "99999999999999999999999", "too large");
    refused_as("w", "offset", "-1", "-1");
    refused_as("w", "offset", "1", "64");
    refused_as("w", "offset", "18446744073709551600", "18446744073709551600");
    refused_as("w", "offset", "", "not a size");
}
END_TEST

START_TEST(unknown_keys_are_ignored_with_a_warning)
{
    struct accel_model *m;
    ck_ok(accel_onnx_read(&m, model_at("w", "__class__", "os.system"), NULL));
    ck_assert_uint_eq(m->log.n, 1);
    ck_assert_ptr_nonnull(strstr(m->log.text[0], "__class__"));
    ck_assert_uint_gt(m->size, sizeof weight);
    accel_model_free(m);
}
END_TEST

static Suite *external_suite(void)
{
    Suite *s = suite_create("external");
    TCase *t = tcase_create("open");
    tcase_add_checked_fixture(t, setup, remove_folder);
    tcase_add_test(t, files_below_the_folder_are_read);
    tcase_add_test(t, locations_that_leave_the_folder_are_refused);
    tcase_add_test(t, links_are_refused_unless_asked_for);
    tcase_add_test(t, a_fifo_is_no_data_file);
    tcase_add_test(t, ranges_are_checked_against_the_file);
    tcase_add_test(t, unknown_keys_are_ignored_with_a_warning);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(external_suite)
