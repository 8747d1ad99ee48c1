/* What the guard said of the last product like this one. Products come again, in loops, with the same operands in the
 * same places; where the guard refused every block the last time, a look at the operands (device/f16x3_look.h) is
 * cheaper than to split them and most likely enough. The split also leaves which line of each block to look at. Nobody
 * waits for what the GPU has not said yet. What is recalled decides whether and where there is a look, never what is
 * computed. */
#ifndef RUNG_ACCURATE_RECALL_H
#define RUNG_ACCURATE_RECALL_H

#include "cuda/device/f16x3.h"
#include "cuda/driver/device.h"

/* Where the launches of one product leave what they find. */
typedef struct rung_recall_place {
    uint32_t *last;             /* on the GPU: 1 where all blocks were marked */
    volatile uint32_t *told;    /* the same in host memory */
    volatile uint32_t *in_vain; /* in host memory: counts looks that did not spare the split */
    f16x3_witness *witness;     /* on the GPU: F16X3_WITNESSES, the blocks of A and then those of B */
    uint64_t number;            /* which witnesses are this product's; those with lesser numbers are not */
} rung_recall_place;

/* Finds the place of products like this one; all NULL where there is no memory. Returns whether to look. */
int rung_recall(rung_cuda *cuda, const rung_problem *p, rung_recall_place *place);
void rung_recall_close(rung_cuda *cuda);

#endif
