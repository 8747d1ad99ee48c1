/* e08_four_rows: a tile of 32 x 32 by 256 threads. Now each thread computes its four results one after another. */
#include "device/args.h"

enum { BM = 32, BN = 32, ROWS = 4, STEP = BM / ROWS };

RUNG_KERNEL(BN *STEP) e08_four_rows(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * BM + threadIdx.x / BN;
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x % BN;
    if (column >= g.n)
        return;

    for (int r = 0; r < ROWS && row + r * STEP < g.m; r++) {
        float acc = 0.0f;
        for (int64_t i = 0; i < g.k; i++)
            acc = fmaf(g.a[(row + r * STEP) * g.lda + i], g.b[i * g.ldb + column], acc);
        float *c = &g.c[(row + r * STEP) * g.ldc + column];
        *c = rung_blend(&g, acc, c);
    }
}
