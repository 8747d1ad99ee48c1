/* Lays an operand out between guards. The guard behind is as deep as a whole tile below the last line, so that an
 * unguarded edge of a kernel writes into it, not past the allocation. */
#include "lab/operand.h"

enum { GUARD_WORDS = 1024, GUARD_LINES = 130, GUARD_LIMIT = 1 << 20 };

rung_status lab_operand_make(lab_place *place, lab_operand *x, int64_t lines, int64_t length, int64_t pad,
                             int64_t offset, int64_t batch)
{
    const double floats = ((double)lines * ((double)length + (double)pad + 1.0) + 5.0) * (double)batch + (double)offset;
    if (floats > 0x1p60) /* more than the sums below can count */
        return lab_fail(RUNG_OUT_OF_MEMORY, "no memory for operands of %.0f bytes", 4.0 * floats);
    x->lines = lines;
    x->length = length;
    x->ld = (length > 0 ? length : 1) + pad;
    x->batch = batch;
    x->stride = lines * x->ld + (batch > 1 ? 5 * (pad > 0) : 0);
    x->stride = x->stride > 0 ? x->stride : 1;
    int64_t behind = x->ld <= GUARD_LIMIT / GUARD_LINES ? GUARD_LINES * x->ld : GUARD_LIMIT;
    x->first = GUARD_WORDS + offset;
    x->words = x->first + x->stride * batch + behind + GUARD_WORDS;
    LAB_TRY(lab_buffer_reserve(place, &x->memory, x->words * 4));
    x->at = (float *)x->memory.at + x->first;
    return lab_pattern(place, x->memory.at, LAB_POISON, (size_t)x->words);
}

lab_view lab_operand_view(const lab_operand *x, int64_t entry, int across)
{
    float *at = x->at + entry * x->stride;
    return across ? (lab_view){at, 1, x->ld} : (lab_view){at, x->ld, 1};
}

void lab_operand_region(const lab_operand *x, lab_region_args *region)
{
    *region = (lab_region_args){.words_at = x->memory.at,
                                .words = x->words,
                                .first = x->first,
                                .lines = x->lines,
                                .length = x->length,
                                .ld = x->ld,
                                .stride = x->stride,
                                .batch = x->batch};
}
