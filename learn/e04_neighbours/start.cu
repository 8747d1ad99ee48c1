/* e04_neighbours: C = alpha A + beta C in pieces of 32 x 32. */
#include "device/args.h"

enum { SIDE = 32 };

RUNG_KERNEL(SIDE *SIDE) e04_neighbours(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * SIDE + threadIdx.x % SIDE;
    int64_t column = (int64_t)blockIdx.x * SIDE + threadIdx.x / SIDE;
    if (row >= g.m || column >= g.n)
        return;

    float *c = &g.c[row * g.ldc + column];
    *c = rung_blend(&g, g.a[row * g.lda + column], c);
}
