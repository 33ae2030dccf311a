/* Windows and transforms: numbers of the reference evaluator. */
#include "tests/op_run_t.h"

START_TEST(windows_are_symmetric_or_periodic)
{
    op_gives("HannWindow", 17, "scalar[6] | periodic=0",
             "0,0.3454915,0.9045085,0.9045085,0.3454914,1.825376e-14");
    op_gives("HannWindow", 17, "scalar[6] | periodic=1", "0,0.25,0.75,1,0.7499999,0.2499999");
    op_gives("HammingWindow", 17, "scalar[6] | periodic=0",
             "0.08695652,0.4024053,0.9128121,0.9128121,0.4024052,0.08695652");
    op_gives("HammingWindow", 17, "scalar[6] | periodic=1",
             "0.08695652,0.3152174,0.7717391,1,0.7717391,0.3152173");
    op_gives("BlackmanWindow", 17, "scalar[6] | periodic=0",
             "0,0.2007701,0.8492299,0.8492299,0.2007701,0");
    op_gives("BlackmanWindow", 17, "scalar[6] | periodic=1", "0,0.13,0.63,1,0.63,0.13");
}
END_TEST

START_TEST(determinants_are_eliminated)
{
    op_runs("Det", 11, "f2x2x2[1,2,3,4,0,2,-1,5]", "-2,2");
    op_runs("Det", 11, "f3x3[0,1,2,1,0,3,4,-3,8]", "-2");
    op_runs("Det", 11, "f2x2[1,2,2,4]", "0");
}
END_TEST

START_TEST(mel_triangles_overlap)
{
    op_gives("MelWeightMatrix", 17, "scalar[3] scalar[16] scalar[8192] fscalar[0] fscalar[4096]",
             "1,0,0,0,1,0,0,0.5,0.5,0,0,1,0,0,0.5,0,0,0,0,0,0,0,0,0,0,0,0");
}
END_TEST

START_TEST(transforms_are_padded_cut_and_inverted)
{
    op_runs("DFT", 17, "f1x5x1[-1.67,1.63,-0.92,-0.77,1.33] | axis=1",
            "-0.3999999,0,0.6119291,-0.1971491,-4.586929,-0.318994,-4.586929,0.318994,0.6119291,0."
            "1971491");
    op_runs("DFT", 17, "f1x5x1[-1.67,1.63,-0.92,-0.77,1.33] | axis=1 onesided=1",
            "-0.3999999,0,0.6119291,-0.1971491,-4.586929,-0.318994");
    op_runs("DFT", 17,
            "f1x5x2[0.48,-1.25,-0.26,1.54,-0.5,0.84,-1.61,0.91,1.11,1.3] | axis=1 inverse=1",
            "-0.156,0.668,0.4525164,-0.4877355,-0.2134666,-0.9735534,-0.1304096,-0.229178,0."
            "5273598,-0.2275331");
    op_runs("DFT", 20, "f1x5x1[-1.67,1.63,-0.92,-0.77,1.33] scalar[7]",
            "-0.3999999,0,-0.953535,0.5337042,-0.8546634,-3.630152,-3.836802,0.6208332,-3.836802,-"
            "0.6208332,-0.8546634,3.630152,-0.953535,-0.5337042");
    op_runs("DFT", 20, "f1x5x1[-1.67,1.63,-0.92,-0.77,1.33] scalar[4]",
            "-1.73,0,-0.7499999,-2.4,-3.45,0,-0.7499999,2.4");
    op_runs("DFT", 20, "f1x2x3x1[0.7,-0.52,-1.74,0.08,1.03,-1.24] - scalar[1]",
            "0.78,0,0.51,0,-2.98,0,0.62,0,-1.55,0,-0.5,0");
    op_runs("DFT", 20, "f1x3x2[-0.94,0.14,0.99,1.59,-1.5,-1.26] scalar[4] | inverse=1 onesided=1",
            "-0.115,-0.655,-1.105,0.935");
    op_runs("DFT", 20, "f1x3x2[1.2,0.58,0.88,1.99,1.76,1.37] scalar[5] | inverse=1 onesided=1",
            "1.296,-1.299921,0.2260759,0.119472,0.8583733");
}
END_TEST

START_TEST(frames_are_transformed)
{
    op_runs("STFT", 17,
            "f1x10x1[1.11,-0.42,0.56,-1.26,1.04,1.03,0.89,-0.22,-0.49,-0.32] scalar[3] "
            "f4[-1.87,1.38,0.17,-0.45]",
            "-1.9931,0,-2.1709,1.1466,-1.9679,0,3.566,0,2.1811,-1.8357,1.4966,0,-1.9072,0,-1.581,"
            "0.4476,-1.588,0");
    op_runs("STFT", 17,
            "f1x10x1[0.19,0.89,-0.47,1.32,1.68,-0.45,-1.45,1.04,1.97,-1.41] scalar[3] - scalar[4] "
            "| onesided=0",
            "1.93,0,0.66,0.4300001,-2.49,0,0.66,-0.4300001,1.1,0,1.77,-3.13,0.6400002,0,1.77,3.13,"
            "0.15,0,-3.42,-2.45,0.89,0,-3.42,2.45");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("op_signal");
    TCase *t = tcase_create("op_signal");
    tcase_add_test(t, windows_are_symmetric_or_periodic);
    tcase_add_test(t, determinants_are_eliminated);
    tcase_add_test(t, mel_triangles_overlap);
    tcase_add_test(t, transforms_are_padded_cut_and_inverted);
    tcase_add_test(t, frames_are_transformed);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
