/* new_images.c - convolutional networks of the size that image models have.
 *
 * Layers, module names and their order are torchvision's (the U-Net's those of
 * its common PyTorch version), so that parameter counts are the published ones.
 * Convolutions are drawn by Kaiming's rule over the inputs of each output,
 * depthwise ones too: over the outputs, as torchvision draws depthwise layers,
 * a signal would fade to nothing while batch norms have not seen any data. */
#include "graph/attr.h"
#include "tools/new_draft.h"

#define NAME(...) accel_draft_name(draft, __VA_ARGS__)

/* conv, norm, and Relu in module `relu` unless NULL. */
static enum accel_err add_conv(struct accel_draft *draft, const char *conv, const char *norm,
                               const char *relu, struct accel_draft_conv c)
{
    ACCEL_TRY(accel_draft_conv(draft, conv, c));
    ACCEL_TRY(accel_draft_norm(draft, norm, c.out));
    return relu ? accel_draft_plain(draft, relu, "Relu", NULL) : ACCEL_OK;
}

/* 1000 classes from the mean over the image. sd 0: drawn as PyTorch's layer. */
static enum accel_err add_classifier(struct accel_draft *draft, const char *pool,
                                     const char *module, int64_t in, double sd)
{
    ACCEL_TRY(accel_draft_plain(draft, pool, "GlobalAveragePool", NULL));
    ACCEL_TRY(accel_draft_flatten(draft));
    draft->init = sd > 0 ? ACCEL_INIT_NORMAL : ACCEL_INIT_TORCH;
    draft->sd = sd;
    draft->output = "logits";
    ACCEL_TRY(accel_draft_gemm(draft, module, in, 1000));
    return accel_draft_finish(draft, 1000);
}

static enum accel_err begin(struct accel_draft *draft)
{
    draft->init = ACCEL_INIT_KAIMING;
    return accel_draft_input(draft, "input", 3, (int64_t[]){3, 224, 224});
}

/* One residual block: two 3x3 layers, or 1x1, 3x3 and 1x1 to four times the
 * width. *in: channels before and after. */
static enum accel_err add_residual(struct accel_draft *draft, const char *module, int64_t *in,
                                   int64_t width, int64_t stride, bool bottleneck)
{
    int n = bottleneck ? 3 : 2, wide = bottleneck ? 1 : 0;
    int64_t out = bottleneck ? 4 * width : width, c = *in;
    struct accel_value *x = draft->at;
    for (int i = 0; i < n; i++) {
        bool last = i == n - 1;
        const char *relu = last ? NULL
                           : i  ? NAME("%s.relu_%d", module, i)
                                : NAME("%s.relu", module);
        struct accel_draft_conv conv = {.in = c,
                                        .out = last ? out : width,
                                        .size = bottleneck && i != 1 ? 1 : 3,
                                        .stride = i == wide ? stride : 1};
        ACCEL_TRY(add_conv(draft, NAME("%s.conv%d", module, i + 1), NAME("%s.bn%d", module, i + 1),
                           relu, conv));
        c = conv.out;
    }
    struct accel_value *y = draft->at;
    draft->at = x;
    if (*in != out || stride > 1)
        ACCEL_TRY(add_conv(draft, NAME("%s.downsample.0", module), NAME("%s.downsample.1", module),
                           NULL, (struct accel_draft_conv){*in, out, 1, stride, false, 0}));
    x = draft->at;
    draft->at = y;
    *in = out;
    ACCEL_TRY(accel_draft_plain(draft, module, "Add", x));
    return accel_draft_plain(draft, NAME("%s.relu_%d", module, n - 1), "Relu", NULL);
}

/* Source: He et al., "Deep Residual Learning for Image Recognition", CVPR 2016,
 * table 1; the stride of a bottleneck in its 3x3 layer, as everybody has it
 * since. */
static enum accel_err build_resnet(struct accel_draft *draft, const int *blocks, bool bottleneck)
{
    int64_t channels = 64;
    ACCEL_TRY(begin(draft));
    ACCEL_TRY(
        add_conv(draft, "conv1", "bn1", "relu", (struct accel_draft_conv){3, 64, 7, 2, false, 0}));
    ACCEL_TRY(accel_draft_pool(draft, "maxpool", "MaxPool", 3, 2, 1));
    for (int s = 0; s < 4; s++)
        for (int b = 0; b < blocks[s]; b++)
            ACCEL_TRY(add_residual(draft, NAME("layer%d.%d", s + 1, b), &channels, 64 << s,
                                   s && !b ? 2 : 1, bottleneck));
    return add_classifier(draft, "avgpool", "fc", channels, 0);
}

enum accel_err accel_draft_resnet18(struct accel_draft *draft)
{
    return build_resnet(draft, (int[]){2, 2, 2, 2}, false);
}

enum accel_err accel_draft_resnet50(struct accel_draft *draft)
{
    return build_resnet(draft, (int[]){3, 4, 6, 3}, true);
}

/* Relu6: Clip to 0…6. */
static enum accel_err add_relu6(struct accel_draft *draft, const char *module)
{
    struct accel_value *in[3] = {draft->at, NULL, NULL};
    struct accel_node *n;
    ACCEL_TRY(accel_draft_float(&in[1], draft, module, 0));
    ACCEL_TRY(accel_draft_float(&in[2], draft, module, 6));
    return accel_draft_node(&n, draft, module, "Clip", in, 3);
}

/* MODULE.0 conv, MODULE.1 norm, MODULE.2 Relu6. */
static enum accel_err add_conv6(struct accel_draft *draft, const char *module,
                                struct accel_draft_conv c)
{
    ACCEL_TRY(add_conv(draft, NAME("%s.0", module), NAME("%s.1", module), NULL, c));
    return add_relu6(draft, NAME("%s.2", module));
}

/* 1x1 to `expand` times the channels (unless 1), depthwise 3x3, 1x1 without
 * activation; plus the input where the size is the same. */
static enum accel_err add_inverted(struct accel_draft *draft, const char *module, int64_t in,
                                   int64_t out, int64_t stride, int64_t expand)
{
    struct accel_value *x = draft->at;
    int64_t wide = in * expand;
    int i = 0;
    if (expand > 1)
        ACCEL_TRY(add_conv6(draft, NAME("%s.conv.%d", module, i++),
                            (struct accel_draft_conv){in, wide, 1, 1, false, 0}));
    ACCEL_TRY(add_conv6(draft, NAME("%s.conv.%d", module, i++),
                        (struct accel_draft_conv){wide, wide, 3, stride, false, wide}));
    ACCEL_TRY(add_conv(draft, NAME("%s.conv.%d", module, i), NAME("%s.conv.%d", module, i + 1),
                       NULL, (struct accel_draft_conv){wide, out, 1, 1, false, 0}));
    return in == out && stride == 1 ? accel_draft_plain(draft, module, "Add", x) : ACCEL_OK;
}

/* Source: Sandler et al., "MobileNetV2: Inverted Residuals and Linear
 * Bottlenecks", CVPR 2018, table 2. */
enum accel_err accel_draft_mobilenet_v2(struct accel_draft *draft)
{
    static const struct {
        int expand, channels, repeat, stride;
    } stage[] = {{1, 16, 1, 1}, {6, 24, 2, 2},  {6, 32, 3, 2}, {6, 64, 4, 2},
                 {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}};
    int64_t in = 32;
    int at = 1;
    ACCEL_TRY(begin(draft));
    ACCEL_TRY(add_conv6(draft, "features.0", (struct accel_draft_conv){3, 32, 3, 2, false, 0}));
    for (size_t s = 0; s < sizeof stage / sizeof *stage; s++)
        for (int b = 0; b < stage[s].repeat; b++) {
            ACCEL_TRY(add_inverted(draft, NAME("features.%d", at++), in, stage[s].channels,
                                   b ? 1 : stage[s].stride, stage[s].expand));
            in = stage[s].channels;
        }
    ACCEL_TRY(add_conv6(draft, "features.18", (struct accel_draft_conv){in, 1280, 1, 1, false, 0}));
    return add_classifier(draft, "", "classifier.1", 1280, 0.01);
}

/* Norm, Relu, convolution: the order of DenseNet. */
static enum accel_err add_pre_norm(struct accel_draft *draft, const char *module, const char *which,
                                   int64_t in, int64_t out, int64_t size)
{
    ACCEL_TRY(accel_draft_norm(draft, NAME("%s.norm%s", module, which), in));
    ACCEL_TRY(accel_draft_plain(draft, NAME("%s.relu%s", module, which), "Relu", NULL));
    return accel_draft_conv(draft, NAME("%s.conv%s", module, which),
                            (struct accel_draft_conv){in, out, size, 1, false, 0});
}

/* Appends the running value to part[0..*n) and makes their Concat over the
 * channels the running value. */
static enum accel_err add_concat(struct accel_draft *draft, const char *module,
                                 struct accel_value **part, int *n)
{
    struct accel_node *node;
    part[(*n)++] = draft->at;
    ACCEL_TRY(accel_draft_node(&node, draft, module, "Concat", part, *n));
    return accel_attr_set_int(node, "axis", 1);
}

/* Source: Huang et al., "Densely Connected Convolutional Networks", CVPR 2017,
 * table 1. Every layer reads the Concat of all outputs before it. */
enum accel_err accel_draft_densenet121(struct accel_draft *draft)
{
    enum { GROWTH = 32, LAYERS = 24 };
    static const int layers[4] = {6, 12, LAYERS, 16};
    struct accel_value *part[LAYERS + 1];
    int64_t channels = 64;
    ACCEL_TRY(begin(draft));
    ACCEL_TRY(add_conv(draft, "features.conv0", "features.norm0", "features.relu0",
                       (struct accel_draft_conv){3, 64, 7, 2, false, 0}));
    ACCEL_TRY(accel_draft_pool(draft, "features.pool0", "MaxPool", 3, 2, 1));
    for (int s = 0; s < 4; s++) {
        int n = 0;
        part[n++] = draft->at;
        for (int i = 1; i <= layers[s]; i++) {
            const char *module = NAME("features.denseblock%d.denselayer%d", s + 1, i);
            ACCEL_TRY(add_pre_norm(draft, module, "1", channels, 4 * GROWTH, 1));
            ACCEL_TRY(add_pre_norm(draft, module, "2", 4 * GROWTH, GROWTH, 3));
            ACCEL_TRY(add_concat(draft, NAME("features.denseblock%d", s + 1), part, &n));
            channels += GROWTH;
        }
        if (s == 3)
            break;
        const char *module = NAME("features.transition%d", s + 1);
        ACCEL_TRY(add_pre_norm(draft, module, "", channels, channels / 2, 1));
        ACCEL_TRY(accel_draft_pool(draft, NAME("%s.pool", module), "AveragePool", 2, 2, 0));
        channels /= 2;
    }
    ACCEL_TRY(accel_draft_norm(draft, "features.norm5", channels));
    ACCEL_TRY(accel_draft_plain(draft, "", "Relu", NULL));
    return add_classifier(draft, "", "classifier", channels, 0);
}

/* Two 3x3 layers with norm and Relu: MODULE.double_conv.0 to .5. */
static enum accel_err add_double(struct accel_draft *draft, const char *module, int64_t in,
                                 int64_t out)
{
    for (int i = 0; i < 6; i += 3) {
        ACCEL_TRY(add_conv(draft, NAME("%s.double_conv.%d", module, i),
                           NAME("%s.double_conv.%d", module, i + 1),
                           NAME("%s.double_conv.%d", module, i + 2),
                           (struct accel_draft_conv){in, out, 3, 1, false, 0}));
        in = out;
    }
    return ACCEL_OK;
}

/* Source: Ronneberger et al., "U-Net: Convolutional Networks for Biomedical
 * Image Segmentation", MICCAI 2015, figure 1, at half its width; padded, so
 * that the output is as large as the input, and with batch norms. */
enum accel_err accel_draft_unet(struct accel_draft *draft)
{
    enum { LEVELS = 4, BASE = 32, CLASSES = 2, SIZE = 128 };
    struct accel_value *skip[LEVELS], *part[2];
    draft->init = ACCEL_INIT_KAIMING;
    ACCEL_TRY(accel_draft_input(draft, "input", 3, (int64_t[]){1, SIZE, SIZE}));
    ACCEL_TRY(add_double(draft, "inc", 1, BASE));
    for (int i = 0; i < LEVELS; i++) {
        skip[i] = draft->at;
        ACCEL_TRY(
            accel_draft_pool(draft, NAME("down%d.maxpool_conv.0", i + 1), "MaxPool", 2, 2, 0));
        ACCEL_TRY(
            add_double(draft, NAME("down%d.maxpool_conv.1", i + 1), BASE << i, BASE << i << 1));
    }
    for (int i = LEVELS; i--;) {
        int64_t out = BASE << i;
        const char *module = NAME("up%d", LEVELS - i);
        int n = 1;
        ACCEL_TRY(accel_draft_up(draft, NAME("%s.up", module), 2 * out, out));
        part[0] = skip[i];
        ACCEL_TRY(add_concat(draft, module, part, &n));
        ACCEL_TRY(add_double(draft, NAME("%s.conv", module), 2 * out, out));
    }
    draft->init = ACCEL_INIT_TORCH;
    draft->output = "logits";
    ACCEL_TRY(accel_draft_conv(draft, "outc.conv",
                               (struct accel_draft_conv){BASE, CLASSES, 1, 1, draft->bias, 0}));
    return accel_draft_end(draft, 3, (int64_t[]){CLASSES, SIZE, SIZE});
}
