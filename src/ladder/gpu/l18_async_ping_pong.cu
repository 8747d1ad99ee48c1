/* l18_async_ping_pong: the hardware copies tiles into shared memory (cp.async); two buffers take turns.
 * Changed from l17_hierarchical: no float on its way to shared memory passes through a register or costs a store. B
 * travels 16 bytes a copy; A 4 bytes, since only single floats can be turned on the way. A warp copies 8 steps of k of
 * 4 rows at a time: whole 32-byte sectors, and with rows of 132 floats no two in one bank.
 * Limits: the copies of tile i + 1 have only the FMAs of tile i to arrive in.
 */
#include "device/async.h"
#include "device/tile.h"

enum { BM = 128, BN = 128, BK = 16, WM = 64, WN = 64, TM = 8, TN = 16, PAD = 4, THREADS = BM * BN / (TM * TN) };
enum { ROW_STEP = 32, COLUMN_STEP = 16, A_ROW = BM + PAD };

/* Starts copying the tiles of A and B at step i of k. */
static __device__ __forceinline__ void fetch(const rung_args *g, float *a_tile, float *b_tile, int64_t row0,
                                             int64_t column0, int64_t i, bool whole)
{
    /* lesson */
    int a_c = threadIdx.x % 8, a_r = threadIdx.x / 8, b_c = threadIdx.x % 32 * 4, b_r = threadIdx.x / 32;
    const float *a_from = g->a + (row0 + a_r) * g->lda + i + a_c, *b_from = g->b + (i + b_r) * g->ldb + column0 + b_c;
    float *a_to = &a_tile[a_c * A_ROW + a_r], *b_to = &b_tile[b_r * BN + b_c];
    int64_t a_step = THREADS / 8 * g->lda, b_step = THREADS / 32 * g->ldb;
    if (whole) {
#pragma unroll
        for (int r = 0; r < BM; r += THREADS / 8, a_from += a_step) {
            rung_async_copy4(a_to + r, a_from);
            rung_async_copy4(a_to + 8 * A_ROW + r, a_from + 8);
        }
#pragma unroll
        for (int r = 0; r < BK; r += THREADS / 32, b_from += b_step)
            rung_async_copy16(b_to + r * BN, b_from);
        /* /lesson */
    } else { /* an edge, or rows off the 16-byte boundaries: B goes through registers */
#pragma unroll 1
        for (int r = 0; r < BM; r += THREADS / 8, a_from += a_step) {
            rung_async_copy4_or_zero(a_to + r, a_from, row0 + a_r + r < g->m && i + a_c < g->k);
            rung_async_copy4_or_zero(a_to + 8 * A_ROW + r, a_from + 8, row0 + a_r + r < g->m && i + a_c + 8 < g->k);
        }
#pragma unroll 1
        for (int r = 0; r < BK; r += THREADS / 32, b_from += b_step)
            *(float4 *)(b_to + r * BN) = rung_read4_at(b_from, g->k, g->n, i + b_r + r, column0 + b_c, false);
    }
}

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

RUNG_KERNEL(THREADS, 2) l18_async_ping_pong(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[2][BK * A_ROW]; /* [buffer][k][row] */
    __shared__ __align__(16) float b_tile[2][BK * BN];
    int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    int lane_m = lane / 2 % 8, lane_n = lane / 16 * 2 + lane % 2;
    int y = warp / 2 * WM + lane_m * 4, x = warp % 2 * WN + lane_n * 4;
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;
    bool inside = rung_is_aligned16(g.b, g.ldb) && row0 + BM <= g.m && column0 + BN <= g.n;

    float acc[TM][TN] = {{0.0f}}, a[2][TM], b[2][TN];
    if (g.k > 0)
        fetch(&g, a_tile[0], b_tile[0], row0, column0, 0, inside && BK <= g.k);
    rung_async_commit();
    int buffer = 0;
    for (int64_t i = 0; i < g.k; i += BK) {
        rung_async_wait(0); /* this tile is here, and with the barrier everybody's part of it; */
        __syncthreads();    /* and everybody is done with the other buffer */
        const float *a_now = a_tile[buffer] + y, *b_now = b_tile[buffer] + x;
        fragments(a[0], b[0], a_now, b_now);
        if (i + BK < g.k)
            fetch(&g, a_tile[1 - buffer], b_tile[1 - buffer], row0, column0, i + BK, inside && i + 2 * BK <= g.k);
        rung_async_commit();
#pragma unroll
        for (int kk = 0; kk < BK; kk++) {
            int now = kk % 2, next = 1 - now;
            if (kk + 1 < BK)
                fragments(a[next], b[next], a_now + (kk + 1) * A_ROW, b_now + (kk + 1) * BN);
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

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(&g, row0 + y + t / 4 * ROW_STEP + t % 4, column0 + x + u / 4 * COLUMN_STEP,
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), c_inside);
}
