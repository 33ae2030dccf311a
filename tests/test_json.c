/* The JSON writer, checked against texts written by hand and by reading numbers back. */
#include "tests/t.h"

#include "base/json.h"

#include <string.h>

static struct accel_json j;

static void tidy(void)
{
    accel_json_clear(&j);
}

START_TEST(commas_stand_between_items_only)
{
    accel_json_object(&j, NULL);
    accel_json_array(&j, "a");
    accel_json_int(&j, NULL, -1);
    accel_json_uint(&j, NULL, UINT64_MAX);
    accel_json_array(&j, NULL);
    accel_json_end(&j, ']');
    accel_json_end(&j, ']');
    accel_json_object(&j, "b");
    accel_json_bool(&j, "t", true);
    accel_json_null(&j, "n");
    accel_json_text(&j, "s", NULL);
    accel_json_end(&j, '}');
    accel_json_end(&j, '}');
    ck_assert_str_eq(accel_str_get(&j.out), "{\"a\":[-1,18446744073709551615,[]],"
                                            "\"b\":{\"t\":true,\"n\":null,\"s\":null}}");
}
END_TEST

START_TEST(control_characters_are_escaped)
{
    accel_json_text(&j, NULL, "a\"b\\c\n\t\x01\x1b[31m\x7f/é中\xe2\x80\xae");
    ck_assert_str_eq(accel_str_get(&j.out),
                     "\"a\\\"b\\\\c\\n\\t\\u0001\\u001b[31m\\u007f/é中\\u202e\"");
}
END_TEST

START_TEST(invalid_utf8_becomes_the_replacement_character)
{
    /* a lone continuation, an overlong slash, a surrogate, a cut-off sequence */
    accel_json_text(&j, NULL, "x\x80y\xc0\xafz\xed\xa0\x80w\xe4\xb8");
    ck_assert_str_eq(accel_str_get(&j.out), "\"x\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbdz"
                                            "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdw"
                                            "\xef\xbf\xbd\xef\xbf\xbd\"");
}
END_TEST

START_TEST(numbers_read_back_as_they_were)
{
    static const double list[] = {0.3,
                                  1.0 / 3,
                                  1e-308,
                                  4.9e-324,
                                  1.7976931348623157e308,
                                  0.1 + .2,
                                  -2.5,
                                  1e21,
                                  123456789012345680.0};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        accel_json_clear(&j);
        accel_json_number(&j, NULL, list[i]);
        ck_assert_double_eq(strtod(accel_str_get(&j.out), NULL), list[i]);
    }
    accel_json_clear(&j);
    accel_json_number(&j, NULL, 0.3);
    ck_assert_str_eq(accel_str_get(&j.out), "0.3");
}
END_TEST

START_TEST(what_json_has_no_number_for_is_null)
{
    accel_json_array(&j, NULL);
    accel_json_number(&j, NULL, NAN);
    accel_json_number(&j, NULL, -INFINITY);
    accel_json_end(&j, ']');
    ck_assert_str_eq(accel_str_get(&j.out), "[null,null]");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("json");
    TCase *t = tcase_create("writer");
    tcase_add_checked_fixture(t, NULL, tidy);
    tcase_add_test(t, commas_stand_between_items_only);
    tcase_add_test(t, control_characters_are_escaped);
    tcase_add_test(t, invalid_utf8_becomes_the_replacement_character);
    tcase_add_test(t, numbers_read_back_as_they_were);
    tcase_add_test(t, what_json_has_no_number_for_is_null);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
