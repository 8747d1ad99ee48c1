/* l10_thread_tile_8x8: 64 results a thread in a 128x128 tile.
 * Changed from l09_thread_tile_4x4: 8x8 results, half the shared loads an FMA (16 float4 for 256 FMAs), and each
 * float fetched from global memory serves 128 results instead of 64. A thread's columns are two groups of four, 64
 * apart: eight side by side would set the lanes' 16-byte loads 32 bytes apart, on half of the banks.
 * Limits: the block waits for each of its tiles; A, read along k, holds 32 registers.
 */
#include "device/tile.h"

enum { BM = 128, BN = 128, BK = 16, TM = 8, TN = 8, PAD = 4, THREADS = BM * BN / (TM * TN) };
enum { FETCHES = BM * BK / 4 / THREADS, A_STEP = BM / FETCHES, B_STEP = BK / FETCHES };

RUNG_KERNEL(THREADS, 2) l10_thread_tile_8x8(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK + PAD];
    __shared__ __align__(16) float b_tile[BK][BN];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int y = (warp / 2 * 4 + lane / 8) * TM, x = (warp % 2 * 8 + lane % 8) * 4;
    int a_r = thread / (BK / 4), a_c = thread % (BK / 4) * 4;
    int b_r = thread / (BN / 4), b_c = thread % (BN / 4) * 4;
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;
    bool inside =
        rung_is_aligned16(g.a, g.lda) && rung_is_aligned16(g.b, g.ldb) && row0 + BM <= g.m && column0 + BN <= g.n;
    const float *a_next = g.a + (row0 + a_r) * g.lda + a_c, *b_next = g.b + b_r * g.ldb + column0 + b_c;

    float acc[TM][TN] = {{0.0f}};
    for (int64_t i = 0; i < g.k; i += BK) {
        bool whole = inside && i + BK <= g.k;
        float4 av[FETCHES], bv[FETCHES];
#pragma unroll
        for (int f = 0; f < FETCHES; f++) {
            av[f] = rung_read4_at(a_next + f * A_STEP * g.lda, g.m, g.k, row0 + a_r + f * A_STEP, i + a_c, whole);
            bv[f] = rung_read4_at(b_next + f * B_STEP * g.ldb, g.k, g.n, i + b_r + f * B_STEP, column0 + b_c, whole);
        }
        a_next += BK;
        b_next += BK * g.ldb;
        __syncthreads(); /* everybody is done with the last tiles; the loads travel meanwhile */
#pragma unroll
        for (int f = 0; f < FETCHES; f++) {
            *(float4 *)&a_tile[a_r + f * A_STEP][a_c] = av[f];
            *(float4 *)&b_tile[b_r + f * B_STEP][b_c] = bv[f];
        }
        __syncthreads();
#pragma unroll
        /* lesson */
        for (int kk = 0; kk < BK; kk += 4) {
            float a[TM][4], b[TN];
#pragma unroll
            for (int t = 0; t < TM; t++)
                rung_get4(a[t], &a_tile[y + t][kk]);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                rung_get4(b, &b_tile[kk + j][x]);
                rung_get4(b + 4, &b_tile[kk + j][x + BN / 2]);
#pragma unroll
                for (int t = 0; t < TM; t++)
#pragma unroll
                    for (int v = 0; v < TN; v++) {
                        int u = t % 2 ? TN - 1 - v : v; /* along one row, back along the next */
                        acc[t][u] = fmaf(a[t][j], b[u], acc[t][u]);
                    }
            }
        }
        /* /lesson */
    }

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(&g, row0 + y + t, column0 + x + u / 4 * (BN / 2),
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), c_inside);
}
