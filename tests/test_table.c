/* Tables and the escaping of names. */
#include "tests/t.h"

#include "tools/escape.h"
#include "tools/table.h"

#include <string.h>

static const struct accel_column columns[] = {
    {"NAME", false, true}, {"BIG N", true, false}, {"OP", false, false}, {0}};

static struct accel_table t;
static struct accel_str out;

static void begin(void)
{
    accel_table_init(&t, columns);
}

static void tidy(void)
{
    accel_table_clear(&t);
    accel_str_clear(&out);
}

static void row(const char *name, const char *n, const char *op)
{
    accel_table_add(&t, "%s", name);
    accel_table_add(&t, "%s", n);
    accel_table_add(&t, "%s", op);
}

START_TEST(text_is_aligned_by_columns_not_bytes)
{
    row("中é", "7", "Relu");
    row("fc1", "12,345", "Gemm");
    accel_table_text(&out, &t, 0, false);
    ck_assert_str_eq(accel_str_get(&out), "NAME   BIG N  OP\n"
                                          "中é        7  Relu\n"
                                          "fc1   12,345  Gemm\n");
}
END_TEST

START_TEST(a_narrow_terminal_shortens_the_elastic_column)
{
    row("/encoder/layer.0/attention/self/query/MatMul", "1", "MatMul");
    accel_table_text(&out, &t, 40, false);
    ck_assert_str_eq(accel_str_get(&out), "NAME                       BIG N  OP\n"
                                          "/encoder…elf/query/MatMul      1  MatMul\n" +
                                              0);
}
END_TEST

START_TEST(a_name_of_a_million_characters_stays_one_short_line)
{
    char *name = calloc(1000001, 1);
    ck_assert_ptr_nonnull(name);
    memset(name, 'n', 1000000);
    for (int i = 0; i < 100; i++)
        row(i ? "fc" : name, "1", "MatMul");
    accel_table_text(&out, &t, 0, false);
    ck_assert_uint_lt(out.len, 102 * 130);
    free(name);
}
END_TEST

START_TEST(names_cannot_move_the_cursor_or_turn_the_text_round)
{
    accel_escape_terminal(&out, "a\x1b[2Jb\n\x7f\xc2\x9b\xe2\x80\xae"
                                "c\xff");
    ck_assert_str_eq(accel_str_get(&out), "a\\x1b[2Jb\\n\\x7f\\u009b\\u202ec\\xff");
}
END_TEST

START_TEST(names_cannot_become_markup)
{
    accel_escape_html(&out, "<b a=\"x\" b='y'>&\x01\xe2\x80\xae");
    ck_assert_str_eq(accel_str_get(&out),
                     "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;\xef\xbf\xbd[U+202E]");
}
END_TEST

START_TEST(csv_quotes_what_needs_it)
{
    row("a,b", "1", "say \"x\"");
    row("line\nbreak", "2", "\x1b[1m");
    accel_table_csv(&out, &t, false);
    ck_assert_str_eq(accel_str_get(&out), "name,big_n,op\r\n\"a,b\",1,\"say \"\"x\"\"\"\r\n"
                                          "\"line\nbreak\",2,\x1b[1m\r\n");
    accel_str_clear(&out);
    accel_table_csv(&out, &t, true);
    ck_assert(strchr(accel_str_get(&out), 0x1b) == NULL);
}
END_TEST

START_TEST(markdown_escapes_its_own_signs)
{
    row("a|b<c>", "1", "x_y");
    accel_table_markdown(&out, &t);
    ck_assert_str_eq(accel_str_get(&out), "| NAME | BIG N | OP |\n| --- | ---: | --- |\n"
                                          "| a\\|b\\<c\\> | 1 | x\\_y |\n");
}
END_TEST

START_TEST(numbers_are_written_for_people)
{
    char b[32];
    ck_assert_str_eq(accel_text_count(b, 0), "0");
    ck_assert_str_eq(accel_text_count(b, 999), "999");
    ck_assert_str_eq(accel_text_count(b, 1630090), "1,630,090");
    ck_assert_str_eq(accel_text_count(b, -1), "?");
    ck_assert_str_eq(accel_text_size(b, 1023), "1023 B");
    ck_assert_str_eq(accel_text_size(b, 1024), "1.00 KiB");
    ck_assert_str_eq(accel_text_size(b, 1048575), "1.00 MiB");
    ck_assert_str_eq(accel_text_share(b, 0.3), "30 %");
    ck_assert_str_eq(accel_text_share(b, 1.0 / 3), "33.3 %");
    ck_assert_str_eq(accel_text_share(b, 0.99999), ">99.9 %");
    ck_assert_str_eq(accel_text_share(b, 0.00001), "<0.01 %");
    ck_assert_str_eq(accel_text_share(b, NAN), "-");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("table");
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, begin, tidy);
    tcase_add_test(c, text_is_aligned_by_columns_not_bytes);
    tcase_add_test(c, a_narrow_terminal_shortens_the_elastic_column);
    tcase_add_test(c, a_name_of_a_million_characters_stays_one_short_line);
    tcase_add_test(c, names_cannot_move_the_cursor_or_turn_the_text_round);
    tcase_add_test(c, names_cannot_become_markup);
    tcase_add_test(c, csv_quotes_what_needs_it);
    tcase_add_test(c, markdown_escapes_its_own_signs);
    tcase_add_test(c, numbers_are_written_for_people);
    suite_add_tcase(s, c);
    return s;
}

T_MAIN(suite)
