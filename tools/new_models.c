/* new_models.c - the networks that accel-new knows. A network is a row of the
 * table and a function that appends its layers; sizes and module names are
 * those users meet in tutorials and papers. */
#include "tools/new_draft.h"

#include "base/str.h"

#include <string.h>

static const int64_t image[3] = {1, 28, 28};

/* Linear regression, y = w·x + b, in double precision. */
static enum accel_err build_linear(struct accel_draft *draft)
{
    int64_t features = draft->features ? draft->features : 8;
    draft->dtype = ACCEL_F64;
    ACCEL_TRY(accel_draft_input(draft, "input", 1, &features));
    draft->output = "output";
    ACCEL_TRY(accel_draft_gemm(draft, "fc", features, 1));
    return accel_draft_finish(draft, 1);
}

/* Fully connected layers PREFIX1, PREFIX2, … of these widths, Relu between
 * them. */
static enum accel_err add_layers(struct accel_draft *draft, const char *prefix,
                                 const int64_t *width, int n)
{
    for (int i = 1; i <= n; i++) {
        struct accel_str module = {0};
        accel_str_addf(&module, "%s%d", prefix, i);
        draft->output = i == n ? "logits" : NULL;
        enum accel_err err =
            module.failed ? accel_fail_nomem()
                          : accel_draft_gemm(draft, accel_str_get(&module), width[i - 1], width[i]);
        accel_str_clear(&module);
        ACCEL_TRY(err);
        if (i < n)
            ACCEL_TRY(accel_draft_plain(draft, "", "Relu", NULL));
    }
    return accel_draft_finish(draft, width[n]);
}

/* LeNet-300-100. */
static enum accel_err build_mlp(struct accel_draft *draft)
{
    ACCEL_TRY(accel_draft_input(draft, "input", 3, image));
    ACCEL_TRY(accel_draft_flatten(draft));
    return add_layers(draft, "fc", (int64_t[]){784, 300, 100, 10}, 3);
}

static enum accel_err build_mlp4(struct accel_draft *draft)
{
    ACCEL_TRY(accel_draft_input(draft, "input", 3, image));
    ACCEL_TRY(accel_draft_flatten(draft));
    return add_layers(draft, "layer", (int64_t[]){784, 256, 128, 64, 10}, 4);
}

static enum accel_err build_fashion_cnn(struct accel_draft *draft)
{
    ACCEL_TRY(accel_draft_input(draft, "input", 3, image));
    ACCEL_TRY(
        accel_draft_conv(draft, "layer1", (struct accel_draft_conv){1, 32, 3, 1, draft->bias, 0}));
    ACCEL_TRY(accel_draft_plain(draft, "", "Relu", NULL));
    ACCEL_TRY(accel_draft_max_pool(draft));
    ACCEL_TRY(
        accel_draft_conv(draft, "layer2", (struct accel_draft_conv){32, 64, 3, 1, draft->bias, 0}));
    ACCEL_TRY(accel_draft_plain(draft, "", "Relu", NULL));
    ACCEL_TRY(accel_draft_max_pool(draft));
    ACCEL_TRY(accel_draft_reshape(draft, 64 * 7 * 7));
    return add_layers(draft, "fc", (int64_t[]){64 * 7 * 7, 512, 10}, 2);
}

/* MODULE.conv and MODULE.norm. */
static enum accel_err add_conv_norm(struct accel_draft *draft, const char *module, const char *conv,
                                    const char *norm, struct accel_draft_conv c)
{
    struct accel_str name = {0};
    enum accel_err err = ACCEL_OK;
    for (int i = 0; i < 2 && !err; i++) {
        accel_str_clear(&name);
        accel_str_addf(&name, "%s%s%s", module, *module ? "." : "", i ? norm : conv);
        if (name.failed)
            err = accel_fail_nomem();
        else if (i)
            err = accel_draft_norm(draft, accel_str_get(&name), c.out);
        else
            err = accel_draft_conv(draft, accel_str_get(&name), c);
    }
    accel_str_clear(&name);
    return err;
}

/* y = Relu(norm(conv(Relu(norm(conv(x))))) + shortcut(x)); the shortcut is x
 * itself, or a 1x1 convolution where the size changes. */
static enum accel_err add_block(struct accel_draft *draft, const char *module, int64_t in,
                                int64_t out, int64_t stride)
{
    struct accel_value *x = draft->at;
    ACCEL_TRY(add_conv_norm(draft, module, "conv1", "bn1",
                            (struct accel_draft_conv){in, out, 3, stride, 0, 0}));
    ACCEL_TRY(accel_draft_plain(draft, module, "Relu", NULL));
    ACCEL_TRY(add_conv_norm(draft, module, "conv2", "bn2",
                            (struct accel_draft_conv){out, out, 3, 1, 0, 0}));
    struct accel_value *y = draft->at;
    draft->at = x;
    if (in != out)
        ACCEL_TRY(add_conv_norm(draft, module, "down.0", "down.1",
                                (struct accel_draft_conv){in, out, 1, stride, 0, 0}));
    x = draft->at;
    draft->at = y;
    ACCEL_TRY(accel_draft_plain(draft, module, "Add", x));
    return accel_draft_plain(draft, module, "Relu", NULL);
}

/* Source: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016,
 * section 4.2; with projection shortcuts (option B). */
static enum accel_err build_resnet20(struct accel_draft *draft)
{
    static const char *const module[3][3] = {{"stage1.0", "stage1.1", "stage1.2"},
                                             {"stage2.0", "stage2.1", "stage2.2"},
                                             {"stage3.0", "stage3.1", "stage3.2"}};
    ACCEL_TRY(accel_draft_input(draft, "input", 3, image));
    ACCEL_TRY(
        add_conv_norm(draft, "", "conv1", "bn1", (struct accel_draft_conv){1, 16, 3, 1, 0, 0}));
    ACCEL_TRY(accel_draft_plain(draft, "", "Relu", NULL));
    int64_t in = 16;
    for (int s = 0; s < 3; s++)
        for (int b = 0; b < 3; b++) {
            int64_t out = 16 << s;
            ACCEL_TRY(add_block(draft, module[s][b], in, out, in == out ? 1 : 2));
            in = out;
        }
    ACCEL_TRY(accel_draft_plain(draft, "pool", "GlobalAveragePool", NULL));
    ACCEL_TRY(accel_draft_flatten(draft));
    draft->output = "logits";
    ACCEL_TRY(accel_draft_gemm(draft, "fc", 64, 10));
    return accel_draft_finish(draft, 10);
}

const struct accel_network accel_network_table[] = {
    {"linear", "linear regression, float64, --features inputs", build_linear},
    {"mlp", "784-300-100-10, fully connected", build_mlp},
    {"mlp4", "784-256-128-64-10, modules layer1 to layer4", build_mlp4},
    {"fashion-cnn", "two convolutions, two fully connected layers", build_fashion_cnn},
    {"resnet20", "20 layers in 9 residual blocks, 16-32-64 channels", build_resnet20},
    {"resnet18", "ResNet-18 for 224x224 images, 1000 classes", accel_draft_resnet18},
    {"resnet50", "ResNet-50 with bottlenecks, stride in the 3x3 layer", accel_draft_resnet50},
    {"mobilenet-v2", "MobileNetV2, inverted residuals, depthwise layers", accel_draft_mobilenet_v2},
    {"densenet121", "DenseNet-121, four blocks of growth 32", accel_draft_densenet121},
    {"unet", "U-Net, four levels of 32 to 512 channels, 1x128x128", accel_draft_unet},
    {"encoder", "transformer encoder, 6 layers, width 256, post-norm", accel_draft_encoder},
    {"gpt", "causal decoder, 6 layers, width 256, RMS norm", accel_draft_gpt},
    {0},
};

enum accel_err accel_network_build(struct accel_draft *draft, const struct accel_network *w,
                                   uint64_t seed)
{
    ACCEL_TRY(accel_model_new(&draft->m, 17));
    draft->m->ir_version = 8; /* the one that came with opset 17 */
    draft->m->producer = "accel " ACCEL_VERSION;
    draft->rng = accel_rng_init(seed);
    draft->dtype = ACCEL_F32;
    draft->init = ACCEL_INIT_TORCH;
    draft->output = NULL;
    enum accel_err err = w->build(draft);
    if (err) {
        accel_model_free(draft->m);
        draft->m = NULL;
    }
    return err;
}
