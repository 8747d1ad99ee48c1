/* e17_float4: a 64 x 64 tile by 512 threads, 2 x 4 results each; tiles are fetched float by float. */
#include "device/tile.h"

enum { BM = 64, BN = 64, BK = 16, TM = 2, TN = 4, PAD = 4, THREADS = BM * BN / (TM * TN) };

RUNG_KERNEL(THREADS) e17_float4(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK + PAD], b_tile[BK][BN];
    int thread = threadIdx.x, x = thread % (BN / TN) * TN, y = thread / (BN / TN) * TM;
    int64_t row0 = (int64_t)blockIdx.y * BM, column0 = (int64_t)blockIdx.x * BN;

    float acc[TM][TN] = {{0.0f}};
    for (int64_t i = 0; i < g.k; i += BK) {
        for (int e = thread; e < BM * BK; e += THREADS) {
            int r = e / BK, c = e % BK;
            a_tile[r][c] = row0 + r < g.m && i + c < g.k ? g.a[(row0 + r) * g.lda + i + c] : 0.0f;
        }
        for (int e = thread; e < BK * BN; e += THREADS) {
            int r = e / BN, c = e % BN;
            b_tile[r][c] = i + r < g.k && column0 + c < g.n ? g.b[(i + r) * g.ldb + column0 + c] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int j = 0; j < BK; j++) {
            float b[TN];
            rung_get4(b, &b_tile[j][x]);
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
        rung_write4(&g, row0 + y + t, column0 + x, make_float4(acc[t][0], acc[t][1], acc[t][2], acc[t][3]),
                    rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n);
}
