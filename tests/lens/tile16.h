/* One body for the lens's tests: a 16x16 tiled product with places for faults. Without any, it is right. */
#include "device/args.h"

#ifndef FIRST_BARRIER
#define FIRST_BARRIER __syncthreads()
#endif
#ifndef SECOND_BARRIER
#define SECOND_BARRIER __syncthreads()
#endif
#ifndef K_GUARD
#define K_GUARD(p) ((p) < g.k)
#endif
#ifndef OUTSIDE
#define OUTSIDE 0.0f
#endif
#ifndef INSIDE
#define INSIDE(row, column) ((row) < g.m && (column) < g.n)
#endif

enum { T = 16 };

RUNG_KERNEL(T *T) KERNEL_NAME(const __grid_constant__ rung_args g)
{
    __shared__ float a_tile[T][T], b_tile[T][T];
    int x = threadIdx.x % T, y = threadIdx.x / T;
    int64_t row = (int64_t)blockIdx.y * T + y, column = (int64_t)blockIdx.x * T + x;
    float acc = 0.0f;
    for (int64_t p = 0; p < g.k; p += T) {
#ifdef SKIP_OUTSIDE
        if (row < g.m && p + x < g.k)
            a_tile[y][x] = g.a[row * g.lda + p + x];
#else
        a_tile[y][x] = row < g.m && K_GUARD(p + x) ? g.a[row * g.lda + p + x] : OUTSIDE;
#endif
        b_tile[y][x] = p + y < g.k && column < g.n ? g.b[(p + y) * g.ldb + column] : 0.0f;
        FIRST_BARRIER;
        for (int i = 0; i < T; i++)
            acc = fmaf(a_tile[y][i], b_tile[i][x], acc);
        SECOND_BARRIER;
#ifdef FOREVER
        while (g.alpha == 1.0f && row == 3 && column == 5)
            __asm__ volatile("");
#endif
    }
    if (INSIDE(row, column))
        g.c[row * g.ldc + column] = rung_blend(&g, acc, &g.c[row * g.ldc + column]);
}
