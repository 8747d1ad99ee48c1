/* e27_last_block: every warp draws a ticket: what the goal has to refuse. */
#include "device/reduce_args.h"

enum { THREADS = 256 };

RUNG_KERNEL(THREADS) e27_last_block(const __grid_constant__ rung_reduce_args g)
{
    int lane = threadIdx.x % 32, warp = blockIdx.x * (THREADS / 32) + threadIdx.x / 32;
    if (lane == 0 && atomicAdd(g.ticket, 1u) == gridDim.x * (THREADS / 32) - 1) {
        float sum = 0.0f;
        for (int64_t i = 0; i < g.n; i++)
            sum += g.x[i];
        g.out[0] = sum + 0.0f * warp;
        *g.ticket = 0;
    }
}
