/* Models built in memory: what is written is what a reader finds, whatever was put together. */
#include "tests/onnx_make.h"

#include "graph/attr.h"
#include "ops/ops.h"
#include "tests/t.h"

static struct accel_tensor *tensor_new(struct accel_model *m, const char *name, int64_t d0,
                                       int64_t d1, const float *data)
{
    struct accel_tensor *t = ACCEL_NEW(&m->arena, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(&m->arena, int64_t, 2);
    ck_assert(t && dim);
    dim[0] = d0;
    dim[1] = d1;
    *t = (struct accel_tensor){.name = name,
                               .dtype = ACCEL_F32,
                               .rank = d1 < 0 ? 1 : 2,
                               .dim = dim,
                               .n = (uint64_t)(d1 < 0 ? d0 : d0 * d1),
                               .data = data};
    t->size = t->n * sizeof *data;
    ck_ok(accel_model_add_tensor(m, t));
    return t;
}

static struct accel_value *value_new(struct accel_graph *g, const char *name, int64_t columns)
{
    struct accel_value *v;
    ck_ok(accel_value_new(&v, g, name));
    v->dtype = ACCEL_F32;
    v->is_tensor = true;
    if (columns) {
        v->shape.rank = 2;
        v->shape.dim = ACCEL_NEW(&g->model->arena, struct accel_dim, 2);
        ck_assert_ptr_nonnull(v->shape.dim);
        ck_ok(accel_dim_named(&v->shape.dim[0], &g->model->symbols, "N"));
        v->shape.dim[1] = accel_dim_of(columns);
    }
    return v;
}

static float weight[400 * 3], bias[3] = {1, 2, 3};

/* y = Gemm(x, w, b; transB = 1, alpha = 0.5), then an operator nobody knows with one attribute of
 * every plain kind. */
static struct accel_model *build(void)
{
    struct accel_model *m;
    ck_ok(accel_model_new(&m, 17));
    struct accel_graph *g = m->graph;
    m->ir_version = 8;
    m->producer = "some tool 1.5";
    struct accel_value *x = value_new(g, "x", 400), *w = value_new(g, "w", 0);
    struct accel_value *b = value_new(g, "b", 0), *y = value_new(g, "y", 3);
    struct accel_value *h = value_new(g, "h", 0), *in[] = {x, w, b}, *mid[] = {h, NULL, h};
    struct accel_node *n;
    for (int i = 0; i < 1200; i++)
        weight[i] = (float)i + 1;
    w->tensor = tensor_new(m, "w", 3, 400, weight);
    b->tensor = tensor_new(m, "b", 3, -1, bias);
    ck_ok(accel_node_new(&n, g, accel_op_find("Gemm", ""), "Gemm", "", "fc", in, 3, &h, 1));
    ck_ok(accel_attr_set_int(n, "transB", 1));
    ck_ok(accel_attr_set_float(n, "alpha", 0.5f));
    ck_ok(accel_node_new(&n, g, NULL, "Odd", "my.domain", "", mid, 3, &y, 1));
    ck_ok(accel_attr_set_string(n, "mode", "strange"));
    ck_ok(accel_attr_set_ints(n, "table", (const int64_t[]){1, -2, INT64_MAX}, 3));
    g->input = ACCEL_NEW(&m->arena, struct accel_value *, 1);
    g->output = ACCEL_NEW(&m->arena, struct accel_value *, 1);
    ck_assert(g->input && g->output);
    g->input[0] = x;
    g->output[0] = y;
    g->n_input = g->n_output = 1;
    x->is_input = y->is_output = true;
    return m;
}

static void ck_read_back(const char *path)
{
    struct accel_model *m;
    struct accel_onnx_read_options opt = {0};
    ck_ok(accel_onnx_read(&m, path, &opt));
    const struct accel_graph *g = m->graph;
    ck_assert_int_eq(m->ir_version, 8);
    ck_assert_int_eq(accel_graph_opset(g, ""), 17);
    ck_assert_str_eq(m->producer, "some tool 1.5");
    ck_assert_uint_eq(g->n_node, 2);
    ck_assert_str_eq(g->node[0]->name, "fc");
    ck_assert_str_eq(g->node[0]->op_type, "Gemm");
    int64_t trans = 0;
    float alpha = 0;
    ck_ok(accel_attr_int(&trans, g->node[0], "transB", 0));
    ck_ok(accel_attr_float(&alpha, g->node[0], "alpha", 1));
    ck_assert_int_eq(trans, 1);
    ck_assert_float_eq(alpha, 0.5f);
    const struct accel_node *odd = g->node[1];
    const char *mode;
    const int64_t *ints;
    size_t n;
    ck_assert_str_eq(odd->domain, "my.domain");
    ck_assert(odd->n_in == 3 && odd->in[0] && !odd->in[1] && odd->in[2] == odd->in[0]);
    ck_ok(accel_attr_string(&mode, odd, "mode", ""));
    ck_assert_str_eq(mode, "strange");
    ck_ok(accel_attr_ints(&ints, &n, odd, "table"));
    ck_assert(n == 3 && ints[0] == 1 && ints[1] == -2 && ints[2] == INT64_MAX);
    const struct accel_value *x = g->input[0];
    ck_assert_str_eq(x->name, "x");
    ck_assert_int_eq(x->declared.rank, 2);
    ck_assert_int_eq(x->declared.dim[1].n, 400);
    ck_assert_str_eq(m->symbols.at[x->declared.dim[0].sym].name, "N");
    const struct accel_tensor *w = accel_value_find(g, "w")->tensor;
    float got[1200];
    ck_assert_uint_eq(w->n, 1200);
    ck_assert_int_eq(w->dim[0], 3);
    ck_ok(accel_tensor_read(w, 0, 1200, got));
    ck_assert_mem_eq(got, weight, sizeof got);
    accel_model_free(m);
}

START_TEST(model_built_in_memory_is_read_back)
{
    struct accel_property meta[] = {{"accel.version", "1"}};
    for (int external = 0; external < 2; external++) {
        struct accel_onnx_write_options opt = {.external = external ? ACCEL_EXTERNAL_YES
                                                                    : ACCEL_EXTERNAL_AUTO,
                                               .meta = meta,
                                               .n_meta = 1};
        struct accel_onnx_written dry, wet;
        struct accel_model *m = build();
        ck_ok(accel_onnx_dry_write(&dry, m, in_folder("o"), &opt));
        ck_ok(accel_onnx_write(&wet, m, in_folder("o"), &opt));
        ck_assert_uint_eq(dry.size, wet.size);
        ck_assert_str_eq(folder_list(), external ? "o o.data " : "o ");
        ck_read_back(in_folder("o"));
        accel_model_free(m);
    }
}
END_TEST

START_TEST(tensor_without_bytes_of_its_own_width_is_refused)
{
    struct accel_onnx_write_options opt = {0};
    struct accel_onnx_written w;
    struct accel_model *m = build();
    m->tensor[0]->dtype = ACCEL_STRING;
    ck_fails(accel_onnx_write(&w, m, in_folder("o"), &opt), ACCEL_ENOSUP, "tensor 'w'");
    ck_assert_str_eq(folder_list(), "");
    accel_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("write_build");
    TCase *c = tcase_create("write_build");
    tcase_add_checked_fixture(c, make_folder, remove_folder);
    tcase_add_test(c, model_built_in_memory_is_read_back);
    tcase_add_test(c, tensor_without_bytes_of_its_own_width_is_refused);
    suite_add_tcase(s, c);
    return s;
}

T_MAIN(suite)
