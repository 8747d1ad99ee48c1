/* l09_thread_tile_4x4: sixteen results a thread in a 64x64 tile.
 * Changed from l08_float4: 4x4 results instead of 2x4. Per 4 steps of k a thread loads four float4 of A and four of B
 * for 64 FMAs: a third fewer shared loads an FMA, and half the threads for the same tile, each with more work to
 * overlap.
 * Limits: every tile is fetched, waited for and then used: nothing overlaps but the blocks of an SM.
 */
#include "device/tile.h"

enum { BM = 64, BN = 64, BK = 16, TM = 4, TN = 4, PAD = 4, THREADS = BM * BN / (TM * TN) };

RUNG_KERNEL(THREADS, 4) l09_thread_tile_4x4(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK + PAD];
    __shared__ __align__(16) float b_tile[BK][BN];
    int thread = threadIdx.x;
    int x = thread / 2 % (BN / TN) * TN, y = (thread / 32 * 2 + thread % 2) * TM;
    int a_r = thread / (BK / 4), a_c = thread % (BK / 4) * 4;
    int b_r = thread / (BN / 4), b_c = thread % (BN / 4) * 4;
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;
    bool inside =
        rung_is_aligned16(g.a, g.lda) && rung_is_aligned16(g.b, g.ldb) && row0 + BM <= g.m && column0 + BN <= g.n;
    const float *a_next = g.a + (row0 + a_r) * g.lda + a_c, *b_next = g.b + b_r * g.ldb + column0 + b_c;

    float acc[TM][TN] = {{0.0f}};
    for (int64_t i = 0; i < g.k; i += BK) {
        bool whole = inside && i + BK <= g.k;
        float4 av = rung_read4_at(a_next, g.m, g.k, row0 + a_r, i + a_c, whole);
        float4 bv = rung_read4_at(b_next, g.k, g.n, i + b_r, column0 + b_c, whole);
        a_next += BK;
        b_next += BK * g.ldb;
        __syncthreads(); /* everybody is done with the last tiles; the loads travel meanwhile */
        *(float4 *)&a_tile[a_r][a_c] = av;
        *(float4 *)&b_tile[b_r][b_c] = bv;
        __syncthreads();
        /* lesson */
#pragma unroll
        for (int kk = 0; kk < BK; kk += 4) {
            float a[4], b[4][TN];
#pragma unroll
            for (int j = 0; j < 4; j++)
                rung_get4(b[j], &b_tile[kk + j][x]);
#pragma unroll
            for (int t = 0; t < TM; t++) {
                rung_get4(a, &a_tile[y + t][kk]);
#pragma unroll
                for (int j = 0; j < 4; j++)
#pragma unroll
                    for (int u = 0; u < TN; u++)
                        acc[t][u] = fmaf(a[j], b[j][u], acc[t][u]);
            }
        }
        /* /lesson */
    }

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
        rung_write4(&g, row0 + y + t, column0 + x, make_float4(acc[t][0], acc[t][1], acc[t][2], acc[t][3]), c_inside);
}
