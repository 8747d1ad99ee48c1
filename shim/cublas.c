/* librung_cublas.so: answers cuBLAS's FP32 products with Rung and hands every other call to the real library.
 * Translates arguments, nothing more: what Rung refuses, for whatever reason, the real library answers, so that a bad
 * argument gets cuBLAS's own status. RUNG_MATH=accurate|strict|fast, RUNG_DISABLE=1, RUNG_REPORT=FILE|stderr. */
#define _GNU_SOURCE
#include "cublas_abi.h"
#include "cublas_real.h"
#include "report.h"
#include "rung.h"
#include "settings.h"

#include "core/wrote.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEVICES = 16 };

/* A thread keeps one Rung context a GPU: contexts are cheap, and no two threads ever share one. */
typedef struct thread_state {
    rung_context *contexts[MOST_DEVICES];
    int inside;       /* a call was handed on: what the real library calls of itself is not ours to answer */
    int joins_graphs; /* XLA is in this process: it makes what it records part of another graph */
} thread_state;

static int disabled;
static rung_math chosen_math;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t leaving;
static int has_key; /* else contexts stay when their threads end */
static _Thread_local thread_state self;

static void close_thread(void *state)
{
    thread_state *mine = state;
    for (int i = 0; i < MOST_DEVICES; i++) {
        if (mine->contexts[i])
            report_context_closing(mine->contexts[i]);
        rung_context_destroy(mine->contexts[i]);
    }
    memset(mine, 0, sizeof *mine);
}

static void read_settings(void)
{
    static const char *const flags[] = {"RUNG_DISABLE", "RUNG_REPORT_TIME", "RUNG_REPORT_COMPARE"};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        setting_tell_flag("librung_cublas.so", flags[i]);
    disabled = setting_flag("RUNG_DISABLE");
    chosen_math = setting_math("librung_cublas.so", RUNG_ACCURATE); /* strict on a GPU without Hopper's tensor cores */
    has_key = pthread_key_create(&leaving, close_thread) == 0;
}

/* For programs that compare: 0 lets cuBLAS answer everything from here on, 1 turns Rung on again. */
RUNG_API void rung_cublas_answer(int on);
void rung_cublas_answer(int on)
{
    pthread_once(&once, read_settings);
    __atomic_store_n(&disabled, !on, __ATOMIC_RELAXED);
}

static int current_device(void)
{
    typedef int get_device(int *);
    get_device *ask = RUNG_FOUND(get_device *, driver_function("cuCtxGetDevice"));
    int device = -1;
    return ask && ask(&device) == 0 ? device : -1;
}

static int is_hopper(int device)
{
    typedef int get_attribute(int *, int, int);
    enum { COMPUTE_CAPABILITY_MAJOR = 75 };
    get_attribute *ask = RUNG_FOUND(get_attribute *, driver_function("cuDeviceGetAttribute"));
    int major = 0;
    return ask && ask(&major, COMPUTE_CAPABILITY_MAJOR, device) == 0 && major == 9;
}

static int is_xla(struct dl_phdr_info *library, size_t bytes, void *argument)
{
    (void)bytes, (void)argument;
    return library->dlpi_name && strstr(library->dlpi_name, "xla_cuda_plugin") != NULL;
}

/* Returns whether the stream records a graph that may become part of another one. That may not allocate, nor have
 * memory of its own, as a product's workspace is there: the driver refuses it, and the program fails. */
static int records_a_part(void *stream)
{
    typedef int is_capturing(void *, int *);
    if (!self.joins_graphs)
        return 0;
    is_capturing *ask = RUNG_FOUND(is_capturing *, driver_function("cuStreamIsCapturing"));
    int capturing = 0;
    return ask && ask(stream, &capturing) == 0 && capturing;
}

/* Returns the calling thread's context for the current GPU, set to this stream and math; NULL with the reason. */
static rung_context *context_for(void *stream, rung_math math, const char **reason)
{
    int device = current_device();
    if (device < 0 || device >= MOST_DEVICES) {
        *reason = "no current GPU";
        return NULL;
    }
    rung_context **context = &self.contexts[device];
    if (!*context) {
        rung_config config;
        rung_config_init(&config);
        config.device = device;
        config.math = math;
        config.pointers = RUNG_POINTERS_DEVICE;
        config.stream = stream;
        if (rung_context_create(context, &config) != RUNG_SUCCESS) {
            *reason = "Rung cannot open this GPU";
            return NULL;
        }
        if (has_key)
            pthread_setspecific(leaving, &self);
        self.joins_graphs |= dl_iterate_phdr(is_xla, NULL);
        report_context(*context);
    } else if (rung_context_set_stream(*context, stream) != RUNG_SUCCESS ||
               rung_context_set_math(*context, math) != RUNG_SUCCESS) {
        *reason = "Rung refuses this stream or math";
        return NULL;
    }
    return *context;
}

/* Returns whether this call is Rung's to answer: neither turned off nor made by the real library itself. */
static int is_ours(void)
{
    pthread_once(&once, read_settings);
    return !__atomic_load_n(&disabled, __ATOMIC_RELAXED) && !self.inside;
}

/* Why a product is not handed on though Rung has failed: cuBLAS would apply beta to what is half done. */
static const char half_done[] = "not asked, as C may have been written when Rung failed";

/* Runs the product. NULL: done; else why it is handed on, or half_done. */
static const char *run(const rung_gemm *gemm, void *stream, rung_math math)
{
    const char *reason = NULL;
    rung_context *context = context_for(stream, math, &reason);
    if (!context)
        return reason;
    const int is_part = records_a_part(stream);
    if (is_part)
        rung_context_set_workspace_limit(context, -1);
    rung_status status = rung_gemm_run(context, gemm);
    if (is_part)
        rung_context_set_workspace_limit(context, 0);
    if (status != RUNG_SUCCESS && (gemm->beta_device || gemm->beta != 0.0f) && rung_context_wrote(context))
        return half_done;
    if (status != RUNG_SUCCESS)
        return status == RUNG_INVALID_ARGUMENT ? "an argument Rung refuses" : rung_status_name(status);
    report_kernel(rung_last_kernel(context));
    return NULL;
}

static const char *read_scalars(rung_gemm *gemm, const void *alpha, const void *beta, int mode)
{
    if (!alpha || !beta)
        return "alpha or beta is NULL";
    if (mode == CUBLAS_ON_DEVICE) {
        gemm->alpha_device = alpha;
        gemm->beta_device = beta;
    } else {
        gemm->alpha = *(const float *)alpha;
        gemm->beta = *(const float *)beta;
    }
    return NULL;
}

static const char *read_trans(rung_gemm *gemm, int trans_a, int trans_b)
{
    if (trans_a < CUBLAS_N || trans_a > CUBLAS_C || trans_b < CUBLAS_N || trans_b > CUBLAS_C)
        return "an operation that is not N, T or C";
    gemm->trans_a = trans_a == CUBLAS_N ? RUNG_NO_TRANS : RUNG_TRANS;
    gemm->trans_b = trans_b == CUBLAS_N ? RUNG_NO_TRANS : RUNG_TRANS;
    return NULL;
}

/* Answers a request for FP32 emulated on tensor cores. On a Hopper GPU cuBLAS has nothing of the kind and runs its
 * plain kernels, so accurate mode is what the program asked for. On later GPUs cuBLAS does it. */
static const char *read_emulated(rung_math *math)
{
    if (!is_hopper(current_device()))
        return "the program asked for emulated FP32, which is cuBLAS's own on this GPU";
    *math = chosen_math == RUNG_STRICT ? RUNG_STRICT : RUNG_ACCURATE;
    return NULL;
}

/* Asks the handle for the stream, where the scalars are, and which math the program allows. */
static const char *ask_handle(void *handle, void **stream, int *mode, rung_math *math)
{
    typedef cublas_status get_pointer(void *, void **);
    typedef cublas_status get_int(void *, int *);
    get_pointer *get_stream = RUNG_REAL(get_pointer *, "cublasGetStream_v2");
    get_int *get_mode = RUNG_REAL(get_int *, "cublasGetPointerMode_v2");
    get_int *get_math = RUNG_REAL(get_int *, "cublasGetMathMode");
    if (!get_stream || !get_mode || !get_math)
        return "the real cuBLAS is not to be found";
    int allowed;
    if (!handle || get_stream(handle, stream) || get_mode(handle, mode) || get_math(handle, &allowed))
        return "a handle that cuBLAS refuses";
    allowed &= ~CUBLAS_MATH_NO_REDUCED_REDUCTION;
    if (allowed == CUBLAS_MATH_F32_EMULATED)
        return read_emulated(math);
    if (allowed != CUBLAS_MATH_DEFAULT && allowed != CUBLAS_MATH_PEDANTIC)
        return "the program asked for another math mode";
    *math = allowed == CUBLAS_MATH_PEDANTIC ? RUNG_STRICT : chosen_math;
    return NULL;
}

/* Types and compute type of the ...Ex calls. */
static const char *check_types(int a, int b, int c, int compute)
{
    if (a != CUBLAS_TYPE_F32 || b != CUBLAS_TYPE_F32 || c != CUBLAS_TYPE_F32)
        return "operands are not FP32";
    if (compute != CUBLAS_COMPUTE_F32 && compute != CUBLAS_COMPUTE_F32_PEDANTIC &&
        compute != CUBLAS_COMPUTE_F32_EMULATED)
        return "the compute type is not FP32";
    return NULL;
}

/* Reads the compute type, which says more than the handle's math mode. */
static const char *read_compute(int compute, rung_math *math)
{
    if (compute == CUBLAS_COMPUTE_F32_EMULATED)
        return read_emulated(math);
    if (compute == CUBLAS_COMPUTE_F32_PEDANTIC)
        *math = RUNG_STRICT;
    return NULL;
}

/* Answers a call of the cublas (not cublasLt) entry points, as they all end. `reason` may already say why not. Returns
 * NULL where it is done, else why not. */
static const char *answer(const char *entry, void *handle, rung_gemm *gemm, int trans_a, int trans_b, const void *alpha,
                          const void *beta, int compute, const char *reason)
{
    void *stream = NULL;
    int mode = 0;
    rung_math math = RUNG_STRICT;
    if (!reason)
        reason = ask_handle(handle, &stream, &mode, &math);
    if (!reason)
        reason = read_trans(gemm, trans_a, trans_b);
    if (!reason)
        reason = read_scalars(gemm, alpha, beta, mode);
    if (!reason)
        reason = read_compute(compute, &math);
    report_begin(entry, gemm, stream);
    if (!reason)
        reason = run(gemm, stream, math);
    report_end(reason);
    return reason;
}

static void fill(rung_gemm *gemm, int64_t m, int64_t n, int64_t k, int64_t lda, int64_t ldb, int64_t ldc, int64_t batch)
{
    rung_gemm_init(gemm);
    gemm->m = m;
    gemm->n = n;
    gemm->k = k;
    gemm->lda = lda;
    gemm->ldb = ldb;
    gemm->ldc = ldc;
    gemm->batch = batch;
}

static void fill_single(rung_gemm *gemm, const void *a, const void *b, void *c)
{
    gemm->a = a;
    gemm->b = b;
    gemm->c = c;
}

static void fill_strided(rung_gemm *gemm, const void *a, int64_t stride_a, const void *b, int64_t stride_b, void *c,
                         int64_t stride_c)
{
    fill_single(gemm, a, b, c);
    gemm->stride_a = stride_a;
    gemm->stride_b = stride_b;
    gemm->stride_c = stride_c;
}

static void fill_arrays(rung_gemm *gemm, const void *a, const void *b, const void *c)
{
    gemm->a_array = (const float *const *)a;
    gemm->b_array = (const float *const *)b;
    gemm->c_array = (float *const *)(uintptr_t)c;
}

/* The report wants the same call timed on cuBLAS. It runs after Rung's, so what the program sees is cuBLAS's result. */
#define COMPARE(name, parameters, arguments)                                                                           \
    do {                                                                                                               \
        typedef cublas_status function_ parameters;                                                                    \
        function_ *real_ = RUNG_REAL(function_ *, name);                                                               \
        if (!real_)                                                                                                    \
            break;                                                                                                     \
        self.inside++;                                                                                                 \
        report_peer_begin();                                                                                           \
        real_ arguments;                                                                                               \
        report_peer_end();                                                                                             \
        self.inside--;                                                                                                 \
    } while (0)

/* Calls the real function of this name with the same arguments. */
#define HAND_ON(name, parameters, arguments)                                                                           \
    do {                                                                                                               \
        typedef cublas_status function_ parameters;                                                                    \
        function_ *real_ = RUNG_REAL(function_ *, name);                                                               \
        if (!real_)                                                                                                    \
            return CUBLAS_NOT_INITIALIZED;                                                                             \
        self.inside++;                                                                                                 \
        cublas_status status_ = real_ arguments;                                                                       \
        self.inside--;                                                                                                 \
        return status_;                                                                                                \
    } while (0)

#define ENTRY(name, parameters, arguments, fill_operands, batch, a_type, b_type, c_type, compute)                      \
    RUNG_API cublas_status name parameters;                                                                            \
    RUNG_API cublas_status name parameters                                                                             \
    {                                                                                                                  \
        if (is_ours()) {                                                                                               \
            rung_gemm gemm;                                                                                            \
            fill(&gemm, m, n, k, lda, ldb, ldc, batch);                                                                \
            fill_operands;                                                                                             \
            const char *reason = answer(#name, handle, &gemm, trans_a, trans_b, alpha, beta, compute,                  \
                                        check_types(a_type, b_type, c_type, compute));                                 \
            if (!reason && report_compare())                                                                           \
                COMPARE(#name, parameters, arguments);                                                                 \
            if (!reason || reason == half_done)                                                                        \
                return reason ? CUBLAS_FAILED : CUBLAS_OK;                                                             \
        }                                                                                                              \
        HAND_ON(#name, parameters, arguments);                                                                         \
    }

#define SHAPE(INT) void *handle, int trans_a, int trans_b, INT m, INT n, INT k
#define F32 CUBLAS_TYPE_F32

#define SGEMM(name, INT)                                                                                               \
    ENTRY(name,                                                                                                        \
          (SHAPE(INT), const float *alpha, const float *a, INT lda, const float *b, INT ldb, const float *beta,        \
           float *c, INT ldc),                                                                                         \
          (handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc), fill_single(&gemm, a, b, c), 1,    \
          F32, F32, F32, CUBLAS_COMPUTE_F32)
SGEMM(cublasSgemm_v2, int)
SGEMM(cublasSgemm_v2_64, int64_t)

#define SGEMM_STRIDED(name, INT)                                                                                       \
    ENTRY(                                                                                                             \
        name,                                                                                                          \
        (SHAPE(INT), const float *alpha, const float *a, INT lda, long long stride_a, const float *b, INT ldb,         \
         long long stride_b, const float *beta, float *c, INT ldc, long long stride_c, INT batch),                     \
        (handle, trans_a, trans_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc, stride_c, batch), \
        fill_strided(&gemm, a, stride_a, b, stride_b, c, stride_c), batch, F32, F32, F32, CUBLAS_COMPUTE_F32)
SGEMM_STRIDED(cublasSgemmStridedBatched, int)
SGEMM_STRIDED(cublasSgemmStridedBatched_64, int64_t)

#define SGEMM_ARRAYS(name, INT)                                                                                        \
    ENTRY(name,                                                                                                        \
          (SHAPE(INT), const float *alpha, const float *const *a, INT lda, const float *const *b, INT ldb,             \
           const float *beta, float *const *c, INT ldc, INT batch),                                                    \
          (handle, trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, batch),                             \
          fill_arrays(&gemm, a, b, c), batch, F32, F32, F32, CUBLAS_COMPUTE_F32)
SGEMM_ARRAYS(cublasSgemmBatched, int)
SGEMM_ARRAYS(cublasSgemmBatched_64, int64_t)

#define SGEMM_EX(name, INT)                                                                                            \
    ENTRY(name,                                                                                                        \
          (SHAPE(INT), const float *alpha, const void *a, int type_a, INT lda, const void *b, int type_b, INT ldb,     \
           const float *beta, void *c, int type_c, INT ldc),                                                           \
          (handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc),            \
          fill_single(&gemm, a, b, c), 1, type_a, type_b, type_c, CUBLAS_COMPUTE_F32)
SGEMM_EX(cublasSgemmEx, int)
SGEMM_EX(cublasSgemmEx_64, int64_t)

#define GEMM_EX(name, INT)                                                                                             \
    ENTRY(name,                                                                                                        \
          (SHAPE(INT), const void *alpha, const void *a, int type_a, INT lda, const void *b, int type_b, INT ldb,      \
           const void *beta, void *c, int type_c, INT ldc, int compute, int algorithm),                                \
          (handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, compute,    \
           algorithm),                                                                                                 \
          fill_single(&gemm, a, b, c), 1, type_a, type_b, type_c, compute)
GEMM_EX(cublasGemmEx, int)
GEMM_EX(cublasGemmEx_64, int64_t)

#define GEMM_STRIDED_EX(name, INT)                                                                                     \
    ENTRY(name,                                                                                                        \
          (SHAPE(INT), const void *alpha, const void *a, int type_a, INT lda, long long stride_a, const void *b,       \
           int type_b, INT ldb, long long stride_b, const void *beta, void *c, int type_c, INT ldc,                    \
           long long stride_c, INT batch, int compute, int algorithm),                                                 \
          (handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, stride_a, b, type_b, ldb, stride_b, beta, c,      \
           type_c, ldc, stride_c, batch, compute, algorithm),                                                          \
          fill_strided(&gemm, a, stride_a, b, stride_b, c, stride_c), batch, type_a, type_b, type_c, compute)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx, int)
GEMM_STRIDED_EX(cublasGemmStridedBatchedEx_64, int64_t)

#define GEMM_ARRAYS_EX(name, INT)                                                                                      \
    ENTRY(name,                                                                                                        \
          (SHAPE(INT), const void *alpha, const void *const *a, int type_a, INT lda, const void *const *b, int type_b, \
           INT ldb, const void *beta, void *const *c, int type_c, INT ldc, INT batch, int compute, int algorithm),     \
          (handle, trans_a, trans_b, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, batch,      \
           compute, algorithm),                                                                                        \
          fill_arrays(&gemm, a, b, c), batch, type_a, type_b, type_c, compute)
GEMM_ARRAYS_EX(cublasGemmBatchedEx, int)
GEMM_ARRAYS_EX(cublasGemmBatchedEx_64, int64_t)

/* cublasLtMatmul: everything is behind attributes of opaque descriptors. */

typedef cublas_status get_attribute(void *, int, void *, size_t, size_t *);

static int64_t lt_read(get_attribute *get, void *descriptor, int attribute, size_t bytes, int64_t fallback)
{
    union {
        int32_t narrow;
        int64_t wide;
    } value = {.wide = 0};
    size_t written = 0;
    if (get(descriptor, attribute, &value, bytes, &written) != CUBLAS_OK || written != bytes)
        return fallback;
    return bytes == 4 ? value.narrow : value.wide;
}

typedef struct lt_layout {
    int64_t rows, cols, ld, batch, stride, order;
} lt_layout;

static const char *lt_read_layout(get_attribute *get, void *layout, lt_layout *out)
{
    if (!layout)
        return "a layout is NULL";
    if (lt_read(get, layout, LT_TYPE, 4, -1) != CUBLAS_TYPE_F32)
        return "operands are not FP32";
    out->order = lt_read(get, layout, LT_ORDER, 4, LT_ORDER_COLUMN);
    if ((out->order != LT_ORDER_COLUMN && out->order != LT_ORDER_ROW) || lt_read(get, layout, LT_PLANE, 8, 0) != 0 ||
        lt_read(get, layout, LT_BATCH_MODE, 4, 0) != 0)
        return "a layout that is neither column- nor row-major";
    out->rows = lt_read(get, layout, LT_ROWS, 8, -1);
    out->cols = lt_read(get, layout, LT_COLS, 8, -1);
    out->ld = lt_read(get, layout, LT_LD, 8, -1);
    out->batch = lt_read(get, layout, LT_BATCH, 4, 1);
    out->stride = lt_read(get, layout, LT_STRIDE, 8, 0);
    return NULL;
}

static const char *lt_read_epilogue(get_attribute *get, void *descriptor, rung_gemm *gemm)
{
    int64_t epilogue = lt_read(get, descriptor, LT_EPILOGUE, 4, LT_PLAIN);
    if (epilogue != LT_PLAIN && epilogue != LT_RELU && epilogue != LT_BIAS && epilogue != LT_RELU_BIAS &&
        epilogue != LT_GELU && epilogue != LT_GELU_BIAS)
        return "an epilogue that Rung does not have";
    if (epilogue & LT_RELU)
        gemm->activation = RUNG_RELU;
    if (epilogue & LT_GELU)
        gemm->activation = RUNG_GELU;
    if (epilogue == LT_BIAS || epilogue == LT_RELU_BIAS || epilogue == LT_GELU_BIAS) {
        int64_t type = lt_read(get, descriptor, LT_BIAS_TYPE, 4, -1);
        if (type != -1 && type != CUBLAS_TYPE_F32)
            return "the bias is not FP32";
        gemm->bias_kind = RUNG_BIAS_PER_ROW;
        gemm->bias = (const float *)(uintptr_t)lt_read(get, descriptor, LT_BIAS_POINTER, 8, 0);
    }
    for (int scale = LT_A_SCALE; scale <= LT_AMAX_D; scale++)
        if (lt_read(get, descriptor, scale, 8, 0) != 0)
            return "scale pointers";
    return NULL;
}

static const char *lt_read_product(get_attribute *get, void *descriptor, rung_gemm *gemm, const void *alpha,
                                   const void *beta, int *compute)
{
    *compute = (int)lt_read(get, descriptor, LT_COMPUTE_TYPE, 4, -1);
    const char *reason = check_types(F32, F32, F32, *compute);
    if (!reason && lt_read(get, descriptor, LT_SCALE_TYPE, 4, -1) != CUBLAS_TYPE_F32)
        reason = "the scale type is not FP32";
    if (!reason && lt_read(get, descriptor, LT_TRANS_C, 4, 0) != CUBLAS_N)
        reason = "C is transposed";
    int64_t mode = lt_read(get, descriptor, LT_POINTER_MODE, 4, 0);
    if (!reason && mode != CUBLAS_ON_HOST && mode != CUBLAS_ON_DEVICE)
        reason = "alpha is a vector";
    if (!reason)
        reason = read_trans(gemm, (int)lt_read(get, descriptor, LT_TRANS_A, 4, 0),
                            (int)lt_read(get, descriptor, LT_TRANS_B, 4, 0));
    if (!reason)
        reason = read_scalars(gemm, alpha, beta, (int)mode);
    return reason ? reason : lt_read_epilogue(get, descriptor, gemm);
}

/* Fills in the product. D = alpha*op(A)*op(B) + beta*C is in place when beta is 0 or C is D. */
static const char *lt_fill(rung_gemm *gemm, const lt_layout *a, const lt_layout *b, const lt_layout *c,
                           const lt_layout *d, const void *c_memory, const void *d_memory)
{
    gemm->m = d->rows;
    gemm->n = d->cols;
    gemm->k = gemm->trans_a ? a->rows : a->cols;
    if ((gemm->trans_a ? a->cols : a->rows) != gemm->m || (gemm->trans_b ? b->rows : b->cols) != gemm->n ||
        (gemm->trans_b ? b->cols : b->rows) != gemm->k || a->batch != d->batch || b->batch != d->batch)
        return "layouts that do not fit together";
    if (gemm->m == 0 || gemm->n == 0)
        return "nothing to compute"; /* cublasLt calls that an error */
    int reads_c = gemm->beta_device || gemm->beta != 0.0f;
    if (reads_c && (c_memory != d_memory || c->ld != d->ld || c->stride != d->stride || c->rows != d->rows ||
                    c->cols != d->cols || c->batch != d->batch || c->order != d->order))
        return "C and D are not the same matrix";
    if (gemm->bias_kind != RUNG_NO_BIAS && (d->batch > 1 || d->order == LT_ORDER_ROW))
        return "a bias in a batch, or in row-major order";
    /* The product is made in D's order: what lies in the other one is its own transpose. */
    gemm->layout = d->order == LT_ORDER_ROW ? RUNG_ROW_MAJOR : RUNG_COL_MAJOR;
    if (a->order != d->order)
        gemm->trans_a = gemm->trans_a == RUNG_NO_TRANS ? RUNG_TRANS : RUNG_NO_TRANS;
    if (b->order != d->order)
        gemm->trans_b = gemm->trans_b == RUNG_NO_TRANS ? RUNG_TRANS : RUNG_NO_TRANS;
    gemm->lda = a->ld;
    gemm->ldb = b->ld;
    gemm->ldc = d->ld;
    gemm->batch = d->batch;
    gemm->stride_a = a->stride;
    gemm->stride_b = b->stride;
    gemm->stride_c = d->stride;
    return NULL;
}

static const char *lt_answer(void *handle, void *descriptor, const void *alpha, const void *a, void *layout_a,
                             const void *b, void *layout_b, const void *beta, const void *c, void *layout_c, void *d,
                             void *layout_d, void *stream, rung_gemm *gemm)
{
    get_attribute *of_product = RUNG_REAL(get_attribute *, "cublasLtMatmulDescGetAttribute");
    get_attribute *of_layout = RUNG_REAL(get_attribute *, "cublasLtMatrixLayoutGetAttribute");
    if (!of_product || !of_layout)
        return "the real cublasLt is not to be found";
    if (!handle || !descriptor)
        return "a handle or descriptor is NULL";
    void *const layouts[4] = {layout_a, layout_b, layout_c, layout_d};
    lt_layout read[4];
    int compute;
    const char *reason = lt_read_product(of_product, descriptor, gemm, alpha, beta, &compute);
    for (int i = 0; i < 4 && !reason; i++)
        reason = lt_read_layout(of_layout, layouts[i], &read[i]);
    if (!reason)
        reason = lt_fill(gemm, &read[0], &read[1], &read[2], &read[3], c, d);
    if (reason)
        return reason;
    fill_single(gemm, a, b, d);
    rung_math math = chosen_math;
    reason = read_compute(compute, &math);
    return reason ? reason : run(gemm, stream, math);
}

#define LT_PARAMETERS                                                                                                  \
    (void *handle, void *descriptor, const void *alpha, const void *a, void *layout_a, const void *b, void *layout_b,  \
     const void *beta, const void *c, void *layout_c, void *d, void *layout_d, const void *algorithm, void *workspace, \
     size_t workspace_bytes, void *stream)

#define LT_ARGUMENTS                                                                                                   \
    (handle, descriptor, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d, layout_d, algorithm, workspace,        \
     workspace_bytes, stream)

RUNG_API cublas_status cublasLtMatmul LT_PARAMETERS;
RUNG_API cublas_status cublasLtMatmul LT_PARAMETERS
{
    if (is_ours()) {
        rung_gemm gemm;
        rung_gemm_init(&gemm);
        report_begin("cublasLtMatmul", &gemm, stream);
        const char *reason = lt_answer(handle, descriptor, alpha, a, layout_a, b, layout_b, beta, c, layout_c, d,
                                       layout_d, stream, &gemm);
        report_end(reason);
        if (!reason && report_compare())
            COMPARE("cublasLtMatmul", LT_PARAMETERS, LT_ARGUMENTS);
        if (!reason || reason == half_done)
            return reason ? CUBLAS_FAILED : CUBLAS_OK;
    }
    HAND_ON("cublasLtMatmul", LT_PARAMETERS, LT_ARGUMENTS);
}
