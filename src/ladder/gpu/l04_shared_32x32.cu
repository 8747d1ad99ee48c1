/* l04_shared_32x32: the same tiles, 32x32 with 1024 threads.
 * Changed from l04_shared_16x16: each float fetched serves 32 results instead of 16, a row of a tile is one full warp
 * (128 bytes, all 32 banks), and the two barriers come every 32 FMAs.
 * Limits: two shared loads for one FMA; with more than 32 registers a thread only one block of 1024 fits an SM.
 */
#include "device/args.h"

enum { BM = 32, BN = 32, BK = 32 };

RUNG_KERNEL(BM *BN) l04_shared_32x32(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK];
    __shared__ __align__(16) float b_tile[BK][BN];
    int x = threadIdx.x % BN, y = threadIdx.x / BN;
    int64_t row = rung_block_row() * BM + y;
    int64_t column = (int64_t)blockIdx.x * BN + x;
    /* Past an edge the last row or column is read again: what comes of it is never written. */
    int64_t a_row = row < g.m ? row : g.m - 1, b_column = column < g.n ? column : g.n - 1;

    float acc = 0.0f;
    /* lesson */
    for (int64_t i = 0; i < g.k; i += BK) {
        float av = i + x < g.k ? g.a[a_row * g.lda + i + x] : 0.0f;
        float bv = i + y < g.k ? g.b[(i + y) * g.ldb + b_column] : 0.0f;
        __syncthreads(); /* everybody is done with the last tiles; the two loads travel meanwhile */
        a_tile[y][x] = av;
        b_tile[y][x] = bv;
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk++)
            acc = fmaf(a_tile[y][kk], b_tile[kk][x], acc);
    }
    /* /lesson */

    if (row < g.m && column < g.n) {
        float *c = &g.c[row * g.ldc + column];
        *c = rung_blend(&g, acc, c);
    }
}
