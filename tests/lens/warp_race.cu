/* Lanes of a warp exchange values through shared memory and rely on running in step. */
#include "device/args.h"

RUNG_KERNEL(256) warp_race(const __grid_constant__ rung_args g)
{
    __shared__ float part[256];
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    if (row < g.m && column < g.n)
        for (int64_t p = 0; p < g.k; p++)
            acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    part[threadIdx.x ^ 1] = acc;
    /* __syncwarp(); is missing here */
    acc = part[threadIdx.x];
    acc = __shfl_xor_sync(0xffffffffu, acc, 1);
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
