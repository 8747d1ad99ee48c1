/* The first block fences what it has written and tells of it; the second one tells without a fence of the thread that
 * has written: neither the first block's fence nor another thread's counts there. */
#include "sum_at.h"

enum { T = 16, TELLER = 8, OTHER = 0 }; /* threads: the one that tells comes after the other one that fences */

RUNG_KERNEL(T *T) fenced_in_another_block(const __grid_constant__ rung_args g)
{
    const int64_t row = (int64_t)blockIdx.y * T + threadIdx.x / T, column = (int64_t)blockIdx.x * T + threadIdx.x % T;
    const bool tells = blockIdx.x < 2 && blockIdx.y == 0;
    if (row >= g.m || column >= g.n || (tells && threadIdx.x == TELLER + 1))
        return;
    float sum = sum_at(&g, row, column);
    if (!tells && *(volatile float *)&g.c[TELLER + 1] < INFINITY)
        sum += 0.0f * g.c[TELLER];
    if (!tells && *(volatile float *)&g.c[T + TELLER + 1] < INFINITY)
        sum += 0.0f * g.c[T + TELLER];
    g.c[row * g.ldc + column] = sum;
    if (tells && threadIdx.x == OTHER)
        __threadfence();
    if (tells && threadIdx.x == TELLER) {
        sum = sum_at(&g, 0, column + 1);
        if (blockIdx.x == 0)
            __threadfence();
        *(volatile float *)&g.c[column + 1] = sum;
    }
}
