/* l06_conflict_free: B lies transposed in shared memory, rows padded so that no two lanes meet in a bank.
 * Changed from l05_fewer_registers: with k along the rows of both tiles, one 16-byte load brings four steps of k: 16
 * shared loads for 32 FMAs instead of 40. Unpadded, the 32 lanes reading down column kk would all hit one bank; rows
 * of 36 floats put each group of eight lanes on all 32 banks once.
 * Limits: the bytes that shared memory delivers are unchanged, only the instructions are fewer.
 */
#include "device/args.h"
#include "device/resident.h"

enum { BM = 32, BN = 32, BK = 32, PAD = 4 };

RUNG_KERNEL(BM *BN, RUNG_RESIDENT(BM *BN, 2)) l06_conflict_free(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK];
    __shared__ __align__(16) float b_tile[BN][BK + PAD]; /* [column][k] */
    int x = threadIdx.x % BN, y = threadIdx.x / BN;
    int64_t row = rung_block_row() * BM + y;
    int64_t column = (int64_t)blockIdx.x * BN + x;
    /* Past an edge the last row or column is read again: what comes of it is never written. */
    int64_t a_row = row < g.m ? row : g.m - 1, b_column = column < g.n ? column : g.n - 1;
    const float *a = g.a + a_row * g.lda + x;
    const float *b = g.b + y * g.ldb + b_column;

    float acc = 0.0f;
#pragma unroll 1
    /* lesson */
    for (int64_t left = g.k; left > 0; left -= BK) {
        float av = x < left ? *a : 0.0f;
        float bv = y < left ? *b : 0.0f;
        a += BK;
        b += BK * g.ldb;
        __syncthreads(); /* everybody is done with the last tiles; the two loads travel meanwhile */
        a_tile[y][x] = av;
        b_tile[x][y] = bv;
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk += 4) {
            float4 av = *(const float4 *)&a_tile[y][kk];
            float4 bv = *(const float4 *)&b_tile[x][kk];
            acc = fmaf(av.x, bv.x, acc);
            acc = fmaf(av.y, bv.y, acc);
            acc = fmaf(av.z, bv.z, acc);
            acc = fmaf(av.w, bv.w, acc);
        }
    }
    /* /lesson */

    if (row < g.m && column < g.n) {
        float *c = &g.c[row * g.ldc + column];
        *c = rung_blend(&g, acc, c);
    }
}
