/* Rung: single-precision matrix products, C = alpha*op(A)*op(B) + beta*C, on NVIDIA GPUs and CPUs.
 *
 * Every function returns a rung_status; rung_last_error() gives the sentence that goes with the last failure of the
 * calling thread. The library never prints, exits or aborts. Sizes and leading dimensions count elements.
 *
 * Threads: a context may be used by one thread at a time; different contexts share nothing that either can see, so
 * one context a thread is the simple way. Functions that differ say so. After fork() the child may keep using a CPU
 * context (its worker threads are started anew); a GPU context belongs to the process that made it. CPU contexts of a
 * program that is linked to OpenMP compute on OpenMP's threads, within its limits (docs/drop_in.md).
 *
 * Stable through all releases 0.x, and so librung.so.0: what this header declares, the order and meaning of the fields
 * of its structs and the values of its enums; new fields come at a struct's end and mean the old behaviour when they
 * are zero. Not stable: the names and number of kernels, the text of plans and errors, the bits of a result between
 * releases.
 */
#ifndef RUNG_H
#define RUNG_H

#include <stddef.h>
#include <stdint.h>

#define RUNG_VERSION_MAJOR 0
#define RUNG_VERSION_MINOR 2
#define RUNG_VERSION_PATCH 0

#if defined(__GNUC__)
#define RUNG_API __attribute__((visibility("default")))
#else
#define RUNG_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum rung_status {
    RUNG_SUCCESS = 0,
    RUNG_INVALID_ARGUMENT = 1, /* rung_last_error_argument() tells which */
    RUNG_OUT_OF_MEMORY = 2,
    RUNG_UNSUPPORTED = 3,     /* this kernel or device cannot do what was asked */
    RUNG_NO_DEVICE = 4,       /* no GPU, no driver, or not that many GPUs */
    RUNG_DEVICE_ERROR = 5,    /* the GPU or its driver reported a fault; the context may be unusable */
    RUNG_MISSING_LIBRARY = 6, /* something optional that was asked for by name is not installed */
    RUNG_INTERNAL = 7,
} rung_status;

typedef enum rung_layout { RUNG_COL_MAJOR = 0, RUNG_ROW_MAJOR = 1 } rung_layout;
typedef enum rung_transpose { RUNG_NO_TRANS = 0, RUNG_TRANS = 1 } rung_transpose;

/* What the arithmetic promises. docs/numerics.md has the bounds and the measured errors. */
typedef enum rung_math {
    RUNG_STRICT = 0,   /* FP32 fused multiply-adds only */
    RUNG_ACCURATE = 1, /* tensor cores on split operands, within strict's bound; strict where there are none */
    RUNG_FAST = 2,     /* one tensor-core pass: the larger, documented error */
} rung_math;

/* RUNG_GELU is the tanh form: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
typedef enum rung_activation { RUNG_IDENTITY = 0, RUNG_RELU = 1, RUNG_GELU = 2 } rung_activation;
typedef enum rung_bias { RUNG_NO_BIAS = 0, RUNG_BIAS_PER_ROW = 1, RUNG_BIAS_PER_COLUMN = 2 } rung_bias;

enum { RUNG_DEVICE_BEST = -2, RUNG_DEVICE_CPU = -1 }; /* 0, 1, ... are GPUs */

/* Where the operands of a GPU context are. AUTO asks the driver at each call. */
typedef enum rung_pointers { RUNG_POINTERS_AUTO = 0, RUNG_POINTERS_DEVICE = 1, RUNG_POINTERS_HOST = 2 } rung_pointers;

enum { RUNG_MOST_THREADS = 4096 };

/* Zero every field you do not set: zero means the default, except device, whose default is in rung_config_init. */
typedef struct rung_config {
    int device;     /* RUNG_DEVICE_BEST, RUNG_DEVICE_CPU or a GPU's number */
    int threads;    /* CPU threads; 0: RUNG_NUM_THREADS, OMP_NUM_THREADS and others (docs/drop_in.md), then the cores */
    rung_math math; /* default RUNG_STRICT */
    rung_pointers pointers;        /* GPU only */
    void *stream;                  /* a CUstream / cudaStream_t; NULL: the default stream */
    int64_t workspace_limit_bytes; /* device memory a product may borrow; accurate ones keep 2 MiB of zeros beside it;
                                      negative: none; 0: up to 32 GiB, as it pays */
} rung_config;

typedef struct rung_context rung_context;
typedef struct rung_plan rung_plan;

/* Any thread, any time. */
RUNG_API void rung_config_init(rung_config *config);
RUNG_API rung_status rung_context_create(rung_context **context, const rung_config *config); /* NULL config: defaults */
RUNG_API void rung_context_destroy(rung_context *context);                                   /* NULL is fine */

RUNG_API rung_status rung_context_set_math(rung_context *context, rung_math math);
RUNG_API rung_status rung_context_set_threads(rung_context *context, int threads);
RUNG_API rung_status rung_context_set_stream(rung_context *context, void *stream);
RUNG_API rung_status rung_context_set_pointers(rung_context *context, rung_pointers pointers);
RUNG_API rung_status rung_context_set_workspace_limit(rung_context *context, int64_t bytes);
/* Of NULL: RUNG_DEVICE_CPU, 0 and RUNG_STRICT. */
RUNG_API int rung_context_device(const rung_context *context); /* RUNG_DEVICE_CPU or the GPU's number */
RUNG_API int rung_context_threads(const rung_context *context);
RUNG_API rung_math rung_context_math(const rung_context *context);
/* CPU threads of every context of the process from its next call on: contexts that name a number of their own use at
 * most so many. 0: as if never called. For programs that keep several libraries' threads in bounds. */
RUNG_API rung_status rung_process_set_threads(int threads);
RUNG_API int rung_process_threads(void); /* what a context that names no number uses now */
/* Waits for everything this context has started. CPU products have always finished on return. */
RUNG_API rung_status rung_context_synchronize(rung_context *context);

/* The same call gives the same bits, on a CPU on any number of threads.
 *
 * C = alpha*op(A)*op(B) + beta*C. op(A) is m x k, op(B) k x n, C m x n. With beta = 0 C is not read, with alpha = 0
 * or k = 0 neither A nor B is. On a GPU context with device pointers the call returns once the work is queued.
 * C must lie apart from A, B and a bias where these are read, element by element (parts of one larger matrix may lie
 * between each other); a call with an overlap is refused. */
RUNG_API rung_status rung_sgemm(rung_context *context, rung_layout layout, rung_transpose trans_a,
                                rung_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                                int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc);

/* The same for `batch` products whose operands lie `stride` elements apart (a stride of 0 shares A or B). */
RUNG_API rung_status rung_sgemm_strided_batched(rung_context *context, rung_layout layout, rung_transpose trans_a,
                                                rung_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                                                const float *a, int64_t lda, int64_t stride_a, const float *b,
                                                int64_t ldb, int64_t stride_b, float beta, float *c, int64_t ldc,
                                                int64_t stride_c, int64_t batch);

/* The same for `batch` products whose operands are listed in arrays (in device memory on a GPU context). Their overlap
 * is not looked for. On a CPU context an element that is NULL is refused. */
RUNG_API rung_status rung_sgemm_batched(rung_context *context, rung_layout layout, rung_transpose trans_a,
                                        rung_transpose trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                                        const float *const *a, int64_t lda, const float *const *b, int64_t ldb,
                                        float beta, float *const *c, int64_t ldc, int64_t batch);

/* Everything a product can be told, in one struct: what the three calls above fill in. Start from rung_gemm_init. */
typedef struct rung_gemm {
    rung_layout layout;
    rung_transpose trans_a, trans_b;
    int64_t m, n, k;
    const float *a, *b;
    float *c;
    int64_t lda, ldb, ldc;
    int64_t batch; /* 1: a single product */
    int64_t stride_a, stride_b, stride_c;
    const float *const *a_array; /* not NULL: pointer-array batch; then a, b, c and the strides are unused */
    const float *const *b_array;
    float *const *c_array;
    float alpha, beta;
    const float *alpha_device, *beta_device; /* GPU: not NULL: read from device memory when the product runs */
    rung_bias bias_kind;                     /* act(alpha*AB + beta*C + bias) */
    const float *bias;                       /* m (per row) or n (per column) elements */
    rung_activation activation;
} rung_gemm;

RUNG_API void rung_gemm_init(rung_gemm *gemm);
RUNG_API rung_status rung_gemm_run(rung_context *context, const rung_gemm *gemm);

/* A plan is the decision how to run one shape. It holds no operands: create it from a filled rung_gemm (whose
 * pointers only tell alignment), then run it on any operands of that shape, as often as wanted. */
RUNG_API rung_status rung_plan_create(rung_plan **plan, rung_context *context, const rung_gemm *gemm);
/* Forces one kernel of the catalog by name. */
RUNG_API rung_status rung_plan_create_kernel(rung_plan **plan, rung_context *context, const rung_gemm *gemm,
                                             const char *kernel);
RUNG_API rung_status rung_plan_run(rung_plan *plan, const rung_gemm *gemm);
RUNG_API const char *rung_plan_kernel(const rung_plan *plan);
RUNG_API int64_t rung_plan_workspace_bytes(const rung_plan *plan);
/* Writes the whole decision, ranking and refusals included, as text; returns the length it needs, as snprintf does. */
RUNG_API int rung_plan_print(const rung_plan *plan, char *text, size_t text_bytes);
RUNG_API void rung_plan_destroy(rung_plan *plan);

/* *result = the sum of n floats, always in the same order. x and result: device memory on a GPU context. */
RUNG_API rung_status rung_ssum(rung_context *context, int64_t n, const float *x, float *result);

/* How often accurate mode's guard stepped in, since the context was created: blocks of 128 x 128 results computed,
 * those of them that strict arithmetic computed, and single results it computed in the others. Waits for queued work.
 */
typedef struct rung_guard_counts {
    int64_t blocks, strict_blocks, strict_elements;
} rung_guard_counts;

RUNG_API rung_status rung_context_guard_counts(rung_context *context, rung_guard_counts *counts);

/* The kernel that answered this context's last product; NULL before the first, and where nothing was to do. */
RUNG_API const char *rung_last_kernel(const rung_context *context);

/* Of the calling thread's last failed call. The text stays valid until that thread's next failure. */
RUNG_API const char *rung_last_error(void);
/* Position, in BLAS's sgemm (transa = 1 ... ldc = 13), of the argument that was wrong; 0 where none is to blame. */
RUNG_API int rung_last_error_argument(void);
RUNG_API const char *rung_status_name(rung_status status);
RUNG_API const char *rung_version(void);

#ifdef __cplusplus
}
#endif
#endif
