/* One body for the lens's tests: tensor cores multiply zeros that threads have stored, twice, and the copy engine
 * brings a vector into memory that a thread has written. Without a fault fences and waits stand in between. */
#include "device/args.h"
#include "device/ptx.h"

#ifndef FENCE
#define FENCE() ptx_async_fence()
#endif
#ifndef FENCE_BEFORE_COPY
#define FENCE_BEFORE_COPY() ptx_async_fence()
#endif
#ifndef AWAIT_PRODUCTS
#define AWAIT_PRODUCTS() PTX_WGMMA_WAIT(0)
#endif
#ifndef PUBLISH
#define PUBLISH() ptx_mbar_init_fence()
#endif
#ifndef PUBLISH_ANOTHERS
#define PUBLISH_ANOTHERS()
#endif

enum { T = 16, GROUP = 128, ROW_FLOATS = 32 };

RUNG_KERNEL(T *T) KERNEL_NAME(const __grid_constant__ rung_args g)
{
    __shared__ __align__(1024) float zeros[GROUP * ROW_FLOATS];
    __shared__ __align__(16) float copied[4];
    __shared__ uint64_t bar;
    const int t = threadIdx.x;
    const int64_t row = (int64_t)blockIdx.y * T + t / T, column = (int64_t)blockIdx.x * T + t % T;
    float acc[64], sum = 0.0f;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = t; i < GROUP * ROW_FLOATS; i += T * T)
            zeros[i] = 0.0f;
        FENCE();
        __syncthreads();
        ptx_wgmma_fence();
        PTX_WGMMA_TF32_N128(acc, ptx_wgmma_desc_k128(ptx_smem(zeros)), ptx_wgmma_desc_k128(ptx_smem(zeros)), 0);
        ptx_wgmma_commit();
        AWAIT_PRODUCTS();
        __syncthreads();
        sum += acc[pass];
    }
    if (t == 0) {
        copied[0] = 1.0f;
        FENCE_BEFORE_COPY();
        ptx_mbar_init(ptx_smem(&bar), 1);
        PUBLISH();
    }
    __syncthreads();
    if (t == 1)
        PUBLISH_ANOTHERS();
    __syncthreads();
    if (t == 0) {
        ptx_mbar_arrive_tx(ptx_smem(&bar), sizeof copied);
        ptx_bulk_load(ptx_smem(copied), g.a, sizeof copied, ptx_smem(&bar));
    }
    __syncthreads();
    ptx_mbar_wait(ptx_smem(&bar), 0);
    sum += copied[0] - g.a[0];
    for (int64_t p = 0; p < g.k && row < g.m && column < g.n; p++)
        sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);
}
