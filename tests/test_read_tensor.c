/* test_read_tensor.c - every storage form of a tensor against its dims. */
#include "tests/t.h"

#include "tests/onnx_make.h"

enum { DOUBLE = 10, UINT64 = 11 };

static struct accel_model *m;

static void free_model(void)
{
    accel_model_free(m);
    m = NULL;
    remove_folder();
}

/* Reads a model whose one initializer 'w' has this content besides its name. */
static enum accel_err read_tensor(struct accel_str *t)
{
    struct accel_str g = {0};
    accel_model_free(m);
    accel_put_string(t, TENSOR_NAME, "w");
    make_message(&g, GRAPH_INITIALIZER, t);
    return accel_onnx_read(&m, save_model("m.onnx", make_model(&g)), NULL);
}

static struct accel_str head(int dtype, int rank, const int64_t *dim)
{
    struct accel_str t = {0};
    for (int i = 0; i < rank; i++)
        accel_put_int(&t, TENSOR_DIMS, dim[i]);
    accel_put_int(&t, TENSOR_DATA_TYPE, dtype);
    return t;
}

static struct accel_str vector(int dtype, int64_t n)
{
    return head(dtype, 1, &n);
}

/* A packed field of varints. */
static void put_varints(struct accel_str *t, int field, int n, const int64_t *v)
{
    struct accel_str p = {0};
    for (int i = 0; i < n; i++)
        accel_put_varint(&p, (uint64_t)v[i]);
    make_message(t, field, &p);
}

static void holds(const void *want, size_t size)
{
    char got[256];
    ck_assert_uint_eq(m->n_tensor, 1);
    const struct accel_tensor *t = m->tensor[0];
    ck_assert_str_eq(t->name, "w");
    ck_assert_uint_eq(t->size, size);
    ck_ok(accel_tensor_read(t, 0, t->n, got));
    ck_assert_int_eq(memcmp(got, want, size), 0);
}

START_TEST(raw_and_packed_floats_stay_in_the_file)
{
    static float f[100] = {1, -2, 3};
    int field[] = {TENSOR_RAW_DATA, TENSOR_FLOAT_DATA};
    for (int i = 0; i < 2; i++) {
        struct accel_str t = vector(ACCEL_F32, 100);
        accel_put_bytes(&t, field[i], f, sizeof f);
        ck_ok(read_tensor(&t));
        ck_assert_ptr_null(m->tensor[0]->data);
        ck_assert_ptr_nonnull(m->tensor[0]->file);
        float got[3];
        ck_ok(accel_tensor_read(m->tensor[0], 0, 3, got));
        ck_assert_int_eq(memcmp(got, f, sizeof got), 0);
    }
}
END_TEST

START_TEST(floats_in_pieces_are_put_together)
{
    const float f[5] = {1, 2, 3, 4, 5};
    struct accel_str t = vector(ACCEL_F32, 5);
    accel_put_bytes(&t, TENSOR_FLOAT_DATA, f, 8);
    accel_put_float(&t, TENSOR_FLOAT_DATA, 3);
    accel_put_string(&t, 12, "between");
    accel_put_bytes(&t, TENSOR_FLOAT_DATA, f + 3, 8);
    ck_ok(read_tensor(&t));
    holds(f, sizeof f);
}
END_TEST

START_TEST(int32_data_is_narrowed_to_the_type)
{
    const int64_t v[] = {0, 1, -1, 127};
    const int8_t want8[] = {0, 1, -1, 127};
    struct accel_str t = vector(ACCEL_I8, 4);
    put_varints(&t, TENSOR_INT32_DATA, 4, v);
    ck_ok(read_tensor(&t));
    holds(want8, 4);

    const int64_t half[] = {0x3c00, 0xbc00};
    const uint16_t want16[] = {0x3c00, 0xbc00};
    t = vector(ACCEL_F16, 2);
    put_varints(&t, TENSOR_INT32_DATA, 2, half);
    ck_ok(read_tensor(&t));
    holds(want16, 4);

    const int64_t nibbles[] = {0x21, 0x3};
    const uint8_t want4[] = {0x21, 0x3};
    t = vector(ACCEL_U4, 3);
    put_varints(&t, TENSOR_INT32_DATA, 2, nibbles);
    ck_ok(read_tensor(&t));
    holds(want4, 2);

    const int64_t wide = 70000;
    t = vector(ACCEL_F16, 1);
    put_varints(&t, TENSOR_INT32_DATA, 1, &wide);
    ck_fails(read_tensor(&t), ACCEL_EMODEL, "70000");
}
END_TEST

START_TEST(other_typed_fields_hold_their_types)
{
    const int64_t i64[] = {INT64_MIN, -5, INT64_MAX};
    struct accel_str t = vector(ACCEL_I64, 3);
    put_varints(&t, TENSOR_INT64_DATA, 3, i64);
    ck_ok(read_tensor(&t));
    holds(i64, sizeof i64);

    const int64_t u[] = {1, 4000000000};
    const uint32_t want[] = {1, 4000000000u};
    t = vector(ACCEL_U32, 2);
    put_varints(&t, UINT64, 2, u);
    ck_ok(read_tensor(&t));
    holds(want, sizeof want);

    const double z[] = {1, 2, 3, 4};
    t = vector(ACCEL_C128, 2);
    accel_put_bytes(&t, DOUBLE, z, sizeof z);
    ck_ok(read_tensor(&t));
    holds(z, sizeof z);
    t = vector(ACCEL_F32, 4);
    accel_put_bytes(&t, DOUBLE, z, sizeof z);
    ck_fails(read_tensor(&t), ACCEL_EMODEL, "double_data");
}
END_TEST

START_TEST(strings_are_counted)
{
    struct accel_str t = vector(ACCEL_STRING, 2);
    accel_put_bytes(&t, TENSOR_STRING_DATA, "a", 1);
    accel_put_bytes(&t, TENSOR_STRING_DATA, "\xff\0b", 3);
    ck_ok(read_tensor(&t));
    ck_assert_uint_eq(m->tensor[0]->n, 2);
    ck_assert_uint_eq(m->tensor[0]->size, 0);
    t = vector(ACCEL_STRING, 3);
    accel_put_bytes(&t, TENSOR_STRING_DATA, "a", 1);
    ck_fails(read_tensor(&t), ACCEL_EMODEL, "string_data has 1");
}
END_TEST

START_TEST(empty_tensors_need_no_data)
{
    const int64_t dim[] = {INT64_MAX, INT64_MAX, 0};
    struct accel_str t = head(ACCEL_F32, 3, dim);
    ck_ok(read_tensor(&t));
    ck_assert_uint_eq(m->tensor[0]->n, 0);
    t = vector(ACCEL_F32, 0);
    accel_put_bytes(&t, TENSOR_RAW_DATA, "", 0);
    ck_ok(read_tensor(&t));
    t = vector(ACCEL_F32, 0);
    accel_put_bytes(&t, TENSOR_RAW_DATA, "1234", 4);
    ck_fails(read_tensor(&t), ACCEL_EMODEL, "4");
}
END_TEST

static void wrong(struct accel_str t, const char *a, const char *b)
{
    ck_fails(read_tensor(&t), ACCEL_EMODEL, a);
    ck_assert_ptr_nonnull(strstr(accel_errmsg(), b));
    ck_assert_ptr_nonnull(strstr(accel_errmsg(), "initializer 'w'"));
    ck_assert_ptr_null(m);
}

START_TEST(dims_and_payload_must_agree)
{
    const int64_t four[] = {1, 2, 3, 4}, over[] = {4294967296, 4294967296}, minus[] = {-1, 3};
    struct accel_str t = vector(ACCEL_F32, 1000000);
    accel_put_bytes(&t, TENSOR_RAW_DATA, four, 4);
    wrong(t, "4000000", "has 4");
    t = vector(ACCEL_F32, 2);
    accel_put_bytes(&t, TENSOR_RAW_DATA, four, 7);
    wrong(t, "8 bytes", "has 7");
    t = vector(ACCEL_I8, 32);
    put_varints(&t, TENSOR_INT32_DATA, 4, four);
    wrong(t, "32", "has 4");
    wrong(vector(ACCEL_I8, 128), "128", "no data");
    t = vector(ACCEL_F32, 4);
    accel_put_bytes(&t, TENSOR_FLOAT_DATA, four, 24);
    wrong(t, "need 4", "has 6");
    t = vector(ACCEL_F32, 4);
    accel_put_bytes(&t, TENSOR_FLOAT_DATA, four, 17);
    wrong(t, "multiple of 4", "float_data");
    wrong(head(ACCEL_F32, 2, over), "4294967296x4294967296", "too large");
    wrong(vector(ACCEL_F32, INT64_C(1) << 62), "4611686018427387904", "too large");
    wrong(head(ACCEL_F32, 2, minus), "-1x3", "-1");
    wrong(vector(99, 1), "99", "unknown");
    wrong(vector(0, 1), "type 0", "unknown");
}
END_TEST

START_TEST(one_storage_only)
{
    const float f = 1;
    struct accel_str t = vector(ACCEL_F32, 1);
    accel_put_bytes(&t, TENSOR_RAW_DATA, &f, 4);
    accel_put_float(&t, TENSOR_FLOAT_DATA, f);
    wrong(t, "twice", "w");
    t = vector(ACCEL_F32, 1);
    accel_put_bytes(&t, TENSOR_RAW_DATA, &f, 4);
    accel_put_bytes(&t, TENSOR_RAW_DATA, &f, 4);
    wrong(t, "twice", "w");
    t = vector(ACCEL_F32, 1);
    accel_put_bytes(&t, TENSOR_RAW_DATA, &f, 4);
    accel_put_int(&t, TENSOR_DATA_LOCATION, 1);
    wrong(t, "twice", "w");
    t = vector(ACCEL_F32, 1);
    accel_put_int(&t, TENSOR_DATA_LOCATION, 1);
    wrong(t, "without a location", "w");
    t = vector(ACCEL_F32, 1);
    accel_put_int(&t, TENSOR_DATA_LOCATION, 5);
    wrong(t, "data_location 5", "w");
}
END_TEST

/* A sparse 'w' of dims 3x4 with two values at these flat positions (rank 1) or coordinates. */
static enum accel_err read_sparse(int64_t dim0, int rank, const int64_t *index)
{
    const float v[2] = {5, 7};
    struct accel_str g = {0}, s = {0};
    make_tensor(&s, SPARSE_VALUES, "w", ACCEL_F32, 2, -1, TENSOR_RAW_DATA, v, sizeof v);
    make_tensor(&s, SPARSE_INDICES, "", ACCEL_I64, 2, rank == 1 ? -1 : rank, TENSOR_RAW_DATA, index,
                sizeof *index * 2 * (size_t)rank);
    accel_put_int(&s, SPARSE_DIMS, dim0);
    accel_put_int(&s, SPARSE_DIMS, 4);
    make_message(&g, GRAPH_SPARSE_INITIALIZER, &s);
    accel_model_free(m);
    return accel_onnx_read(&m, save_model("m.onnx", make_model(&g)), NULL);
}

START_TEST(sparse_tensors_are_read_in_dense_form)
{
    float want[12] = {0};
    want[1] = 5;
    want[11] = 7;
    ck_ok(read_sparse(3, 1, (const int64_t[]){1, 11}));
    holds(want, sizeof want);
    ck_assert(m->tensor[0]->sparse);
    ck_ok(read_sparse(3, 2, (const int64_t[]){0, 1, 2, 3}));
    holds(want, sizeof want);
}
END_TEST

START_TEST(sparse_indices_are_inside_and_ascending)
{
    ck_fails(read_sparse(3, 1, (const int64_t[]){1, 12}), ACCEL_EMODEL, "12");
    ck_fails(read_sparse(3, 1, (const int64_t[]){-1, 2}), ACCEL_EMODEL, "-1");
    ck_fails(read_sparse(3, 1, (const int64_t[]){3, 3}), ACCEL_EMODEL, "not above");
    ck_fails(read_sparse(3, 2, (const int64_t[]){0, 1, 0, 4}), ACCEL_EMODEL, "outside");
    ck_fails(read_sparse(INT64_C(1) << 40, 1, (const int64_t[]){1, 12}), ACCEL_ENOSUP, "too large");
}
END_TEST

static Suite *read_tensor_suite(void)
{
    Suite *s = suite_create("read_tensor");
    TCase *t = tcase_create("storage");
    tcase_add_checked_fixture(t, make_folder, free_model);
    tcase_add_test(t, raw_and_packed_floats_stay_in_the_file);
    tcase_add_test(t, floats_in_pieces_are_put_together);
    tcase_add_test(t, int32_data_is_narrowed_to_the_type);
    tcase_add_test(t, other_typed_fields_hold_their_types);
    tcase_add_test(t, strings_are_counted);
    tcase_add_test(t, empty_tensors_need_no_data);
    tcase_add_test(t, dims_and_payload_must_agree);
    tcase_add_test(t, one_storage_only);
    tcase_add_test(t, sparse_tensors_are_read_in_dense_form);
    tcase_add_test(t, sparse_indices_are_inside_and_ascending);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(read_tensor_suite)
