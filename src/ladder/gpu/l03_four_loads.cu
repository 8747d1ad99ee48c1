/* l03_four_loads: four neighbouring floats of B in one load, for four results a thread.
 * Changed from l03_two_loads: 16 bytes a load, the widest there is: one float of A and one load of B feed four FMAs.
 * Limits: a warp's load of B is 512 bytes, four passes through L1, so the bytes are what is left to save. Rows of B
 * off the 16-byte boundaries are read float by float.
 */
#include "device/tile.h"

enum { BM = 4, BN = 128, TN = 4 };

RUNG_KERNEL(BM *BN / TN) l03_four_loads(const __grid_constant__ rung_args g)
{
    int64_t row = rung_block_row() * BM + threadIdx.x / (BN / TN);
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x % (BN / TN) * TN;
    if (row >= g.m || column >= g.n)
        return;

    /* lesson */
    const float *a = g.a + row * g.lda, *b = g.b + column;
    bool all = column + TN <= g.n;
    float4 acc = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    bool small = g.k <= INT32_MAX && g.ldb <= INT32_MAX && g.k * g.ldb <= INT32_MAX; /* 32-bit offsets will do */
    if (all && small && rung_is_aligned16(g.b, g.ldb)) {
        int k = (int)g.k, ldb = (int)g.ldb;
#pragma unroll 8
        for (int i = 0; i < k; i++) {
            float4 v = *(const float4 *)(b + i * ldb);
            acc = make_float4(fmaf(a[i], v.x, acc.x), fmaf(a[i], v.y, acc.y), fmaf(a[i], v.z, acc.z),
                              fmaf(a[i], v.w, acc.w));
        }
    } else {
        for (int64_t i = 0; i < g.k; i++, b += g.ldb) {
            float4 v = rung_read4_at(b, g.m, g.n, row, column, false);
            acc = make_float4(fmaf(a[i], v.x, acc.x), fmaf(a[i], v.y, acc.y), fmaf(a[i], v.z, acc.z),
                              fmaf(a[i], v.w, acc.w));
        }
    }
    /* /lesson */
    rung_write4(&g, row, column, acc, all && rung_is_aligned16(g.c, g.ldc));
}
