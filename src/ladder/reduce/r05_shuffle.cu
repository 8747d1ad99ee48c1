/* r05_shuffle: lanes hand their sums to each other through registers.
 * Changed from r04_last_warp_unroll: a warp adds its 32 sums in five shuffles; only one sum a warp goes through shared
 * memory, with one barrier. The grid is as large as the GPU holds and steps through x, so few results are left for the
 * second launch.
 * Limits: 4-byte loads; a second launch adds the blocks' results.
 */
#include "device/reduce_args.h"

enum { THREADS = 256, WARPS = THREADS / 32, EACH = 8 };

static __device__ __forceinline__ float warp_sum(float sum)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_down_sync(0xffffffffu, sum, step);
    return sum;
}

/* lesson */
RUNG_KERNEL(THREADS) r05_shuffle(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[WARPS];
    int thread = threadIdx.x;
    float sum = 0.0f;
    for (int64_t first = (int64_t)blockIdx.x * THREADS * EACH + thread; first < g.n;
         first += (int64_t)gridDim.x * THREADS * EACH) {
#pragma unroll
        for (int e = 0; e < EACH; e++)
            sum += first + e * THREADS < g.n ? g.x[first + e * THREADS] : 0.0f;
    }
    sum = warp_sum(sum);
    if (thread % 32 == 0)
        sums[thread / 32] = sum;
    __syncthreads();
    if (thread < 32) {
        sum = warp_sum(thread < WARPS ? sums[thread] : 0.0f);
        if (thread == 0)
            g.out[blockIdx.x] = sum;
    }
}
/* /lesson */
