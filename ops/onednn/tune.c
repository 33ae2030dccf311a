/* tune.c - the fastest of several kernels for one job, by running them.
 *
 * Tried: Winograd's algorithm for convolutions, and the library's next implementations of the same
 * operation (it lists its favourite first). One that is not 5 % faster than the best so far stays
 * out, since clocks are noisy and its layout may cost its readers something. */
#include <time.h>

#include "base/alloc.h"
#include "ops/onednn/dn_job.h"

enum { RUNS = 7, OTHERS = 2 };

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Zeroed memory, since no value slows a kernel down that it would not meet as well. */
static enum accel_err room_for(void **out, size_t size)
{
    *out = accel_calloc(size + 64, 1);
    return *out ? ACCEL_OK : accel_fail_nomem();
}

/* The shortest of some runs on operands of zeros, their reorders included; ready afterwards. */
static enum accel_err time_job(int64_t *best, struct accel_dn_job *j)
{
    struct accel_run run = {.state = j};
    void *own[ACCEL_DN_MAX_IN + 2] = {NULL};
    enum accel_err err;
    ACCEL_GOTO(err, accel_dn_job_ready(j));
    for (int i = 0; i < j->spec.n_in; i++) {
        int operand = j->arg[i].operand;
        if (operand < 0 || j->arg[i].own)
            continue;
        run.x[operand] = j->arg[i].constant;
        if (run.x[operand])
            continue;
        ACCEL_GOTO(err, room_for(&own[i], accel_dn_format_size(&j->arg[i].have)));
        run.x[operand] = own[i];
    }
    ACCEL_GOTO(err, room_for(&run.y, accel_dn_format_size(&j->out)));
    ACCEL_GOTO(err, room_for(&run.workspace, j->workspace));
    *best = INT64_MAX;
    for (int i = 0; i < RUNS; i++) {
        int64_t at = now();
        ACCEL_GOTO(err, accel_dn_job_run(j, &run));
        at = now() - at;
        *best = at < *best ? at : *best;
    }
done:
    for (int i = 0; i < ACCEL_DN_MAX_IN; i++)
        accel_free(own[i]);
    accel_free(run.y);
    accel_free(run.workspace);
    return err;
}

/* Puts another kernel in *job's place where it is faster; ENOSUP: there is no such kernel. */
static enum accel_err try_other(struct accel_dn_job **job, int64_t *best,
                                accel_dn_describe describe, bool winograd, int nth)
{
    struct accel_dn_job *j;
    int64_t ns = INT64_MAX;
    ACCEL_TRY(accel_dn_job_new(&j, (*job)->dn, (*job)->ask));
    j->winograd = winograd;
    j->nth = nth;
    enum accel_err err = accel_dn_job_plan(j, describe);
    bool same = !err && j->takes == (*job)->takes && !accel_dn_kernel_is_plain(j->kernel);
    if (same)
        err = time_job(&ns, j);
    else if (!err)
        err = accel_fail(ACCEL_ENOSUP, "no other kernel");
    if (!err && ns < *best - *best / 20) {
        struct accel_dn_job *old = *job;
        *best = ns;
        *job = j;
        j = old;
    }
    accel_dn_job_free(j);
    return err;
}

enum accel_err accel_dn_job_tune(struct accel_dn_job **job, accel_dn_describe describe)
{
    int64_t best;
    bool is_conv = (*job)->spec.kind == ACCEL_DN_CONV;
    enum accel_err err = time_job(&best, *job);
    if (!err && is_conv)
        err = try_other(job, &best, describe, true, 0);
    for (int nth = 1; (!err || err == ACCEL_ENOSUP) && nth <= OTHERS; nth++)
        err = try_other(job, &best, describe, false, nth);
    return err == ACCEL_ENOSUP ? ACCEL_OK : err;
}

/* ------------------------------------------------------------------ bfloat16 */

enum { SIDE = 512 };

/* The shortest of some products of two SIDE x SIDE matrices. */
static enum accel_err time_product(int64_t *best, struct accel_dn *dn, enum accel_dn_type type,
                                   void *const at[3])
{
    struct accel_dn_format f[3];
    struct accel_dn_kernel *k = NULL;
    void *workspace = NULL;
    enum accel_err err;
    for (int i = 0; i < 3; i++) {
        ACCEL_TRY(accel_dn_format_plain(&f[i], 2, (int64_t[]){SIDE, SIDE}));
        if (i < 2)
            accel_dn_format_retype(&f[i], type);
    }
    const struct accel_dn_spec spec = {
        .kind = ACCEL_DN_MATMUL, .in = {&f[0], &f[1]}, .n_in = 2, .n_own = 2, .out = &f[2]};
    *best = INT64_MAX;
    ACCEL_GOTO(err, accel_dn_kernel_new(&k, dn, &spec));
    ACCEL_GOTO(err, accel_dn_kernel_ready(k));
    ACCEL_GOTO(err, room_for(&workspace, accel_dn_kernel_workspace(k)));
    for (int i = 0; i < RUNS; i++) {
        const void *in[2] = {at[0], at[1]};
        int64_t begin = now();
        ACCEL_GOTO(err, accel_dn_kernel_run(k, in, at[2], workspace));
        begin = now() - begin;
        *best = begin < *best ? begin : *best;
    }
done:
    accel_free(workspace);
    accel_dn_kernel_free(k);
    return err;
}

enum accel_err accel_dn_check_bf16(struct accel_dn *dn)
{
    void *at[3] = {NULL, NULL, NULL};
    int64_t wide = 0, narrow = 0;
    enum accel_err err = ACCEL_OK;
    for (int i = 0; !err && i < 3; i++)
        err = room_for(&at[i], sizeof(float) * SIDE * SIDE);
    if (!err)
        err = time_product(&wide, dn, ACCEL_DN_F32, at);
    if (!err)
        err = time_product(&narrow, dn, ACCEL_DN_BF16, at);
    for (int i = 0; i < 3; i++)
        accel_free(at[i]);
    if (err == ACCEL_ENOSUP)
        return accel_fail(ACCEL_EDEVICE, "this processor has no kernels for bf16");
    if (err)
        return err;
    return narrow < wide ? ACCEL_OK
                         : accel_fail(ACCEL_EDEVICE,
                                      "bf16 is slower than f32 on this processor: a product of "
                                      "%dx%d matrices takes %.2f ms, in f32 %.2f ms",
                                      SIDE, SIDE, (double)narrow / 1e6, (double)wide / 1e6);
}
