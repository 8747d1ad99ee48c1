/* e32_skinny: k is cut into as many parts as fill the multiprocessors. */
#include "device/exercise.h"

enum { SIDE = 16 };

/* How many parts k is cut into. */
EXERCISE_PARTS(m, n, k, sms)
{
    int64_t blocks = ((m + SIDE - 1) / SIDE) * ((n + SIDE - 1) / SIDE), steps = (k + SIDE - 1) / SIDE;
    int64_t parts = (sms + blocks - 1) / blocks;
    parts = parts < steps ? parts : steps;
    return parts > 1 ? (int)parts : 1;
}

RUNG_KERNEL(SIDE *SIDE) e32_skinny(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[SIDE][SIDE], b_tile[SIDE][SIDE];
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, part = blockIdx.z;
    int64_t row = (int64_t)blockIdx.y * SIDE + y, column = (int64_t)blockIdx.x * SIDE + x;
    int64_t steps = (g.k + SIDE - 1) / SIDE;
    int64_t begin = steps * part / g.split_k * SIDE, end = steps * (part + 1) / g.split_k * SIDE;
    end = end < g.k ? end : g.k;

    float acc = 0.0f;
    for (int64_t i = begin; i < end; i += SIDE) {
        a_tile[y][x] = row < g.m && i + x < end ? g.a[row * g.lda + i + x] : 0.0f;
        b_tile[y][x] = i + y < end && column < g.n ? g.b[(i + y) * g.ldb + column] : 0.0f;
        __syncthreads();
        for (int j = 0; j < SIDE; j++)
            acc = fmaf(a_tile[y][j], b_tile[j][x], acc);
        __syncthreads();
    }

    float *sums = (float *)g.workspace + part * g.m * g.n; /* m x n floats for each part */
    if (row < g.m && column < g.n)
        sums[row * g.n + column] = acc;
}

/* One result a thread: a block has 256 columns of one row. */
RUNG_KERNEL(256) e32_skinny_finish(const __grid_constant__ rung_args g)
{
    int64_t row = blockIdx.y, column = (int64_t)blockIdx.x * 256 + threadIdx.x;
    if (column >= g.n)
        return;
    float sum = 0.0f;
    for (int part = 0; part < g.split_k; part++)
        sum += ((const float *)g.workspace)[(part * g.m + row) * g.n + column];
    float *c = &g.c[row * g.ldc + column];
    *c = rung_blend(&g, sum, c);
}
