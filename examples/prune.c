/* prune.c - prunes an ONNX model through the C library:
 *
 *     cc prune.c $(pkg-config --cflags --libs accel) -o prune
 *     ./prune model.onnx '[{"op_types": ["Linear"], "sparse_ratio": 0.3}]' small.onnx */
#include <accel/accel.h>
#include <inttypes.h>
#include <stdio.h>

static int prune(struct accel_net *net, const char *config, const char *out)
{
    int status = accel_net_prune(net, config);
    if (!status)
        status = accel_net_write(net, out);
    if (status)
        return status;
    struct accel_net_weight w;
    for (size_t i = 0; accel_net_weight_get(&w, net, i); i++)
        printf("%-20s %9" PRIu64 " weights, %5.1f %% zeros: %s\n", w.name, w.elements,
               100.0 * (double)w.zeros / (double)(w.elements ? w.elements : 1), w.reason);
    for (size_t i = 0; accel_net_warning(net, i); i++)
        printf("warning: %s\n", accel_net_warning(net, i));
    printf("%s: %" PRIu64 " of %" PRIu64 " parameters are not zero\n", out, accel_net_nonzero(net),
           accel_net_params(net));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc != 4) {
        fprintf(stderr, "usage: prune MODEL CONFIG OUT\n");
        return 1;
    }
    struct accel_net *net;
    int status = accel_net_read(&net, argv[1]);
    if (!status)
        status = prune(net, argv[2], argv[3]);
    if (status)
        fprintf(stderr, "prune: %s\n", accel_error());
    accel_net_free(net);
    return status;
}
