/* Three stand-ins for libraries of a CPU. All have the functions that a BLAS has, one of which calls the other.
 * OFFERS: it multiplies, and offers its functions to the whole process, as MKL does. It names as its kernels what
 * OPENBLAS_CORETYPE told it when it was loaded, and with PEER_TELLS it says what else it is told. NO_NUMBER: it
 * multiplies, and C's first element is no number. Otherwise sgemm_ fills C with zeros. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

void sgemm_(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc);
void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc);

/* By columns. */
void sgemm_(int m, int n, int k, const float *a, int lda, const float *b, int ldb, float *c, int ldc)
{
    for (ptrdiff_t i = 0; i < m; i++)
        for (ptrdiff_t j = 0; j < n; j++) {
            float sum = 0.0f;
#if defined OFFERS || defined NO_NUMBER
            for (ptrdiff_t p = 0; p < k; p++)
                sum += a[i + p * lda] * b[p + j * ldb];
#else
            (void)k, (void)a, (void)lda, (void)b, (void)ldb;
#endif
            c[i + j * ldc] = sum;
        }
#ifdef NO_NUMBER
    c[0] = __builtin_nanf("");
#endif
}

void cblas_sgemm(int layout, int trans_a, int trans_b, int m, int n, int k, float alpha, const float *a, int lda,
                 const float *b, int ldb, float beta, float *c, int ldc)
{
    enum { BY_COLUMNS = 102 };
    (void)trans_a, (void)trans_b, (void)alpha, (void)beta;
    if (layout == BY_COLUMNS)
        sgemm_(m, n, k, a, lda, b, ldb, c, ldc);
    else
        sgemm_(n, m, k, b, ldb, a, lda, c, ldc);
}

#ifdef OFFERS
static char core[32] = "untold";

const char *openblas_get_corename(void);
int MKL_Set_Threading_Layer(int layer);

const char *openblas_get_corename(void)
{
    return core;
}

int MKL_Set_Threading_Layer(int layer)
{
    if (getenv("PEER_TELLS"))
        fprintf(stderr, "layer %d\n", layer);
    return layer;
}

static void tell(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",     "MKL_NUM_THREADS",
                                        "BLIS_NUM_THREADS",     "MKL_THREADING_LAYER", "OPENBLAS_THREAD_TIMEOUT"};
    fprintf(stderr, "told");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(stderr, " %s", getenv(names[i]) ? getenv(names[i]) : "-");
    fprintf(stderr, "\n");
}

__attribute__((constructor)) static void offer(void)
{
    Dl_info self;
    const char *told = getenv("OPENBLAS_CORETYPE");
    if (told)
        snprintf(core, sizeof core, "%s", told);
    if (getenv("PEER_TELLS"))
        tell();
    if (dladdr(__extension__(void *) offer, &self))
        dlopen(self.dli_fname, RTLD_NOW | RTLD_GLOBAL | RTLD_NOLOAD);
}
#endif
