/* test_unfold.c - a node as rows: inputs of every position times the weight, plus the bias, are the
 * node's output, for every example of the operators that are linear in a weight. */
#include "exec/plan.h"
#include "ops/unfold.h"
#include "tests/op_t.h"

static struct accel_array operand[3];
static int64_t dims[3][8];
static float data[3][8192];

static struct accel_plan *plan(const struct op_run *r)
{
    struct accel_plan *p;
    struct accel_graph *g = r->m->graph;
    g->input = r->n->in;
    g->n_input = (size_t)r->n->n_in;
    g->output = r->n->out;
    g->n_output = 1;
    r->n->out[0]->is_output = true;
    ck_ok(accel_plan_new(&p, r->m, &(struct accel_plan_options){0}));
    return p;
}

static void set_operands(struct accel_plan *p, const struct op_run *r)
{
    for (int i = 0; i < r->n->n_in; i++) {
        const struct accel_shape *s = &r->n->in[i]->shape;
        operand[i] = (struct accel_array){ACCEL_F32, s->rank, dims[i], 1, data[i]};
        for (int d = 0; d < s->rank; d++) {
            dims[i][d] = s->dim[d].n;
            operand[i].n *= s->dim[d].n;
        }
        ck_assert_int_le(operand[i].n, 8192);
        for (int64_t k = 0; k < operand[i].n; k++)
            data[i][k] = (float)((k * (7 + 4 * i) + 3 * i) % 23) / 8 - 1;
        ck_ok(accel_plan_set_input(p, i, &operand[i]));
    }
}

/* Output channel m at one position of one sample, from the rows. */
static double value_of(const struct accel_unfold *u, const float *x, int64_t m)
{
    int64_t g = m / u->n_y, k = m % u->n_y;
    double sum = 0;
    for (int64_t i = 0; i < u->n_x; i++)
        sum += (double)x[g * u->n_x + i] * (double)data[u->w_slot][accel_unfold_weight(u, g, i, k)];
    sum *= u->alpha;
    bool has = u->b_slot >= 0 && u->b_slot < u->node->n_in && u->node->in[u->b_slot];
    return has ? sum + u->beta * (double)data[u->b_slot][operand[u->b_slot].n == 1 ? 0 : m] : sum;
}

static void check_rows(const char *op, const char *line)
{
    struct op_run r = op_begin(op, 13, line);
    struct accel_plan *p;
    struct accel_unfold u;
    const char *why;
    static float x[8192], y[64];
    ck_assert_msg(!r.err, "%s %s: %s", op, line, accel_errmsg());
    if (!accel_unfold_init(&u, &why, r.n)) {
        ck_assert_msg(why != NULL, "%s %s is not known", op, line);
        op_end(&r);
        return;
    }
    p = plan(&r);
    set_operands(p, &r);
    ck_ok(accel_plan_run(p));
    const struct accel_array *out = accel_plan_output(p, 0);
    int64_t n = accel_unfold_positions(&u, out), M = u.n_group * u.n_y;
    ck_assert_int_eq(out->n, out->dim[0] * n * M);
    for (int64_t s = 0; s < out->dim[0]; s++)
        for (int64_t pos = 0; pos < n; pos++) {
            const int64_t last = M - 1;
            ck_ok(accel_unfold_x(&u, &operand[0], out, s, &pos, 1, x));
            accel_unfold_y(&u, out, s, &pos, 1, NULL, M, y);
            for (int64_t m = 0; m < M; m++)
                ck_assert_msg(fabs(value_of(&u, x, m) - (double)y[m]) < 1e-3, "%s %s: %g, not %g",
                              op, line, value_of(&u, x, m), (double)y[m]);
            float one;
            accel_unfold_y(&u, out, s, &pos, 1, &last, 1, &one);
            ck_assert(one == y[last]);
        }
    accel_plan_free(p);
    op_end(&r);
}

START_TEST(rows_times_weight_are_the_output)
{
    static const char *const lines[][2] = {
        {"Conv", "2x3x8x8 4x3x3x3 4 | pads=1,1,1,1"},
        {"Conv", "2x3x8 4x3x3"},
        {"Conv", "1x4x9x9 8x2x3x3 8 | group=2 strides=2,2"},
        {"Conv", "1x2x7x7 4x2x3x3 | auto_pad=SAME_UPPER strides=2,2"},
        {"Conv", "1x2x9x9 2x2x3x3 | dilations=2,2"},
        {"Conv", "1x2x9x8 2x2x3x2 | dilations=1,2 strides=3,1 pads=2,0,1,3"},
        {"Conv", "1x1x4x4x4 2x1x2x2x2"},
        {"Conv", "2x6x4x4 12x1x3x3 12 | group=6"},
        {"ConvTranspose", "2x3x4x5 3x4x2x2 4 | strides=2,2"},
        {"ConvTranspose", "2x4x4x5 4x3x3x3 6 | strides=2,1 pads=1,0,1,1 group=2"},
        {"ConvTranspose", "1x2x4x4 2x3x3x3 | strides=3,2 output_padding=1,1 dilations=1,2"},
        {"ConvTranspose", "1x2x5 2x3x4 | strides=3 pads=2,1"},
        {"Gemm", "3x4 5x4 5 | transB=1"},
        {"Gemm", "3x4 4x5 5 | alpha=0.5 beta=2"},
        {"Gemm", "3x4 4x5 scalar"},
        {"MatMul", "2x3x4 4x5"},
        {"MatMul", "3x4 4x5"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        check_rows(lines[i][0], lines[i][1]);
}
END_TEST

START_TEST(other_forms_say_why)
{
    static const char *const lines[][2] = {
        {"Gemm", "4x3 4x5 | transA=1"},
        {"MatMul", "2x3x4 2x4x5"},
        {"ConvTranspose", "1x2x4x4 2x3x3x3 | auto_pad=SAME_UPPER strides=2,2"},
        {"Conv", "1x3x8x8 ?"},
    };
    struct accel_unfold u;
    const char *why;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct op_run r = op_begin(lines[i][0], 13, lines[i][1]);
        ck_assert(!accel_unfold_init(&u, &why, r.n));
        ck_assert_msg(why != NULL, "%s", lines[i][1]);
        op_end(&r);
    }
    struct op_run r = op_begin("Relu", 13, "2x3");
    ck_assert(!accel_unfold_init(&u, &why, r.n) && !why);
    op_end(&r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("unfold");
    TCase *t = tcase_create("unfold");
    tcase_add_test(t, rows_times_weight_are_the_output);
    tcase_add_test(t, other_forms_say_why);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
