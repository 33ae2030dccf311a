/* The writer on files put together byte by byte: what comes out is compared byte by byte too. */
#include "tests/onnx_make.h"

#include "base/alloc.h"
#include "tests/t.h"

#include <sys/stat.h>

enum { N = 400 };
static float weights[N];   /* none is zero */
static uint16_t halves[N]; /* the like as 16-bit patterns, some with the top bit */

static void setup(void)
{
    make_folder();
    for (int i = 0; i < N; i++) {
        weights[i] = (float)(i + 1) * (i % 2 ? 0.25f : -0.25f);
        halves[i] = accel_f32_to_f16(weights[i]);
    }
}

static struct accel_model *open_model(const char *path)
{
    struct accel_model *m;
    struct accel_onnx_read_options opt = {0};
    ck_ok(accel_onnx_read(&m, path, &opt));
    return m;
}

/* Reads `from` (with edits when asked), writes `to`; the dry run must have foretold the size. */
static void rewrite(const char *from, const char *to, bool edit,
                    const struct accel_onnx_write_options *opt)
{
    struct accel_model *m = open_model(from);
    struct accel_onnx_written wet, dry;
    if (edit)
        make_edits(m);
    ck_ok(accel_onnx_dry_write(&dry, m, to, opt));
    ck_ok(accel_onnx_write(&wet, m, to, opt));
    ck_assert_uint_eq(dry.size, wet.size);
    accel_model_free(m);
}

static void ck_same(const char *path, const struct accel_str *want)
{
    struct accel_str got = load_file(path);
    ck_assert_uint_eq(got.len, want->len);
    ck_assert_mem_eq(got.at, want->at, want->len);
    accel_str_clear(&got);
}

/* All elements of the model's only tensor. */
static void elements(const char *path, void *to)
{
    struct accel_model *m = open_model(path);
    ck_assert_uint_eq(m->n_tensor, 1);
    ck_ok(accel_tensor_read(m->tensor[0], 0, m->tensor[0]->n, to));
    accel_model_free(m);
}

static struct accel_str one_tensor(int dtype, int data_field, const void *payload, size_t n)
{
    struct accel_str t = {0};
    make_tensor(&t, GRAPH_INITIALIZER, "w", dtype, 20, 20, data_field, payload, n);
    return make_model(&t);
}

static const struct accel_onnx_write_options plain = {0};

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

static void edit_of(void *elem, size_t width)
{
    for (size_t i = 0; i < N; i++)
        if (i % 10 != 9)
            memset((char *)elem + i * width, 0, width);
}

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

static bool file_holds(const char *path, const char *text)
{
    struct accel_str s = load_file(path);
    bool found = s.len && memmem(s.at, s.len, text, strlen(text));
    accel_str_clear(&s);
    return found;
}

static off_t size_of(const char *path)
{
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    return st.st_size;
}

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

START_TEST(missing_folder_is_named)
{
    struct accel_model *m = open_model(
        save_model("m", one_tensor(ACCEL_F32, TENSOR_RAW_DATA, weights, sizeof weights)));
    struct accel_onnx_written w;
    ck_fails(accel_onnx_write(&w, m, in_folder("nowhere/o"), &plain), ACCEL_EIO, "nowhere");
    accel_model_free(m);
}
END_TEST

static void count_progress(void *ctx, uint64_t done, uint64_t total)
{
    uint64_t *last = ctx;
    ck_assert_uint_eq(total, 2 * sizeof weights);
    ck_assert_uint_gt(done, *last);
    *last = done;
}

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
    tcase_add_test(c, tensors_go_to_an_aligned_data_file_and_come_home_the_same);
    tcase_add_test(c, long_unknown_field_of_a_moved_tensor_stays);
    tcase_add_test(c, data_file_of_others_is_kept_and_ours_named_by_its_content);
    tcase_add_test(c, in_place_with_data_keeps_one_data_file);
    tcase_add_test(c, data_that_the_input_still_needs_are_not_removed);
    tcase_add_test(c, mostly_zero_weights_become_sparse);
    tcase_add_test(c, inline_beyond_two_gib_is_refused_with_both_numbers);
    tcase_add_test(c, missing_folder_is_named);
    tcase_add_test(c, progress_ends_at_the_total);
    tcase_add_test(c, every_failed_allocation_leaves_the_old_files);
    tcase_add_test(c, every_failed_allocation_on_the_other_ways_is_an_error);
    suite_add_tcase(s, c);
    return s;
}

T_MAIN(suite)
