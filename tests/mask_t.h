/* mask_t.h - what the tests of pruning edits share: a tensor in memory with its row, streamed
 * through its edit both whole and in small pieces. */
#ifndef ACCEL_TESTS_MASK_T_H
#define ACCEL_TESTS_MASK_T_H

#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "prune/mask.h"
#include "tests/t.h"

enum { MASK_MOST = 60000 };

struct mask_t {
    int64_t dim[4];
    struct accel_tensor tensor;
    struct accel_target target;
    struct accel_prune_row row;
    struct accel_log log;
    unsigned char in[MASK_MOST * 8], out[MASK_MOST * 8];
    double before[MASK_MOST], after[MASK_MOST];
};

static inline void mask_t_init(struct mask_t *w, enum accel_dtype dtype, int rank, int64_t d0,
                               int64_t d1, int64_t d2, int64_t d3)
{
    memset(w, 0, sizeof *w);
    w->dim[0] = d0, w->dim[1] = d1, w->dim[2] = d2, w->dim[3] = d3;
    w->tensor = (struct accel_tensor){
        .name = "w", .dtype = dtype, .rank = rank, .dim = w->dim, .n = 1, .data = w->in};
    for (int d = 0; d < rank; d++)
        w->tensor.n *= (uint64_t)w->dim[d];
    ck_assert_uint_le(w->tensor.n, MASK_MOST);
    ck_assert(accel_dtype_size(dtype, w->tensor.n, &w->tensor.size));
    w->target = (struct accel_target){.tensor = &w->tensor, .name = "w", .scale_axis = -1};
    w->row = (struct accel_prune_row){
        .target = &w->target, .pruned = true, .reason = "selected", .n = w->tensor.n};
}

static inline void mask_t_set(struct mask_t *w, uint64_t i, double v)
{
    accel_dtype_from_f64(w->tensor.dtype, &v, 1, w->in, i);
}

/* Few different magnitudes, so that there are ties everywhere. */
static inline void mask_t_random(struct mask_t *w, uint64_t seed, unsigned values)
{
    struct accel_rng r = accel_rng_init(seed);
    for (uint64_t i = 0; i < w->tensor.n; i++) {
        uint64_t x = accel_rng_next(&r);
        mask_t_set(w, i, (double)((x >> 1) % values) / 8 * (x & 1 ? -1 : 1));
    }
}

static inline enum accel_err mask_t_sink(void *ctx, uint64_t first, uint64_t count,
                                         const void *elem)
{
    struct mask_t *w = ctx;
    uint64_t at, size;
    accel_dtype_size(w->tensor.dtype, first, &at);
    accel_dtype_size(w->tensor.dtype, count, &size);
    memcpy(w->out + at, elem, size);
    return ACCEL_OK;
}

/* Streams through the edit from memory, then again from a file through a buffer too small for the
 * whole; both must agree. Frees the edit. Kept elements have their bits, others are zero. */
static inline void mask_t_run(struct mask_t *w, struct accel_mask *m, struct accel_mask *again)
{
    static unsigned char first[MASK_MOST * 8];
    struct accel_buffer b;
    accel_tensor_set_edit(&w->tensor, &m->edit);
    ck_ok(accel_buffer_init(&b, 16384));
    ck_ok(accel_tensor_stream(&w->tensor, &b, mask_t_sink, w));
    memcpy(first, w->out, w->tensor.size);
    struct accel_prune_row row = w->row;

    char path[] = "/tmp/accel_test_XXXXXX";
    int fd = mkstemp(path);
    ck_assert(write(fd, w->in, w->tensor.size) == (ssize_t)w->tensor.size);
    close(fd);
    struct accel_file *f;
    ck_ok(accel_file_open(&f, path));
    unlink(path);
    struct accel_tensor t = w->tensor;
    t.data = NULL, t.file = f, t.edit = &again->edit;
    ck_ok(accel_tensor_stream(&t, &b, mask_t_sink, w));
    ck_assert_mem_eq(first, w->out, w->tensor.size);
    ck_assert_uint_eq(row.zeros_after, w->row.zeros_after);
    again->edit.ops->free(&again->edit);
    accel_file_close(f);
    accel_buffer_clear(&b);
    accel_tensor_set_edit(&w->tensor, NULL);

    uint64_t n = w->tensor.n, zb = 0, za = 0, hist_b = 0, hist_a = 0, changed = 0;
    accel_dtype_to_f64(w->tensor.dtype, w->in, 0, n, w->before);
    accel_dtype_to_f64(w->tensor.dtype, w->out, 0, n, w->after);
    for (uint64_t i = 0; i < n; i++) {
        zb += w->before[i] == 0;
        za += w->after[i] == 0;
        changed += w->after[i] != 0 && w->after[i] != w->before[i];
    }
    for (int k = 0; k < ACCEL_HISTOGRAM_BINS; k++) {
        hist_b += w->row.before[k];
        hist_a += w->row.after[k];
    }
    ck_assert_uint_eq(changed, 0);
    ck_assert_uint_eq(w->row.zeros_before, zb);
    ck_assert_uint_eq(w->row.zeros_after, za);
    ck_assert_uint_eq(hist_b, n - zb);
    ck_assert_uint_eq(hist_a, n - za);
    ck_assert_double_eq_tol(w->row.achieved, (double)za / (double)n, 1e-12);
}

/* Marks the `count` smallest of n scores, equal ones by index. */
static inline void mask_t_lowest(const double *score, uint64_t n, uint64_t count, bool *gone)
{
    memset(gone, 0, n);
    for (uint64_t k = 0; k < count; k++) {
        uint64_t best = n;
        for (uint64_t i = 0; i < n; i++)
            if (!gone[i] && (best == n || fabs(score[i]) < fabs(score[best])))
                best = i;
        gone[best] = true;
    }
}

#endif
