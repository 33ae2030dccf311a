/* dn_job.c - from a described chain to a kernel that runs.
 *
 * The library is asked for the kernel with formats left open; where an operand lies in another
 * format than the chosen one, a reorder runs before it (once, when the operand is a constant). An
 * operand in blocks that the kernel sees through another shape is first laid out row-major. A chain
 * that the library only has its slow reference for is cut by its last node and asked again. */
#include "ops/onednn/dn_job.h"

#include <string.h>

#include "base/alloc.h"

#define ALIGN ((size_t)64)

enum accel_err accel_dn_type_of(enum accel_dn_type *type, const struct accel_value *v)
{
    static const struct {
        enum accel_dtype dtype;
        enum accel_dn_type type;
    } rows[] = {{ACCEL_F32, ACCEL_DN_F32},
                {ACCEL_I32, ACCEL_DN_S32},
                {ACCEL_I8, ACCEL_DN_S8},
                {ACCEL_U8, ACCEL_DN_U8}};
    for (size_t i = 0; v && i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == v->dtype) {
            *type = rows[i].type;
            return ACCEL_OK;
        }
    return accel_fail(ACCEL_ENOSUP, "a type that oneDNN does not have");
}

enum accel_err accel_dn_dims(int *rank, int64_t dim[ACCEL_DN_MAX_RANK], const struct accel_value *v)
{
    if (!v || v->dtype != ACCEL_F32)
        return accel_fail(ACCEL_ENOSUP, "not float32");
    return accel_dn_sizes(rank, dim, v);
}

enum accel_err accel_dn_sizes(int *rank, int64_t dim[ACCEL_DN_MAX_RANK],
                              const struct accel_value *v)
{
    if (!v || v->shape.rank < 0 || v->shape.rank > ACCEL_DN_MAX_RANK)
        return accel_fail(ACCEL_ENOSUP, "not a tensor of up to 12 axes");
    *rank = v->shape.rank > 0 ? v->shape.rank : 1;
    dim[0] = 1;
    for (int i = 0; i < v->shape.rank; i++) {
        dim[i] = v->shape.dim[i].n;
        if (dim[i] < 1)
            return accel_fail(ACCEL_ENOSUP, "an axis is empty or unknown");
    }
    return ACCEL_OK;
}

static enum accel_err type_of(enum accel_dn_type *type, const struct accel_dn_job *j,
                              const struct accel_value *v)
{
    ACCEL_TRY(accel_dn_type_of(type, v));
    return *type == ACCEL_DN_F32 || j->integers ? ACCEL_OK
                                                : accel_fail(ACCEL_ENOSUP, "not float32");
}

static struct accel_dn_arg *next_arg(struct accel_dn_job *j)
{
    return j->spec.n_in < j->n_arg ? &j->arg[j->spec.n_in] : NULL;
}

/* `arg` is complete. */
static enum accel_err commit(struct accel_dn_job *j, struct accel_dn_arg *arg)
{
    j->spec.in[j->spec.n_in++] = &arg->want;
    j->spec.n_own = j->spec.n_post ? j->spec.n_own : j->spec.n_in;
    return ACCEL_OK;
}

/* … in any format of its type. */
static enum accel_err commit_any(struct accel_dn_job *j, struct accel_dn_arg *arg, int rank,
                                 const int64_t *dim)
{
    ACCEL_TRY(accel_dn_format_any_like(&arg->want, rank, dim, &arg->plain));
    return commit(j, arg);
}

static enum accel_err start(struct accel_dn_arg **out, int *rank, int64_t *dim,
                            struct accel_dn_job *j, int i)
{
    const struct accel_ask *ask = j->ask;
    struct accel_dn_arg *arg = next_arg(j);
    *out = arg;
    if (!arg || i >= ask->n_operand)
        return accel_fail(ACCEL_ENOSUP, "too many operands");
    const struct accel_value *v = j->instead[i] ? j->instead[i] : ask->operand[i];
    struct accel_layout layout = ask->in[i];
    const void *constant = ask->constant[i];
    enum accel_dn_type type;
    ACCEL_TRY(type_of(&type, j, v));
    ACCEL_TRY(accel_dn_sizes(rank, dim, v));
    if (j->instead[i])
        ACCEL_TRY(ask->look(ask->look_ctx, v, &constant, &layout));
    *arg = (struct accel_dn_arg){.operand = i, .constant = constant};
    arg->blocks = layout.kind == ACCEL_OPAQUE;
    if (arg->blocks) {
        arg->have = *(const struct accel_dn_format *)layout.tag;
        return ACCEL_OK;
    }
    ACCEL_TRY(accel_dn_format_plain(&arg->have, *rank, dim));
    accel_dn_format_retype(&arg->have, type);
    return ACCEL_OK;
}

enum accel_err accel_dn_add(struct accel_dn_job *j, int i, bool any)
{
    struct accel_dn_arg *arg;
    int64_t dim[ACCEL_DN_MAX_RANK];
    int rank = 0;
    ACCEL_TRY(start(&arg, &rank, dim, j, i));
    arg->plain = arg->want = arg->have;
    return any ? commit_any(j, arg, rank, dim) : commit(j, arg);
}

enum accel_err accel_dn_add_view(struct accel_dn_job *j, int i, int rank, const int64_t *dim,
                                 const int64_t *stride, bool any)
{
    struct accel_dn_arg *arg;
    int64_t real_dim[ACCEL_DN_MAX_RANK];
    enum accel_dn_type type;
    int real_rank = 0;
    ACCEL_TRY(start(&arg, &real_rank, real_dim, j, i));
    ACCEL_TRY(accel_dn_format_strided(&arg->plain, rank, dim, stride));
    ACCEL_TRY(accel_dn_type_of(&type, j->instead[i] ? j->instead[i] : j->ask->operand[i]));
    accel_dn_format_retype(&arg->plain, type);
    arg->want = arg->plain;
    if (!arg->blocks)
        arg->have = arg->plain;
    return any ? commit_any(j, arg, rank, dim) : commit(j, arg);
}

enum accel_err accel_dn_add_own(struct accel_dn_job *j, void *own, enum accel_dn_type type,
                                int rank, const int64_t *dim)
{
    struct accel_dn_arg *arg = next_arg(j);
    if (!own)
        return accel_fail_nomem();
    if (!arg) {
        accel_free(own);
        return accel_fail(ACCEL_ENOSUP, "too many operands");
    }
    *arg = (struct accel_dn_arg){.operand = -1, .own = own};
    enum accel_err err = accel_dn_format_plain(&arg->plain, rank, dim);
    if (err) {
        accel_free(own);
        arg->own = NULL;
        return err;
    }
    accel_dn_format_retype(&arg->plain, type);
    arg->have = arg->want = arg->plain;
    return commit(j, arg);
}

void accel_dn_narrow(struct accel_dn_job *j)
{
    for (int i = 0; j->bf16 && i < 2; i++)
        accel_dn_format_retype(&j->arg[i].want, ACCEL_DN_BF16);
}

enum accel_err accel_dn_set_out(struct accel_dn_job *j, const struct accel_value *v, bool any)
{
    enum accel_dn_type type;
    ACCEL_TRY(type_of(&type, j, v));
    ACCEL_TRY(accel_dn_sizes(&j->rank, j->dim, v));
    j->spec.out = &j->out;
    if (any && !j->ask->row_major)
        ACCEL_TRY(accel_dn_format_any(&j->out, j->rank, j->dim));
    else
        ACCEL_TRY(accel_dn_format_plain(&j->out, j->rank, j->dim));
    accel_dn_format_retype(&j->out, type);
    return ACCEL_OK;
}

enum accel_err accel_dn_set_out_view(struct accel_dn_job *j, int rank, const int64_t *dim)
{
    j->spec.out = &j->out;
    j->rank = rank;
    j->viewed = true;
    ACCEL_TRY(accel_dn_format_plain(&j->out, rank, dim));
    memcpy(j->dim, dim, (size_t)rank * sizeof *dim);
    return ACCEL_OK;
}

enum accel_err accel_dn_constant(const float **out, const struct accel_dn_job *j, int i, int64_t n)
{
    const struct accel_value *v = i < j->ask->n_operand ? j->ask->operand[i] : NULL;
    *out = v ? j->ask->constant[i] : NULL;
    if (!*out || v->dtype != ACCEL_F32 || accel_shape_count(&v->shape) != n)
        return accel_fail(ACCEL_ENOSUP, "operand %d is no constant of %lld floats", i,
                          (long long)n);
    return ACCEL_OK;
}

int accel_dn_first_operand(const struct accel_dn_job *j, int at)
{
    int n = at > 0 ? j->ask->chain[0]->n_in : 0;
    for (int i = 1; i < at; i++)
        n += j->ask->chain[i]->n_in - 1;
    return n;
}

/* ------------------------------------------------------------------ life */

enum accel_err accel_dn_job_new(struct accel_dn_job **out, struct accel_dn *dn,
                                const struct accel_ask *ask)
{
    struct accel_dn_job *j = accel_calloc(1, sizeof *j);
    *out = j;
    if (!j)
        return accel_fail_nomem();
    j->dn = dn;
    j->ask = ask;
    /* constants of our own stand for operands: a folded bias where there was none is one more */
    j->n_arg = ask->n_operand + 2 < ACCEL_DN_MAX_IN ? ask->n_operand + 2 : ACCEL_DN_MAX_IN;
    j->arg = accel_calloc((size_t)j->n_arg, sizeof *j->arg);
    if (j->arg)
        return ACCEL_OK;
    accel_free(j);
    *out = NULL;
    return accel_fail_nomem();
}

/* Forgets what a describe function said. */
static void reset(struct accel_dn_job *j)
{
    for (int i = 0; i < j->n_arg; i++) {
        accel_dn_kernel_free(j->arg[i].flat);
        accel_dn_kernel_free(j->arg[i].move);
        accel_free(j->arg[i].own);
        j->arg[i] = (struct accel_dn_arg){.operand = -1};
    }
    accel_dn_kernel_free(j->kernel);
    accel_free(j->scale);
    j->scale = NULL;
    memset(j->instead, 0, sizeof j->instead);
    memset(j->unread, 0, sizeof j->unread);
    j->kernel = NULL;
    j->spec = (struct accel_dn_spec){0};
    j->takes = 0;
    j->workspace = 0;
    j->viewed = j->integers = false;
}

void accel_dn_job_free(struct accel_dn_job *j)
{
    if (!j)
        return;
    reset(j);
    accel_free(j->arg);
    accel_free(j);
}

static enum accel_err reorder_new(struct accel_dn_kernel **out, struct accel_dn *dn,
                                  const struct accel_dn_format *from,
                                  const struct accel_dn_format *to)
{
    const struct accel_dn_spec s = {
        .kind = ACCEL_DN_REORDER, .in = {from}, .n_in = 1, .n_own = 1, .out = to};
    return accel_dn_kernel_new(out, dn, &s);
}

static size_t reserve(struct accel_dn_job *j, size_t size)
{
    size_t at = j->workspace;
    j->workspace += (size + ALIGN - 1) / ALIGN * ALIGN;
    return at;
}

/* The reorders that bring an operand into the chosen format. */
static enum accel_err plan_arg(struct accel_dn_job *j, int i)
{
    struct accel_dn_arg *arg = &j->arg[i];
    const struct accel_dn_format *from = &arg->have;
    arg->want = *accel_dn_kernel_in(j->kernel, i);
    if (arg->blocks && !accel_dn_format_equal(&arg->have, &arg->plain)) {
        struct accel_dn_format flat;
        ACCEL_TRY(accel_dn_format_row_major(&flat, &arg->have));
        ACCEL_TRY(reorder_new(&arg->flat, j->dn, &arg->have, &flat));
        arg->flat_at = reserve(j, accel_dn_format_size(&flat));
        from = &arg->plain;
    }
    if (accel_dn_format_equal(from, &arg->want))
        return ACCEL_OK;
    ACCEL_TRY(reorder_new(&arg->move, j->dn, from, &arg->want));
    arg->move_at = reserve(j, accel_dn_format_size(&arg->want));
    return ACCEL_OK;
}

/* Tensors of post-ops must lie as the result will: the library is asked without them first. */
static enum accel_err settle_out(struct accel_dn_job *j)
{
    struct accel_dn_spec bare = j->spec;
    struct accel_dn_kernel *k;
    bool any = false;
    for (int i = 0; i < j->spec.n_in; i++)
        any = any || j->arg[i].like_out;
    if (!any)
        return ACCEL_OK;
    bare.n_in = bare.n_own;
    bare.n_post = 0;
    ACCEL_TRY(accel_dn_kernel_new(&k, j->dn, &bare));
    j->out = *accel_dn_kernel_out(k);
    accel_dn_kernel_free(k);
    for (int i = 0; i < j->spec.n_in; i++)
        if (j->arg[i].like_out) {
            j->arg[i].want = j->out;
            accel_dn_format_retype(&j->arg[i].want, ACCEL_DN_F32);
        }
    return ACCEL_OK;
}

static enum accel_err make_kernel(struct accel_dn_job *j)
{
    j->spec.nth = j->nth;
    j->spec.winograd = j->winograd;
    ACCEL_TRY(settle_out(j));
    ACCEL_TRY(accel_dn_kernel_new(&j->kernel, j->dn, &j->spec));
    size_t inner = accel_dn_kernel_workspace(j->kernel);
    for (int i = 0; i < j->spec.n_in; i++) {
        ACCEL_TRY(plan_arg(j, i));
        size_t a = j->arg[i].flat ? accel_dn_kernel_workspace(j->arg[i].flat) : 0;
        size_t b = j->arg[i].move ? accel_dn_kernel_workspace(j->arg[i].move) : 0;
        inner = a > inner ? a : inner;
        inner = b > inner ? b : inner;
    }
    /* reorders run before the kernel, so one scratch serves all of them */
    j->scratch_at = reserve(j, inner);
    j->out = *accel_dn_kernel_out(j->kernel);
    return ACCEL_OK;
}

static enum accel_err plan_as_it_is(struct accel_dn_job *j, accel_dn_describe describe)
{
    int most = j->ask->n_chain;
    for (j->limit = most; j->limit > 0; j->limit = j->takes - 1) {
        reset(j);
        enum accel_err err = describe(j);
        if (!err)
            err = make_kernel(j);
        if (err && err != ACCEL_ENOSUP)
            return err;
        j->takes = j->takes > 0 ? j->takes : 1;
        if (!err && (j->takes == 1 || !accel_dn_kernel_is_plain(j->kernel)))
            return ACCEL_OK;
    }
    reset(j);
    return ACCEL_OK;
}

static bool reads_dequantized(const struct accel_ask *ask)
{
    const struct accel_value *v = ask->operand[0];
    const struct accel_node *from = ask->look && v ? v->producer : NULL;
    return from && from->op && strcmp(from->op->name, "DequantizeLinear") == 0;
}

enum accel_err accel_dn_job_plan(struct accel_dn_job *j, accel_dn_describe describe)
{
    j->int8 = reads_dequantized(j->ask);
    if (j->int8) {
        ACCEL_TRY(plan_as_it_is(j, describe));
        if (j->takes > 0 && !accel_dn_kernel_is_plain(j->kernel))
            return ACCEL_OK;
        j->int8 = false;
    }
    j->bf16 = j->ask->bf16;
    ACCEL_TRY(plan_as_it_is(j, describe));
    if (j->takes > 0 || !j->bf16)
        return ACCEL_OK;
    j->bf16 = false; /* not every form has a kernel that reads bfloat16 */
    return plan_as_it_is(j, describe);
}

/* A constant in the kernel's own format, once and for all. */
static enum accel_err pack(struct accel_dn_arg *arg, void *scratch)
{
    const void *from = arg->own ? arg->own : arg->constant;
    if (!arg->move || !from)
        return ACCEL_OK;
    void *to = accel_alloc_pages(accel_dn_format_size(&arg->want) + ALIGN);
    if (!to)
        return accel_fail_nomem();
    enum accel_err err = accel_dn_kernel_run(arg->move, &from, to, scratch);
    accel_free(arg->own);
    arg->own = to;
    arg->packed = true;
    return err;
}

enum accel_err accel_dn_job_ready(struct accel_dn_job *j)
{
    if (j->is_ready)
        return ACCEL_OK;
    void *scratch = accel_alloc_pages(j->workspace - j->scratch_at + ALIGN);
    enum accel_err err = scratch ? accel_dn_kernel_ready(j->kernel) : accel_fail_nomem();
    for (int i = 0; !err && i < j->spec.n_in; i++) {
        struct accel_dn_arg *arg = &j->arg[i];
        if (arg->flat)
            err = accel_dn_kernel_ready(arg->flat);
        if (!err && arg->move)
            err = accel_dn_kernel_ready(arg->move);
        if (!err)
            err = pack(arg, scratch);
    }
    j->is_ready = !err;
    accel_free(scratch);
    return err;
}

bool accel_dn_job_reads(const struct accel_dn_job *j, int operand)
{
    for (int i = 0; i < j->spec.n_in; i++)
        if (j->arg[i].operand == operand && !j->arg[i].own)
            return true;
    return false;
}

enum accel_err accel_dn_job_run(struct accel_dn_job *j, const struct accel_run *run)
{
    const void *in[ACCEL_DN_MAX_IN];
    char *room = run->workspace, *scratch = room + j->scratch_at;
    for (int i = 0; i < j->spec.n_in; i++) {
        struct accel_dn_arg *arg = &j->arg[i];
        in[i] = arg->own ? arg->own : run->x[arg->operand];
        if (arg->flat) {
            ACCEL_TRY(accel_dn_kernel_run(arg->flat, &in[i], room + arg->flat_at, scratch));
            in[i] = room + arg->flat_at;
        }
        if (arg->move && !arg->packed) {
            ACCEL_TRY(accel_dn_kernel_run(arg->move, &in[i], room + arg->move_at, scratch));
            in[i] = room + arg->move_at;
        }
    }
    return accel_dn_kernel_run(j->kernel, in, run->y, scratch);
}
