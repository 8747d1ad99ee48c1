/* Of two structures side by side in shared memory the second begins at a multiple of 8, and a copy wants one of 16. */
#include "device/args.h"
#include "device/async.h"

enum { T = 16 };

typedef struct {
    float values[T * T];
    float last[2];
} part;

RUNG_KERNEL(T *T) misaligned_copy(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) part parts[2];
    const int t = threadIdx.x;
    const int64_t row = (int64_t)blockIdx.y * T + t / T, column = (int64_t)blockIdx.x * T + t % T;
    if (t == 0)
        rung_async_copy16(parts[1].values, g.a);
    rung_async_commit();
    rung_async_wait(0);
    float sum = 0.0f;
    for (int64_t p = 0; p < g.k && row < g.m && column < g.n; p++)
        sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);
}
