/* r04_last_warp_unroll: the last five rounds belong to one warp and need no barrier of the block.
 * Changed from r03_several_per_thread: once 64 sums are left, a single warp adds on, unrolled, with the warp's own
 * synchronisation between rounds: three barriers instead of eight.
 * Limits: the rounds still go through shared memory.
 */
#include "device/reduce_args.h"

enum { THREADS = 256, EACH = 8 };

RUNG_KERNEL(THREADS) r04_last_warp_unroll(const __grid_constant__ rung_reduce_args g)
{
    __shared__ float sums[THREADS];
    int thread = threadIdx.x;
    /* lesson */
    int64_t first = (int64_t)blockIdx.x * THREADS * EACH + thread;
    float sum = 0.0f;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        sum += first + e * THREADS < g.n ? g.x[first + e * THREADS] : 0.0f;
    sums[thread] = sum;
    __syncthreads();
    for (int half = THREADS / 2; half > 32; half /= 2) {
        if (thread < half)
            sums[thread] += sums[thread + half];
        __syncthreads();
    }
    if (thread < 32) {
#pragma unroll
        for (int half = 32; half > 0; half /= 2) {
            sum = sums[thread] + sums[thread + half]; /* past the sums that count: read, never used */
            __syncwarp();
            sums[thread] = sum;
            __syncwarp();
        }
        if (thread == 0)
            g.out[blockIdx.x] = sum;
        /* /lesson */
    }
}
