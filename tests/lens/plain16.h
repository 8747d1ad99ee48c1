/* One body for what the lens must refuse: a plain product, a thread a result, with places for what is wrong. */
#include "device/args.h"

#ifndef LAST_K
#define LAST_K g.k
#endif
#ifndef STORED /* what becomes of a sum */
#define STORED(acc) (acc)
#endif
#ifndef BEFORE_THE_END
#define BEFORE_THE_END
#endif
#ifndef ROWS
#define ROWS g.m
#endif

RUNG_KERNEL(256) KERNEL_NAME(const __grid_constant__ rung_args g)
{
    int64_t row = (int64_t)blockIdx.y * 16 + threadIdx.x / 16, column = (int64_t)blockIdx.x * 16 + threadIdx.x % 16;
    float acc = 0.0f;
    if (row >= ROWS || column >= g.n)
        return;
    for (int64_t p = 0; p < LAST_K; p++)
        acc = fmaf(g.a[row * g.lda + p], g.b[p * g.ldb + column], acc);
    BEFORE_THE_END;
    g.c[row * g.ldc + column] = rung_blend(&g, STORED(acc), &g.c[row * g.ldc + column]);
}
