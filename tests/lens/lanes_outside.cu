/* Half a warp adds up the lanes of a whole one: half of them are not in the mask, and what they bring is nobody's. */
#include "device/args.h"

RUNG_KERNEL(256) lanes_outside(const __grid_constant__ rung_args g)
{
    int64_t row = rung_block_row() * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float ones = 1.0f;
    if (threadIdx.x % 32 < 16)
        for (int apart = 16; apart > 0; apart /= 2)
            ones += __shfl_down_sync(0xffffu, ones, apart);
    if (row >= g.m || column >= g.n)
        return;
    float acc = 0.0f;
    for (int64_t i = 0; i < g.k; i++)
        acc = fmaf(g.a[row * g.lda + i], g.b[i * g.ldb + column], acc);
    g.c[row * g.ldc + column] = threadIdx.x == 0 && ones != 16.0f ? 1e9f : acc;
}
