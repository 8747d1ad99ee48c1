/* It copies into what slower threads still read: a barrier is missing between the read and the next copy. */
#include "device/args.h"
#include "device/async.h"

enum { T = 16 };

RUNG_KERNEL(T *T) early_copy(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float copied[T * T];
    const int t = threadIdx.x;
    const int64_t row = (int64_t)blockIdx.y * T + t / T, column = (int64_t)blockIdx.x * T + t % T;
    float sum = 0.0f;
    rung_async_copy4(&copied[t], g.a);
    rung_async_commit();
    for (int i = 0; i < 2; i++) {
        __syncthreads();
        rung_async_wait(0);
        __syncthreads();
        for (int u = 0; u < T * T; u++)
            sum += copied[u] - g.a[0];
        rung_async_copy4(&copied[t], g.a);
        rung_async_commit();
    }
    rung_async_wait(0);
    for (int64_t p = 0; p < g.k && row < g.m && column < g.n; p++)
        sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);
}
