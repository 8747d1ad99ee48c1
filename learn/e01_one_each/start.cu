/* e01_one_each: C = A, one element a thread. */
#include "device/args.h"

RUNG_KERNEL(256) e01_one_each(const __grid_constant__ rung_args g)
{
    int64_t row = blockIdx.y;
    int64_t column = 0; /* here: which column is this thread's? */

    if (column < g.n) /* the last block of a row may reach past its end */
        g.c[row * g.ldc + column] = g.a[row * g.lda + column];
}
