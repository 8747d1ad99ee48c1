/* A plugin that is linked against cuBLAS; program_cublas opens it with RTLD_DEEPBIND. */
int cublasSgemm_v2(void *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);

__attribute__((visibility("default"))) int plugin_sgemm(void *handle, int ta, int tb, int m, int n, int k,
                                                        const float *alpha, const float *a, int lda, const float *b,
                                                        int ldb, const float *beta, float *c, int ldc);
int plugin_sgemm(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda,
                 const float *b, int ldb, const float *beta, float *c, int ldc)
{
    return cublasSgemm_v2(handle, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
