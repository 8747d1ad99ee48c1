/* e25_same_warp: the last rounds in one warp. */
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
        float sum = sums[thread];
        for (int step = 16; step > 0; step /= 2) {
            sum += sums[thread + step];
            __syncwarp(); /* all have read */
            sums[thread] = sum;
            __syncwarp(); /* all have written */
        }
        if (thread == 0)
            g.out[blockIdx.x] = sum;
    }
}
