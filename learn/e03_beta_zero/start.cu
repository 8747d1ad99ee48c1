/* e03_beta_zero: C = alpha A + beta C; with beta = 0 the old C does not matter. */
#include "device/args.h"

enum { SIDE = 16 };

RUNG_KERNEL(SIDE *SIDE) e03_beta_zero(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * SIDE + threadIdx.x / SIDE;
    int64_t column = (int64_t)blockIdx.x * SIDE + threadIdx.x % SIDE;
    if (row >= g.m || column >= g.n)
        return;

    float *c = &g.c[row * g.ldc + column];
    *c = g.alpha * g.a[row * g.lda + column] + g.beta * *c;
}
