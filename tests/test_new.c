/* test_new.c - the built-in networks: sizes, names, initial weights, determinism. */
#include "tests/t.h"

#include <stdio.h>
#include <string.h>

#include "tools/new_draft.h"

static struct accel_model *build(const char *name, bool bias, uint64_t seed, int64_t features)
{
    struct accel_draft d = {.bias = bias, .features = features};
    const struct accel_network *w = accel_network_table;
    while (w->name && strcmp(w->name, name))
        w++;
    ck_assert_ptr_nonnull(w->name);
    ck_ok(accel_network_build(&d, w, seed));
    return d.m;
}

static uint64_t params(const struct accel_model *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n_tensor; i++)
        if (accel_dtype_is_float(m->tensor[i]->dtype))
            n += m->tensor[i]->n;
    return n;
}

static const struct accel_tensor *tensor(const struct accel_model *m, const char *name)
{
    struct accel_value *v = accel_value_find(m->graph, name);
    ck_assert_msg(v && v->tensor, "no weight '%s'", name);
    return v->tensor;
}

START_TEST(parameter_counts_are_those_of_the_papers_and_tutorials)
{
    static const struct {
        const char *name;
        bool bias;
        uint64_t n;
    } want[] = {{"linear", true, 9},
                {"mlp", true, 266610},
                {"mlp", false, 266200},
                {"mlp4", true, 784 * 256 + 256 + 256 * 128 + 128 + 128 * 64 + 64 + 640 + 10},
                {"fashion-cnn", true, 1630090},
                {"fashion-cnn", false, 1629472},
                /* 272,186 that are trained, 2 * 784 means and variances */
                {"resnet20", true, 272186 + 2 * 784}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct accel_model *m = build(want[i].name, want[i].bias, 0, 0);
        ck_assert_msg(params(m) == want[i].n, "%s: %llu", want[i].name,
                      (unsigned long long)params(m));
        accel_model_free(m);
    }
}
END_TEST

START_TEST(names_are_those_of_an_exported_network)
{
    struct accel_model *m = build("resnet20", true, 0, 0);
    static const char *const node[] = {"/conv1/Conv",
                                       "/bn1/BatchNormalization",
                                       "/Relu",
                                       "/stage1/stage1.0/conv1/Conv",
                                       "/stage1/stage1.0/bn1/BatchNormalization",
                                       "/stage1/stage1.0/Relu",
                                       "/stage1/stage1.0/conv2/Conv",
                                       "/stage1/stage1.0/bn2/BatchNormalization",
                                       "/stage1/stage1.0/Add",
                                       "/stage1/stage1.0/Relu_1"};
    for (size_t i = 0; i < sizeof node / sizeof *node; i++)
        ck_assert_str_eq(m->graph->node[i]->name, node[i]);
    ck_assert_ptr_nonnull(accel_value_find(m->graph, "/stage2/stage2.0/down/down.0/Conv_output_0"));
    ck_assert_int_eq((int)tensor(m, "stage3.0.down.0.weight")->dim[1], 32);
    ck_assert_str_eq(m->graph->output[0]->name, "logits");
    ck_assert_str_eq(m->graph->input[0]->name, "input");
    ck_assert_int_eq(m->graph->input[0]->declared.rank, 4);
    accel_model_free(m);
}
END_TEST

/* Uniform in ±1/sqrt(fan in): the bound is kept, nearly reached, and the variance is bound^2/3. */
START_TEST(weights_are_drawn_as_pytorch_draws_them)
{
    struct accel_model *m = build("fashion-cnn", true, 0, 0);
    const struct accel_tensor *w = tensor(m, "fc1.weight"), *b = tensor(m, "fc1.bias");
    double bound = 1 / sqrt(3136.0), squares = 0, most = 0;
    const float *v = w->data;
    for (uint64_t i = 0; i < w->n; i++) {
        squares += (double)v[i] * v[i];
        most = fmax(most, fabs(v[i]));
    }
    ck_assert_double_le(most, bound * (1 + 1e-7));
    ck_assert_double_gt(most, bound * 0.999);
    ck_assert_double_eq_tol(squares / (double)w->n, bound * bound / 3, bound * bound / 300);
    most = 0;
    for (uint64_t i = 0; i < b->n; i++)
        most = fmax(most, fabs(((const float *)b->data)[i]));
    ck_assert_double_le(most, bound * (1 + 1e-7));
    ck_assert_double_gt(most, bound * 0.95);
    accel_model_free(m);
}
END_TEST

START_TEST(a_seed_gives_the_same_weights_and_another_seed_others)
{
    struct accel_model *a = build("mlp", true, 3, 0), *b = build("mlp", true, 3, 0);
    struct accel_model *c = build("mlp", true, 4, 0);
    const struct accel_tensor *x = tensor(a, "fc2.weight");
    ck_assert_mem_eq(x->data, tensor(b, "fc2.weight")->data, x->size);
    ck_assert_mem_ne(x->data, tensor(c, "fc2.weight")->data, x->size);
    accel_model_free(a);
    accel_model_free(b);
    accel_model_free(c);
}
END_TEST

START_TEST(batch_norms_start_as_the_identity)
{
    struct accel_model *m = build("resnet20", false, 0, 0);
    static const char *const what[] = {"weight", "bias", "running_mean", "running_var"};
    for (int k = 0; k < 4; k++) {
        char name[64];
        snprintf(name, sizeof name, "stage1.1.bn2.%s", what[k]);
        const struct accel_tensor *t = tensor(m, name);
        ck_assert_uint_eq(t->n, 16);
        for (int i = 0; i < 16; i++)
            ck_assert_float_eq(((const float *)t->data)[i], k == 0 || k == 3);
    }
    accel_model_free(m);
}
END_TEST

START_TEST(linear_has_as_many_inputs_as_asked_for)
{
    struct accel_model *m = build("linear", true, 0, 13);
    ck_assert_uint_eq(params(m), 14);
    ck_assert_int_eq(tensor(m, "fc.weight")->dtype, ACCEL_F64);
    ck_assert_int_eq((int)m->graph->input[0]->declared.dim[1].n, 13);
    accel_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("new");
    TCase *t = tcase_create("new");
    tcase_add_test(t, parameter_counts_are_those_of_the_papers_and_tutorials);
    tcase_add_test(t, names_are_those_of_an_exported_network);
    tcase_add_test(t, weights_are_drawn_as_pytorch_draws_them);
    tcase_add_test(t, a_seed_gives_the_same_weights_and_another_seed_others);
    tcase_add_test(t, batch_norms_start_as_the_identity);
    tcase_add_test(t, linear_has_as_many_inputs_as_asked_for);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
