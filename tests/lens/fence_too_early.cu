/* The copy engine writes over what another thread has written: in the first block the thread that starts the copy
 * fences when it knows of that, in the others before. */
#include "device/args.h"
#include "device/ptx.h"

enum { T = 16 };

RUNG_KERNEL(T *T) fence_too_early(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float copied[4];
    __shared__ uint64_t bar;
    const int t = threadIdx.x;
    const bool first = blockIdx.x == 0 && blockIdx.y == 0;
    const int64_t row = (int64_t)blockIdx.y * T + t / T, column = (int64_t)blockIdx.x * T + t % T;
    if (t == 0 && !first)
        ptx_async_fence();
    if (t == 32)
        copied[0] = 1.0f;
    __syncthreads();
    if (t == 0) {
        if (first)
            ptx_async_fence();
        ptx_mbar_init(ptx_smem(&bar), 1);
        ptx_mbar_init_fence();
        ptx_mbar_arrive_tx(ptx_smem(&bar), sizeof copied);
        ptx_bulk_load(ptx_smem(copied), g.a, sizeof copied, ptx_smem(&bar));
    }
    __syncthreads();
    ptx_mbar_wait(ptx_smem(&bar), 0);
    float sum = copied[0] - g.a[0];
    for (int64_t p = 0; p < g.k && row < g.m && column < g.n; p++)
        sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);
}
