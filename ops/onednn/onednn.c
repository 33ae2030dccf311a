/* onednn.c - the CPU's device: which operators oneDNN has kernels for, and the layouts it knows.
 *
 * Every format that a result takes is kept once, so that two layouts are equal when their tags are;
 * beside it lies the reorder back to row-major order. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "ops/onednn/dn_job.h"

static const struct {
    const char *op;
    accel_dn_describe describe;
} rows[] = {
    {"Conv", accel_dn_conv},
    {"ConvTranspose", accel_dn_conv_transpose},
    {"QLinearConv", accel_dn_conv_integer},
    {"ConvInteger", accel_dn_conv_integer},
    {"QLinearMatMul", accel_dn_matmul_integer},
    {"MatMulInteger", accel_dn_matmul_integer},
    {"QuantizeLinear", accel_dn_quantize},
    {"DequantizeLinear", accel_dn_quantize},
    {"MatMul", accel_dn_matmul},
    {"Gemm", accel_dn_gemm},
    {"MaxPool", accel_dn_pool},
    {"AveragePool", accel_dn_pool},
    {"GlobalAveragePool", accel_dn_global_pool},
    {"GlobalMaxPool", accel_dn_global_pool},
    {"ReduceSum", accel_dn_reduce},
    {"ReduceMean", accel_dn_reduce},
    {"BatchNormalization", accel_dn_batch_norm},
    {"LayerNormalization", accel_dn_layer_norm},
    {"Softmax", accel_dn_softmax},
    {"LogSoftmax", accel_dn_softmax},
    {"Concat", accel_dn_concat},
    {"Transpose", accel_dn_transpose},
    {"Add", accel_dn_binary},
    {"Sub", accel_dn_binary},
    {"Mul", accel_dn_binary},
    {"Div", accel_dn_binary},
    {"Sum", accel_dn_binary},
    {"Relu", accel_dn_unary},
    {"LeakyRelu", accel_dn_unary},
    {"Clip", accel_dn_unary},
    {"Sigmoid", accel_dn_unary},
    {"HardSigmoid", accel_dn_unary},
    {"HardSwish", accel_dn_unary},
    {"Tanh", accel_dn_unary},
    {"Elu", accel_dn_unary},
    {"Gelu", accel_dn_unary},
    {"Swish", accel_dn_unary},
    {"Mish", accel_dn_unary},
    {"Softplus", accel_dn_unary},
    {"Log", accel_dn_unary},
    {"Sqrt", accel_dn_unary},
    {"Abs", accel_dn_unary},
    {"Neg", accel_dn_unary},
};

static accel_dn_describe find(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].op, op) == 0)
            return rows[i].describe;
    return NULL;
}

struct kept {
    struct accel_dn_format format;
    struct accel_dn_kernel *to_row_major;
    void *workspace;
};

struct onednn {
    struct accel_device face; /* first */
    char name[64];
    struct accel_dn *dn;
    struct kept **kept; /* pointers: tags stay where they are */
    size_t n_kept, kept_cap;
    struct accel_dn_job *offered; /* the last one that was planned, or NULL */
};

static void kept_free(struct kept *k)
{
    accel_dn_kernel_free(k->to_row_major);
    accel_free(k->workspace);
    accel_free(k);
}

static enum accel_err kept_new(struct kept **out, struct accel_dn *dn,
                               const struct accel_dn_format *f)
{
    struct accel_dn_format flat;
    struct kept *k = accel_calloc(1, sizeof *k);
    *out = NULL;
    if (!k)
        return accel_fail_nomem();
    k->format = *f;
    const struct accel_dn_spec spec = {
        .kind = ACCEL_DN_REORDER, .in = {&k->format}, .n_in = 1, .n_own = 1, .out = &flat};
    enum accel_err err = accel_dn_format_row_major(&flat, f);
    if (!err)
        err = accel_dn_kernel_new(&k->to_row_major, dn, &spec);
    if (!err)
        err = accel_dn_kernel_ready(k->to_row_major);
    if (!err) {
        k->workspace = accel_alloc_pages(accel_dn_kernel_workspace(k->to_row_major) + 64);
        err = k->workspace ? ACCEL_OK : accel_fail_nomem();
    }
    if (err) {
        kept_free(k);
        return err;
    }
    *out = k;
    return ACCEL_OK;
}

/* The layout of a result: row-major, or the one kept copy of its format. */
static enum accel_err layout_of(struct accel_layout *out, struct onednn *d,
                                const struct accel_dn_job *j)
{
    struct accel_dn_format flat;
    *out = (struct accel_layout){.kind = ACCEL_ROW_MAJOR};
    ACCEL_TRY(accel_dn_format_row_major(&flat, &j->out));
    if (accel_dn_format_equal(&flat, &j->out))
        return ACCEL_OK;
    size_t i = 0;
    while (i < d->n_kept && !accel_dn_format_equal(&d->kept[i]->format, &j->out))
        i++;
    if (i == d->n_kept) {
        if (!ACCEL_GROW(d->kept, d->kept_cap, d->n_kept + 1))
            return accel_fail_nomem();
        ACCEL_TRY(kept_new(&d->kept[i], d->dn, &j->out));
        d->n_kept++;
    }
    *out = (struct accel_layout){ACCEL_OPAQUE, accel_dn_format_size(&j->out), &d->kept[i]->format};
    return ACCEL_OK;
}

/* ------------------------------------------------------------------ kernels */

static enum accel_err plan(struct accel_dn_job **out, struct accel_device *dev,
                           const struct accel_ask *ask)
{
    ACCEL_TRY(accel_dn_job_new(out, ((struct onednn *)dev)->dn, ask));
    enum accel_err err = accel_dn_job_plan(*out, find(ask->chain[0]->op->name));
    if (err) {
        accel_dn_job_free(*out);
        *out = NULL;
    }
    return err;
}

static void forget_offer(struct onednn *d)
{
    accel_dn_job_free(d->offered);
    d->offered = NULL;
}

static enum accel_err offer(struct accel_offer *o, struct accel_device *dev,
                            const struct accel_ask *ask)
{
    struct onednn *d = (struct onednn *)dev;
    struct accel_dn_job *j;
    *o = (struct accel_offer){0};
    forget_offer(d);
    ACCEL_TRY(plan(&j, dev, ask));
    d->offered = j;
    if (j->takes == 0)
        return ACCEL_OK;
    if (ask->tune && j->takes == ask->n_chain)
        ACCEL_TRY(accel_dn_job_tune(&d->offered, find(ask->chain[0]->op->name)));
    j = d->offered;
    ACCEL_TRY(layout_of(&o->out, d, j));
    o->takes = j->takes;
    memcpy(o->instead, j->instead, sizeof o->instead);
    memcpy(o->unread, j->unread, sizeof o->unread);
    o->workspace = j->workspace;
    return ACCEL_OK;
}

/* What was offered last is what is taken, as a rule. */
static enum accel_err prepare(void **state, struct accel_device *dev, const struct accel_ask *ask)
{
    struct onednn *d = (struct onednn *)dev;
    struct accel_dn_job *j = d->offered;
    *state = NULL;
    d->offered = NULL;
    if (!j || j->ask != ask || j->takes != ask->n_chain) {
        accel_dn_job_free(j);
        ACCEL_TRY(plan(&j, dev, ask));
    }
    enum accel_err err = j->takes == ask->n_chain
                             ? accel_dn_job_ready(j)
                             : accel_fail(ACCEL_EDEVICE, "oneDNN took back its offer");
    if (err) {
        accel_dn_job_free(j);
        return err;
    }
    j->ask = NULL;
    *state = j;
    return ACCEL_OK;
}

static bool reads(const void *state, int operand)
{
    return accel_dn_job_reads(state, operand);
}

static void release(void *state)
{
    accel_dn_job_free(state);
}

static enum accel_err forward(const struct accel_run *run)
{
    return accel_dn_job_run(run->state, run);
}

static const struct accel_fast kernels = {offer, prepare, reads, release, forward};

/* ------------------------------------------------------------------ device */

static const struct accel_fast *fast(struct accel_device *dev, const char *domain, const char *op)
{
    (void)dev;
    return !*domain && find(op) ? &kernels : NULL;
}

static enum accel_err to_row_major(struct accel_device *dev, void *to, const void *from,
                                   const struct accel_layout *layout)
{
    (void)dev;
    const struct kept *k =
        (const struct kept *)((const char *)layout->tag - offsetof(struct kept, format));
    return accel_dn_kernel_run(k->to_row_major, &from, to, k->workspace);
}

static enum accel_err check_bf16(struct accel_device *dev)
{
    return accel_dn_check_bf16(((struct onednn *)dev)->dn);
}

static void free_device(struct accel_device *dev)
{
    struct onednn *d = (struct onednn *)dev;
    forget_offer(d);
    for (size_t i = 0; i < d->n_kept; i++)
        kept_free(d->kept[i]);
    accel_free(d->kept);
    accel_dn_close(d->dn);
    accel_free(d);
}

enum accel_err accel_device_onednn(struct accel_device **out)
{
    struct accel_dn *dn;
    *out = NULL;
    ACCEL_TRY(accel_dn_open(&dn));
    if (!dn)
        return ACCEL_OK;
    struct onednn *d = accel_calloc(1, sizeof *d);
    if (!d) {
        accel_dn_close(dn);
        return accel_fail_nomem();
    }
    d->dn = dn;
    snprintf(d->name, sizeof d->name, "cpu, oneDNN %s", accel_dn_version());
    d->face = (struct accel_device){.name = d->name,
                                    .free = free_device,
                                    .fast = fast,
                                    .to_row_major = to_row_major,
                                    .check_bf16 = check_bf16};
    *out = &d->face;
    return ACCEL_OK;
}
