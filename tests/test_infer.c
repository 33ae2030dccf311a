/* The inference core: symbols, trial values, declarations, bound sizes, MACs, failing memory. */
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "onnx/onnx.h"
#include "tests/op_t.h"

static struct accel_value *value(struct accel_model *m, const char *name)
{
    struct accel_value *v;
    ck_ok(accel_value_new(&v, m->graph, name));
    v->is_tensor = true;
    v->declared.rank = v->shape.rank = -1;
    return v;
}

static struct accel_node *node(struct accel_model *m, const char *op, struct accel_value *a,
                               struct accel_value *b, struct accel_value *out)
{
    struct accel_node *n;
    struct accel_value *in[] = {a, b};
    ck_ok(accel_node_new(&n, m->graph, accel_op_find(op, ""), op, "", "", in, b ? 2 : 1, &out, 1));
    if (n->op->parse)
        ck_ok(n->op->parse(n, 13));
    return n;
}

START_TEST(derived_sizes_are_found_again)
{
    struct accel_symbols s = {0};
    struct accel_dim h, a, b, c;
    ck_ok(accel_dim_named(&h, &s, "H"));
    ck_ok(accel_dim_derive(&a, &s, h, 1, 1, 2, 0));
    ck_ok(accel_dim_derive(&b, &s, h, 1, -1, 2, 1));
    ck_assert(accel_dim_same(a, b));
    ck_ok(accel_dim_derive(&a, &s, a, 1, 1, 2, 0));
    ck_ok(accel_dim_derive(&b, &s, h, 1, 3, 4, 0));
    ck_assert(accel_dim_same(a, b));
    ck_ok(accel_dim_derive(&c, &s, h, 2, 0, 2, 0));
    ck_assert(accel_dim_same(c, h));
    ck_fails(accel_dim_derive(&c, &s, accel_dim_of(3), 1, -7, 1, 0), ACCEL_ESHAPE, "negative");
    accel_symbols_clear(&s);
}
END_TEST

START_TEST(products_do_not_depend_on_order)
{
    struct accel_symbols s = {0};
    struct accel_dim d[3], a, b;
    ck_ok(accel_dim_named(&d[0], &s, "A"));
    ck_ok(accel_dim_named(&d[1], &s, "B"));
    ck_ok(accel_dim_named(&d[2], &s, "C"));
    ck_ok(accel_dim_mul(&a, &s, d[0], d[1]));
    ck_ok(accel_dim_mul(&a, &s, a, d[2]));
    ck_ok(accel_dim_mul(&b, &s, d[2], d[1]));
    ck_ok(accel_dim_mul(&b, &s, d[0], b));
    ck_assert(accel_dim_same(a, b));
    accel_symbols_clear(&s);
}
END_TEST

/* Shape of x, compared with a constant: what is known of the truth value. */
static const struct accel_known *compared(struct accel_model **m, const char *op, int64_t with)
{
    struct accel_value *x, *sh, *c, *y;
    struct accel_tensor *t;
    ck_ok(accel_model_new(m, 13));
    x = value(*m, "x");
    x->declared.rank = 1;
    x->declared.dim = ACCEL_NEW(&(*m)->arena, struct accel_dim, 1);
    ck_ok(accel_dim_named(&x->declared.dim[0], &(*m)->symbols, "N"));
    x->declared_dtype = ACCEL_F32;
    sh = value(*m, "shape");
    node(*m, "Shape", x, NULL, sh);
    c = value(*m, "c");
    t = ACCEL_NEW(&(*m)->arena, struct accel_tensor, 1);
    int64_t *data = ACCEL_NEW(&(*m)->arena, int64_t, 1);
    *data = with;
    *t = (struct accel_tensor){.name = "c", .dtype = ACCEL_I64, .n = 1, .size = 8, .data = data};
    c->tensor = t;
    y = value(*m, "y");
    node(*m, op, sh, c, y);
    ck_ok(accel_model_infer(*m));
    return y->known;
}

START_TEST(equal_trials_are_no_proof_for_a_comparison)
{
    struct accel_model *m;
    ck_assert_ptr_null(compared(&m, "Less", 1000000000)); /* true in every trial of N */
    accel_model_free(m);
    const struct accel_known *k = compared(&m, "Equal", -1); /* no size is negative */
    ck_assert_ptr_nonnull(k);
    ck_assert_int_eq(((const int64_t *)k->probe[0])[0], 0);
    accel_model_free(m);
}
END_TEST

START_TEST(a_wrong_declaration_is_a_warning)
{
    struct accel_model *m;
    struct accel_dim four[] = {{4, -1}}, five[] = {{5, -1}};
    ck_ok(accel_model_new(&m, 13));
    struct accel_value *x = value(m, "x"), *y = value(m, "y");
    x->declared = (struct accel_shape){1, four};
    y->declared = (struct accel_shape){1, five};
    node(m, "Identity", x, NULL, y);
    ck_ok(accel_model_infer(m));
    ck_assert_int_eq(y->shape.dim[0].n, 4);
    ck_assert_int_eq((int)m->log.n, 1);
    ck_assert_ptr_nonnull(strstr(m->log.text[0], "'y'"));
    accel_model_free(m);
}
END_TEST

START_TEST(bound_sizes_are_used_and_checked)
{
    struct accel_model *m;
    struct accel_dim d[2] = {{-1, -1}, {7, -1}};
    ck_ok(accel_model_new(&m, 13));
    struct accel_value *x = value(m, "input"), *y = value(m, "y");
    struct accel_value **list = ACCEL_NEW(&m->arena, struct accel_value *, 1);
    list[0] = x;
    m->graph->input = list;
    m->graph->n_input = 1;
    x->is_input = true;
    ck_ok(accel_dim_named(&d[0], &m->symbols, "batch"));
    x->declared = (struct accel_shape){2, d};
    node(m, "Identity", x, NULL, y);
    ck_ok(accel_model_infer(m));
    ck_assert_int_eq(y->shape.dim[0].n, -1);
    ck_fails(accel_model_bind_dim(m, "bacth", 3), ACCEL_EARG, "batch");
    ck_fails(accel_model_bind_input(m, "inptu", 2, (int64_t[]){3, 7}), ACCEL_EARG, "'input'");
    ck_fails(accel_model_bind_input(m, "input", 2, (int64_t[]){3, 8}), ACCEL_EARG, "8");
    ck_fails(accel_model_bind_input(m, "input", 1, (int64_t[]){3}), ACCEL_EARG, "rank");
    ck_ok(accel_model_bind_input(m, "input", 2, (int64_t[]){3, -1}));
    ck_ok(accel_model_infer(m));
    ck_assert_int_eq(y->shape.dim[0].n, 3);
    accel_model_free(m);
}
END_TEST

/* 784*300 + 300*100 + 100*10, and the symbolic batch is free again. */
START_TEST(macs_are_those_of_one_sample)
{
    struct accel_model *m;
    const struct accel_onnx_read_options opt = {0};
    int64_t macs;
    if (access("../shared/models/fashion_mlp.onnx", R_OK) != 0) {
        printf("SKIP: no ../shared/models\n");
        return;
    }
    ck_ok(accel_onnx_read(&m, "../shared/models/fashion_mlp.onnx", &opt));
    ck_ok(accel_model_infer(m));
    struct accel_dim before = m->graph->input[0]->shape.dim[0];
    ck_ok(accel_model_macs(&macs, m));
    ck_assert_int_eq(macs, 266200);
    ck_assert(accel_dim_same(before, m->graph->input[0]->shape.dim[0]));
    accel_model_free(m);
}
END_TEST

START_TEST(every_failing_allocation_is_reported)
{
    long n = 1;
    for (enum accel_err err = ACCEL_ENOMEM; err; n++) {
        struct op_run r = op_begin("Reshape", 13, "NxCx4x4 [0,-1]");
        ck_ok(r.err);
        accel_alloc_fail_at(n, false);
        err = accel_model_infer(r.m);
        accel_alloc_fail_at(0, false);
        ck_assert(err == ACCEL_OK || err == ACCEL_ENOMEM);
        op_end(&r);
        ck_assert_int_lt(n, 1000);
    }
    ck_assert_int_gt(n, 3);
}
END_TEST

START_TEST(inference_is_linear_in_nodes)
{
    struct accel_model *m;
    struct accel_dim d[2] = {{-1, -1}, {7, -1}};
    ck_ok(accel_model_new(&m, 13));
    struct accel_value *x = value(m, "x");
    ck_ok(accel_dim_named(&d[0], &m->symbols, "N"));
    x->declared = (struct accel_shape){2, d};
    x->declared_dtype = ACCEL_F32;
    for (int i = 0; i < 10000; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        struct accel_value *y = value(m, name);
        node(m, "Relu", x, NULL, y);
        x = y;
    }
    clock_t t = clock();
    ck_ok(accel_model_infer(m));
    printf("10,000 nodes: %.1f ms\n", 1e3 * (double)(clock() - t) / CLOCKS_PER_SEC);
    ck_assert_int_eq(x->shape.dim[1].n, 7);
    ck_assert(accel_dim_same(x->shape.dim[0], d[0]));
    accel_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("inference");
    TCase *t = tcase_create("core");
    tcase_add_test(t, derived_sizes_are_found_again);
    tcase_add_test(t, products_do_not_depend_on_order);
    tcase_add_test(t, equal_trials_are_no_proof_for_a_comparison);
    tcase_add_test(t, a_wrong_declaration_is_a_warning);
    tcase_add_test(t, bound_sizes_are_used_and_checked);
    tcase_add_test(t, macs_are_those_of_one_sample);
    tcase_add_test(t, every_failing_allocation_is_reported);
    tcase_add_test(t, inference_is_linear_in_nodes);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
