/* l19_split_k: k is cut into parts, each tile of C gets a block for every part, and a second kernel adds the parts up.
 * Changed from l09_thread_tile_4x4: a C too small for 132 SMs with a long k (64 x 64 x 65536 is one tile) now fills
 * the GPU. Parts go to workspace as whole matrices; l19_split_k_finish adds them in a fixed order: the same bits every
 * time, which atomics would not give. The next tile is fetched into registers ahead of use, as in l14.
 * Limits: 8 bytes of traffic for each part of each result; the launcher chooses the parts.
 */
#include "device/tile.h"

enum { BM = 64, BN = 64, BK = 16, TM = 4, TN = 4, PAD = 4, THREADS = BM * BN / (TM * TN) };

RUNG_KERNEL(THREADS, 3) l19_split_k(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK + PAD];
    __shared__ __align__(16) float b_tile[BK][BN];
    int thread = threadIdx.x;
    int x = thread / 2 % (BN / TN) * TN, y = (thread / 32 * 2 + thread % 2) * TM;
    int a_r = thread / (BK / 4), a_c = thread % (BK / 4) * 4;
    int b_r = thread / (BN / 4), b_c = thread % (BN / 4) * 4;
    /* lesson parts */
    int part = blockIdx.x % g.split_k;
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)(blockIdx.x / g.split_k) * BN;
    bool inside =
        rung_is_aligned16(g.a, g.lda) && rung_is_aligned16(g.b, g.ldb) && row0 + BM <= g.m && column0 + BN <= g.n;
    /* Parts begin at multiples of BK, some one step longer than others. */
    int64_t steps = (g.k + BK - 1) / BK;
    int64_t begin = steps * part / g.split_k * BK, end = steps * (part + 1) / g.split_k * BK;
    end = end < g.k ? end : g.k;

    float acc[TM][TN] = {{0.0f}};
    float4 av = rung_read4(g.a, g.lda, g.m, end, row0 + a_r, begin + a_c, inside && begin + BK <= end);
    float4 bv = rung_read4(g.b, g.ldb, end, g.n, begin + b_r, column0 + b_c, inside && begin + BK <= end);
    /* /lesson */
    for (int64_t i = begin; i < end; i += BK) {
        *(float4 *)&a_tile[a_r][a_c] = av;
        *(float4 *)&b_tile[b_r][b_c] = bv;
        __syncthreads();
        bool whole = inside && i + 2 * BK <= end;
        if (i + BK < end) {
            av = rung_read4(g.a, g.lda, g.m, end, row0 + a_r, i + BK + a_c, whole);
            bv = rung_read4(g.b, g.ldb, end, g.n, i + BK + b_r, column0 + b_c, whole);
        }
#pragma unroll
        for (int kk = 0; kk < BK; kk += 4) {
            float a[TM][4], b[TN];
#pragma unroll
            for (int t = 0; t < TM; t++)
                rung_get4(a[t], &a_tile[y + t][kk]);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                rung_get4(b, &b_tile[kk + j][x]);
#pragma unroll
                for (int t = 0; t < TM; t++)
#pragma unroll
                    for (int u = 0; u < TN; u++)
                        acc[t][u] = fmaf(a[t][j], b[u], acc[t][u]);
            }
        }
        __syncthreads();
    }

    float *partial = (float *)g.workspace + part * g.m * g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u++) {
            int64_t row = row0 + y + t, column = column0 + x + u;
            if (row < g.m && column < g.n)
                partial[row * g.n + column] = acc[t][u];
        }
}

enum { LANES = 32, GROUPS = 8 };

/* 32 results a block; group w of 32 threads adds parts w, w + 8, w + 16, ... and the first group adds the groups. */
RUNG_KERNEL(LANES *GROUPS) l19_split_k_finish(const __grid_constant__ rung_args g)
{
    __shared__ float sums[GROUPS][LANES];
    int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const float *partial = (const float *)g.workspace;
    int64_t results = g.m * g.n;

    /* lesson finish */
    for (int64_t first = (int64_t)blockIdx.x * LANES; first < results; first += (int64_t)gridDim.x * LANES) {
        int64_t e = first + lane;
        float sum = 0.0f;
        if (e < results) {
#pragma unroll 4
            for (int part = group; part < g.split_k; part += GROUPS)
                sum += partial[part * results + e];
        }
        sums[group][lane] = sum;
        __syncthreads();
        if (group == 0 && e < results) {
            for (int w = 1; w < GROUPS; w++)
                sum += sums[w][lane];
            float *c = &g.c[e / g.n * g.ldc + e % g.n];
            *c = rung_blend(&g, sum, c);
        }
        __syncthreads();
    }
    /* /lesson */
}
