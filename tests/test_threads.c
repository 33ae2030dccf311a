/* Threads: every item is done once, kernels give the same bits for any number, processors. */
#include "base/threads.h"

#include <sched.h>
#include <stdatomic.h>

#include "exec/plan.h"
#include "tests/op_t.h"

/* LeakSanitizer crashes on libgomp's threads, which wait for work when a test ends. */
#ifdef __SANITIZE_ADDRESS__
enum { MANY = 1 };
#else
enum { MANY = 3 };
#endif

struct count {
    atomic_int done[1000];
    atomic_int pieces;
};

static void count_items(void *ctx, int64_t from, int64_t to)
{
    struct count *c = ctx;
    c->pieces++;
    for (int64_t i = from; i < to; i++)
        c->done[i]++;
}

START_TEST(every_item_is_done_once)
{
    for (int64_t n = 0; n <= 1000; n += 37)
        for (int threads = 1; threads <= MANY; threads++)
            for (int64_t cost = 1; cost < 1000000; cost += 500000) {
                struct count c = {0};
                accel_threads_set(threads);
                accel_threads_run(count_items, &c, n, cost);
                for (int64_t i = 0; i < 1000; i++)
                    ck_assert_int_eq(c.done[i], i < n);
                ck_assert_int_eq(c.pieces, n == 0                    ? 0
                                           : cost > 1 && n > threads ? threads
                                                                     : c.pieces);
                ck_assert(cost > 1 || n == 0 || c.pieces == 1);
            }
}
END_TEST

static void run_inner(void *ctx, int64_t from, int64_t to)
{
    for (; from < to; from++)
        accel_threads_run(count_items, &((struct count *)ctx)[from], 500, 1000000);
}

START_TEST(work_inside_of_work_stays_with_its_thread)
{
    static struct count c[4];
    accel_threads_set(MANY);
    accel_threads_run(run_inner, c, 4, 1000000);
    for (int k = 0; k < 4; k++) {
        ck_assert_int_eq(c[k].pieces, 1);
        for (int i = 0; i < 1000; i++)
            ck_assert_int_eq(c[k].done[i], i < 500);
    }
}
END_TEST

START_TEST(the_environment_counts_until_the_program_says_more)
{
    accel_threads_set(0);
    unsetenv("OMP_NUM_THREADS");
    ck_assert_int_eq(accel_threads_get(), 1);
    setenv("OMP_NUM_THREADS", "3,2", 1);
    ck_assert_int_eq(accel_threads_get(), 3);
    setenv("OMP_NUM_THREADS", "-4", 1);
    ck_assert_int_eq(accel_threads_get(), 1);
    accel_threads_set(2);
    ck_assert_int_eq(accel_threads_get(), 2);
}
END_TEST

/* The sum of a node's result bits; its inputs are filled from their names and places. */
static uint64_t sum_of(const char *op, int opset, const char *line)
{
    struct op_run r = op_begin(op, opset, line);
    struct accel_plan *p;
    struct accel_graph *g = r.m->graph;
    uint64_t sum = 0;
    ck_ok(r.err);
    g->input = ACCEL_NEW(&r.m->arena, struct accel_value *, g->n_value);
    g->output = ACCEL_NEW(&r.m->arena, struct accel_value *, 1);
    for (size_t i = 0; i < g->n_value; i++)
        if (g->value[i]->is_input && !g->value[i]->tensor)
            g->input[g->n_input++] = g->value[i];
    g->output[g->n_output++] = r.n->out[0];
    r.n->out[0]->is_output = true;
    ck_ok(accel_plan_new(&p, r.m, &(struct accel_plan_options){0}));
    void *data[OP_MAX_IN];
    for (int i = 0; i < accel_plan_n_inputs(p); i++) {
        const struct accel_value *v = accel_plan_input(p, i);
        int64_t dim[8], n = 1;
        for (int d = 0; d < v->declared.rank; d++)
            n *= dim[d] = v->declared.dim[d].n;
        data[i] = calloc((size_t)n, 8);
        for (int64_t k = 0; k < n; k++)
            if (v->declared_dtype == ACCEL_F32)
                ((float *)data[i])[k] = (float)(k * 7919 % 1013) / 1013 - 0.4f;
            else
                ((unsigned char *)data[i])[k] = (unsigned char)(k * 7919 % 251);
        ck_ok(accel_plan_set_input(
            p, i, &(struct accel_array){v->declared_dtype, v->declared.rank, dim, n, data[i]}));
    }
    ck_ok(accel_plan_run(p));
    const struct accel_array *y = accel_plan_output(p, 0);
    for (int64_t i = 0; i < y->n; i++)
        sum = sum * 31 + ((const uint32_t *)y->data)[i];
    for (int i = 0; i < accel_plan_n_inputs(p); i++)
        free(data[i]);
    accel_plan_free(p);
    op_end(&r);
    return sum;
}

START_TEST(plain_kernels_give_the_same_bits_for_any_number_of_threads)
{
    static const char *const rows[][2] = {
        {"Conv", "2x6x17x17 8x3x3x3 8 | group=2 pads=1,1,1,1"},
        {"MatMul", "3x33x40 40x29"},
        {"Gemm", "37x64 50x64 50 | transB=1"},
        {"MatMulInteger", "u8:33x65 u8:65x31"},
        {"Add", "40x500 500"},
        {"Div", "40x500 40x500"},
        {"Tanh", "40x500"},
        {"Elu", "40x500"},
        {"ConvInteger", "u8:1x4x15x15 u8:6x4x3x3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        accel_threads_set(1);
        uint64_t one = sum_of(rows[i][0], 13, rows[i][1]);
        for (int n = 2; n <= MANY; n++) {
            accel_threads_set(n);
            ck_assert_msg(sum_of(rows[i][0], 13, rows[i][1]) == one, "%s, %d threads", rows[i][0],
                          n);
        }
    }
}
END_TEST

START_TEST(a_list_of_processors_is_taken_or_refused_as_a_whole)
{
    cpu_set_t before, after;
    char text[48];
    int n = 0, first = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(first, &before))
        first++;
    static const char *const bad[] = {"",   "x",    "1-",  "-1",  "3-1",
                                      "0,", "0,,1", "0 1", "0x1", "0;1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        ck_fails(accel_threads_pin(&n, bad[i]), ACCEL_EARG, "looks like 0-3,5");
    ck_fails(accel_threads_pin(&n, "99999999999999999999"), ACCEL_EARG, "is not there");
    snprintf(text, sizeof text, "%d,1023", first);
    ck_fails(accel_threads_pin(&n, text), ACCEL_EARG, "processor 1023");
    sched_getaffinity(0, sizeof after, &after);
    ck_assert(CPU_EQUAL(&before, &after));
    snprintf(text, sizeof text, "%d-%d,%d", first, first, first);
    ck_ok(accel_threads_pin(&n, text));
    ck_assert_int_eq(n, 1);
    sched_getaffinity(0, sizeof after, &after);
    ck_assert(CPU_COUNT(&after) == 1 && CPU_ISSET(first, &after));
    ck_assert_int_eq(sched_setaffinity(0, sizeof before, &before), 0);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("threads");
    TCase *t = tcase_create("threads");
    tcase_add_test(t, every_item_is_done_once);
    tcase_add_test(t, work_inside_of_work_stays_with_its_thread);
    tcase_add_test(t, the_environment_counts_until_the_program_says_more);
    tcase_add_test(t, plain_kernels_give_the_same_bits_for_any_number_of_threads);
    tcase_add_test(t, a_list_of_processors_is_taken_or_refused_as_a_whole);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
