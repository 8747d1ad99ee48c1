/* l30_tf32_mma: tensor cores. A warp multiplies 16 x 8 by 8 x 8 in one instruction, mma.sync; operands rounded to TF32.
 * Changed from l29_one_kernel: another arithmetic, so back to a plain tile as in l15_double_buffer: two tiles in shared
 * memory, the next one on its way through registers, one barrier a step. A lane loads the elements of A and B that the
 * instruction wants of it. Rows are padded so that neither load meets a bank conflict. Limits: 11 bits of each operand:
 * errs some thousand u (u = 2^-24); FP32 it is not. */
#include "device/mma.h"
#include "device/ptx.h"
#include "device/tile.h"

enum { BM = 128, BN = 128, BK = 32, THREADS = 256, WM = 64, WN = 32, FRAGMENTS_M = WM / 16, FRAGMENTS_N = WN / 8 };
enum { A_ROW = BK + 4, B_ROW = BN + 8, A_FLOATS = BM * A_ROW, TILE_FLOATS = A_FLOATS + BK * B_ROW, LOADS = 4 };

/* To nearest: the tensor core would truncate. The largest floats stay finite. */
RUNG_DEVICE float rounded(float x)
{
    float y = __uint_as_float(ptx_round_tf32(x));
    return isinf(y) && !isinf(x) ? copysignf(__uint_as_float(0x7f7fe000u), x) : y;
}

RUNG_DEVICE float4 rounded4(float4 v)
{
    return make_float4(rounded(v.x), rounded(v.y), rounded(v.z), rounded(v.w));
}

/* lesson fetch */
/* The next tile, 4 times 4 floats of A and of B a thread. */
RUNG_DEVICE void fetch(float4 a[LOADS], float4 b[LOADS], const rung_args *g, int64_t row, int64_t column, int64_t k)
{
    bool inside_k = k + BK <= g->k;
    bool whole_a = rung_is_aligned16(g->a, g->lda) && inside_k && row + BM <= g->m;
    bool whole_b = rung_is_aligned16(g->b, g->ldb) && inside_k && column + BN <= g->n;
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        int at = threadIdx.x + i * THREADS;
        a[i] = rung_read4(g->a, g->lda, g->m, g->k, row + at / 8, k + at % 8 * 4, whole_a);
        b[i] = rung_read4(g->b, g->ldb, g->k, g->n, k + at / 32, column + at % 32 * 4, whole_b);
    }
}

RUNG_DEVICE void keep(float *tile, const float4 a[LOADS], const float4 b[LOADS])
{
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        int at = threadIdx.x + i * THREADS;
        *(float4 *)&tile[at / 8 * A_ROW + at % 8 * 4] = rounded4(a[i]);
        *(float4 *)&tile[A_FLOATS + at / 32 * B_ROW + at % 32 * 4] = rounded4(b[i]);
    }
}
/* /lesson */

/* lesson fragments */
/* 64 x 32 results of a warp: 4 x 4 instructions for each 8 of k. Lane 4 g + t loads row g and column g, k t and t + 4.
 */
RUNG_DEVICE void multiply(float acc[FRAGMENTS_M][FRAGMENTS_N][4], const float *a_tile, const float *b_tile)
{
    int g = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
#pragma unroll
    for (int k = 0; k < BK; k += 8) {
        uint32_t a[FRAGMENTS_M][4], b[FRAGMENTS_N][2];
#pragma unroll
        for (int i = 0; i < FRAGMENTS_M; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) /* down by 8, then along k by 4 */
                a[i][e] = __float_as_uint(a_tile[(i * 16 + e % 2 * 8 + g) * A_ROW + k + e / 2 * 4 + t]);
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                b[j][e] = __float_as_uint(b_tile[(k + e * 4 + t) * B_ROW + j * 8 + g]);
#pragma unroll
        for (int i = 0; i < FRAGMENTS_M; i++)
#pragma unroll
            for (int j = 0; j < FRAGMENTS_N; j++)
                mma_tf32(acc[i][j], a[i], b[j]);
    }
}
/* /lesson */

RUNG_DEVICE void write_tile(const rung_args *g, const float acc[FRAGMENTS_M][FRAGMENTS_N][4], int64_t row,
                            int64_t column)
{
#pragma unroll
    for (int i = 0; i < FRAGMENTS_M; i++)
#pragma unroll
        for (int j = 0; j < FRAGMENTS_N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int64_t y = row + i * 16 + e / 2 * 8, x = column + j * 8 + e % 2;
                if (y < g->m && x < g->n)
                    g->c[y * g->ldc + x] = rung_blend(g, acc[i][j][e], &g->c[y * g->ldc + x]);
            }
}

RUNG_KERNEL(THREADS, 1) l30_tf32_mma(const __grid_constant__ rung_args g)
{
    extern __shared__ __align__(16) float tiles[]; /* two of A and B */
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, y = warp / (BN / WN) * WM, x = warp % (BN / WN) * WN;
    int64_t row = rung_block_row() * BM, column = (int64_t)blockIdx.x * BN;
    float acc[FRAGMENTS_M][FRAGMENTS_N][4] = {{{0.0f}}};
    float4 a[LOADS], b[LOADS];
    int now = 0;

    fetch(a, b, &g, row, column, 0);
    keep(tiles, a, b);
    __syncthreads();
    for (int64_t k = 0; k < g.k; k += BK, now ^= 1) {
        bool more = k + BK < g.k;
        const float *tile = tiles + now * TILE_FLOATS;
        if (more)
            fetch(a, b, &g, row, column, k + BK); /* arrives while the tensor cores work */
        multiply(acc, tile + y * A_ROW, tile + A_FLOATS + x);
        if (more)
            keep(tiles + (now ^ 1) * TILE_FLOATS, a, b);
        __syncthreads();
    }
    write_tile(&g, acc, row + y + lane / 4, column + x + lane % 4 * 2);
}
