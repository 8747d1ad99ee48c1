/* Tiles that accurate mode's guard has marked: strict arithmetic computes them, and no others. */
#ifndef RUNG_DEVICE_MARKS_H
#define RUNG_DEVICE_MARKS_H

#include "device/args.h"

/* True where this block's tile is marked. What the next product wants to find zero is cleared here, since nobody reads
 * it any more; the mark is cleared once all threads have read it. */
RUNG_DEVICE bool take_mark(const rung_args *p, unsigned tile, int threads)
{
    bool marked = p->marks[tile] != 0;
    for (long long i = blockIdx.x * (long long)threads + threadIdx.x; i < p->zero_words; i += gridDim.x * threads)
        ((uint4 *)p->zero)[i] = make_uint4(0, 0, 0, 0);
    __syncthreads(); /* all have read the mark */
    if (marked && p->zero_words && threadIdx.x == 0)
        p->marks[tile] = 0;
    return marked;
}

#endif
