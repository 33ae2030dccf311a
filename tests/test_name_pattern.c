/* Patterns: what they match, what is refused by name, and that no pattern takes long. */
#include "tests/t.h"

#include "base/alloc.h"
#include "prune/name_pattern.h"

#include <string.h>

static bool matches(const char *pattern, const char *name)
{
    struct accel_name_pattern *p;
    int64_t budget = 1000000;
    bool yes;
    ck_ok(accel_name_pattern_new(&p, pattern));
    ck_ok(accel_name_pattern_match(&yes, p, name, strlen(name), &budget));
    accel_name_pattern_free(p);
    return yes;
}

START_TEST(matches_from_the_start_not_to_the_end)
{
    ck_assert(matches("c", "conv1"));
    ck_assert(matches("", "conv1"));
    ck_assert(!matches("onv", "conv1"));
    ck_assert(matches("conv$", "conv"));
    ck_assert(!matches("conv$", "conv1"));
    ck_assert(matches("^conv|^fc", "fc"));
    ck_assert(!matches("a^b", "ab"));
    ck_assert(!matches("conv12", "conv1"));
    ck_assert(matches(".*", ""));
}
END_TEST

START_TEST(has_the_extended_syntax)
{
    static const struct {
        const char *pattern, *name;
        bool want;
    } c[] = {
        {"conv[12]", "conv2", true},
        {"conv[12]", "conv3", false},
        {"conv[^12]$", "conv3", true},
        {"conv[^12]$", "conv1", false},
        {"layer4\\..*", "layer4.x", true},
        {"layer4\\..*", "layer40", false},
        {"conv\\d", "conv7", true},
        {"conv\\d", "convx", false},
        {"\\w+\\.\\w+$", "a_1.b2", true},
        {"\\w+$", "a-b", false},
        {"\\D\\S\\W", "ab.", true},
        {"\\s", " ", true},
        {"a|b|cd$", "cd", true},
        {"(a|b)(c|d)$", "bd", true},
        {"(a|b)(c|d)$", "ba", false},
        {"a{3}$", "aaa", true},
        {"a{3}$", "aa", false},
        {"a{2,3}$", "aaaa", false},
        {"a{2,}$", "aaaa", true},
        {"a{2,}$", "a", false},
        {"(ab){0}c", "c", true},
        {"ab?c", "ac", true},
        {"ab+c", "ac", false},
        {"ab+c", "abbc", true},
        {"ab*?c", "abbc", true},
        {"(?:ab)+c", "ababc", true},
        {"[]x]", "]", true},
        {"[a-c-]+$", "b-", true},
        {"[[:alpha:]_]+$", "ab_", true},
        {"[\\d.]+$", "1.2", true},
        {"(a*)*b", "aab", true},
        {"(|a)+b", "b", true},
        {"é.z", "éüz", true},
        {"[à-ü]", "é", true},
        {"a/b", "a/b", true},
        {"()", "x", true},
        {"(a|ab)(c|bcd)$", "abcd", true},
        {"}", "}", true},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++)
        ck_assert_msg(matches(c[i].pattern, c[i].name) == c[i].want, "%s on %s", c[i].pattern,
                      c[i].name);
}
END_TEST

START_TEST(refuses_what_it_does_not_have)
{
    static const struct {
        const char *pattern, *word;
    } c[] = {
        {"(?=a)", "look-ahead"},
        {"(?<!a)", "look-"},
        {"(?i)a", "(?"},
        {"(a)\\1", "back-reference"},
        {"\\bfc", "escape"},
        {"layer(1", "( is not closed"},
        {"a)", ") was never"},
        {"[a", "[ is not closed"},
        {"*a", "nothing to repeat"},
        {"a**", "two quantifiers"},
        {"a{2,1}", "backwards"},
        {"a{x}", "number"},
        {"a{2", "not closed"},
        {"[b-a]", "backwards"},
        {"a\\", "backslash"},
        {"[[:foo:]]", "class"},
        {"a{1001}", "too large"},
        {"((a{1,255}){1,255}){1,255}", "too large"},
        {"(((((((){99}){99}){99}){99}){99}){99})", "too large"},
    };
    for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
        struct accel_name_pattern *p = NULL;
        ck_fails(accel_name_pattern_new(&p, c[i].pattern), ACCEL_EARG, c[i].word);
        ck_assert(strstr(accel_errmsg(), "supported are") != NULL);
    }
}
END_TEST

START_TEST(long_patterns_and_deep_ones_are_refused)
{
    char text[1200];
    struct accel_name_pattern *p = NULL;
    memset(text, '(', 1100);
    text[1100] = '\0';
    ck_fails(accel_name_pattern_new(&p, text), ACCEL_EARG, "longer than 1000");
    text[900] = '\0';
    ck_fails(accel_name_pattern_new(&p, text), ACCEL_EARG, "nest");
    memset(text, 'a', 490);
    text[490] = '\0';
    ck_assert(matches(text, text));
}
END_TEST

START_TEST(nested_loops_take_linear_time)
{
    struct accel_name_pattern *p;
    size_t n = 1000000;
    char *name = malloc(n + 1);
    int64_t budget = 100000000;
    bool yes;
    memset(name, 'a', n);
    name[n] = '\0';
    ck_ok(accel_name_pattern_new(&p, "((((a+)+)+)+)+b"));
    ck_ok(accel_name_pattern_match(&yes, p, name, strlen(name), &budget));
    ck_assert(!yes);
    ck_assert_int_gt(budget, 0);
    accel_name_pattern_free(p);
    ck_ok(accel_name_pattern_new(&p, "(a|aa|a[a-z]|[^b]){1,30}b|(a*)*c"));
    budget = 1000000;
    ck_fails(accel_name_pattern_match(&yes, p, name, strlen(name), &budget), ACCEL_EARG,
             "too long");
    accel_name_pattern_free(p);
    free(name);
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    for (long n = 1;; n++) {
        struct accel_name_pattern *p = NULL;
        accel_alloc_fail_at(n, false);
        enum accel_err err = accel_name_pattern_new(&p, "(a|[b-d]){2,9}e");
        accel_alloc_fail_at(0, false);
        accel_name_pattern_free(p);
        if (!err)
            break;
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
}
END_TEST

static Suite *pattern_suite(void)
{
    Suite *s = suite_create("pattern");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 60);
    tcase_add_test(t, matches_from_the_start_not_to_the_end);
    tcase_add_test(t, has_the_extended_syntax);
    tcase_add_test(t, refuses_what_it_does_not_have);
    tcase_add_test(t, long_patterns_and_deep_ones_are_refused);
    tcase_add_test(t, nested_loops_take_linear_time);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(pattern_suite)
