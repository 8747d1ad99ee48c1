/* Tensor maps of matrices whose rows start at multiples of 16 bytes. */
#include "cuda/host/boxes.h"

rung_status rung_boxes_describe(rung_cuda *cuda, const rung_boxes *b, CUtensorMap *map)
{
    const cuuint64_t sizes[3] = {(cuuint64_t)b->size[0], (cuuint64_t)b->size[1], (cuuint64_t)b->size[2]};
    const cuuint64_t strides[2] = {(cuuint64_t)b->ld * 4, (cuuint64_t)(b->size[2] > 1 ? b->stride : b->ld) * 4};
    const cuuint32_t box[3] = {(cuuint32_t)b->box[0], (cuuint32_t)b->box[1], 1}, unit[3] = {1, 1, 1};
    CU_TRY(cuda->driver,
           tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)(uintptr_t)b->at, sizes, strides, box, unit,
                      CU_TENSOR_MAP_INTERLEAVE_NONE, b->swizzle, b->promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}
