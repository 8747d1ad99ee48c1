/* A block tells of what the copy engine then brings to another one, and no fence stands in between. */
#define KERNEL_NAME missing_fence_of_bulk
#define FENCE()
#include "device/args.h"
#include "device/ptx.h"

static __device__ float brought(const float *from)
{
    __shared__ __align__(16) float copied[4];
    __shared__ uint64_t bar;
    ptx_mbar_init(ptx_smem(&bar), 1);
    ptx_mbar_init_fence();
    ptx_mbar_arrive_tx(ptx_smem(&bar), sizeof copied);
    ptx_bulk_load(ptx_smem(copied), from, sizeof copied, ptx_smem(&bar));
    ptx_mbar_wait(ptx_smem(&bar), 0);
    return copied[0];
}

#define READ(at) (threadIdx.x == 0 ? brought(at) : 0.0f)
#include "tells.h"
