/* l11_padded_write_back: the instructive slowdown. Padding by one float, A transposed, C back through shared memory.
 * Changed from l10_thread_tile_8x8: every global access is now perfectly coalesced, and it is slower. Rows of 129
 * floats forbid 16-byte accesses, so 64 FMAs need 16 shared loads instead of 4; the lanes' columns lie 8 floats apart,
 * where padding of rows does not help: four lanes meet in each bank. C, which it improves, is one of 65 floats that
 * move at k = 4096.
 * Limits: bound by shared memory; keep this rung to measure what coalescing in the wrong place costs.
 */
#include "device/args.h"

enum { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, PAD = 1, THREADS = BM * BN / (TM * TN) };

RUNG_KERNEL(THREADS, 2) l11_padded_write_back(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[BK][BM + PAD]; /* [k][row] */
    __shared__ float b_tile[BK][BN + PAD];
    __shared__ float c_tile[BM / TM][BN + PAD]; /* one row of each of the 16 rows of threads */
    int thread = threadIdx.x;
    int x = thread % (BN / TN), y = thread / (BN / TN);
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;

    float acc[TM][TN] = {{0.0f}};
    /* lesson */
    for (int64_t i = 0; i < g.k; i += BK) {
#pragma unroll 2
        for (int e = thread; e < BM * BK; e += THREADS) {
            int r = e / BK, c = e % BK;
            a_tile[c][r] = row0 + r < g.m && i + c < g.k ? g.a[(row0 + r) * g.lda + i + c] : 0.0f;
        }
#pragma unroll 2
        for (int e = thread; e < BK * BN; e += THREADS) {
            int r = e / BN, c = e % BN;
            b_tile[r][c] = i + r < g.k && column0 + c < g.n ? g.b[(i + r) * g.ldb + column0 + c] : 0.0f;
        }
        __syncthreads();
        /* /lesson */
#pragma unroll
        for (int kk = 0; kk < BK; kk++) {
            float a[TM], b[TN];
#pragma unroll
            for (int t = 0; t < TM; t++)
                a[t] = a_tile[kk][y * TM + t];
#pragma unroll
            for (int u = 0; u < TN; u++)
                b[u] = b_tile[kk][x * TN + u];
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int u = 0; u < TN; u++)
                    acc[t][u] = fmaf(a[t], b[u], acc[t][u]);
        }
        __syncthreads();
    }

    /* lesson out */
    /* Eight passes: row t of every thread goes to shared memory, then whole rows of 128 floats go out. */
#pragma unroll
    for (int t = 0; t < TM; t++) {
#pragma unroll
        for (int u = 0; u < TN; u++)
            c_tile[y][x * TN + u] = acc[t][u];
        __syncthreads();
        for (int e = thread; e < BM / TM * BN; e += THREADS) {
            int64_t row = row0 + e / BN * TM + t, column = column0 + e % BN;
            if (row < g.m && column < g.n) {
                float *c = &g.c[row * g.ldc + column];
                *c = rung_blend(&g, c_tile[e / BN][e % BN], c);
            }
        }
        __syncthreads();
    }
    /* /lesson */
}
