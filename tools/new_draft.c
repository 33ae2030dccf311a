/* new_draft.c - layers with fresh weights, appended to a model in memory.
 *
 * Names, attributes and their order are those of PyTorch's exporter, so that
 * configs, scripts and module paths written for exported files work on these
 * networks too. Weights are drawn as PyTorch's layers draw them,
 * kaiming_uniform with a = sqrt(5): that is uniform in ±1/sqrt(fan in), for
 * weights and biases alike. The numbers come from one stream in the order of
 * the layers, so a seed and a name determine the file. */
#include "tools/new_draft.h"

#include "base/str.h"
#include "graph/attr.h"
#include "ops/ops.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* What a tensor is filled with. */
struct fill {
    double value; /* everywhere, or: */
    double bound; /* > 0: uniform in ±bound */
};

static void fill_run(struct accel_draft *draft, void *data, int64_t n, struct fill fill)
{
    for (int64_t i = 0; i < n; i++) {
        double v =
            fill.bound > 0 ? (2 * accel_rng_uniform(&draft->rng) - 1) * fill.bound : fill.value;
        if (draft->dtype == ACCEL_F64)
            ((double *)data)[i] = v;
        else
            ((float *)data)[i] = (float)v;
    }
}

/* A stored constant of this name; *data is its zeroed payload. */
static enum accel_err add_constant(struct accel_value **out, void **data, struct accel_draft *draft,
                                   const char *name, enum accel_dtype dtype, int rank,
                                   const int64_t *dim)
{
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

/* The weight MODULE.what. */
static enum accel_err add_weight(struct accel_value **out, struct accel_draft *draft,
                                 const char *module, const char *what, int rank, const int64_t *dim,
                                 struct fill fill)
{
    struct accel_str name = {0};
    void *data = NULL;
    accel_str_addf(&name, "%s.%s", module, what);
    enum accel_err err = name.failed ? accel_fail_nomem()
                                     : add_constant(out, &data, draft, accel_str_get(&name),
                                                    draft->dtype, rank, dim);
    accel_str_clear(&name);
    if (!err)
        fill_run(draft, data, (int64_t)(*out)->tensor->n, fill);
    return err;
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

/* Appends a node that reads in[0..n_in) and makes its output the running value.
 */
static enum accel_err add_node(struct accel_node **out, struct accel_draft *draft,
                               const char *module, const char *op_type,
                               struct accel_value *const *in, int n_in)
{
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
static enum accel_err declare(struct accel_draft *draft, struct accel_value *v, int rank,
                              const int64_t *dim)
{
    struct accel_dim *d = ACCEL_NEW(&draft->m->arena, struct accel_dim, rank + 1);
    if (!d)
        return accel_fail_nomem();
    ACCEL_TRY(accel_dim_named(&d[0], &draft->m->symbols, "N"));
    for (int i = 0; i < rank; i++)
        d[i + 1] = accel_dim_of(dim[i]);
    v->is_tensor = true;
    v->dtype = v->declared_dtype = draft->dtype;
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

enum accel_err accel_draft_input(struct accel_draft *draft, const char *name, int rank,
                                 const int64_t *dim)
{
    struct accel_graph *g = draft->m->graph;
    ACCEL_TRY(accel_value_new(&draft->at, g, name));
    draft->at->is_input = true;
    ACCEL_TRY(declare(draft, draft->at, rank, dim));
    return list_one(&g->input, &g->n_input, draft, draft->at);
}

enum accel_err accel_draft_finish(struct accel_draft *draft, int64_t dim)
{
    struct accel_graph *g = draft->m->graph;
    draft->at->is_output = true;
    ACCEL_TRY(declare(draft, draft->at, 1, &dim));
    return list_one(&g->output, &g->n_output, draft, draft->at);
}

enum accel_err accel_draft_conv(struct accel_draft *draft, const char *module,
                                struct accel_draft_conv c)
{
    int64_t dim[4] = {c.out, c.in, c.size, c.size}, one[2] = {1, 1}, pad = c.size / 2;
    struct fill fresh = {0, 1 / sqrt((double)(c.in * c.size * c.size))};
    struct accel_value *in[3] = {draft->at, NULL, NULL};
    struct accel_node *n;
    ACCEL_TRY(add_weight(&in[1], draft, module, "weight", 4, dim, fresh));
    if (c.bias)
        ACCEL_TRY(add_weight(&in[2], draft, module, "bias", 1, dim, fresh));
    ACCEL_TRY(add_node(&n, draft, module, "Conv", in, c.bias ? 3 : 2));
    ACCEL_TRY(accel_attr_set_ints(n, "dilations", one, 2));
    ACCEL_TRY(accel_attr_set_int(n, "group", 1));
    ACCEL_TRY(accel_attr_set_ints(n, "kernel_shape", dim + 2, 2));
    ACCEL_TRY(accel_attr_set_ints(n, "pads", (int64_t[]){pad, pad, pad, pad}, 4));
    return accel_attr_set_ints(n, "strides", (int64_t[]){c.stride, c.stride}, 2);
}

enum accel_err accel_draft_norm(struct accel_draft *draft, const char *module, int64_t channels)
{
    static const char *const what[] = {"weight", "bias", "running_mean", "running_var"};
    struct accel_value *in[5] = {draft->at};
    struct accel_node *n;
    for (int i = 0; i < 4; i++)
        ACCEL_TRY(add_weight(&in[i + 1], draft, module, what[i], 1, &channels,
                             (struct fill){i == 0 || i == 3, 0}));
    ACCEL_TRY(add_node(&n, draft, module, "BatchNormalization", in, 5));
    ACCEL_TRY(accel_attr_set_float(n, "epsilon", 1e-5f));
    ACCEL_TRY(accel_attr_set_float(n, "momentum", 0.9f));
    return accel_attr_set_int(n, "training_mode", 0);
}

enum accel_err accel_draft_gemm(struct accel_draft *draft, const char *module, int64_t in,
                                int64_t out)
{
    int64_t dim[2] = {out, in};
    struct fill fresh = {0, 1 / sqrt((double)in)};
    struct accel_value *x[3] = {draft->at, NULL, NULL};
    struct accel_node *n;
    ACCEL_TRY(add_weight(&x[1], draft, module, "weight", 2, dim, fresh));
    if (draft->bias)
        ACCEL_TRY(add_weight(&x[2], draft, module, "bias", 1, dim, fresh));
    ACCEL_TRY(add_node(&n, draft, module, "Gemm", x, draft->bias ? 3 : 2));
    ACCEL_TRY(accel_attr_set_float(n, "alpha", 1));
    ACCEL_TRY(accel_attr_set_float(n, "beta", 1));
    return accel_attr_set_int(n, "transB", 1);
}

enum accel_err accel_draft_max_pool(struct accel_draft *draft)
{
    struct accel_node *n;
    ACCEL_TRY(add_node(&n, draft, "", "MaxPool", &draft->at, 1));
    ACCEL_TRY(accel_attr_set_int(n, "ceil_mode", 0));
    ACCEL_TRY(accel_attr_set_ints(n, "dilations", (int64_t[]){1, 1}, 2));
    ACCEL_TRY(accel_attr_set_ints(n, "kernel_shape", (int64_t[]){2, 2}, 2));
    ACCEL_TRY(accel_attr_set_ints(n, "pads", (int64_t[]){0, 0, 0, 0}, 4));
    return accel_attr_set_ints(n, "strides", (int64_t[]){2, 2}, 2);
}

enum accel_err accel_draft_plain(struct accel_draft *draft, const char *module, const char *op_type,
                                 struct accel_value *other)
{
    struct accel_value *in[2] = {draft->at, other};
    struct accel_node *n;
    return add_node(&n, draft, module, op_type, in, other ? 2 : 1);
}

enum accel_err accel_draft_flatten(struct accel_draft *draft)
{
    struct accel_node *n;
    ACCEL_TRY(add_node(&n, draft, "", "Flatten", &draft->at, 1));
    return accel_attr_set_int(n, "axis", 1);
}

enum accel_err accel_draft_reshape(struct accel_draft *draft, int64_t columns)
{
    struct accel_value *in[2] = {draft->at, NULL};
    struct accel_node *n;
    void *data;
    ACCEL_TRY(
        add_constant(&in[1], &data, draft, "/Constant_output_0", ACCEL_I64, 1, (int64_t[]){2}));
    memcpy(data, (int64_t[]){-1, columns}, 2 * sizeof(int64_t));
    ACCEL_TRY(add_node(&n, draft, "", "Reshape", in, 2));
    return accel_attr_set_int(n, "allowzero", 0);
}
