/* The writer on files put together byte by byte: what comes out is compared byte by byte too. */
#include "tests/write_case.h"

#include "base/alloc.h"

/* A Constant node whose attribute holds the elements of `field`. */
static struct accel_str one_constant(const char *name, int kind, int field, const void *bytes,
                                     size_t n)
{
    struct accel_str a = {0}, node = {0}, g = {0};
    accel_put_string(&a, ATTR_NAME, name);
    accel_put_int(&a, ATTR_TYPE, kind);
    accel_put_string(&a, 13, "doc");
    if (field == ATTR_T)
        make_tensor(&a, ATTR_T, "", ACCEL_F32, (int64_t)(n / 4), -1, TENSOR_RAW_DATA, bytes, n);
    else
        accel_put_bytes(&a, field, bytes, n);
    accel_put_string(&node, NODE_OUTPUT, "c");
    accel_put_string(&node, NODE_OP_TYPE, "Constant");
    make_message(&node, NODE_ATTRIBUTE, &a);
    make_message(&g, GRAPH_NODE, &node);
    return make_model(&g);
}

START_TEST(nothing_changed_gives_the_same_bytes_and_the_metadata)
{
    struct accel_property meta[] = {{"accel.version", "1"}, {"accel.config", "[]"}};
    struct accel_onnx_write_options opt = {.meta = meta, .n_meta = 2};
    struct accel_str m = one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights);
    make_entry(&m, MODEL_METADATA_PROPS, "author", "someone");
    save_file(in_folder("m"), m.at, m.len);
    rewrite(in_folder("m"), in_folder("o"), false, &opt);
    make_entry(&m, MODEL_METADATA_PROPS, "accel.version", "1");
    make_entry(&m, MODEL_METADATA_PROPS, "accel.config", "[]");
    ck_same(in_folder("o"), &m);
    rewrite(in_folder("o"), in_folder("o"), false, &opt);
    ck_same(in_folder("o"), &m);
    ck_assert_str_eq(folder_list(), "m o ");
    accel_str_clear(&m);
}
END_TEST

START_TEST(metadata_of_the_same_key_is_replaced_where_it_stands)
{
    struct accel_property meta[] = {{"k", "a new and longer value"}};
    struct accel_onnx_write_options opt = {.meta = meta, .n_meta = 1};
    struct accel_str m = one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights),
                     want = {0};
    accel_str_addn(&want, m.at, m.len);
    make_entry(&m, MODEL_METADATA_PROPS, "k", "old");
    make_entry(&m, MODEL_METADATA_PROPS, "z", "");
    make_entry(&m, MODEL_METADATA_PROPS, "k", "twice");
    make_entry(&want, MODEL_METADATA_PROPS, "k", "a new and longer value");
    make_entry(&want, MODEL_METADATA_PROPS, "z", "");
    rewrite(save_model("m", m), in_folder("o"), false, &opt);
    ck_same(in_folder("o"), &want);
    accel_str_clear(&want);
}
END_TEST

START_TEST(edited_tensor_stays_in_its_field)
{
    static const struct {
        int dtype, field;
    } row[] = {{ACCEL_F32, TENSOR_RAW_DATA}, {ACCEL_F32, TENSOR_FLOAT_DATA}};
    float edited[N];
    memcpy(edited, weights, sizeof edited);
    edit_of(edited, sizeof *edited);
    for (size_t i = 0; i < 2; i++) {
        struct accel_str m = one_tensor(row[i].dtype, row[i].field, weights, sizeof weights);
        struct accel_str want = one_tensor(row[i].dtype, row[i].field, edited, sizeof edited);
        rewrite(save_model("m", m), in_folder("o"), true, &plain);
        ck_same(in_folder("o"), &want);
        accel_str_clear(&want);
    }
}
END_TEST

START_TEST(constant_nodes_are_edited_in_their_attribute)
{
    float edited[N];
    memcpy(edited, weights, sizeof edited);
    edit_of(edited, sizeof *edited);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "value_floats" : "value";
        int kind = i ? ACCEL_ATTR_FLOATS : ACCEL_ATTR_TENSOR, field = i ? ATTR_FLOATS : ATTR_T;
        struct accel_str want = one_constant(name, kind, field, edited, sizeof edited);
        rewrite(save_model("m", one_constant(name, kind, field, weights, sizeof weights)),
                in_folder("o"), true, &plain);
        ck_same(in_folder("o"), &want);
        accel_str_clear(&want);
    }
}
END_TEST

START_TEST(varint_coded_halves_are_coded_anew)
{
    struct accel_str before = {0}, after = {0};
    uint16_t edited[N];
    memcpy(edited, halves, sizeof edited);
    edit_of(edited, sizeof *edited);
    for (int i = 0; i < N; i++) {
        accel_put_varint(&before, halves[i]);
        accel_put_varint(&after, edited[i]);
    }
    ck_assert_uint_lt(after.len, before.len);
    struct accel_str m = one_tensor(ACCEL_F16, TENSOR_INT32_DATA, before.at, before.len);
    struct accel_str want = one_tensor(ACCEL_F16, TENSOR_INT32_DATA, after.at, after.len);
    rewrite(save_model("m", m), in_folder("o"), true, &plain);
    ck_same(in_folder("o"), &want);
    accel_str_clear(&want);
    accel_str_clear(&before);
    accel_str_clear(&after);
}
END_TEST

START_TEST(signed_bytes_are_coded_with_their_sign)
{
    struct accel_str before = {0}, after = {0};
    for (int i = 0; i < N; i++) {
        int v = i % 2 ? -5 : 100;
        accel_put_varint(&before, (uint64_t)(int64_t)v);
        accel_put_varint(&after, i % 10 == 9 ? (uint64_t)(int64_t)v : 0);
    }
    struct accel_str m = one_tensor(ACCEL_I8, TENSOR_INT32_DATA, before.at, before.len);
    struct accel_str want = one_tensor(ACCEL_I8, TENSOR_INT32_DATA, after.at, after.len);
    rewrite(save_model("m", m), in_folder("o"), true, &plain);
    ck_same(in_folder("o"), &want);
    accel_str_clear(&want);
    accel_str_clear(&before);
    accel_str_clear(&after);
}
END_TEST

/* float_data as old writers left it: a tag before every element, or in two packed pieces. */
START_TEST(scattered_float_data_become_one_field)
{
    float edited[N];
    memcpy(edited, weights, sizeof edited);
    edit_of(edited, sizeof *edited);
    for (int pieces = 0; pieces < 2; pieces++) {
        struct accel_str t = {0}, g = {0}, want_t = {0};
        accel_put_int(&t, TENSOR_DIMS, N);
        accel_put_int(&t, TENSOR_DATA_TYPE, ACCEL_F32);
        accel_put_string(&t, TENSOR_NAME, "w");
        accel_str_addn(&want_t, t.at, t.len);
        accel_put_bytes(&want_t, TENSOR_FLOAT_DATA, edited, sizeof edited);
        if (pieces) {
            accel_put_bytes(&t, TENSOR_FLOAT_DATA, weights, 40);
            accel_put_bytes(&t, TENSOR_FLOAT_DATA, weights + 10, sizeof weights - 40);
        }
        for (int i = 0; !pieces && i < N; i++)
            accel_put_float(&t, TENSOR_FLOAT_DATA, weights[i]);
        make_message(&g, GRAPH_INITIALIZER, &t);
        rewrite(save_model("m", make_model(&g)), in_folder("o"), true, &plain);
        make_message(&g, GRAPH_INITIALIZER, &want_t);
        struct accel_str want = make_model(&g);
        ck_same(in_folder("o"), &want);
        accel_str_clear(&want);
    }
}
END_TEST

START_TEST(mostly_zero_weights_become_sparse)
{
    struct accel_onnx_write_options opt = {.sparse_initializers = true};
    save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights));
    rewrite(in_folder("m"), in_folder("o"), false, &opt);
    ck_assert_int_eq(size_of(in_folder("o")), size_of(in_folder("m"))); /* no zeros */
    rewrite(in_folder("m"), in_folder("o"), true, &opt);
    off_t dense = size_of(in_folder("m")), sparse = size_of(in_folder("o"));
    ck_assert_int_lt(sparse, dense - (off_t)sizeof weights + 40 * 12 + 64);
    float got[N], want[N];
    memcpy(want, weights, sizeof want);
    edit_of(want, sizeof *want);
    elements(in_folder("o"), got);
    ck_assert_mem_eq(got, want, sizeof want);
    /* sparse in, edited, sparse out; it is a fixed point of this edit */
    rewrite(in_folder("o"), in_folder("p"), true, &plain);
    ck_assert_int_eq(size_of(in_folder("p")), sparse);
    elements(in_folder("p"), got);
    ck_assert_mem_eq(got, want, sizeof want);
}
END_TEST

START_TEST(missing_folder_is_named)
{
    struct accel_model *m = open_model(
        save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights)));
    struct accel_onnx_written w;
    ck_fails(accel_onnx_write(&w, m, in_folder("nowhere/o"), &plain), ACCEL_EIO, "nowhere");
    accel_model_free(m);
}
END_TEST

static enum accel_err count_progress(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *last = ctx;
    ck_assert_uint_eq(total, 2 * sizeof weights);
    ck_assert_uint_gt(done, *last);
    *last = done;
    return ACCEL_OK;
}

static enum accel_err give_up(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    return accel_fail(ACCEL_EIO, "given up");
}

START_TEST(progress_can_stop_the_writing)
{
    struct accel_onnx_write_options opt = {.progress = give_up};
    struct accel_model *m = open_model(
        save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights)));
    struct accel_onnx_written w;
    unlink(in_folder("o"));
    make_edits(m);
    ck_fails(accel_onnx_write(&w, m, in_folder("o"), &opt), ACCEL_EIO, "given up");
    ck_assert_int_ne(access(in_folder("o"), F_OK), 0);
    opt.external = ACCEL_EXTERNAL_YES;
    ck_fails(accel_onnx_write(&w, m, in_folder("o"), &opt), ACCEL_EIO, "given up");
    ck_assert_int_ne(access(in_folder("o"), F_OK), 0);
    accel_model_free(m);
}
END_TEST

START_TEST(progress_ends_at_the_total)
{
    uint64_t last = 0;
    struct accel_onnx_write_options opt = {.progress = count_progress, .ctx = &last};
    struct accel_str t = {0};
    for (int i = 0; i < 2; i++)
        make_tensor(&t, GRAPH_INITIALIZER, i ? "a" : "b", ACCEL_F32, N, -1, TENSOR_RAW_DATA,
                    weights, sizeof weights);
    struct accel_model *m = open_model(save_model("m", make_model(&t)));
    struct accel_onnx_written w;
    make_edits(m);
    ck_ok(accel_onnx_write(&w, m, in_folder("o"), &opt));
    ck_assert_uint_eq(last, 2 * sizeof weights);
    accel_model_free(m);
}
END_TEST

START_TEST(every_failed_allocation_on_the_other_ways_is_an_error)
{
    struct accel_onnx_write_options sparse = {.sparse_initializers = true};
    struct accel_str coded = {0};
    for (int i = 0; i < N; i++)
        accel_put_varint(&coded, halves[i]);
    save_model("0", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights));
    save_model("1", one_tensor(ACCEL_F16, TENSOR_INT32_DATA, coded.at, coded.len));
    save_model(
        "2", one_constant("value_floats", ACCEL_ATTR_FLOATS, ATTR_FLOATS, weights, sizeof weights));
    rewrite(in_folder("0"), in_folder("3"), true, &sparse); /* a sparse one to rewrite */
    accel_str_clear(&coded);
    const char *name[] = {"0", "1", "2", "3"};
    for (int i = 0; i < 4; i++) {
        enum accel_err err = ACCEL_ENOMEM;
        for (long n = 1; err; n++) {
            ck_assert_str_eq(folder_list(), "0 1 2 3 ");
            struct accel_model *m = open_model(in_folder(name[i]));
            make_edits(m);
            struct accel_onnx_written w;
            accel_alloc_fail_at(n, false);
            err = accel_onnx_write(&w, m, in_folder("o"), i ? &plain : &sparse);
            accel_alloc_fail_at(0, false);
            ck_assert(err == ACCEL_OK || err == ACCEL_ENOMEM);
            accel_model_free(m);
        }
        unlink(in_folder("o"));
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("write");
    TCase *c = tcase_create("write");
    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, setup, remove_folder);
    tcase_add_test(c, nothing_changed_gives_the_same_bytes_and_the_metadata);
    tcase_add_test(c, metadata_of_the_same_key_is_replaced_where_it_stands);
    tcase_add_test(c, edited_tensor_stays_in_its_field);
    tcase_add_test(c, constant_nodes_are_edited_in_their_attribute);
    tcase_add_test(c, varint_coded_halves_are_coded_anew);
    tcase_add_test(c, signed_bytes_are_coded_with_their_sign);
    tcase_add_test(c, scattered_float_data_become_one_field);
    tcase_add_test(c, mostly_zero_weights_become_sparse);
    tcase_add_test(c, missing_folder_is_named);
    tcase_add_test(c, progress_ends_at_the_total);
    tcase_add_test(c, progress_can_stop_the_writing);
    tcase_add_test(c, every_failed_allocation_on_the_other_ways_is_an_error);
    suite_add_tcase(s, c);
    return s;
}

T_MAIN(suite)
