/* One body for the lens's tests: the first block says by a volatile store that an element of C is there, and the others
 * read it. Without a fault it fences first. */
#include "sum_at.h"

#ifndef FENCE
#define FENCE() __threadfence()
#endif
#ifndef FENCE_EARLY
#define FENCE_EARLY()
#endif
#ifndef FENCE_LATE
#define FENCE_LATE()
#endif
#ifndef WRITE
#define WRITE(at, value) (*(at) = (value))
#endif
#ifndef READ
#define READ(at) (*(at))
#endif

enum { T = 16 };

RUNG_KERNEL(T *T) KERNEL_NAME(const __grid_constant__ rung_args g)
{
    const int64_t row = (int64_t)blockIdx.y * T + threadIdx.x / T, column = (int64_t)blockIdx.x * T + threadIdx.x % T;
    const bool first = blockIdx.x == 0 && blockIdx.y == 0;
    if (row >= g.m || column >= g.n || (first && threadIdx.x == 1))
        return;
    float sum = sum_at(&g, row, column);
    if (!first && *(volatile float *)&g.c[1] < INFINITY)
        sum += 0.0f * READ(&g.c[0]);
    FENCE_EARLY();
    WRITE(&g.c[row * g.ldc + column], sum);
    if (first && threadIdx.x == 0) {
        sum = sum_at(&g, 0, 1);
        FENCE();
        *(volatile float *)&g.c[1] = sum;
        FENCE_LATE();
    }
}
