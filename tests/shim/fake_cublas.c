/* A recording stand-in for libcublas and libcublasLt: every call returns 100 plus the entry's number, so that a test
 * can tell who answered, and the getters report what the test put into the handle. */
#include "fake_cublas.h"

#include <string.h>

#define EXPORT __attribute__((visibility("default")))

int fake_calls[FAKE_ENTRIES];

EXPORT int *fake_cublas_calls(void);
int *fake_cublas_calls(void)
{
    return fake_calls;
}

#define RECORD(number, name)                                                                                           \
    EXPORT int name(void);                                                                                             \
    int name(void)                                                                                                     \
    {                                                                                                                  \
        fake_calls[number]++;                                                                                          \
        return 100 + number;                                                                                           \
    }
FAKE_CUBLAS(RECORD)

EXPORT int cublasGetStream_v2(const fake_handle *handle, void **stream);
int cublasGetStream_v2(const fake_handle *handle, void **stream)
{
    if (!handle)
        return 1;
    *stream = handle->stream;
    return 0;
}

EXPORT int cublasGetPointerMode_v2(const fake_handle *handle, int *mode);
int cublasGetPointerMode_v2(const fake_handle *handle, int *mode)
{
    *mode = handle->pointer_mode;
    return 0;
}

EXPORT int cublasGetMathMode(const fake_handle *handle, int *math);
int cublasGetMathMode(const fake_handle *handle, int *math)
{
    *math = handle->math_mode;
    return 0;
}

/* A descriptor or layout is an array of 64 values, indexed by attribute. */
static int get(const int64_t *values, int attribute, void *out, size_t bytes, size_t *written)
{
    if (!values || attribute < 0 || attribute >= 64 || bytes > 8)
        return 7;
    memcpy(out, &values[attribute], bytes);
    *written = bytes;
    return 0;
}

EXPORT int cublasLtMatmulDescGetAttribute(const int64_t *v, int attribute, void *out, size_t bytes, size_t *written);
int cublasLtMatmulDescGetAttribute(const int64_t *v, int attribute, void *out, size_t bytes, size_t *written)
{
    return get(v, attribute, out, bytes, written);
}

EXPORT int cublasLtMatrixLayoutGetAttribute(const int64_t *v, int attribute, void *out, size_t bytes, size_t *written);
int cublasLtMatrixLayoutGetAttribute(const int64_t *v, int attribute, void *out, size_t bytes, size_t *written)
{
    return get(v, attribute, out, bytes, written);
}
