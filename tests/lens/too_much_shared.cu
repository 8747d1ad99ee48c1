/* Asks for more shared memory than a block can have. */
#include "device/args.h"

RUNG_KERNEL(256) too_much_shared(const __grid_constant__ rung_args g)
{
    extern __shared__ float much[];
    much[threadIdx.x] = 0.0f;
    (void)g;
}
