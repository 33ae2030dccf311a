/* test_graph.c - graphs built in memory, and attributes by name. */
#include "tests/t.h"

#include <string.h>

#include "base/alloc.h"
#include "graph/attr.h"

static struct accel_model *m;
static struct accel_value *x, *y;
static struct accel_node *n;

static void setup(void)
{
    ck_ok(accel_model_new(&m, 17));
    ck_ok(accel_value_new(&x, m->graph, "x"));
    ck_ok(accel_value_new(&y, m->graph, "y"));
    struct accel_value *in[] = {x, NULL, x}, *out[] = {NULL, y};
    ck_ok(accel_node_new(&n, m->graph, NULL, "Foo", "d", "n", in, 3, out, 2));
}

static void teardown(void)
{
    accel_model_free(m);
}

START_TEST(nodes_and_values_know_each_other)
{
    ck_assert_uint_eq(m->graph->n_node, 1);
    ck_assert_ptr_eq(m->graph->node[0], n);
    ck_assert_uint_eq(x->n_use, 2);
    ck_assert_ptr_eq(x->use[1].node, n);
    ck_assert_int_eq(x->use[1].slot, 2);
    ck_assert_ptr_null(n->in[1]);
    ck_assert_ptr_eq(y->producer, n);
    ck_assert_int_eq(y->producer_slot, 1);
    ck_assert_int_eq(y->shape.rank, -1);
    ck_assert_str_eq(n->label, "n");
}
END_TEST

START_TEST(names_are_unique_in_a_graph_and_found_outwards)
{
    struct accel_graph *inner;
    struct accel_value *v;
    ck_fails(accel_value_new(&v, m->graph, "x"), ACCEL_EMODEL, "'x'");
    ck_ok(accel_graph_new(&inner, m, m->graph));
    ck_assert_int_eq(inner->opset, 17);
    ck_assert_ptr_eq(accel_value_find(inner, "x"), x);
    ck_ok(accel_value_new(&v, inner, "x"));
    ck_assert_ptr_eq(accel_value_find(inner, "x"), v);
    ck_assert_ptr_eq(accel_value_find(m->graph, "x"), x);
    ck_assert_ptr_null(accel_value_find(inner, "z"));
}
END_TEST

START_TEST(uses_grow)
{
    for (int i = 0; i < 1000; i++)
        ck_ok(accel_value_add_use(y, n, i));
    ck_assert_uint_eq(y->n_use, 1000);
    ck_assert_int_eq(y->use[999].slot, 999);
}
END_TEST

START_TEST(opsets_are_those_of_the_outermost_graph)
{
    struct accel_opset set[] = {{"ai.onnx", 9}, {"d", 3}};
    struct accel_function f = {.opset = set, .n_opset = 2};
    struct accel_graph *body, *inner;
    ck_assert_int_eq(accel_graph_opset(m->graph, ""), 17);
    ck_assert_int_eq(accel_graph_opset(m->graph, "ai.onnx"), 17);
    ck_assert_int_eq(accel_graph_opset(m->graph, "d"), 0);
    ck_ok(accel_graph_new(&body, m, NULL));
    body->function = &f;
    ck_ok(accel_graph_new(&inner, m, body));
    ck_assert_int_eq(accel_graph_opset(inner, ""), 9);
    ck_assert_int_eq(accel_graph_opset(inner, "d"), 3);
}
END_TEST

START_TEST(attributes_are_found_with_their_kind)
{
    const int64_t v[] = {3, 4}, *ints;
    int64_t i;
    float f;
    const char *s;
    size_t count;
    ck_ok(accel_attr_int(&i, n, "axis", -1));
    ck_assert_int_eq(i, -1);
    ck_ok(accel_attr_set_int(n, "axis", 2));
    ck_ok(accel_attr_set_float(n, "alpha", 0.5f));
    ck_ok(accel_attr_set_string(n, "mode", "odd"));
    ck_ok(accel_attr_set_ints(n, "pads", v, 2));
    ck_ok(accel_attr_int(&i, n, "axis", -1));
    ck_assert_int_eq(i, 2);
    ck_ok(accel_attr_float(&f, n, "alpha", 0));
    ck_assert_float_eq(f, 0.5f);
    ck_ok(accel_attr_string(&s, n, "mode", ""));
    ck_assert_str_eq(s, "odd");
    ck_ok(accel_attr_ints(&ints, &count, n, "pads"));
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(ints[1], 4);
    ck_ok(accel_attr_ints(&ints, &count, n, "none"));
    ck_assert_ptr_null(ints);
    ck_fails(accel_attr_int(&i, n, "alpha", 0), ACCEL_EMODEL, "is a float, must be an int");
    ck_ok(accel_attr_set_int(n, "alpha", 7));
    ck_assert_uint_eq(n->n_attr, 4);
    ck_ok(accel_attr_int(&i, n, "alpha", 0));
    ck_assert_int_eq(i, 7);
}
END_TEST

START_TEST(failing_memory_is_an_error)
{
    long at = 1;
    for (;; at++) {
        struct accel_model *other;
        struct accel_value *v;
        accel_alloc_fail_at(at, false);
        enum accel_err err = accel_model_new(&other, 1);
        if (!err) {
            err = accel_value_new(&v, other->graph, "v");
            if (!err)
                err = accel_value_add_use(v, n, 0);
            accel_model_free(other);
        }
        accel_alloc_fail_at(0, false);
        if (!err)
            break;
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
    ck_assert_int_gt(at, 4);
}
END_TEST

static Suite *graph_suite(void)
{
    Suite *s = suite_create("graph");
    TCase *t = tcase_create("memory");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, nodes_and_values_know_each_other);
    tcase_add_test(t, names_are_unique_in_a_graph_and_found_outwards);
    tcase_add_test(t, uses_grow);
    tcase_add_test(t, opsets_are_those_of_the_outermost_graph);
    tcase_add_test(t, attributes_are_found_with_their_kind);
    tcase_add_test(t, failing_memory_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(graph_suite)
