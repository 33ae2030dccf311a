/* test_groups.c - which channels stand or fall together, and what cutting them leaves: sliced and
 * masked models run here and must agree. */
#include <stdio.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "exec/plan.h"
#include "prune/cut.h"
#include "tests/line_t.h"

static const char *const lines[] = {
    "x:N,3,6,6 a=8,3,3,3 ab=8 b=8,8,3,3 c=4,8,1,1 ; Conv x a ab > p pads=1,1,1,1 ; Sigmoid p > q ; "
    "Conv q b > r pads=1,1,1,1 ; Add r q > s ; Conv s c > y",
    "x:N,3,4,4 a=6,3,1,1 b=4,3,1,1 c=5,10,1,1 d=2,5,1,1 ; Conv x a > p ; Conv x b > q ; Concat p q "
    "> r "
    "axis=1 ; Conv r c > s ; Relu s > t ; Conv t d > y",
    "x:N,3,4,4 a=8,3,1,1 s=i[3,5] b=4,3,1,1 c=4,5,1,1 d=2,8,1,1 ; Conv x a > p ; Split p s > q r "
    "axis=1 "
    "; Conv q b > u ; Conv r c > v ; Concat u v > w axis=1 ; Conv w d > y",
    "x:N,3,2,2 a=6,3,1,1 t=i[0,-1] w=24,5 v=5,2 ; Conv x a > p ; Reshape p t > q ; MatMul q w > r "
    "; "
    "Relu r > s ; MatMul s v > y",
    "x:N,3,4,4 a=12,3,1,1 b=12,4,1,1 c=2,12,1,1 ; Conv x a > p ; Conv p b > q group=3 ; Conv q c > "
    "y",
    "x:N,3,4,4 a=6,3,1,1 b=6,1,3,3 c=2,6,1,1 ; Conv x a > p ; Conv p b > q group=6 pads=1,1,1,1 ; "
    "Conv q "
    "c > y",
    "x:N,5,8 q=8,6 k=8,6 v=8,6 h=i[0,0,3,2] m=i[0,0,6] o=6,4 ; MatMul x q > a ; MatMul x k > b ; "
    "MatMul x "
    "v > c ; Reshape a h > d ; Reshape b h > e ; Reshape c h > f ; Transpose d > g perm=0,2,1,3 ; "
    "Transpose e > i perm=0,2,3,1 ; Transpose f > j perm=0,2,1,3 ; MatMul g i > l ; Softmax l > n "
    "; "
    "MatMul n j > r ; Transpose r > s perm=0,2,1,3 ; Reshape s m > t ; MatMul t o > y",
    "x:N,6 a=6,8 g=8 b=8,4 e=f[0.001] ; MatMul x a > p ; Mul p p > q ; ReduceMean q > r axes=-1 ; "
    "Add r e "
    "> s ; Sqrt s > t ; Div p t > u ; Mul u g > v ; MatMul v b > y",
    "x:N,3,4,4 a=8,3,1,1 i=i[7,0,1,4,4] b=2,5,1,1 ; Conv x a > p ; Gather p i > q axis=1 ; Conv q "
    "b > y",
    "x:N,3,4,4 a=8,3,1,1 b=2,10,1,1 p=i[0,1,0,0,0,1,0,0] ; Conv x a > q ; Pad q p > r ; Conv r b > "
    "y",
    "x:N,3,4,4 a=8,3,1,1 b=8 c=6,8,1,1 d=2,6,1,1 ; Conv x a b > p ; Relu p > q ; Conv q c > r ; "
    "Conv r d > "
    "y",
    "x:N,3,4,4 a=8,3,1,1 v=8 c=8,8,1,1 d=2,8,1,1 ; Conv x a v > p ; Relu p > q ; Conv q c v > r ; "
    "Relu r > "
    "s ; Conv s d > y",
    "x:N,3,4,4 a=8,3,1,1 n=i[0] k=i[8] w=i[16] b=3,128 c=2,3 ; Conv x a > p ; Shape p > s ; Gather "
    "s n > "
    "d ; Mul k w > e ; Concat d e > t axis=0 ; Reshape p t > q ; Gemm q b > r transB=1 ; Gemm r c "
    "> y "
    "transB=1",
};
enum { N_LINES = sizeof lines / sizeof *lines };

/* ------------------------------------------------------------------ cutting */

static struct accel_groups *groups;
static struct accel_cut_plan *cut;

static enum accel_err build(bool *gone, struct accel_model *m, double ratio, bool masked)
{
    struct accel_rng rng = accel_rng_init(11);
    int64_t left[4096];
    groups = NULL;
    cut = NULL;
    ACCEL_TRY(accel_groups_build(&groups, m, NULL));
    for (size_t i = 0; i < groups->n_class; i++)
        left[i] = groups->cls[i].n;
    for (int32_t i = 0; i < groups->n_group; i++) {
        bool good = accel_rng_uniform(&rng) < ratio;
        for (size_t p = groups->part_at[i]; p < groups->part_at[i + 1]; p++)
            good = good && left[groups->part[p].cls] > groups->part[p].count;
        for (size_t p = groups->part_at[i]; good && p < groups->part_at[i + 1]; p++)
            left[groups->part[p].cls] -= groups->part[p].count;
        gone[i] = good;
    }
    ACCEL_TRY(accel_cut_plan_new(&cut, groups, gone));
    return masked ? accel_cut_mask(cut, m) : accel_cut_slice(cut, m);
}

static void clear(void)
{
    accel_cut_plan_free(cut);
    accel_groups_free(groups);
}

static float *run(struct accel_model *m, int64_t *n)
{
    struct accel_plan *p;
    const struct accel_value *v = m->graph->input[0];
    int64_t dim[4], count = 1;
    uint32_t seed = 3;
    ck_ok(accel_plan_new(&p, m, &(struct accel_plan_options){0}));
    for (int i = 0; i < v->declared.rank; i++)
        count *= dim[i] = v->declared.dim[i].n < 0 ? 2 : v->declared.dim[i].n;
    float *x = calloc((size_t)count, sizeof *x);
    for (int64_t i = 0; i < count; i++)
        x[i] = (float)(int32_t)(seed = seed * 1664525u + 1013904223u) / 2147483648.0f;
    ck_ok(accel_plan_set_input(p, 0,
                               &(struct accel_array){ACCEL_F32, v->declared.rank, dim, count, x}));
    ck_ok(accel_plan_run(p));
    const struct accel_array *y = accel_plan_output(p, 0);
    float *copy = calloc((size_t)y->n, sizeof *copy);
    memcpy(copy, y->data, (size_t)y->n * sizeof *copy);
    *n = y->n;
    accel_plan_free(p);
    free(x);
    return copy;
}

START_TEST(cutting_equals_zeroing)
{
    for (int i = 0; i < N_LINES; i++)
        for (int r = 1; r <= 7; r += 3) {
            bool gone[1024] = {false};
            float *y[2];
            int64_t n[2];
            for (int masked = 0; masked < 2; masked++) {
                struct accel_model *m = line_model(13, lines[i]);
                ck_ok(build(gone, m, r / 10.0, masked));
                ck_assert_msg(groups->n_group > 0, "%s: nothing is free", lines[i]);
                y[masked] = run(m, &n[masked]);
                accel_model_free(m);
                clear();
            }
            float most = 0;
            ck_assert_int_eq(n[0], n[1]);
            for (int64_t k = 0; k < n[0]; k++)
                most = fmaxf(most, fabsf(y[1][k]));
            for (int64_t k = 0; k < n[0]; k++)
                ck_assert_msg(fabsf(y[0][k] - y[1][k]) <= 1e-5f * most, "%s: %g sliced, %g masked",
                              lines[i], (double)y[0][k], (double)y[1][k]);
            free(y[0]);
            free(y[1]);
        }
}
END_TEST

START_TEST(every_failed_allocation_is_an_error)
{
    for (int i = 0; i < N_LINES; i++)
        for (int masked = 0; masked < 2; masked++)
            for (long nth = 1;; nth += 1 + nth / 40) {
                bool gone[1024] = {false};
                struct accel_model *m = line_model(13, lines[i]);
                accel_alloc_fail_at(nth, false);
                enum accel_err err = build(gone, m, 0.5, masked);
                accel_alloc_fail_at(0, false);
                clear();
                accel_model_free(m);
                if (!err)
                    break;
                ck_assert_int_eq(err, ACCEL_ENOMEM);
            }
}
END_TEST

/* ------------------------------------------------------------------ who hangs on whom */

/* Groups of the units of an axis: "0 1 2 -" with - for what stays. */
static void are(int opset, const char *line, const char *value, int axis, const char *want)
{
    struct accel_model *m = line_model(opset, line);
    struct accel_groups *g;
    char got[256] = "";
    ck_ok(accel_groups_build(&g, m, NULL));
    uint32_t id = accel_groups_value(g, line_find(m, value), axis);
    for (int64_t i = 0; i < g->size[id]; i++) {
        int32_t group = accel_groups_at(g, id, i, NULL);
        if (group < 0)
            strcat(got, i ? " -" : "-");
        else
            sprintf(got + strlen(got), "%s%d", i ? " " : "", group);
    }
    ck_assert_msg(strcmp(got, want) == 0, "%s: %s.%d is %s, want %s", line, value, axis, got, want);
    accel_groups_free(g);
    accel_model_free(m);
}

static void stays(const char *line, const char *value, int axis, const char *op, const char *why)
{
    struct accel_model *m = line_model(17, line);
    struct accel_groups *g;
    const struct accel_group_wall *w;
    ck_ok(accel_groups_build(&g, m, NULL));
    ck_assert_int_lt(accel_groups_at(g, accel_groups_value(g, line_find(m, value), axis), 0, &w),
                     0);
    ck_assert_msg(w && strcmp(w->node ? w->node->op_type : "-", op) == 0 && strstr(w->why, why),
                  "%s: %s.%d stays by %s: %s", line, value, axis,
                  w && w->node ? w->node->op_type : "-", w ? w->why : "?");
    accel_groups_free(g);
    accel_model_free(m);
}

START_TEST(groups_are_what_the_ties_say)
{
    are(17, "x:N,2 a=2,3 b=3,2 ; MatMul x a > p ; MatMul p b > y", "a", 1, "0 1 2");
    are(17, "x:N,2 a=2,3 b=3,2 ; MatMul x a > p ; MatMul p b > y", "b", 0, "0 1 2");
    are(17, "x:N,2 a=2,3 b=3,2 ; MatMul x a > p ; MatMul p b > y", "b", 1, "- -");
    are(17,
        "x:N,2 a=2,4 s=i[2,2] b=2,2 ; MatMul x a > p ; Split p s > q r axis=1 ; Mul q r > t ; "
        "MatMul t "
        "b > y",
        "a", 1, "0 1 0 1");
    are(17, "x:N,2,3 a=4,2,1 t=i[0,12] b=12,2 ; Conv x a > p ; Reshape p t > q ; MatMul q b > y",
        "b", 0, "0 0 0 1 1 1 2 2 2 3 3 3");
    are(17, "x:N,2 a=2,4 i=i[1] b=2 ; MatMul x a > p ; Gather p i > q axis=1 ; Mul q b > y", "a", 1,
        "0 - 1 2");
}
END_TEST

START_TEST(what_keeps_channels_is_named)
{
    stays("x:N,2 a=2,3 ; MatMul x a > y", "a", 1, "-", "feeds a graph output");
    stays("x:N,2 a=2,3 b=3,2 ; MatMul x a > p ; MatMul p b > y", "a", 0, "-", "graph input");
    stays("x:N,2 a=2,3 g=3 b=3,2 ; MatMul x a > p ; LayerNormalization p g > q ; MatMul q b > y",
          "a", 1, "LayerNormalization", "");
    stays("x:N,2 a=2,3 b=3,2 ; MatMul x a > p ; Unheard p > q ; MatMul q b > y", "a", 1, "Unheard",
          "no rule");
    stays("x:N,2 a=2,3 b=3,2 ; MatMul x a > p ; Softmax p > q ; MatMul q b > y", "a", 1, "Softmax",
          "");
    stays("x:N,2 a=2,3 ; MatMul x a > p ; Sigmoid p > q ; ReduceSum q > y keepdims=1", "a", 1,
          "ReduceSum", "sums what is not zero");
    stays("x:N,2 a=2,1 b=1,2 ; MatMul x a > p ; MatMul p b > y", "a", 1, "-", "too few");
    stays("x:N,4 a=4,3 i=i[1] b=3,2 ; MatMul x a > p ; Shape p > s ; Gather s i > n ; Cast n > f "
          "to=1 ; Div "
          "p f > q ; MatMul q b > y",
          "a", 1, "Div", "computed with");
}
END_TEST

START_TEST(a_vector_that_is_shared_is_copied_where_it_is_cut_differently)
{
    struct accel_model *m = line_model(13, lines[11]);
    bool gone[1024] = {false};
    ck_ok(build(gone, m, 0.5, false));
    const struct accel_node *first = line_find(m, "p")->producer,
                            *second = line_find(m, "r")->producer;
    const struct accel_tensor *a = first->in[2]->tensor, *b = second->in[2]->tensor;
    ck_assert_ptr_ne(a, b);
    ck_assert_int_eq(a->dim[0], first->in[1]->tensor->dim[0]);
    ck_assert_int_eq(b->dim[0], second->in[1]->tensor->dim[0]);
    clear();
    accel_model_free(m);
}
END_TEST

START_TEST(a_computed_target_keeps_its_computed_parts)
{
    struct accel_model *m = line_model(13, lines[12]);
    bool gone[1024] = {false};
    ck_ok(build(gone, m, 0.5, false));
    const struct accel_value *t = line_find(m, "q")->producer->in[1];
    int64_t left = line_find(m, "a")->tensor->dim[0];
    ck_assert_str_eq(t->producer->op_type, "Concat");
    ck_assert_int_eq(t->producer->n_in, 2);
    ck_assert_str_eq(t->producer->in[0]->producer->op_type, "Slice");
    ck_assert_int_eq(((const int64_t *)t->producer->in[1]->tensor->data)[0], left * 16);
    ck_assert_int_lt(t->producer->index, line_find(m, "q")->producer->index);
    clear();
    accel_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("groups");
    TCase *t = tcase_create("all");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, cutting_equals_zeroing);
    tcase_add_test(t, every_failed_allocation_is_an_error);
    tcase_add_test(t, groups_are_what_the_ties_say);
    tcase_add_test(t, what_keeps_channels_is_named);
    tcase_add_test(t, a_vector_that_is_shared_is_copied_where_it_is_cut_differently);
    tcase_add_test(t, a_computed_target_keeps_its_computed_parts);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
