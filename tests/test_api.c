/* The C interface on a network of our own: mlp4 has four linear layers, layer1 to layer4, of known
 * sizes. Files go to a folder of the test. */
#include "tests/t.h"

#include "accel/accel.h"
#include "base/alloc.h"
#include "onnx/onnx.h"
#include "tools/new_draft.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char dir[64], in[96], out[96];
static struct accel_net *net;

#define MLP4_MACS   (784 * 256 + 256 * 128 + 128 * 64 + 64 * 10)
#define MLP4_BIASES (256 + 128 + 64 + 10)

#define ISSUE                                                                                      \
    "[{\"op_types\": [\"Linear\"], \"exclude_op_names\": [\"layer4\"], \"sparse_ratio\": 0.3}]"

static void begin(void)
{
    const struct accel_network *w = accel_network_table;
    while (strcmp(w->name, "mlp4"))
        w++;
    struct accel_draft draft = {.bias = true};
    struct accel_onnx_written written;
    snprintf(dir, sizeof dir, "/tmp/test_api.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(in, sizeof in, "%s/m.onnx", dir);
    snprintf(out, sizeof out, "%s/o.onnx", dir);
    ck_ok(accel_network_build(&draft, w, 1));
    ck_ok(accel_onnx_write(&written, draft.m, in, &(struct accel_onnx_write_options){0}));
    accel_model_free(draft.m);
}

static int n_files(void)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; (e = readdir(d));)
        n += e->d_name[0] != '.';
    closedir(d);
    return n;
}

static void tidy(void)
{
    accel_alloc_fail_at(0, false);
    accel_net_free(net);
    net = NULL;
    unlink(in);
    unlink(out);
    ck_assert_int_eq(rmdir(dir), 0); /* nothing else was left there */
}

START_TEST(numbers_are_those_of_the_file)
{
    struct accel_net_numbers n;
    ck_assert_int_eq(accel_net_read(&net, in), 0);
    ck_assert_int_eq(accel_net_count(&n, net), 0);
    ck_assert_uint_gt(n.bytes, 4 * n.params);
    ck_assert_uint_eq(n.params, n.trainable);
    ck_assert_uint_gt(n.nonzero, n.params - 100);
    ck_assert_int_eq(n.macs, MLP4_MACS);
    ck_assert_uint_eq(n.params, MLP4_MACS + MLP4_BIASES);
}
END_TEST

START_TEST(every_linear_layer_but_the_last_loses_30_percent)
{
    ck_assert_int_eq(accel_net_read(&net, in), 0);
    ck_assert_int_eq(accel_net_prune(net, ISSUE), 0);
    ck_assert_int_eq(accel_net_write(net, out), 0);
    struct accel_net_weight w;
    int pruned = 0;
    for (size_t i = 0; accel_net_weight_get(&w, net, i); i++) {
        if (!strcmp(w.name, "layer4.weight"))
            ck_assert_str_eq(w.reason, "excluded");
        if (!w.pruned)
            continue;
        pruned++;
        ck_assert_double_eq(w.requested, 0.3);
        ck_assert_uint_eq(w.zeros, (uint64_t)(0.3 * (double)w.elements + 1e-6));
    }
    ck_assert_int_eq(pruned, 3);
    /* and the file says the same */
    struct accel_net_numbers n;
    uint64_t nonzero = accel_net_nonzero(net);
    accel_net_free(net);
    ck_assert_int_eq(accel_net_read(&net, out), 0);
    ck_assert_int_eq(accel_net_count(&n, net), 0);
    ck_assert_uint_eq(n.nonzero, nonzero);
    ck_assert_uint_lt(nonzero, n.params * 75 / 100);
}
END_TEST

START_TEST(channels_are_cut_out_of_the_network)
{
    struct accel_net_weight w;
    ck_assert_int_eq(accel_net_read(&net, in), 0);
    ck_assert_int_eq(accel_net_prune(net, "{\"pruner\": \"l1_norm\", \"config_list\": "
                                          "[{\"op_types\": [\"Linear\"], \"sparse_ratio\": 0.5}]}"),
                     0);
    ck_assert_int_eq(accel_net_write(net, out), 0);
    ck_assert_int_eq(accel_net_weight_get(&w, net, 0), 1);
    ck_assert_str_eq(w.name, "layer1.weight");
    ck_assert_double_eq(w.achieved, 0.5);
    uint64_t params = accel_net_params(net), elements = w.elements;
    accel_net_free(net);
    struct accel_net_numbers n;
    ck_assert_int_eq(accel_net_read(&net, out), 0);
    ck_assert_int_eq(accel_net_count(&n, net), 0);
    ck_assert_uint_eq(n.params, params);
    ck_assert_uint_lt(n.params, MLP4_MACS / 2);
    ck_assert_uint_eq(elements % 784, 0);
    ck_assert_int_eq(accel_net_prune(net,
                                     "{\"pruner\": \"l1_norm\", \"target\": {\"accuracy_drop\": "
                                     "0.1}, \"config_list\": [{\"op_types\": [\"Linear\"]}]}"),
                     1);
    ck_assert(strstr(accel_error(), "accuracy_drop is for the command"));
}
END_TEST

START_TEST(a_wrong_config_leaves_the_network_usable)
{
    ck_assert_int_eq(accel_net_read(&net, in), 0);
    ck_assert_int_eq(accel_net_prune(net, "[{\"op_types\": [\"Linaer\"], \"sparse_ratio\": 0.3}]"),
                     1);
    ck_assert(strstr(accel_error(), "Linear"));
    ck_assert_int_eq(accel_net_prune(net, ISSUE), 0);
    ck_assert_int_eq(accel_net_prune(net, ISSUE), 1);
    ck_assert_int_eq(accel_net_write(net, out), 0);
}
END_TEST

START_TEST(statuses_are_those_of_the_programs)
{
    ck_assert_int_eq(accel_net_read(&net, "/nowhere/x.onnx"), 2);
    ck_assert_ptr_null(net);
    ck_assert(strstr(accel_error(), "/nowhere/x.onnx"));
    ck_assert_int_eq(accel_net_read(&net, in), 0);
    ck_assert_int_eq(accel_net_write(net, "/nowhere/x.onnx"), 5);
    ck_assert_int_eq(accel_net_bind_dim(net, "no_such_dim", 3), 1);
}
END_TEST

/* Everything from reading to writing; the status of the first failure. */
static int whole_run(void)
{
    struct accel_net *n = NULL;
    int status = accel_net_read(&n, in);
    if (!status)
        status = accel_net_prune(n, ISSUE);
    if (!status)
        status = accel_net_write(n, out);
    accel_net_free(n);
    return status;
}

START_TEST(every_failed_allocation_is_a_status_and_no_file)
{
    for (int forever = 0; forever < 2; forever++)
        for (long nth = 1;; nth++) {
            ck_assert_int_lt(nth, 100000);
            accel_alloc_fail_at(nth, forever);
            int status = whole_run();
            bool reached = accel_alloc_count() >= nth;
            accel_alloc_fail_at(0, false);
            if (!reached) {
                ck_assert_int_eq(status, 0);
                unlink(out);
                break;
            }
            /* a warning that found no memory is dropped: then the run succeeds */
            ck_assert_msg(status == 5 || status == 0, "allocation %ld: %d, %s", nth, status,
                          accel_error());
            ck_assert_int_eq(n_files(), status ? 1 : 2);
            unlink(out);
        }
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("api");
    TCase *t = tcase_create("net");
    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, begin, tidy);
    tcase_add_test(t, numbers_are_those_of_the_file);
    tcase_add_test(t, every_linear_layer_but_the_last_loses_30_percent);
    tcase_add_test(t, channels_are_cut_out_of_the_network);
    tcase_add_test(t, a_wrong_config_leaves_the_network_usable);
    tcase_add_test(t, statuses_are_those_of_the_programs);
    tcase_add_test(t, every_failed_allocation_is_a_status_and_no_file);
    suite_add_tcase(s, t);
    return s;
}

T_MAIN(suite)
