/* e25_same_warp: the last rounds in one warp, as code for GPUs before 2017 does it. */
#include "device/reduce_args.h"

enum { THREADS = 256 };

RUNG_KERNEL(THREADS) e25_same_warp(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[THREADS];
    int thread = threadIdx.x;
    int64_t i = (int64_t)blockIdx.x * THREADS + thread;
    sums[thread] = i < g.n ? g.x[i] : 0.0f;
    __syncthreads();
    for (int half = THREADS / 2; half >= 32; half /= 2) {
        if (thread < half)
            sums[thread] += sums[thread + half];
        __syncthreads();
    }
    if (thread < 32) {
        for (int step = 16; step > 0; step /= 2)
            sums[thread] += sums[thread + step];
        if (thread == 0)
            g.out[blockIdx.x] = sums[0];
    }
}
