/* Operators of domain com.microsoft and new ones: the numbers that ONNX Runtime gives. */
#include "exec/plan.h"
#include "tests/op_t.h"

/* Runs the node by itself: elements of output 0, within 1e-4; integers within 1. */
static void op_runs(const char *op, int opset, const char *line, const char *want)
{
    struct op_run r = op_begin(op, opset, line);
    ck_assert_msg(r.err == ACCEL_OK, "%s %s: %s", op, line, accel_errmsg());
    struct accel_graph *g = r.m->graph;
    struct accel_plan *p;
    g->output = r.n->out;
    g->n_output = 1;
    r.n->out[0]->is_output = true;
    r.n->label = "node";
    ck_assert_msg(!accel_plan_new(&p, r.m, &(struct accel_plan_options){0}), "%s", accel_errmsg());
    ck_assert_msg(!accel_plan_run(p), "%s %s: %s", op, line, accel_errmsg());
    const struct accel_array *a = accel_plan_output(p, 0);
    bool real = accel_dtype_find((int)a->dtype)->cls == ACCEL_CLASS_REAL;
    char *copy = strdup(want), *save, *e = strtok_r(copy, ",", &save);
    int64_t i = 0;
    for (; e && i < a->n; e = strtok_r(NULL, ",", &save), i++) {
        double got, w = strtod(e, NULL);
        accel_dtype_to_f64(a->dtype, a->data, (size_t)i, 1, &got);
        ck_assert_msg(fabs(got - w) <= (real ? 1e-4 * (1 + fabs(w)) : 1),
                      "%s %s: element %lld is %.9g, want %s", op, line, (long long)i, got, e);
    }
    ck_assert_msg(!e && i == a->n, "%s %s gives %lld elements", op, line, (long long)a->n);
    free(copy);
    accel_plan_free(p);
    op_end(&r);
}

START_TEST(fused_operators_give_what_the_runtime_gives)
{
    op_runs("ms:BiasGelu", 1,
            "f2x2[0.300000012,0.800000012,0.300000012,-1.29999995] f2[0.899999976,0.400000006]",
            "1.061916,1.061916,1.061916,-0.1656541");
    op_runs("ms:FastGelu", 1, "f2x2[-0.5,0.600000024,0.400000006,0.300000012] f2[0,0.5]",
            "-0.154286,0.9505811,0.2621612,0.6304317");
    op_runs("ms:QuickGelu", 1, "f3[-0.699999988,-0.200000003,-0.5] | alpha=1.3",
            "-0.2008999,-0.08707274,-0.1714948");
    op_runs("ms:SkipLayerNormalization", 1,
            "f2x3[0.600000024,0,-0.300000012,-0.800000012,-0.300000012,0] "
            "f2x3[-0.300000012,1.29999995,1,-2.70000005,-1.89999998,-0.200000003] "
            "f3[-0.400000006,0.200000003,0.200000003] f3[2.0999999,-1.10000002,-0.400000006] "
            "f3[2,0.600000024,0.699999988]",
            "1.629214,-1.081893,-0.6535001,2.361913,-1.251634,-0.1174093");
    op_runs("ms:SkipSimplifiedLayerNormalization", 1,
            "f2x3[-0.5,-1.60000002,0.200000003,0.100000001,-1.20000005,-0.699999988] "
            "f2x3[-0.100000001,-0.899999976,-0.100000001,0.100000001,0,-0.5] "
            "f3[0.600000024,0.899999976,0.300000012] f3[-0.800000012,0.699999988,-0.5]",
            "-0.628431,-1.211974,-0.08977585,-0.3332952,-0.416619,-0.4721682");
    op_runs("ms:EmbedLayerNormalization", 1,
            "1x2[1,0] 1x2[0,1] "
            "f4x3[0.899999976,-0,-1.20000005,-0.300000012,0.100000001,0.300000012,-1,-1.10000002,0."
            "200000003,-0.5,0.200000003,0.800000012] "
            "f3x3[-1.60000002,0.300000012,1.20000005,-0.300000012,-0.800000012,0.800000012,0."
            "300000012,0.899999976,-0.300000012] "
            "f2x3[-1.5,-0.100000001,-0.400000006,0.800000012,0.200000003,-1.60000002] "
            "f3[-1.20000005,0.899999976,0.699999988] f3[-0.600000024,-0,0.400000006]",
            "1.073334,0.4438416,1.030901,-2.148132,-0.129011,-0.4027351");
    op_runs("ms:DynamicQuantizeLSTM", 1,
            "f2x1x2[0.5,0.899999976,0.300000012,-0.100000001] 1x2x4[26,-48,10,-16,21,-79,-28,26] "
            "1x1x4[53,-24,-96,45] "
            "f1x8[0.300000012,-0.699999988,0.899999976,-0.100000001,0.699999988,1.20000005,0."
            "400000006,-0.899999976] 1[2] f1x1x1[-1.5] f1x1x1[1.79999995] "
            "f1x3[-0.100000001,-0.699999988,0.100000001] f1[0.00999999978] 1[0] f1[0.00999999978] "
            "1[0] | hidden_size=1",
            "0.2373085,0.1761578");
}
END_TEST

START_TEST(operators_on_quantised_tensors)
{
    op_runs("ms:QLinearAdd", 1,
            "2x2[121,131,193,243] f1[0.0199999996] 1[120] 2[8,36] f1[0.0299999993] 1[120] "
            "f1[0.0500000007] 1[120]",
            "53,74,82,119");
    op_runs("ms:QLinearMul", 1,
            "2x2[210,242,63,79] f1[0.0199999996] 1[120] 2[222,108] f1[0.0299999993] 1[120] "
            "f1[0.0500000007] 1[120]",
            "230,102,50,126");
    op_runs("ms:QLinearSigmoid", 1, "3[69,211,65] f1[0.0199999996] 1[120] f1[0.00390625] 1[120]",
            "188,255,184");
    op_runs("ms:QLinearLeakyRelu", 1,
            "3[104,164,140] f1[0.0199999996] 1[120] f1[0.0199999996] 1[120] | alpha=0.25",
            "116,164,140");
    op_runs(
        "ms:QLinearSoftmax", 1,
        "2x3[21,7,221,192,214,137] f1[0.0199999996] 1[120] f1[0.00390625] 1[120] | axis=1 opset=13",
        "125,123,255,209,255,150");
    op_runs("ms:QLinearConcat", 1,
            "f1[0.0299999993] 1[120] 2x1[209,84] f1[0.0199999996] 1[120] 2x2[115,201,31,77] "
            "f1[0.0399999991] 1[120] | axis=1",
            "179,113,228,96,1,63");
    op_runs("ms:QLinearGlobalAveragePool", 1,
            "1x2x2x2[31,116,250,34,98,103,231,52] f1[0.0199999996] 1[120] f1[0.00999999978] 1[120] "
            "| channels_last=1",
            "185,32");
    op_runs("ms:QLinearAveragePool", 1,
            "1x1x3x3[128,67,5,192,15,71,127,124,29] f1[0.0199999996] 1[120] f1[0.0149999997] "
            "1[120] | kernel_shape=2,2 pads=1,1,0,0 count_include_pad=1",
            "123,105,64,147,94,13,146,113,40");
}
END_TEST

START_TEST(products_of_matrices)
{
    op_runs("ms:FusedMatMul", 1,
            "f2x1x2x2[0.300000012,0.800000012,0.300000012,-1.29999995,0.899999976,0.400000006,-0.5,"
            "0.600000024] "
            "f2x2x2[0.400000006,0.300000012,0,0.5,-0.699999988,-0.200000003,-0.5,0.600000024] | "
            "transA=1 transB=1 alpha=0.5",
            "0.105,0.075,-0.03499999,-0.325,-0.135,0.015,-0.15,-0.59,0.105,-0.125,0.17,0.15,-0.265,"
            "-0.375,-0.2,0.08000001");
    op_runs("ms:FusedMatMul", 1,
            "f2x1x1x2[0,-0.300000012,-0.800000012,-0.300000012] "
            "f2x1x1x2[0,-0.300000012,1.29999995,1] | transA=1 transBatchA=1 transBatchB=1",
            "-1.04,-0.8,-0.39,-0.21");
    op_runs("ms:MatMulIntegerToFloat", 1,
            "2x2[191,246,23,185] 2x2[75,138,236,70] f1[0.200000003] f2[0.200000003,2.0999999] "
            "1[108] 2[159,116] f2[2,0.600000024]",
            "148.16,-1898.64,524.76,-2272.44");
    op_runs("ms:DynamicQuantizeMatMul", 1,
            "f2x2[0.699999988,-0.5,-1.60000002,0.200000003] 2x2[198,117,164,197] "
            "f2[-0.699999988,-0.100000001] 2[218,88] f2[-0.100000001,0.100000001]",
            "-9.002353,3.46702,-14.94988,2.566863");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_ms");
    TCase *t = tcase_create("op_ms");
    tcase_add_test(t, fused_operators_give_what_the_runtime_gives);
    tcase_add_test(t, operators_on_quantised_tensors);
    tcase_add_test(t, products_of_matrices);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
