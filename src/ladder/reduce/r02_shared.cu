/* r02_shared: a block adds its 256 elements as a tree in shared memory.
 * Changed from r01_atomics: eight rounds of additions, half the threads each time, and one result a block. The
 * launcher runs the kernel again on the blocks' results until one is left: always the same order, the same bits.
 * Limits: one load a thread, then eight barriers; half the threads are idle from the first round on.
 */
#include "device/reduce_args.h"

enum { THREADS = 256 };

RUNG_KERNEL(THREADS) r02_shared(const __grid_constant__ rung_reduce_args g)
{
    /* lesson */
    __shared__ float sums[THREADS];
    int thread = threadIdx.x;
    int64_t i = (int64_t)blockIdx.x * THREADS + thread;
    sums[thread] = i < g.n ? g.x[i] : 0.0f;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread < half)
            sums[thread] += sums[thread + half];
        __syncthreads();
    }
    if (thread == 0)
        g.out[blockIdx.x] = sums[0];
    /* /lesson */
}
