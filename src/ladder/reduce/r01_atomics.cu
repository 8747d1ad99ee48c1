/* r01_atomics: every thread adds its element to the result in memory.
 * The first rung. One address takes n additions, one after the other, in the L2 cache.
 * Limits: the order of additions changes from run to run, and the last bits with it; the launcher clears the result.
 * The rung exists to show that cost: nothing else in Rung adds floats atomically.
 */
#include "device/reduce_args.h"

enum { THREADS = 256 };

/* lesson */
RUNG_KERNEL(THREADS) r01_atomics(const __grid_constant__ rung_reduce_args g)
{
    int64_t step = (int64_t)gridDim.x * THREADS;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < g.n; i += step)
        atomicAdd(g.out, g.x[i]);
}
/* /lesson */
