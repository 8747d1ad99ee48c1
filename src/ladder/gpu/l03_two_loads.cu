/* l03_two_loads: two neighbouring floats of B in one load, for two results a thread.
 * Changed from l02_coalesced: a thread computes two neighbouring columns, so that one float of A and one 8-byte load
 * of B feed two FMAs: half the load instructions, and half the loop around them. Eight steps at a time keep the loads
 * of A that share a sector together. Rows of B off 8 bytes are read float by float.
 * Limits: every operand still comes through L1 for each use.
 */
#include "device/args.h"

enum { BM = 4, BN = 64, TN = 2 };

RUNG_KERNEL(BM *BN / TN) l03_two_loads(const __grid_constant__ rung_args g)
{
    int64_t row = rung_block_row() * BM + threadIdx.x / (BN / TN);
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x % (BN / TN) * TN;
    if (row >= g.m || column >= g.n)
        return;

    /* lesson */
    const float *a = g.a + row * g.lda, *b = g.b + column;
    bool both = column + 1 < g.n, aligned = (uintptr_t)g.b % sizeof(float2) == 0 && g.ldb % 2 == 0;
    float acc[TN] = {0.0f};
    bool small = g.k <= INT32_MAX && g.ldb <= INT32_MAX && g.k * g.ldb <= INT32_MAX; /* 32-bit offsets will do */
    if (both && aligned && small) {
        int k = (int)g.k, ldb = (int)g.ldb;
#pragma unroll 8
        for (int i = 0; i < k; i++) {
            float2 v = *(const float2 *)(b + i * ldb);
            acc[0] = fmaf(a[i], v.x, acc[0]);
            acc[1] = fmaf(a[i], v.y, acc[1]);
        }
    } else {
        for (int64_t i = 0; i < g.k; i++, b += g.ldb) {
            acc[0] = fmaf(a[i], b[0], acc[0]);
            acc[1] = both ? fmaf(a[i], b[1], acc[1]) : 0.0f;
        }
    }
    /* /lesson */

    float *c = &g.c[row * g.ldc + column];
    c[0] = rung_blend(&g, acc[0], c);
    if (both)
        c[1] = rung_blend(&g, acc[1], c + 1);
}
