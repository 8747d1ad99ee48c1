/* cuBLAS-XT, the vendor's product of host operands over several GPUs: the peer of rung_multi_sgemm. It gets the best of
 * a few block sizes. */
#include "lab/measure.h"
#include "lab/multi.h"
#include "lab/multi_shared.h"

#include <dlfcn.h>

/* clang-format off */
#define XT_CALLS(X)                                                                                                \
    X(create, "cublasXtCreate", (void **))                                                                         \
    X(destroy, "cublasXtDestroy", (void *))                                                                        \
    X(devices, "cublasXtDeviceSelect", (void *, int, int *))                                                       \
    X(block, "cublasXtSetBlockDim", (void *, int))                                                                 \
    X(sgemm, "cublasXtSgemm",                                                                                      \
      (void *, int, int, size_t, size_t, size_t, const float *, const float *, size_t, const float *, size_t,      \
       const float *, float *, size_t))
/* clang-format on */

typedef struct xt_calls {
#define X(name, symbol, signature) int(*name) signature;
    XT_CALLS(X)
#undef X
} xt_calls;

static rung_status open_calls(xt_calls *x)
{
    void *library = lab_open_cublas();
    if (!library)
        return lab_fail(RUNG_MISSING_LIBRARY, "cuBLAS-XT: libcublas was not found (RUNG_CUBLAS may name its folder)");
#define X(name, symbol, signature)                                                                                     \
    *(void **)&x->name = dlsym(library, symbol);                                                                       \
    if (!x->name)                                                                                                      \
        return lab_fail(RUNG_MISSING_LIBRARY, "cuBLAS-XT: libcublas has no %s", symbol);
    XT_CALLS(X)
#undef X
    return RUNG_SUCCESS;
}

static rung_status check(int status, const char *call)
{
    return status == 0 ? RUNG_SUCCESS : lab_fail(RUNG_DEVICE_ERROR, "%s returned status %d", call, status);
}

static rung_status run(const xt_calls *x, void *handle, const lab_whole *w)
{
    const lab_shape *s = &w->shape;
    float one = 1.0f, zero = 0.0f;
    return check(x->sgemm(handle, s->trans_a, s->trans_b, (size_t)s->m, (size_t)s->n, (size_t)s->k, &one, w->a,
                          (size_t)w->lda, w->b, (size_t)w->ldb, &zero, w->c, (size_t)w->ldc),
                 "cublasXtSgemm");
}

rung_status lab_multi_cublasxt(const lab_whole *w, int gpus, int repeats, lab_stats *us, int *block)
{
    static const int blocks[] = {1024, 2048, 4096, 8192};
    xt_calls x = {0};
    void *handle = NULL;
    int devices[LAB_MULTI_RANKS];
    double times[LAB_MULTI_REPEATS];
    rung_status status;
    LAB_TRY(open_calls(&x));
    for (int i = 0; i < gpus && i < LAB_MULTI_RANKS; i++)
        devices[i] = i;
    repeats = lab_multi_repeats(repeats);
    us->median = 0.0;
    LAB_TRY(check(x.create(&handle), "cublasXtCreate"));
    LAB_TRY_OUT(check(x.devices(handle, gpus, devices), "cublasXtDeviceSelect"));
    for (int b = 0; b < 4; b++) {
        if (b > 0 && blocks[b] > w->shape.m / 2)
            break;
        LAB_TRY_OUT(check(x.block(handle, blocks[b]), "cublasXtSetBlockDim"));
        for (int i = -1; i < repeats; i++) {
            double start_s = lab_now_s();
            LAB_TRY_OUT(run(&x, handle, w));
            if (i >= 0)
                times[i] = (lab_now_s() - start_s) * 1e6;
        }
        lab_stats now = lab_stats_of(times, repeats);
        if (us->median == 0.0 || now.median < us->median) {
            *us = now;
            *block = blocks[b];
        }
    }
out:
    x.destroy(handle);
    return status;
}
