/* e24_tree: two barriers a round: what the goal has to refuse. */
#include "device/reduce_args.h"

enum { THREADS = 256 };

RUNG_KERNEL(THREADS) e24_tree(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[THREADS];
    int thread = threadIdx.x;
    int64_t i = (int64_t)blockIdx.x * THREADS + thread;
    sums[thread] = i < g.n ? g.x[i] : 0.0f;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if (thread < half)
            sums[thread] += sums[thread + half];
        __syncthreads();
        __syncthreads();
    }
    if (thread == 0)
        g.out[blockIdx.x] = sums[0];
}
