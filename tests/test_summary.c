/* The numbers of a model, on graphs small enough to count by hand. */
#include "tests/t.h"

#include "api/summary.h"
#include "graph/infer.h"
#include "ops/ops.h"

#include <string.h>

static struct accel_model *m;
static struct accel_summary s;

static void begin(void)
{
    ck_ok(accel_model_new(&m, 17));
}

static void tidy(void)
{
    accel_summary_clear(&s);
    accel_model_free(m);
    m = NULL;
}

static struct accel_value *value(struct accel_graph *g, const char *name)
{
    struct accel_value *v;
    ck_ok(accel_value_new(&v, g, name));
    return v;
}

/* A graph input [N, dim]. */
static struct accel_value *input(const char *name, int64_t dim)
{
    struct accel_value *v = value(m->graph, name);
    struct accel_dim *d = ACCEL_NEW(&m->arena, struct accel_dim, 2);
    ck_ok(accel_dim_named(&d[0], &m->symbols, "N"));
    d[1] = accel_dim_of(dim);
    v->is_input = true;
    v->declared_dtype = v->dtype = ACCEL_F32;
    v->declared = v->shape = (struct accel_shape){2, d};
    m->graph->input = ACCEL_NEW(&m->arena, struct accel_value *, 1);
    m->graph->input[0] = v;
    m->graph->n_input = 1;
    return v;
}

static struct accel_value *constant(const char *name, int64_t rows, int64_t columns,
                                    const float *data)
{
    struct accel_value *v = value(m->graph, name);
    struct accel_tensor *t = ACCEL_NEW(&m->arena, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(&m->arena, int64_t, 2);
    int rank = columns ? 2 : 1;
    dim[0] = rows;
    dim[1] = columns;
    uint64_t n = (uint64_t)(columns ? rows * columns : rows);
    *t = (struct accel_tensor){.name = v->name,
                               .dtype = ACCEL_F32,
                               .rank = rank,
                               .dim = dim,
                               .n = n,
                               .size = 4 * n,
                               .data = data};
    v->tensor = t;
    ck_ok(accel_model_add_tensor(m, t));
    return v;
}

static struct accel_node *node(struct accel_graph *g, const char *op, struct accel_value **in,
                               int n_in, struct accel_value *out)
{
    struct accel_node *n;
    const struct accel_op *o = accel_op_find(op, "");
    ck_ok(accel_node_new(&n, g, o, op, "", "", in, n_in, &out, out ? 1 : 0));
    if (o && o->parse)
        ck_ok(o->parse(n, 17));
    return n;
}

static const float sixteen[16] = {0, -0.0f, 0, 1e-45f, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, NAN};

START_TEST(a_shared_weight_counts_at_its_first_reader)
{
    struct accel_value *x = input("x", 4), *w = constant("w", 4, 4, sixteen);
    struct accel_value *a = value(m->graph, "a"), *y = value(m->graph, "y");
    node(m->graph, "MatMul", (struct accel_value *[]){x, w}, 2, a);
    node(m->graph, "MatMul", (struct accel_value *[]){a, w}, 2, y);
    ck_ok(accel_model_infer(m));
    ck_ok(accel_summary_build(&s, m, true));
    ck_assert_uint_eq(s.n_row, 2);
    ck_assert_uint_eq(s.params, 16);
    ck_assert_uint_eq(s.nonzero, 13); /* both zeros are zeros; a denormal and NaN are not */
    ck_assert_uint_eq(s.row[0].params, 16);
    ck_assert_uint_eq(s.row[0].nonzero, 13);
    ck_assert_uint_eq(s.row[0].size, 64);
    ck_assert_uint_eq(s.row[1].params, 0);
}
END_TEST

START_TEST(macs_are_those_of_one_sample_per_node_too)
{
    struct accel_value *x = input("x", 4), *w = constant("w", 4, 4, sixteen);
    struct accel_value *a = value(m->graph, "a"), *y = value(m->graph, "y");
    node(m->graph, "MatMul", (struct accel_value *[]){x, w}, 2, a);
    node(m->graph, "MatMul", (struct accel_value *[]){a, w}, 2, y);
    ck_ok(accel_model_infer(m));
    ck_ok(accel_summary_build(&s, m, false));
    ck_assert_int_eq(s.macs, 32);
    ck_assert_int_eq(s.row[0].macs, 16);
    ck_assert_int_eq(s.row[1].macs, 16);
    ck_assert_int_eq(y->shape.dim[0].n, -1); /* the batch is a symbol again */
    ck_assert(s.row[0].unread);              /* zeros were not asked for */
    ck_assert_uint_eq(s.n_unread, 1);
}
END_TEST

START_TEST(running_statistics_are_not_trainable)
{
    struct accel_value *x = input("x", 4), *y = value(m->graph, "y");
    struct accel_value *in[5] = {x};
    static const char *const name[] = {"", "scale", "shift", "mean", "var"};
    for (int i = 1; i < 5; i++)
        in[i] = constant(name[i], 4, 0, sixteen + 4);
    constant("unused", 2, 2, sixteen + 4);
    node(m->graph, "BatchNormalization", in, 5, y);
    ck_ok(accel_model_infer(m));
    ck_ok(accel_summary_build(&s, m, true));
    ck_assert_uint_eq(s.params, 20);
    ck_assert_uint_eq(s.trainable, 12);
    ck_assert_uint_eq(s.row[0].params, 16); /* nobody reads the unused one */
}
END_TEST

START_TEST(bodies_follow_the_node_that_holds_them)
{
    struct accel_value *x = input("x", 4), *w = constant("w", 4, 4, sixteen);
    struct accel_graph **body = ACCEL_NEW(&m->arena, struct accel_graph *, 2);
    struct accel_node *holder = node(m->graph, "NoSuchOp", &x, 1, value(m->graph, "z"));
    struct accel_node *inner[2];
    for (int i = 0; i < 2; i++) {
        ck_ok(accel_graph_new(&body[i], m, m->graph));
        inner[i] = node(body[i], "MatMul", (struct accel_value *[]){x, w}, 2, value(body[i], "a"));
    }
    struct accel_node *last = node(m->graph, "Relu", &x, 1, value(m->graph, "y"));
    holder->attr = ACCEL_NEW(&m->arena, struct accel_attr, 1);
    holder->attr[0] =
        (struct accel_attr){.name = "bodies", .kind = ACCEL_ATTR_GRAPHS, .n = 2, .graphs = body};
    holder->n_attr = 1;
    ck_ok(accel_model_infer(m));
    ck_ok(accel_summary_build(&s, m, true));
    ck_assert_uint_eq(s.n_row, 4);
    ck_assert_ptr_eq(s.row[0].node, holder);
    ck_assert_ptr_eq(s.row[1].node, inner[0]);
    ck_assert_ptr_eq(s.row[2].node, inner[1]);
    ck_assert_ptr_eq(s.row[3].node, last);
    ck_assert_uint_eq(s.row[1].params, 16);
    ck_assert_uint_eq(s.row[2].params, 0);
}
END_TEST

START_TEST(data_that_are_not_there_are_said_to_be_so)
{
    struct accel_value *x = input("x", 4), *w = constant("w", 4, 4, NULL);
    node(m->graph, "MatMul", (struct accel_value *[]){x, w}, 2, value(m->graph, "y"));
    ck_ok(accel_model_infer(m));
    ck_ok(accel_summary_build(&s, m, true));
    ck_assert_uint_eq(s.params, 16);
    ck_assert_uint_eq(s.n_unread, 1);
    ck_assert(s.row[0].unread);
}
END_TEST

static Suite *suite(void)
{
    Suite *t = suite_create("summary");
    TCase *c = tcase_create("all");
    tcase_add_checked_fixture(c, begin, tidy);
    tcase_add_test(c, a_shared_weight_counts_at_its_first_reader);
    tcase_add_test(c, macs_are_those_of_one_sample_per_node_too);
    tcase_add_test(c, running_statistics_are_not_trainable);
    tcase_add_test(c, bodies_follow_the_node_that_holds_them);
    tcase_add_test(c, data_that_are_not_there_are_said_to_be_so);
    suite_add_tcase(t, c);
    return t;
}

T_MAIN(suite)
