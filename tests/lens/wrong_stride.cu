/* Takes A's leading dimension for B's. */
#include "device/args.h"

RUNG_KERNEL(256) wrong_stride(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    if (row >= g.m || column >= g.n)
        return;
    for (int64_t p = 0; p < g.k; p++)
        acc = fmaf(g.a[row * g.lda + p], g.b[p * g.lda + column], acc);
    g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
