/* e27_last_block: the sum of x in one launch. */
#include "device/reduce_args.h"

enum { THREADS = 256 };

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

RUNG_KERNEL(THREADS) e27_last_block(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[THREADS / 32];
    int thread = threadIdx.x;
    float sum = 0.0f;
    for (int64_t i = (int64_t)blockIdx.x * THREADS + thread; i < g.n; i += (int64_t)gridDim.x * THREADS)
        sum += g.x[i];
    sum = warp_sum(sum);
    if (thread % 32 == 0)
        sums[thread / 32] = sum;
    __syncthreads();
    if (thread < 32) {
        sum = warp_sum(thread < THREADS / 32 ? sums[thread] : 0.0f);
        if (thread == 0)
            g.out[0] = sum; /* here: the sum of one block only */
    }
}
