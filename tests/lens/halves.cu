/* Two numbers of 16 bits share a word: threads count in the one by atomics, the others look at the other one. With an
 * alpha of 2 nobody has cleared the counter, with one of 3 some look at it while it counts. */
#include "device/args.h"

RUNG_KERNEL(256) halves(const __grid_constant__ rung_args g)
{
    __shared__ unsigned short count[2];
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    if (row < g.m && column < g.n)
        for (int64_t p = 0; p < g.k; p++)
            acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    if (threadIdx.x < 2 && (threadIdx.x || g.alpha != 2.0f))
        count[threadIdx.x] = 7;
    __syncthreads();
    if (threadIdx.x < 64)
        atomicCAS(&count[0], (unsigned short)7, (unsigned short)8);
    else if (threadIdx.x < 128)
        acc = count[g.alpha != 3.0f] == 7 ? acc : 0.0f;
    __syncthreads();
    acc = count[0] == 8 ? acc : 0.0f;
    if (row < g.m && column < g.n)
        g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
