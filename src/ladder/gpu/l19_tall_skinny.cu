/* l19_tall_skinny: a 32x16 tile for a C that is tall and narrow, k cut among the four warps of the block.
 * Changed from l19_split_k: with n = 16 a 64x64 tile computes three quarters for nothing. Here a block streams 32 rows
 * of A through a ring of three asynchronous copies; each warp takes 16 of every 64 steps of k for all 32x16 results,
 * and at the end the four sums are added in order through shared memory.
 * Limits: one use of each float of A for 16 results: bound by device memory, which is the floor for such a shape.
 */
#include "device/async.h"
#include "device/tile.h"

enum { BM = 32, BN = 16, BK = 64, TM = 4, TN = 4, PAD = 4, STAGES = 3, WARPS = 4, THREADS = 32 * WARPS };
enum { A_ROW = BK + PAD, WARP_K = BK / WARPS };

static __device__ __forceinline__ void fetch(const rung_args *g, float *a_tile, float *b_tile, int64_t row0,
                                             int64_t column0, int64_t i, bool a_whole, bool b_whole)
{
#pragma unroll
    for (int e = threadIdx.x; e < BM * BK / 4; e += THREADS) {
        int r = e / (BK / 4), c = e % (BK / 4) * 4;
        if (a_whole)
            rung_async_copy16(a_tile + r * A_ROW + c, g->a + (row0 + r) * g->lda + i + c);
        else
            *(float4 *)(a_tile + r * A_ROW + c) = rung_read4(g->a, g->lda, g->m, g->k, row0 + r, i + c, false);
    }
#pragma unroll
    for (int e = threadIdx.x; e < BK * BN / 4; e += THREADS) {
        int r = e / (BN / 4), c = e % (BN / 4) * 4;
        if (b_whole)
            rung_async_copy16(b_tile + r * BN + c, g->b + (i + r) * g->ldb + column0 + c);
        else
            *(float4 *)(b_tile + r * BN + c) = rung_read4(g->b, g->ldb, g->k, g->n, i + r, column0 + c, false);
    }
}

RUNG_KERNEL(THREADS) l19_tall_skinny(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[STAGES][BM * A_ROW]; /* [stage][row][k] */
    __shared__ __align__(16) float b_tile[STAGES][BK * BN];    /* [stage][k][column] */
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    int y = lane / 4, x = lane % 4 * TN; /* rows y, y + 8, y + 16, y + 24 */
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;
    bool a_inside = rung_is_aligned16(g.a, g.lda) && row0 + BM <= g.m;
    bool b_inside = rung_is_aligned16(g.b, g.ldb) && column0 + BN <= g.n;

    float acc[TM][TN] = {{0.0f}};
    for (int stage = 0; stage < STAGES - 1; stage++) {
        int64_t i = (int64_t)stage * BK;
        if (i < g.k)
            fetch(&g, a_tile[stage], b_tile[stage], row0, column0, i, a_inside && i + BK <= g.k,
                  b_inside && i + BK <= g.k);
        rung_async_commit();
    }
    int stage = 0;
    for (int64_t i = 0; i < g.k; i += BK) {
        /* lesson */
        rung_async_wait(STAGES - 2);
        __syncthreads();
        int64_t ahead = i + (STAGES - 1) * BK;
        int refill = (stage + STAGES - 1) % STAGES;
        bool whole = ahead + BK <= g.k;
        if (ahead < g.k)
            fetch(&g, a_tile[refill], b_tile[refill], row0, column0, ahead, a_inside && whole, b_inside && whole);
        rung_async_commit();
        const float *a_mine = a_tile[stage] + warp * WARP_K, *b_mine = b_tile[stage] + warp * WARP_K * BN;
#pragma unroll
        for (int kk = 0; kk < WARP_K; kk += 4) {
            float a[TM][4], b[TN];
#pragma unroll
            for (int t = 0; t < TM; t++)
                rung_get4(a[t], a_mine + (y + t * 8) * A_ROW + kk);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                rung_get4(b, b_mine + (kk + j) * BN + x);
#pragma unroll
                for (int t = 0; t < TM; t++)
#pragma unroll
                    for (int u = 0; u < TN; u++)
                        acc[t][u] = fmaf(a[t][j], b[u], acc[t][u]);
            }
        }
        /* /lesson */
        stage = (stage + 1) % STAGES;
    }

    /* The ring is free now: warp w leaves its sums in it, and thread e adds those of its four results in order of w. */
    float *sums = a_tile[0];
    rung_async_wait(0);
    __syncthreads();
#pragma unroll
    for (int t = 0; t < TM; t++)
        *(float4 *)&sums[(warp * BM + y + t * 8) * BN + x] = make_float4(acc[t][0], acc[t][1], acc[t][2], acc[t][3]);
    __syncthreads();
    int r = threadIdx.x / (BN / 4), c = threadIdx.x % (BN / 4) * 4;
    float4 sum = *(const float4 *)&sums[r * BN + c];
    for (int w = 1; w < WARPS; w++) {
        float4 more = *(const float4 *)&sums[(w * BM + r) * BN + c];
        sum = make_float4(sum.x + more.x, sum.y + more.y, sum.z + more.z, sum.w + more.w);
    }
    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
    rung_write4(&g, row0 + r, column0 + c, sum, c_inside);
}
