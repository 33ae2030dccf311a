/* Running: loops and branches, sizes that contents decide, watch, what is refused. */
#include "exec/plan.h"

#include <string.h>

#include "graph/infer.h"
#include "tests/op_t.h"

/* A one-node model with declared shapes, planned. */
static struct accel_plan *plan(struct op_run *r, const char *op, int opset, const char *line)
{
    struct accel_plan *p;
    *r = op_begin(op, opset, line);
    ck_ok(r->err);
    struct accel_graph *g = r->m->graph;
    g->input = ACCEL_NEW(&r->m->arena, struct accel_value *, g->n_value);
    g->output = ACCEL_NEW(&r->m->arena, struct accel_value *, g->n_value);
    for (size_t i = 0; i < g->n_value; i++)
        if (g->value[i]->is_input && !g->value[i]->tensor)
            g->input[g->n_input++] = g->value[i];
    for (int i = 0; i < r->n->n_out; i++)
        if (r->n->out[i]) {
            g->output[g->n_output++] = r->n->out[i];
            r->n->out[i]->is_output = true;
        }
    r->n->label = "/it";
    ck_ok(accel_plan_new(&p, r->m, &(struct accel_plan_options){0}));
    return p;
}

static void set(struct accel_plan *p, int i, enum accel_dtype dtype, int rank, const int64_t *dim,
                const void *data)
{
    int64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= dim[d];
    ck_ok(accel_plan_set_input(p, i, &(struct accel_array){dtype, rank, dim, n, (void *)data}));
}

START_TEST(an_input_of_another_size_settles_the_shapes_anew)
{
    struct op_run r;
    struct accel_plan *p = plan(&r, "Relu", 14, "Nx2");
    set(p, 0, ACCEL_F32, 2, (int64_t[]){1, 2}, (float[]){-1, 2});
    ck_ok(accel_plan_run(p));
    ck_assert_int_eq((int)accel_plan_output(p, 0)->n, 2);
    ck_assert(((float *)accel_plan_output(p, 0)->data)[0] == 0);
    set(p, 0, ACCEL_F32, 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, -6});
    ck_ok(accel_plan_run(p));
    const struct accel_array *y = accel_plan_output(p, 0);
    ck_assert_int_eq((int)y->dim[0], 3);
    ck_assert(((float *)y->data)[4] == 5 && ((float *)y->data)[5] == 0);
    ck_assert_int_ge((int)accel_plan_block_size(p), 24);
    accel_plan_free(p);
    op_end(&r);
}
END_TEST

START_TEST(sizes_that_contents_decide_are_asked_for)
{
    struct op_run r;
    struct accel_plan *p = plan(&r, "NonZero", 13, "2x3");
    set(p, 0, ACCEL_F32, 2, (int64_t[]){2, 3}, (float[]){0, 1, 0, 2, 0, 3});
    ck_ok(accel_plan_run(p));
    const struct accel_array *y = accel_plan_output(p, 0);
    const int64_t want[] = {0, 1, 1, 1, 0, 2};
    ck_assert_int_eq(y->rank, 2);
    ck_assert_int_eq((int)y->dim[1], 3);
    ck_assert_mem_eq(y->data, want, sizeof want);
    set(p, 0, ACCEL_F32, 2, (int64_t[]){2, 3}, (float[]){0, 0, 0, 0, 0, 3});
    ck_ok(accel_plan_run(p));
    ck_assert_int_eq((int)accel_plan_output(p, 0)->dim[1], 1);
    accel_plan_free(p);
    op_end(&r);
}
END_TEST

/* int32 and bool lie in memory as they are declared; kernels saw int64_t. */
START_TEST(small_types_are_converted_at_the_border)
{
    struct op_run r;
    struct accel_plan *p = plan(&r, "Add", 14, "i32:3 i32:3");
    set(p, 0, ACCEL_I32, 1, (int64_t[]){3}, (int32_t[]){1, 2, INT32_MAX});
    set(p, 1, ACCEL_I32, 1, (int64_t[]){3}, (int32_t[]){10, 20, 1});
    ck_ok(accel_plan_run(p));
    const int32_t want[] = {11, 22, INT32_MIN};
    ck_assert_int_eq(accel_plan_output(p, 0)->dtype, ACCEL_I32);
    ck_assert_mem_eq(accel_plan_output(p, 0)->data, want, sizeof want);
    accel_plan_free(p);
    op_end(&r);
}
END_TEST

START_TEST(wrong_inputs_are_named_with_both_sides)
{
    struct op_run r;
    struct accel_plan *p = plan(&r, "Relu", 14, "4x2");
    float x[8] = {0};
    struct accel_array a = {ACCEL_F32, 2, (int64_t[]){4, 3}, 12, x};
    ck_fails(accel_plan_run(p), ACCEL_EARG, "in0");
    ck_fails(accel_plan_set_input(p, 0, &a), ACCEL_EARG, "4x2");
    a = (struct accel_array){ACCEL_F32, 1, (int64_t[]){8}, 8, x};
    ck_fails(accel_plan_set_input(p, 0, &a), ACCEL_EARG, "rank 1");
    a = (struct accel_array){ACCEL_I32, 2, (int64_t[]){4, 2}, 8, x};
    ck_fails(accel_plan_set_input(p, 0, &a), ACCEL_EARG, "int32");
    accel_plan_free(p);
    op_end(&r);
}
END_TEST

START_TEST(bad_contents_are_errors_with_the_node)
{
    struct op_run r;
    struct accel_plan *p = plan(&r, "Gather", 13, "3x2 i64:1");
    set(p, 0, ACCEL_F32, 2, (int64_t[]){3, 2}, (float[]){1, 2, 3, 4, 5, 6});
    set(p, 1, ACCEL_I64, 1, (int64_t[]){1}, (int64_t[]){3});
    enum accel_err err = accel_plan_run(p);
    ck_assert_int_ne(err, ACCEL_OK);
    ck_assert_ptr_nonnull(strstr(accel_errmsg(), "node '/it' (Gather)"));
    set(p, 1, ACCEL_I64, 1, (int64_t[]){1}, (int64_t[]){-1});
    ck_ok(accel_plan_run(p));
    ck_assert(((float *)accel_plan_output(p, 0)->data)[1] == 6);
    accel_plan_free(p);
    op_end(&r);
}
END_TEST

/* Against numbers of a hand-written sum: grouped, dilated, strided, uneven padding. */
START_TEST(convolution_adds_what_the_definition_says)
{
    struct op_run r;
    struct accel_plan *p =
        plan(&r, "Conv", 11, "1x4x7x6 6x2x3x2 6 | group=2 strides=2,1 dilations=1,2 pads=1,0,0,3");
    float x[4 * 42], w[6 * 12], b[6];
    for (int i = 0; i < 4 * 42; i++)
        x[i] = (float)(i * 7 % 11) - 5;
    for (int i = 0; i < 6 * 12; i++)
        w[i] = (float)(i * 5 % 13) - 6;
    for (int i = 0; i < 6; i++)
        b[i] = (float)i;
    set(p, 0, ACCEL_F32, 4, (int64_t[]){1, 4, 7, 6}, x);
    set(p, 1, ACCEL_F32, 4, (int64_t[]){6, 2, 3, 2}, w);
    set(p, 2, ACCEL_F32, 1, (int64_t[]){6}, b);
    ck_ok(accel_plan_run(p));
    const struct accel_array *y = accel_plan_output(p, 0);
    ck_assert_int_eq((int)y->dim[2], 3);
    ck_assert_int_eq((int)y->dim[3], 7);
    for (int m = 0; m < 6; m++)
        for (int h = 0; h < 3; h++)
            for (int v = 0; v < 7; v++) {
                float sum = b[m];
                for (int c = 0; c < 2; c++)
                    for (int i = 0; i < 3; i++)
                        for (int k = 0; k < 2; k++) {
                            int ih = h * 2 + i - 1, iw = v + k * 2;
                            if (ih >= 0 && ih < 7 && iw < 6)
                                sum += w[((m * 2 + c) * 3 + i) * 2 + k] *
                                       x[((m / 3 * 2 + c) * 7 + ih) * 6 + iw];
                        }
                ck_assert_msg(((float *)y->data)[(m * 3 + h) * 7 + v] == sum, "%d %d %d", m, h, v);
            }
    accel_plan_free(p);
    op_end(&r);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("plan");
    TCase *t = tcase_create("plan");
    tcase_add_test(t, an_input_of_another_size_settles_the_shapes_anew);
    tcase_add_test(t, sizes_that_contents_decide_are_asked_for);
    tcase_add_test(t, small_types_are_converted_at_the_border);
    tcase_add_test(t, wrong_inputs_are_named_with_both_sides);
    tcase_add_test(t, bad_contents_are_errors_with_the_node);
    tcase_add_test(t, convolution_adds_what_the_definition_says);
    suite_add_tcase(s, t);
    return s;
}
T_MAIN(suite)
