/* Sets of arrays and tables: .npy, .npz, CSV. The archives are NumPy's own. */
#include "data/npy.h"
#include "tests/data_files.h"
#include "tests/data_t.h"

static struct accel_dataset *d;

static void drop(void)
{
    accel_dataset_close(d);
    d = NULL;
}

static void end(void)
{
    drop();
    data_end();
}

/* The field of this name. */
static const struct accel_field *field(const char *name, size_t *index)
{
    for (*index = 0; *index < d->n_input; ++*index)
        if (strcmp(d->input[*index].name, name) == 0)
            return &d->input[*index];
    ck_abort_msg("no field '%s'", name);
    return NULL;
}

START_TEST(archives_hold_fields_and_labels)
{
    for (int packed = 0; packed < 2; packed++) {
        float x[6];
        int64_t ids[12], label[3];
        void *to[2];
        size_t i, k;
        if (packed)
            data_save("a.npz", file_npz_packed, sizeof file_npz_packed);
        else
            data_save("a.npz", file_npz_stored, sizeof file_npz_stored);
        ck_ok(data_open(&d, "npz:%/a.npz"));
        ck_assert(d->n == 3 && d->n_input == 2 && d->label_kind == ACCEL_LABEL_CLASS);
        ck_assert_int_eq(field("x", &i)->dtype, ACCEL_F32);
        ck_assert_int_eq(field("ids", &k)->dtype, ACCEL_I64);
        ck_assert(d->input[i].rank == 1 && d->input[i].dim[0] == 2 && d->input[k].dim[0] == 4);
        to[i] = x;
        to[k] = ids;
        ck_ok(accel_dataset_read(d, 0, 3, to, label));
        for (int v = 0; v < 12; v++) /* Fortran order was turned round */
            ck_assert(ids[v] == v && (v > 5 || x[v] == (float)v));
        ck_assert(label[0] == 2 && label[1] == 0 && label[2] == 1);
        drop();
    }
}
END_TEST

START_TEST(arrays_are_normalised_on_their_first_axis)
{
    float x[6];
    int64_t ids[12];
    void *to[2];
    size_t i, k;
    data_save("a.npz", file_npz_stored, sizeof file_npz_stored);
    data_fails("npz:%/a.npz?mean=1,2,3", ACCEL_EARG, "mean has 3 numbers, samples have on their");
    ck_ok(data_open(&d, "npz:%/a.npz?mean=1&std=2"));
    field("x", &i);
    field("ids", &k);
    to[i] = x;
    to[k] = ids;
    ck_ok(accel_dataset_read(d, 0, 3, to, NULL));
    ck_assert(x[0] == -0.5f && x[5] == 2);
}
END_TEST

/* Every cut, and every byte replaced by 0, 1, 0x7f and 0xff: an error or a set, never a crash; what
 * is taken stays within bounds that the sanitizers watch. */
START_TEST(damaged_archives_do_no_harm)
{
    static unsigned char b[sizeof file_npz_packed];
    static const unsigned char values[] = {0, 1, 0x7f, 0xff};
    int refused = 0;
    for (size_t n = 0; n < sizeof b; n++) {
        data_save("a.npz", file_npz_packed, n);
        ck_assert_int_ne(data_open(&d, "npz:%/a.npz"), ACCEL_OK);
    }
    for (size_t at = 0; at < sizeof b; at++)
        for (size_t v = 0; v < sizeof values; v++) {
            memcpy(b, file_npz_packed, sizeof b);
            b[at] = values[v];
            data_save("a.npz", b, sizeof b);
            enum accel_err err = data_open(&d, "npz:%/a.npz");
            ck_assert(err == ACCEL_OK || err == ACCEL_EMODEL);
            refused += err != ACCEL_OK;
            drop();
        }
    ck_assert_int_ge(refused, 300);
}
END_TEST

static void save_array(const char *name, enum accel_dtype dtype, int rank, const int64_t *dim,
                       void *data)
{
    struct accel_array a = {dtype, rank, dim, 1, data};
    for (int i = 0; i < rank; i++)
        a.n *= dim[i];
    ck_ok(accel_npy_write(data_path(name), &a));
}

START_TEST(a_file_or_a_folder_of_arrays_is_a_set)
{
    float y[2];
    data_save("half.npy", file_npy_v2, sizeof file_npy_v2);
    ck_ok(data_open(&d, "npy:%/half.npy"));
    ck_assert(d->n == 3 && d->n_input == 1 && d->label_kind == ACCEL_LABEL_NONE);
    ck_assert(*d->input->name == '\0' && d->input->dtype == ACCEL_F16);
    drop();
    ck_ok(data_open(&d, "npy:%/half.npy?mean=0"));
    ck_ok(accel_dataset_read(d, 0, 1, (void *[]){y}, NULL));
    ck_assert(y[0] == 1.5f && y[1] == -2);
    drop();
    save_array("label.npy", ACCEL_F64, 2, (int64_t[]){3, 2}, (double[]){1, 2, 3, 4, 5, 6.5});
    ck_ok(data_open(&d, "npy:%"));
    ck_assert(d->label_kind == ACCEL_LABEL_VALUE && d->label_width == 2);
    ck_assert_str_eq(d->input->name, "half");
    uint16_t half[2];
    ck_ok(accel_dataset_read(d, 2, 1, (void *[]){half}, y));
    ck_assert(y[0] == 5 && y[1] == 6.5f && accel_f16_to_f32(half[1]) == 6);
    drop();
    save_array("empty.npy", ACCEL_F32, 3, (int64_t[]){2, 0, 4}, (float[]){1});
    ck_ok(data_open(&d, "npy:%/empty.npy?mean=0.5"));
    float nothing = 7;
    ck_ok(accel_dataset_read(d, 1, 1, (void *const[]){&nothing}, NULL));
    ck_assert_float_eq(nothing, 7);
}
END_TEST

START_TEST(arrays_that_do_not_fit_are_named)
{
    data_fails("npz", ACCEL_EARG, "the file is missing");
    data_fails("npy", ACCEL_EARG, "the path is missing");
    data_fails("npz:%/none", ACCEL_EMODEL, "/none");
    data_fails("npz:%/a?crop=3", ACCEL_EARG, "key 'crop' means nothing to data sets of kind 'npz'");
    data_save("a.npz", "hello", 5);
    data_fails("npz:%/a.npz", ACCEL_EMODEL, "a.npz: it is no ZIP file");
    data_fails("npy:%", ACCEL_EMODEL, "no array but 'label'");
    save_array("x.npy", ACCEL_F32, 1, (int64_t[]){2}, (float[]){1, 2});
    save_array("y.npy", ACCEL_F32, 1, (int64_t[]){3}, (float[]){1, 2, 3});
    data_fails("npy:%", ACCEL_EMODEL, "samples, the others");
    save_array("y.npy", ACCEL_F32, 0, NULL, (float[]){1});
    data_fails("npy:%/y.npy", ACCEL_EMODEL, "a single number");
    save_array("y.npy", ACCEL_F32, 1, (int64_t[]){0}, (float[]){1});
    data_fails("npy:%/y.npy", ACCEL_EMODEL, "no samples");
}
END_TEST

START_TEST(headers_of_arrays_that_lie_are_refused)
{
    struct accel_npy a;
    static const char *const dicts[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2305843009213693952, 8), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
        "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,",
        "{'shape': (1,)}",
        "",
    };
    for (size_t i = 0; i < sizeof dicts / sizeof *dicts; i++) {
        unsigned char b[256] = "\x93NUMPY\x01";
        size_t n = strlen(dicts[i]);
        b[8] = (unsigned char)n;
        memcpy(b + 10, dicts[i], n);
        ck_assert_msg(accel_npy_parse(&a, b, 10 + n + 4) == ACCEL_EMODEL, "%s", dicts[i]);
        ck_assert_ptr_null(a.data);
    }
    for (size_t n = 0; n < sizeof file_npy_v2; n++)
        ck_assert_int_eq(accel_npy_parse(&a, file_npy_v2, n), ACCEL_EMODEL);
    ck_ok(accel_npy_parse(&a, file_npy_v2, sizeof file_npy_v2));
    ck_assert(a.a.rank == 2 && a.a.dim[0] == 3 && a.a.dtype == ACCEL_F16);
    accel_npy_clear(&a);
}
END_TEST

START_TEST(every_type_survives_writing_and_reading)
{
    static const enum accel_dtype types[] = {ACCEL_BOOL, ACCEL_I8,  ACCEL_U8,  ACCEL_I16,
                                             ACCEL_U16,  ACCEL_I32, ACCEL_U32, ACCEL_I64,
                                             ACCEL_U64,  ACCEL_F16, ACCEL_F32, ACCEL_F64};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const double v[] = {1, 0, 1};
        unsigned char data[24];
        struct accel_npy back;
        accel_dtype_from_f64(types[i], v, 3, data, 0);
        save_array("t.npy", types[i], 2, (int64_t[]){1, 3}, data);
        ck_ok(accel_npy_read(&back, data_path("t.npy")));
        ck_assert_int_eq(back.a.dtype, types[i]);
        ck_assert(back.a.rank == 2 && back.a.dim[1] == 3);
        ck_assert_mem_eq(back.data, data, 3 * (size_t)accel_dtype_find((int)types[i])->bits / 8);
        accel_npy_clear(&back);
    }
    uint16_t b16 = accel_f32_to_bf16(1.5f);
    struct accel_npy back;
    save_array("t.npy", ACCEL_BF16, 0, NULL, &b16);
    ck_ok(accel_npy_read(&back, data_path("t.npy")));
    ck_assert(back.a.dtype == ACCEL_F32 && *(float *)back.data == 1.5f);
    accel_npy_clear(&back);
    struct accel_array text = {ACCEL_STRING, 0, NULL, 1, &b16};
    ck_fails(accel_npy_write(data_path("u.npy"), &text), ACCEL_ENOSUP, ".npy has no type");
}
END_TEST

START_TEST(tables_become_rows_of_numbers)
{
    float x[3 * 2];
    int64_t label[3];
    data_save_text("t.csv", "a,\"b \"\"x\"\",\n1\",label\r\n1,2.5,0\r\n\r\n\"3\",-4e1,2\n5,6,1");
    ck_ok(data_open(&d, "csv:%/t.csv"));
    ck_assert(d->n == 3 && d->input->dim[0] == 2 && d->label_kind == ACCEL_LABEL_CLASS);
    ck_ok(accel_dataset_read(d, 0, 3, (void *[]){x}, label));
    const float want[] = {1, 2.5f, 3, -40, 5, 6};
    ck_assert_mem_eq(x, want, sizeof x);
    ck_assert(label[0] == 0 && label[1] == 2 && label[2] == 1);
}
END_TEST

START_TEST(columns_are_chosen_by_name_or_number)
{
    float x[2];
    int64_t ids[2];
    data_save_text("t.csv", "a,b,c\n1,2,3\n");
    ck_ok(data_open(&d, "csv:%/t.csv?features=c,a&label=b"));
    ck_ok(accel_dataset_read(d, 0, 1, (void *[]){x}, ids));
    ck_assert(x[0] == 3 && x[1] == 1 && ids[0] == 2);
    drop();
    data_save_text("n.csv", "1,2,3\n4,5,6\n");
    ck_ok(data_open(&d, "csv:%/n.csv?header=0&label=-1&types=int64"));
    ck_assert(d->n == 2 && d->input->dtype == ACCEL_I64);
    ck_ok(accel_dataset_read(d, 1, 1, (void *[]){ids}, NULL));
    ck_assert(ids[0] == 4 && ids[1] == 5);
    drop();
    ck_ok(data_open(&d, "csv:%/n.csv?header=0"));
    ck_assert(d->input->dim[0] == 3 && d->label_kind == ACCEL_LABEL_NONE);
}
END_TEST

START_TEST(labels_are_classes_values_or_names)
{
    float y[2];
    int64_t label[3];
    float x[3];
    data_save_text("v.csv", "a,label\n1,2.5\n2,-1\n");
    ck_ok(data_open(&d, "csv:%/v.csv"));
    ck_assert_int_eq(d->label_kind, ACCEL_LABEL_VALUE);
    ck_ok(accel_dataset_read(d, 0, 2, (void *[]){x}, y));
    ck_assert(y[0] == 2.5f && y[1] == -1);
    drop();
    data_save_text("w.csv", "a,label\n1,dog\n2,cat\n3,dog\n");
    ck_ok(data_open(&d, "csv:%/w.csv"));
    ck_assert(d->label_kind == ACCEL_LABEL_CLASS && d->n_class_name == 2);
    ck_assert_str_eq(d->class_name[0], "cat");
    ck_ok(accel_dataset_read(d, 0, 3, (void *[]){x}, label));
    ck_assert(label[0] == 1 && label[1] == 0 && label[2] == 1);
}
END_TEST

START_TEST(files_of_a_pattern_are_one_table)
{
    float x[3];
    data_save_text("p-1.csv", "a\n1\n2\n");
    data_save_text("p-2.csv", "a\n3\n");
    ck_ok(data_open(&d, "csv:%/p-?.csv"));
    ck_assert_int_eq((int)d->n, 3);
    ck_ok(accel_dataset_read(d, 0, 3, (void *[]){x}, NULL));
    ck_assert(x[0] == 1 && x[2] == 3);
    data_save_text("p-3.csv", "b\n3\n");
    data_fails("csv:%/p-?.csv", ACCEL_EMODEL, "p-3.csv:1: column 1: it is called 'b' here, 'a'");
}
END_TEST

START_TEST(wrong_tables_are_errors_with_line_and_column)
{
    data_fails("csv", ACCEL_EARG, "the files are missing");
    data_fails("csv:%/no*.csv", ACCEL_EMODEL, "no*.csv");
    data_fails("csv:s3://bucket/a.csv", ACCEL_ENOSUP, "s3://bucket/a.csv': files are read from");
    data_fails("csv:https://a/b.csv", ACCEL_ENOSUP, "this machine only");
    data_save_text("t.csv", "a,b\n1,2\n\"3\n\",4\n5\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL,
               "t.csv:5: column 2: the row has 1 cells, the first one 2");
    data_save_text("t.csv", "a,b\n1,2\n3,x4\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "t.csv:3: column 2: 'x4' is no number");
    data_save_text("t.csv", "a,b\n1,\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "t.csv:2: column 2: '' is no number");
    data_save_text("t.csv", "a,b\n1,2.5\n");
    data_fails("csv:%/t.csv?types=int32", ACCEL_EMODEL, "'2.5' is no whole number");
    data_fails("csv:%/t.csv?types=text", ACCEL_EARG, "not 'text'");
    data_fails("csv:%/t.csv?label=labl", ACCEL_EARG, "there is no column 'labl'");
    data_fails("csv:%/t.csv?features=aa", ACCEL_EARG, "did you mean 'a'?");
    data_fails("csv:%/t.csv?features=a&label=b&header=0", ACCEL_EARG, "columns are numbers from 0");
    data_fails("csv:%/t.csv?label=2&header=0", ACCEL_EARG, "there is no column 2, it has 2");
    data_save_text("t.csv", "a,b\n1,\"2\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "a quoted cell does not end");
    data_save_text("t.csv", "a,b\n1,\"2\"3\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "a quoted cell does not end");
    data_save_text("t.csv", "a,label\n1,-1\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "label -1 of row 1: classes count from 0");
    data_save_text("t.csv", "a,label\n1,\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "the label is empty");
    data_save_text("t.csv", "label\n1\n");
    data_fails("csv:%/t.csv", ACCEL_EARG, "no column is left");
    data_save_text("t.csv", "a,b\n");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "it has no samples");
    data_save_text("t.csv", "");
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "it has no samples");
    data_save("t.csv", "a\n1\0", 4);
    data_fails("csv:%/t.csv", ACCEL_EMODEL, "a zero byte");
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    static const char *const specs[] = {"npz:%/a.npz?limit=2&shuffle=1", "csv:%/t.csv?features=a",
                                        "npy:%/half.npy"};
    char room[256];
    data_save("a.npz", file_npz_packed, sizeof file_npz_packed);
    data_save("half.npy", file_npy_v2, sizeof file_npy_v2);
    data_save_text("t.csv", "a,b,label\n1,2,x\n3,4,y\n");
    for (int i = 0; i < 3; i++)
        for (long nth = 1;; nth++) {
            accel_alloc_fail_at(nth, false);
            enum accel_err err = data_open(&d, specs[i]);
            bool reached = accel_alloc_count() >= nth;
            accel_alloc_fail_at(0, false);
            if (!err)
                ck_ok(accel_dataset_read(d, 0, 1, (void *[]){room, room + 128}, NULL));
            drop();
            if (!reached) {
                ck_ok(err);
                break;
            }
            ck_assert_msg(err == ACCEL_ENOMEM, "%s, allocation %ld: %d %s", specs[i], nth, err,
                          accel_errmsg());
            ck_assert_int_lt(nth, 1000);
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("array_sets");
    TCase *t = tcase_create("arrays and tables");
    tcase_add_checked_fixture(t, data_begin, end);
    tcase_add_test(t, archives_hold_fields_and_labels);
    tcase_add_test(t, arrays_are_normalised_on_their_first_axis);
    tcase_add_test(t, damaged_archives_do_no_harm);
    tcase_add_test(t, a_file_or_a_folder_of_arrays_is_a_set);
    tcase_add_test(t, arrays_that_do_not_fit_are_named);
    tcase_add_test(t, headers_of_arrays_that_lie_are_refused);
    tcase_add_test(t, every_type_survives_writing_and_reading);
    tcase_add_test(t, tables_become_rows_of_numbers);
    tcase_add_test(t, columns_are_chosen_by_name_or_number);
    tcase_add_test(t, labels_are_classes_values_or_names);
    tcase_add_test(t, files_of_a_pattern_are_one_table);
    tcase_add_test(t, wrong_tables_are_errors_with_line_and_column);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
