/* l16_thread_remap: the same 4x8 lanes, dealt out in another order.
 * Changed from l15_double_buffer: lanes 0 to 15 now cover 4 rows and 4 columns of 4x4 pieces instead of 2 and 8.
 * Shared memory serves a 16-byte load in passes of a quarter warp, and joins two quarters whose neighbouring lanes (or
 * next but one) want the same address. Before, that held for A only; now for A and B: 8 passes a step of k instead of
 * 12.
 * Limits: as the rung before; and where loads are early enough already, shorter ones gain nothing.
 */
#include "device/tile.h"

enum { BM = 128, BN = 128, BK = 8, WM = 16, WN = 32, TM = 8, TN = 8, PAD = 4, THREADS = BM * BN / (TM * TN) };
enum { ROW_STEP = BM / 2, COLUMN_STEP = BN / 2 };

/* One step of k from shared memory to registers. */
static __device__ __forceinline__ void fragments(float *a, float *b, const float *a_row, const float *b_row)
{
    rung_get4(a, a_row);
    rung_get4(a + 4, a_row + ROW_STEP);
    rung_get4(b, b_row);
    rung_get4(b + 4, b_row + COLUMN_STEP);
}

/* lesson */
RUNG_KERNEL(THREADS, 2) l16_thread_remap(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[2][BK][BM + PAD]; /* [buffer][k][row] */
    __shared__ __align__(16) float b_tile[2][BK][BN];
    int thread = threadIdx.x;
    int lane = thread % 32, warp = thread / 32;
    /* Bits of the lane, from the highest: n2 n1 m1 m0 n0. */
    int lane_m = lane / 2 % 4, lane_n = lane / 8 * 2 + lane % 2;
    int y = warp / 2 * WM + lane_m * 4, x = warp % 2 * WN + lane_n * 4;
    int a_r = thread / (BK / 4), a_c = thread % (BK / 4) * 4;
    int b_r = thread / (BN / 4), b_c = thread % (BN / 4) * 4;
    /* /lesson */
    int64_t row0 = rung_block_row() * BM, column0 = (int64_t)blockIdx.x * BN;
    bool inside =
        rung_is_aligned16(g.a, g.lda) && rung_is_aligned16(g.b, g.ldb) && row0 + BM <= g.m && column0 + BN <= g.n;

    float acc[TM][TN] = {{0.0f}}, a[2][TM], b[2][TN];
    const float *a_next = g.a + (row0 + a_r) * g.lda + a_c, *b_next = g.b + b_r * g.ldb + column0 + b_c;
    float4 av = rung_read4_at(a_next, g.m, g.k, row0 + a_r, a_c, inside && BK <= g.k);
    float4 bv = rung_read4_at(b_next, g.k, g.n, b_r, column0 + b_c, inside && BK <= g.k);
    int buffer = 0;
    a_tile[buffer][a_c][a_r] = av.x;
    a_tile[buffer][a_c + 1][a_r] = av.y;
    a_tile[buffer][a_c + 2][a_r] = av.z;
    a_tile[buffer][a_c + 3][a_r] = av.w;
    *(float4 *)&b_tile[buffer][b_r][b_c] = bv;
    __syncthreads();
    fragments(a[0], b[0], &a_tile[buffer][0][y], &b_tile[buffer][0][x]);
    for (int64_t i = 0; i < g.k; i += BK) {
        if (i + BK < g.k) {
            bool whole = inside && i + 2 * BK <= g.k;
            a_next += BK;
            b_next += BK * g.ldb;
            av = rung_read4_at(a_next, g.m, g.k, row0 + a_r, i + BK + a_c, whole);
            bv = rung_read4_at(b_next, g.k, g.n, i + BK + b_r, column0 + b_c, whole);
        }
#pragma unroll
        for (int kk = 0; kk < BK; kk++) {
            int now = kk % 2, next = 1 - now;
            if (kk + 1 < BK)
                fragments(a[next], b[next], &a_tile[buffer][kk + 1][y], &b_tile[buffer][kk + 1][x]);
#pragma unroll
            for (int u = 0; u < TN; u++)
#pragma unroll
                for (int v = 0; v < TM; v++) {
                    int t = u % 2 ? TM - 1 - v : v; /* down one column, up the next */
                    acc[t][u] = fmaf(a[now][t], b[now][u], acc[t][u]);
                }
        }
        buffer = 1 - buffer;
        a_tile[buffer][a_c][a_r] = av.x;
        a_tile[buffer][a_c + 1][a_r] = av.y;
        a_tile[buffer][a_c + 2][a_r] = av.z;
        a_tile[buffer][a_c + 3][a_r] = av.w;
        *(float4 *)&b_tile[buffer][b_r][b_c] = bv;
        __syncthreads();
        fragments(a[0], b[0], &a_tile[buffer][0][y], &b_tile[buffer][0][x]);
    }

    bool c_inside = rung_is_aligned16(g.c, g.ldc) && row0 + BM <= g.m && column0 + BN <= g.n;
#pragma unroll
    for (int t = 0; t < TM; t++)
#pragma unroll
        for (int u = 0; u < TN; u += 4)
            rung_write4(&g, row0 + y + t / 4 * ROW_STEP + t % 4, column0 + x + u / 4 * COLUMN_STEP,
                        make_float4(acc[t][u], acc[t][u + 1], acc[t][u + 2], acc[t][u + 3]), c_inside);
}
