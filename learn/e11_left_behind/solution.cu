/* e11_left_behind: 16 x 16 tiles of A and B in shared memory; threads outside C help to fill them. */
#include "device/args.h"

enum { SIDE = 16 };

RUNG_KERNEL(SIDE *SIDE) e11_left_behind(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[SIDE][SIDE], b_tile[SIDE][SIDE];
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    int64_t row = (int64_t)blockIdx.y * SIDE + y, column = (int64_t)blockIdx.x * SIDE + x;

    float acc = 0.0f;
    for (int64_t i = 0; i < g.k; i += SIDE) {
        a_tile[y][x] = row < g.m && i + x < g.k ? g.a[row * g.lda + i + x] : 0.0f;
        b_tile[y][x] = i + y < g.k && column < g.n ? g.b[(i + y) * g.ldb + column] : 0.0f;
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
