/* A store from shared memory that nobody waits for: the copy engine may read the memory when it is another block's. */
#include "device/args.h"
#include "device/ptx.h"

enum { T = 16 };

RUNG_KERNEL(T *T) unread_store(const __grid_constant__ rung_args g)
{
    __shared__ __align__(128) float line[4];
    const int t = threadIdx.x;
    if (blockIdx.x + blockIdx.y > 0)
        return;
    if (t < 4)
        line[t] = 0.0f;
    ptx_async_fence();
    __syncthreads();
    if (t == 5) {
        CUtensorMap map; /* the lens is at hand here; a kernel of the library is given its maps */
        const cuuint64_t sizes[3] = {4, 1, 1}, strides[2] = {16, 16};
        const cuuint32_t box[3] = {4, 1, 1}, steps[3] = {1, 1, 1};
        cuTensorMapEncodeTiled(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, g.c, sizes, strides, box, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                               CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        ptx_tensor_store_if(&map, ptx_smem(line), 0, 0, 0, 1);
    }
    if (g.alpha == 2.0f)
        ptx_tensor_stores_read();
    __syncthreads();
}
