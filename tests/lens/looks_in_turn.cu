/* No fault: one thread looks again and again until another one has told it so many times. Who looks gives way, so that
 * both go on in turn: a look finds nothing new, or two, but not thousands. */
#include "device/args.h"

enum { TOLD = 100, LOOKS_MOST = 10 * TOLD };

RUNG_KERNEL(256) looks_in_turn(const __grid_constant__ rung_args g)
{
    __shared__ unsigned told;
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    int looks = 0;
    if (threadIdx.x == 0)
        told = 0;
    __syncthreads();
    if (threadIdx.x == 7)
        while (atomicAdd(&told, 0u) < TOLD)
            looks++;
    if (threadIdx.x == 200)
        for (int i = 0; i < TOLD; i++)
            atomicAdd(&told, 1u);
    float acc = looks > LOOKS_MOST ? NAN : 0.0f;
    if (row >= g.m || column >= g.n)
        return;
    for (int64_t p = 0; p < g.k; p++)
        acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
