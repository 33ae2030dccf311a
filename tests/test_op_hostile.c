/* A law over the whole table: whatever ranks, sizes and attributes a node has, parse, infer, cost,
 * weights and carry come back with an answer or a named error. Under the sanitizers this finds
 * overflows, reads past lists and divisions by zero. Deterministic. */
#include "tests/op_t.h"

#include "base/str.h"

#define TRIES 60

static uint64_t state;

static unsigned pick(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

static const char *any_size(void)
{
    static const char *const sizes[] = {
        "0", "1", "2", "3", "4", "6",          "8",
        "?", "N", "M", "1", "3", "4294967296", "9223372036854775807"};
    return sizes[pick(sizeof sizes / sizeof *sizes)];
}

static const char *any_int(void)
{
    static const char *const ints[] = {"0",
                                       "1",
                                       "2",
                                       "3",
                                       "-1",
                                       "-2",
                                       "1",
                                       "2",
                                       "7",
                                       "2147483647",
                                       "-9223372036854775808",
                                       "9223372036854775807"};
    return ints[pick(sizeof ints / sizeof *ints)];
}

static void any_list(struct accel_str *s)
{
    for (unsigned n = pick(7), i = 0; i < n; i++)
        accel_str_addf(s, "%s%s", i ? "," : "", any_int());
}

static void any_input(struct accel_str *s)
{
    static const char *const types[] = {"", "", "", "i64:", "i8:", "bool:", "f64:"};
    unsigned form = pick(10), rank = pick(6);
    if (form == 0) {
        accel_str_add(s, "- ");
        return;
    }
    if (form == 1) {
        accel_str_add(s, "[");
        any_list(s);
        accel_str_add(s, "] ");
        return;
    }
    accel_str_add(s, types[pick(7)]);
    if (form == 2)
        accel_str_add(s, "?");
    else if (rank == 0)
        accel_str_add(s, "scalar");
    for (unsigned i = 0; form > 2 && i < rank; i++)
        accel_str_addf(s, "%s%s", i ? "x" : "", any_size());
    accel_str_add(s, " ");
}

static void any_attrs(struct accel_str *s, const struct accel_op *op)
{
    static const char *const words[] = {"",           "NOTSET",        "VALID", "SAME_UPPER",
                                        "SAME_LOWER", "none",          "LEFT",  "...ij,jk->...k",
                                        "ij->ji",     "bidirectional", "mean"};
    accel_str_add(s, "|");
    for (const struct accel_attr_rule *r = op->attrs; r && r->name; r++) {
        if (r->kind != ACCEL_ATTR_INT && r->kind != ACCEL_ATTR_FLOAT &&
            r->kind != ACCEL_ATTR_STRING && r->kind != ACCEL_ATTR_INTS)
            continue;
        if (!(r->flags & ACCEL_REQUIRED) && pick(3) == 0)
            continue;
        accel_str_addf(s, " %s=", r->name);
        if (r->kind == ACCEL_ATTR_INTS)
            any_list(s);
        else
            accel_str_add(s, r->kind == ACCEL_ATTR_STRING ? words[pick(11)] : any_int());
    }
}

static void one(const struct accel_op *op, const char *line)
{
    static const int opsets[] = {1, 6, 7, 11, 13, 18, 24};
    char name[128];
    struct accel_weight w[4];
    struct accel_cost cost = {0};
    snprintf(name, sizeof name, "%s%s", *op->domain ? "ms:" : "", op->name);
    struct op_run r = op_begin(name, opsets[pick(7)], line);
    ck_assert_msg(r.err == ACCEL_OK || r.err == ACCEL_EMODEL || r.err == ACCEL_ESHAPE ||
                      r.err == ACCEL_ENOSUP,
                  "%s %s: %d %s", name, line, (int)r.err, accel_errmsg());
    if (r.err == ACCEL_OK) {
        if (op->cost)
            op->cost(r.n, &cost);
        int n = op->weights ? op->weights(r.n, w) : 0;
        ck_assert_msg(n >= 0 && n <= 4 && cost.macs >= -1, "%s %s", name, line);
        for (int axis = -1; op->carry && axis < 7; axis++)
            (void)op->carry(r.n, axis);
    }
    op_end(&r);
}

START_TEST(any_node_gets_an_answer)
{
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *op = accel_op_table[i];
        bool known = !*op->domain || strcmp(op->domain, "com.microsoft") == 0;
        if (accel_op_is_wall(op) || !known || op->max_out > 8)
            continue;
        for (int k = 0; k < TRIES; k++) {
            struct accel_str line = {0};
            int most = op->max_in < OP_MAX_IN ? op->max_in : OP_MAX_IN;
            int n_in = op->min_in + (int)pick((unsigned)(most - op->min_in + 1));
            for (int j = 0; j < n_in; j++)
                any_input(&line);
            any_attrs(&line, op);
            one(op, accel_str_get(&line));
            accel_str_clear(&line);
        }
    }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_hostile");
    TCase *t = tcase_create("op_hostile");
    state = 20261;
    tcase_set_timeout(t, 60);
    tcase_add_test(t, any_node_gets_an_answer);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
