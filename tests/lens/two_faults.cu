/* One access is wrong in two ways: what some threads read nobody has written, what others read is another warp's,
 * without a barrier. */
#include "device/args.h"

RUNG_KERNEL(256) two_faults(const __grid_constant__ rung_args g)
{
    __shared__ float part[256];
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    if (row < g.m && column < g.n)
        for (int64_t p = 0; p < g.k; p++)
            acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    if (threadIdx.x < 128)
        part[threadIdx.x ^ 32] = 0.0f;
    /* __syncthreads(); is missing here, and half of the values */
    acc += part[threadIdx.x];
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
