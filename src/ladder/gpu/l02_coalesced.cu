/* l02_coalesced: one result a thread, neighbouring threads on neighbouring columns.
 * Changed from l01_naive: threadIdx.x runs along a row of C instead of down a column. The 32 lanes of a warp then read
 * 32 neighbouring floats of B (four 32-byte sectors) and share one float of A, where l01 touched 32 sectors of A.
 * Limits: every operand of every FMA still comes through L1.
 */
#include "device/args.h"

enum { BM = 8, BN = 64 };

/* lesson */
RUNG_KERNEL(BM *BN) l02_coalesced(const __grid_constant__ rung_args g)
{
    int64_t row = rung_block_row() * BM + threadIdx.x / BN;
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x % BN;
    if (row >= g.m || column >= g.n)
        return;

    const float *a = g.a + row * g.lda, *b = g.b + column;
    float acc = 0.0f;
    if (g.k <= INT32_MAX && g.ldb <= INT32_MAX && g.k * g.ldb <= INT32_MAX) { /* 32-bit offsets: fewer instructions */
        int k = (int)g.k, ldb = (int)g.ldb;
        for (int i = 0; i < k; i++)
            acc = fmaf(a[i], b[i * ldb], acc);
    } else {
        for (int64_t i = 0; i < g.k; i++)
            acc = fmaf(a[i], b[i * g.ldb], acc);
    }

    float *c = &g.c[row * g.ldc + column];
    *c = rung_blend(&g, acc, c);
}
/* /lesson */
