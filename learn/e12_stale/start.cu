/* e12_stale: 16 x 16 tiles of A and B in shared memory. */
#include "device/args.h"

enum { SIDE = 16 };

RUNG_KERNEL(SIDE *SIDE) e12_stale(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[SIDE][SIDE], b_tile[SIDE][SIDE];
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    int64_t row = (int64_t)blockIdx.y * SIDE + y, column = (int64_t)blockIdx.x * SIDE + x;

    float acc = 0.0f;
    for (int64_t i = 0; i < g.k; i += SIDE) {
        if (row < g.m && i + x < g.k)
            a_tile[y][x] = g.a[row * g.lda + i + x];
        if (i + y < g.k && column < g.n)
            b_tile[y][x] = g.b[(i + y) * g.ldb + column];
        __syncthreads();
        for (int j = 0; j < SIDE; j++)
            acc = fmaf(a_tile[y][j], b_tile[j][x], acc);
        __syncthreads();
    }

    if (row < g.m && column < g.n) {
        float *c = &g.c[row * g.ldc + column];
        *c = rung_blend(&g, acc, c);
    }
}
