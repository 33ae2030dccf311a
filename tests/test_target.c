/* Selection on small models built in memory, with operators of our own: what is a weight, what its
 * axes are behind carriers, who is selected, excluded or missing, and what errors say. */
#include "tests/t.h"

#include "base/alloc.h"
#include "graph/attr.h"
#include "prune/target.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* A Gemm-like operator: y = x w^T + b, w [out, in]. */
static int gemm_weights(const struct accel_node *n, struct accel_weight w[4])
{
    w[0] = (struct accel_weight){1, 2, 0, 1, -1, "Linear", false, n->n_in > 2 ? 2 : -1, 0, 0};
    return 1;
}
static int conv_weights(const struct accel_node *n, struct accel_weight w[4])
{
    w[0] = (struct accel_weight){1, 4, 0, 1, -1, "Conv2d", false, n->n_in > 2 ? 2 : -1, 0, 0};
    return 1;
}
static int norm_weights(const struct accel_node *n, struct accel_weight w[4])
{
    (void)n;
    w[0] = (struct accel_weight){1, 1, 0, -1, -1, "BatchNorm2d", true, 2, 0, 0};
    return 1;
}
static int same(const struct accel_node *n, int axis)
{
    (void)n;
    return axis;
}
static int swapped(const struct accel_node *n, int axis)
{
    (void)n;
    return 1 - axis;
}
static int lost(const struct accel_node *n, int axis)
{
    (void)n;
    (void)axis;
    return -1;
}
static const struct accel_op gemm = {.name = "Gemm", .weights = gemm_weights},
                             conv = {.name = "Conv", .weights = conv_weights},
                             norm = {.name = "BatchNormalization", .weights = norm_weights},
                             identity = {.name = "Identity", .carry = same},
                             transpose = {.name = "Transpose", .carry = swapped},
                             reshape = {.name = "Reshape", .carry = lost},
                             dequant = {.name = "DequantizeLinear", .carry = same},
                             relu = {.name = "Relu"};

static struct accel_model *model;
static struct accel_graph *graph; /* where nodes go */
static struct accel_config_file *file;
static struct accel_prune_config *config;
static struct accel_targets *targets;
static struct accel_log warnings;
static int n_values;

static void setup(void)
{
    ck_ok(accel_model_new(&model, 17));
    graph = model->graph;
}
static void tidy(void)
{
    accel_targets_free(targets);
    accel_prune_config_free(config);
    accel_config_free(file);
    accel_model_free(model);
    accel_log_clear(&warnings);
    targets = NULL;
    config = NULL;
    file = NULL;
}

static struct accel_value *value(const char *name)
{
    struct accel_value *v;
    char buf[32];
    snprintf(buf, sizeof buf, "v%d", n_values++);
    ck_ok(accel_value_new(&v, graph, name ? name : buf));
    return v;
}

static struct accel_value *typed(const char *name, enum accel_dtype dtype, int rank, int64_t d0,
                                 int64_t d1)
{
    struct accel_value *v = value(name);
    struct accel_tensor *t = ACCEL_NEW(&model->arena, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(&model->arena, int64_t, 4);
    dim[0] = d0;
    dim[1] = d1;
    dim[2] = dim[3] = 1;
    t->name = v->name;
    t->dtype = dtype;
    t->rank = rank;
    t->dim = dim;
    t->n = (uint64_t)(rank > 1 ? d0 * d1 : d0);
    v->tensor = t;
    v->dtype = dtype;
    ck_ok(accel_model_add_tensor(model, t));
    return v;
}
static struct accel_value *matrix(const char *name)
{
    return typed(name, ACCEL_F32, 2, 6, 4);
}

/* A node "/MODULE/OP" (or without a name) that reads a and b and c (NULL: fewer). */
static struct accel_value *node(const struct accel_op *op, const char *module,
                                struct accel_value *a, struct accel_value *b, struct accel_value *c)
{
    struct accel_value *in[] = {a, b, c}, *out = value(NULL);
    struct accel_node *n;
    char name[100] = "";
    if (module)
        snprintf(name, sizeof name, "/%s/%s", module, op->name);
    ck_ok(accel_node_new(&n, graph, op, op->name, "", name, in, c ? 3 : b ? 2 : 1, &out, 1));
    if (module)
        n->module = accel_arena_strndup(&model->arena, module, strlen(module));
    return out;
}

/* conv1, conv2, bn1, fc1 with a bias, fc2: the usual names of an export. */
static void usual(void)
{
    struct accel_value *y = value("x");
    y = node(&conv, "conv1", y, typed("conv1.weight", ACCEL_F32, 4, 4, 3), NULL);
    y = node(&norm, "bn1", y, typed("bn1.weight", ACCEL_F32, 1, 4, 1),
             typed("bn1.bias", ACCEL_F32, 1, 4, 1));
    y = node(&conv, "conv2", y, typed("conv2.weight", ACCEL_F32, 4, 4, 4), NULL);
    struct accel_value *w = matrix("fc1.weight");
    y = node(&gemm, "fc1", node(&relu, "act", y, NULL, NULL), w,
             typed("fc1.bias", ACCEL_F32, 1, 6, 1));
    node(&gemm, "layer3.0.fc", y, matrix("layer3.0.fc.weight"), NULL);
}

static enum accel_err select_by(const char *text)
{
    accel_targets_free(targets);
    accel_prune_config_free(config);
    accel_config_free(file);
    targets = NULL;
    config = NULL;
    file = NULL;
    ck_ok(accel_config_read(&file, text));
    ck_ok(accel_prune_config_parse(&config, file, NULL));
    return accel_targets_build(&targets, model, config, &warnings);
}

/* One entry at ratio 0.5. */
static enum accel_err select_with(const char *keys)
{
    char text[500];
    snprintf(text, sizeof text, "[{%s, \"sparse_ratio\": 0.5}]", keys);
    return select_by(text);
}

static const struct accel_target *row(const char *name)
{
    for (int i = 0; i < targets->n; i++)
        if (strcmp(targets->at[i].name, name) == 0)
            return &targets->at[i];
    return NULL;
}

/* The names of the selected rows, with blanks between them, in the model's order. */
static const char *selected(void)
{
    static char text[500];
    text[0] = '\0';
    for (int i = 0; i < targets->n; i++)
        if (targets->at[i].sub) {
            ck_assert_str_eq(targets->at[i].reason, "selected");
            snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", *text ? " " : "",
                     targets->at[i].name);
        }
    return text;
}

#define chooses(keys, want)                                                                        \
    do {                                                                                           \
        ck_ok(select_with(keys));                                                                  \
        ck_assert_str_eq(selected(), want);                                                        \
    } while (0)

START_TEST(types_select)
{
    usual();
    chooses("\"op_types\": [\"Conv2d\"]", "conv1.weight conv2.weight");
    chooses("\"op_types\": [\"Conv\"]", "conv1.weight conv2.weight");
    chooses("\"op_types\": [\"Linear\"]", "fc1.weight layer3.0.fc.weight");
    chooses("\"op_types\": [\"default\"]",
            "conv1.weight conv2.weight fc1.weight layer3.0.fc.weight");
    chooses("\"op_types\": [\"Linear\", \"ConvTranspose2d\"]", "fc1.weight layer3.0.fc.weight");
    chooses("\"op_types\": [\"BatchNorm2d\"]", "bn1.weight");
    ck_assert_int_eq(row("bn1.weight")->kind, ACCEL_TARGET_NORM);
}
END_TEST

START_TEST(names_select)
{
    usual();
    chooses("\"op_names\": [\"fc1\"]", "fc1.weight");
    chooses("\"op_names\": [\"/conv2/Conv\"]", "conv2.weight");
    chooses("\"op_names\": [\"layer3.0.fc.weight\"]", "layer3.0.fc.weight");
    chooses("\"op_names\": [\"fc1\", \"conv1\"], \"op_types\": [\"Linear\"]", "fc1.weight");
    chooses("\"op_names\": [\"fc1\"], \"op_names_re\": [\"conv[12]\"]",
            "conv1.weight conv2.weight fc1.weight");
    chooses("\"op_names_re\": [\".*\"]", "conv1.weight conv2.weight fc1.weight layer3.0.fc.weight");
    chooses("\"op_names\": [\"bn1\"]", "bn1.weight");
    chooses("\"op_partial_names\": [\"r3.0\"]", "layer3.0.fc.weight");
    chooses("\"op_types\": [\"default\"], \"exclude_op_names_re\": [\"conv\\\\d\", \"lay\"]",
            "fc1.weight");
    ck_assert_str_eq(row("conv1.weight")->reason, "excluded");
    chooses("\"op_types\": [\"Linear\"], \"exclude_op_names\": [\"layer3.0.fc\", \"act\"]",
            "fc1.weight");
    ck_assert_str_eq(row("layer3.0.fc.weight")->reason, "excluded");
    ck_assert_str_eq(row("conv1.weight")->reason, "not selected");
    ck_assert_ptr_null(row("fc1.bias"));
    ck_assert_int_eq(targets->n, 4);
}
END_TEST

START_TEST(an_exact_name_beats_a_module_path)
{
    struct accel_value *y = node(&gemm, "enc", value("x"), matrix("enc.weight"), NULL);
    struct accel_value *in[] = {y, matrix("other")}, *out = value(NULL);
    struct accel_node *n;
    ck_ok(accel_node_new(&n, graph, &gemm, "MatMul", "", "enc", in, 2, &out, 1));
    chooses("\"op_names\": [\"enc\"]", "other");
}
END_TEST

START_TEST(what_matches_nothing_is_an_error_with_near_names)
{
    usual();
    ck_fails(select_with("\"op_names\": [\"fc3\"]"), ACCEL_EARG,
             "--config:1:16: op_names 'fc3' matches nothing; did you mean 'fc1'?");
    ck_fails(select_with("\"op_names\": [\"layer3\"]"), ACCEL_EARG,
             "op_names_re: [\"layer3\\\\..*\"]");
    ck_fails(select_with("\"op_names\": [\"act\"]"), ACCEL_EARG, "Relu has no constant weight");
    ck_fails(select_with("\"op_names\": [\"fc1.bias\"]"), ACCEL_EARG, "is a bias");
    ck_fails(select_with("\"op_types\": [\"Conv2D\"]"), ACCEL_EARG, "did you mean 'Conv2d'?");
    ck_fails(select_with("\"op_types\": [\"LSTM\"]"), ACCEL_EARG, "LSTM' matches nothing");
    ck_fails(select_with("\"op_names_re\": [\"fc9\"]"), ACCEL_EARG, "fc9' matches nothing");
    ck_fails(select_with("\"op_names_re\": [\"(?=a)\"]"), ACCEL_EARG, "op_names_re '(?=a)': ");
    ck_fails(select_with("\"op_types\": [\"Conv2d\"], \"exclude_op_names\": [\"conv3\"]"),
             ACCEL_EARG, "did you mean 'conv1'?");
    ck_ok(select_by("{\"allow_missing\": true, \"config_list\": [{\"op_names\": [\"ghost\", "
                    "\"fc1\"], \"sparse_ratio\": 0.5}]}"));
    ck_assert_str_eq(selected(), "fc1.weight");
    ck_assert_uint_eq(warnings.n, 1);
    ck_assert(strstr(warnings.text[0], "'ghost'") != NULL);
}
END_TEST

START_TEST(default_on_a_model_without_weights_is_fine)
{
    node(&relu, "act", value("x"), NULL, NULL);
    ck_ok(select_with("\"op_types\": [\"default\"]"));
    ck_assert_int_eq(targets->n, 0);
}
END_TEST

START_TEST(the_first_entry_wins_and_with_v2_keys_the_last)
{
    usual();
    ck_ok(select_by("[{\"op_names\": [\"fc1\"], \"sparse_ratio\": 0.25},"
                    "{\"op_types\": [\"Linear\"], \"sparse_ratio\": 0.75}]"));
    ck_assert_double_eq(row("fc1.weight")->setting->sparse_ratio, 0.25);
    ck_assert_double_eq(row("layer3.0.fc.weight")->setting->sparse_ratio, 0.75);
    ck_ok(select_by("[{\"op_names\": [\"fc1\"], \"sparsity\": 0.25},"
                    "{\"op_types\": [\"Linear\"], \"sparse_ratio\": 0.75}]"));
    ck_assert_double_eq(row("fc1.weight")->setting->sparse_ratio, 0.75);
}
END_TEST

START_TEST(v2_exclude_acts_on_entries_before_it)
{
    usual();
    ck_ok(select_by("[{\"op_types\": [\"Linear\", \"Conv2d\"], \"sparsity\": 0.5},"
                    "{\"op_types\": [\"Conv2d\"], \"op_names\": [\"conv2\", \"fc1\"], "
                    "\"exclude\": true}]"));
    ck_assert_str_eq(selected(), "conv1.weight fc1.weight layer3.0.fc.weight");
    ck_ok(select_by("[{\"op_types\": [\"Linear\"], \"sparsity\": 0.5}, {\"op_types\": "
                    "[\"Linear\"], \"exclude\": true}, {\"op_names\": [\"fc1\"], \"sparsity\": "
                    "0.5}]"));
    ck_assert_str_eq(selected(), "fc1.weight");
    ck_assert_str_eq(row("layer3.0.fc.weight")->reason, "excluded");
}
END_TEST

START_TEST(axes_go_through_carriers)
{
    struct accel_value *x = value("x");
    struct accel_value *t = node(&transpose, "t", matrix("a"), NULL, NULL);
    node(&gemm, "one", x, node(&identity, "i", t, NULL, NULL), NULL);
    node(&gemm, "two", x,
         node(&reshape, "r", matrix("b"), typed("shape", ACCEL_I64, 1, 2, 1), NULL), NULL);
    ck_ok(select_with("\"op_types\": [\"default\"]"));
    ck_assert_str_eq(selected(), "a b");
    ck_assert_int_eq(row("a")->weight.out_axis, 1);
    ck_assert_int_eq(row("a")->weight.in_axis, 0);
    ck_assert_ptr_null(row("a")->axis_note);
    ck_assert_int_eq(row("b")->weight.out_axis, -1);
    ck_assert_str_eq(row("b")->axis_note, "Reshape '/r/Reshape'");
    ck_assert_str_eq(row("a")->node->name, "/one/Gemm");
}
END_TEST

START_TEST(integers_behind_a_scale_are_weights)
{
    struct accel_value *x = value("x"), *q = typed("q", ACCEL_I8, 2, 6, 4);
    struct accel_value *s = typed("s", ACCEL_F32, 1, 6, 1), *z = typed("z", ACCEL_I8, 1, 6, 1);
    struct accel_value *y = node(&dequant, "dq", q, s, z);
    ck_ok(accel_attr_set_int(y->producer, "axis", 0));
    node(&gemm, "fc", x, node(&transpose, "t", y, NULL, NULL), NULL);
    node(&gemm, "raw", x, typed("ints", ACCEL_I8, 2, 6, 4), NULL);
    node(
        &gemm, "blocked", x,
        node(&dequant, "dq2", typed("p", ACCEL_I8, 2, 6, 4), typed("ps", ACCEL_F32, 2, 6, 2), NULL),
        NULL);
    ck_ok(select_with("\"op_types\": [\"default\"]"));
    ck_assert_str_eq(selected(), "q p");
    ck_assert_ptr_eq(row("q")->scale, s->tensor);
    ck_assert_ptr_eq(row("q")->zero_point, z->tensor);
    ck_assert_int_eq(row("q")->scale_axis, 0);
    ck_assert_int_eq(row("q")->weight.out_axis, 1);
    ck_assert(row("p")->block_scales && !row("q")->block_scales);
    ck_assert_ptr_null(row("ints"));
}
END_TEST

START_TEST(a_shared_weight_has_one_row)
{
    struct accel_value *x = value("x"), *w = matrix("w");
    node(&gemm, "a", x, w, NULL);
    node(&gemm, "b", x, w, NULL);
    node(&gemm, "c", x, node(&transpose, "t", matrix("u"), NULL, NULL), NULL);
    node(&gemm, "d", x, accel_value_find(graph, "u"), NULL);
    chooses("\"op_types\": [\"default\"]", "w u");
    ck_assert_int_eq(row("w")->n_reader, 2);
    ck_assert_int_eq(row("w")->weight.out_axis, 0);
    ck_assert_int_eq(row("u")->weight.out_axis, -1);
    ck_assert_str_eq(row("u")->axis_note, "its readers see different axes");
    chooses("\"op_names\": [\"b\"]", "w");
    ck_ok(select_with("\"op_types\": [\"default\"], \"exclude_op_names\": [\"a\"]"));
    ck_assert_str_eq(selected(), "u");
    ck_assert_str_eq(row("w")->reason, "excluded");
}
END_TEST

START_TEST(biases_come_with_their_weights_when_named)
{
    usual();
    ck_ok(select_with("\"op_types\": [\"Linear\"], \"target_names\": [\"weight\", \"bias\"]"));
    ck_assert_str_eq(selected(), "fc1.weight fc1.bias layer3.0.fc.weight");
    ck_assert_ptr_eq(row("fc1.bias")->weight_of_bias, row("fc1.weight"));
    ck_assert_ptr_eq(row("fc1.bias")->setting, &config->sub[0].bias);
    ck_ok(select_with("\"op_types\": [\"Linear\"], \"target_names\": [\"bias\"]"));
    ck_assert_str_eq(selected(), "fc1.bias");
    ck_ok(select_with("\"op_types\": [\"Linear\"], \"target_names\": [\"weight\", \"bias\"], "
                      "\"exclude_op_names\": [\"fc1.bias\"]"));
    ck_assert_str_eq(selected(), "fc1.weight layer3.0.fc.weight");
}
END_TEST

START_TEST(other_matrices_have_rows_too)
{
    node(&relu, "act", matrix("table"), NULL, NULL);
    matrix("unread");
    node(&relu, "act2", typed("ids", ACCEL_I64, 2, 2, 2), NULL, NULL);
    node(&relu, "act3", typed("vector", ACCEL_F32, 1, 2, 1), NULL, NULL);
    ck_ok(select_with("\"op_types\": [\"default\"]"));
    ck_assert_int_eq(targets->n, 1);
    ck_assert_str_eq(targets->at[0].name, "table");
    ck_assert_str_eq(targets->at[0].reason, "not selected");
    ck_assert_int_eq(targets->at[0].kind, ACCEL_TARGET_OTHER);
}
END_TEST

START_TEST(weights_of_subgraphs_have_long_names)
{
    struct accel_value *y = node(&relu, "if", value("x"), NULL, NULL);
    struct accel_graph *body;
    ck_ok(accel_graph_new(&body, model, model->graph));
    body->parent_node = y->producer;
    body->parent_attr = "then_branch";
    graph = body;
    node(&gemm, NULL, y, matrix("w"), NULL);
    chooses("\"op_names\": [\"/if/Relu/then_branch/w\"]", "/if/Relu/then_branch/w");
    chooses("\"op_names\": [\"w\"]", "/if/Relu/then_branch/w");
}
END_TEST

START_TEST(ten_thousand_nodes_and_slow_patterns_take_no_time)
{
    struct accel_value *x = value("x");
    char name[64];
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof name, "layer%d.weight", i);
        node(&gemm, NULL, x, matrix(name), NULL);
    }
    clock_t start = clock();
    ck_ok(
        select_with("\"op_names_re\": [\"layer\\\\d+5\\\\.\", \"((a+)+)+\", \"(.*)(.*)(.*)9.w\"], "
                    "\"exclude_op_names\": [\"layer5\"]"
                    ", \"exclude_op_names_re\": [\"layer1\"]") == ACCEL_EARG
            ? ACCEL_OK
            : ACCEL_EARG); /* the second matches nothing */
    ck_fails(select_with("\"op_names_re\": [\"(.*)(.*)(.*)9.w\", \"((a+)+)+\"]"), ACCEL_EARG,
             "'((a+)+)+' matches nothing");
    ck_ok(select_with("\"op_names_re\": [\"layer\\\\d+5\\\\.\"]"));
    ck_assert_int_eq(targets->n, 10000);
    ck_assert_str_eq(row("layer15.weight")->reason, "selected");
    ck_assert_str_eq(row("layer51.weight")->reason, "not selected");
    ck_assert_double_lt((double)(clock() - start) / CLOCKS_PER_SEC, 20);
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    usual();
    ck_ok(select_with("\"op_names_re\": [\"fc\"], \"exclude_op_names\": [\"conv1\"]"));
    for (long n = 1;; n++) {
        accel_targets_free(targets);
        targets = NULL;
        accel_alloc_fail_at(n, n % 2);
        enum accel_err err = accel_targets_build(&targets, model, config, NULL);
        accel_alloc_fail_at(0, false);
        if (!err)
            break;
        ck_assert_int_eq(err, ACCEL_ENOMEM);
        ck_assert_int_lt(n, 1000);
    }
}
END_TEST

static Suite *target_suite(void)
{
    Suite *s = suite_create("target");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, tidy);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, types_select);
    tcase_add_test(t, names_select);
    tcase_add_test(t, an_exact_name_beats_a_module_path);
    tcase_add_test(t, what_matches_nothing_is_an_error_with_near_names);
    tcase_add_test(t, default_on_a_model_without_weights_is_fine);
    tcase_add_test(t, the_first_entry_wins_and_with_v2_keys_the_last);
    tcase_add_test(t, v2_exclude_acts_on_entries_before_it);
    tcase_add_test(t, axes_go_through_carriers);
    tcase_add_test(t, integers_behind_a_scale_are_weights);
    tcase_add_test(t, a_shared_weight_has_one_row);
    tcase_add_test(t, biases_come_with_their_weights_when_named);
    tcase_add_test(t, other_matrices_have_rows_too);
    tcase_add_test(t, weights_of_subgraphs_have_long_names);
    tcase_add_test(t, ten_thousand_nodes_and_slow_patterns_take_no_time);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(target_suite)
