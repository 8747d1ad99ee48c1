/* l12_a_transposed: A turned on its way into shared memory, every access 16 bytes again.
 * Changed from l10_thread_tile_8x8 (l11 led nowhere): a_tile is [k][row], so the rows of a thread lie side by side:
 * two float4 of A and two of B for each step of k, and A's fragments need 8 registers instead of 32. Rows of 132
 * floats keep the two lanes that hold one row of A, 4 steps of k apart, out of each other's banks when they store it.
 * Limits: the block waits for each of its tiles.
 */
#include "device/tile.h"

enum { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, PAD = 4, THREADS = BM * BN / (TM * TN) };

RUNG_KERNEL(THREADS, 2) l12_a_transposed(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BK][BM + PAD]; /* [k][row] */
    __shared__ __align__(16) float b_tile[BK][BN];
    int thread = threadIdx.x;
    int x = thread % (BN / TN) * 4, y = thread / (BN / TN) * TM;
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
        /* lesson */
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
            rung_get4(a + 4, &a_tile[kk][y + 4]);
            rung_get4(b, &b_tile[kk][x]);
            rung_get4(b + 4, &b_tile[kk][x + BN / 2]);
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int u = 0; u < TN; u++)
                    acc[t][u] = fmaf(a[t], b[u], acc[t][u]);
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
