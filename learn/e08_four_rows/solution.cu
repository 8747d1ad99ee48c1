/* e08_four_rows: a tile of 32 x 32 by 256 threads, four results of a column each: a float of B serves four rows. */
#include "device/args.h"

enum { BM = 32, BN = 32, ROWS = 4, STEP = BM / ROWS };

RUNG_KERNEL(BN *STEP) e08_four_rows(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * BM + threadIdx.x / BN;
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x % BN;
    if (column >= g.n)
        return;

    /* Past the edge the last row is read again: what comes of it is not stored. */
    const float *a[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
        a[r] = &g.a[(row + r * STEP < g.m ? row + r * STEP : g.m - 1) * g.lda];

    float acc[ROWS] = {0.0f};
    for (int64_t i = 0; i < g.k; i++) {
        float b = g.b[i * g.ldb + column];
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            acc[r] = fmaf(a[r][i], b, acc[r]);
    }

#pragma unroll
    for (int r = 0; r < ROWS; r++)
        if (row + r * STEP < g.m) {
            float *c = &g.c[(row + r * STEP) * g.ldc + column];
            *c = rung_blend(&g, acc[r], c);
        }
}
