/* A library that stands for one version of cuBLAS, or of cuBLASLt: its function says which. */
#define EXPORT __attribute__((visibility("default")))

#ifdef LT
EXPORT int cublasLtMatmul(void);
int cublasLtMatmul(void)
{
    return 1000 + VERSION;
}
#else
EXPORT int cublasSgemm_v2(void);
int cublasSgemm_v2(void)
{
    return VERSION;
}
#if VERSION == 12
EXPORT int cublasOnlyIn12(void);
int cublasOnlyIn12(void)
{
    return VERSION;
}
#endif
#endif
