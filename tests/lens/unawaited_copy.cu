/* Of two copies into the same memory nobody waits for the second: it may arrive when the memory is another block's. */
#include "device/args.h"
#include "device/ptx.h"

enum { T = 16 };

RUNG_KERNEL(T *T) unawaited_copy(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float copied[4];
    __shared__ uint64_t bar;
    const int t = threadIdx.x;
    const int64_t row = (int64_t)blockIdx.y * T + t / T, column = (int64_t)blockIdx.x * T + t % T;
    float sum = 0.0f;
    if (t == 0) {
        ptx_mbar_init(ptx_smem(&bar), 1);
        ptx_mbar_init_fence();
        ptx_mbar_arrive_tx(ptx_smem(&bar), sizeof copied);
        ptx_bulk_load(ptx_smem(copied), g.a, sizeof copied, ptx_smem(&bar));
        ptx_mbar_wait(ptx_smem(&bar), 0);
        ptx_mbar_arrive_tx(ptx_smem(&bar), sizeof copied);
        ptx_bulk_load(ptx_smem(copied), g.a, sizeof copied, ptx_smem(&bar));
    }
    for (int64_t p = 0; p < g.k && row < g.m && column < g.n; p++)
        sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);
}
