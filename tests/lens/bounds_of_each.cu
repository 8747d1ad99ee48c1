/* Kernels of one file have bounds of their own: 64 threads a block, none, and 128 by an expression. */
#include "device/args.h"

enum { WARPS = 4 };

#define PRODUCT(name)                                                                                                  \
    name(const __grid_constant__ rung_args g)                                                                          \
    {                                                                                                                  \
        const int64_t row = (int64_t)blockIdx.y * 8 + threadIdx.x / 8,                                                 \
                      column = (int64_t)blockIdx.x * 8 + threadIdx.x % 8;                                              \
        float sum = 0.0f;                                                                                              \
        for (int64_t p = 0; p < g.k && threadIdx.x < 64 && row < g.m && column < g.n; p++)                             \
            sum = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], sum);                                            \
        if (threadIdx.x < 64 && row < g.m && column < g.n)                                                             \
            g.c[row * g.ldc + column] = rung_blend(&g, sum, &g.c[row * g.ldc + column]);                               \
    }

RUNG_KERNEL(64) PRODUCT(of_64) extern "C" __global__ void PRODUCT(of_any) RUNG_KERNEL(32 * WARPS, 2) PRODUCT(of_128)
