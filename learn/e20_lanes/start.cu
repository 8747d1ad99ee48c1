/* e20_lanes: a 128 x 128 tile by 256 threads, 8 x 8 results each in four pieces of 4 x 4. */
#include "device/tile.h"

enum { BM = 128, BN = 128, BK = 8, TM = 8, TN = 8, PAD = 4, THREADS = BM * BN / (TM * TN) };

RUNG_KERNEL(THREADS) e20_lanes(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BK][BM + PAD], b_tile[BK][BN];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int lane_y = lane / 8, lane_x = lane % 8;
    int y = warp / 2 * 16 + lane_y * 4, x = warp % 2 * 32 + lane_x * 4;
    int a_r = thread / 2, a_c = thread % 2 * 4, b_r = thread / 32, b_c = thread % 32 * 4;
    int64_t row0 = (int64_t)blockIdx.y * BM, column0 = (int64_t)blockIdx.x * BN;
    bool inside =
        rung_is_aligned16(g.a, g.lda) && rung_is_aligned16(g.b, g.ldb) && row0 + BM <= g.m && column0 + BN <= g.n;

    float acc[TM][TN] = {{0.0f}};
    for (int64_t i = 0; i < g.k; i += BK) {
        bool whole = inside && i + BK <= g.k;
        float4 v = rung_read4(g.a, g.lda, g.m, g.k, row0 + a_r, i + a_c, whole);
        a_tile[a_c][a_r] = v.x;
        a_tile[a_c + 1][a_r] = v.y;
        a_tile[a_c + 2][a_r] = v.z;
        a_tile[a_c + 3][a_r] = v.w;
        *(float4 *)&b_tile[b_r][b_c] = rung_read4(g.b, g.ldb, g.k, g.n, i + b_r, column0 + b_c, whole);
        __syncthreads();
#pragma unroll
        for (int j = 0; j < BK; j++) {
            float a[TM], b[TN];
            rung_get4(a, &a_tile[j][y]);
            rung_get4(a + 4, &a_tile[j][y + BM / 2]);
            rung_get4(b, &b_tile[j][x]);
            rung_get4(b + 4, &b_tile[j][x + BN / 2]);
#pragma unroll
            for (int t = 0; t < TM; t++)
#pragma unroll
                for (int u = 0; u < TN; u++)
                    acc[t][u] = fmaf(a[t], b[u], acc[t][u]);
        }
        __syncthreads();
    }

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(&g, row0 + y + t / 4 * (BM / 2) + t % 4, column0 + x + u / 4 * (BN / 2),
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), c_inside);
}
