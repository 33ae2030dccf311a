/* Pruning configs: what they come to in both NNI dialects, and every refusal with its place. */
#include "tests/t.h"

#include "base/alloc.h"
#include "prune/prune_config.h"

#include <stdio.h>
#include <string.h>

static struct accel_config_file *file;
static struct accel_prune_config *config;

static void tidy(void)
{
    accel_prune_config_free(config);
    accel_config_free(file);
    config = NULL;
    file = NULL;
}

static enum accel_err parse_for(const char *text, const char *pruner)
{
    tidy();
    ck_ok(accel_config_read(&file, text));
    return accel_prune_config_parse(&config, file, pruner);
}
static enum accel_err parse(const char *text)
{
    return parse_for(text, NULL);
}

/* One entry with op_types and these keys. */
static enum accel_err parse_keys(const char *keys)
{
    char text[1000];
    snprintf(text, sizeof text, "[{\"op_types\": [\"Linear\"], %s}]", keys);
    return parse(text);
}

START_TEST(a_bare_list_is_level)
{
    ck_ok(parse("[{\"op_types\": [\"Linear\"], \"exclude_op_names\": [\"layer4\"], "
                "\"sparse_ratio\": 0.3}]"));
    const struct accel_sub_config *s = config->sub;
    ck_assert_str_eq(config->pruner, "level");
    ck_assert_int_eq(config->score, ACCEL_SCORE_MAGNITUDE);
    ck_assert_int_eq(config->pattern, ACCEL_PATTERN_ELEMENT);
    ck_assert_int_eq(config->n_sub, 1);
    ck_assert(!config->v2);
    ck_assert_int_eq(s->op_types.n, 1);
    ck_assert_str_eq(s->exclude_op_names.item[0]->text, "layer4");
    ck_assert(s->weight.on && !s->bias.on);
    ck_assert_double_eq(s->weight.sparse_ratio, 0.3);
    ck_assert(isnan(s->weight.sparse_threshold));
    ck_assert_double_eq(s->weight.min_ratio, 0);
    ck_assert_double_eq(s->weight.max_ratio, 1);
    ck_assert_ptr_null(s->weight.global_group);
}
END_TEST

START_TEST(an_object_has_its_keys)
{
    ck_ok(parse("{\"pruner\": \"nm\", \"n\": 1, \"m\": 8, \"allow_missing\": true, \"fine_tune\": "
                "null, \"strict_nni\": true, \"data\": \"mnist\", \"schedule\": {\"type\": "
                "\"one_shot\"}, \"repair\": \"none\", \"shrink\": false, \"round_to\": 1, "
                "\"config_list\": [{\"op_types\": [\"default\"]}]}"));
    ck_assert_int_eq(config->pattern, ACCEL_PATTERN_NM);
    ck_assert_int_eq(config->n, 1);
    ck_assert_int_eq(config->m, 8);
    ck_assert(config->allow_missing && config->strict_nni && !config->exclude_inputs);
    ck_assert_str_eq(config->data, "mnist");
    ck_ok(parse_for("[{\"op_types\": [\"default\"]}]", "nm"));
    ck_assert_int_eq(config->n, 2);
    ck_assert_int_eq(config->m, 4);
    ck_ok(parse("{\"pattern\": \"n:m\", \"config_list\": [{\"op_types\": [\"default\"]}]}"));
    ck_assert_int_eq(config->pattern, ACCEL_PATTERN_NM);
}
END_TEST

START_TEST(v2_keys_are_other_spellings)
{
    ck_ok(parse("[{\"op_partial_names\": [\"conv\"], \"sparsity\": 0.5},"
                " {\"op_names\": [\"a\"], \"sparsity_per_layer\": 1, "
                "\"max_sparsity_per_layer\": 0.8},"
                " {\"op_types\": [\"Linear\"], \"total_sparsity\": 0.25},"
                " {\"op_types\": [\"Linear\"], \"total_sparsity\": 0.25},"
                " {\"op_names\": [\"b\"], \"exclude\": true}]"));
    ck_assert(config->v2);
    ck_assert_str_eq(config->sub[0].op_partial_names.item[0]->text, "conv");
    ck_assert_double_eq(config->sub[0].weight.sparse_ratio, 0.5);
    ck_assert_double_eq(config->sub[1].weight.sparse_ratio, 1);
    ck_assert_double_eq(config->sub[1].weight.max_ratio, 0.8);
    ck_assert_double_eq(config->sub[2].weight.sparse_ratio, 0.25);
    ck_assert_str_ne(config->sub[2].weight.global_group, config->sub[3].weight.global_group);
    ck_assert(config->sub[4].exclude);
}
END_TEST

START_TEST(how_much_has_many_forms)
{
    ck_ok(parse_keys("\"sparse_ratio\": 1, \"global_group_id\": 7, \"granularity\": [4, -1]"));
    ck_assert_str_eq(config->sub->weight.global_group, "7");
    ck_assert_int_eq(config->sub->weight.granularity, ACCEL_GRAIN_BLOCK);
    ck_assert_int_eq(config->sub->weight.n_block, 2);
    ck_assert_int_eq(config->sub->weight.block[1], -1);
    ck_ok(parse_keys("\"sparse_threshold\": 2.5, \"granularity\": \"in_channel\""));
    ck_assert_double_eq(config->sub->weight.sparse_threshold, 2.5);
    ck_assert(isnan(config->sub->weight.sparse_ratio));
    ck_assert_int_eq(config->sub->weight.granularity, ACCEL_GRAIN_IN_CHANNEL);
}
END_TEST

START_TEST(targets_inherit_and_override)
{
    ck_ok(parse_keys("\"sparse_ratio\": 0.5, \"target_names\": [\"weight\", \"bias\"], "
                     "\"target_settings\": {\"bias\": {\"sparse_threshold\": 0.1}}"));
    ck_assert(config->sub->weight.on && config->sub->bias.on);
    ck_assert_double_eq(config->sub->weight.sparse_ratio, 0.5);
    ck_assert(isnan(config->sub->bias.sparse_ratio));
    ck_assert_double_eq(config->sub->bias.sparse_threshold, 0.1);
    ck_ok(parse_keys("\"sparse_ratio\": 0.5, \"target_settings\": {\"bias\": {\"align\": "
                     "{\"target_name\": \"weight\", \"dims\": [0]}}}"));
    ck_assert(config->sub->bias.on && config->sub->bias.align && !config->sub->weight.align);
    ck_ok(parse_keys("\"sparse_ratio\": 0.5, \"target_names\": [\"bias\"]"));
    ck_assert(!config->sub->weight.on);
}
END_TEST

START_TEST(contradictions_name_both_keys)
{
    static const struct {
        const char *keys, *a, *b;
    } c[] = {
        {"\"sparse_ratio\": 0.5, \"sparse_threshold\": 1", "sparse_ratio", "sparse_threshold"},
        {"\"sparse_ratio\": 0.5, \"sparsity\": 0.5", "sparse_ratio", "sparsity"},
        {"\"total_sparsity\": 0.5, \"global_group_id\": 1", "total_sparsity", "global_group_id"},
        {"\"sparse_threshold\": 0.5, \"global_group_id\": 1", "global_group_id",
         "sparse_threshold"},
        {"\"sparse_ratio\": 0.5, \"min_sparse_ratio\": 0.6, \"max_sparse_ratio\": 0.4", "0.6",
         "0.4"},
        {"\"sparsity\": 0.5, \"max_sparse_ratio\": 1, \"max_sparsity_per_layer\": 1",
         "max_sparse_ratio", "max_sparsity_per_layer"},
        {"\"sparsity\": 0.5, \"exclude\": true", "exclude", "sparsity"},
        {"\"sparse_ratio\": 0.5, \"align\": {\"target_name\": \"weight\"}", "align", "bias"},
        {"\"sparse_ratio\": 0.5, \"target_names\": [\"weight\"], \"target_settings\": {\"bias\": "
         "{}}",
         "target_names", "bias"},
        {"\"min_sparse_ratio\": 0.5", "sparse_ratio", "missing"},
        {"\"sparse_ratio\": 0.5, \"granularity\": [0]", "granularity", "not 0"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        ck_fails(parse_keys(c[i].keys), ACCEL_EARG, c[i].a);
        ck_assert_msg(strstr(accel_errmsg(), c[i].b) != NULL, "%s", accel_errmsg());
        ck_assert_msg(strncmp(accel_errmsg(), "--config:1:", 11) == 0, "%s", accel_errmsg());
    }
}
END_TEST

START_TEST(wrong_values_name_key_and_value)
{
    ck_fails(parse_keys("\"sparse_ratio\": 1.5"), ACCEL_EARG,
             "--config:1:43: sparse_ratio must be between 0 and 1, not 1.5");
    ck_fails(parse_keys("\"sparse_ratio\": -0.1"), ACCEL_EARG, "-0.1");
    ck_fails(parse_keys("\"sparse_ratio\": \"0.5\""), ACCEL_EARG,
             "sparse_ratio wants a number, not a text (0.5)");
    ck_fails(parse_keys("\"sparse_ratio\": true"), ACCEL_EARG, "not true or false");
    ck_fails(parse_keys("\"sparse_threshold\": 1e999"), ACCEL_EARG, "finite");
    ck_fails(parse_keys("\"sparse_ratio\": 0.5, \"op_names\": \"fc\""), ACCEL_EARG,
             "op_names wants a list of texts");
    ck_fails(parse_keys("\"sparse_ratio\": 0.5, \"op_names\": [1]"), ACCEL_EARG, "an item of");
    ck_fails(parse_keys("\"sparse_ratio\": 0.5, \"op_names\": []"), ACCEL_EARG, "empty");
    ck_fails(parse_keys("\"sparse_ratio\": 0.5, \"granularity\": \"out_chanel\""), ACCEL_EARG,
             "did you mean 'out_channel'");
    ck_fails(parse_keys("\"sparse_ratio\": 0.5, \"target_names\": [\"_input_\"]"), ACCEL_EARG,
             "'_input_' is not supported, only weight, bias");
    ck_fails(parse_keys("\"sparse_ratio\": 0.5, \"apply_method\": \"add\""), ACCEL_EARG, "mul");
    ck_fails(parse("[{\"sparse_ratio\": 0.5}]"), ACCEL_EARG, "--config:1:2: this entry selects");
    ck_fails(parse("[]"), ACCEL_EARG, "empty");
    ck_fails(parse("[1]"), ACCEL_EARG, "must be a map, not a number");
    ck_fails(parse("{}"), ACCEL_EARG, "config_list is missing");
    ck_fails(parse("[{\"op_names\": [\"b\"], \"exclude\": true}]"), ACCEL_EARG, "exclude");
}
END_TEST

START_TEST(unknown_keys_get_near_names_and_places)
{
    ck_fails(parse_keys("\"sparse_rato\": 0.3"), ACCEL_EARG,
             "--config:1:27: unknown key 'sparse_rato'; did you mean 'sparse_ratio'?");
    ck_fails(parse("{\"shrnk\": true}"), ACCEL_EARG, "did you mean 'shrink'?");
    ck_fails(parse("{\"sparse_ratio\": 1}"), ACCEL_EARG, "into the entries of config_list");
    ck_fails(parse_keys("\"pruner\": \"nm\""), ACCEL_EARG, "beside config_list");
    ck_fails(parse("{\"zzzzzzz\": 1}"), ACCEL_EARG, "unknown key 'zzzzzzz'");
    ck_fails(parse("{\"schedule\": {\"tims\": 1}}"), ACCEL_EARG, "'times'");
}
END_TEST

#define LIST "\"config_list\": [{\"op_types\": [\"default\"], \"sparse_ratio\": 0.5}]"

START_TEST(what_is_not_there_is_said)
{
    static const struct {
        const char *text, *says;
    } c[] = {
        {"{\"pruner\": \"l1_nrom\", " LIST "}", "1:12: pruner 'l1_nrom' is unknown; did you mean "
                                                "'l1_norm'?"},
        {"{\"pruner\": \"sparsegpt\", \"pattern\": \"channel\", " LIST "}",
         "pattern 'channel' needs"},
        {"{\"pruner\": \"apoz\", \"pattern\": \"element\", " LIST "}", "needs"},
        {"{\"pruner\": \"taylor\", " LIST "}", "gradients"},
        {"{\"score\": \"fpgm\", " LIST "}", "1:11: score 'fpgm' needs"},
        {"{\"score\": \"l2\", \"pattern\": \"block\", " LIST "}", "score 'l2' needs"},
        {"{\"pruner\": \"l1_norm\", \"config_list\": [{\"op_types\": [\"Conv\"], \"sparse_ratio\": "
         "1}]}",
         "sparse_ratio is 1"},
        {"{\"pattern\": \"block\", " LIST "}", "granularity"},
        {"{\"schedule\": {\"type\": \"agp\"}, " LIST "}", "schedule needs fine_tune"},
        {"{\"fine_tune\": {\"epochs\": 2}, " LIST "}", "fine_tune needs training"},
        {"{\"fine_tune\": {\"epoch\": 2}, " LIST "}", "epochs"},
        {"{\"target\": {\"macs\": 0.5}, " LIST "}", "target needs"},
        {"{\"regularize\": {\"type\": \"l1_bn\"}, " LIST "}", "regularize needs training"},
        {"{\"shrink\": true, " LIST "}", "shrink is for pruners that score channels"},
        {"{\"round_to\": 8, " LIST "}", "round_to"},
        {"{\"n\": 1, " LIST "}", "n is for pruner 'nm'"},
        {"{\"pruner\": \"nm\", \"n\": 4, \"config_list\": [{\"op_types\": [\"default\"]}]}",
         "n must be less than m, n is 4 and m is 4"},
        {"{\"pruner\": \"nm\", " LIST "}", "sparse_ratio contradicts"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        ck_fails(parse(c[i].text), ACCEL_EARG, c[i].says);
    ck_fails(parse_for("{" LIST "}", "l1_nrom"), ACCEL_EARG, "--pruner: 'l1_nrom'");
    ck_fails(parse_for("{" LIST "}", "taylor"), ACCEL_EARG, "pruner 'taylor' needs");
}
END_TEST

START_TEST(keys_from_the_command_line_are_judged_too)
{
    ck_ok(accel_config_read(&file, "{" LIST "}"));
    ck_ok(accel_config_set(file, "config_list.0.sparse_rato=0.75"));
    ck_fails(accel_prune_config_parse(&config, file, NULL), ACCEL_EARG,
             "--set config_list.0.sparse_rato: unknown key 'sparse_rato'");
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    ck_ok(accel_config_read(&file, "[{\"op_types\": [\"a\"], \"total_sparsity\": 0.5, "
                                   "\"granularity\": [4]}]"));
    for (long n = 1;; n++) {
        accel_alloc_fail_at(n, false);
        enum accel_err err = accel_prune_config_parse(&config, file, NULL);
        accel_alloc_fail_at(0, false);
        if (!err)
            break;
        ck_assert_int_eq(err, ACCEL_ENOMEM);
        ck_assert_int_lt(n, 100);
    }
}
END_TEST

static Suite *prune_config_suite(void)
{
    Suite *s = suite_create("prune_config");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, NULL, tidy);
    tcase_add_test(t, a_bare_list_is_level);
    tcase_add_test(t, an_object_has_its_keys);
    tcase_add_test(t, v2_keys_are_other_spellings);
    tcase_add_test(t, how_much_has_many_forms);
    tcase_add_test(t, targets_inherit_and_override);
    tcase_add_test(t, contradictions_name_both_keys);
    tcase_add_test(t, wrong_values_name_key_and_value);
    tcase_add_test(t, unknown_keys_get_near_names_and_places);
    tcase_add_test(t, what_is_not_there_is_said);
    tcase_add_test(t, keys_from_the_command_line_are_judged_too);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(prune_config_suite)
