/* r06_vector_one_launch: 16-byte loads, and the last block to finish adds the blocks' sums in order.
 * Changed from r05_shuffle: a quarter of the load instructions, eight of them under way in each thread, and no second
 * launch: each block leaves its sum in memory and takes a ticket; who draws the last one adds all sums, always in the
 * same order.
 * Limits: bound by device memory. The ticket counter has to be zero at the start, and is again at the end.
 */
#include "device/reduce_args.h"

enum { THREADS = 512, WARPS = THREADS / 32, EACH = 8 };

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

/* The sum over the block, in thread 0. */
static __device__ __forceinline__ float block_sum(float sum, float *sums)
{
    int thread = threadIdx.x;
    sum = warp_sum(sum);
    if (thread % 32 == 0)
        sums[thread / 32] = sum;
    __syncthreads();
    return thread < 32 ? warp_sum(thread < WARPS ? sums[thread] : 0.0f) : 0.0f;
}

static __device__ __forceinline__ float sum4(float4 v)
{
    return (v.x + v.y) + (v.z + v.w);
}

RUNG_KERNEL(THREADS, 2) r06_vector_one_launch(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[2][WARPS];
    __shared__ bool last;
    int thread = threadIdx.x;
    /* Up to the first 16-byte boundary, and after the last, single floats: block 0 adds them. */
    int64_t head = (16 - (uintptr_t)g.x % 16) % 16 / sizeof(float);
    head = head < g.n ? head : g.n;
    int64_t quads = (g.n - head) / 4, tail = head + quads * 4;
    const float4 *x = (const float4 *)(g.x + head);
    float sum = 0.0f;
    if (blockIdx.x == 0) {
        sum += thread < head ? g.x[thread] : 0.0f;
        sum += tail + thread < g.n ? g.x[tail + thread] : 0.0f;
    }

    /* Either all blocks go through x side by side, or each has a share of its own. */
    int64_t i = thread, end = quads, step = THREADS;
    if (g.share > 0) {
        i += blockIdx.x * g.share;
        end = (blockIdx.x + 1) * g.share < quads ? (blockIdx.x + 1) * g.share : quads;
    } else {
        i += (int64_t)blockIdx.x * THREADS;
        step = (int64_t)gridDim.x * THREADS;
    }
    /* lesson */
    for (; i + (EACH - 1) * step < end; i += EACH * step) {
        float4 v[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++)
            v[e] = __ldcs(&x[i + e * step]); /* read once: first to leave the caches */
#pragma unroll
        for (int e = 0; e < EACH; e++)
            sum += sum4(v[e]);
    }
#pragma unroll
    for (int e = 0; e < EACH; e++)
        sum += i + e * step < end ? sum4(__ldcs(&x[i + e * step])) : 0.0f;

    sum = block_sum(sum, sums[0]);
    if (thread == 0) {
        g.partials[blockIdx.x] = sum;
        __threadfence(); /* the sum before the ticket */
        last = atomicAdd(g.ticket, 1u) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last)
        return;
    /* /lesson */
    __threadfence();
    sum = 0.0f;
    for (unsigned b = thread; b < gridDim.x; b += THREADS)
        sum += __ldcg(&g.partials[b]);
    sum = block_sum(sum, sums[1]);
    if (thread == 0) {
        *g.out = sum;
        *g.ticket = 0;
    }
}
