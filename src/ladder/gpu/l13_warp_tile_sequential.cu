/* l13_warp_tile_sequential: a warp owns a 32x64 piece of the tile and takes it in four 16x32 steps, side by side.
 * Changed from l12_a_transposed: 4x8 lanes of 4x4 results make one 16x32 step, where a warp was 2x16 lanes before. Its
 * fragments of A and B together are 96 floats a step of k instead of 16 + 128: eight lanes read 128 neighbouring bytes
 * of B, all banks once. A thread's 8x8 results are four 4x4 pieces, 16 rows and 32 columns apart.
 * Limits: the block waits for each of its tiles.
 */
#include "device/tile.h"

/* lesson */
enum { BM = 128, BN = 128, BK = 8, WM = 32, WN = 64, TM = 8, TN = 8, PAD = 4, THREADS = BM * BN / (TM * TN) };
/* Where a thread's second four rows and columns are. */
enum { ROW_STEP = 16, COLUMN_STEP = 32 };

RUNG_KERNEL(THREADS, 2) l13_warp_tile_sequential(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BK][BM + PAD]; /* [k][row] */
    __shared__ __align__(16) float b_tile[BK][BN];
    int thread = threadIdx.x;
    int lane = thread % 32, warp = thread / 32;
    int y = warp / 2 * WM + lane / 8 * 4, x = warp % 2 * WN + lane % 8 * 4;
    /* /lesson */
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
        a_tile[a_c][a_r] = av.x;
        a_tile[a_c + 1][a_r] = av.y;
        a_tile[a_c + 2][a_r] = av.z;
        a_tile[a_c + 3][a_r] = av.w;
        *(float4 *)&b_tile[b_r][b_c] = bv;
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk++) {
            float a[TM], b[TN];
            rung_get4(a, &a_tile[kk][y]);
            rung_get4(a + 4, &a_tile[kk][y + ROW_STEP]);
            rung_get4(b, &b_tile[kk][x]);
            rung_get4(b + 4, &b_tile[kk][x + COLUMN_STEP]);
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int u = 0; u < TN; u++)
                    acc[t][u] = fmaf(a[t], b[u], acc[t][u]);
        }
    }

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(&g, row0 + y + t / 4 * ROW_STEP + t % 4, column0 + x + u / 4 * COLUMN_STEP,
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), c_inside);
}
