/* l07_column_4x1: four results a thread, one above the other.
 * Changed from l06_conflict_free: a float of B, once in a register, serves four rows. Per 4 steps of k a thread loads
 * four float4 of A and one of B for 16 FMAs: 0.31 shared loads an FMA instead of 0.5. A quarter of the threads does
 * the work.
 * Limits: each thread copies four floats of each tile, one at a time.
 */
#include "device/args.h"

enum { BM = 32, BN = 32, BK = 32, TM = 4, PAD = 4, THREADS = BM * BN / TM };
enum { A_STEP = THREADS / BK, B_STEP = THREADS / BN }; /* rows that the block fetches at a time */

RUNG_KERNEL(THREADS) l07_column_4x1(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK];
    __shared__ __align__(16) float b_tile[BN][BK + PAD]; /* [column][k] */
    int x = threadIdx.x % BN, y = threadIdx.x / BN;
    int a_x = threadIdx.x % BK, a_y = threadIdx.x / BK;
    int64_t row0 = rung_block_row() * BM;
    int64_t column = (int64_t)blockIdx.x * BN + x;
    int64_t b_column = column < g.n ? column : g.n - 1; /* past the edge the last one is read again, and not written */
    const float *a_next = g.a + (row0 + a_y) * g.lda + a_x, *b_next = g.b + y * g.ldb + b_column;

    float acc[TM] = {0.0f};
    for (int64_t left = g.k; left > 0; left -= BK) {
        float av[BM * BK / THREADS], bv[BK * BN / THREADS];
#pragma unroll
        for (int f = 0; f < BM * BK / THREADS; f++)
            av[f] = row0 + a_y + f * A_STEP < g.m && a_x < left ? a_next[f * A_STEP * g.lda] : 0.0f;
#pragma unroll
        for (int f = 0; f < BK * BN / THREADS; f++)
            bv[f] = y + f * B_STEP < left ? b_next[f * B_STEP * g.ldb] : 0.0f;
        a_next += BK;
        b_next += BK * g.ldb;
        __syncthreads(); /* everybody is done with the last tiles; the loads travel meanwhile */
#pragma unroll
        for (int f = 0; f < BM * BK / THREADS; f++)
            a_tile[a_y + f * A_STEP][a_x] = av[f];
#pragma unroll
        for (int f = 0; f < BK * BN / THREADS; f++)
            b_tile[x][y + f * B_STEP] = bv[f];
        __syncthreads();
        /* lesson */
#pragma unroll
        for (int kk = 0; kk < BK; kk += 4) {
            float4 bv = *(const float4 *)&b_tile[x][kk];
#pragma unroll
            for (int t = 0; t < TM; t++) {
                float4 av = *(const float4 *)&a_tile[y * TM + t][kk];
                acc[t] = fmaf(av.x, bv.x, acc[t]);
                acc[t] = fmaf(av.y, bv.y, acc[t]);
                acc[t] = fmaf(av.z, bv.z, acc[t]);
                acc[t] = fmaf(av.w, bv.w, acc[t]);
            }
        }
        /* /lesson */
    }

#pragma unroll
    for (int t = 0; t < TM; t++) {
        int64_t row = row0 + y * TM + t;
        if (row < g.m && column < g.n) {
            float *c = &g.c[row * g.ldc + column];
            *c = rung_blend(&g, acc[t], c);
        }
    }
}
