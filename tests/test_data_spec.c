/* Data sets as users name them: the text form, the object form, and what is refused. */
#include <string.h>

#include "data/data_spec.h"
#include "tests/t.h"

static struct accel_data_spec *s;

static void end(void)
{
    accel_data_spec_free(s);
    s = NULL;
}

#define parse(text) (end(), accel_data_spec_parse(&s, text))

/* The object form. */
static enum accel_err read(const char *text)
{
    struct accel_config_file *f;
    end();
    ck_ok(accel_config_read(&f, text));
    enum accel_err err = accel_data_spec_read(&s, f->root);
    accel_config_free(f);
    return err;
}

START_TEST(all_parts_of_the_text_form_are_read)
{
    ck_ok(parse("fashion-mnist"));
    ck_assert_str_eq(s->kind, "fashion-mnist");
    ck_assert_ptr_null(s->path);
    ck_assert(s->split == ACCEL_SPLIT_DEFAULT && s->limit == 0 && s->shuffle == -1);
    ck_ok(parse("folder:/a/b?split=test&limit=10&mean=0.5,0.25,1e-1&std=2&resize=256&crop=224"
                "&shuffle=1&batch=8"));
    ck_assert_str_eq(s->kind, "folder");
    ck_assert_str_eq(s->path, "/a/b");
    ck_assert(s->split == ACCEL_SPLIT_TEST && s->limit == 10 && s->resize == 256);
    ck_assert(s->crop == 224 && s->shuffle == 1 && s->batch == 8);
    ck_assert_uint_eq(s->n_mean, 3);
    ck_assert(s->mean[0] == 0.5 && s->mean[1] == 0.25 && s->mean[2] == 0.1);
    ck_assert_uint_eq(s->n_std, 1);
    ck_assert(s->std[0] == 2);
}
END_TEST

START_TEST(a_pattern_may_hold_question_marks_and_colons)
{
    ck_ok(parse("csv:a?b:c-??.csv"));
    ck_assert_str_eq(s->path, "a?b:c-??.csv");
    ck_ok(parse("csv:a?b.csv?label=y&features=a,b&header=0"));
    ck_assert_str_eq(s->path, "a?b.csv");
    ck_assert_str_eq(s->label, "y");
    ck_assert_uint_eq(s->n_feature, 2);
    ck_assert_str_eq(s->feature[1], "b");
    ck_assert_int_eq(s->header, 0);
}
END_TEST

START_TEST(wrong_texts_are_named)
{
    ck_fails(parse(""), ACCEL_EARG, "KIND[:PATH]");
    ck_fails(parse("idx:"), ACCEL_EARG, "'idx:'");
    ck_fails(parse("idx:a?limt=3"), ACCEL_EARG, "'limt', did you mean 'limit'?");
    ck_fails(parse("idx:a?zzzzzzzzz=3"), ACCEL_EARG, "no key 'zzzzzzzzz'");
    ck_fails(parse("idx:a?limit=3&crop"), ACCEL_EARG, "not 'crop'");
    ck_fails(parse("idx:a?limit=3&=4"), ACCEL_EARG, "not '=4'");
    ck_fails(parse("idx:a?limit=3&limit=4"), ACCEL_EARG, "'limit' is given twice");
    ck_fails(parse("idx:a?limit=0"), ACCEL_EARG, "'limit' needs a whole number from 1");
    ck_fails(parse("idx:a?limit=1.5"), ACCEL_EARG, "'1.5'");
    ck_fails(parse("idx:a?limit=99999999999999999999"), ACCEL_EARG, "99999999999999999999");
    ck_fails(parse("idx:a?limit="), ACCEL_EARG, "'limit' has an empty value");
    ck_fails(parse("idx:a?limit=1,2"), ACCEL_EARG, "'limit' needs one value, not 2");
    ck_fails(parse("idx:a?split=val"), ACCEL_EARG, "train or test, not 'val'");
    ck_fails(parse("idx:a?shuffle=yes"), ACCEL_EARG, "'shuffle' is 0 or 1, not 'yes'");
    ck_fails(parse("idx:a?mean=a"), ACCEL_EARG, "'mean' needs numbers, not 'a'");
    ck_fails(parse("idx:a?mean=inf"), ACCEL_EARG, "'inf'");
    ck_fails(parse("idx:a?std=0.5,0"), ACCEL_EARG, "'std' needs numbers above 0, not '0'");
    ck_assert_ptr_null(s);
}
END_TEST

START_TEST(the_object_form_says_the_same)
{
    ck_ok(read("{\"kind\": \"csv\", \"path\": \"a.csv\", \"limit\": 5, \"mean\": [0.5, 1],"
               " \"std\": 2, \"shuffle\": true, \"features\": [\"a,b\", \"c\"]}"));
    ck_assert_str_eq(s->kind, "csv");
    ck_assert_str_eq(s->path, "a.csv");
    ck_assert(s->limit == 5 && s->n_mean == 2 && s->mean[1] == 1 && s->std[0] == 2);
    ck_assert_int_eq(s->shuffle, 1);
    ck_assert_uint_eq(s->n_feature, 2);
    ck_assert_str_eq(s->feature[0], "a,b"); /* a comma in a name */
}
END_TEST

START_TEST(wrong_objects_are_errors_with_their_place)
{
    ck_fails(read("{\"path\": \"a\"}"), ACCEL_EARG, "'kind' is missing");
    ck_fails(read("{\"kind\": \"idx\",\n \"limt\": 3}"), ACCEL_EARG, ":2:2: ");
    ck_assert_ptr_nonnull(strstr(accel_errmsg(), "did you mean 'limit'"));
    ck_fails(read("{\"kind\": [\"idx\", \"csv\"]}"), ACCEL_EARG, "'kind' needs a text");
    ck_fails(read("{\"kind\": \"idx\", \"limit\": {\"a\": 1}}"), ACCEL_EARG, "'limit'");
    ck_fails(read("{\"kind\": \"idx\", \"mean\": [[1]]}"), ACCEL_EARG, "'mean'");
    ck_fails(read("[1]"), ACCEL_EARG, "a text or a map");
}
END_TEST

START_TEST(keys_that_a_kind_does_not_take_are_found)
{
    static const char *const names[] = {"limit", "mean", NULL};
    ck_ok(parse("idx:a?limit=3&crop=4"));
    ck_assert_str_eq(accel_data_spec_beyond(s, names), "crop");
    ck_ok(parse("idx:a?limit=3&mean=4"));
    ck_assert_ptr_null(accel_data_spec_beyond(s, names));
}
END_TEST

static Suite *suite(void)
{
    Suite *all = suite_create("data_spec");
    TCase *t = tcase_create("spec");
    tcase_add_checked_fixture(t, NULL, end);
    tcase_add_test(t, all_parts_of_the_text_form_are_read);
    tcase_add_test(t, a_pattern_may_hold_question_marks_and_colons);
    tcase_add_test(t, wrong_texts_are_named);
    tcase_add_test(t, the_object_form_says_the_same);
    tcase_add_test(t, wrong_objects_are_errors_with_their_place);
    tcase_add_test(t, keys_that_a_kind_does_not_take_are_found);
    suite_add_tcase(all, t);
    return all;
}
T_MAIN(suite)
