/* r03_several_per_thread: each thread adds eight elements in a register first.
 * Changed from r02_shared: eight independent loads are under way at once in every thread, and the tree with its
 * barriers comes once for 2048 elements instead of once for 256. Threads step by the block's width, so loads stay
 * coalesced.
 * Limits: eight rounds with a barrier each.
 */
#include "device/reduce_args.h"

enum { THREADS = 256, EACH = 8 };

RUNG_KERNEL(THREADS) r03_several_per_thread(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[THREADS];
    /* lesson */
    int thread = threadIdx.x;
    int64_t first = (int64_t)blockIdx.x * THREADS * EACH + thread;
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        sum += first + e * THREADS < g.n ? g.x[first + e * THREADS] : 0.0f;
    sums[thread] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread < half)
            sums[thread] += sums[thread + half];
        __syncthreads();
    }
    /* /lesson */
    if (thread == 0)
        g.out[blockIdx.x] = sums[0];
}
