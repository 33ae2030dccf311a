/* dnnl_shim.c - the only file that knows <dnnl.h> (the C API of version 2; version 3 has another).
 *
 * The library is opened by name when first wanted, and its functions are kept in one table. It is
 * never closed: its thread pool and its cache of generated code (by shape, for all plans) live on.
 * A kernel is a primitive with one memory object per argument, whose address is set for each run.
 */
#include "ops/onednn/dnnl_shim.h"

#include <dlfcn.h>
#include <dnnl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/threads.h"

#define CALLS(X)                                                                                   \
    X(get_effective_cpu_isa)                                                                       \
    X(version)                                                                                     \
    X(engine_create)                                                                               \
    X(engine_destroy)                                                                              \
    X(stream_create)                                                                               \
    X(stream_wait)                                                                                 \
    X(stream_destroy)                                                                              \
    X(memory_create)                                                                               \
    X(memory_destroy)                                                                              \
    X(memory_set_data_handle)                                                                      \
    X(memory_desc_init_by_strides)                                                                 \
    X(memory_desc_equal)                                                                           \
    X(memory_desc_get_size)                                                                        \
    X(primitive_attr_create)                                                                       \
    X(primitive_attr_destroy)                                                                      \
    X(primitive_attr_set_scratchpad_mode)                                                          \
    X(primitive_attr_set_output_scales)                                                            \
    X(primitive_attr_set_zero_points)                                                              \
    X(primitive_attr_set_post_ops)                                                                 \
    X(post_ops_create)                                                                             \
    X(post_ops_destroy)                                                                            \
    X(post_ops_append_eltwise)                                                                     \
    X(post_ops_append_binary)                                                                      \
    X(primitive_desc_create)                                                                       \
    X(primitive_desc_iterator_create)                                                              \
    X(primitive_desc_iterator_next)                                                                \
    X(primitive_desc_iterator_fetch)                                                               \
    X(primitive_desc_iterator_destroy)                                                             \
    X(primitive_desc_destroy)                                                                      \
    X(primitive_desc_query)                                                                        \
    X(primitive_desc_query_md)                                                                     \
    X(primitive_create)                                                                            \
    X(primitive_destroy)                                                                           \
    X(primitive_execute)                                                                           \
    X(dilated_convolution_forward_desc_init)                                                       \
    X(dilated_deconvolution_forward_desc_init)                                                     \
    X(matmul_desc_init)                                                                            \
    X(pooling_v2_forward_desc_init)                                                                \
    X(eltwise_forward_desc_init)                                                                   \
    X(binary_desc_init)                                                                            \
    X(reduction_desc_init)                                                                         \
    X(softmax_v2_forward_desc_init)                                                                \
    X(layer_normalization_forward_desc_init)                                                       \
    X(concat_primitive_desc_create)                                                                \
    X(reorder_primitive_desc_create)

#define MEMBER(name) __typeof__(dnnl_##name) *name;
#define ENTRY(name)  {"dnnl_" #name, offsetof(struct calls, name)},
struct calls {
    CALLS(MEMBER)
};
static const struct {
    const char *name;
    size_t at;
} entries[] = {CALLS(ENTRY)};

static struct calls lib;
static void (*set_threads)(int); /* of the OpenMP that the library uses */
static bool is_there;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

#define TEXT_OF(x) #x
#define TEXT(x)    TEXT_OF(x)

static void open_library(void)
{
    void *so = dlopen("libdnnl.so." TEXT(DNNL_VERSION_MAJOR), RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; so && i < sizeof entries / sizeof *entries; i++) {
        void *f = dlsym(so, entries[i].name);
        if (!f)
            return;
        memcpy((char *)&lib + entries[i].at, &f, sizeof f);
    }
    void *f = so ? dlsym(so, "omp_set_num_threads") : NULL;
    if (f)
        memcpy(&set_threads, &f, sizeof f);
    is_there = so != NULL;
}

_Static_assert(sizeof(dnnl_memory_desc_t) <= sizeof(struct accel_dn_format), "room for a format");

static const dnnl_memory_desc_t *md(const struct accel_dn_format *f)
{
    return (const dnnl_memory_desc_t *)f->at;
}

static enum accel_err check(dnnl_status_t s)
{
    if (s == dnnl_success)
        return ACCEL_OK;
    if (s == dnnl_out_of_memory)
        return accel_fail_nomem();
    if (s == dnnl_unimplemented || s == dnnl_invalid_arguments)
        return accel_fail(ACCEL_ENOSUP, "oneDNN has no such kernel");
    return accel_fail(ACCEL_EDEVICE, "oneDNN failed with status %d", (int)s);
}

/* ------------------------------------------------------------------ engine */

struct accel_dn {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
};

enum accel_err accel_dn_open(struct accel_dn **out)
{
    *out = NULL;
    pthread_once(&opened, open_library);
    if (!is_there)
        return ACCEL_OK;
    if (set_threads) /* kernels are made for as many */
        set_threads(accel_threads_get());
    struct accel_dn *dn = accel_calloc(1, sizeof *dn);
    if (!dn)
        return accel_fail_nomem();
    enum accel_err err = check(lib.engine_create(&dn->engine, dnnl_cpu, 0));
    if (!err)
        err = check(lib.stream_create(&dn->stream, dn->engine, dnnl_stream_default_flags));
    if (err) {
        accel_dn_close(dn);
        return err;
    }
    *out = dn;
    return ACCEL_OK;
}

void accel_dn_close(struct accel_dn *dn)
{
    if (!dn)
        return;
    if (dn->stream)
        lib.stream_destroy(dn->stream);
    if (dn->engine)
        lib.engine_destroy(dn->engine);
    accel_free(dn);
}

const char *accel_dn_version(void)
{
    static char text[32];
    const dnnl_version_t *v = lib.version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}

bool accel_dn_multiplies_bytes(void)
{
    return (lib.get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_vnni) ==
           dnnl_cpu_isa_avx512_core_vnni;
}

/* ------------------------------------------------------------------ formats */

enum accel_err accel_dn_format_strided(struct accel_dn_format *f, int rank, const int64_t *dim,
                                       const int64_t *stride)
{
    memset(f, 0, sizeof *f);
    if (rank < 1 || rank > ACCEL_DN_MAX_RANK)
        return accel_fail(ACCEL_ENOSUP, "oneDNN takes no rank %d", rank);
    return check(
        lib.memory_desc_init_by_strides((dnnl_memory_desc_t *)f->at, rank, dim, dnnl_f32, stride));
}

enum accel_err accel_dn_format_plain(struct accel_dn_format *f, int rank, const int64_t *dim)
{
    return accel_dn_format_strided(f, rank, dim, NULL);
}

enum accel_err accel_dn_format_any(struct accel_dn_format *f, int rank, const int64_t *dim)
{
    ACCEL_TRY(accel_dn_format_plain(f, rank, dim));
    dnnl_memory_desc_t *m = (dnnl_memory_desc_t *)f->at;
    memset(&m->format_desc, 0, sizeof m->format_desc);
    m->format_kind = dnnl_format_kind_any;
    return ACCEL_OK;
}

enum accel_err accel_dn_format_any_like(struct accel_dn_format *f, int rank, const int64_t *dim,
                                        const struct accel_dn_format *of)
{
    ACCEL_TRY(accel_dn_format_any(f, rank, dim));
    ((dnnl_memory_desc_t *)f->at)->data_type = md(of)->data_type;
    return ACCEL_OK;
}

enum accel_err accel_dn_format_row_major(struct accel_dn_format *f,
                                         const struct accel_dn_format *of)
{
    ACCEL_TRY(accel_dn_format_plain(f, md(of)->ndims, md(of)->dims));
    ((dnnl_memory_desc_t *)f->at)->data_type = md(of)->data_type;
    return ACCEL_OK;
}

void accel_dn_format_retype(struct accel_dn_format *f, enum accel_dn_type type)
{
    static const dnnl_data_type_t types[] = {
        [ACCEL_DN_F32] = dnnl_f32, [ACCEL_DN_BF16] = dnnl_bf16, [ACCEL_DN_S32] = dnnl_s32,
        [ACCEL_DN_S8] = dnnl_s8,   [ACCEL_DN_U8] = dnnl_u8,
    };
    ((dnnl_memory_desc_t *)f->at)->data_type = types[type];
}

bool accel_dn_format_equal(const struct accel_dn_format *a, const struct accel_dn_format *b)
{
    return lib.memory_desc_equal(md(a), md(b)) != 0;
}

size_t accel_dn_format_size(const struct accel_dn_format *f)
{
    return lib.memory_desc_get_size(md(f));
}

/* ------------------------------------------------------------------ kernels */

struct accel_dn_kernel {
    struct accel_dn *dn;
    dnnl_primitive_desc_t pd;
    dnnl_primitive_t primitive;
    int n_in;
    int role[ACCEL_DN_MAX_IN + 2];             /* DNNL_ARG_… of the inputs, output, scratch */
    dnnl_memory_t memory[ACCEL_DN_MAX_IN + 2]; /* in that order */
    struct accel_dn_format *format;            /* [n_in + 1] in, out */
    size_t workspace;
    bool plain;
};

static const dnnl_alg_kind_t algos[ACCEL_DN_N_ALGOS] = {
    [ACCEL_DN_RELU] = dnnl_eltwise_relu,
    [ACCEL_DN_CLIP] = dnnl_eltwise_clip,
    [ACCEL_DN_LOGISTIC] = dnnl_eltwise_logistic,
    [ACCEL_DN_TANH] = dnnl_eltwise_tanh,
    [ACCEL_DN_ELU] = dnnl_eltwise_elu,
    [ACCEL_DN_GELU_ERF] = dnnl_eltwise_gelu_erf,
    [ACCEL_DN_GELU_TANH] = dnnl_eltwise_gelu_tanh,
    [ACCEL_DN_HARDSWISH] = dnnl_eltwise_hardswish,
    [ACCEL_DN_SWISH] = dnnl_eltwise_swish,
    [ACCEL_DN_MISH] = dnnl_eltwise_mish,
    [ACCEL_DN_SOFT_RELU] = dnnl_eltwise_soft_relu,
    [ACCEL_DN_LOG] = dnnl_eltwise_log,
    [ACCEL_DN_SQRT] = dnnl_eltwise_sqrt,
    [ACCEL_DN_ABS] = dnnl_eltwise_abs,
    [ACCEL_DN_LINEAR] = dnnl_eltwise_linear,
    [ACCEL_DN_ADD] = dnnl_binary_add,
    [ACCEL_DN_SUB] = dnnl_binary_sub,
    [ACCEL_DN_MUL] = dnnl_binary_mul,
    [ACCEL_DN_DIV] = dnnl_binary_div,
    [ACCEL_DN_MAX] = dnnl_binary_max,
    [ACCEL_DN_MIN] = dnnl_binary_min,
    [ACCEL_DN_POOL_MAX] = dnnl_pooling_max,
    [ACCEL_DN_POOL_AVERAGE] = dnnl_pooling_avg_exclude_padding,
    [ACCEL_DN_POOL_AVERAGE_PADDED] = dnnl_pooling_avg_include_padding,
    [ACCEL_DN_REDUCE_SUM] = dnnl_reduction_sum,
    [ACCEL_DN_REDUCE_MEAN] = dnnl_reduction_mean,
    [ACCEL_DN_SOFTMAX] = dnnl_softmax_accurate,
    [ACCEL_DN_LOG_SOFTMAX] = dnnl_softmax_log,
};

static const int roles[][3] = {
    [ACCEL_DN_CONV] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS},
    [ACCEL_DN_DECONV] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS},
    [ACCEL_DN_MATMUL] = {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_BIAS},
    [ACCEL_DN_POOL] = {DNNL_ARG_SRC},
    [ACCEL_DN_ELTWISE] = {DNNL_ARG_SRC},
    [ACCEL_DN_BINARY] = {DNNL_ARG_SRC_0, DNNL_ARG_SRC_1},
    [ACCEL_DN_REDUCE] = {DNNL_ARG_SRC},
    [ACCEL_DN_SOFTMAXES] = {DNNL_ARG_SRC},
    [ACCEL_DN_LAYER_NORM] = {DNNL_ARG_SRC, DNNL_ARG_SCALE, DNNL_ARG_SHIFT},
    [ACCEL_DN_CONCAT] = {DNNL_ARG_MULTIPLE_SRC},
    [ACCEL_DN_REORDER] = {DNNL_ARG_FROM},
};

static void set_roles(struct accel_dn_kernel *k, const struct accel_dn_spec *s)
{
    for (int i = 0; i < s->n_own; i++)
        k->role[i] =
            s->kind == ACCEL_DN_CONCAT ? DNNL_ARG_MULTIPLE_SRC + i : roles[s->kind][i < 3 ? i : 2];
    for (int i = 0; i < s->n_post; i++)
        if (s->post[i].in >= 0)
            k->role[s->post[i].in] = DNNL_ARG_ATTR_MULTIPLE_POST_OP(i) | DNNL_ARG_SRC_1;
    if (s->zero_at)
        k->role[s->zero_at] = DNNL_ARG_ATTR_ZERO_POINTS | DNNL_ARG_SRC;
    k->role[k->n_in] = DNNL_ARG_DST;
    k->role[k->n_in + 1] = DNNL_ARG_SCRATCHPAD;
}

/* Scales and zero points of integers. */
static dnnl_status_t set_integers(dnnl_primitive_attr_t attr, const struct accel_dn_spec *s)
{
    static const int32_t at_run_time = DNNL_RUNTIME_S32_VAL;
    int from = s->kind == ACCEL_DN_REORDER ? DNNL_ARG_FROM : DNNL_ARG_SRC;
    dnnl_status_t st = dnnl_success;
    if (s->scale)
        st = lib.primitive_attr_set_output_scales(
            attr, s->n_scale, s->n_scale > 1 ? 1 << s->scale_axis : 0, s->scale);
    if (!st && s->zero_at)
        st = lib.primitive_attr_set_zero_points(attr, from, 1, 0, &at_run_time);
    else if (!st && s->zero_in)
        st = lib.primitive_attr_set_zero_points(attr, from, 1, 0, &s->zero_in);
    if (!st && s->zero_out)
        st = lib.primitive_attr_set_zero_points(attr, DNNL_ARG_DST, 1, 0, &s->zero_out);
    return st;
}

static enum accel_err make_attr(dnnl_primitive_attr_t *attr, const struct accel_dn_spec *s)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t st = lib.primitive_attr_create(attr);
    if (!st)
        st = lib.primitive_attr_set_scratchpad_mode(*attr, dnnl_scratchpad_mode_user);
    if (!st)
        st = set_integers(*attr, s);
    if (!st)
        st = lib.post_ops_create(&ops);
    for (int i = 0; !st && i < s->n_post; i++) {
        const struct accel_dn_post *p = &s->post[i];
        st = p->in < 0 ? lib.post_ops_append_eltwise(ops, 1, algos[p->algo], p->alpha, p->beta)
                       : lib.post_ops_append_binary(ops, algos[p->algo], md(s->in[p->in]));
    }
    if (!st)
        st = lib.primitive_attr_set_post_ops(*attr, ops);
    if (ops)
        lib.post_ops_destroy(ops);
    return check(st);
}

/* Any of the library's operation descriptors. */
union op_desc {
    dnnl_convolution_desc_t conv;
    dnnl_deconvolution_desc_t deconv;
    dnnl_matmul_desc_t matmul;
    dnnl_pooling_v2_desc_t pool;
    dnnl_eltwise_desc_t eltwise;
    dnnl_binary_desc_t binary;
    dnnl_reduction_desc_t reduce;
    dnnl_softmax_v2_desc_t softmax;
    dnnl_layer_normalization_desc_t layer;
};

static dnnl_status_t init_window(union op_desc *d, const struct accel_dn_spec *s,
                                 const int64_t *apart)
{
    const dnnl_memory_desc_t *bias = s->n_own > 2 ? md(s->in[2]) : NULL;
    const dnnl_prop_kind_t prop = dnnl_forward_inference;
    if (s->kind == ACCEL_DN_CONV)
        return lib.dilated_convolution_forward_desc_init(
            &d->conv, prop, s->winograd ? dnnl_convolution_winograd : dnnl_convolution_direct,
            md(s->in[0]), md(s->in[1]), bias, md(s->out), s->stride, apart, s->begin, s->end);
    if (s->kind == ACCEL_DN_DECONV)
        return lib.dilated_deconvolution_forward_desc_init(
            &d->deconv, prop, dnnl_deconvolution_direct, md(s->in[0]), md(s->in[1]), bias,
            md(s->out), s->stride, apart, s->begin, s->end);
    return lib.pooling_v2_forward_desc_init(&d->pool, prop, algos[s->algo], md(s->in[0]),
                                            md(s->out), s->stride, s->taps, apart, s->begin,
                                            s->end);
}

static dnnl_status_t init_op(union op_desc *d, const struct accel_dn_spec *s)
{
    const dnnl_prop_kind_t prop = dnnl_forward_inference;
    int64_t apart[ACCEL_DN_MAX_RANK] = {0}; /* the library counts the elements between taps */
    for (int i = 0; i < s->n_axes; i++)
        apart[i] = s->dilation[i] - 1;
    switch (s->kind) {
    case ACCEL_DN_CONV:
    case ACCEL_DN_DECONV:
    case ACCEL_DN_POOL:
        return init_window(d, s, apart);
    case ACCEL_DN_MATMUL:
        return lib.matmul_desc_init(&d->matmul, md(s->in[0]), md(s->in[1]),
                                    s->n_own > 2 ? md(s->in[2]) : NULL, md(s->out));
    case ACCEL_DN_ELTWISE:
        return lib.eltwise_forward_desc_init(&d->eltwise, prop, algos[s->algo], md(s->in[0]),
                                             s->alpha, s->beta);
    case ACCEL_DN_BINARY:
        return lib.binary_desc_init(&d->binary, algos[s->algo], md(s->in[0]), md(s->in[1]),
                                    md(s->out));
    case ACCEL_DN_REDUCE:
        return lib.reduction_desc_init(&d->reduce, algos[s->algo], md(s->in[0]), md(s->out), 0, 0);
    case ACCEL_DN_SOFTMAXES:
        return lib.softmax_v2_forward_desc_init(&d->softmax, prop, algos[s->algo], md(s->in[0]),
                                                md(s->out), s->axis);
    case ACCEL_DN_LAYER_NORM:
        return lib.layer_normalization_forward_desc_init(&d->layer, prop, md(s->in[0]), NULL,
                                                         s->alpha, dnnl_use_scale | dnnl_use_shift);
    case ACCEL_DN_CONCAT:
    case ACCEL_DN_REORDER:
        break;
    }
    return dnnl_invalid_arguments;
}

static enum accel_err make_concat(struct accel_dn_kernel *k, const struct accel_dn_spec *s,
                                  dnnl_primitive_attr_t attr)
{
    dnnl_memory_desc_t *in = accel_calloc((size_t)s->n_in, sizeof *in);
    if (!in)
        return accel_fail_nomem();
    for (int i = 0; i < s->n_in; i++)
        in[i] = *md(s->in[i]);
    dnnl_status_t st = lib.concat_primitive_desc_create(&k->pd, md(s->out), s->n_in, s->axis, in,
                                                        attr, k->dn->engine);
    accel_free(in);
    return check(st);
}

/* The library's implementation number s->nth. */
static enum accel_err make_nth(struct accel_dn_kernel *k, const struct accel_dn_spec *s,
                               const union op_desc *d, dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_iterator_t it;
    ACCEL_TRY(check(lib.primitive_desc_iterator_create(&it, d, attr, k->dn->engine, NULL)));
    dnnl_status_t st = dnnl_success;
    for (int i = 0; !st && i < s->nth; i++)
        st = lib.primitive_desc_iterator_next(it);
    k->pd = st ? NULL : lib.primitive_desc_iterator_fetch(it);
    lib.primitive_desc_iterator_destroy(it);
    if (st == dnnl_iterator_ends)
        return accel_fail(ACCEL_ENOSUP, "oneDNN has no other kernel");
    return st ? check(st) : k->pd ? ACCEL_OK : accel_fail_nomem();
}

static enum accel_err make_desc(struct accel_dn_kernel *k, const struct accel_dn_spec *s)
{
    dnnl_primitive_attr_t attr = NULL;
    union op_desc d;
    enum accel_err err;
    ACCEL_GOTO(err, make_attr(&attr, s));
    if (s->kind == ACCEL_DN_CONCAT)
        ACCEL_GOTO(err, make_concat(k, s, attr));
    else if (s->kind == ACCEL_DN_REORDER)
        ACCEL_GOTO(err, check(lib.reorder_primitive_desc_create(&k->pd, md(s->in[0]), k->dn->engine,
                                                                md(s->out), k->dn->engine, attr)));
    else {
        ACCEL_GOTO(err, check(init_op(&d, s)));
        ACCEL_GOTO(err, make_nth(k, s, &d, attr));
    }
done:
    if (attr)
        lib.primitive_attr_destroy(attr);
    return err;
}

static const dnnl_memory_desc_t *format_of(const struct accel_dn_kernel *k, int role)
{
    return lib.primitive_desc_query_md(k->pd, dnnl_query_exec_arg_md, role);
}

static enum accel_err read_formats(struct accel_dn_kernel *k, const struct accel_dn_spec *spec)
{
    const char *how = "";
    k->format = accel_calloc((size_t)k->n_in + 1, sizeof *k->format);
    if (!k->format)
        return accel_fail_nomem();
    for (int i = 0; i <= k->n_in; i++) {
        const dnnl_memory_desc_t *m =
            k->role[i] & DNNL_ARG_ATTR_ZERO_POINTS ? md(spec->in[i]) : format_of(k, k->role[i]);
        bool weights = k->role[i] == DNNL_ARG_WEIGHTS; /* Winograd's lie in a way of their own */
        if (!m || m->ndims == 0 || (m->format_kind != dnnl_blocked && !weights))
            return accel_fail(ACCEL_ENOSUP, "oneDNN says nothing about argument %d", i);
        memcpy(k->format[i].at, m, sizeof *m);
    }
    const dnnl_memory_desc_t *scratch = format_of(k, DNNL_ARG_SCRATCHPAD);
    k->workspace = scratch ? lib.memory_desc_get_size(scratch) : 0;
    ACCEL_TRY(check(lib.primitive_desc_query(k->pd, dnnl_query_impl_info_str, 0, (void *)&how)));
    k->plain = strstr(how, "ref") != NULL && strstr(how, "gemm") == NULL;
    return ACCEL_OK;
}

enum accel_err accel_dn_kernel_new(struct accel_dn_kernel **out, struct accel_dn *dn,
                                   const struct accel_dn_spec *spec)
{
    struct accel_dn_kernel *k = accel_calloc(1, sizeof *k);
    *out = NULL;
    if (!k)
        return accel_fail_nomem();
    k->dn = dn;
    k->n_in = spec->n_in;
    set_roles(k, spec);
    enum accel_err err = make_desc(k, spec);
    if (!err)
        err = read_formats(k, spec);
    if (err) {
        accel_dn_kernel_free(k);
        return err;
    }
    *out = k;
    return ACCEL_OK;
}

void accel_dn_kernel_free(struct accel_dn_kernel *k)
{
    if (!k)
        return;
    for (int i = 0; i < ACCEL_DN_MAX_IN + 2; i++)
        if (k->memory[i])
            lib.memory_destroy(k->memory[i]);
    if (k->primitive)
        lib.primitive_destroy(k->primitive);
    if (k->pd)
        lib.primitive_desc_destroy(k->pd);
    accel_free(k->format);
    accel_free(k);
}

bool accel_dn_kernel_is_plain(const struct accel_dn_kernel *k)
{
    return k->plain;
}

const struct accel_dn_format *accel_dn_kernel_in(const struct accel_dn_kernel *k, int i)
{
    return &k->format[i];
}

const struct accel_dn_format *accel_dn_kernel_out(const struct accel_dn_kernel *k)
{
    return &k->format[k->n_in];
}

size_t accel_dn_kernel_workspace(const struct accel_dn_kernel *k)
{
    return k->workspace;
}

enum accel_err accel_dn_kernel_ready(struct accel_dn_kernel *k)
{
    ACCEL_TRY(check(lib.primitive_create(&k->primitive, k->pd)));
    for (int i = 0; i < k->n_in + 2; i++) {
        const dnnl_memory_desc_t *m =
            i <= k->n_in ? md(&k->format[i]) : format_of(k, DNNL_ARG_SCRATCHPAD);
        if (i > k->n_in && k->workspace == 0)
            break;
        ACCEL_TRY(check(lib.memory_create(&k->memory[i], m, k->dn->engine, DNNL_MEMORY_NONE)));
    }
    return ACCEL_OK;
}

enum accel_err accel_dn_kernel_run(struct accel_dn_kernel *k, const void *const *in, void *out,
                                   void *workspace)
{
    dnnl_exec_arg_t arg[ACCEL_DN_MAX_IN + 2];
    int n = k->n_in + 1 + (k->workspace > 0);
    for (int i = 0; i < n; i++) {
        void *at = i < k->n_in ? (void *)(uintptr_t)in[i] : i == k->n_in ? out : workspace;
        ACCEL_TRY(check(lib.memory_set_data_handle(k->memory[i], at)));
        arg[i] = (dnnl_exec_arg_t){k->role[i], k->memory[i]};
    }
    ACCEL_TRY(check(lib.primitive_execute(k->primitive, k->dn->stream, n, arg)));
    return check(lib.stream_wait(k->dn->stream));
}
