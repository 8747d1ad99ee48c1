/* l01_naive: one result a thread, straight from the definition; neighbouring threads on neighbouring rows.
 * The first rung. The 32 lanes of a warp read 32 rows of A, lda floats apart, so every load of A touches 32 sectors to
 * use 4 bytes of each, and every store to C likewise; B is one float for the whole warp.
 * Limits: the memory system moves eight times the bytes that are used.
 */
#include "device/args.h"

enum { BM = 32, BN = 32 };

/* lesson */
RUNG_KERNEL(BM *BN) l01_naive(const __grid_constant__ rung_args g)
{
    int64_t row = rung_block_row() * BM + threadIdx.x % BM;
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x / BM;
    if (row >= g.m || column >= g.n)
        return;

    float acc = 0.0f;
    for (int64_t i = 0; i < g.k; i++)
        acc = fmaf(g.a[row * g.lda + i], g.b[i * g.ldb + column], acc);

    float *c = &g.c[row * g.ldc + column];
    *c = rung_blend(&g, acc, c);
}
/* /lesson */
