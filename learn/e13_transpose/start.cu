/* e13_transpose: C = alpha A^T + beta C in pieces of 32 x 32. */
#include "device/args.h"

enum { SIDE = 32, ROWS = 8 };

RUNG_KERNEL(SIDE *ROWS) e13_transpose(const __grid_constant__ rung_args g)
{
    int64_t row0 = (int64_t)blockIdx.y * SIDE, column0 = (int64_t)blockIdx.x * SIDE;
    int x = threadIdx.x % SIDE;
    for (int y = threadIdx.x / SIDE; y < SIDE; y += ROWS) {
        int64_t row = row0 + x, column = column0 + y; /* along a row of A, down a column of C */
        if (row < g.m && column < g.n) {
            float *c = &g.c[row * g.ldc + column];
            *c = rung_blend(&g, g.a[column * g.lda + row], c);
        }
    }
}
