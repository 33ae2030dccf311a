/* blas_device.c - the device of builds and machines without oneDNN: products, and convolutions as
 * products, by BLAS; everything else stays with the plain kernels. Values lie in row-major order
 * only, and a node is a kernel: no chains. */
#include <string.h>

#include "base/alloc.h"
#include "graph/op.h"
#include "ops/blas.h"

static const struct {
    const char *op;
    accel_blas_describe describe;
} rows[] = {{"MatMul", accel_blas_matmul}, {"Gemm", accel_blas_gemm}, {"Conv", accel_blas_conv}};

static accel_blas_describe find(const char *op)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(op, rows[i].op) == 0)
            return rows[i].describe;
    return NULL;
}

enum accel_err accel_blas_dims(int *rank, int64_t dim[ACCEL_BLAS_RANK], const struct accel_value *v)
{
    if (!v || v->dtype != ACCEL_F32 || v->shape.rank < 0 || v->shape.rank > ACCEL_BLAS_RANK)
        return accel_fail(ACCEL_ENOSUP, "not a float32 tensor of up to 12 axes");
    *rank = v->shape.rank;
    for (int i = 0; i < v->shape.rank; i++) {
        dim[i] = v->shape.dim[i].n;
        if (!accel_gemm_fits(dim[i]))
            return accel_fail(ACCEL_ENOSUP, "an axis is empty, unknown or very long");
    }
    return ACCEL_OK;
}

static void release(void *state)
{
    struct accel_blas_job *j = state;
    accel_free(j->more);
    accel_free(j);
}

static enum accel_err describe(struct accel_blas_job *j, const struct accel_ask *ask)
{
    *j = (struct accel_blas_job){0};
    enum accel_err err = find(ask->chain[0]->op->name)(j, ask);
    if (err) {
        accel_free(j->more);
        j->more = NULL;
    }
    return err;
}

static enum accel_err offer(struct accel_offer *o, struct accel_device *d,
                            const struct accel_ask *ask)
{
    struct accel_blas_job j;
    (void)d;
    *o = (struct accel_offer){0};
    enum accel_err err = describe(&j, ask);
    accel_free(j.more);
    if (err)
        return err == ACCEL_ENOSUP ? ACCEL_OK : err;
    o->takes = 1;
    o->out.kind = ACCEL_ROW_MAJOR;
    o->workspace = j.workspace;
    return ACCEL_OK;
}

static enum accel_err prepare(void **state, struct accel_device *d, const struct accel_ask *ask)
{
    struct accel_blas_job *j = accel_calloc(1, sizeof *j);
    (void)d;
    *state = NULL;
    if (!j)
        return accel_fail_nomem();
    enum accel_err err = describe(j, ask);
    if (err) {
        release(j);
        return err;
    }
    *state = j;
    return ACCEL_OK;
}

static bool reads(const void *state, int operand)
{
    (void)state;
    (void)operand;
    return true;
}

static enum accel_err forward(const struct accel_run *r)
{
    const struct accel_blas_job *j = r->state;
    return j->run(j, r);
}

static const struct accel_fast kernels = {offer, prepare, reads, release, forward};

static const struct accel_fast *fast(struct accel_device *d, const char *domain, const char *op)
{
    (void)d;
    return !*domain && find(op) ? &kernels : NULL;
}

static enum accel_err check_bf16(struct accel_device *d)
{
    return accel_fail(ACCEL_EDEVICE, "precision bf16: %s has no such kernels", d->name);
}

static void free_device(struct accel_device *d)
{
    accel_free(d);
}

enum accel_err accel_device_blas(struct accel_device **out)
{
    *out = NULL;
    if (!accel_gemm_open())
        return ACCEL_OK;
    struct accel_device *d = accel_calloc(1, sizeof *d);
    if (!d)
        return accel_fail_nomem();
    /* no layout but row-major: nothing is converted */
    *d = (struct accel_device){
        .name = "cpu, BLAS", .free = free_device, .fast = fast, .check_bf16 = check_bf16};
    *out = d;
    return ACCEL_OK;
}
