/* new_draft.c - layers with fresh weights, appended to a model in memory.
 *
 * Names, attributes and their order are those of PyTorch's exporter, so that
 * configs, scripts and module paths written for exported files work on these
 * networks too. Weights are drawn by the rule in draft->init. The numbers come
 * from one stream in the order of the layers, so a seed and a name determine the
 * file; normal ones are made without a transcendental function, whose last bit
 * differs between machines. */
#include "tools/new_draft.h"

#include "base/str.h"
#include "graph/attr.h"
#include "ops/ops.h"

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Sum of twelve 16-bit uniforms and one finer one, less its mean: variance 1 to 1e-4, |z| <= 6. */
static double draw_normal(struct accel_rng *rng)
{
    uint64_t sum = 0;
    for (int i = 0; i < 3; i++)
        for (uint64_t bits = accel_rng_next(rng), k = 0; k < 4; k++, bits >>= 16)
            sum += bits & 0xffff;
    return ((double)sum + accel_rng_uniform(rng) - 6.0 * 65535 - 0.5) / 65536;
}

static void fill_run(struct accel_draft *draft, void *data, int64_t n, struct accel_fill fill)
{
    for (int64_t i = 0; i < n; i++) {
        double v = fill.value;
        if (fill.bound > 0)
            v = (2 * accel_rng_uniform(&draft->rng) - 1) * fill.bound;
        else if (fill.sd > 0)
            v = draw_normal(&draft->rng) * fill.sd;
        if (draft->dtype == ACCEL_F64)
            ((double *)data)[i] = v;
        else
            ((float *)data)[i] = (float)v;
    }
}

static struct accel_fill fresh_weight(const struct accel_draft *draft, int64_t fan_in)
{
    switch (draft->init) {
    case ACCEL_INIT_KAIMING:
        return (struct accel_fill){.sd = sqrt(2 / (double)fan_in)};
    case ACCEL_INIT_NORMAL:
        return (struct accel_fill){.sd = draft->sd};
    case ACCEL_INIT_TORCH:
        break;
    }
    return (struct accel_fill){.bound = 1 / sqrt((double)fan_in)};
}

static struct accel_fill fresh_bias(const struct accel_draft *draft, int64_t fan_in)
{
    return draft->init == ACCEL_INIT_TORCH ? fresh_weight(draft, fan_in) : (struct accel_fill){0};
}

const char *accel_draft_name(struct accel_draft *draft, const char *fmt, ...)
{
    char text[128]; /* our own module names: short */
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return n < 0 || (size_t)n >= sizeof text
               ? NULL
               : accel_arena_strndup(&draft->m->arena, text, (size_t)n);
}

enum accel_err accel_draft_constant(struct accel_value **out, void **data,
                                    struct accel_draft *draft, const char *name,
                                    enum accel_dtype dtype, int rank, const int64_t *dim)
{
    if (!name)
        return accel_fail_nomem();
    struct accel_arena *arena = &draft->m->arena;
    ACCEL_TRY(accel_value_new(out, draft->m->graph, name));
    struct accel_tensor *t = ACCEL_NEW(arena, struct accel_tensor, 1);
    int64_t *own_dim = ACCEL_NEW(arena, int64_t, rank);
    struct accel_dim *shape = ACCEL_NEW(arena, struct accel_dim, rank);
    if (!t || !own_dim || !shape)
        return accel_fail_nomem();
    t->n = 1;
    for (int i = 0; i < rank; i++) {
        own_dim[i] = dim[i];
        shape[i] = accel_dim_of(dim[i]);
        if (__builtin_mul_overflow(t->n, (uint64_t)dim[i], &t->n))
            return accel_fail(ACCEL_EARG, "weight '%s' is too large", name);
    }
    if (!accel_dtype_size(dtype, t->n, &t->size))
        return accel_fail(ACCEL_EARG, "weight '%s' is too large", name);
    *data = accel_arena_new(arena, t->size, 1);
    if (!*data)
        return accel_fail_nomem();
    t->name = (*out)->name;
    t->dtype = dtype;
    t->rank = rank;
    t->dim = own_dim;
    t->data = *data;
    (*out)->dtype = dtype;
    (*out)->is_tensor = true;
    (*out)->shape = (struct accel_shape){rank, shape};
    (*out)->tensor = t;
    return accel_model_add_tensor(draft->m, t);
}

enum accel_err accel_draft_weight(struct accel_value **out, struct accel_draft *draft,
                                  const char *module, const char *what, int rank,
                                  const int64_t *dim, struct accel_fill fill)
{
    void *data;
    if (!module)
        return accel_fail_nomem();
    ACCEL_TRY(accel_draft_constant(out, &data, draft,
                                   accel_draft_name(draft, "%s.%s", module, what), draft->dtype,
                                   rank, dim));
    fill_run(draft, data, (int64_t)(*out)->tensor->n, fill);
    return ACCEL_OK;
}

/* "stage1.0.conv1" becomes "/stage1/stage1.0/conv1": a number is shown with its
 * container. */
static void add_scope(struct accel_str *s, const char *module)
{
    const char *shown = module;
    for (const char *part = module; *part;) {
        size_t n = strcspn(part, ".");
        if (!isdigit((unsigned char)*part))
            shown = part;
        accel_str_add(s, "/");
        accel_str_addn(s, shown, (size_t)(part + n - shown));
        part += n + (part[n] == '.');
    }
}

/* The node's name, "…/Relu" or "…/Relu_1" when that is taken, and its output's.
 * A node is known by its output. */
static enum accel_err add_output(struct accel_value **out, struct accel_str *name,
                                 struct accel_draft *draft, const char *module, const char *op_type)
{
    struct accel_graph *g = draft->m->graph;
    struct accel_str full = {0};
    for (int i = 0;; i++) {
        accel_str_clear(name);
        accel_str_clear(&full);
        add_scope(name, module);
        accel_str_addf(name, i ? "/%s_%d" : "/%s", op_type, i);
        accel_str_addf(&full, "%s_output_0", accel_str_get(name));
        if (name->failed || full.failed || !accel_value_find(g, accel_str_get(&full)))
            break;
    }
    enum accel_err err =
        name->failed || full.failed
            ? accel_fail_nomem()
            : accel_value_new(out, g, draft->output ? draft->output : accel_str_get(&full));
    accel_str_clear(&full);
    return err;
}

enum accel_err accel_draft_node(struct accel_node **out, struct accel_draft *draft,
                                const char *module, const char *op_type,
                                struct accel_value *const *in, int n_in)
{
    if (!module)
        return accel_fail_nomem();
    struct accel_str name = {0};
    struct accel_value *y = NULL;
    enum accel_err err;
    ACCEL_GOTO(err, add_output(&y, &name, draft, module, op_type));
    y->is_tensor = true;
    ACCEL_GOTO(err, accel_node_new(out, draft->m->graph, accel_op_find(op_type, ""), op_type, "",
                                   accel_str_get(&name), in, n_in, &y, 1));
    draft->at = y;
done:
    accel_str_clear(&name);
    return err;
}

/* Input or output: [N, dim…], declared. */
static enum accel_err declare(struct accel_draft *draft, struct accel_value *v,
                              enum accel_dtype dtype, int rank, const int64_t *dim)
{
    struct accel_dim *d = ACCEL_NEW(&draft->m->arena, struct accel_dim, rank + 1);
    if (!d)
        return accel_fail_nomem();
    ACCEL_TRY(accel_dim_named(&d[0], &draft->m->symbols, "N"));
    for (int i = 0; i < rank; i++)
        if (dim[i] == ACCEL_DRAFT_T)
            ACCEL_TRY(accel_dim_named(&d[i + 1], &draft->m->symbols, "T"));
        else
            d[i + 1] = accel_dim_of(dim[i]);
    v->is_tensor = true;
    v->dtype = v->declared_dtype = dtype;
    v->shape = v->declared = (struct accel_shape){rank + 1, d};
    return ACCEL_OK;
}

static enum accel_err list_one(struct accel_value ***list, size_t *n, struct accel_draft *draft,
                               struct accel_value *v)
{
    *list = ACCEL_NEW(&draft->m->arena, struct accel_value *, 1);
    if (!*list)
        return accel_fail_nomem();
    (*list)[0] = v;
    *n = 1;
    return ACCEL_OK;
}

static enum accel_err begin(struct accel_draft *draft, const char *name, enum accel_dtype dtype,
                            int rank, const int64_t *dim)
{
    struct accel_graph *g = draft->m->graph;
    ACCEL_TRY(accel_value_new(&draft->at, g, name));
    draft->at->is_input = true;
    ACCEL_TRY(declare(draft, draft->at, dtype, rank, dim));
    return list_one(&g->input, &g->n_input, draft, draft->at);
}

enum accel_err accel_draft_input(struct accel_draft *draft, const char *name, int rank,
                                 const int64_t *dim)
{
    return begin(draft, name, draft->dtype, rank, dim);
}

enum accel_err accel_draft_tokens(struct accel_draft *draft, const char *name)
{
    int64_t t = ACCEL_DRAFT_T;
    return begin(draft, name, ACCEL_I64, 1, &t);
}

enum accel_err accel_draft_end(struct accel_draft *draft, int rank, const int64_t *dim)
{
    struct accel_graph *g = draft->m->graph;
    draft->at->is_output = true;
    ACCEL_TRY(declare(draft, draft->at, draft->dtype, rank, dim));
    return list_one(&g->output, &g->n_output, draft, draft->at);
}

enum accel_err accel_draft_finish(struct accel_draft *draft, int64_t dim)
{
    return accel_draft_end(draft, 1, &dim);
}

/* The attributes of Conv and ConvTranspose. */
static enum accel_err set_window(struct accel_node *n, int64_t group, int64_t size, int64_t stride,
                                 int64_t pad)
{
    ACCEL_TRY(accel_attr_set_ints(n, "dilations", (int64_t[]){1, 1}, 2));
    ACCEL_TRY(accel_attr_set_int(n, "group", group));
    ACCEL_TRY(accel_attr_set_ints(n, "kernel_shape", (int64_t[]){size, size}, 2));
    ACCEL_TRY(accel_attr_set_ints(n, "pads", (int64_t[]){pad, pad, pad, pad}, 4));
    return accel_attr_set_ints(n, "strides", (int64_t[]){stride, stride}, 2);
}

enum accel_err accel_draft_conv(struct accel_draft *draft, const char *module,
                                struct accel_draft_conv c)
{
    int64_t group = c.group ? c.group : 1, fan_in = c.in / group * c.size * c.size;
    int64_t dim[4] = {c.out, c.in / group, c.size, c.size};
    struct accel_value *in[3] = {draft->at, NULL, NULL};
    struct accel_node *n;
    ACCEL_TRY(
        accel_draft_weight(&in[1], draft, module, "weight", 4, dim, fresh_weight(draft, fan_in)));
    if (c.bias)
        ACCEL_TRY(
            accel_draft_weight(&in[2], draft, module, "bias", 1, dim, fresh_bias(draft, fan_in)));
    ACCEL_TRY(accel_draft_node(&n, draft, module, "Conv", in, c.bias ? 3 : 2));
    return set_window(n, group, c.size, c.stride, c.size / 2);
}

enum accel_err accel_draft_up(struct accel_draft *draft, const char *module, int64_t in,
                              int64_t out)
{
    int64_t dim[4] = {in, out, 2, 2};
    struct accel_value *x[3] = {draft->at, NULL, NULL};
    struct accel_node *n;
    ACCEL_TRY(accel_draft_weight(&x[1], draft, module, "weight", 4, dim, fresh_weight(draft, in)));
    if (draft->bias)
        ACCEL_TRY(accel_draft_weight(&x[2], draft, module, "bias", 1, &out, fresh_bias(draft, in)));
    ACCEL_TRY(accel_draft_node(&n, draft, module, "ConvTranspose", x, draft->bias ? 3 : 2));
    return set_window(n, 1, 2, 2, 0);
}

enum accel_err accel_draft_norm(struct accel_draft *draft, const char *module, int64_t channels)
{
    static const char *const what[] = {"weight", "bias", "running_mean", "running_var"};
    struct accel_value *in[5] = {draft->at};
    struct accel_node *n;
    for (int i = 0; i < 4; i++)
        ACCEL_TRY(accel_draft_weight(&in[i + 1], draft, module, what[i], 1, &channels,
                                     (struct accel_fill){.value = i == 0 || i == 3}));
    ACCEL_TRY(accel_draft_node(&n, draft, module, "BatchNormalization", in, 5));
    ACCEL_TRY(accel_attr_set_float(n, "epsilon", 1e-5f));
    ACCEL_TRY(accel_attr_set_float(n, "momentum", 0.9f));
    return accel_attr_set_int(n, "training_mode", 0);
}

enum accel_err accel_draft_gemm(struct accel_draft *draft, const char *module, int64_t in,
                                int64_t out)
{
    int64_t dim[2] = {out, in};
    struct accel_value *x[3] = {draft->at, NULL, NULL};
    struct accel_node *n;
    ACCEL_TRY(accel_draft_weight(&x[1], draft, module, "weight", 2, dim, fresh_weight(draft, in)));
    if (draft->bias)
        ACCEL_TRY(accel_draft_weight(&x[2], draft, module, "bias", 1, dim, fresh_bias(draft, in)));
    ACCEL_TRY(accel_draft_node(&n, draft, module, "Gemm", x, draft->bias ? 3 : 2));
    ACCEL_TRY(accel_attr_set_float(n, "alpha", 1));
    ACCEL_TRY(accel_attr_set_float(n, "beta", 1));
    return accel_attr_set_int(n, "transB", 1);
}

enum accel_err accel_draft_dense(struct accel_draft *draft, const char *module, int64_t in,
                                 int64_t out)
{
    int64_t dim[2] = {in, out};
    struct accel_value *x[2] = {draft->at, NULL}, *b[2];
    struct accel_node *n;
    ACCEL_TRY(accel_draft_weight(&x[1], draft, module, "weight", 2, dim, fresh_weight(draft, in)));
    ACCEL_TRY(accel_draft_node(&n, draft, module, "MatMul", x, 2));
    if (!draft->bias)
        return ACCEL_OK;
    ACCEL_TRY(accel_draft_weight(&b[0], draft, module, "bias", 1, &out, fresh_bias(draft, in)));
    b[1] = draft->at;
    return accel_draft_node(&n, draft, module, "Add", b, 2);
}

enum accel_err accel_draft_pool(struct accel_draft *draft, const char *module, const char *op_type,
                                int64_t size, int64_t stride, int64_t pad)
{
    struct accel_node *n;
    ACCEL_TRY(accel_draft_node(&n, draft, module, op_type, &draft->at, 1));
    ACCEL_TRY(accel_attr_set_int(n, "ceil_mode", 0));
    if (!strcmp(op_type, "MaxPool"))
        ACCEL_TRY(accel_attr_set_ints(n, "dilations", (int64_t[]){1, 1}, 2));
    else
        ACCEL_TRY(accel_attr_set_int(n, "count_include_pad", 1));
    ACCEL_TRY(accel_attr_set_ints(n, "kernel_shape", (int64_t[]){size, size}, 2));
    ACCEL_TRY(accel_attr_set_ints(n, "pads", (int64_t[]){pad, pad, pad, pad}, 4));
    return accel_attr_set_ints(n, "strides", (int64_t[]){stride, stride}, 2);
}

enum accel_err accel_draft_max_pool(struct accel_draft *draft)
{
    return accel_draft_pool(draft, "", "MaxPool", 2, 2, 0);
}

enum accel_err accel_draft_plain(struct accel_draft *draft, const char *module, const char *op_type,
                                 struct accel_value *other)
{
    struct accel_value *in[2] = {draft->at, other};
    struct accel_node *n;
    return accel_draft_node(&n, draft, module, op_type, in, other ? 2 : 1);
}

enum accel_err accel_draft_flatten(struct accel_draft *draft)
{
    struct accel_node *n;
    ACCEL_TRY(accel_draft_node(&n, draft, "", "Flatten", &draft->at, 1));
    return accel_attr_set_int(n, "axis", 1);
}

/* /SCOPE/Constant_output_0, or the first number that is free. */
static enum accel_err add_small(struct accel_value **out, void **data, struct accel_draft *draft,
                                const char *module, enum accel_dtype dtype, int rank,
                                const int64_t *dim)
{
    struct accel_str name = {0};
    if (!module)
        return accel_fail_nomem();
    for (int i = 0;; i++) {
        accel_str_clear(&name);
        add_scope(&name, module);
        accel_str_addf(&name, i ? "/Constant_%d_output_0" : "/Constant_output_0", i);
        if (name.failed || !accel_value_find(draft->m->graph, accel_str_get(&name)))
            break;
    }
    enum accel_err err = name.failed ? accel_fail_nomem()
                                     : accel_draft_constant(out, data, draft, accel_str_get(&name),
                                                            dtype, rank, dim);
    accel_str_clear(&name);
    return err;
}

enum accel_err accel_draft_ints(struct accel_value **out, struct accel_draft *draft,
                                const char *module, int n, const int64_t *v)
{
    void *data;
    ACCEL_TRY(add_small(out, &data, draft, module, ACCEL_I64, n > 0, (int64_t[]){n}));
    memcpy(data, v, (size_t)(n ? n : 1) * sizeof *v);
    return ACCEL_OK;
}

enum accel_err accel_draft_float(struct accel_value **out, struct accel_draft *draft,
                                 const char *module, double v)
{
    void *data;
    ACCEL_TRY(add_small(out, &data, draft, module, draft->dtype, 0, NULL));
    fill_run(draft, data, 1, (struct accel_fill){.value = v});
    return ACCEL_OK;
}

enum accel_err accel_draft_shape(struct accel_draft *draft, const char *module, int n,
                                 const int64_t *dim)
{
    struct accel_value *in[2] = {draft->at, NULL};
    struct accel_node *node;
    ACCEL_TRY(accel_draft_ints(&in[1], draft, module, n, dim));
    ACCEL_TRY(accel_draft_node(&node, draft, module, "Reshape", in, 2));
    return accel_attr_set_int(node, "allowzero", 0);
}

enum accel_err accel_draft_reshape(struct accel_draft *draft, int64_t columns)
{
    return accel_draft_shape(draft, "", 2, (int64_t[]){-1, columns});
}
