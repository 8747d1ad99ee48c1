/* e06_dot: one result a thread, by the definition. */
#include "device/args.h"

enum { BM = 8, BN = 32 };

RUNG_KERNEL(BM *BN) e06_dot(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * BM + threadIdx.x / BN;
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x % BN;
    if (row >= g.m || column >= g.n)
        return;

    float acc = 0.0f;
    for (int64_t i = 0; i < g.k; i++)
        acc = fmaf(g.a[row * g.lda + i], g.b[i * g.ldb + column], acc);

    float *c = &g.c[row * g.ldc + column];
    *c = rung_blend(&g, acc, c);
}
