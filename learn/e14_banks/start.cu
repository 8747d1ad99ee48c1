/* e14_banks: C = alpha A^T + beta C in pieces of 32 x 32, turned in shared memory. */
#include "device/args.h"

enum { SIDE = 32, ROWS = 8 };

RUNG_KERNEL(SIDE *ROWS) e14_banks(const __grid_constant__ rung_args g)
{
    __shared__ float tile[SIDE][SIDE];
    int64_t row0 = (int64_t)blockIdx.y * SIDE, column0 = (int64_t)blockIdx.x * SIDE;
    int x = threadIdx.x % SIDE;
    for (int y = threadIdx.x / SIDE; y < SIDE; y += ROWS)
        if (column0 + y < g.n && row0 + x < g.m)
            tile[y][x] = g.a[(column0 + y) * g.lda + row0 + x];
    __syncthreads();
    for (int y = threadIdx.x / SIDE; y < SIDE; y += ROWS)
        if (row0 + y < g.m && column0 + x < g.n) {
            float *c = &g.c[(row0 + y) * g.ldc + column0 + x];
            *c = rung_blend(&g, tile[x][y], c);
        }
}
