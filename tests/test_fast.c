/* Fast kernels equal the plain ones: over all examples of the operator table, over forms that the
 * examples leave out, and over chains that become one kernel.
 *
 * A model is one line:  "x:2x8x9x9 w=8x8x3x3 v+8 ; Conv x w > c pads=1,1,1,1 ; Relu c > y"
 * with inputs (:), constants (=), positive constants (+), and nodes; y's reader is the user. A type
 * other than float stands before the sizes ("x:u8:2x3"), a value for all behind them
 * ("s=scalar#0.1"). */
#include <string.h>

#include "base/alloc.h"
#include "device/device.h"
#include "exec/plan_int.h"
#include "graph/tensor_values.h"
#include "tests/op_t.h"

static struct accel_device *device;
static bool blas; /* it knows fewer operators */

static float next(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (float)(int32_t)(*seed >> 8) / 8388608.0f - 1;
}

/* ------------------------------------------------------------------ models */

/* The type in front of sizes, cut off. */
static enum accel_dtype take_type(char **sizes)
{
    static const struct {
        const char *name;
        enum accel_dtype dtype;
    } types[] = {{"u8:", ACCEL_U8}, {"i8:", ACCEL_I8}, {"i32:", ACCEL_I32}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strncmp(*sizes, types[i].name, strlen(types[i].name)) == 0) {
            *sizes += strlen(types[i].name);
            return types[i].dtype;
        }
    return ACCEL_F32;
}

/* Random numbers of a type: over all of a byte, up to ±1000, or from -1 to 1. */
static double random_of(enum accel_dtype dtype, uint32_t *seed)
{
    double f = (double)next(seed);
    return dtype == ACCEL_U8    ? floor(f * 127.9) + 128
           : dtype == ACCEL_I8  ? floor(f * 127.9)
           : dtype == ACCEL_I32 ? floor(f * 1000)
                                : f;
}

static void add_value(struct accel_model *m, char *text)
{
    size_t n = strcspn(text, ":=+");
    char kind = text[n], *sizes = text + n + 1;
    struct accel_value *v;
    text[n] = '\0';
    ck_ok(accel_value_new(&v, m->graph, text));
    v->is_tensor = true;
    v->declared_dtype = v->dtype = take_type(&sizes);
    char *value = strchr(sizes, '#');
    if (value)
        *value++ = '\0';
    op_dims(m, v, sizes);
    if (kind == ':') {
        v->is_input = true;
        m->graph->input[m->graph->n_input++] = v;
        return;
    }
    struct accel_tensor *t = ACCEL_NEW(&m->arena, struct accel_tensor, 1);
    int64_t *dim = ACCEL_NEW(&m->arena, int64_t, v->declared.rank + 1), count = 1;
    for (int i = 0; i < v->declared.rank; i++)
        count *= dim[i] = v->declared.dim[i].n;
    void *data = ACCEL_NEW(&m->arena, int64_t, count);
    uint64_t size = 0;
    uint32_t seed = (uint32_t)text[0] * 77u + (uint32_t)count;
    for (int64_t i = 0; i < count; i++) {
        double e = random_of(v->dtype, &seed);
        e = value ? atof(value) : kind == '+' ? fabs(e) + 0.1 : e;
        accel_dtype_from_f64(v->dtype, &e, 1, data, (size_t)i);
    }
    ck_assert(accel_dtype_size(v->dtype, (uint64_t)count, &size));
    *t = (struct accel_tensor){.name = v->name,
                               .dtype = v->dtype,
                               .rank = v->declared.rank,
                               .dim = dim,
                               .n = (uint64_t)count,
                               .size = size,
                               .data = data};
    v->tensor = t;
}

static void add_node(struct accel_model *m, char *text, int opset)
{
    struct accel_value *in[40], *out;
    int n_in = 0;
    char *save, *name = strtok_r(text, " ", &save), *t;
    const struct accel_op *op = accel_op_find(name, "");
    struct accel_node *n;
    ck_assert_msg(op != NULL, "no operator %s", name);
    while ((t = strtok_r(NULL, " ", &save)) && strcmp(t, ">") != 0)
        in[n_in++] = strcmp(t, "-") == 0 ? NULL : accel_value_find(m->graph, t);
    ck_ok(accel_value_new(&out, m->graph, strtok_r(NULL, " ", &save)));
    out->is_tensor = true;
    out->declared.rank = -1;
    ck_ok(accel_node_new(&n, m->graph, op, op->name, "", out->name, in, n_in, &out, 1));
    n->label = n->name;
    while ((t = strtok_r(NULL, " ", &save)))
        op_attr(n, t);
    if (op->parse)
        ck_ok(op->parse(n, opset));
    m->graph->output[0] = out;
}

static struct accel_model *model_of(const char *line, int opset)
{
    struct accel_model *m;
    char *copy = strdup(line), *save, *part = strtok_r(copy, ";", &save), *at, *save2;
    ck_ok(accel_model_new(&m, opset));
    m->graph->input = ACCEL_NEW(&m->arena, struct accel_value *, 40);
    m->graph->output = ACCEL_NEW(&m->arena, struct accel_value *, 1);
    m->graph->n_output = 1;
    for (at = strtok_r(part, " ", &save2); at; at = strtok_r(NULL, " ", &save2))
        add_value(m, at);
    while ((part = strtok_r(NULL, ";", &save)))
        add_node(m, part, opset);
    m->graph->output[0]->is_output = true;
    free(copy);
    return m;
}

/* ------------------------------------------------------------------ running */

/* Random contents for every input; what they are converted from is freed by the caller. */
static void feed(struct accel_plan *p, void **own, uint32_t seed)
{
    for (int i = 0; i < accel_plan_n_inputs(p); i++) {
        const struct accel_value *v = accel_plan_input(p, i);
        int rank = v->declared.rank > 0 ? v->declared.rank : 0;
        int64_t dim[16], n = 1;
        for (int d = 0; d < rank; d++)
            n *= dim[d] = v->declared.dim[d].n >= 0 ? v->declared.dim[d].n : 1;
        double *wide = calloc((size_t)n + 1, sizeof *wide);
        bool ints = accel_dtype_find((int)v->dtype)->cls == ACCEL_CLASS_INT;
        for (int64_t k = 0; k < n; k++) {
            bool bytes = v->dtype == ACCEL_U8 || v->dtype == ACCEL_I8;
            float f = bytes ? 0 : next(&seed);
            wide[k] = bytes  ? random_of(v->dtype, &seed)
                      : ints ? (double)(int)(fabsf(f) * 2)
                             : (double)f * 3;
        }
        own[i] = calloc((size_t)n + 1, 8);
        accel_dtype_from_f64(v->dtype, wide, (size_t)n, own[i], 0);
        free(wide);
        ck_ok(accel_plan_set_input(p, i, &(struct accel_array){v->dtype, rank, dim, n, own[i]}));
    }
}

static bool tune; /* kernels are chosen by timing; Winograd's round more coarsely */

static double step; /* results may differ by one step of a quantised result */
static bool bf16;   /* products read bfloat16: 8 bits of each operand */

struct result {
    double *at;
    int64_t n;
    size_t n_fast;
    enum accel_err err;
};

static struct result run(struct accel_model *m, struct accel_device *d)
{
    struct result r = {0};
    struct accel_plan *p = NULL;
    void *own[40] = {0};
    r.err = accel_plan_new(&p, m,
                           &(struct accel_plan_options){.device = d, .tune = tune, .bf16 = bf16});
    if (!r.err) {
        feed(p, own, 7);
        r.err = accel_plan_run(p);
    }
    if (!r.err)
        r.err = accel_plan_run(p); /* what the first run left in memory does not matter */
    if (!r.err) {
        const struct accel_array *y = accel_plan_output(p, 0);
        r.n = y->n;
        r.n_fast = accel_plan_n_fast(p);
        r.at = calloc((size_t)y->n + 1, sizeof *r.at);
        if (accel_dtype_find((int)y->dtype)->cls != ACCEL_CLASS_OTHER)
            accel_dtype_to_f64(y->dtype, y->data, 0, (size_t)y->n, r.at);
    }
    for (int i = 0; i < 40; i++)
        free(own[i]);
    accel_plan_free(p);
    return r;
}

/* Runs plain and fast; returns the number of nodes that ran fast. */
static size_t compare(struct accel_model *m, const char *name, const char *line)
{
    struct result want = run(m, NULL), got = run(m, device);
    size_t n_fast = got.n_fast;
    ck_assert_msg(want.err == got.err, "%s %s: %d plain, %d fast: %s", name, line, (int)want.err,
                  (int)got.err, accel_errmsg());
    ck_assert_msg(want.n == got.n, "%s %s: sizes", name, line);
    double most = 0;
    for (int64_t i = 0; i < want.n; i++)
        most = fmax(most, fabs(want.at[i]));
    for (int64_t i = 0; i < want.n; i++) {
        double a = got.at[i], b = want.at[i];
        bool same = a == b || (isnan(a) && isnan(b)) ||
                    fabs(a - b) <= step +
                                       (bf16   ? most / 64
                                        : tune ? 1e-3
                                               : 1e-5) +
                                       1e-4 * fabs(b);
        ck_assert_msg(same, "%s %s: element %lld is %.9g, plain %.9g", name, line, (long long)i, a,
                      b);
    }
    free(want.at);
    free(got.at);
    return n_fast;
}

/* All nodes of the line run fast, `n` of them. */
static void is_fast(const char *line, int opset, size_t n)
{
    struct accel_model *m = model_of(line, opset);
    size_t got = compare(m, "", line);
    ck_assert_msg(blas || got == n, "%s: %zu nodes are fast, not %zu", line, got, n);
    accel_model_free(m);
}

/* ------------------------------------------------------------------ laws */

static size_t law(const char *name, int opset, const char *line)
{
    struct op_run r = op_begin(name, opset, line);
    size_t n_fast = 0;
    struct accel_graph *g = r.m->graph;
    if (!r.err && r.n->op->forward && r.n->out[0]) {
        g->input = ACCEL_NEW(&r.m->arena, struct accel_value *, g->n_value);
        g->output = ACCEL_NEW(&r.m->arena, struct accel_value *, 1);
        for (size_t i = 0; i < g->n_value; i++)
            if (g->value[i]->is_input && !g->value[i]->tensor)
                g->input[g->n_input++] = g->value[i];
        g->output[g->n_output++] = r.n->out[0];
        r.n->out[0]->is_output = true;
        for (int i = r.n->op->min_out; i < r.n->n_out; i++)
            r.n->out[i] = NULL;
        n_fast = compare(r.m, name, line);
    }
    op_end(&r);
    return n_fast;
}

START_TEST(every_example_of_the_table_gives_what_the_plain_kernel_gives)
{
    size_t n_fast = 0;
    for (int i = 0; i < accel_op_count(); i++) {
        const struct accel_op *op = accel_op_table[i];
        if (*op->domain || op->max_out > 8 || op->flags & (ACCEL_OP_RANDOM | ACCEL_OP_BODIES))
            continue;
        for (const char *const *e = op->examples; e && *e; e++)
            n_fast += law(op->name, 20, *e) + law(op->name, 12, *e);
    }
    ck_assert_uint_ge(n_fast, blas ? 15 : 100);
}
END_TEST

START_TEST(convolutions_of_every_form)
{
    static const char *const lines[] = {
        "x:2x16x9x9 w=32x16x3x3 b=32 ; Conv x w b > y pads=1,1,1,1",
        "x:1x16x9x9 w=16x1x3x3 b=16 ; Conv x w b > y group=16 pads=1,1,1,1",
        "x:1x12x9x9 w=24x3x3x3 ; Conv x w > y group=4 strides=2,2",
        "x:1x16x11x11 w=16x1x3x3 ; Conv x w > y group=16 dilations=2,2 pads=2,2,2,2 strides=2,1",
        "x:1x6x12x7 w=5x6x3x2 b=5 ; Conv x w b > y pads=1,0,2,3 dilations=2,1 strides=1,2",
        "x:2x7x30 w=9x7x5 b=9 ; Conv x w b > y pads=4,2 strides=3 dilations=2",
        "x:1x4x31 w=8x2x3 ; Conv x w > y group=2 auto_pad=SAME_UPPER strides=2",
        "x:1x4x8x8 w=6x4x2x2 ; Conv x w > y auto_pad=SAME_LOWER",
        "x:1x4x9x9 w=6x4x1x1 ; Conv x w > y auto_pad=SAME_UPPER strides=3,3",
        "x:1x4x6x7x8 w=6x4x2x3x2 b=6 ; Conv x w b > y pads=1,1,0,0,1,2 strides=1,2,1",
        "x:1x4x6x6x6 w=4x1x3x3x3 ; Conv x w > y group=4 pads=1,1,1,1,1,1",
        "x:1x3x32x32 w=16x3x7x7 b=16 ; Conv x w b > y pads=3,3,3,3 strides=2,2",
        "x:1x5x6x6 w:7x5x3x3 ; Conv x w > y",
        "x:1x6x5x7 w=6x4x3x3 b=4 ; ConvTranspose x w b > y strides=2,2 pads=1,1,1,1",
        "x:1x6x5x7 w=6x2x3x3 b=4 ; ConvTranspose x w b > y group=2 strides=2,3 pads=1,1,1,1 "
        "output_padding=1,0",
        "x:2x4x9 w=4x5x4 ; ConvTranspose x w > y dilations=2 pads=1,2",
        "x:1x16x7x7 w=16x1x2x2 ; ConvTranspose x w > y group=16 strides=2,2",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        is_fast(lines[i], 20, 1);
}
END_TEST

START_TEST(products_of_every_form)
{
    static const char *const lines[] = {
        "a:2x7x5 b=5x9 ; MatMul a b > y",
        "a:7x5 b:5x9 ; MatMul a b > y",
        "a:2x3x7x5 b:2x3x5x9 ; MatMul a b > y",
        "a:2x1x7x5 b:3x5x9 ; MatMul a b > y",
        "a:3x7x5 b:2x1x5x4 ; MatMul a b > y",
        "a:5 b:5x9 ; MatMul a b > y",
        "a:4x5 b:5 ; MatMul a b > y",
        "a:5x7 b=9x5 c=9 ; Gemm a b c > y transA=1 transB=1",
        "a:7x5 b=5x9 c=7x1 ; Gemm a b c > y alpha=0.5",
        "a:7x5 b=5x9 c:7x9 ; Gemm a b c > y",
        "a:7x5 b=5x9 c:1x9 ; Gemm a b c > y alpha=2",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        is_fast(lines[i], 20, 1);
}
END_TEST

START_TEST(pools_and_reductions_of_every_form)
{
    static const char *const lines[] = {
        "x:1x16x9x9 ; MaxPool x > y kernel_shape=3,3 strides=2,2 pads=1,1,1,1",
        "x:1x5x9x8 ; MaxPool x > y kernel_shape=3,2 strides=2,2 ceil_mode=1 pads=0,1,1,0",
        "x:1x5x9x9 ; MaxPool x > y kernel_shape=2,3 dilations=2,3",
        "x:1x5x10 ; AveragePool x > y kernel_shape=3 pads=1,1",
        "x:1x5x10x7 ; AveragePool x > y kernel_shape=3,2 pads=1,0,2,1 count_include_pad=1",
        "x:1x5x10x7 ; AveragePool x > y kernel_shape=3,3 pads=1,1,1,1 strides=2,2 ceil_mode=1",
        "x:1x2x6x6x6 ; AveragePool x > y kernel_shape=2,3,2 strides=2,1,2",
        "x:2x17x5x6 ; GlobalAveragePool x > y",
        "x:2x17x5x6 ; GlobalMaxPool x > y",
        "x:2x17x5x6 ; Relu x > r ; ReduceSum r > y",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        is_fast(lines[i], 12, i == 9 ? 2 : 1);
    is_fast("x:2x17x5x6 ; ReduceMean x > y axes=2,3 keepdims=0", 12, 1);
    is_fast("x:2x17x5x6 ; ReduceMean x > y axes=1", 12, 1);
    is_fast("x:2x7x5x6 ; ReduceSum x > y axes=0,2 keepdims=0", 12, 1);
    is_fast("x:2x7x5x6 ; ReduceSum x > y axes=-1", 12, 1);
}
END_TEST

START_TEST(element_wise_functions_and_every_broadcast)
{
    static const char *const functions[] = {"Relu",      "Sigmoid", "HardSwish", "Tanh", "Elu",
                                            "LeakyRelu", "Mish",    "Abs",       "Neg",  "Softplus",
                                            "Gelu",      "Sqrt",    "Log"};
    char line[200];
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        snprintf(line, sizeof line, "x:3x17x6 ; %s x > y", functions[i]);
        is_fast(line, 22, 1);
    }
    static const char *const lines[] = {
        "a:2x17x5x6 b:2x17x5x6 ; Sub a b > y", "a:2x17x5x6 b:17x1x1 ; Mul a b > y",
        "a:17x1x1 b:2x17x5x6 ; Add a b > y",   "a:2x17x5x6 b:6 ; Div a b > y",
        "a:2x17x5x6 b:2x1x5x1 ; Add a b > y",  "a:2x17x5x6 b=1 ; Div a b > y",
        "a=1 b:2x17x5x6 ; Sub a b > y",        "a:2x17x5x6 b=scalar ; Mul a b > y",
        "a:2x17x5x6 b:scalar ; Add a b > y",   "a:3x100 b:3x100 ; Sum a b > y",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        is_fast(lines[i], 20, 1);
    /* the plain kernel is done before the library begins */
    is_fast("a:3x4 b:3x4 ; Add a b > c ; Relu c > y", 20, 0);
    /* no kernel stretches both sides */
    is_fast("a:2x1x5 b:3x1 ; Add a b > y", 20, 0);
}
END_TEST

START_TEST(norms_and_softmax)
{
    is_fast("x:2x17x5x6 s=17 t=17 m=17 v+17 ; BatchNormalization x s t m v > y", 15, 1);
    is_fast("x:8x17 s=17 t=17 m=17 v+17 ; BatchNormalization x s t m v > y epsilon=0.1", 15, 1);
    is_fast("x:2x9x33 s=33 t=33 ; LayerNormalization x s t > y", 17, 1);
    is_fast("x:2x9x33 ; Softmax x > y", 13, 1);
    is_fast("x:2x9x33 ; Softmax x > y axis=1", 13, 1);
    is_fast("x:2x9x33 ; Softmax x > y axis=1", 11, 1);
    is_fast("x:2x9x33 ; LogSoftmax x > y axis=0", 13, 1);
    is_fast("a:2x3x4 b:2x5x4 c:2x1x4 ; Concat a b c > y axis=1", 13, 1);
}
END_TEST

/* Values flow between kernels in blocks, and are one kernel where they can be. */
START_TEST(chains_give_what_their_nodes_give)
{
    is_fast("x:1x16x9x9 w=32x16x3x3 b=32 ; Conv x w b > c ; Relu c > y", 20, 2);
    is_fast("x:1x16x9x9 w=32x16x3x3 s=32 t=32 m=32 v+32 ; Conv x w > c ; "
            "BatchNormalization c s t m v > n ; Relu n > y",
            15, 3);
    is_fast("x:1x16x9x9 w=16x1x3x3 b=16 s=16 t=16 m=16 v+16 ; Conv x w b > c group=16 ; "
            "BatchNormalization c s t m v > n ; HardSwish n > y",
            15, 3);
    is_fast("x:1x16x9x9 w=16x16x3x3 u=16x16x3x3 b=16 ; Conv x w b > a pads=1,1,1,1 ; Relu a > r ; "
            "Conv r u > c pads=1,1,1,1 ; Add c r > s ; Relu s > y",
            20, 5);
    is_fast("x:1x16x9x9 w=16x16x3x3 ; Conv x w > c pads=1,1,1,1 ; Add x c > s ; LeakyRelu s > y",
            20, 3);
    is_fast("x:1x16x9x9 w=17x16x1x1 u=3x17x3x3 ; Conv x w > a ; Sigmoid a > b ; Mul a b > c ; "
            "Conv c u > d ; HardSigmoid d > e ; GlobalAveragePool e > y",
            20, 6);
    is_fast(
        "x:1x16x9x9 w=17x16x1x1 u=5x16x1x1 ; Conv x w > a ; Conv x u > b ; Concat a b > c axis=1 ; "
        "MaxPool c > y kernel_shape=2,2",
        20, 4);
    is_fast("x:1x16x9x9 w=17x16x1x1 u=17x16x1x1 ; Conv x w > a ; Conv x u > t ; Sigmoid t > b ; "
            "Mul a b > y", /* b is not there yet where a is made */
            20, 4);
    is_fast("x:2x5x16 w=16x24 b=24 ; MatMul x w > m ; Add m b > a ; Gelu a > y", 20, 3);
    is_fast("x:2x5x16 w=16x16 b=16 ; MatMul x w > m ; Add b m > a ; Add x a > y", 20, 3);
    is_fast("q:2x3x5x4 k:2x3x4x5 d=scalar ; MatMul q k > m ; Div m d > s ; Softmax s > y", 20, 3);
    is_fast("x:4x16 w=16x8 b=8 ; Gemm x w b > g ; Relu g > y", 20, 2);
    is_fast("x:1x8x6x6 w=8x8x1x1 ; Conv x w > c ; Sub x c > y", 20, 2);
    is_fast("x:1x17x6x6 w=19x17x1x1 g:1x19x1x1 ; Conv x w > c ; Mul c g > y", 20, 2);
    /* the same function twice, with other numbers */
    is_fast("x:30x50 z:30x50 a=scalar b=scalar ; Mul x z > c ; Mul a c > d ; Add b d > y", 20, 3);
    is_fast(
        "x:30x50 z:30x50 a=scalar b=scalar ; Add x z > c ; Mul c a > d ; Tanh d > e ; Mul e b > y",
        20, 4);
    is_fast("x:1x16x9x9 w=17x16x1x1 ; Conv x w > c ; LeakyRelu c > d alpha=0.5 ; Tanh d > e ; "
            "LeakyRelu e > y alpha=0.1",
            20, 4);
}
END_TEST

/* A plain kernel reads blocks in row-major order. */
START_TEST(plain_readers_get_rows)
{
    is_fast("x:1x16x9x9 w=17x16x3x3 ; Conv x w > c ; Transpose c > t perm=0,2,3,1 ; Relu t > y", 20,
            3);
    is_fast("x:2x3x5x7 ; Transpose x > y perm=0,2,1,3", 20, 1);
    is_fast("x:2x3x5x7x2 ; Transpose x > y", 20, 1);
    is_fast("x:1x16x9x9 w=17x16x3x3 ; Conv x w > c ; DepthToSpace c > d blocksize=1 ; Abs d > y",
            20, 2);
    is_fast("x:1x16x9x9 w=17x16x3x3 ; Conv x w > c ; Flatten c > f ; Abs f > y", 20, 2);
}
END_TEST

START_TEST(nan_and_infinity_come_through_as_in_plain_kernels)
{
    static const char *const ops[] = {"Relu", "Sigmoid",  "Tanh",      "Clip", "HardSwish",
                                      "Abs",  "Softplus", "LeakyRelu", "Elu"};
    static float x[] = {0, -0.0f, NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 100, -100};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        char line[100];
        float y[2][9];
        snprintf(line, sizeof line, "x:9 ; %s x > y", ops[i]);
        struct accel_model *m = model_of(line, 20);
        for (int fast = 0; fast < 2; fast++) {
            struct accel_plan *p;
            ck_ok(accel_plan_new(&p, m,
                                 &(struct accel_plan_options){.device = fast ? device : NULL}));
            ck_ok(accel_plan_set_input(p, 0,
                                       &(struct accel_array){ACCEL_F32, 1, (int64_t[]){9}, 9, x}));
            ck_ok(accel_plan_run(p));
            memcpy(y[fast], accel_plan_output(p, 0)->data, sizeof y[fast]);
            accel_plan_free(p);
        }
        for (int k = 0; k < 9; k++) {
            double a = (double)y[1][k], b = (double)y[0][k];
            bool same = a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= 1e-5 + 1e-4 * fabs(b);
            ck_assert_msg(same, "%s(%g) is %g, plain %g", ops[i], (double)x[k], a, b);
        }
        accel_model_free(m);
    }
}
END_TEST

START_TEST(inputs_of_another_size_are_planned_anew)
{
    struct accel_model *m = model_of("x:Nx16x9x9 w=17x16x3x3 ; Conv x w > c ; Relu c > y", 20);
    struct accel_plan *p[2];
    for (int k = 0; k < 2; k++)
        ck_ok(accel_plan_new(&p[k], m, &(struct accel_plan_options){.device = k ? device : NULL}));
    for (int64_t n = 1; n <= 3; n++) {
        int64_t dim[] = {n, 16, 9, 9}, count = n * 16 * 81;
        float *x = calloc((size_t)count, sizeof *x);
        uint32_t seed = 3;
        for (int64_t i = 0; i < count; i++)
            x[i] = next(&seed);
        for (int k = 0; k < 2; k++) {
            ck_ok(
                accel_plan_set_input(p[k], 0, &(struct accel_array){ACCEL_F32, 4, dim, count, x}));
            ck_ok(accel_plan_run(p[k]));
        }
        const struct accel_array *a = accel_plan_output(p[0], 0), *b = accel_plan_output(p[1], 0);
        ck_assert_int_eq((int)b->dim[0], (int)n);
        for (int64_t i = 0; i < a->n; i++)
            ck_assert(fabsf(((float *)a->data)[i] - ((float *)b->data)[i]) < 1e-4f);
        free(x);
    }
    accel_plan_free(p[0]);
    accel_plan_free(p[1]);
    accel_model_free(m);
}
END_TEST

START_TEST(kernels_chosen_by_timing_equal_plain_ones)
{
    tune = true;
    is_fast("x:1x32x28x28 w=32x32x3x3 b=32 ; Conv x w b > c pads=1,1,1,1 ; Relu c > y", 20, 2);
    is_fast("x:2x64x14x14 w=64x64x3x3 v=64x64x3x3 ; Conv x w > c pads=1,1,1,1 ; Relu c > r ; "
            "Conv r v > d pads=1,1,1,1 ; Add d x > y",
            20, 4);
    is_fast("x:1x8x15x15 w=8x1x3x3 ; Conv x w > c group=8 ; MaxPool c > y kernel_shape=2,2", 20, 2);
    is_fast("x:33x40 w=40x56 ; MatMul x w > c ; Softmax c > y", 20, 2);
    tune = false;
}
END_TEST

/* Where bfloat16 is slower it is refused; results stay the same to its precision all the same. */
START_TEST(products_of_bfloat16_are_close_and_refused_where_slow)
{
    enum accel_err err = device->check_bf16(device);
    ck_assert(err == ACCEL_OK || err == ACCEL_EDEVICE);
    ck_assert(!err || strstr(accel_errmsg(), "bf16"));
    bf16 = true;
    is_fast("x:1x32x28x28 w=32x32x3x3 b=32 ; Conv x w b > c pads=1,1,1,1 ; Relu c > y", 20, 2);
    is_fast("x:2x8x15x15 w=8x1x3x3 ; Conv x w > c group=8 ; MaxPool c > y kernel_shape=2,2", 20, 2);
    is_fast("x:2x3x40 w=40x56 b=56 ; MatMul x w > c ; Add c b > d ; Relu d > y", 20, 3);
    is_fast("x:3x40 w=56x40 b=56 ; Gemm x w b > y transB=1", 20, 1);
    is_fast("x:2x3x8x40 z:2x3x40x8 ; MatMul x z > y", 20, 1);
    bf16 = false;
}
END_TEST

/* Nodes that read constants only run once, and their results can be packed like any constant. */
START_TEST(nodes_of_constants_run_once)
{
    is_fast("x:1x17x9x9 u=17x5x1x1 ; Transpose u > t perm=1,0,2,3 ; Neg t > v ; Conv x v > y", 20,
            1);
    is_fast("x:20x30 u=1 ; Abs u > a ; Add x a > y", 20, 1);
    is_fast("u=2x3 ; Abs u > y", 20, 0);
}
END_TEST

static bool is_there(const struct accel_plan *p, const struct accel_model *m, const char *name)
{
    for (size_t i = 0; i < m->graph->n_value; i++)
        if (strcmp(m->graph->value[i]->name, name) == 0)
            return p->main->cell[i].a.data != NULL;
    return false;
}

START_TEST(packed_weights_are_in_memory_once)
{
    struct accel_model *m = model_of("x:Nx16x9x9 w=17x16x3x3 u=17x5x1x1 s=5x1x1 ; Conv x w > c ; "
                                     "Transpose u > t perm=1,0,2,3 ; Conv c t > d ; PRelu d s > y",
                                     20);
    static float x[2 * 16 * 81];
    struct accel_plan *p;
    ck_ok(accel_plan_new(&p, m, &(struct accel_plan_options){.device = device}));
    for (int turn = 0; turn < 4; turn++) { /* packed, NaN: plain, packed again, another size */
        x[5] = turn == 1 ? NAN : 1;
        int64_t n = turn == 3 ? 2 : 1;
        ck_ok(accel_plan_set_input(
            p, 0, &(struct accel_array){ACCEL_F32, 4, (int64_t[]){n, 16, 9, 9}, n * 16 * 81, x}));
        ck_ok(accel_plan_run(p));
        if (!getenv("DNNL_MAX_CPU_ISA") && !blas) /* old processors read weights as they are */
            ck_assert_int_eq(is_there(p, m, "w"), turn == 1);
        ck_assert(!is_there(p, m, "u")); /* only a node that ran once reads it */
        ck_assert(is_there(p, m, "s"));  /* a plain kernel does */
        ck_assert_uint_eq(accel_plan_constant_size(p), 4 * (17 * 16 * 9 + 5 * 17 + 5));
    }
    accel_plan_free(p);
    accel_model_free(m);
}
END_TEST

/* Where the processor does not multiply bytes, results only have to be right. */
static void is_fast_in_bytes(const char *line, int opset, size_t n)
{
    static int can = -1;
    struct accel_model *m = model_of("x:u8:1x3x9x9 w=i8:8x3x3x3 ; ConvInteger x w > y", 13);
    can = can < 0 ? compare(m, "", "ConvInteger") == 1 : can;
    accel_model_free(m);
    m = model_of(line, opset);
    size_t got = compare(m, "", line);
    ck_assert_msg(!can || got == n, "%s: %zu nodes are fast, not %zu", line, got, n);
    accel_model_free(m);
}

START_TEST(products_of_integers_are_within_one_step)
{
    step = 1;
    is_fast_in_bytes("x:u8:2x3x9x9 xs=scalar#0.02 xz=u8:scalar#117 w=i8:8x3x3x3 ws+8 wz=i8:8#0 "
                     "ys=scalar#90 yz=u8:scalar#121 b=i32:8 ; "
                     "QLinearConv x xs xz w ws wz ys yz b > y pads=1,1,1,1",
                     13, 1);
    is_fast_in_bytes("x:i8:1x16x9x9 xs=scalar#0.02 xz=i8:scalar#-7 w=i8:16x1x3x3 ws=scalar#0.5 "
                     "wz=i8:scalar#0 ys=scalar#20 yz=i8:scalar#3 ; "
                     "QLinearConv x xs xz w ws wz ys yz > y group=16 strides=2,2",
                     13, 1);
    is_fast_in_bytes(
        "a:u8:5x7x24 as=scalar#0.01 az=u8:scalar#100 b=i8:24x10 bs=scalar#0.5 bz=i8:scalar#0 "
        "ys=scalar#20 yz=u8:scalar#4 ; QLinearMatMul a as az b bs bz ys yz > y",
        13, 1);
    step = 0;
    is_fast_in_bytes("x:u8:1x5x9x9 ; MaxPool x > y kernel_shape=3,3 strides=2,2 pads=1,1,1,1", 13,
                     1);
    is_fast_in_bytes("x:i8:2x16x8x9 ; MaxPool x > y kernel_shape=3,2 pads=1,0,1,1", 13, 1);
    is_fast_in_bytes("x:u8:1x3x9x9 w=i8:8x3x3x3 xz=u8:scalar#117 ; ConvInteger x w xz > y", 13, 1);
    is_fast_in_bytes("a:u8:7x24 b=i8:24x10 az=u8:scalar#100 ; MatMulInteger a b az > y", 13, 1);
    is_fast_in_bytes("a:u8:7x24 b=i8:24x10 az:u8:scalar ; MatMulInteger a b az > y", 13, 1);
    is_fast_in_bytes("a:i8:2x7x24 b=u8:24x10#130 bz=u8:scalar#128 ; MatMulInteger a b - bz > y", 13,
                     1);
    is_fast_in_bytes("a:i8:2x7x24 b=u8:24x10 ; MatMulInteger a b > y", 13, 0); /* no signed bytes */
}
END_TEST

/* The nodes around a product become part of it; those that nobody reads do not run. */
START_TEST(products_between_dequantize_and_quantize_read_integers)
{
    step = 0.1001;
    is_fast_in_bytes(
        "x:u8:1x8x9x9 xs=scalar#0.02 xz=u8:scalar#117 w=i8:16x8x3x3 ws+16 wz=i8:16#0 b=16 "
        "ys=scalar#0.1 yz=u8:scalar#9 ; DequantizeLinear x xs xz > xf ; "
        "DequantizeLinear w ws wz > wf axis=0 ; Conv xf wf b > c pads=1,1,1,1 ; Relu c > r ; "
        "QuantizeLinear r ys yz > q ; DequantizeLinear q ys yz > y",
        13, 5);
    /* a bias of integers, a residual sum */
    is_fast_in_bytes(
        "x:u8:1x16x9x9 xs=scalar#0.02 xz=u8:scalar#117 w=i8:16x16x1x1 ws=scalar#0.01 "
        "wz=i8:scalar#0 b=i32:16 bs=scalar#0.0002 bz=i32:scalar#0 ys=scalar#0.1 "
        "yz=i8:scalar#9 ; DequantizeLinear x xs xz > xf ; DequantizeLinear w ws wz > wf ; "
        "DequantizeLinear b bs bz > bf ; Conv xf wf bf > c ; Add c xf > a ; Relu a > r ; "
        "QuantizeLinear r ys yz > q ; DequantizeLinear q ys yz > y",
        13, 6);
    is_fast_in_bytes(
        "x:u8:3x24 xs=scalar#0.02 xz=u8:scalar#117 w=i8:10x24 ws=scalar#0.01 b=10 "
        "ys=scalar#0.1 yz=u8:scalar#128 ; DequantizeLinear x xs xz > xf ; "
        "DequantizeLinear w ws > wf ; Gemm xf wf b > c transB=1 ; QuantizeLinear c ys yz > q ; "
        "DequantizeLinear q ys yz > y",
        13, 4);
    step = 0;
    is_fast_in_bytes("x:u8:2x3x24 xs=scalar#0.02 w=i8:24x10 ws+10 ; DequantizeLinear x xs > xf ; "
                     "DequantizeLinear w ws > wf axis=1 ; MatMul xf wf > y",
                     13, 2);
    is_fast_in_bytes("x:3x24 s=scalar#0.02 z=u8:scalar#128 ; QuantizeLinear x s z > q ; "
                     "DequantizeLinear q s z > y",
                     13, 2);
}
END_TEST

static enum accel_err watch(void *ctx, const struct accel_value *v, const struct accel_array *a)
{
    double *sum = ctx;
    for (int64_t i = 0; v->name[0] == 'c' && i < a->n; i++)
        *sum += (double)((const float *)a->data)[i] * (double)(i % 7);
    return ACCEL_OK;
}

START_TEST(a_watcher_sees_every_value_in_rows)
{
    struct accel_model *m = model_of("x:1x16x9x9 w=17x16x3x3 ; Conv x w > c ; Relu c > y", 20);
    double sum[2] = {0};
    for (int k = 0; k < 2; k++) {
        struct accel_plan *p;
        void *own[40] = {0};
        struct accel_plan_options o = {
            .device = k ? device : NULL, .watch = watch, .watch_ctx = &sum[k]};
        ck_ok(accel_plan_new(&p, m, &o));
        feed(p, own, 5);
        ck_ok(accel_plan_run(p));
        free(own[0]);
        accel_plan_free(p);
    }
    ck_assert(sum[0] != 0 && fabs(sum[0] - sum[1]) < 1e-3 * fabs(sum[0]));
    accel_model_free(m);
}
END_TEST

static bool wants_second(void *ctx, const struct accel_value *v)
{
    (void)ctx;
    return !strcmp(v->name, "c2");
}

/* Sum of what the watcher sees in one run. */
static double seen(struct accel_plan *p, double *sum)
{
    *sum = 0;
    ck_ok(accel_plan_run(p));
    return *sum;
}

START_TEST(a_run_ends_behind_what_is_wanted_and_weights_can_change)
{
    struct accel_model *m = model_of("x:1x16x9x9 w=16x16x3x3 v=16x16x3x3 ; Conv x w > c1 ; "
                                     "Relu c1 > r ; Conv r v > c2 ; Relu c2 > y",
                                     20);
    struct accel_value *w = accel_value_find(m->graph, "w");
    double sum, first[2], *half;
    for (int k = 0; k < 2; k++) {
        struct accel_plan *p;
        void *own[40] = {0};
        struct accel_plan_options o = {
            .device = k ? device : NULL, .watch = watch, .wants = wants_second, .watch_ctx = &sum};
        ck_ok(accel_plan_new(&p, m, &o));
        feed(p, own, 5);
        first[k] = seen(p, &sum);
        ck_assert(first[k] != 0);
        accel_plan_stop_after(p, 1);
        ck_assert_double_eq(seen(p, &sum), 0);
        accel_plan_stop_after(p, 2);
        ck_assert_double_eq(seen(p, &sum), first[k]);
        ck_ok(accel_tensor_values(&half, w->tensor));
        for (uint64_t i = 0; i < w->tensor->n; i++)
            half[i] /= 2;
        ck_ok(accel_tensor_set_values(w->tensor, half));
        ck_ok(accel_plan_reload(p, w));
        accel_free(half);
        ck_assert(fabs(seen(p, &sum) - first[k] / 2) < 1e-4 * fabs(first[k]));
        accel_plan_stop_after(p, -1);
        ck_ok(accel_plan_run(p));
        ck_assert_ptr_nonnull(accel_plan_output(p, 0)->data);
        free(own[0]);
        accel_plan_free(p);
        accel_tensor_set_edit(w->tensor, NULL);
    }
    ck_assert(fabs(first[0] - first[1]) < 1e-3 * fabs(first[0]));
    accel_model_free(m);
}
END_TEST

START_TEST(a_failed_allocation_is_enomem_and_leaks_nothing)
{
    struct accel_model *m =
        model_of("x:1x16x9x9 w=17x16x3x3 s=17 t=17 q=17 v+17 ; Conv x w > c ; "
                 "BatchNormalization c s t q v > n ; Transpose n > y perm=1,0,2,3",
                 20);
    static float x[16 * 81];
    for (long nth = 1;; nth++) {
        struct accel_device *d = NULL;
        struct accel_plan *p = NULL;
        accel_alloc_fail_at(nth, false);
        enum accel_err err = accel_device_cpu(&d);
        if (!err)
            err = accel_plan_new(&p, m, &(struct accel_plan_options){.device = d});
        if (!err)
            err = accel_plan_set_input(
                p, 0, &(struct accel_array){ACCEL_F32, 4, (int64_t[]){1, 16, 9, 9}, 16 * 81, x});
        if (!err)
            err = accel_plan_run(p);
        bool done = accel_alloc_count() < nth;
        accel_alloc_fail_at(0, false);
        accel_plan_free(p);
        if (d)
            d->free(d);
        ck_assert_msg(done ? err == ACCEL_OK : err == ACCEL_ENOMEM, "allocation %ld: %d, %s", nth,
                      (int)err, accel_errmsg());
        if (done)
            break;
    }
    accel_model_free(m);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("fast");
    TCase *t = tcase_create("fast");
    tcase_set_timeout(t, 120);
    tcase_add_test(t, every_example_of_the_table_gives_what_the_plain_kernel_gives);
    tcase_add_test(t, convolutions_of_every_form);
    tcase_add_test(t, products_of_every_form);
    tcase_add_test(t, pools_and_reductions_of_every_form);
    tcase_add_test(t, element_wise_functions_and_every_broadcast);
    tcase_add_test(t, norms_and_softmax);
    tcase_add_test(t, chains_give_what_their_nodes_give);
    tcase_add_test(t, plain_readers_get_rows);
    tcase_add_test(t, nan_and_infinity_come_through_as_in_plain_kernels);
    tcase_add_test(t, products_of_bfloat16_are_close_and_refused_where_slow);
    tcase_add_test(t, products_of_integers_are_within_one_step);
    tcase_add_test(t, products_between_dequantize_and_quantize_read_integers);
    tcase_add_test(t, kernels_chosen_by_timing_equal_plain_ones);
    tcase_add_test(t, inputs_of_another_size_are_planned_anew);
    tcase_add_test(t, nodes_of_constants_run_once);
    tcase_add_test(t, packed_weights_are_in_memory_once);
    tcase_add_test(t, a_watcher_sees_every_value_in_rows);
    tcase_add_test(t, a_run_ends_behind_what_is_wanted_and_weights_can_change);
    tcase_add_test(t, a_failed_allocation_is_enomem_and_leaks_nothing);
    suite_add_tcase(s, t);
    return s;
}

int main(void)
{
    /* ACCEL_TEST_BLAS: what builds and machines without oneDNN use */
    if ((getenv("ACCEL_TEST_BLAS") ? accel_device_blas : accel_device_cpu)(&device) || !device)
        return 77; /* a machine without fast kernels */
    blas = !strstr(device->name, "oneDNN");
    SRunner *r = srunner_create(suite());
    srunner_run_all(r, CK_ENV);
    int bad = srunner_ntests_failed(r);
    srunner_free(r);
    device->free(device);
    return bad ? EXIT_FAILURE : EXIT_SUCCESS;
}
