/* test_read_graph.c - names, order, bodies, functions, labels; and that failing memory is an error
 * without a leak. */
#include "tests/t.h"

#include "base/alloc.h"
#include "tests/onnx_make.h"

static struct accel_model *m;

static void free_model(void)
{
    accel_model_free(m);
    m = NULL;
    remove_folder();
}

/* Adds a node; `in` and `out` are names with spaces between; attributes (cleared) may be NULL. */
static void put_node(struct accel_str *g, int field, const char *name, const char *op,
                     const char *domain, const char *in, const char *out, struct accel_str *attrs)
{
    struct accel_str n = {0};
    const char *list[] = {in, out};
    for (int k = 0; k < 2; k++)
        for (const char *c = list[k]; *c;) {
            size_t len = strcspn(c, " ");
            bool none = len == 1 && *c == '-';
            accel_put_bytes(&n, k ? NODE_OUTPUT : NODE_INPUT, c, none ? 0 : len);
            c += len + (c[len] == ' ');
        }
    accel_put_string(&n, NODE_NAME, name);
    accel_put_string(&n, NODE_OP_TYPE, op);
    accel_put_string(&n, NODE_DOMAIN, domain);
    if (attrs) {
        accel_str_addn(&n, accel_str_get(attrs), attrs->len);
        accel_str_clear(attrs);
    }
    make_message(g, field, &n);
}

static void put_custom(struct accel_str *g, const char *name, const char *op, const char *in,
                       const char *out)
{
    put_node(g, GRAPH_NODE, name, op, "d", in, out, NULL);
}

/* Reads the model whose graph has these fields beside y = Identity(x). */
static enum accel_err read_with(struct accel_str *g)
{
    accel_model_free(m);
    return accel_onnx_read(&m, save_model("m.onnx", make_model(g)), NULL);
}

static void wrong(struct accel_str *g, const char *a, const char *b)
{
    ck_fails(read_with(g), ACCEL_EMODEL, a);
    ck_assert_ptr_nonnull(strstr(accel_errmsg(), b));
    ck_assert_ptr_null(m);
}

START_TEST(the_plain_model_is_seen_as_it_is)
{
    struct accel_str none = {0};
    ck_ok(read_with(&none));
    ck_assert_int_eq(m->ir_version, 8);
    ck_assert_int_eq(m->graph->opset, 17);
    ck_assert_int_eq(accel_graph_opset(m->graph, "ai.onnx"), 17);
    ck_assert_int_eq(accel_graph_opset(m->graph, "d"), 0);
    ck_assert_uint_eq(m->graph->n_node, 1);
    struct accel_node *n = m->graph->node[0];
    ck_assert_ptr_eq(n->in[0], m->graph->input[0]);
    ck_assert_ptr_eq(n->out[0], m->graph->output[0]);
    ck_assert_ptr_eq(n->in[0]->use[0].node, n);
    ck_assert_ptr_eq(n->out[0]->producer, n);
    ck_assert_int_eq(n->in[0]->declared.rank, 0);
    ck_assert_int_eq(n->in[0]->declared_dtype, ACCEL_F32);
    ck_assert_str_eq(n->label, "Identity_0");
}
END_TEST

START_TEST(names_must_resolve_in_order)
{
    struct accel_str g = {0};
    put_custom(&g, "n", "Foo", "ghost", "a");
    wrong(&g, "ghost", "node 'n' (Foo)");
    put_custom(&g, "n1", "Foo", "b", "a");
    put_custom(&g, "n2", "Foo", "a", "b");
    wrong(&g, "cycle", "n2");
    put_custom(&g, "n", "Foo", "a", "a");
    wrong(&g, "own output", "'a'");
    put_custom(&g, "n1", "Foo", "x", "a");
    put_custom(&g, "n2", "Foo", "x", "a");
    wrong(&g, "already produced by node 'n1'", "'a'");
    put_custom(&g, "n2", "Foo", "x", "x");
    wrong(&g, "already an input", "'x'");
    put_custom(&g, "", "Foo", "x", "a");
    put_custom(&g, "", "Foo", "ghost", "b");
    wrong(&g, "node 'Foo_1' (Foo)", "ghost");
    make_value(&g, GRAPH_OUTPUT, "nobody");
    wrong(&g, "nobody", "output");
    make_value(&g, GRAPH_INPUT, "x");
    wrong(&g, "'x' comes twice", "input");
    put_custom(&g, "n", "", "x", "a");
    wrong(&g, "op_type", "'n'");
}
END_TEST

START_TEST(known_operators_are_checked)
{
    struct accel_str g = {0}, a = {0}, attr = {0};
    put_node(&g, GRAPH_NODE, "n", "MatMul", "", "x", "a", NULL);
    wrong(&g, "has 1 inputs, must have 2", "node 'n' (MatMul)");
    put_node(&g, GRAPH_NODE, "n", "MatMul", "", "- x", "a", NULL);
    wrong(&g, "input 0 is left out", "node 'n' (MatMul)");
    accel_put_string(&attr, ATTR_NAME, "transB");
    accel_put_float(&attr, ATTR_F, 1);
    accel_put_int(&attr, ATTR_TYPE, ACCEL_ATTR_FLOAT);
    make_message(&a, NODE_ATTRIBUTE, &attr);
    put_node(&g, GRAPH_NODE, "n", "Gemm", "", "x x", "a", &a);
    wrong(&g, "transB", "must be an int");
    accel_put_string(&attr, ATTR_NAME, "transC");
    accel_put_int(&attr, ATTR_I, 1);
    accel_put_int(&attr, ATTR_TYPE, ACCEL_ATTR_INT);
    make_message(&a, NODE_ATTRIBUTE, &attr);
    put_node(&g, GRAPH_NODE, "n", "Gemm", "", "x x", "a", &a);
    wrong(&g, "transC", "did you mean 'trans");
}
END_TEST

START_TEST(initializers_are_constants_also_when_they_are_inputs)
{
    const float w[2] = {1, 2};
    struct accel_str g = {0};
    make_value(&g, GRAPH_INPUT, "w");
    make_tensor(&g, GRAPH_INITIALIZER, "w", ACCEL_F32, 2, -1, TENSOR_RAW_DATA, w, sizeof w);
    ck_ok(read_with(&g));
    const struct accel_value *v = accel_value_find(m->graph, "w");
    ck_assert(v->is_input);
    ck_assert_ptr_eq(v->tensor, m->tensor[0]);
    ck_assert_int_eq(v->shape.rank, 1);
    ck_assert_int_eq((int)v->shape.dim[0].n, 2);
    make_tensor(&g, GRAPH_INITIALIZER, "w", ACCEL_F32, 2, -1, TENSOR_RAW_DATA, w, sizeof w);
    make_tensor(&g, GRAPH_INITIALIZER, "w", ACCEL_F32, 2, -1, TENSOR_RAW_DATA, w, sizeof w);
    wrong(&g, "comes twice", "initializer 'w'");
}
END_TEST

/* An attribute with these fields. */
static struct accel_str attribute(const char *name, int kind, int field, struct accel_str *content)
{
    struct accel_str attr = {0}, a = {0};
    accel_put_string(&attr, ATTR_NAME, name);
    accel_put_int(&attr, ATTR_TYPE, kind);
    make_message(&attr, field, content);
    make_message(&a, NODE_ATTRIBUTE, &attr);
    return a;
}

START_TEST(constant_nodes_hold_tensors)
{
    const float f[3] = {1, 2, 3};
    struct accel_str g = {0}, t = {0}, a;
    accel_put_int(&t, TENSOR_DIMS, 3);
    accel_put_int(&t, TENSOR_DATA_TYPE, ACCEL_F32);
    accel_put_bytes(&t, TENSOR_RAW_DATA, f, sizeof f);
    a = attribute("value", ACCEL_ATTR_TENSOR, ATTR_T, &t);
    put_node(&g, GRAPH_NODE, "c", "Constant", "", "", "c", &a);
    accel_str_addn(&t, (const char *)f, sizeof f);
    a = attribute("value_floats", ACCEL_ATTR_FLOATS, ATTR_FLOATS, &t);
    put_node(&g, GRAPH_NODE, "d", "Constant", "", "", "d", &a);
    accel_put_varint(&t, 9);
    a = attribute("value_ints", ACCEL_ATTR_INTS, ATTR_INTS, &t);
    put_node(&g, GRAPH_NODE, "e", "Constant", "", "", "e", &a);
    accel_str_add(&t, "text");
    a = attribute("value_string", ACCEL_ATTR_STRING, ATTR_S, &t);
    put_node(&g, GRAPH_NODE, "s", "Constant", "", "", "s", &a);
    ck_ok(read_with(&g));
    ck_assert_uint_eq(m->n_tensor, 3);
    for (int i = 0; i < 2; i++) {
        const struct accel_tensor *c = accel_value_find(m->graph, i ? "d" : "c")->tensor;
        float got[3];
        ck_assert_str_eq(c->name, i ? "d" : "c");
        ck_ok(accel_tensor_read(c, 0, 3, got));
        ck_assert_int_eq(memcmp(got, f, sizeof got), 0);
        ck_assert_int_eq(((struct accel_part *)c->origin)->kind,
                         i ? ACCEL_PART_ATTR : ACCEL_PART_TENSOR);
    }
    ck_assert_int_eq((int)*(const int64_t *)accel_value_find(m->graph, "e")->tensor->data, 9);
    ck_assert_ptr_null(accel_value_find(m->graph, "s")->tensor);
    put_node(&g, GRAPH_NODE, "c", "Constant", "", "", "c", NULL);
    wrong(&g, "no value", "node 'c'");
}
END_TEST

/* A node 'outer' with a body of two nodes that reads x from outside. */
static struct accel_str with_body(const char *body_in)
{
    struct accel_str b = {0}, g = {0}, a;
    put_custom(&b, "inner", "Foo", body_in, "t");
    put_custom(&b, "", "Foo", "t", "u");
    make_value(&b, GRAPH_OUTPUT, "u");
    a = attribute("body", ACCEL_ATTR_GRAPH, ATTR_G, &b);
    put_node(&g, GRAPH_NODE, "outer", "Bar", "d", "x", "z", &a);
    return g;
}

START_TEST(bodies_resolve_outwards)
{
    struct accel_str g = with_body("x");
    ck_ok(read_with(&g));
    ck_assert_uint_eq(m->n_all_graph, 2);
    const struct accel_node *outer = m->graph->node[1];
    const struct accel_graph *body = outer->attr[0].graphs[0];
    ck_assert_ptr_eq(body->parent, m->graph);
    ck_assert_ptr_eq(body->parent_node, outer);
    ck_assert_str_eq(body->parent_attr, "body");
    ck_assert_ptr_eq(body->node[0]->in[0], m->graph->input[0]);
    ck_assert_uint_eq(m->graph->input[0]->n_use, 3);
    ck_assert_str_eq(body->node[0]->label, "outer/body/inner");
    ck_assert_str_eq(body->node[1]->label, "outer/body/Foo_1");
    ck_assert_int_eq(body->opset, 17);
    g = with_body("z"); /* what its own node produces */
    wrong(&g, "'z' is produced by no node", "node 'inner' (Foo)");
    g = with_body("u");
    wrong(&g, "cycle", "node 'outer' (Bar)");
}
END_TEST

START_TEST(labels_are_stable_and_avoid_names)
{
    struct accel_str g = {0};
    put_custom(&g, "", "Foo", "x", "a");
    put_custom(&g, "Foo_2", "Bar", "x", "b");
    put_custom(&g, "Foo_3", "Bar", "x", "f");
    put_custom(&g, "named", "Foo", "x", "c");
    put_custom(&g, "", "Foo", "x", "d");
    put_custom(&g, "", "Foo", "x", "e");
    ck_ok(read_with(&g));
    const char *want[] = {"Identity_0", "Foo_0", "Foo_2", "Foo_3", "named", "Foo_4", "Foo_5"};
    for (int i = 0; i < 7; i++)
        ck_assert_str_eq(m->graph->node[i]->label, want[i]);
    ck_assert_str_eq(m->graph->node[1]->name, "");
}
END_TEST

START_TEST(modules_are_told_from_names)
{
    static const char *const pair[][2] = {
        {"/layer3/layer3.0/conv1/Conv", "layer3.0.conv1"},
        {"/layer4/Gemm", "layer4"},
        {"/features/features.0/features.0.1/Conv", "features.0.1"},
        {"/model/layer1/layer1.0/Add", "model.layer1.0"},
        {"/layer1/layer10/Conv", "layer1.layer10"},
        {"layer1/MatMul", "layer1"},
        {"/Relu", ""},
        {"Gemm_5", ""},
        {"", ""},
        {"//a//b//", "a.b"},
    };
    const size_t n = sizeof pair / sizeof *pair;
    struct accel_str g = {0};
    for (size_t i = 0; i < n; i++)
        put_custom(&g, pair[i][0], "Foo", "x", "");
    ck_ok(read_with(&g));
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(m->graph->node[i + 1]->module, pair[i][1]);
}
END_TEST

/* Functions f0 … that each call `calls[i]`; the graph calls the first. */
static enum accel_err read_functions(int n, const char *const *calls)
{
    struct accel_str g = {0}, f = {0}, o = {0};
    put_node(&g, GRAPH_NODE, "call", "f0", "d", "x", "z", NULL);
    struct accel_str model = make_model(&g);
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%d", i);
        accel_put_string(&f, 1, name);
        accel_put_string(&f, 10, "d");
        accel_put_string(&f, 4, "p");
        accel_put_string(&f, 5, "q");
        accel_put_string(&o, 1, "");
        accel_put_int(&o, 2, 13);
        make_message(&f, 9, &o);
        put_node(&f, 7, "inside", calls[i], "d", "p", "q", NULL);
        make_message(&model, 25, &f);
    }
    accel_model_free(m);
    return accel_onnx_read(&m, save_model("m.onnx", model), NULL);
}

START_TEST(calls_know_their_function)
{
    ck_ok(read_functions(2, (const char *const[]){"f1", "Foo"}));
    ck_assert_uint_eq(m->n_function, 2);
    const struct accel_node *call = m->graph->node[1];
    ck_assert_ptr_eq(call->function, m->function[0]);
    ck_assert_ptr_null(call->op);
    const struct accel_graph *body = m->function[0]->body;
    ck_assert_int_eq(body->opset, 13);
    ck_assert_ptr_eq(body->node[0]->function, m->function[1]);
    ck_assert_str_eq(body->node[0]->label, "f0/inside");
    ck_assert_ptr_eq(body->output[0], body->node[0]->out[0]);
    ck_assert_ptr_null(m->function[1]->body->node[0]->function);
}
END_TEST

START_TEST(functions_do_not_call_in_circles)
{
    ck_fails(read_functions(1, (const char *const[]){"f0"}), ACCEL_EMODEL, "'f0'");
    ck_fails(read_functions(3, (const char *const[]){"f1", "f2", "f1"}), ACCEL_EMODEL, "circle");
}
END_TEST

START_TEST(opsets_are_needed_and_sensible)
{
    struct accel_str model = {0}, g = {0}, o = {0};
    put_node(&g, GRAPH_NODE, "n", "Relu", "", "-", "z", NULL);
    accel_put_int(&model, MODEL_IR_VERSION, 8);
    make_message(&model, MODEL_GRAPH, &g);
    ck_fails(accel_onnx_read(&m, save_model("m.onnx", model), NULL), ACCEL_EMODEL, "opset");
    model = (struct accel_str){0};
    accel_put_int(&model, MODEL_IR_VERSION, 8);
    accel_put_int(&o, 2, -3);
    make_message(&model, MODEL_OPSET_IMPORT, &o);
    ck_fails(accel_onnx_read(&m, save_model("m.onnx", model), NULL), ACCEL_EMODEL, "-3");
    model = (struct accel_str){0};
    accel_put_int(&model, MODEL_IR_VERSION, 8);
    ck_fails(accel_onnx_read(&m, save_model("m.onnx", model), NULL), ACCEL_EMODEL, "no graph");
    model = (struct accel_str){0};
    ck_fails(accel_onnx_read(&m, save_model("m.onnx", model), NULL), ACCEL_EMODEL, "ir_version");
    ck_fails(accel_onnx_read(&m, in_folder("absent.onnx"), NULL), ACCEL_EMODEL, "absent.onnx");
}
END_TEST

START_TEST(unknown_element_types_are_refused_wherever_they_stand)
{
    struct accel_str g = {0}, v = {0}, type = {0}, tensor = {0};
    accel_put_int(&tensor, 1, 200);
    make_message(&type, 1, &tensor);
    accel_put_string(&v, 1, "nothing known");
    make_message(&v, 2, &type);
    make_message(&g, 13, &v);
    wrong(&g, "200", "nothing known");
}
END_TEST

START_TEST(failing_memory_is_an_error_at_every_allocation)
{
    const float w[2] = {1, 2};
    struct accel_str g = with_body("x"), o = {0};
    put_node(&g, GRAPH_NODE, "", "MatMul", "", "x w", "mm", NULL);
    make_tensor(&g, GRAPH_INITIALIZER, "w", ACCEL_F32, 2, -1, TENSOR_RAW_DATA, w, sizeof w);
    struct accel_str model = make_model(&g);
    make_entry(&o, MODEL_METADATA_PROPS, "key", "value");
    accel_str_addn(&model, o.at, o.len);
    accel_str_clear(&o);
    const char *path = save_model("m.onnx", model);
    for (int forever = 0; forever < 2; forever++) {
        long n = 1;
        for (;; n++) {
            accel_alloc_fail_at(n, forever);
            enum accel_err err = accel_onnx_read(&m, path, NULL);
            accel_alloc_fail_at(0, false);
            if (!err)
                break;
            ck_assert_int_eq(err, ACCEL_ENOMEM);
            ck_assert_ptr_null(m);
        }
        ck_assert_int_gt(n, 20);
        accel_model_free(m);
        m = NULL;
    }
}
END_TEST

static Suite *read_graph_suite(void)
{
    Suite *s = suite_create("read_graph");
    TCase *t = tcase_create("graph");
    tcase_add_checked_fixture(t, make_folder, free_model);
    tcase_add_test(t, the_plain_model_is_seen_as_it_is);
    tcase_add_test(t, names_must_resolve_in_order);
    tcase_add_test(t, known_operators_are_checked);
    tcase_add_test(t, initializers_are_constants_also_when_they_are_inputs);
    tcase_add_test(t, constant_nodes_hold_tensors);
    tcase_add_test(t, bodies_resolve_outwards);
    tcase_add_test(t, labels_are_stable_and_avoid_names);
    tcase_add_test(t, modules_are_told_from_names);
    tcase_add_test(t, calls_know_their_function);
    tcase_add_test(t, functions_do_not_call_in_circles);
    tcase_add_test(t, opsets_are_needed_and_sensible);
    tcase_add_test(t, unknown_element_types_are_refused_wherever_they_stand);
    tcase_add_test(t, failing_memory_is_an_error_at_every_allocation);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(read_graph_suite)
