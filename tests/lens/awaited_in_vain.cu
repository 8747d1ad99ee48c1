/* A thread looks again and again for what no other one does. */
#include "device/args.h"

RUNG_KERNEL(256) awaited_in_vain(const __grid_constant__ rung_args g)
{
    unsigned *flag = (unsigned *)g.c;
    if (threadIdx.x == 7)
        while (atomicAdd(flag, 0u) != 1)
            ;
    __syncthreads();
}
