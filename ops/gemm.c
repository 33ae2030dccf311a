/* gemm.c - the one caller of sgemm. The library is opened by name when a device wants it, so that
 * programs that run no model do not load it. Its own sums depend on its blocks and threads: plain
 * kernels, which give the same bits everywhere, do not use it. */
#include "ops/gemm.h"

#include <cblas.h>
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "base/threads.h"

static __typeof__(cblas_sgemm) *sgemm;
static void (*set_threads)(int);
static pthread_once_t opened = PTHREAD_ONCE_INIT;

static void open_library(void)
{
    void *so = dlopen("libblas.so.3", RTLD_NOW | RTLD_LOCAL);
    void *f = so ? dlsym(so, "cblas_sgemm") : NULL;
    void *set = so ? dlsym(so, "openblas_set_num_threads") : NULL;
    memcpy(&sgemm, &f, sizeof f);
    memcpy(&set_threads, &set, sizeof set);
}

bool accel_gemm_open(void)
{
    pthread_once(&opened, open_library);
    if (set_threads)
        set_threads(accel_threads_get());
    return sgemm != NULL;
}

void accel_gemm_run(const struct accel_gemm *g, const float *a, const float *b, float *c)
{
    sgemm(CblasRowMajor, g->trans_a ? CblasTrans : CblasNoTrans,
          g->trans_b ? CblasTrans : CblasNoTrans, (int)g->M, (int)g->N, (int)g->K, g->alpha, a,
          (int)g->lda, b, (int)g->ldb, g->beta, c, (int)g->ldc);
}
