/* All have read the word when a thread of the last warp overwrites it: lanes of its own warp it has met, those of
 * others it has not. */
#include "device/args.h"

RUNG_KERNEL(256) two_warps_read(const __grid_constant__ rung_args g)
{
    __shared__ float factor;
    if (threadIdx.x == 0)
        factor = g.alpha;
    __syncthreads();
    float mine = factor;
    __syncwarp();
    if (threadIdx.x == 255)
        factor = mine + 1.0f;
}
