/* e16_column: tiles of 32 x 32, one result a thread at a time; 256 threads, four results each. */
#include "device/args.h"

enum { SIDE = 32, ROWS = 4, STEP = SIDE / ROWS };

RUNG_KERNEL(SIDE *STEP) e16_column(const __grid_constant__ rung_args g)
{
    __shared__ __align__(16) float a_tile[SIDE][SIDE], b_tile[SIDE][SIDE];
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE;
    int64_t row0 = (int64_t)blockIdx.y * SIDE, column = (int64_t)blockIdx.x * SIDE + x;

    float acc[ROWS] = {0.0f};
    for (int64_t i = 0; i < g.k; i += SIDE) {
        for (int r = y; r < SIDE; r += STEP) {
            a_tile[r][x] = row0 + r < g.m && i + x < g.k ? g.a[(row0 + r) * g.lda + i + x] : 0.0f;
            b_tile[r][x] = i + r < g.k && column < g.n ? g.b[(i + r) * g.ldb + column] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            for (int j = 0; j < SIDE; j++)
                acc[r] = fmaf(a_tile[y + r * STEP][j], b_tile[j][x], acc[r]);
        __syncthreads();
    }

#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int64_t row = row0 + y + r * STEP;
        if (row < g.m && column < g.n) {
            float *c = &g.c[row * g.ldc + column];
            *c = rung_blend(&g, acc[r], c);
        }
    }
}
