/* The two halves of a block wait at different barriers. */
#include "device/args.h"

RUNG_KERNEL(256) divergent_barrier(const __grid_constant__ rung_args g)
{
    __shared__ float part[256];
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    if (threadIdx.x < 128) {
        part[threadIdx.x] = 1.0f;
        __syncthreads();
    } else {
        part[threadIdx.x] = 2.0f;
        __syncthreads();
    }
    if (row >= g.m || column >= g.n)
        return;
    for (int64_t p = 0; p < g.k; p++)
        acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
