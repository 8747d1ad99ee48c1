/* e26_shuffle: every warp adds all the sums, one by one: what a goal has to refuse. */
#include "device/reduce_args.h"

enum { THREADS = 256 };

RUNG_KERNEL(THREADS) e26_shuffle(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[THREADS / 32];
    int thread = threadIdx.x;
    int64_t i = (int64_t)blockIdx.x * THREADS + thread;
    float mine = i < g.n ? g.x[i] : 0.0f, sum = 0.0f;
    for (int lane = 0; lane < 32; lane++)
        sum += __shfl_sync(0xffffffffu, mine, lane);
    if (thread % 32 == 0)
        sums[thread / 32] = sum;
    __syncthreads();
    if (thread == 0) {
        sum = 0.0f;
        for (int w = 0; w < THREADS / 32; w++)
            sum += sums[w];
        g.out[blockIdx.x] = sum;
    }
}
