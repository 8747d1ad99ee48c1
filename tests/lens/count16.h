/* One body for what the lens must find about atomics: the threads of a block are counted in shared memory, a word that
 * one of them clears first and all read afterwards. */
#include "device/args.h"

#ifndef CLEARED
#define CLEARED __syncthreads()
#endif
#ifndef COUNTED
#define COUNTED __syncthreads()
#endif

RUNG_KERNEL(256) KERNEL_NAME(const __grid_constant__ rung_args g)
{
    __shared__ unsigned count;
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    if (row < g.m && column < g.n)
        for (int64_t p = 0; p < g.k; p++)
            acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    if (threadIdx.x == 0)
        count = 0;
    CLEARED;
    atomicAdd(&count, 1u);
    COUNTED;
    acc = count > 0 ? acc : 0.0f;
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
