/* All count. The last thread then looks, without a barrier (beta 0: at once; 1: when its warp has met; 2: it clears the
 * count). */
#include "device/args.h"

RUNG_KERNEL(256) atomics_unknown(const __grid_constant__ rung_args g)
{
    __shared__ int count;
    volatile int seen = 0;
    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    atomicAdd(&count, 1);
    if (g.beta > 0.0f)
        __syncwarp();
    if (threadIdx.x == 255 && g.beta == 2.0f)
        count = 0;
    else if (threadIdx.x == 255)
        seen = count;
}
