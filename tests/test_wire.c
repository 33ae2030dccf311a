/* test_wire.c - the scan: what it proves, and the parts it finds. */
#include "tests/t.h"

#include "base/alloc.h"
#include "tests/onnx_make.h"

static struct accel_onnx *open_bytes(struct accel_str *s)
{
    struct accel_onnx *x = accel_calloc(1, sizeof *x);
    const char *path = in_folder("m.onnx");
    save_file(path, accel_str_get(s), s->len);
    accel_str_clear(s);
    ck_ok(accel_file_open(&x->file, path));
    return x;
}

static void refused(struct accel_str *s, const char *word)
{
    struct accel_onnx *x = open_bytes(s);
    ck_fails(accel_wire_scan(x), ACCEL_EMODEL, word);
    accel_onnx_free(x);
}

static void accepted(struct accel_str *s)
{
    struct accel_onnx *x = open_bytes(s);
    ck_ok(accel_wire_scan(x));
    accel_onnx_free(x);
}

/* A model whose graph input has a type of sequences in sequences: `depth` messages in all. */
static struct accel_str nested(int depth)
{
    struct accel_str inner = {0};
    int levels = depth - 3; /* model, graph, value info; the outermost of the others is a Type */
    for (int i = levels - 1; i > 0; i--) {
        struct accel_str outer = {0};
        make_message(&outer, i % 2 ? 4 : 1, &inner);
        inner = outer;
    }
    struct accel_str v = {0}, g = {0}, m = {0};
    make_message(&v, 2, &inner);
    make_message(&g, GRAPH_INPUT, &v);
    make_message(&m, MODEL_GRAPH, &g);
    return m;
}

START_TEST(a_hundred_nested_messages_pass_and_one_more_does_not)
{
    struct accel_str m = nested(100);
    accepted(&m);
    m = nested(101);
    refused(&m, "nested");
    m = nested(20001);
    refused(&m, "nested");
}
END_TEST

START_TEST(a_length_beyond_its_parent_is_named_with_both_numbers)
{
    struct accel_str m = {0};
    accel_put_tag(&m, MODEL_GRAPH, 2);
    accel_put_varint(&m, 1000);
    accel_str_addn(&m, "abc", 3);
    refused(&m, "field 7 at byte 0 has 1000 bytes, only 3 are left");
    accel_put_tag(&m, MODEL_GRAPH, 2);
    accel_put_varint(&m, INT64_MAX);
    refused(&m, "only 0 are left");
}
END_TEST

START_TEST(numbers_must_end)
{
    struct accel_str m = {0};
    accel_put_tag(&m, MODEL_IR_VERSION, 0);
    for (int i = 0; i < 12; i++)
        accel_str_addn(&m, "\xff", 1);
    refused(&m, "does not end");
    accel_put_tag(&m, MODEL_IR_VERSION, 0);
    accel_str_addn(&m, "\xff", 1);
    refused(&m, "cut off");
}
END_TEST

START_TEST(groups_and_unknown_forms_are_refused)
{
    for (int type = 3; type < 8; type++) {
        struct accel_str m = {0};
        if (type == 5)
            continue;
        accel_put_tag(&m, 999, type);
        refused(&m, type < 5 ? "a group" : "no known form");
    }
    struct accel_str m = {0};
    accel_put_tag(&m, 0, 0);
    accel_put_varint(&m, 1);
    refused(&m, "no valid number");
}
END_TEST

START_TEST(known_fields_keep_their_wire_type)
{
    struct accel_str m = {0};
    accel_put_int(&m, MODEL_GRAPH, 1);
    refused(&m, "graph at byte 0 has wire type 0");
    accel_put_string(&m, MODEL_IR_VERSION, "x");
    refused(&m, "ir_version");
}
END_TEST

START_TEST(a_graph_that_comes_twice_is_refused)
{
    struct accel_str m = {0};
    accel_put_bytes(&m, MODEL_GRAPH, "", 0);
    accel_put_bytes(&m, MODEL_GRAPH, "", 0);
    refused(&m, "graph comes twice");
}
END_TEST

START_TEST(names_hold_no_nul_but_doc_strings_may)
{
    struct accel_str m = {0}, g = {0};
    accel_put_bytes(&g, GRAPH_NAME, "a\0b", 3);
    make_message(&m, MODEL_GRAPH, &g);
    refused(&m, "NUL");
    accel_put_bytes(&g, 10, "a\0b", 3);
    make_message(&m, MODEL_GRAPH, &g);
    accepted(&m);
}
END_TEST

START_TEST(payloads_are_parts_and_left_out_of_messages)
{
    static const float w[1024];
    struct accel_str g = {0};
    make_tensor(&g, GRAPH_INITIALIZER, "w", ACCEL_F32, 1024, -1, TENSOR_RAW_DATA, w, sizeof w);
    struct accel_str m = make_model(&g);
    uint64_t file_size = m.len;
    struct accel_onnx *x = open_bytes(&m);
    ck_ok(accel_wire_scan(x));
    ck_assert_int_eq(x->root->kind, ACCEL_PART_MODEL);
    ck_assert_uint_eq(x->root->end, file_size);
    struct accel_part *p = x->root->child;
    ck_assert_int_eq(p->kind, ACCEL_PART_GRAPH);
    ck_assert_int_eq(p->next->kind, ACCEL_PART_OPSET);
    p = p->child;
    ck_assert_int_eq(p->kind, ACCEL_PART_NODE);
    ck_assert_ptr_null(p->child);
    p = p->next;
    ck_assert_int_eq(p->kind, ACCEL_PART_TENSOR);
    ck_assert_int_eq(p->child->kind, ACCEL_PART_PAYLOAD);
    ck_assert_uint_eq(p->child->end - p->child->body, sizeof w);
    ck_assert_uint_eq(p->child->end, p->end);
    uint8_t *bytes;
    size_t n;
    ck_ok(accel_part_read(&bytes, &n, x, p, false));
    ck_assert_uint_eq(n, p->end - p->body - (p->child->end - p->child->start));
    ck_assert_ptr_nonnull(memmem(bytes, n, "doc", 3));
    accel_free(bytes);
    accel_onnx_free(x);
}
END_TEST

START_TEST(unpacked_entries_in_a_row_are_one_part)
{
    struct accel_str t = {0}, g = {0};
    for (int i = 0; i < 1000; i++)
        accel_put_float(&t, TENSOR_FLOAT_DATA, 1);
    accel_put_string(&t, TENSOR_NAME, "w");
    accel_put_float(&t, TENSOR_FLOAT_DATA, 2);
    make_message(&g, GRAPH_INITIALIZER, &t);
    struct accel_str m = make_model(&g);
    struct accel_onnx *x = open_bytes(&m);
    ck_ok(accel_wire_scan(x));
    const struct accel_part *p = x->root->child->child->next->child;
    ck_assert(p->run);
    ck_assert_uint_eq(p->n_field, 1000);
    ck_assert_uint_eq(p->end - p->start, 5000);
    ck_assert(!p->next->run);
    ck_assert_uint_eq(p->next->end - p->next->body, 4);
    ck_assert_ptr_null(p->next->next);
    accel_onnx_free(x);
}
END_TEST

static Suite *wire_suite(void)
{
    Suite *s = suite_create("wire");
    TCase *t = tcase_create("scan");
    tcase_add_checked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, a_hundred_nested_messages_pass_and_one_more_does_not);
    tcase_add_test(t, a_length_beyond_its_parent_is_named_with_both_numbers);
    tcase_add_test(t, numbers_must_end);
    tcase_add_test(t, groups_and_unknown_forms_are_refused);
    tcase_add_test(t, known_fields_keep_their_wire_type);
    tcase_add_test(t, a_graph_that_comes_twice_is_refused);
    tcase_add_test(t, names_hold_no_nul_but_doc_strings_may);
    tcase_add_test(t, payloads_are_parts_and_left_out_of_messages);
    tcase_add_test(t, unpacked_entries_in_a_row_are_one_part);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(wire_suite)
