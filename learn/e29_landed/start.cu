/* e29_landed: 16 x 16 tiles, copied asynchronously into two buffers ahead of their use. */
#include "device/async.h"

enum { SIDE = 16 };

RUNG_KERNEL(SIDE *SIDE) e29_landed(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[2][SIDE][SIDE], b_tile[2][SIDE][SIDE];
    int x = threadIdx.x % SIDE, y = threadIdx.x / SIDE, buffer = 0;
    int64_t row = (int64_t)blockIdx.y * SIDE + y, column = (int64_t)blockIdx.x * SIDE + x;
    const float *a = &g.a[(row < g.m ? row : 0) * g.lda], *b = &g.b[column < g.n ? column : 0];

    float acc = 0.0f;
    rung_async_copy4_or_zero(&a_tile[0][y][x], &a[x < g.k ? x : 0], row < g.m && x < g.k);
    rung_async_copy4_or_zero(&b_tile[0][y][x], &b[y < g.k ? y * g.ldb : 0], y < g.k && column < g.n);
    rung_async_commit();
    for (int64_t i = 0; i < g.k; i += SIDE) {
        int64_t next = i + SIDE;
        if (next < g.k) {
            bool a_is = row < g.m && next + x < g.k, b_is = next + y < g.k && column < g.n;
            rung_async_copy4_or_zero(&a_tile[1 - buffer][y][x], &a[a_is ? next + x : 0], a_is);
            rung_async_copy4_or_zero(&b_tile[1 - buffer][y][x], &b[b_is ? (next + y) * g.ldb : 0], b_is);
            rung_async_commit();
        }
        for (int j = 0; j < SIDE; j++)
            acc = fmaf(a_tile[buffer][y][j], b_tile[buffer][j][x], acc);
        buffer = 1 - buffer;
    }

    if (row < g.m && column < g.n) {
        float *c = &g.c[row * g.ldc + column];
        *c = rung_blend(&g, acc, c);
    }
}
