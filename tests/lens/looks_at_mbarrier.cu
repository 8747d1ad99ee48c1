/* No fault: a warp looks at an mbarrier, in a loop, until a later warp has come to it. */
#include "device/args.h"
#include "device/ptx.h"

enum { T = 16, WARP = 32 };

RUNG_KERNEL(T *T) looks_at_mbarrier(const __grid_constant__ rung_args g)
{
    __shared__ uint64_t bar;
    __shared__ float told;
    const int t = threadIdx.x;
    const int64_t row = (int64_t)blockIdx.y * T + t / T, column = (int64_t)blockIdx.x * T + t % T;
    if (t == 0)
        ptx_mbar_init(ptx_smem(&bar), 1);
    __syncthreads();
    if (t == T * T - 1) {
        told = 2.0f;
        ptx_mbar_arrive(ptx_smem(&bar));
    }
    float sum = 0.0f;
    if (t < WARP) {
        while (!ptx_mbar_test(ptx_smem(&bar), 0))
            ;
        sum = told - 2.0f;
    }
    for (int64_t p = 0; p < g.k && row < g.m && column < g.n; p++)
        sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);
}
