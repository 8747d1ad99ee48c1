/* A recording stand-in for libcublas and libcublasLt: every call returns 100 plus the entry's number, so that a test
 * can tell who answered, and the getters report what the test put into the handle. */
#include "fake_cublas.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

int fake_calls[FAKE_ENTRIES];

EXPORT int *fake_cublas_calls(void);
int *fake_cublas_calls(void)
{
    return fake_calls;
}

/* What cuBLAS does within a call, where a test has said it. */
typedef void within_function(void);
static within_function *within;

EXPORT void fake_cublas_within(within_function *what);
void fake_cublas_within(within_function *what)
{
    within = what;
}

/* Whether a handle or descriptor was read since the last product, as the drop-in reads it before it hands a call on.
 * With FAKE_CUBLAS_TELLS such a call is answered otherwise, by 1000 more. With FAKE_CUBLAS_EMPTY a product of no rows
 * is a success, as it may be with cuBLAS itself. */
static int was_read;

static int answer_of(int number, const char *name, int rows)
{
    int more = was_read && getenv("FAKE_CUBLAS_TELLS") ? 1000 : 0;
    was_read = 0;
    return rows == 0 && !strstr(name, "Lt") && getenv("FAKE_CUBLAS_EMPTY") ? 0 : 100 + number + more;
}

#define RECORD(number, name)                                                                                           \
    EXPORT int name(const void *handle, int trans_a, int trans_b, int rows);                                           \
    int name(const void *handle, int trans_a, int trans_b, int rows)                                                   \
    {                                                                                                                  \
        (void)handle, (void)trans_a, (void)trans_b;                                                                    \
        fake_calls[number]++;                                                                                          \
        if (within)                                                                                                    \
            within();                                                                                                  \
        return answer_of(number, #name, rows);                                                                         \
    }
FAKE_CUBLAS(RECORD)

EXPORT int cublasGetStream_v2(const fake_handle *handle, void **stream);
int cublasGetStream_v2(const fake_handle *handle, void **stream)
{
    was_read = 1;
    if (!handle)
        return 1;
    *stream = handle->stream;
    return 0;
}

EXPORT int cublasGetPointerMode_v2(const fake_handle *handle, int *mode);
int cublasGetPointerMode_v2(const fake_handle *handle, int *mode)
{
    was_read = 1;
    *mode = handle->pointer_mode;
    return 0;
}

EXPORT int cublasGetMathMode(const fake_handle *handle, int *math);
int cublasGetMathMode(const fake_handle *handle, int *math)
{
    *math = handle->math_mode;
    return 0;
}

EXPORT int cublasCreate_v2(fake_handle **handle);
int cublasCreate_v2(fake_handle **handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? 0 : 3;
}

EXPORT int cublasDestroy_v2(fake_handle *handle);
int cublasDestroy_v2(fake_handle *handle)
{
    free(handle);
    return 0;
}

EXPORT int cublasSetStream_v2(fake_handle *handle, void *stream);
int cublasSetStream_v2(fake_handle *handle, void *stream)
{
    handle->stream = stream;
    return 0;
}

EXPORT int cublasSetPointerMode_v2(fake_handle *handle, int mode);
int cublasSetPointerMode_v2(fake_handle *handle, int mode)
{
    handle->pointer_mode = mode;
    return 0;
}

/* The driver's events, for the drop-in's report (RUNG_LIBCUDA): the i-th that is recorded is i * i / 8 ms old. */
static int recorded;

EXPORT int cuEventCreate(float **event, unsigned flags);
int cuEventCreate(float **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof **event);
    return *event ? 0 : 2;
}

EXPORT int cuEventRecord(float *event, void *stream);
int cuEventRecord(float *event, void *stream)
{
    (void)stream;
    *event = (float)(recorded * recorded) / 8;
    recorded++;
    return 0;
}

EXPORT int cuEventSynchronize(float *event);
int cuEventSynchronize(float *event)
{
    return event ? 0 : 1;
}

EXPORT int cuEventElapsedTime(float *ms, const float *from, const float *to);
int cuEventElapsedTime(float *ms, const float *from, const float *to)
{
    *ms = *to - *from;
    return 0;
}

EXPORT int cuStreamIsCapturing(void *stream, int *capturing);
int cuStreamIsCapturing(void *stream, int *capturing)
{
    *capturing = stream == (void *)(uintptr_t)FAKE_CAPTURING;
    return 0;
}

/* A descriptor or layout is an array of 64 values, indexed by attribute. */
enum { ATTRIBUTES = 64, COMPUTE = 0, SCALE = 1, ROWS = 2, COLUMNS = 3, LD = 4, EPILOGUE = 7, BIAS_TYPE = 26 };

EXPORT int cublasLtMatmulDescCreate(int64_t **v, int compute, int scale);
int cublasLtMatmulDescCreate(int64_t **v, int compute, int scale)
{
    *v = calloc(ATTRIBUTES, sizeof **v);
    if (!*v)
        return 3;
    (*v)[COMPUTE] = compute;
    (*v)[SCALE] = scale;
    (*v)[EPILOGUE] = 1;
    (*v)[BIAS_TYPE] = -1;
    return 0;
}

EXPORT int cublasLtMatrixLayoutCreate(int64_t **v, int type, uint64_t rows, uint64_t columns, int64_t ld);
int cublasLtMatrixLayoutCreate(int64_t **v, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    *v = calloc(ATTRIBUTES, sizeof **v);
    if (!*v)
        return 3;
    (*v)[0] = type;
    (*v)[ROWS] = (int64_t)rows;
    (*v)[COLUMNS] = (int64_t)columns;
    (*v)[LD] = ld;
    return 0;
}

static int set(int64_t *values, int attribute, const void *value, size_t bytes)
{
    if (attribute < 0 || attribute >= ATTRIBUTES || bytes > 8)
        return 7;
    values[attribute] = 0;
    memcpy(&values[attribute], value, bytes);
    return 0;
}

EXPORT int cublasLtMatmulDescSetAttribute(int64_t *v, int attribute, const void *value, size_t bytes);
int cublasLtMatmulDescSetAttribute(int64_t *v, int attribute, const void *value, size_t bytes)
{
    return set(v, attribute, value, bytes);
}

EXPORT int cublasLtMatrixLayoutSetAttribute(int64_t *v, int attribute, const void *value, size_t bytes);
int cublasLtMatrixLayoutSetAttribute(int64_t *v, int attribute, const void *value, size_t bytes)
{
    return set(v, attribute, value, bytes);
}

EXPORT int cublasLtMatmulDescDestroy(int64_t *v);
int cublasLtMatmulDescDestroy(int64_t *v)
{
    free(v);
    return 0;
}

EXPORT int cublasLtMatrixLayoutDestroy(int64_t *v);
int cublasLtMatrixLayoutDestroy(int64_t *v)
{
    free(v);
    return 0;
}

static int get(const int64_t *values, int attribute, void *out, size_t bytes, size_t *written)
{
    was_read = 1;
    if (!values || attribute < 0 || attribute >= ATTRIBUTES || bytes > 8)
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
