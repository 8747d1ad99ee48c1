/* Tensor maps of matrices whose rows start at multiples of 16 bytes. */
#include "cuda/host/boxes.h"

static rung_status check_reach(const char *what, int64_t apart)
{
    if (apart > rung_rows_reach)
        return rung_fail(RUNG_UNSUPPORTED, "%s lie %lld floats apart: the copy engine reaches %lld", what,
                         (long long)apart, (long long)rung_rows_reach);
    return RUNG_SUCCESS;
}

rung_status rung_boxes_describe(rung_cuda *cuda, const rung_boxes *b, CUtensorMap *map)
{
    /* Of one row nobody asks where the next one would be. */
    const int64_t ld = b->size[1] == 1 && b->ld > rung_rows_reach ? 4 : b->ld, stride = b->size[2] > 1 ? b->stride : ld;
    const cuuint64_t sizes[3] = {(cuuint64_t)b->size[0], (cuuint64_t)b->size[1], (cuuint64_t)b->size[2]};
    const cuuint64_t strides[2] = {(cuuint64_t)ld * 4, (cuuint64_t)stride * 4};
    const cuuint32_t box[3] = {(cuuint32_t)b->box[0], (cuuint32_t)b->box[1], 1}, unit[3] = {1, 1, 1};
    RUNG_TRY(check_reach("rows", ld));
    RUNG_TRY(check_reach("matrices of a batch", stride));
    CU_TRY(cuda->driver,
           tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 3, (void *)(uintptr_t)b->at, sizes, strides, box, unit,
                      CU_TENSOR_MAP_INTERLEAVE_NONE, b->swizzle, b->promotion, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}
