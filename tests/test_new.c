/* test_new.c - the built-in networks: sizes, names, initial weights, determinism. */
#include "tests/t.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/plan.h"
#include "graph/infer.h"

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

/* Without batch norm's statistics and the scalars of formulas: what papers count. */
static uint64_t trainable(const struct accel_model *m)
{
    uint64_t n = 0;
    for (size_t i = 0; i < m->n_tensor; i++) {
        const struct accel_tensor *t = m->tensor[i];
        if (accel_dtype_is_float(t->dtype) && t->rank && !strstr(t->name, ".running_"))
            n += t->n;
    }
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

/* encoder: D 256, inner 1024. A layer: 4 (D² + D) + 2 · 1024 D + 1024 + D + 2 · 2 D. */
enum { ENCODER_LAYER = 4 * (65536 + 256) + 2 * 262144 + 1024 + 256 + 4 * 256 };

START_TEST(large_networks_have_the_published_parameter_counts)
{
    static const struct {
        const char *name;
        bool bias;
        uint64_t n;
    } want[] = {
        {"resnet18", true, 11689512},
        {"resnet18", false, 11689512 - 1000},
        {"resnet50", true, 25557032},
        {"mobilenet-v2", true, 3504872},
        {"densenet121", true, 7978856},
        /* the common U-Net of twice the width has 31,036,546 with two classes */
        {"unet", true, 7762498},
        {"unet", false, 7762498 - (256 + 128 + 64 + 32) - 2},
        {"encoder", true, (8192 + 512 + 2) * 256 + 6 * ENCODER_LAYER + 65536 + 256 + 2 * 256 + 2},
        /* no biases; the embedding is the output layer */
        {"gpt", true, (4096 + 256) * 256 + 6 * (4 * 65536 + 2 * 262144 + 2 * 256) + 256}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct accel_model *m = build(want[i].name, want[i].bias, 0, 0);
        ck_assert_msg(trainable(m) == want[i].n, "%s: %llu", want[i].name,
                      (unsigned long long)trainable(m));
        accel_model_free(m);
    }
}
END_TEST

START_TEST(large_networks_are_named_as_exporters_name_them)
{
    static const struct {
        const char *network, *value;
    } want[] = {
        {"resnet18", "/layer1/layer1.0/conv1/Conv_output_0"},
        {"resnet18", "/layer2/layer2.0/downsample/downsample.0/Conv_output_0"},
        {"resnet18", "layer4.1.bn2.running_var"},
        {"resnet50", "/layer1/layer1.0/relu_2/Relu_output_0"},
        {"resnet50", "layer3.5.conv3.weight"},
        {"mobilenet-v2", "/features/features.2/conv/conv.1/conv.1.0/Conv_output_0"},
        {"mobilenet-v2", "features.1.conv.0.0.weight"},
        {"mobilenet-v2", "classifier.1.weight"},
        {"densenet121", "/features/denseblock1/denselayer1/conv2/Conv_output_0"},
        {"densenet121", "features.transition3.norm.weight"},
        {"unet", "/up1/up/ConvTranspose_output_0"},
        {"unet", "down4.maxpool_conv.1.double_conv.3.weight"},
        {"encoder", "encoder.layer.5.attention.self.query.weight"},
        {"encoder", "/Range_output_0"},
        {"gpt", "h.0.mlp.fc.weight"},
        {"gpt", "/lm_head/Transpose_output_0"},
    };
    struct accel_model *m = NULL;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        if (!i || strcmp(want[i].network, want[i - 1].network)) {
            accel_model_free(m);
            m = build(want[i].network, true, 0, 0);
        }
        ck_assert_msg(accel_value_find(m->graph, want[i].value) != NULL, "%s has no %s",
                      want[i].network, want[i].value);
    }
    accel_model_free(m);
}
END_TEST

static double variance(const struct accel_tensor *t)
{
    double squares = 0;
    for (uint64_t i = 0; i < t->n; i++)
        squares += (double)((const float *)t->data)[i] * ((const float *)t->data)[i];
    return squares / (double)t->n;
}

/* The variance of each rule, to 2 %, and biases of 0. */
START_TEST(large_networks_are_drawn_by_kaimings_rule_or_normally)
{
    static const struct {
        const char *network, *weight;
        double variance;
    } want[] = {{"resnet18", "layer4.1.conv2.weight", 2.0 / (512 * 9)},
                {"resnet18", "fc.weight", 1.0 / 512 / 3},
                {"mobilenet-v2", "features.17.conv.1.0.weight", 2.0 / 9}, /* depthwise */
                {"mobilenet-v2", "classifier.1.weight", 1e-4},
                {"unet", "up1.up.weight", 2.0 / 512},
                {"unet", "up1.up.bias", 0},
                {"encoder", "encoder.layer.0.intermediate.dense.weight", 4e-4},
                {"encoder", "encoder.layer.0.intermediate.dense.bias", 0},
                {"gpt", "h.5.mlp.fc.weight", 4e-4},
                {"gpt", "h.5.mlp.proj.weight", 4e-4 / 12}};
    struct accel_model *m = NULL;
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        if (!i || strcmp(want[i].network, want[i - 1].network)) {
            accel_model_free(m);
            m = build(want[i].network, true, 0, 0);
        }
        ck_assert_double_eq_tol(variance(tensor(m, want[i].weight)), want[i].variance,
                                0.03 * want[i].variance + 1e-12);
    }
    accel_model_free(m);
}
END_TEST

/* Mean, kurtosis and reach of what normal weights are: 3 - 0.1 and +-6 by construction. */
START_TEST(normal_weights_have_the_moments_of_a_normal_distribution)
{
    struct accel_model *m = build("gpt", true, 5, 0);
    const struct accel_tensor *t = tensor(m, "wte.weight");
    double mean = 0, fourth = 0, most = 0;
    for (uint64_t i = 0; i < t->n; i++) {
        double z = (double)((const float *)t->data)[i] / 0.02;
        mean += z / (double)t->n;
        fourth += z * z * z * z / (double)t->n;
        most = fmax(most, fabs(z));
    }
    ck_assert_double_eq_tol(mean, 0, 0.005);
    ck_assert_double_eq_tol(variance(t), 4e-4, 4e-6);
    ck_assert_double_eq_tol(fourth, 2.9, 0.05);
    ck_assert(most > 4 && most <= 6);
    accel_model_free(m);
}
END_TEST

/* Input of this size from a fixed sequence; the output [n] is a copy, its dims in dim[4]. */
static float *run(struct accel_model *m, int64_t *n, int64_t dim[4], int64_t length)
{
    struct accel_device *device;
    struct accel_plan *p;
    for (size_t i = 0; i < m->graph->n_node; i++) { /* what reading a file does */
        struct accel_node *node = m->graph->node[i];
        ck_ok(node->op->parse ? node->op->parse(node, 17) : ACCEL_OK);
    }
    ck_ok(accel_model_infer(m));
    for (int i = 0; i < m->graph->output[0]->declared.rank; i++) /* T stays T to the end */
        ck_assert(accel_dim_same(m->graph->output[0]->declared.dim[i],
                                 m->graph->output[0]->shape.dim[i]));
    ck_ok(accel_device_cpu(&device));
    ck_ok(accel_plan_new(&p, m, &(struct accel_plan_options){.device = device}));
    const struct accel_value *in = accel_plan_input(p, 0);
    bool tokens = in->declared_dtype == ACCEL_I64;
    int64_t x_dim[4] = {2, length};
    size_t size = 2;
    for (int i = 1; i < in->declared.rank; i++) {
        x_dim[i] = tokens ? length : in->declared.dim[i].n;
        size *= (size_t)x_dim[i];
    }
    void *x = calloc(size, 8);
    ck_assert_ptr_nonnull(x);
    for (size_t i = 0; i < size; i++)
        if (tokens)
            ((int64_t *)x)[i] = (int64_t)(i * 37 % 1000);
        else
            ((float *)x)[i] = (float)(i * 7919 % 1009) / 300 - 1.68F;
    struct accel_array a = {in->declared_dtype, in->declared.rank, x_dim, (int64_t)size, x};
    ck_ok(accel_plan_set_input(p, 0, &a));
    ck_ok(accel_plan_run(p));
    const struct accel_array *y = accel_plan_output(p, 0);
    *n = (int64_t)y->n;
    for (int i = 0; i < y->rank; i++)
        dim[i] = y->dim[i];
    float *out = malloc((size_t)*n * sizeof *out);
    ck_assert_ptr_nonnull(out);
    memcpy(out, y->data, (size_t)*n * sizeof *out);
    free(x);
    accel_plan_free(p);
    if (device)
        device->free(device);
    return out;
}

/* Signals neither fade nor explode: the spread of the outputs is that of what was put in, give or
 * take what residual sums add (each block of a fresh ResNet about doubles the variance). */
START_TEST(outputs_have_their_shape_and_are_neither_constant_nor_extreme)
{
    static const struct {
        const char *name;
        int64_t dim[4];
        double least, most;
    } want[] = {{"resnet18", {2, 1000}, 1, 100},     {"mobilenet-v2", {2, 1000}, 0.1, 10},
                {"densenet121", {2, 1000}, 0.1, 10}, {"unet", {2, 2, 128, 128}, 0.1, 20},
                {"encoder", {2, 2}, 1e-3, 1},        {"gpt", {2, 11, 4096}, 0.1, 1}};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        struct accel_model *m = build(want[i].name, true, 0, 0);
        int64_t n, dim[4] = {0};
        float *y = run(m, &n, dim, 11);
        ck_assert_mem_eq(dim, want[i].dim, sizeof dim);
        double mean = 0, spread = 0;
        for (int64_t k = 0; k < n; k++)
            mean += y[k] / (double)n;
        for (int64_t k = 0; k < n; k++)
            spread += (y[k] - mean) * (y[k] - mean) / (double)n;
        spread = sqrt(spread);
        ck_assert_msg(spread > want[i].least && spread < want[i].most, "%s: %g", want[i].name,
                      spread);
        free(y);
        accel_model_free(m);
    }
}
END_TEST

/* What comes later changes nothing before it: 5 tokens give what the first 5 of 11 give. */
START_TEST(gpt_does_not_look_ahead)
{
    struct accel_model *m = build("gpt", true, 0, 0);
    int64_t n, few_n, dim[4];
    float *all = run(m, &n, dim, 11), *few = run(m, &few_n, dim, 5);
    ck_assert_int_eq((int)few_n, 2 * 5 * 4096);
    for (int64_t i = 0; i < 5 * 4096; i++)
        ck_assert_msg(fabsf(all[i] - few[i]) < 1e-5F, "%g, %g at %lld", (double)all[i],
                      (double)few[i], (long long)i);
    free(all);
    free(few);
    accel_model_free(m);
}
END_TEST

/* The first 20 allocations and ever fewer to the last; leaks are the sanitizer's to find. */
START_TEST(a_failed_allocation_while_a_network_is_built_is_enomem)
{
    static const char *const name[] = {"encoder", "gpt", "mobilenet-v2", "unet"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
        const struct accel_network *w = accel_network_table;
        while (strcmp(w->name, name[i]))
            w++;
        long tried = 0, step = 1;
        for (long nth = 1;; nth += step, tried++) {
            struct accel_draft d = {.bias = true};
            accel_alloc_fail_at(nth, false);
            enum accel_err err = accel_network_build(&d, w, 0);
            long count = accel_alloc_count();
            accel_alloc_fail_at(0, false);
            if (!err) {
                ck_assert_int_lt(count, nth);
                accel_model_free(d.m);
                break;
            }
            ck_assert_int_eq(err, ACCEL_ENOMEM);
            ck_assert_ptr_null(d.m);
            step = tried < 20 ? 1 : 1 + nth / 4;
        }
        ck_assert_int_gt(tried, 20);
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
    a = build("gpt", true, 3, 0);
    b = build("gpt", true, 3, 0);
    c = build("gpt", true, 4, 0);
    for (size_t i = 0; i < a->n_tensor; i++)
        ck_assert_mem_eq(a->tensor[i]->data, b->tensor[i]->data, a->tensor[i]->size);
    x = tensor(a, "h.3.attn.k.weight");
    ck_assert_mem_ne(x->data, tensor(c, "h.3.attn.k.weight")->data, x->size);
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
    tcase_set_timeout(t, 200);
    tcase_add_test(t, large_networks_have_the_published_parameter_counts);
    tcase_add_test(t, large_networks_are_named_as_exporters_name_them);
    tcase_add_test(t, large_networks_are_drawn_by_kaimings_rule_or_normally);
    tcase_add_test(t, normal_weights_have_the_moments_of_a_normal_distribution);
    tcase_add_test(t, outputs_have_their_shape_and_are_neither_constant_nor_extreme);
    tcase_add_test(t, a_failed_allocation_while_a_network_is_built_is_enomem);
    tcase_add_test(t, gpt_does_not_look_ahead);
    tcase_add_test(t, names_are_those_of_an_exported_network);
    tcase_add_test(t, weights_are_drawn_as_pytorch_draws_them);
    tcase_add_test(t, a_seed_gives_the_same_weights_and_another_seed_others);
    tcase_add_test(t, batch_norms_start_as_the_identity);
    tcase_add_test(t, linear_has_as_many_inputs_as_asked_for);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
