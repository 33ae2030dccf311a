/* Data files: what goes there, under which name, what is kept and what is removed. */
#include "tests/write_case.h"

#include "base/alloc.h"

START_TEST(tensors_go_to_an_aligned_data_file_and_come_home_the_same)
{
    struct accel_onnx_write_options out = {.external = ACCEL_EXTERNAL_YES};
    struct accel_onnx_write_options in = {.external = ACCEL_EXTERNAL_NO};
    struct accel_str t = {0};
    make_tensor(&t, GRAPH_INITIALIZER, "a", ACCEL_F32, N, -1, TENSOR_RAW_DATA, weights,
                sizeof weights);
    make_tensor(&t, GRAPH_INITIALIZER, "small", ACCEL_F32, 20, -1, TENSOR_RAW_DATA, weights, 80);
    make_tensor(&t, GRAPH_INITIALIZER, "b", ACCEL_F32, N, -1, TENSOR_RAW_DATA, weights,
                sizeof weights);
    struct accel_str m = make_model(&t);
    save_file(in_folder("m"), m.at, m.len);
    rewrite(in_folder("m"), in_folder("o"), false, &out);
    ck_assert_str_eq(folder_list(), "m o o.data ");
    ck_assert_int_eq(size_of(in_folder("o.data")), 4096 + (off_t)sizeof weights);
    struct accel_str data = load_file(in_folder("o.data"));
    ck_assert_mem_eq(data.at, weights, sizeof weights);
    ck_assert_mem_eq(data.at + 4096, weights, sizeof weights);
    accel_str_clear(&data);
    ck_assert(file_holds(in_folder("o"), "o.data") && file_holds(in_folder("o"), "4096"));
    ck_assert(!file_holds(in_folder("o"), "1600Z"));
    /* what was external stays so by itself; the same bytes again */
    struct accel_str first = load_file(in_folder("o"));
    rewrite(in_folder("o"), in_folder("o"), false, &plain);
    ck_same(in_folder("o"), &first);
    ck_assert_str_eq(folder_list(), "m o o.data ");
    rewrite(in_folder("o"), in_folder("o"), false, &in);
    ck_same(in_folder("o"), &m);
    ck_assert_str_eq(folder_list(), "m o ");
    accel_str_clear(&first);
    accel_str_clear(&m);
}
END_TEST

START_TEST(long_unknown_field_of_a_moved_tensor_stays)
{
    struct accel_onnx_write_options opt = {.external = ACCEL_EXTERNAL_YES};
    enum { LONG = 100000 };
    struct accel_str t = {0}, g = {0};
    char *field = calloc(1, LONG);
    strcpy(field, "a long field from the future");
    accel_put_int(&t, TENSOR_DIMS, N);
    accel_put_int(&t, TENSOR_DATA_TYPE, ACCEL_F32);
    accel_put_string(&t, TENSOR_NAME, "w");
    accel_put_bytes(&t, 1999, field, LONG);
    accel_put_bytes(&t, TENSOR_RAW_DATA, weights, sizeof weights);
    accel_put_bytes(&t, 1998, field, LONG);
    make_message(&g, GRAPH_INITIALIZER, &t);
    rewrite(save_model("m", make_model(&g)), in_folder("o"), false, &opt);
    ck_assert(file_holds(in_folder("o"), field));
    ck_assert_int_gt(size_of(in_folder("o")), 2 * LONG);
    free(field);
}
END_TEST

START_TEST(data_file_of_others_is_kept_and_ours_named_by_its_content)
{
    struct accel_onnx_write_options opt = {.external = ACCEL_EXTERNAL_YES};
    save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights));
    save_file(in_folder("o.data"), "somebody's", 10);
    rewrite(in_folder("m"), in_folder("o"), false, &opt);
    ck_assert_int_eq(size_of(in_folder("o.data")), 10);
    char first[2048];
    strcpy(first, folder_list());
    ck_assert_uint_eq(strlen(first), strlen("m o o.01234567.data o.data "));
    rewrite(in_folder("m"), in_folder("o"), false, &opt); /* the same content: the same name */
    ck_assert_str_eq(folder_list(), first);
    rewrite(in_folder("m"), in_folder("o"), true, &opt); /* other content: the old one goes */
    ck_assert_str_ne(folder_list(), first);
    ck_assert_uint_eq(strlen(folder_list()), strlen(first));
    float got[N];
    elements(in_folder("o"), got);
    ck_assert_float_eq(got[9], weights[9]);
    ck_assert_float_eq(got[8], 0);
}
END_TEST

START_TEST(in_place_with_data_keeps_one_data_file)
{
    struct accel_onnx_write_options opt = {.external = ACCEL_EXTERNAL_YES};
    rewrite(save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights)),
            in_folder("m"), false, &opt);
    ck_assert_str_eq(folder_list(), "m m.data ");
    rewrite(in_folder("m"), in_folder("m"), true, &plain);
    ck_assert_uint_eq(strlen(folder_list()), strlen("m m.01234567.data "));
    struct accel_str first = load_file(in_folder("m"));
    rewrite(in_folder("m"), in_folder("m"), true, &plain);
    ck_same(in_folder("m"), &first);
    accel_str_clear(&first);
}
END_TEST

START_TEST(data_that_the_input_still_needs_are_not_removed)
{
    struct accel_onnx_write_options opt = {.external = ACCEL_EXTERNAL_YES};
    rewrite(save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights)),
            in_folder("o"), false, &opt);
    struct accel_str bytes = load_file(in_folder("o"));
    save_file(in_folder("m"), bytes.at, bytes.len); /* the input names o.data too */
    accel_str_clear(&bytes);
    rewrite(in_folder("m"), in_folder("o"), true, &plain);
    ck_assert_uint_eq(strlen(folder_list()), strlen("m o o.01234567.data o.data "));
    float got[N];
    elements(in_folder("m"), got);
    ck_assert_mem_eq(got, weights, sizeof got);
}
END_TEST

START_TEST(inline_beyond_two_gib_is_refused_with_both_numbers)
{
    struct accel_onnx_write_options no = {.external = ACCEL_EXTERNAL_NO};
    const int64_t rows = 600 << 10, columns = 1 << 10;
    struct accel_str t = {0}, g = {0};
    accel_put_int(&t, TENSOR_DIMS, rows);
    accel_put_int(&t, TENSOR_DIMS, columns);
    accel_put_int(&t, TENSOR_DATA_TYPE, ACCEL_F32);
    accel_put_string(&t, TENSOR_NAME, "w");
    make_entry(&t, TENSOR_EXTERNAL_DATA, "location", "big.data");
    accel_put_int(&t, TENSOR_DATA_LOCATION, 1);
    make_message(&g, GRAPH_INITIALIZER, &t);
    save_file(in_folder("big.data"), "", 0);
    ck_assert_int_eq(truncate(in_folder("big.data"), (off_t)(rows * columns * 4)), 0);
    struct accel_model *m = open_model(save_model("m", make_model(&g)));
    struct accel_onnx_written w;
    ck_fails(accel_onnx_write(&w, m, in_folder("o"), &no), ACCEL_EARG, "more than the 2147483647");
    ck_assert_ptr_nonnull(strstr(accel_errmsg(), "have 25165"));
    ck_ok(accel_onnx_dry_write(&w, m, in_folder("o"), &plain));
    ck_assert_uint_gt(w.size, (uint64_t)(rows * columns * 4));
    ck_assert_str_eq(folder_list(), "big.data m ");
    accel_model_free(m);
}
END_TEST

/* External over external, so that every step of the writer is on the way. */
START_TEST(every_failed_allocation_leaves_the_old_files)
{
    struct accel_property meta[] = {{"k", "v"}};
    struct accel_onnx_write_options opt = {
        .external = ACCEL_EXTERNAL_YES, .meta = meta, .n_meta = 1};
    save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights));
    rewrite(in_folder("m"), in_folder("o"), false, &opt);
    struct accel_str old = load_file(in_folder("o"));
    for (int forever = 0; forever < 2; forever++) {
        enum accel_err err = ACCEL_ENOMEM;
        rewrite(in_folder("m"), in_folder("o"), false, &opt);
        for (long n = 1; err; n++) {
            ck_same(in_folder("o"), &old);
            ck_assert_str_eq(folder_list(), "m o o.data ");
            struct accel_model *m = open_model(in_folder("m"));
            make_edits(m);
            struct accel_onnx_written w;
            accel_alloc_fail_at(n, forever);
            err = accel_onnx_write(&w, m, in_folder("o"), &opt);
            accel_alloc_fail_at(0, false);
            ck_assert_msg(err == ACCEL_OK || err == ACCEL_ENOMEM, "allocation %ld: %d %s", n, err,
                          accel_errmsg());
            accel_model_free(m);
        }
        ck_assert_uint_eq(strlen(folder_list()), strlen("m o o.01234567.data "));
    }
    accel_str_clear(&old);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("write_external");
    TCase *c = tcase_create("write_external");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, remove_folder);
    tcase_add_test(c, tensors_go_to_an_aligned_data_file_and_come_home_the_same);
    tcase_add_test(c, long_unknown_field_of_a_moved_tensor_stays);
    tcase_add_test(c, data_file_of_others_is_kept_and_ours_named_by_its_content);
    tcase_add_test(c, in_place_with_data_keeps_one_data_file);
    tcase_add_test(c, data_that_the_input_still_needs_are_not_removed);
    tcase_add_test(c, inline_beyond_two_gib_is_refused_with_both_numbers);
    tcase_add_test(c, every_failed_allocation_leaves_the_old_files);
    suite_add_tcase(s, c);
    return s;
}

T_MAIN(suite)
