/* e27_last_block: the sum of x in one launch; the last block adds the sums of all. */
#include "device/reduce_args.h"

enum { THREADS = 256 };

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

/* The block that draws the last ticket finds all sums, and adds them in the order of the blocks. */
static __device__ void finish(const rung_reduce_args *g, float sum)
{
    g->partials[blockIdx.x] = sum;
    __threadfence();
    if (atomicAdd(g->ticket, 1u) != gridDim.x - 1)
        return;
    sum = 0.0f;
    for (unsigned b = 0; b < gridDim.x; b++)
        sum += __ldcg(&g->partials[b]);
    g->out[0] = sum;
    *g->ticket = 0;
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
            finish(&g, sum);
    }
}
