/* l08_float4: 16-byte loads and stores between global memory and the block.
 * Changed from l07_column_8x1: a thread's eight results are two rows of four columns, so B is read and C written as
 * float4; tiles are copied with one 16-byte load a thread and matrix half. A quarter of the global instructions, the
 * same bytes. B lies as in memory again. Neighbouring lanes share their columns: a 16-byte shared load then takes two
 * passes, not four.
 * Limits: rows that do not start on 16 bytes, and edges, are fetched float by float.
 */
#include "device/tile.h"

enum { BM = 64, BN = 64, BK = 16, TM = 2, TN = 4, PAD = 4, THREADS = BM * BN / (TM * TN) };

RUNG_KERNEL(THREADS) l08_float4(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK + PAD];
    __shared__ __align__(16) float b_tile[BK][BN];
    int thread = threadIdx.x;
    int x = thread / 2 % (BN / TN) * TN, y = (thread / 32 * 2 + thread % 2) * TM;
    bool copies_a = thread < BM * BK / 4; /* the first half of the threads copies A, the second B */
    int r = copies_a ? thread / (BK / 4) : thread % (BK * BN / 4) / (BN / 4);
    int c = copies_a ? thread % (BK / 4) * 4 : thread % (BN / 4) * 4;
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;
    bool inside =
        rung_is_aligned16(g.a, g.lda) && rung_is_aligned16(g.b, g.ldb) && row0 + BM <= g.m && column0 + BN <= g.n;

    float acc[TM][TN] = {{0.0f}};
    /* lesson load */
    for (int64_t i = 0; i < g.k; i += BK) {
        bool whole = inside && i + BK <= g.k;
        float4 v;
        if (copies_a)
            v = rung_read4(g.a, g.lda, g.m, g.k, row0 + r, i + c, whole);
        else
            v = rung_read4(g.b, g.ldb, g.k, g.n, i + r, column0 + c, whole);
        __syncthreads(); /* everybody is done with the last tiles; the load travels meanwhile */
        *(float4 *)(copies_a ? &a_tile[r][c] : &b_tile[r][c]) = v;
        __syncthreads();
        /* /lesson */
        /* lesson multiply */
#pragma unroll
        for (int kk = 0; kk < BK; kk += 4) {
            float a[TM][4];
#pragma unroll
            for (int t = 0; t < TM; t++)
                rung_get4(a[t], &a_tile[y + t][kk]);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                float4 bv = *(const float4 *)&b_tile[kk + j][x];
#pragma unroll
                for (int t = 0; t < TM; t++) {
                    acc[t][0] = fmaf(a[t][j], bv.x, acc[t][0]);
                    acc[t][1] = fmaf(a[t][j], bv.y, acc[t][1]);
                    acc[t][2] = fmaf(a[t][j], bv.z, acc[t][2]);
                    acc[t][3] = fmaf(a[t][j], bv.w, acc[t][3]);
                }
            }
        }
        /* /lesson */
    }

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
        rung_write4(&g, row0 + y + t, column0 + x, make_float4(acc[t][0], acc[t][1], acc[t][2], acc[t][3]), c_inside);
}
