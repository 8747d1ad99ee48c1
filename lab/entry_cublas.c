/* Products through librung_cublas.so, by each of cuBLAS's names that takes them and by cublasLtMatmul. The handle and
 * the descriptors come from the cuBLAS behind it: the real one, or the stand-in that RUNG_CUBLAS names. Before some of
 * them the same call is made with one argument that is wrong: the drop-in must answer what cuBLAS answers. */
#define _GNU_SOURCE
#include "lab/entry.h"
#include "lab/names.h"
#include "lab/peer.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REAL_32F = 0, COMPUTE_32F = 68, ALGORITHM = -1, ON_DEVICE = 1 };
enum {
    POINTER_MODE = 2,
    TRANS_A = 3,
    TRANS_B = 4,
    EPILOGUE = 7,
    BIAS_POINTER = 8,
    LAYOUT_BATCH = 5,
    LAYOUT_STRIDE = 6
};
enum { EPILOGUE_PLAIN = 1, EPILOGUE_RELU = 2, EPILOGUE_BIAS = 4, EPILOGUE_GELU = 32 };

/* clang-format off */
#define SHAPE(INT) void *, int, int, INT, INT, INT
#define PRODUCTS(X, _, INT)                                                                                        \
    X(sgemm##_, "cublasSgemm_v2" #_, (SHAPE(INT), const float *, const float *, INT, const float *, INT,           \
      const float *, float *, INT))                                                                                \
    X(sgemm_ex##_, "cublasSgemmEx" #_, (SHAPE(INT), const float *, const void *, int, INT, const void *, int, INT, \
      const float *, void *, int, INT))                                                                            \
    X(gemm_ex##_, "cublasGemmEx" #_, (SHAPE(INT), const void *, const void *, int, INT, const void *, int, INT,    \
      const void *, void *, int, INT, int, int))                                                                   \
    X(strided##_, "cublasSgemmStridedBatched" #_, (SHAPE(INT), const float *, const float *, INT, long long,       \
      const float *, INT, long long, const float *, float *, INT, long long, INT))                                 \
    X(strided_ex##_, "cublasGemmStridedBatchedEx" #_, (SHAPE(INT), const void *, const void *, int, INT,           \
      long long, const void *, int, INT, long long, const void *, void *, int, INT, long long, INT, int, int))     \
    X(arrays##_, "cublasSgemmBatched" #_, (SHAPE(INT), const float *, const float *const *, INT,                   \
      const float *const *, INT, const float *, float *const *, INT, INT))                                         \
    X(arrays_ex##_, "cublasGemmBatchedEx" #_, (SHAPE(INT), const void *, const void *const *, int, INT,            \
      const void *const *, int, INT, const void *, void *const *, int, INT, INT, int, int))
#define ALL_PRODUCTS(X)                                                                                            \
    PRODUCTS(X, , int)                                                                                             \
    PRODUCTS(X, _64, int64_t)                                                                                      \
    X(matmul, "cublasLtMatmul", (void *, void *, const void *, const void *, void *, const void *, void *,         \
      const void *, const void *, void *, void *, void *, const void *, void *, size_t, void *))
#define THEIRS(X)                                                                                                  \
    X(create, "cublasCreate_v2", (void **))                                                                        \
    X(destroy, "cublasDestroy_v2", (void *))                                                                       \
    X(set_stream, "cublasSetStream_v2", (void *, void *))                                                          \
    X(set_mode, "cublasSetPointerMode_v2", (void *, int))
#define THEIRS_LT(X)                                                                                               \
    X(desc_create, "cublasLtMatmulDescCreate", (void **, int, int))                                                \
    X(desc_set, "cublasLtMatmulDescSetAttribute", (void *, int, const void *, size_t))                             \
    X(desc_destroy, "cublasLtMatmulDescDestroy", (void *))                                                         \
    X(layout_create, "cublasLtMatrixLayoutCreate", (void **, int, uint64_t, uint64_t, int64_t))                    \
    X(layout_set, "cublasLtMatrixLayoutSetAttribute", (void *, int, const void *, size_t))                         \
    X(layout_destroy, "cublasLtMatrixLayoutDestroy", (void *))
/* clang-format on */

#define X(name, symbol, signature) int(*name) signature;
typedef struct products {
    ALL_PRODUCTS(X)
} products;

typedef struct doors {
    products ours, theirs;
    THEIRS(X)
    THEIRS_LT(X)
    void *handle;
} doors;
#undef X

/* A column-major call: its rows are columns of the transposed product. */
typedef struct call {
    int ta, tb;
    int64_t m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, batch;
    const float *a, *b, *alpha, *beta;
    const float *const *a_array;
    const float *const *b_array;
    float *c;
    float *const *c_array;
} call;

static call by_columns(const rung_gemm *g)
{
    call c = {g->trans_a,
              g->trans_b,
              g->m,
              g->n,
              g->k,
              g->lda,
              g->ldb,
              g->ldc,
              g->stride_a,
              g->stride_b,
              g->stride_c,
              g->batch,
              g->a,
              g->b,
              g->alpha_device ? g->alpha_device : &g->alpha,
              g->beta_device ? g->beta_device : &g->beta,
              g->a_array,
              g->b_array,
              g->c,
              g->c_array};
    if (g->layout == RUNG_COL_MAJOR)
        return c;
    call x = c;
    x.ta = c.tb, x.tb = c.ta, x.m = c.n, x.n = c.m, x.lda = c.ldb, x.ldb = c.lda, x.stride_a = c.stride_b;
    x.stride_b = c.stride_a, x.a = c.b, x.b = c.a, x.a_array = c.b_array, x.b_array = c.a_array;
    return x;
}

/* What cublasLtMatmul gets NULL for, where it refuses that. A NULL descriptor, alpha or beta ends the process in cuBLAS
 * itself. */
typedef enum lt_null { LT_NOTHING, LT_HANDLE, LT_LAYOUT_A, LT_LAYOUT_B, LT_LAYOUT_D, LT_NULLS } lt_null;

/* Calls cublasLtMatmul. Where beta is 0 it does not read C, which may lie elsewhere then, with rows as far apart as it
 * likes. */
static int run_matmul(const doors *d, const products *p, const rung_gemm *g, const call *x, void *stream, uint64_t turn,
                      lt_null null)
{
    void *desc = NULL, *layouts[4] = {NULL};
    int32_t mode = g->alpha_device ? ON_DEVICE : 0, ta = x->ta, tb = x->tb, batch = (int32_t)x->batch;
    int32_t epilogue = (g->bias_kind ? EPILOGUE_BIAS : 0) | (g->activation == RUNG_RELU ? EPILOGUE_RELU : 0) |
                       (g->activation == RUNG_GELU ? EPILOGUE_GELU : 0);
    epilogue = epilogue ? epilogue : EPILOGUE_PLAIN;
    int apart = !g->beta_device && g->beta == 0.0f && turn % 2;
    const int64_t rows[] = {ta ? x->k : x->m, tb ? x->n : x->k, x->m, x->m},
                  columns[] = {ta ? x->m : x->k, tb ? x->k : x->n, x->n, x->n};
    const int64_t lds[] = {x->lda, x->ldb, x->ldc + apart * 3, x->ldc},
                  strides[] = {x->stride_a, x->stride_b, apart ? (x->ldc + 3) * x->n : x->stride_c, x->stride_c};
    int status = d->desc_create(&desc, COMPUTE_32F, REAL_32F);
    status = status ? status : d->desc_set(desc, POINTER_MODE, &mode, sizeof mode);
    status = status ? status : d->desc_set(desc, TRANS_A, &ta, sizeof ta);
    status = status ? status : d->desc_set(desc, TRANS_B, &tb, sizeof tb);
    status = status ? status : d->desc_set(desc, EPILOGUE, &epilogue, sizeof epilogue);
    if (!status && g->bias_kind)
        status = d->desc_set(desc, BIAS_POINTER, &g->bias, sizeof g->bias);
    for (int i = 0; i < 4 && !status; i++) {
        status = d->layout_create(&layouts[i], REAL_32F, (uint64_t)rows[i], (uint64_t)columns[i], lds[i]);
        status = status ? status : d->layout_set(layouts[i], LAYOUT_BATCH, &batch, sizeof batch);
        status = status ? status : d->layout_set(layouts[i], LAYOUT_STRIDE, &strides[i], sizeof strides[i]);
    }
    if (!status)
        status = p->matmul(null == LT_HANDLE ? NULL : d->handle, desc, x->alpha, x->a,
                           null == LT_LAYOUT_A ? NULL : layouts[0], x->b, null == LT_LAYOUT_B ? NULL : layouts[1],
                           x->beta, apart ? x->a : x->c, layouts[2], x->c, null == LT_LAYOUT_D ? NULL : layouts[3],
                           NULL, NULL, 0, stream);
    for (int i = 0; i < 4; i++)
        if (layouts[i])
            d->layout_destroy(layouts[i]);
    if (desc)
        d->desc_destroy(desc);
    return status;
}

#define WHOLE(INT) handle, x->ta, x->tb, (INT)x->m, (INT)x->n, (INT)x->k, x->alpha
#define RUN(_, INT)                                                                                                    \
    static int run_product##_(const products *p, void *handle, const call *x, uint64_t turn)                           \
    {                                                                                                                  \
        INT lda = (INT)x->lda, ldb = (INT)x->ldb, ldc = (INT)x->ldc, batch = (INT)x->batch;                            \
        if (x->c_array && turn % 2)                                                                                    \
            return p->arrays##_(WHOLE(INT), x->a_array, lda, x->b_array, ldb, x->beta, x->c_array, ldc, batch);        \
        if (x->c_array)                                                                                                \
            return p->arrays_ex##_(WHOLE(INT), (const void *const *)x->a_array, REAL_32F, lda,                         \
                                   (const void *const *)x->b_array, REAL_32F, ldb, x->beta, (void *const *)x->c_array, \
                                   REAL_32F, ldc, batch, COMPUTE_32F, ALGORITHM);                                      \
        if (x->batch != 1 && turn % 2)                                                                                 \
            return p->strided##_(WHOLE(INT), x->a, lda, x->stride_a, x->b, ldb, x->stride_b, x->beta, x->c, ldc,       \
                                 x->stride_c, batch);                                                                  \
        if (x->batch != 1)                                                                                             \
            return p->strided_ex##_(WHOLE(INT), x->a, REAL_32F, lda, x->stride_a, x->b, REAL_32F, ldb, x->stride_b,    \
                                    x->beta, x->c, REAL_32F, ldc, x->stride_c, batch, COMPUTE_32F, ALGORITHM);         \
        switch (turn % 3) {                                                                                            \
        case 0: return p->sgemm##_(WHOLE(INT), x->a, lda, x->b, ldb, x->beta, x->c, ldc);                              \
        case 1:                                                                                                        \
            return p->sgemm_ex##_(WHOLE(INT), x->a, REAL_32F, lda, x->b, REAL_32F, ldb, x->beta, x->c, REAL_32F, ldc); \
        default:                                                                                                       \
            return p->gemm_ex##_(WHOLE(INT), x->a, REAL_32F, lda, x->b, REAL_32F, ldb, x->beta, x->c, REAL_32F, ldc,   \
                                 COMPUTE_32F, ALGORITHM);                                                              \
        }                                                                                                              \
    }
RUN(, int)
RUN(_64, int64_t)

static int run_product_any(const products *p, void *handle, const call *x, uint64_t turn)
{
    return turn % 2 ? run_product_64(p, handle, x, turn / 2) : run_product(p, handle, x, turn / 2);
}

/* Makes one argument wrong, and says which. Both answer for it alike: the drop-in hands the call on. A NULL alpha or
 * beta is left to programs that may end: over most of these cuBLAS itself ends the process, but where m is 0. */
static const char *spoil(call *x, void **handle, uint64_t turn)
{
    switch (turn % 11) {
    case 0: x->m = -1; return "m = -1";
    case 1: x->n = -1; return "n = -1";
    case 2: x->k = -1; return "k = -1";
    case 3: x->lda = (x->ta ? x->k : x->m) - 1; return "lda one too small";
    case 4: x->ldb = (x->tb ? x->n : x->k) - 1; return "ldb one too small";
    case 5: x->ldc = x->m - 1; return "ldc one too small";
    case 6: x->ta = 3; return "transa = 3";
    case 7: x->tb = -1; return "transb = -1";
    case 8: *handle = NULL; return "handle NULL";
    case 9: x->m = 0, x->alpha = NULL; return "m = 0 and alpha NULL";
    default: x->ldb = -5; return "ldb = -5";
    }
}

/* A product of no elements may be a success, of which nothing is seen. */
static rung_status same_answer(const char *what, int ours, int theirs, int may_succeed)
{
    if (ours == theirs && (theirs || may_succeed))
        return RUNG_SUCCESS;
    return lab_fail(RUNG_INTERNAL, "with %s the drop-in answered status %d, cuBLAS itself %d", what, ours, theirs);
}

static rung_status run_spoilt(const doors *d, const call *good, uint64_t turn)
{
    call x = *good;
    void *handle = d->handle;
    const char *what = spoil(&x, &handle, turn / 16);
    int ours = run_product_any(&d->ours, handle, &x, turn), theirs = run_product_any(&d->theirs, handle, &x, turn);
    return same_answer(what, ours, theirs, x.m == 0);
}

static rung_status run_spoilt_matmul(const doors *d, const rung_gemm *g, const call *x, void *stream, uint64_t turn)
{
    static const char *const names[LT_NULLS] = {"", "cublasLt's handle NULL", "A's layout NULL", "B's layout NULL",
                                                "D's layout NULL"};
    lt_null null = (lt_null)(1 + turn / 2 % (LT_NULLS - 1));
    int ours = run_matmul(d, &d->ours, g, x, stream, turn, null);
    return same_answer(names[null], ours, run_matmul(d, &d->theirs, g, x, stream, turn, null), 0);
}

static rung_status run(lab_entry *entry, const rung_gemm *g)
{
    doors *d = entry->state;
    call x = by_columns(g);
    void *stream = rung_tools_stream(entry->place->tools);
    uint64_t turn = lab_mix(entry->calls++);
    int lt = g->bias_kind || g->activation || (!g->c_array && x.m && x.n && x.k && turn % 5 == 0);
    int status = d->set_stream(d->handle, stream);
    status = status ? status : d->set_mode(d->handle, g->alpha_device ? ON_DEVICE : 0);
    if (!status && x.m && x.n && x.k && turn / 5 % 4 == 0)
        LAB_TRY(lt ? run_spoilt_matmul(d, g, &x, stream, turn / 20) : run_spoilt(d, &x, turn / 20));
    if (!status)
        status = lt ? run_matmul(d, &d->ours, g, &x, stream, turn / 5, LT_NOTHING)
                    : run_product_any(&d->ours, d->handle, &x, turn / 5);
    return status ? lab_fail(RUNG_INTERNAL, "the drop-in answered status %d", status) : RUNG_SUCCESS;
}

static void close_doors(lab_entry *entry)
{
    doors *d = entry->state;
    d->destroy(d->handle);
    free(d);
}

/* Finds the file of the cuBLAS behind the drop-in. */
static rung_status find_cublas(lab_place *place, char *path, size_t bytes)
{
    const char *named = getenv("RUNG_CUBLAS");
    lab_peer peer;
    if (named && strstr(named, ".so")) {
        snprintf(path, bytes, "%s", named);
        return RUNG_SUCCESS;
    }
    LAB_TRY(lab_peer_open(place, "cublas", &peer));
    snprintf(path, bytes, "%s", peer.path);
    lab_peer_close(&peer);
    setenv("RUNG_CUBLAS", path, 1);
    return RUNG_SUCCESS;
}

static rung_status find_doors(doors *d, void *ours, void *theirs)
{
    const char *missing = NULL;
#define FIND(library, at, symbol)                                                                                      \
    if (!(*(void **)&(at) = dlsym(library, symbol)))                                                                   \
        missing = symbol;
#define X(name, symbol, signature) FIND(ours, d->ours.name, symbol) FIND(theirs, d->theirs.name, symbol)
    ALL_PRODUCTS(X)
#undef X
#define X(name, symbol, signature) FIND(theirs, d->name, symbol)
    THEIRS(X)
    THEIRS_LT(X)
#undef X
    return missing ? lab_fail(RUNG_MISSING_LIBRARY, "%s was not found", missing) : RUNG_SUCCESS;
}

rung_status lab_entry_open_cublas(lab_entry *entry, lab_place *place, rung_math math)
{
    char path[512];
    void *ours;
    if (!place->tools)
        return lab_fail(RUNG_UNSUPPORTED, "cuBLAS takes operands on a GPU: --device gpu");
    setenv("RUNG_MATH", lab_math_names[math], 1);
    LAB_TRY(find_cublas(place, path, sizeof path));
    LAB_TRY(lab_entry_library("librung_cublas.so", &ours));
    void *theirs = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!theirs)
        return lab_fail(RUNG_MISSING_LIBRARY, "no cuBLAS: %s", dlerror());
    doors *d = calloc(1, sizeof *d);
    if (!d)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for the lab's state");
    rung_status status = find_doors(d, ours, theirs); /* libcublas brings libcublasLt along */
    if (status == RUNG_SUCCESS && d->create(&d->handle) != 0)
        status = lab_fail(RUNG_DEVICE_ERROR, "cublasCreate failed");
    if (status != RUNG_SUCCESS) {
        free(d);
        return status;
    }
    *entry = (lab_entry){.run = run, .close = close_doors, .place = place, .state = d};
    return RUNG_SUCCESS;
}
