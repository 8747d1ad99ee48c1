/* l05_fewer_registers: pointers that walk along k instead of addresses formed anew from row, column and step.
 * Changed from l04_shared_32x32: two pointers that walk and the step live through the loop, where row, column and two
 * 64-bit products did; the second argument of RUNG_KERNEL holds the compiler to 65536 / 2048 = 32 registers, so that
 * two blocks of 1024 threads share an SM and one computes while the other waits at a barrier.
 * Limits: today's compiler does most of this by itself (l04 has 31 registers, this has 32): expect little.
 */
#include "device/args.h"
#include "device/resident.h"

enum { BM = 32, BN = 32, BK = 32 };

RUNG_KERNEL(BM *BN, RUNG_RESIDENT(BM *BN, 2)) l05_fewer_registers(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[BM][BK];
    __shared__ __align__(16) float b_tile[BK][BN];
    int x = threadIdx.x % BN, y = threadIdx.x / BN;
    int64_t row = rung_block_row() * BM + y;
    int64_t column = (int64_t)blockIdx.x * BN + x;
    /* Past an edge the last row or column is read again: what comes of it is never written. */
    int64_t a_row = row < g.m ? row : g.m - 1, b_column = column < g.n ? column : g.n - 1;
    const float *a = g.a + a_row * g.lda + x;
    const float *b = g.b + y * g.ldb + b_column;

    float acc = 0.0f;
    /* lesson */
    for (int64_t i = 0; i < g.k; i += BK) {
        float av = i + x < g.k ? *a : 0.0f;
        float bv = i + y < g.k ? *b : 0.0f;
        a += BK;
        b += BK * g.ldb;
        __syncthreads(); /* everybody is done with the last tiles; the two loads travel meanwhile */
        a_tile[y][x] = av;
        b_tile[y][x] = bv;
        __syncthreads();
#pragma unroll
        for (int kk = 0; kk < BK; kk++)
            acc = fmaf(a_tile[y][kk], b_tile[kk][x], acc);
    }
    /* /lesson */

    if (row < g.m && column < g.n) {
        float *c = &g.c[row * g.ldc + column];
        *c = rung_blend(&g, acc, c);
    }
}
