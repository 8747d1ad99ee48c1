/* Tensor maps of operands whose rows lie at any address. */
#include "cuda/families/pairs/shifted.h"

enum { BK = 16, CLASSES = 4 }; /* along k of a stage; rows r, r + 4, r + 8 ... start alike */

const char *rung_shifted_refuses(const rung_operand *o, int64_t batch)
{
    if (o->outer < CLASSES)
        return "an operand has fewer than four rows";
    if (batch > 1 && o->stride < 0)
        return "batches lie backwards";
    /* Positions along the maps' x, and one copy beyond, are 32-bit numbers. */
    const int64_t limit = (int64_t)1 << 30;
    if (o->ld >= limit / CLASSES || o->inner >= limit / 2 || (batch > 1 && o->stride > limit / batch))
        return "an operand spans too much for 32-bit places in it";
    return NULL;
}

/* Describes rows r, r + 4, r + 8 ... The map's x runs over all batches. It ends so that neither these rows nor what
 * lies before them is read beyond the operand's last row. */
static rung_status describe_class(rung_cuda *cuda, const rung_operand *o, int64_t batch, int64_t origin, int r,
                                  const cuuint32_t box[2], CUtensorMap *map)
{
    const int last = (int)((o->outer - 1) % CLASSES), furthest = r <= last ? last : CLASSES - 1;
    const int64_t before = batch > 1 ? (batch - 1) * o->stride : 0,
                  rows = (o->outer + CLASSES - 1 - furthest) / CLASSES;
    cuuint64_t sizes[2] = {(cuuint64_t)(origin + before + furthest * o->ld + o->inner), (cuuint64_t)rows};
    cuuint64_t strides[1] = {(cuuint64_t)o->ld * CLASSES * 4};
    cuuint32_t unit[2] = {1, 1};
    CU_TRY(cuda->driver, tensor_map(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, (void *)(uintptr_t)(o->at - origin), sizes,
                                    strides, box, unit, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                                    CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return RUNG_SUCCESS;
}

rung_status rung_shifted_describe(rung_cuda *cuda, const rung_operand *o, int64_t batch, int extent, int k_innermost,
                                  rung_shifted *x)
{
    const int chunk = extent < RUNG_SHIFTED_CHUNK ? extent : RUNG_SHIFTED_CHUNK, last = (int)((o->outer - 1) % CLASSES);
    const cuuint32_t box[2] = {(cuuint32_t)(k_innermost ? BK : chunk) + 4,
                               (cuuint32_t)(k_innermost ? extent : BK) / CLASSES};
    x->origin = (int32_t)((uintptr_t)o->at % 16 / 4);
    x->ld = (int32_t)o->ld;
    x->stride = batch > 1 ? (int32_t)o->stride : 0;
    /* The classes up to the last row's have one row more than the others. */
    for (int r = 0; r < CLASSES; r++)
        if (r == 0 || r == last + 1)
            RUNG_TRY(describe_class(cuda, o, batch, x->origin, r, box, &x->of[r]));
        else
            x->of[r] = x->of[r - 1];
    return RUNG_SUCCESS;
}
