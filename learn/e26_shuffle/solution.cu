/* e26_shuffle: a block adds 256 elements by shuffles, with one barrier. */
#include "device/reduce_args.h"

enum { THREADS = 256 };

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

RUNG_KERNEL(THREADS) e26_shuffle(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[THREADS / 32];
    int thread = threadIdx.x;
    int64_t i = (int64_t)blockIdx.x * THREADS + thread;
    float sum = warp_sum(i < g.n ? g.x[i] : 0.0f);
    if (thread % 32 == 0)
        sums[thread / 32] = sum;
    __syncthreads();
    if (thread < 32) {
        sum = warp_sum(thread < THREADS / 32 ? sums[thread] : 0.0f);
        if (thread == 0)
            g.out[blockIdx.x] = sum;
    }
}
