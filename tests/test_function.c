/* Local functions and bodies: inferred per call, with the call's attributes, in bounded time. */
#include <math.h>

#include "exec/plan.h"
#include "graph/infer.h"
#include "onnx/onnx.h"
#include "tests/t.h"

#include "tests/onnx_make.h"

enum {
    MODEL_FUNCTIONS = 25,
    FUNCTION_NAME = 1,
    FUNCTION_INPUT = 4,
    FUNCTION_OUTPUT = 5,
    FUNCTION_ATTRIBUTE = 6,
    FUNCTION_NODE = 7,
    FUNCTION_OPSET = 9,
    FUNCTION_DOMAIN = 10
};

static void put_opset(struct accel_str *s, int field, const char *domain, int64_t version)
{
    struct accel_str o = {0};
    accel_put_string(&o, 1, domain);
    accel_put_int(&o, 2, version);
    make_message(s, field, &o);
}

/* A float value with these dims; a dim of -1 is the symbol N, a rank of -1 no shape. */
static void put_value(struct accel_str *s, int field, const char *name, int rank,
                      const int64_t *dim)
{
    struct accel_str v = {0}, type = {0}, tensor = {0}, shape = {0};
    for (int i = 0; i < rank; i++) {
        struct accel_str d = {0};
        if (dim[i] < 0)
            accel_put_string(&d, 2, "N");
        else
            accel_put_int(&d, 1, dim[i]);
        make_message(&shape, 1, &d);
    }
    accel_put_int(&tensor, 1, 1);
    if (rank >= 0)
        make_message(&tensor, 2, &shape);
    make_message(&type, 1, &tensor);
    accel_put_string(&v, 1, name);
    make_message(&v, 2, &type);
    make_message(s, field, &v);
}

/* A node; `attr` is a finished list of attribute fields, or NULL. */
static void put_node(struct accel_str *s, int field, const char *op, const char *domain,
                     const char *a, const char *b, const char *out, struct accel_str *attr)
{
    struct accel_str n = {0};
    if (a)
        accel_put_string(&n, NODE_INPUT, a);
    if (b)
        accel_put_string(&n, NODE_INPUT, b);
    accel_put_string(&n, NODE_OUTPUT, out);
    accel_put_string(&n, NODE_OP_TYPE, op);
    accel_put_string(&n, NODE_DOMAIN, domain);
    if (attr) {
        accel_str_addn(&n, accel_str_get(attr), attr->len);
        accel_str_clear(attr);
    }
    make_message(s, field, &n);
}

/* An int attribute, or a reference to the call's when `ref` is given. */
static struct accel_str int_attr(const char *name, int64_t v, const char *ref)
{
    struct accel_str s = {0}, a = {0};
    accel_put_string(&a, ATTR_NAME, name);
    if (ref)
        accel_put_string(&a, ATTR_REF_NAME, ref);
    else
        accel_put_int(&a, ATTR_I, v);
    accel_put_int(&a, ATTR_TYPE, ACCEL_ATTR_INT);
    make_message(&s, NODE_ATTRIBUTE, &a);
    return s;
}

static struct accel_model *read_graph(struct accel_str *graph, struct accel_str *functions)
{
    const struct accel_onnx_read_options opt = {0};
    struct accel_str m = {0};
    struct accel_model *model;
    accel_put_int(&m, MODEL_IR_VERSION, 8);
    accel_put_string(graph, GRAPH_NAME, "g");
    make_message(&m, MODEL_GRAPH, graph);
    put_opset(&m, MODEL_OPSET_IMPORT, "", 17);
    put_opset(&m, MODEL_OPSET_IMPORT, "my", 1);
    accel_str_addn(&m, accel_str_get(functions), functions->len);
    accel_str_clear(functions);
    ck_ok(accel_onnx_read(&model, save_model("m.onnx", m), &opt));
    ck_ok(accel_model_infer(model));
    return model;
}

static const char *shape_of(const struct accel_model *m, const char *name)
{
    static char text[2][64];
    static int turn;
    turn = !turn;
    const struct accel_value *v = accel_value_find(m->graph, name);
    ck_assert_ptr_nonnull(v);
    return accel_shape_text(&v->shape, &m->symbols, text[turn], sizeof text[turn]);
}

/* my.Flat(a) { b = Flatten(a, axis = the call's "at") }. */
static void put_flat(struct accel_str *s)
{
    struct accel_str f = {0}, ref = int_attr("axis", 0, "at");
    accel_put_string(&f, FUNCTION_NAME, "Flat");
    accel_put_string(&f, FUNCTION_DOMAIN, "my");
    accel_put_string(&f, FUNCTION_INPUT, "a");
    accel_put_string(&f, FUNCTION_OUTPUT, "b");
    accel_put_string(&f, FUNCTION_ATTRIBUTE, "at");
    put_node(&f, FUNCTION_NODE, "Flatten", "", "a", NULL, "b", &ref);
    put_opset(&f, FUNCTION_OPSET, "", 17);
    make_message(s, MODEL_FUNCTIONS, &f);
}

START_TEST(a_function_is_inferred_for_each_call)
{
    struct accel_str g = {0}, f = {0}, one = int_attr("at", 1, NULL), two = int_attr("at", 2, NULL);
    put_value(&g, GRAPH_INPUT, "x", 3, (int64_t[]){-1, 3, 4});
    put_node(&g, GRAPH_NODE, "Flat", "my", "x", NULL, "p", &one);
    put_node(&g, GRAPH_NODE, "Flat", "my", "x", NULL, "q", &two);
    put_node(&g, GRAPH_NODE, "Flat", "my", "x", NULL, "r", NULL);
    put_value(&g, GRAPH_OUTPUT, "q", -1, NULL);
    put_flat(&f);
    struct accel_model *m = read_graph(&g, &f);
    ck_assert_str_eq(shape_of(m, "p"), "Nx12");
    const struct accel_value *q = accel_value_find(m->graph, "q");
    ck_assert_int_eq(q->shape.rank, 2);
    ck_assert_int_eq((int)q->shape.dim[1].n, 4);
    ck_assert_int_eq(accel_value_find(m->graph, "r")->shape.rank, -1); /* no value for "at" */
    ck_ok(accel_model_bind_dim(m, "N", 5));
    ck_ok(accel_model_infer(m));
    ck_assert_str_eq(shape_of(m, "p"), "5x12");
    ck_assert_str_eq(shape_of(m, "q"), "15x4");
    accel_model_free(m);
}
END_TEST

/* f0 = MatMul with itself; f(i) = f(i-1) twice. */
static void put_chain(struct accel_str *s, int depth)
{
    for (int i = 0; i <= depth; i++) {
        struct accel_str f = {0};
        char name[16], below[16];
        snprintf(name, sizeof name, "f%d", i);
        snprintf(below, sizeof below, "f%d", i - 1);
        accel_put_string(&f, FUNCTION_NAME, name);
        accel_put_string(&f, FUNCTION_DOMAIN, "my");
        accel_put_string(&f, FUNCTION_INPUT, "a");
        accel_put_string(&f, FUNCTION_OUTPUT, "b");
        if (i == 0) {
            put_node(&f, FUNCTION_NODE, "MatMul", "", "a", "a", "b", NULL);
        } else {
            put_node(&f, FUNCTION_NODE, below, "my", "a", NULL, "t", NULL);
            put_node(&f, FUNCTION_NODE, below, "my", "t", NULL, "b", NULL);
        }
        put_opset(&f, FUNCTION_OPSET, "", 17);
        put_opset(&f, FUNCTION_OPSET, "my", 1);
        make_message(s, MODEL_FUNCTIONS, &f);
    }
}

static struct accel_model *chain(int depth)
{
    struct accel_str g = {0}, f = {0};
    char top[16];
    snprintf(top, sizeof top, "f%d", depth);
    put_value(&g, GRAPH_INPUT, "x", 2, (int64_t[]){4, 4});
    put_node(&g, GRAPH_NODE, top, "my", "x", NULL, "y", NULL);
    put_value(&g, GRAPH_OUTPUT, "y", -1, NULL);
    put_chain(&f, depth);
    return read_graph(&g, &f);
}

START_TEST(multiply_adds_of_calls_add_up)
{
    int64_t macs;
    struct accel_model *m = chain(3);
    ck_assert_str_eq(shape_of(m, "y"), "4x4");
    ck_ok(accel_model_infer(m));
    ck_assert_int_eq(accel_node_macs(m->graph->node[0]), 8 * 64);
    ck_ok(accel_model_macs(&macs, m)); /* a fixed batch of 4 */
    ck_assert_int_eq(macs, 8 * 64 / 4);
    accel_model_free(m);
}
END_TEST

/* Arguments and results are borrowed through three levels of calls, and again in the next run. */
START_TEST(calls_of_calls_compute)
{
    struct accel_model *m = chain(2);
    struct accel_plan *p;
    float x[16] = {0};
    ck_ok(accel_plan_new(&p, m, &(struct accel_plan_options){0}));
    for (int turn = 1; turn <= 2; turn++) {
        for (int i = 0; i < 4; i++)
            x[5 * i] = 1.0f + (float)(i * turn) / 16;
        ck_ok(accel_plan_set_input(p, 0,
                                   &(struct accel_array){ACCEL_F32, 2, (int64_t[]){4, 4}, 16, x}));
        ck_ok(accel_plan_run(p));
        const float *y = accel_plan_output(p, 0)->data;
        for (int i = 0; i < 16; i++)
            ck_assert_float_eq_tol(y[i], i % 5 ? 0 : powf(x[i], 16), 1e-3f);
    }
    accel_plan_free(p);
    accel_model_free(m);
}
END_TEST

/* 2^60 calls: the budget ends it, and what is not known is said to be unknown. */
START_TEST(a_tower_of_calls_ends)
{
    int64_t macs;
    struct accel_model *m = chain(60);
    ck_ok(accel_model_macs(&macs, m));
    ck_assert_int_eq(macs, -1);
    accel_model_free(m);
}
END_TEST

/* One branch of an If: `to` = op(from). */
static void put_branch(struct accel_str *node, const char *name, const char *op, const char *a,
                       const char *b, const char *to)
{
    struct accel_str attr = {0}, g = {0};
    put_node(&g, GRAPH_NODE, op, "", a, b, to, NULL);
    accel_put_string(&g, GRAPH_NAME, name);
    put_value(&g, GRAPH_OUTPUT, to, -1, NULL);
    accel_put_string(&attr, ATTR_NAME, name);
    make_message(&attr, ATTR_G, &g);
    accel_put_int(&attr, ATTR_TYPE, ACCEL_ATTR_GRAPH);
    make_message(node, NODE_ATTRIBUTE, &attr);
}

START_TEST(branches_that_agree_give_a_size_and_others_none)
{
    struct accel_str g = {0}, f = {0}, branches = {0}, c = {0}, type = {0}, tensor = {0};
    put_value(&g, GRAPH_INPUT, "x", 2, (int64_t[]){2, 6});
    put_value(&g, GRAPH_INPUT, "w", 2, (int64_t[]){6, 6});
    put_value(&g, GRAPH_INPUT, "v", 2, (int64_t[]){6, 9});
    accel_put_int(&tensor, 1, ACCEL_BOOL);
    make_message(&tensor, 2, &(struct accel_str){0});
    make_message(&type, 1, &tensor);
    accel_put_string(&c, 1, "c");
    make_message(&c, 2, &type);
    make_message(&g, GRAPH_INPUT, &c);
    put_branch(&branches, "then_branch", "MatMul", "x", "w", "p");
    put_branch(&branches, "else_branch", "Relu", "x", NULL, "q");
    put_node(&g, GRAPH_NODE, "If", "", "c", NULL, "same", &branches);
    put_branch(&branches, "then_branch", "MatMul", "x", "v", "p2");
    put_branch(&branches, "else_branch", "Relu", "x", NULL, "q2");
    put_node(&g, GRAPH_NODE, "If", "", "c", NULL, "other", &branches);
    put_value(&g, GRAPH_OUTPUT, "same", -1, NULL);
    struct accel_model *m = read_graph(&g, &f);
    ck_assert_str_eq(shape_of(m, "same"), "2x6");
    const struct accel_value *o = accel_value_find(m->graph, "other");
    ck_assert_int_eq(o->shape.rank, 2);
    ck_assert_int_eq((int)o->shape.dim[0].n, 2);
    ck_assert_int_eq((int)o->shape.dim[1].n, -1);
    accel_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("function");
    TCase *t = tcase_create("function");
    tcase_add_unchecked_fixture(t, make_folder, remove_folder);
    tcase_add_test(t, a_function_is_inferred_for_each_call);
    tcase_add_test(t, multiply_adds_of_calls_add_up);
    tcase_add_test(t, calls_of_calls_compute);
    tcase_add_test(t, a_tower_of_calls_ends);
    tcase_add_test(t, branches_that_agree_give_a_size_and_others_none);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
