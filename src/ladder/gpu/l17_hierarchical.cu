/* l17_hierarchical: block 128x128, warp 64x64, thread 8x16: each level four times the next in area or more.
 * Changed from l16_thread_remap: four warps of 64x64 instead of eight of 32x64. Six 16-byte shared loads feed 128 FMAs
 * a step of k instead of four for 64, and with 16 steps a tile the loop's fixed cost halves. 128 threads may use 255
 * registers.
 * Limits: two blocks, eight warps an SM: little to switch to, so the prefetching has to hide every latency.
 */
#include "device/tile.h"

#ifndef KERNEL /* l17_hierarchical_swizzled includes this file under its own name and GROUP */
#define KERNEL l17_hierarchical
#define GROUP 0
#endif

enum { BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, TM = 8, TN = 16, PAD = 4, THREADS = BM * BN / (TM * TN) };
enum { ROW_STEP = 32, COLUMN_STEP = 16, FETCHES = BM * BK / 4 / THREADS };

typedef struct tile_place {
    int64_t row, column;
} tile_place;

/* lesson order */
/* Which tile this block takes. Blocks start in order of their number: along C's rows, or, with a GROUP, down the
 * columns of a group of GROUP tile rows, so that the blocks in flight share more of A and B in the L2 cache. */
static __device__ __forceinline__ tile_place my_tile(void)
{
    int64_t row = rung_block_row(), column = blockIdx.x;
    if (GROUP > 0) {
        int64_t rows = (int64_t)gridDim.y * gridDim.z, number = row * gridDim.x + column;
        int64_t group = number / (GROUP * gridDim.x), inside = number % (GROUP * gridDim.x);
        int64_t height = rows - group * GROUP < GROUP ? rows - group * GROUP : GROUP;
        row = group * GROUP + inside % height;
        column = inside / height;
    }
    tile_place place = {row * BM, column * BN};
    return place;
}
/* /lesson */

/* One step of k from shared memory to registers. */
static __device__ __forceinline__ void fragments(float *a, float *b, const float *a_row, const float *b_row)
{
#pragma unroll
    for (int t = 0; t < TM; t += 4)
        rung_get4(a + t, a_row + t / 4 * ROW_STEP);
#pragma unroll
    for (int u = 0; u < TN; u += 4)
        rung_get4(b + u, b_row + u / 4 * COLUMN_STEP);
}

RUNG_KERNEL(THREADS, 2) KERNEL(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[2][BK][BM + PAD]; /* [buffer][k][row] */
    __shared__ __align__(16) float b_tile[2][BK][BN];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2;
    int y = warp / 2 * WM + lane_m * 4, x = warp % 2 * WN + lane_n * 4;
    int a_r = thread / 2, a_c = thread % 2 * 4; /* and 64 rows down, and 8 steps of k on */
    int b_r = thread / (BN / 4), b_c = thread % (BN / 4) * 4;
    tile_place at = my_tile();
    bool inside =
        rung_is_aligned16(g.a, g.lda) && rung_is_aligned16(g.b, g.ldb) && at.row + BM <= g.m && at.column + BN <= g.n;

    float acc[TM][TN] = {{0.0f}}, a[2][TM], b[2][TN];
    float4 av[FETCHES], bv[FETCHES];
    int buffer = 0;
    for (int64_t i = -BK; i < g.k; i += BK) {
        if (i + BK < g.k) {
            bool whole = inside && i + 2 * BK <= g.k;
#pragma unroll
            for (int f = 0; f < FETCHES; f++) {
                av[f] = rung_read4(g.a, g.lda, g.m, g.k, at.row + a_r + f / 2 * 64, i + BK + a_c + f % 2 * 8, whole);
                bv[f] = rung_read4(g.b, g.ldb, g.k, g.n, i + BK + b_r + f * (BK / FETCHES), at.column + b_c, whole);
            }
        }
        /* lesson */
        if (i >= 0) {
#pragma unroll
            for (int kk = 0; kk < BK; kk++) {
                int now = kk % 2, next = 1 - now;
                if (kk + 1 < BK)
                    fragments(a[next], b[next], &a_tile[buffer][kk + 1][y], &b_tile[buffer][kk + 1][x]);
#pragma unroll
                for (int t = 0; t < TM; t++)
#pragma unroll
                    for (int v = 0; v < TN; v++) {
                        int u = t % 2 ? TN - 1 - v : v; /* along one row, back along the next */
                        acc[t][u] = fmaf(a[now][t], b[now][u], acc[t][u]);
                    }
            }
            buffer = 1 - buffer;
        }
        /* /lesson */
        if (i + BK < g.k) {
#pragma unroll
            for (int f = 0; f < FETCHES; f++) {
                float *a_to = &a_tile[buffer][a_c + f % 2 * 8][a_r + f / 2 * 64];
                a_to[0] = av[f].x;
                a_to[BM + PAD] = av[f].y;
                a_to[2 * (BM + PAD)] = av[f].z;
                a_to[3 * (BM + PAD)] = av[f].w;
                *(float4 *)&b_tile[buffer][b_r + f * (BK / FETCHES)][b_c] = bv[f];
            }
        }
        __syncthreads();
        if (i + BK < g.k)
            fragments(a[0], b[0], &a_tile[buffer][0][y], &b_tile[buffer][0][x]);
    }

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && at.row + BM <= g.m && at.column + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(&g, at.row + y + t / 4 * ROW_STEP + t % 4, at.column + x + u / 4 * COLUMN_STEP,
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), c_inside);
}
