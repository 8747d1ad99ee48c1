/* e22_choose: a tile of 40 x 40: 13 x 13 blocks for C of 512 x 512, 10 FLOP a byte. */
#include "device/exercise.h"
#include "device/tile.h"

enum { BM = 40, BN = 40, BK = 16, TM = 4, TN = 4, PAD = 4, THREADS = BM * BN / (TM * TN) };
EXERCISE_TILE(BM, BN, THREADS);

RUNG_KERNEL(THREADS) e22_choose(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[BM][BK + PAD], b_tile[BK][BN];
    int x = threadIdx.x % (BN / TN), y = threadIdx.x / (BN / TN) * TM;
    int64_t row0 = (int64_t)blockIdx.y * BM, column0 = (int64_t)blockIdx.x * BN;

    float acc[TM][TN] = {{0.0f}};
    for (int64_t i = 0; i < g.k; i += BK) {
        for (int e = threadIdx.x; e < BM * BK; e += THREADS) {
            int r = e / BK, c = e % BK;
            a_tile[r][c] = row0 + r < g.m && i + c < g.k ? g.a[(row0 + r) * g.lda + i + c] : 0.0f;
        }
        for (int e = threadIdx.x; e < BK * BN; e += THREADS) {
            int r = e / BN, c = e % BN;
            b_tile[r][c] = i + r < g.k && column0 + c < g.n ? g.b[(i + r) * g.ldb + column0 + c] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < BK; j++) {
            float b[TN];
#pragma unroll
            for (int u = 0; u < TN; u++)
                b[u] = b_tile[j][x + u * (BN / TN)];
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int u = 0; u < TN; u++)
                    acc[t][u] = fmaf(a_tile[y + t][j], b[u], acc[t][u]);
        }
        __syncthreads();
    }

#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u++) {
            int64_t row = row0 + y + t, column = column0 + x + u * (BN / TN);
            if (row < g.m && column < g.n) {
                float *c = &g.c[row * g.ldc + column];
                *c = rung_blend(&g, acc[t][u], c);
            }
        }
}
