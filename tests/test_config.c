/* The config tree: kinds, positions, comments, what is refused and where, --set. */
#include "tests/t.h"

#include "base/alloc.h"
#include "base/config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct accel_config_file *file;
static char path[64];

static void tidy(void)
{
    accel_config_free(file);
    file = NULL;
    if (*path)
        unlink(path);
    *path = '\0';
}

/* Reads `len` bytes through a real file whose name ends in `suffix`. */
static enum accel_err read_bytes(const void *text, size_t len, const char *suffix)
{
    accel_config_free(file);
    file = NULL;
    if (*path)
        unlink(path);
    snprintf(path, sizeof path, "/tmp/test_config.%d%s", (int)getpid(), suffix);
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(text, 1, len, f), len);
    fclose(f);
    return accel_config_read(&file, path);
}
static enum accel_err json(const char *text)
{
    return read_bytes(text, strlen(text), ".json");
}
static enum accel_err yaml(const char *text)
{
    return read_bytes(text, strlen(text), ".yaml");
}

static const struct accel_config *get(const char *key)
{
    const struct accel_config *c = accel_config_find(file->root, key);
    ck_assert_msg(c != NULL, "no key '%s'", key);
    return c;
}

/* The call fails as a config does, at this place of the file. */
static void fails_at(enum accel_err err, int line, int col, const char *word)
{
    char want[128];
    ck_assert_int_eq(err, ACCEL_EARG);
    snprintf(want, sizeof want, "%s:%d:%d: ", path, line, col);
    ck_assert_msg(strstr(accel_errmsg(), want) == accel_errmsg(), "'%s' does not begin with '%s'",
                  accel_errmsg(), want);
    ck_assert_msg(strstr(accel_errmsg(), word) != NULL, "'%s' does not say '%s'", accel_errmsg(),
                  word);
}

START_TEST(json_has_kinds_and_positions)
{
    ck_ok(json("// head\n{ /* é\n */\n  \"a\": 0.5, \"b\": [1, \"x//y\", true, null],\n"
               "\t\"c\": {\"d\": -3e2} // tail\n}\n"));
    const struct accel_config *a = get("a"), *b = get("b"), *c = get("c");
    ck_assert_int_eq(file->root->kind, ACCEL_CONFIG_MAP);
    ck_assert_int_eq(file->root->n, 3);
    ck_assert_int_eq(file->root->line, 2);
    ck_assert_int_eq(a->kind, ACCEL_CONFIG_FLOAT);
    ck_assert_double_eq(a->number, 0.5);
    ck_assert_int_eq(a->line, 4);
    ck_assert_int_eq(a->col, 8);
    ck_assert_int_eq(a->key_line, 4);
    ck_assert_int_eq(a->key_col, 3);
    ck_assert_int_eq(b->n, 4);
    ck_assert_int_eq(b->child->kind, ACCEL_CONFIG_INT);
    ck_assert_int_eq(b->child->integer, 1);
    ck_assert_double_eq(b->child->number, 1);
    ck_assert_str_eq(b->child->next->text, "x//y");
    ck_assert(b->child->next->next->boolean);
    ck_assert_int_eq(b->child->next->next->next->kind, ACCEL_CONFIG_NULL);
    ck_assert_double_eq(c->child->number, -300);
    ck_assert_str_eq(c->child->text, "-3e2");
    ck_assert_int_eq(c->child->line, 5);
}
END_TEST

START_TEST(yaml_has_the_core_schema)
{
    ck_ok(yaml(
        "# c\na: 0.50\nb: [x, 'yes', \"1\", 1, 0x1F, 0o17, ~, True, .inf, 1e3]\nc:\n  - d: no\n"
        "    e: !!str 5\n  - |\n    two\n    lines\nf:\n"));
    const struct accel_config *x = get("b")->child, *c = get("c");
    static const enum accel_config_kind kind[] = {
        ACCEL_CONFIG_STRING, ACCEL_CONFIG_STRING, ACCEL_CONFIG_STRING, ACCEL_CONFIG_INT,
        ACCEL_CONFIG_INT,    ACCEL_CONFIG_INT,    ACCEL_CONFIG_NULL,   ACCEL_CONFIG_BOOL,
        ACCEL_CONFIG_FLOAT,  ACCEL_CONFIG_FLOAT};
    static const double number[] = {0, 0, 0, 1, 31, 15, 0, 0, INFINITY, 1000};
    for (int i = 0; i < 10; i++, x = x->next) {
        ck_assert_msg(x->kind == kind[i], "item %d is %s", i, accel_config_kind_name(x->kind));
        ck_assert_double_eq(x->number, number[i]);
    }
    ck_assert_double_eq(get("a")->number, 0.5);
    ck_assert_str_eq(get("a")->text, "0.50");
    ck_assert_str_eq(accel_config_find(c->child, "d")->text, "no");
    ck_assert_int_eq(accel_config_find(c->child, "e")->kind, ACCEL_CONFIG_STRING);
    ck_assert_str_eq(c->child->next->text, "two\nlines\n");
    ck_assert_int_eq(get("f")->kind, ACCEL_CONFIG_NULL);
    ck_assert_int_eq(accel_config_find(c->child, "d")->line, 5);
    ck_assert_int_eq(accel_config_find(c->child, "d")->key_col, 5);
}
END_TEST

START_TEST(large_numbers_become_floats)
{
    ck_ok(
        json("[9223372036854775807, 9223372036854775808, -1e999, 123456789012345678901234567890]"));
    const struct accel_config *c = file->root->child;
    ck_assert_int_eq(c->kind, ACCEL_CONFIG_INT);
    ck_assert(c->integer == INT64_MAX);
    c = c->next;
    ck_assert_int_eq(c->kind, ACCEL_CONFIG_FLOAT);
    ck_assert_double_eq(c->number, 9223372036854775808.0);
    ck_assert(isinf(c->next->number));
    ck_assert_double_eq(c->next->next->number, 1.2345678901234568e29);
}
END_TEST

START_TEST(json_is_strict)
{
    fails_at(json("[\n  {\"op_types\": [\"Linear\"]\n   \"sparse_ratio\": 0.5}\n]\n"), 3, 4,
             "comma");
    fails_at(json("{\"a\": [1, 2"), 1, 12, "bracket");
    fails_at(json("{\"a\": x}"), 1, 7, "scalar");
    fails_at(json("{\"a\": 'x'}"), 1, 7, "");
    fails_at(json("{a: 1}"), 1, 2, "");
    fails_at(json("{\"a\": .5}"), 1, 7, "");
    fails_at(json("{\"a\": 01}"), 1, 7, "");
    fails_at(json("{\"a\": True}"), 1, 7, "");
    ck_fails(json("{\"a\": 1,}"), ACCEL_EARG, "comma");
    ck_fails(json("{\"a\": }"), ACCEL_EARG, ".json:1:");
    ck_fails(json("{\"a\": 1} x"), ACCEL_EARG, ".json:1:");
    ck_fails(json("[1] [2]"), ACCEL_EARG, ".json:1:");
    ck_fails(json("hello"), ACCEL_EARG, ".json:1:");
    fails_at(json("{\"a\": 1 /* x\n}"), 1, 9, "comment");
    ck_fails(json("[\"\\u0000\"]"), ACCEL_EARG, ".json:1:");
}
END_TEST

START_TEST(empty_texts_and_wrong_bytes_are_refused)
{
    fails_at(json(""), 1, 1, "empty");
    fails_at(yaml(" \n\n"), 1, 1, "empty");
    fails_at(yaml("# nothing\n"), 1, 1, "empty");
    fails_at(read_bytes("[1,\n \0 2]", 9, ".json"), 2, 2, "NUL");
    fails_at(yaml("a: \"\xff\""), 1, 5, "UTF-8");
    fails_at(yaml("é\xc0\x80"), 1, 2, "UTF-8");
    ck_ok(yaml("\xef\xbb\xbf[a]"));
    ck_assert_int_eq(file->root->n, 1);
    tidy();
    ck_fails(accel_config_read(&file, "/nonexistent/x.json"), ACCEL_EARG, "x.json");
    ck_fails(accel_config_read(&file, "/tmp"), ACCEL_EARG, "/tmp");
}
END_TEST

START_TEST(duplicate_keys_name_both_places)
{
    fails_at(json("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}"), 2, 16, "line 2 column 8");
    fails_at(yaml("a: 1\nb: 2\na: 3\n"), 3, 1, "line 1 column 1");
}
END_TEST

START_TEST(one_document_only)
{
    fails_at(yaml("a: 1\n---\nb: 1\n"), 2, 1, "more than one document");
    ck_ok(yaml("---\na: 1\n...\n"));
}
END_TEST

START_TEST(aliases_are_copied_with_their_places)
{
    ck_ok(yaml("a: &x {k: 1}\nb: *x\nc: &x 5\nd: *x\n"));
    ck_assert_double_eq(get("b")->child->number, 1);
    ck_assert_int_eq(get("b")->child->line, 1);
    ck_assert_double_eq(get("d")->number, 5);
    fails_at(yaml("a: *x\n"), 1, 4, "'x'");
    fails_at(yaml("a: &x\n  b: *x\n"), 2, 6, "itself");
}
END_TEST

START_TEST(alias_bombs_end_at_the_cap)
{
    char text[2048] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 12; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    ck_fails(yaml(text), ACCEL_EARG, "100000 items");
    strcpy(text, "a0: &a0 [x]\n");
    for (int i = 1; i < 70; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "a%d: &a%d [*a%d]\n", i, i,
                 i - 1);
    ck_fails(yaml(text), ACCEL_EARG, "deeper than 64");
}
END_TEST

/* n copies of `unit`, then `tail`. */
static enum accel_err repeated(const char *unit, size_t n, const char *tail, const char *suffix)
{
    size_t u = strlen(unit);
    char *text = malloc(u * n + strlen(tail) + 1);
    for (size_t i = 0; i < n; i++)
        memcpy(text + i * u, unit, u);
    strcpy(text + u * n, tail);
    enum accel_err err = read_bytes(text, strlen(text), suffix);
    free(text);
    return err;
}

START_TEST(depth_size_and_count_have_caps)
{
    fails_at(repeated("[", 100000, "", ".json"), 1, 65, "deeper than 64");
    fails_at(repeated("[", 100000, "", ".yaml"), 1, 65, "deeper than 64");
    ck_fails(repeated("- ", 100000, "a", ".yaml"), ACCEL_EARG, "deeper than 64");
    ck_fails(repeated("{\"a\":", 100000, "", ".json"), ACCEL_EARG, "deeper than 64");
    char deep[129];
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    deep[128] = '\0';
    ck_ok(json(deep));
    ck_fails(repeated("1,\n", 100001, "]", ".json"), ACCEL_EARG, "");
    ck_fails(repeated("- 1\n", 100001, "", ".yaml"), ACCEL_EARG, "100000 items");
    ck_fails(repeated(" ", ((size_t)4 << 20) + 1, "", ".json"), ACCEL_EARG, "4194304");
    ck_ok(repeated(" ", ((size_t)4 << 20) - 2, "{}", ".json"));
}
END_TEST

START_TEST(text_on_the_command_line_is_a_config)
{
    ck_ok(accel_config_read(&file, "[{\"a\": 1}]"));
    ck_assert_str_eq(file->name, "--config");
    ck_assert_str_eq(file->text, "[{\"a\": 1}]");
    ck_fails(accel_config_fail(file->root->child->child, true, "no '%s'", "z"), ACCEL_EARG,
             "--config:1:3: no 'z'");
    ck_fails(accel_config_fail(file->root->child->child, false, "x"), ACCEL_EARG,
             "--config:1:8: x");
}
END_TEST

START_TEST(set_replaces_and_adds)
{
    ck_ok(json("{\"config_list\": [{\"r\": 0.25}, {}]}"));
    ck_ok(accel_config_set(file, "config_list.0.r=0.75"));
    ck_ok(accel_config_set(file, "config_list.1.names=[\"a\", \"b\"]"));
    ck_ok(accel_config_set(file, "config_list.2.x.y=true"));
    ck_ok(accel_config_set(file, "pruner=nm"));
    const struct accel_config *l = get("config_list")->child;
    ck_assert_double_eq(l->child->number, 0.75);
    ck_assert_int_eq(l->n, 1);
    ck_assert_str_eq(l->next->child->key, "names");
    ck_assert_int_eq(l->next->child->n, 2);
    ck_assert(l->next->next->child->child->boolean);
    ck_assert_str_eq(get("pruner")->text, "nm");
    ck_fails(accel_config_fail(l->child, false, "bad"), ACCEL_EARG, "--set config_list.0.r: bad");
    ck_fails(accel_config_fail(l->child, true, "bad"), ACCEL_EARG, ".json:1:19: bad");
    ck_fails(accel_config_fail(get("pruner"), true, "bad"), ACCEL_EARG, "--set pruner: bad");
}
END_TEST

START_TEST(set_makes_an_object_of_a_bare_list)
{
    ck_ok(json("[{\"r\": 0.25}]"));
    ck_ok(accel_config_set(file, "0.r=0.5"));
    ck_ok(accel_config_set(file, "config_list.0.q=\"1\""));
    ck_ok(accel_config_set(file, "pruner=level"));
    ck_assert_int_eq(file->root->kind, ACCEL_CONFIG_MAP);
    ck_assert_double_eq(get("config_list")->child->child->number, 0.5);
    ck_assert_int_eq(get("config_list")->child->child->next->kind, ACCEL_CONFIG_STRING);
}
END_TEST

START_TEST(set_refuses_what_is_no_path)
{
    ck_ok(json("{\"l\": [1], \"n\": 5}"));
    ck_fails(accel_config_set(file, "n"), ACCEL_EARG, "KEY=VALUE");
    ck_fails(accel_config_set(file, "=3"), ACCEL_EARG, "KEY=VALUE");
    ck_fails(accel_config_set(file, "l.2=3"), ACCEL_EARG, "'2'");
    ck_fails(accel_config_set(file, "l.-1=3"), ACCEL_EARG, "'-1'");
    ck_fails(accel_config_set(file, "n.x=3"), ACCEL_EARG, "'x'");
    ck_fails(accel_config_set(file, "a..b=3"), ACCEL_EARG, "a..b");
    ck_fails(accel_config_set(file, "a=[1,"), ACCEL_EARG, "--set a: ");
    ck_fails(accel_config_set(file, "a={\"b\": 1, \"b\": 2}"), ACCEL_EARG, "twice");
    char longest[400] = "a";
    for (int i = 0; i < 80; i++)
        strcat(longest, ".a");
    ck_fails(accel_config_set(file, strcat(longest, "=1")), ACCEL_EARG, "64");
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    const char *text = "{\"a\": [1, {\"b\": \"x\"}]}";
    for (long n = 1;; n++) {
        accel_alloc_fail_at(n, n % 2);
        enum accel_err err = accel_config_read(&file, text);
        if (!err)
            err = accel_config_set(file, "a.1.c={\"d\": 1}");
        bool hit = accel_alloc_count() >= n;
        accel_alloc_fail_at(0, false);
        if (err)
            ck_assert_int_eq(err, ACCEL_ENOMEM);
        ck_assert(hit == (err != ACCEL_OK));
        accel_config_free(file);
        file = NULL;
        if (!err)
            break;
    }
}
END_TEST

static Suite *config_suite(void)
{
    Suite *s = suite_create("config");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, NULL, tidy);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, json_has_kinds_and_positions);
    tcase_add_test(t, yaml_has_the_core_schema);
    tcase_add_test(t, large_numbers_become_floats);
    tcase_add_test(t, json_is_strict);
    tcase_add_test(t, empty_texts_and_wrong_bytes_are_refused);
    tcase_add_test(t, duplicate_keys_name_both_places);
    tcase_add_test(t, one_document_only);
    tcase_add_test(t, aliases_are_copied_with_their_places);
    tcase_add_test(t, alias_bombs_end_at_the_cap);
    tcase_add_test(t, depth_size_and_count_have_caps);
    tcase_add_test(t, text_on_the_command_line_is_a_config);
    tcase_add_test(t, set_replaces_and_adds);
    tcase_add_test(t, set_makes_an_object_of_a_bare_list);
    tcase_add_test(t, set_refuses_what_is_no_path);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(config_suite)
