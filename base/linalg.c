/* linalg.c - the library is opened by name when first wanted, so that commands without linear
 * algebra do not pay for loading it, and is never closed.
 *
 * Row-major matrices are the transposes of what LAPACK wants. For symmetric ones that only swaps
 * the triangles, so nothing is copied but right-hand sides: B [n, m] row-major is B^T for the
 * library, and L L^T X = B becomes two triangular products from the right. */
#include "base/linalg.h"

#include <cblas.h>
#include <dlfcn.h>
#include <lapacke.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

static struct {
    __typeof__(cblas_dsyrk) *dsyrk;
    __typeof__(cblas_dgemm) *dgemm;
    __typeof__(cblas_dsymm) *dsymm;
    __typeof__(cblas_dtrsm) *dtrsm;
    __typeof__(LAPACKE_dpotrf_work) *dpotrf;
} lib;

static bool is_there;
static pthread_once_t opened = PTHREAD_ONCE_INIT;

/* OpenBLAS on top of OpenMP sets the number of threads of all OpenMP: that is put back. */
static void use_one_thread(void *so)
{
    void *f[3] = {dlsym(so, "openblas_set_num_threads"), dlsym(so, "omp_get_max_threads"),
                  dlsym(so, "omp_set_num_threads")};
    void (*set)(int), (*set_all)(int);
    int (*get_all)(void);
    if (!f[0])
        return;
    memcpy(&set, &f[0], sizeof set);
    memcpy(&get_all, &f[1], sizeof get_all);
    memcpy(&set_all, &f[2], sizeof set_all);
    int n = f[1] && f[2] ? get_all() : 0;
    set(1);
    if (n)
        set_all(n);
}

static void open_library(void)
{
    const struct {
        const char *name;
        void *to;
    } entries[] = {{"cblas_dsyrk", &lib.dsyrk},
                   {"cblas_dgemm", &lib.dgemm},
                   {"cblas_dsymm", &lib.dsymm},
                   {"cblas_dtrsm", &lib.dtrsm},
                   {"LAPACKE_dpotrf_work", &lib.dpotrf}};
    void *so = dlopen("liblapacke.so.3", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; so && i < sizeof entries / sizeof *entries; i++) {
        void *f = dlsym(so, entries[i].name);
        if (!f)
            return;
        memcpy(entries[i].to, &f, sizeof f);
    }
    is_there = so != NULL;
    if (so)
        use_one_thread(so);
}

enum accel_err accel_linalg_open(void)
{
    pthread_once(&opened, open_library);
    return is_there ? ACCEL_OK
                    : accel_fail(ACCEL_EDEVICE, "liblapacke.so.3 cannot be opened: least squares "
                                                "need LAPACK");
}

static enum accel_err check(size_t a, size_t b, size_t c)
{
    ACCEL_TRY(accel_linalg_open());
    size_t most = a > b ? a : b;
    most = most > c ? most : c;
    return most <= ACCEL_LINALG_MAX
               ? ACCEL_OK
               : accel_fail(ACCEL_ENOSUP, "a matrix of %zu rows or columns, %d are possible", most,
                            ACCEL_LINALG_MAX);
}

enum accel_err accel_linalg_square(double *g, size_t n, const double *x, size_t x_step, size_t rows)
{
    ACCEL_TRY(check(n, x_step, rows));
    if (n && rows)
        lib.dsyrk(CblasRowMajor, CblasLower, CblasTrans, (int)n, (int)rows, 1, x, (int)x_step, 1, g,
                  (int)n);
    return ACCEL_OK;
}

enum accel_err accel_linalg_cross(double *c, size_t c_step, size_t n, size_t m, const double *x,
                                  size_t x_step, const double *y, size_t y_step, size_t rows)
{
    ACCEL_TRY(check(n, m, rows));
    ACCEL_TRY(check(x_step, y_step, c_step));
    if (n && m && rows)
        lib.dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)n, (int)m, (int)rows, 1, x,
                  (int)x_step, y, (int)y_step, 1, c, (int)c_step);
    return ACCEL_OK;
}

enum accel_err accel_linalg_symmetric(double *c, const double *a, const double *b, size_t n,
                                      size_t m, double beta)
{
    ACCEL_TRY(check(n, m, 0));
    if (n && m)
        lib.dsymm(CblasRowMajor, CblasLeft, CblasLower, (int)n, (int)m, 1, a, (int)n, b, (int)m,
                  beta, c, (int)m);
    return ACCEL_OK;
}

enum accel_err accel_linalg_cholesky(bool *definite, double *a, size_t n)
{
    *definite = true;
    ACCEL_TRY(check(n, 0, 0));
    if (!n)
        return ACCEL_OK;
    *definite = lib.dpotrf(LAPACK_COL_MAJOR, 'U', (int)n, a, (int)n) == 0;
    for (size_t i = 0; *definite && i < n; i++)
        *definite = isfinite(a[i * n + i]) && a[i * n + i] > 0;
    return ACCEL_OK;
}

enum accel_err accel_linalg_solve_lower(const double *l, size_t n, double *b, size_t m)
{
    ACCEL_TRY(check(n, m, 0));
    if (n && m)
        lib.dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasNoTrans, CblasNonUnit, (int)n, (int)m,
                  1, l, (int)n, b, (int)m);
    return ACCEL_OK;
}

enum accel_err accel_linalg_solve(const double *l, size_t n, double *b, size_t m)
{
    ACCEL_TRY(accel_linalg_solve_lower(l, n, b, m));
    if (n && m)
        lib.dtrsm(CblasRowMajor, CblasLeft, CblasLower, CblasTrans, CblasNonUnit, (int)n, (int)m, 1,
                  l, (int)n, b, (int)m);
    return ACCEL_OK;
}

enum accel_err accel_linalg_ridge(bool *definite, double *g, const double *ridge, double *c,
                                  size_t n, size_t m)
{
    for (size_t i = 0; i < n; i++)
        g[i * n + i] += ridge[i];
    ACCEL_TRY(accel_linalg_cholesky(definite, g, n));
    return *definite ? accel_linalg_solve(g, n, c, m) : ACCEL_OK;
}
