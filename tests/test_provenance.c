/* test_provenance.c - sizes are followed from Shape to where they end. */
#include "base/alloc.h"
#include "graph/provenance.h"
#include "tests/line_t.h"

/* "x.1" for every element of a value, "-" for none, "x.0+x.1" for several. */
static void reads(const char *line, const char *value, const char *want)
{
    struct accel_model *m = line_model(17, line);
    struct accel_provenance *p;
    char got[256] = "";
    ck_ok(accel_provenance_build(&p, m));
    struct accel_value *v = line_find(m, value);
    int64_t n = accel_shape_count(&v->shape);
    for (int64_t i = 0; i < n; i++) {
        const struct accel_axis_set *s = accel_provenance_of(p, v, i);
        strcat(got, i ? " " : "");
        for (size_t k = 0; s && k < s->n; k++)
            sprintf(got + strlen(got), "%s%s.%d", k ? "+" : "", s->at[k].value->name,
                    s->at[k].axis);
        if (!s)
            strcat(got, "-");
    }
    ck_assert_msg(strcmp(got, want) == 0, "%s: %s is %s, want %s", line, value, got, want);
    accel_provenance_free(p);
    accel_model_free(m);
}

/* "x.1" for every pinned axis in order. */
static void pins(const char *line, const char *want)
{
    struct accel_model *m = line_model(17, line);
    struct accel_provenance *p;
    char got[256] = "";
    ck_ok(accel_provenance_build(&p, m));
    for (size_t i = 0; i < p->n_pin; i++)
        sprintf(got + strlen(got), "%s%s.%d", i ? " " : "", p->pin[i].axis.value->name,
                p->pin[i].axis.axis);
    ck_assert_msg(strcmp(got, want) == 0, "%s: pins '%s', want '%s'", line, got, want);
    accel_provenance_free(p);
    accel_model_free(m);
}

START_TEST(elements_are_followed_one_by_one_through_what_moves_them)
{
    reads("x:N,4,6 ; Shape x > s", "s", "x.0 x.1 x.2");
    reads("x:N,4,6 ; Shape x > s start=1", "s", "x.1 x.2");
    reads("x:N,4,6 i=i[2,0] ; Shape x > s ; Gather s i > y", "y", "x.2 x.0");
    reads("x:N,4,6 a=i[1] b=i[3] ; Shape x > s ; Slice s a b > y", "y", "x.1 x.2");
    reads("x:N,4,6 c=i[7] i=i[0] ; Shape x > s ; Gather s i > g ; Concat g c > y axis=0", "y",
          "x.0 -");
    reads("x:N,4,6 ; Shape x > s ; Cast s > f to=1 ; Cast f > y to=7", "y", "x.0 x.1 x.2");
}
END_TEST

START_TEST(arithmetic_joins_what_it_meets)
{
    reads("x:N,4,6 a=i[1] b=i[2] ; Shape x > s ; Gather s a > p ; Gather s b > q ; Mul p q > y",
          "y", "x.1+x.2");
    reads("x:N,4,6 two=i[2] a=i[1] ; Shape x > s ; Gather s a > p ; Div p two > y", "y", "x.1");
    reads("x:N,4,6 ; Size x > y", "y", "x.0+x.1+x.2");
}
END_TEST

START_TEST(sizes_that_end_in_size_inputs_pin_nothing)
{
    pins("x:N,4,6 a=i[0] m=i[-1] ; Shape x > s ; Gather s a > n ; Concat n m > t axis=0 ; Reshape "
         "x t "
         "> y",
         "");
    pins("x:N,4,6 w=4,6 ; Shape x > s ; Expand w s > y", "");
}
END_TEST

START_TEST(sizes_that_are_computed_with_pin_their_axes)
{
    pins("x:N,4,6 a=i[2] ; Shape x > s ; Gather s a > n ; Cast n > f to=1 ; Sqrt f > r ; Div x r > "
         "y",
         "x.2");
    pins("x:N,4,6 ; Shape x > s ; Identity s > y", "x.0 x.1 x.2");
    pins("x:N,4,6 a=i[1] w=4,6 ; Shape x > s ; Gather s a > n ; Add x w > z ; Unheard n z > y",
         "x.1");
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    struct accel_model *m = line_model(
        17,
        "x:N,4,6 a=i[1] b=i[2] c=i[3] ; Shape x > s ; Gather s a > p ; Gather s b > q ; Mul p q > "
        "t ; Concat t c > u axis=0 ; Identity u > y");
    struct accel_provenance *p;
    for (long nth = 1;; nth++) {
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_provenance_build(&p, m);
        accel_alloc_fail_at(0, false);
        if (!err)
            break;
        ck_assert_int_eq(err, ACCEL_ENOMEM);
    }
    accel_provenance_free(p);
    accel_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("provenance");
    TCase *t = tcase_create("all");
    tcase_add_test(t, elements_are_followed_one_by_one_through_what_moves_them);
    tcase_add_test(t, arithmetic_joins_what_it_meets);
    tcase_add_test(t, sizes_that_end_in_size_inputs_pin_nothing);
    tcase_add_test(t, sizes_that_are_computed_with_pin_their_axes);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
