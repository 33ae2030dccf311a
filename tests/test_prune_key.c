/* The published schema, docs/prune.schema.json, says what the parser's table of keys says: each is
 * read into the other's form and compared, both ways. */
#include "tests/t.h"

#include "prune/prune_key.h"

#include <string.h>

static struct accel_config_file *schema;

static void setup(void)
{
    ck_ok(accel_config_read(&schema, "docs/prune.schema.json"));
}
static void tidy(void)
{
    accel_config_free(schema);
}

static const struct accel_config *get(const struct accel_config *map, const char *key)
{
    const struct accel_config *c = accel_config_find(map, key);
    ck_assert_msg(c != NULL, "line %d: no '%s'", map->line, key);
    return c;
}

static unsigned kind_of(const char *type)
{
    static const char *const name[] = {"null",   "boolean", "integer", "number",
                                       "string", "array",   "object"};
    for (int i = 0; i < 7; i++)
        if (strcmp(type, name[i]) == 0)
            return 1u << i;
    ck_abort_msg("type '%s'", type);
    return 0;
}

/* What one property of the schema allows. */
struct shape {
    unsigned kinds, items;
    double min, max;
    const struct accel_config *choices;
    const char *inner;
    bool may_be_empty; /* a list */
};

static void add(struct shape *s, const struct accel_config *p, bool item)
{
    const struct accel_config *c, *any = accel_config_find(p, "anyOf");
    unsigned *kinds = item ? &s->items : &s->kinds;
    for (c = any ? any->child : NULL; c; c = c->next)
        add(s, c, item);
    if ((c = accel_config_find(p, "$ref"))) {
        ck_assert(strncmp(c->text, "#/$defs/", 8) == 0);
        s->inner = c->text + 8;
        *kinds |= ACCEL_IS_MAP;
    }
    if ((c = accel_config_find(p, "type"))) {
        *kinds |= c->child ? 0 : kind_of(c->text);
        for (const struct accel_config *t = c->child; t; t = t->next)
            *kinds |= kind_of(t->text);
    }
    if ((c = accel_config_find(p, "minimum")))
        s->min = c->number;
    if ((c = accel_config_find(p, "maximum")))
        s->max = c->number;
    if ((c = accel_config_find(p, "enum")))
        s->choices = c;
    if ((c = accel_config_find(p, "items"))) {
        s->may_be_empty = !accel_config_find(p, "minItems");
        ck_assert(s->may_be_empty || get(p, "minItems")->integer == 1);
        add(s, c, true);
    }
}

static bool same_bound(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static void compare(const struct accel_prune_key *k, const struct accel_config *p)
{
    struct shape s = {.min = NAN, .max = NAN};
    add(&s, p, false);
    ck_assert_msg(s.may_be_empty == k->may_be_empty, "%s: empty lists", k->name);
    const char *inner = k->inner ? accel_key_place_name(k->inner) : NULL;
    ck_assert_msg(s.kinds == k->kinds, "%s: kinds %x, table %x", k->name, s.kinds, k->kinds);
    ck_assert_msg(s.items == k->items, "%s: items %x, table %x", k->name, s.items, k->items);
    ck_assert_msg(same_bound(s.min, k->min) && same_bound(s.max, k->max),
                  "%s: %g..%g, table %g..%g", k->name, s.min, s.max, k->min, k->max);
    ck_assert_msg(inner ? s.inner && strcmp(s.inner, inner) == 0 : !s.inner, "%s: of %s", k->name,
                  s.inner);
    const struct accel_config *c = s.choices ? s.choices->child : NULL;
    for (int i = 0; k->choices && k->choices[i]; i++, c = c->next)
        ck_assert_msg(c && strcmp(c->text, k->choices[i]) == 0, "%s: choice %s", k->name,
                      k->choices[i]);
    ck_assert_msg(!c, "%s: one choice too many in the schema", k->name);
    ck_assert_msg(strlen(get(p, "description")->text) > 5, "%s: no description", k->name);
}

START_TEST(every_key_of_the_table_is_in_the_schema_and_equal)
{
    const struct accel_config *defs = get(schema->root, "$defs");
    int n = 0;
    for (const struct accel_prune_key *k = accel_prune_key_table; k->name; k++, n++)
        compare(k, get(get(get(defs, accel_key_place_name(k->place)), "properties"), k->name));
    ck_assert_int_gt(n, 80);
}
END_TEST

START_TEST(every_key_of_the_schema_is_in_the_table)
{
    const struct accel_config *defs = get(schema->root, "$defs");
    ck_assert_int_eq(defs->n, ACCEL_N_KEY_PLACES - 1);
    for (const struct accel_config *d = defs->child; d; d = d->next) {
        ck_assert(!get(d, "additionalProperties")->boolean);
        for (const struct accel_config *p = get(d, "properties")->child; p; p = p->next) {
            bool found = false;
            for (const struct accel_prune_key *k = accel_prune_key_table; k->name; k++)
                found = found || (strcmp(k->name, p->key) == 0 &&
                                  strcmp(accel_key_place_name(k->place), d->key) == 0);
            ck_assert_msg(found, "%s.%s is not in the table", d->key, p->key);
        }
    }
}
END_TEST

START_TEST(keys_stand_once_in_the_table)
{
    for (const struct accel_prune_key *k = accel_prune_key_table; k->name; k++)
        for (const struct accel_prune_key *o = k + 1; o->name; o++)
            ck_assert_msg(k->place != o->place || strcmp(k->name, o->name) != 0, "%s", k->name);
}
END_TEST

static Suite *prune_key_suite(void)
{
    Suite *s = suite_create("prune_key");
    TCase *t = tcase_create("all");
    tcase_add_checked_fixture(t, setup, tidy);
    tcase_add_test(t, every_key_of_the_table_is_in_the_schema_and_equal);
    tcase_add_test(t, every_key_of_the_schema_is_in_the_table);
    tcase_add_test(t, keys_stand_once_in_the_table);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(prune_key_suite)
