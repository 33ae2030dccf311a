/* fused.c - activations by name: Relu, Tanh, Sigmoid, LeakyRelu (a), HardSigmoid (a, b), Clip from
 * a to b. A node without the attribute passes its result on. */
#include "ops/fused.h"

#include <math.h>
#include <string.h>

#include "graph/attr.h"

static double same(double x, double a, double b)
{
    (void)a, (void)b;
    return x;
}
static double relu(double x, double a, double b)
{
    (void)a, (void)b;
    return x < 0 ? 0 : x;
}
static double hyperbolic(double x, double a, double b)
{
    (void)a, (void)b;
    return tanh(x);
}
static double sigmoid(double x, double a, double b)
{
    (void)a, (void)b;
    return 1 / (1 + exp(-x));
}
static double leaky(double x, double a, double b)
{
    (void)b;
    return x < 0 ? a * x : x;
}
static double hard_sigmoid(double x, double a, double b)
{
    double v = a * x + b;
    return v < 0 ? 0 : v > 1 ? 1 : v;
}
static double clip(double x, double a, double b)
{
    return x < a ? a : x > b ? b : x;
}

enum accel_err accel_fused_read(struct accel_fused *out, const struct accel_node *n)
{
    static const struct {
        const char *name;
        double (*f)(double, double, double);
        size_t numbers;
    } known[] = {{"", same, 0},           {"Relu", relu, 0},       {"Tanh", hyperbolic, 0},
                 {"Sigmoid", sigmoid, 0}, {"LeakyRelu", leaky, 1}, {"HardSigmoid", hard_sigmoid, 2},
                 {"Clip", clip, 2}};
    const char *name;
    const float *list;
    size_t count, i = 0;
    float a, b;
    ACCEL_TRY(accel_attr_string(&name, n, "activation", ""));
    ACCEL_TRY(accel_attr_floats(&list, &count, n, "activation_params"));
    ACCEL_TRY(accel_attr_float(&a, n, "activation_alpha", 0.01f));
    ACCEL_TRY(accel_attr_float(&b, n, "activation_beta", 0));
    while (i < sizeof known / sizeof *known && strcmp(known[i].name, name) != 0)
        i++;
    if (i == sizeof known / sizeof *known)
        return accel_fail(ACCEL_EMODEL, "attribute 'activation' is \"%.50s\"", name);
    if (list && count < known[i].numbers)
        return accel_fail(ACCEL_EMODEL, "attribute 'activation_params' has %zu entries for %s",
                          count, name);
    out->f = known[i].f;
    out->a = (double)(list && count > 0 ? list[0] : a);
    out->b = (double)(list && count > 1 ? list[1] : b);
    return ACCEL_OK;
}
