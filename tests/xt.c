/* A stand-in for libcublas with cuBLAS-XT, which multiplies plain products of host operands and tells what it was asked
 * for; the call that XT_FAILS names answers 7. With XT_NONE it has none of that. */
#define EXPORT __attribute__((visibility("default")))

#ifndef XT_NONE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char told[1024];

static void tell(const char *word)
{
    snprintf(told + strlen(told), sizeof told - strlen(told), " %s", word);
}

static int answer(const char *call)
{
    const char *fails = getenv("XT_FAILS");
    return fails && strcmp(fails, call) == 0 ? 7 : 0;
}

/* Returns what was asked for since the last time. */
EXPORT const char *xt_told(void);
const char *xt_told(void)
{
    static char last[sizeof told];
    memcpy(last, told, sizeof told);
    told[0] = 0;
    return last;
}

EXPORT int cublasXtCreate(void **handle);
int cublasXtCreate(void **handle)
{
    *handle = told;
    tell("create");
    return answer("create");
}

EXPORT int cublasXtDestroy(void *handle);
int cublasXtDestroy(void *handle)
{
    tell(handle == told ? "destroy" : "another handle");
    return answer("destroy");
}

static void tell_number(int number)
{
    char digits[16];
    snprintf(digits, sizeof digits, "%d", number);
    tell(digits);
}

EXPORT int cublasXtDeviceSelect(void *handle, int count, const int *devices);
int cublasXtDeviceSelect(void *handle, int count, const int *devices)
{
    tell(handle == told ? "devices" : "another handle");
    for (int i = 0; i < count; i++)
        tell_number(devices[i]);
    return answer("devices");
}

EXPORT int cublasXtSetBlockDim(void *handle, int block);
int cublasXtSetBlockDim(void *handle, int block)
{
    tell(handle == told ? "block" : "another handle");
    tell_number(block);
    return answer("block");
}

EXPORT int cublasXtSgemm(void *handle, int trans_a, int trans_b, size_t m, size_t n, size_t k, const float *alpha,
                         const float *a, size_t lda, const float *b, size_t ldb, const float *beta, float *c,
                         size_t ldc);
int cublasXtSgemm(void *handle, int trans_a, int trans_b, size_t m, size_t n, size_t k, const float *alpha,
                  const float *a, size_t lda, const float *b, size_t ldb, const float *beta, float *c, size_t ldc)
{
    tell(handle == told ? "sgemm" : "another handle");
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < n; j++) {
            float sum = 0.0f;
            for (size_t p = 0; p < k; p++)
                sum += a[trans_a ? i * lda + p : p * lda + i] * b[trans_b ? p * ldb + j : j * ldb + p];
            c[j * ldc + i] = *alpha * sum + (*beta == 0.0f ? 0.0f : *beta * c[j * ldc + i]);
        }
    return answer("sgemm");
}
#else
EXPORT int xt_none(void);
int xt_none(void)
{
    return 0;
}
#endif
