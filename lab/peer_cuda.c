/* cuBLAS and cuBLASLt, opened at run time: the few calls used are declared here, so no CUDA header is needed. */
#define _GNU_SOURCE
#include "lab/multi.h"
#include "lab/peer.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPUTE_32F = 68, COMPUTE_TF32 = 77, REAL_32F = 0 };
enum { DESC_TRANS_A = 3, DESC_TRANS_B = 4, LAYOUT_BATCH = 5, LAYOUT_STRIDE = 6, PREFERENCE_WORKSPACE = 1 };
enum { CANDIDATES = 24, WORKSPACE_BYTES = 64 << 20 };

typedef struct lt_candidate { /* cublasLtMatmulHeuristicResult_t */
    uint64_t algo[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
} lt_candidate;

/* clang-format off */
/* name in the table, symbol, signature */
#define BLAS_CALLS(X)                                                                                              \
    X(create, "cublasCreate_v2", (void **))                                                                        \
    X(destroy, "cublasDestroy_v2", (void *))                                                                       \
    X(version, "cublasGetVersion_v2", (void *, int *))                                                             \
    X(set_stream, "cublasSetStream_v2", (void *, void *))                                                          \
    X(set_math, "cublasSetMathMode", (void *, int))                                                                \
    X(sgemm, "cublasSgemm_v2_64",                                                                                  \
      (void *, int, int, int64_t, int64_t, int64_t, const float *, const float *, int64_t, const float *, int64_t, \
       const float *, float *, int64_t))                                                                           \
    X(strided, "cublasSgemmStridedBatched_64",                                                                     \
      (void *, int, int, int64_t, int64_t, int64_t, const float *, const float *, int64_t, long long,              \
       const float *, int64_t, long long, const float *, float *, int64_t, long long, int64_t))
#define LT_CALLS(X)                                                                                                \
    X(lt_version, "cublasLtGetVersion", (void)) /* a size_t, small */                                               \
    X(lt_create, "cublasLtCreate", (void **))                                                                      \
    X(lt_destroy, "cublasLtDestroy", (void *))                                                                     \
    X(desc_create, "cublasLtMatmulDescCreate", (void **, int, int))                                                \
    X(desc_set, "cublasLtMatmulDescSetAttribute", (void *, int, const void *, size_t))                             \
    X(desc_destroy, "cublasLtMatmulDescDestroy", (void *))                                                         \
    X(layout_create, "cublasLtMatrixLayoutCreate", (void **, int, uint64_t, uint64_t, int64_t))                    \
    X(layout_set, "cublasLtMatrixLayoutSetAttribute", (void *, int, const void *, size_t))                         \
    X(layout_destroy, "cublasLtMatrixLayoutDestroy", (void *))                                                     \
    X(preference_create, "cublasLtMatmulPreferenceCreate", (void **))                                              \
    X(preference_set, "cublasLtMatmulPreferenceSetAttribute", (void *, int, const void *, size_t))                 \
    X(preference_destroy, "cublasLtMatmulPreferenceDestroy", (void *))                                             \
    X(heuristic, "cublasLtMatmulAlgoGetHeuristic",                                                                 \
      (void *, void *, void *, void *, void *, void *, void *, int, lt_candidate *, int *))                        \
    X(matmul, "cublasLtMatmul",                                                                                    \
      (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *,       \
       void *, void *, void *, const void *, void *, size_t, void *))
/* clang-format on */

typedef struct cuda_peer {
#define X(name, symbol, signature) int(*name) signature;
    BLAS_CALLS(X)
    LT_CALLS(X)
#undef X
    void *handle, *stream;
    void *desc, *layout_a, *layout_b, *layout_c;
    lt_candidate best;
    lab_buffer workspace;
    void *start, *stop;
} cuda_peer;

/* Makes a column-major problem. A row-major call exchanges its operands, as anyone would. */
typedef struct column_major {
    int trans_a, trans_b;
    int64_t m, n, lda, ldb, stride_a, stride_b;
    const float *a, *b;
} column_major;

static column_major columns(const rung_gemm *g)
{
    if (g->layout == RUNG_COL_MAJOR)
        return (column_major){g->trans_a, g->trans_b, g->m, g->n, g->lda, g->ldb, g->stride_a, g->stride_b, g->a, g->b};
    return (column_major){g->trans_b, g->trans_a, g->n, g->m, g->ldb, g->lda, g->stride_b, g->stride_a, g->b, g->a};
}

static rung_status check(const lab_peer *peer, int status, const char *call)
{
    if (status == 0)
        return RUNG_SUCCESS;
    return lab_fail(status == 15 || status == 7 ? RUNG_UNSUPPORTED : RUNG_DEVICE_ERROR, "%s: %s returned status %d",
                    peer->name, call, status);
}

static rung_status run_blas(lab_peer *peer, const rung_gemm *g)
{
    cuda_peer *p = peer->state;
    column_major c = columns(g);
    int status;
    if (g->batch > 1)
        status = p->strided(p->handle, c.trans_a, c.trans_b, c.m, c.n, g->k, &g->alpha, c.a, c.lda, c.stride_a, c.b,
                            c.ldb, c.stride_b, &g->beta, g->c, g->ldc, g->stride_c, g->batch);
    else
        status = p->sgemm(p->handle, c.trans_a, c.trans_b, c.m, c.n, g->k, &g->alpha, c.a, c.lda, c.b, c.ldb, &g->beta,
                          g->c, g->ldc);
    return check(peer, status, "cublasSgemm");
}

static rung_status run_candidate(lab_peer *peer, const rung_gemm *g, const lt_candidate *candidate)
{
    cuda_peer *p = peer->state;
    column_major c = columns(g);
    int status =
        p->matmul(p->handle, p->desc, &g->alpha, c.a, p->layout_a, c.b, p->layout_b, &g->beta, g->c, p->layout_c, g->c,
                  p->layout_c, candidate->algo, p->workspace.at, WORKSPACE_BYTES, p->stream);
    return check(peer, status, "cublasLtMatmul");
}

static rung_status run_lt(lab_peer *peer, const rung_gemm *g)
{
    return run_candidate(peer, g, &((cuda_peer *)peer->state)->best);
}

static void drop_descriptors(cuda_peer *p)
{
    if (p->desc)
        p->desc_destroy(p->desc);
    void **layouts[] = {&p->layout_a, &p->layout_b, &p->layout_c};
    for (int i = 0; i < 3; i++) {
        if (*layouts[i])
            p->layout_destroy(*layouts[i]);
        *layouts[i] = NULL;
    }
    p->desc = NULL;
}

static int make_layout(cuda_peer *p, void **layout, int64_t rows, int64_t lines, int64_t ld, const rung_gemm *g,
                       int64_t stride)
{
    int32_t batch = (int32_t)g->batch;
    int status = p->layout_create(layout, REAL_32F, (uint64_t)rows, (uint64_t)lines, ld);
    if (status == 0 && g->batch > 1) {
        status |= p->layout_set(*layout, LAYOUT_BATCH, &batch, sizeof batch);
        status |= p->layout_set(*layout, LAYOUT_STRIDE, &stride, sizeof stride);
    }
    return status;
}

static rung_status describe(lab_peer *peer, const rung_gemm *g)
{
    cuda_peer *p = peer->state;
    column_major c = columns(g);
    drop_descriptors(p);
    int status = p->desc_create(&p->desc, COMPUTE_32F, REAL_32F);
    if (status == 0) {
        status |= p->desc_set(p->desc, DESC_TRANS_A, &c.trans_a, sizeof c.trans_a);
        status |= p->desc_set(p->desc, DESC_TRANS_B, &c.trans_b, sizeof c.trans_b);
        status |= make_layout(p, &p->layout_a, c.trans_a ? g->k : c.m, c.trans_a ? c.m : g->k, c.lda, g, c.stride_a);
        status |= make_layout(p, &p->layout_b, c.trans_b ? c.n : g->k, c.trans_b ? g->k : c.n, c.ldb, g, c.stride_b);
        status |= make_layout(p, &p->layout_c, c.m, c.n, g->ldc, g, g->stride_c);
    }
    return check(peer, status, "cublasLt's descriptors");
}

static rung_status time_candidate(lab_peer *peer, const rung_gemm *g, const lt_candidate *candidate, float *best_ms)
{
    cuda_peer *p = peer->state;
    rung_tools *tools = peer->place->tools;
    *best_ms = 1e30f;
    for (int i = 0; i < 4; i++) { /* the first warms up */
        float ms;
        LAB_TRY(rung_tools_event_record(tools, p->start));
        LAB_TRY(run_candidate(peer, g, candidate));
        LAB_TRY(rung_tools_event_record(tools, p->stop));
        LAB_TRY(rung_tools_event_elapsed(tools, p->start, p->stop, &ms));
        if (i > 0 && ms < *best_ms)
            *best_ms = ms;
    }
    return RUNG_SUCCESS;
}

/* Asks the heuristic for its candidates, times each, and keeps the fastest. */
static rung_status prepare_lt(lab_peer *peer, const rung_gemm *g)
{
    cuda_peer *p = peer->state;
    lt_candidate candidates[CANDIDATES];
    void *preference = NULL;
    size_t workspace_bytes = WORKSPACE_BYTES;
    int found = 0;
    LAB_TRY(describe(peer, g));
    int status = p->preference_create(&preference);
    if (status == 0) {
        p->preference_set(preference, PREFERENCE_WORKSPACE, &workspace_bytes, sizeof workspace_bytes);
        status = p->heuristic(p->handle, p->desc, p->layout_a, p->layout_b, p->layout_c, p->layout_c, preference,
                              CANDIDATES, candidates, &found);
        p->preference_destroy(preference);
    }
    LAB_TRY(check(peer, status, "cublasLtMatmulAlgoGetHeuristic"));
    float best_ms = 1e30f;
    for (int i = 0; i < found; i++) {
        float ms;
        if (candidates[i].state == 0 && time_candidate(peer, g, &candidates[i], &ms) == RUNG_SUCCESS && ms < best_ms) {
            best_ms = ms;
            p->best = candidates[i];
        }
    }
    if (best_ms == 1e30f)
        return lab_fail(RUNG_UNSUPPORTED, "cublaslt has no candidate for this product");
    return RUNG_SUCCESS;
}

static void *open_glob(const char *pattern, const char *file)
{
    char full[512];
    void *library = NULL;
    glob_t found;
    snprintf(full, sizeof full, "%s/%s", pattern, file);
    if (glob(full, 0, NULL, &found) == 0) {
        for (size_t i = 0; i < found.gl_pathc && !library; i++)
            library = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
        globfree(&found);
    }
    return library;
}

/* Opens libcublas, which needs libcublasLt to be loaded first where the two lie outside the loader's path. */
static void *open_library(const char *file)
{
    static const char *const places[] = {"/usr/local/cuda*/lib64",
                                         "/usr/lib/python3*/site-packages/nvidia/*/lib",
                                         "/usr/local/lib/python3*/*-packages/nvidia/*/lib",
                                         "/usr/lib/python3/dist-packages/nvidia/*/lib",
                                         "/opt/*/lib/python3*/site-packages/nvidia/*/lib",
                                         "/opt/*/.venv/lib/python3*/site-packages/nvidia/*/lib",
                                         "/root/.local/lib/python3*/site-packages/nvidia/*/lib",
                                         ".cuda/lib/python3*/site-packages/nvidia/*/lib"};
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    const char *named = getenv("RUNG_CUBLAS"); /* the folder of libcublas and libcublasLt, or libcublas itself */
    if (!library && named) {
        char folder[256];
        snprintf(folder, sizeof folder, "%s", named);
        char *slash = strrchr(folder, '/');
        if (slash && strstr(slash, ".so"))
            *slash = 0;
        library = open_glob(folder, file);
    }
    const char *home = getenv("VIRTUAL_ENV");
    if (!library && home) {
        char pattern[256];
        snprintf(pattern, sizeof pattern, "%.200s/lib/python3*/site-packages/nvidia/*/lib", home);
        library = open_glob(pattern, file);
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0] && !library; i++)
        library = open_glob(places[i], file);
    return library;
}

static void *open_both(void **lt)
{
    *lt = open_library("libcublasLt.so.13");
    void *blas = open_library("libcublas.so.13");
    if (!blas) {
        *lt = open_library("libcublasLt.so.12");
        blas = open_library("libcublas.so.12");
    }
    return blas;
}

void *lab_open_cublas(void)
{
    void *lt;
    return open_both(&lt);
}

static rung_status open_calls(lab_peer *peer)
{
    cuda_peer *p = peer->state;
    void *lt, *blas = open_both(&lt);
    if (!lt || !blas)
        return lab_fail(RUNG_MISSING_LIBRARY, "cuBLAS was not found (pip install nvidia-cublas, or name its folder in "
                                              "RUNG_CUBLAS)");
    const char *missing = NULL;
#define X(name, symbol, signature)                                                                                     \
    *(void **)&p->name = dlsym(blas, symbol);                                                                          \
    if (!p->name)                                                                                                      \
        missing = symbol;
    BLAS_CALLS(X)
#undef X
#define X(name, symbol, signature)                                                                                     \
    *(void **)&p->name = dlsym(lt, symbol);                                                                            \
    if (!p->name)                                                                                                      \
        missing = symbol;
    LT_CALLS(X)
#undef X
    if (missing)
        return lab_fail(RUNG_MISSING_LIBRARY, "cuBLAS is too old: it has no %s (12.0 or later is needed)", missing);
    Dl_info where;
    void *address;
    memcpy(&address, &p->create, sizeof address);
    if (dladdr(address, &where) && where.dli_fname)
        snprintf(peer->path, sizeof peer->path, "%s", where.dli_fname);
    return RUNG_SUCCESS;
}

static void close_peer(lab_peer *peer)
{
    cuda_peer *p = peer->state;
    if (!p)
        return;
    drop_descriptors(p);
    if (p->handle && peer->run == run_lt)
        p->lt_destroy(p->handle);
    else if (p->handle)
        p->destroy(p->handle);
    lab_buffer_free(peer->place, &p->workspace);
    rung_tools_event_destroy(peer->place->tools, p->start);
    rung_tools_event_destroy(peer->place->tools, p->stop);
    free(p);
}

static void format_version(lab_peer *peer, int version)
{
    snprintf(peer->version, sizeof peer->version, "%d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static rung_status open_blas(lab_peer *peer, int math_mode)
{
    cuda_peer *p = peer->state;
    int version = 0;
    peer->run = run_blas;
    LAB_TRY(check(peer, p->create(&p->handle), "cublasCreate"));
    LAB_TRY(check(peer, p->set_stream(p->handle, p->stream), "cublasSetStream"));
    LAB_TRY(check(peer, p->set_math(p->handle, math_mode), "cublasSetMathMode"));
    p->version(p->handle, &version);
    format_version(peer, version);
    return RUNG_SUCCESS;
}

static rung_status open_lt(lab_peer *peer)
{
    cuda_peer *p = peer->state;
    peer->run = run_lt;
    peer->prepare = prepare_lt;
    LAB_TRY(check(peer, p->lt_create(&p->handle), "cublasLtCreate"));
    LAB_TRY(lab_buffer_reserve(peer->place, &p->workspace, WORKSPACE_BYTES));
    LAB_TRY(rung_tools_event_create(peer->place->tools, &p->start));
    LAB_TRY(rung_tools_event_create(peer->place->tools, &p->stop));
    format_version(peer, p->lt_version());
    return RUNG_SUCCESS;
}

rung_status lab_peer_open_gpu(lab_place *place, const char *name, lab_peer *peer)
{
    cuda_peer *p = calloc(1, sizeof *p);
    if (!p)
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for a peer's state");
    peer->state = p;
    peer->close = close_peer;
    p->stream = rung_tools_stream(place->tools);
    rung_status status;
    LAB_TRY_OUT(open_calls(peer));
    enum { DEFAULT_MATH = 0, TF32_MATH = 3 };
    LAB_TRY_OUT(strcmp(name, "cublaslt") == 0
                    ? open_lt(peer)
                    : open_blas(peer, strcmp(name, "cublas") == 0 ? DEFAULT_MATH : TF32_MATH));
    return RUNG_SUCCESS;
out:
    close_peer(peer);
    peer->close = NULL;
    peer->state = NULL;
    return status;
}
