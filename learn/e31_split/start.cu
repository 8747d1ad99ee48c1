/* e31_split: C = alpha A B + beta C by products of short operands. */
#include "device/exercise.h"

enum { BM = 8, BN = 32 };

RUNG_KERNEL(BM *BN) e31_split(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * BM + threadIdx.x / BN;
    int64_t column = (int64_t)blockIdx.x * BN + threadIdx.x % BN;
    bool exists = row < g.m && column < g.n; /* all lanes come to each product */

    float acc = 0.0f;
    for (int64_t i = 0; i < g.k; i++) {
        float a = exists ? g.a[row * g.lda + i] : 0.0f, b = exists ? g.b[i * g.ldb + column] : 0.0f;
        acc = short_fma(short_of(a), short_of(b), acc);
    }

    if (exists) {
        float *c = &g.c[row * g.ldc + column];
        *c = rung_blend(&g, acc, c);
    }
}
