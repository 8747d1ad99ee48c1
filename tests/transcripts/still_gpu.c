/* Stand-ins for what a GPU's machine has beside its driver, for transcripts, with the lens as the GPU: NVML, whose
 * clocks and reasons follow a pattern, unless STILL_NVML_REASONS says which reasons, and of which the call that
 * STILL_NVML_FAILS names fails; cuBLAS, which adds in a float, and in TF32 where that is set; cuBLASLt, which has
 * candidates, of which one is refused; and CUB's sum. Products of m = 77 they do not support, those of m = 78 fail.
 * What is left open when they are closed they tell.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNSUPPORTED = 15, FAILED = 14, TF32 = 3 };

#define EXPORT __attribute__((visibility("default")))
#define CALL(name, ...)                                                                                                \
    EXPORT int name(__VA_ARGS__);                                                                                      \
    int name(__VA_ARGS__)

/* The still machine's clock goes on by this. */
static void take_time(double us)
{
    static void (*work)(double);
    if (!work)
        work = (void (*)(double))(uintptr_t)dlsym(RTLD_DEFAULT, "still_work");
    if (work)
        work(us);
}

/* ---- what is opened and made is there until it is closed and given back ---- */

static int there;

static void *make(size_t count, size_t bytes)
{
    there++;
    return calloc(count, bytes);
}

static int give_back(void *at)
{
    there -= at != NULL;
    free(at);
    return 0;
}

__attribute__((destructor)) static void end(void)
{
    if (there != 0)
        fprintf(stderr, "%d of what NVML and cuBLAS opened and made is still there\n", there);
}

/* ---- NVML ---- */

static unsigned looks;

static int fails(const char *name)
{
    const char *which = getenv("STILL_NVML_FAILS");
    return which && strcmp(which, name) == 0;
}

CALL(nvmlInit_v2, void)
{
    if (fails(__func__))
        return 1;
    there++;
    return 0;
}

CALL(nvmlShutdown, void)
{
    there--;
    return fails(__func__);
}

CALL(nvmlDeviceGetHandleByPciBusId_v2, const char *bus, void **device)
{
    if (fails(__func__))
        return 1;
    *device = &looks;
    return bus[0] == 0;
}

CALL(nvmlDeviceGetClockInfo, void *device, int type, unsigned *mhz)
{
    if (fails(__func__))
        return 1;
    *mhz = 1500 + 15 * (++looks % 7) + 1000 * (unsigned)(type != 1);
    return device == NULL;
}

CALL(nvmlDeviceGetPowerUsage, void *device, unsigned *milliwatts)
{
    if (fails(__func__))
        return 1;
    *milliwatts = 400000 + 12345 * (looks % 5);
    return device == NULL;
}

CALL(nvmlDeviceGetTemperature, void *device, int type, unsigned *celsius)
{
    if (fails(__func__))
        return 1;
    *celsius = 50 + (unsigned)type;
    return device == NULL;
}

CALL(nvmlDeviceGetCurrentClocksThrottleReasons, void *device, unsigned long long *reasons)
{
    if (fails(__func__))
        return 1;
    static const unsigned long long pattern[] = {0, 0x4, 0, 0x8, 0x1, 0x20, 0x4, 0x40, 0x2, 0x80, 0x10};
    const char *always = getenv("STILL_NVML_REASONS");
    *reasons = always ? strtoull(always, NULL, 0) : pattern[looks % 11];
    return device == NULL;
}

CALL(nvmlSystemGetDriverVersion, char *text, unsigned bytes)
{
    if (fails(__func__))
        return 1;
    snprintf(text, bytes, "590.12");
    return 0;
}

/* ---- products ---- */

typedef struct product {
    int trans_a, trans_b, how; /* how: 0 in a float, 3 in TF32, 1 in a double */
    int64_t m, n, k, lda, ldb, ldc;
} product;

static float rounded(float x, int how)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits &= how == TF32 ? 0xffffe000u : 0xffffffffu;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

static int multiply(const product *s, float alpha, const float *a, const float *b, float beta, float *c)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            float chain = 0.0f;
            double sum = 0.0;
            for (int64_t p = 0; p < s->k; p++) {
                float x = rounded(s->trans_a ? a[p + i * s->lda] : a[i + p * s->lda], s->how);
                float y = rounded(s->trans_b ? b[j + p * s->ldb] : b[p + j * s->ldb], s->how);
                chain += x * y;
                sum += (double)x * y;
            }
            float *at = &c[i + j * s->ldc], result = alpha * (s->how == 1 ? (float)sum : chain);
            *at = beta == 0.0f ? result : result + beta * *at;
        }
    take_time(4.0 + 2.0 * (double)s->m * (double)s->n * (double)s->k /
                        (s->how == 0   ? 150.0
                         : s->how == 1 ? 250.0
                                       : 400.0));
    return s->m == 77 ? UNSUPPORTED : s->m == 78 ? FAILED : 0;
}

/* ---- cuBLAS ---- */

CALL(cublasCreate_v2, void **handle)
{
    *handle = make(1, sizeof(int));
    return 0;
}

CALL(cublasDestroy_v2, void *handle)
{
    return give_back(handle);
}

CALL(cublasGetVersion_v2, void *handle, int *version)
{
    *version = 130702;
    return handle == NULL;
}

CALL(cublasSetStream_v2, void *handle, void *stream)
{
    (void)stream;
    return handle == NULL;
}

CALL(cublasSetMathMode, int *handle, int mode)
{
    *handle = mode;
    return 0;
}

CALL(cublasSgemm_v2_64, int *handle, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const float *alpha,
     const float *a, int64_t lda, const float *b, int64_t ldb, const float *beta, float *c, int64_t ldc)
{
    const product s = {trans_a, trans_b, *handle, m, n, k, lda, ldb, ldc};
    return multiply(&s, *alpha, a, b, *beta, c);
}

CALL(cublasSgemmStridedBatched_64, int *handle, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k,
     const float *alpha, const float *a, int64_t lda, long long stride_a, const float *b, int64_t ldb,
     long long stride_b, const float *beta, float *c, int64_t ldc, long long stride_c, int64_t batch)
{
    const product s = {trans_a, trans_b, *handle, m, n, k, lda, ldb, ldc};
    int status = 0;
    for (int64_t e = 0; e < batch && status == 0; e++)
        status = multiply(&s, *alpha, a + e * stride_a, b + e * stride_b, *beta, c + e * stride_c);
    return status;
}

CALL(cublasSgemmBatched_64, int *handle, int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const float *alpha,
     const float *const *a, int64_t lda, const float *const *b, int64_t ldb, const float *beta, float *const *c,
     int64_t ldc, int64_t batch)
{
    const product s = {trans_a, trans_b, *handle, m, n, k, lda, ldb, ldc};
    int status = 0;
    for (int64_t e = 0; e < batch && status == 0; e++)
        status = multiply(&s, *alpha, a[e], b[e], *beta, c[e]);
    return status;
}

/* ---- cuBLAS-XT, which is fastest with blocks of 2048 ---- */

CALL(cublasXtCreate, int **handle)
{
    *handle = make(2, sizeof **handle);
    return 0;
}

CALL(cublasXtDestroy, int *handle)
{
    return give_back(handle);
}

CALL(cublasXtDeviceSelect, int *handle, int count, const int *devices)
{
    handle[0] = count;
    return devices[count - 1] != count - 1;
}

CALL(cublasXtSetBlockDim, int *handle, int block)
{
    handle[1] = block;
    return 0;
}

CALL(cublasXtSgemm, const int *handle, int trans_a, int trans_b, size_t m, size_t n, size_t k, const float *alpha,
     const float *a, size_t lda, const float *b, size_t ldb, const float *beta, float *c, size_t ldc)
{
    const product s = {trans_a,      trans_b,      0,           (int64_t)m, (int64_t)n, (int64_t)k,
                       (int64_t)lda, (int64_t)ldb, (int64_t)ldc};
    take_time(handle[1] == 2048 ? 100.0 / handle[0] : 200.0 / handle[0]);
    return multiply(&s, *alpha, a, b, *beta, c);
}

/* ---- cuBLASLt ---- */

typedef struct candidate {
    uint64_t algo[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} candidate;

typedef struct layout {
    uint64_t rows, columns;
    int64_t ld, stride;
    int batch;
} layout;

EXPORT size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return 130703;
}

CALL(cublasLtCreate, void **handle)
{
    *handle = make(1, sizeof(int));
    return 0;
}

CALL(cublasLtDestroy, void *handle)
{
    return give_back(handle);
}

CALL(cublasLtMatmulDescCreate, int **desc, int compute, int scale)
{
    *desc = make(2, sizeof **desc);
    return compute != 68 || scale != 0;
}

CALL(cublasLtMatmulDescSetAttribute, int *desc, int attribute, const int *value, size_t bytes)
{
    desc[attribute - 3] = *value;
    return bytes != sizeof *value;
}

CALL(cublasLtMatmulDescDestroy, void *desc)
{
    return give_back(desc);
}

CALL(cublasLtMatrixLayoutCreate, layout **made, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    *made = make(1, sizeof **made);
    **made = (layout){rows, columns, ld, 0, 1};
    return type != 0;
}

CALL(cublasLtMatrixLayoutSetAttribute, layout *of, int attribute, const void *value, size_t bytes)
{
    memcpy(attribute == 5 ? (void *)&of->batch : (void *)&of->stride, value, bytes);
    return 0;
}

CALL(cublasLtMatrixLayoutDestroy, void *of)
{
    return give_back(of);
}

CALL(cublasLtMatmulPreferenceCreate, void **preference)
{
    *preference = make(1, sizeof(int));
    return 0;
}

CALL(cublasLtMatmulPreferenceSetAttribute, void *preference, int attribute, const void *value, size_t bytes)
{
    (void)value, (void)bytes;
    return preference == NULL || attribute != 1;
}

CALL(cublasLtMatmulPreferenceDestroy, void *preference)
{
    return give_back(preference);
}

CALL(cublasLtMatmulAlgoGetHeuristic, void *handle, void *desc, void *a, void *b, void *c, const layout *d,
     void *preference, int most, candidate *candidates, int *found)
{
    (void)desc, (void)a, (void)b, (void)c, (void)preference;
    memset(candidates, 0, (size_t)most * sizeof *candidates);
    *found = d->rows == 79 ? 0 : most < 3 ? most : 3;
    for (int i = 0; i < *found; i++)
        candidates[i].algo[0] = (uint64_t)i;
    candidates[0].state = UNSUPPORTED;
    return handle == NULL;
}

CALL(cublasLtMatmul, void *handle, const int *desc, const float *alpha, const float *a, const layout *of_a,
     const float *b, const layout *of_b, const float *beta, const float *c, const layout *of_c, float *d,
     const layout *of_d, const uint64_t *algo, void *workspace, size_t bytes, void *stream)
{
    (void)handle, (void)c, (void)of_c, (void)workspace, (void)bytes, (void)stream;
    const product s = {desc[0],
                       desc[1],
                       (int)algo[0] % 2,
                       (int64_t)of_d->rows,
                       (int64_t)of_d->columns,
                       (int64_t)(desc[0] ? of_a->rows : of_a->columns),
                       of_a->ld,
                       of_b->ld,
                       of_d->ld};
    int status = 0;
    for (int e = 0; e < of_d->batch && status == 0; e++)
        status = multiply(&s, *alpha, a + e * of_a->stride, b + e * of_b->stride, *beta, d + e * of_d->stride);
    return status;
}

/* ---- CUB ---- */

EXPORT int rung_cub_sum(void *workspace, size_t *bytes, const float *x, float *result, int64_t n, void *stream);
int rung_cub_sum(void *workspace, size_t *bytes, const float *x, float *result, int64_t n, void *stream)
{
    size_t needed = (size_t)n / 8 + 16;
    float sum = 0.0f;
    (void)stream;
    if (!workspace) {
        *bytes = needed;
        return 0;
    }
    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    *result = sum;
    take_time(4.0 + 4.0 * (double)n / 600.0);
    return *bytes < needed ? 1 : n == 77 ? 2 : 0;
}
